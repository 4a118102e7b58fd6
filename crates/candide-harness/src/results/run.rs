//! The results of one run.

use std::collections::BTreeMap;
use std::time::Duration;

use candide_workloads::Causes;

use super::doubt::least_share;
use super::hottest::Probes;
use super::kind::Kind;
use super::locks::Locks;
use super::sets::SetSums;
use super::slices::RunSlice;
use super::timeline::Phase;

/// The results of one run.
pub(crate) struct Run {
    /// The time during which the run was measured.
    pub(crate) elapsed: Duration,
    /// The results of each transaction type, in the workload's order.
    pub(crate) kinds: Vec<Kind>,
    /// Aborted attempts by the engine's reason.
    pub(crate) abort_reasons: BTreeMap<&'static str, u64>,
    /// The read and write sets of all committed transactions.
    pub(crate) sets: SetSums,
    /// The locks on rows by policy.
    pub(crate) locks: Locks,
    /// The causes of aborted attempts: the row and the conflicting transaction types; `None` if the
    /// workload does not find them out.
    pub(crate) causes: Option<Causes>,
    /// The results of reads of the workload's hottest row; `None` if these reads were not
    /// requested.
    pub(crate) hottest: Option<Probes>,
    /// The results of the workload's phases; empty if the workload has none.
    pub(crate) phases: Vec<Phase>,
    /// The results of the slices; empty if the run was not cut into slices. Slices of different
    /// runs are not merged.
    pub(crate) slices: Vec<RunSlice>,
    /// The transactions committed in the first second of the measured time; `None` if the measured
    /// time is shorter than two seconds, or has phases.
    pub(crate) first_second: Option<u64>,
    /// The number of times that the system made a measured thread leave its core; `None` if the
    /// system does not report it.
    pub(crate) involuntary_switches: Option<u64>,
    /// The least share of a core that a measured thread had, of the time in which it could have
    /// run; `None` if the system does not report it.
    pub(crate) core_share: Option<f64>,
    /// The number of bytes that the database took in the measured time.
    pub(crate) grown_bytes: u64,
    /// The part of `grown_bytes` that the operating system had not yet provided.
    pub(crate) fresh_bytes: u64,
    /// The bytes of the commit records of the measured time; zero if the database has no log.
    pub(crate) log_bytes: u64,
    /// The transactions per second of the same program without transactions; `None` if there is no
    /// such program, or if it was not measured. Those of different runs are not merged.
    pub(crate) sequential_tps: Option<f64>,
    /// Whether Ctrl-C ended the run. If the measurement had not begun by then, `elapsed` is zero.
    pub(crate) ended_early: bool,
}

impl Run {
    /// Creates empty results of `kinds` transaction types.
    pub(crate) fn new(kinds: usize) -> Self {
        Run {
            elapsed: Duration::ZERO,
            kinds: (0..kinds).map(|_| Kind::new()).collect(),
            abort_reasons: BTreeMap::new(),
            sets: SetSums::default(),
            locks: Locks::default(),
            causes: None,
            hottest: None,
            phases: Vec::new(),
            slices: Vec::new(),
            first_second: None,
            involuntary_switches: None,
            core_share: None,
            grown_bytes: 0,
            fresh_bytes: 0,
            log_bytes: 0,
            sequential_tps: None,
            ended_early: false,
        }
    }

    /// Adds the results of another thread or run. The measured times of runs are added up; that of
    /// a single thread's results is zero.
    pub(crate) fn merge(&mut self, other: &Run) {
        self.elapsed += other.elapsed;
        self.ended_early |= other.ended_early;
        self.grown_bytes += other.grown_bytes;
        self.fresh_bytes += other.fresh_bytes;
        self.log_bytes += other.log_bytes;
        if let Some(committed) = other.first_second {
            *self.first_second.get_or_insert_default() += committed;
        }
        if let Some(switches) = other.involuntary_switches {
            *self.involuntary_switches.get_or_insert_default() += switches;
        }
        self.core_share = least_share(self.core_share, other.core_share);
        for (kind, other) in self.kinds.iter_mut().zip(&other.kinds) {
            kind.merge(other);
        }
        for (&reason, count) in &other.abort_reasons {
            *self.abort_reasons.entry(reason).or_default() += count;
        }
        self.sets.merge(other.sets);
        self.locks.merge(other.locks);
        if let Some(causes) = &other.causes {
            self.causes.get_or_insert_default().merge(causes);
        }
        if let Some(hottest) = &other.hottest {
            self.hottest.get_or_insert_with(Probes::new).merge(hottest);
        }
        if self.phases.len() < other.phases.len() {
            self.phases.resize_with(other.phases.len(), Phase::default);
        }
        self.phases.iter_mut().zip(&other.phases).for_each(|(phase, other)| phase.merge(other));
    }

    pub(crate) fn committed(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.committed).sum()
    }

    /// Returns the committed transactions per second.
    pub(crate) fn throughput(&self) -> f64 {
        self.committed() as f64 / self.elapsed.as_secs_f64()
    }
}
