//! One workload on one database: loaded when it is needed, run with each number of threads,
//! checked; and the results.

use std::time::{Duration, Instant};

use candide_workloads::Consistency;

use crate::affinity::Cores;
use crate::any_workload::{self, AnyWorkload, LoadContext, LoadedDatabase, Variant};
use crate::driver::{self, Run, Timing};
use crate::failure::Failure;
use crate::measurement::{Measurement, Memory, Profile, Setting};
use crate::progress::{self, Agenda, Clock};

/// The settings that all turns of an invocation share.
pub struct Rules {
    /// The cores that threads may use.
    pub cores: Cores,
    /// The time a run goes on before it is measured.
    pub warmup: Duration,
    /// The time a run is measured.
    pub duration: Duration,
    /// The number of turns of each number of threads.
    pub runs: usize,
    /// The seed of everything random.
    pub seed: u64,
    /// The number of transactions per second that all threads together begin; without it, as many
    /// as they can.
    pub rate: Option<f64>,
    /// The length of the slices whose results are reported.
    pub slice: Option<Duration>,
    /// Whether threads read the workload's hottest row from time to time.
    pub hottest: bool,
    /// Whether the sizes of read and write sets are counted by transaction type, which takes a
    /// little time after each transaction.
    pub set_sizes: bool,
    /// Whether to run workloads that take more memory than is free.
    pub force: bool,
    /// The settings of the workloads.
    pub profile: Profile,
}

/// A workload, a way to set up its database, and the numbers of threads to run it with.
pub(crate) struct Experiment<'a> {
    pub(crate) workload: &'a dyn AnyWorkload,
    pub(crate) variant: Variant,
    /// The tallies, one for each number of threads.
    tallies: Vec<Tally>,
    site: Option<Box<dyn LoadedDatabase>>,
    /// The tally whose runs have not been checked.
    unchecked: Option<usize>,
    /// The time that the last check took.
    check_took: Option<Duration>,
}

/// The results of one number of threads.
struct Tally {
    threads: usize,
    runs: Vec<Run>,
    consistency: Consistency,
    memory: Option<Memory>,
}

/// The end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Whole,
    /// Ctrl-C was pressed: if anything was measured by then, it has been added.
    EndedEarly,
}

impl<'a> Experiment<'a> {
    pub(crate) fn new(workload: &'a dyn AnyWorkload, variant: Variant, threads: &[usize]) -> Self {
        let tally = |&threads| Tally {
            threads,
            runs: Vec::new(),
            consistency: Consistency::default(),
            memory: None,
        };
        let tallies = threads.iter().map(tally).collect();
        Experiment { workload, variant, tallies, site: None, unchecked: None, check_took: None }
    }

    /// Returns the number of numbers of threads.
    pub(crate) fn len(&self) -> usize {
        self.tallies.len()
    }

    /// Returns the runs so far with number `index` of the numbers of threads.
    pub(crate) fn runs(&self, index: usize) -> (usize, &[Run]) {
        (self.tallies[index].threads, &self.tallies[index].runs)
    }

    /// Makes one more run with number `index` of the numbers of threads; the last one is followed
    /// by the check. A workload that grows begins anew for each run, so that later ones do not work
    /// on larger tables, and is checked after each.
    pub(crate) fn turn(
        &mut self,
        index: usize,
        rules: &Rules,
        agenda: &Agenda,
    ) -> Result<Turn, Failure> {
        let Rules { cores, warmup, duration, seed, rate, slice, hottest, set_sizes, .. } = rules;
        let site = match &self.site {
            Some(site) => site,
            None => {
                let context = LoadContext { variant: &self.variant, cores, seed: *seed, agenda };
                match any_workload::load(self.workload, &context)? {
                    Some(site) => self.site.insert(site),
                    None => return Ok(Turn::EndedEarly),
                }
            }
        };
        let tally = &mut self.tallies[index];
        let (name, protocol, threads) =
            (self.workload.name(), self.variant.protocol.name(), tally.threads);
        let title = format!("{name} {protocol}, {threads} threads");
        let timeline = self.workload.timeline();
        let (warmup, duration) = (*warmup, *duration);
        let timing = Timing {
            warmup,
            duration,
            timeline,
            rate: *rate,
            slice: *slice,
            hottest: *hottest,
            set_sizes: *set_sizes,
        };
        let clock = Clock::new(agenda, &title, warmup + duration);
        let run =
            driver::run(&**site, self.workload.kinds().len(), threads, &timing, cores, &clock)?;
        drop(clock);
        let turn = if run.ended_early { Turn::EndedEarly } else { Turn::Whole };
        self.unchecked = Some(index);
        // The rest of a run that was ended early says less than the whole ones before.
        let is_wanted = !run.elapsed.is_zero() && (!run.ended_early || tally.runs.is_empty());
        if is_wanted {
            tally.runs.push(run);
            tally.memory = Some(Memory::now(site.reserved_bytes()));
        }
        if self.workload.grows() || self.tallies[index].runs.len() == rules.runs {
            self.check(agenda)?;
        }
        if self.workload.grows() {
            self.site = None;
        }
        Ok(turn)
    }

    /// Checks the runs that have not been checked yet, and frees the memory: the next turn begins
    /// with a new database.
    pub(crate) fn close(&mut self, agenda: &Agenda) -> Result<(), Failure> {
        self.check(agenda)?;
        self.site = None;
        Ok(())
    }

    /// Checks the runs that have not been checked yet.
    fn check(&mut self, agenda: &Agenda) -> Result<(), Failure> {
        let (Some(site), Some(index)) = (&self.site, self.unchecked.take()) else { return Ok(()) };
        let title = format!("checking {} {},", self.workload.name(), self.variant.protocol.name());
        let begun = Instant::now();
        let consistency = progress::with_line(agenda, &title, self.check_took, || site.check())?;
        self.check_took = Some(begun.elapsed());
        self.tallies[index].consistency.merge(consistency);
        Ok(())
    }

    /// Returns the results of each number of threads; `None` if nothing was measured.
    pub(crate) fn into_measurements(
        self,
        rules: &Rules,
    ) -> Result<Vec<Option<Measurement>>, Failure> {
        let Experiment { workload, variant, tallies, .. } = self;
        let measure = |tally: Tally| {
            let Tally { threads, runs, consistency, memory } = tally;
            let Rules { seed, rate, profile, .. } = *rules;
            let setting = Setting { workload, variant: &variant, threads, seed, rate, profile };
            let memory = memory.filter(|_| !runs.is_empty());
            memory.map(|memory| Measurement::new(&setting, &runs, memory, consistency)).transpose()
        };
        tallies.into_iter().map(measure).collect()
    }
}
