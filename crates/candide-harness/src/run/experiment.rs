//! One workload on one database, and the results. The database is loaded when it is needed, the
//! workload runs with each number of threads, and the tables are checked.

use std::time::{Duration, Instant};

use candide::experiments::free_memory;
use candide_workloads::Consistency;

use super::admission;
use super::driver;
use super::setting::Setting;
use super::signals::Timing;
use crate::any_workload::{self, AnyWorkload, LoadContext, LoadedDatabase, Variant};
use crate::failure::Failure;
use crate::files::Files;
use crate::progress::{self, Agenda, Clock};
use crate::results::{Measurement, Memory, Run};
use crate::rules::Rules;

/// A workload, the setting of its database, and the numbers of threads with which the workload is
/// run.
pub(crate) struct Experiment<'a> {
    pub(crate) workload: &'a dyn AnyWorkload,
    pub(crate) variant: Variant,
    /// The tallies, one for each number of threads.
    tallies: Vec<Tally>,
    site: Option<Box<dyn LoadedDatabase>>,
    /// The index of the tally whose runs have not been checked; `None` if all runs have been
    /// checked.
    unchecked: Option<usize>,
    /// The time that the last check took; `None` before the first check.
    check_took: Option<Duration>,
}

/// The results with one number of threads.
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
    /// Ctrl-C ended the turn. A measurement that had begun by then was added if it is the first
    /// with its number of threads.
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

    /// Returns how many different numbers of threads the workload is run with.
    pub(crate) fn len(&self) -> usize {
        self.tallies.len()
    }

    /// Returns the number of threads at place `index`, and the runs so far with this number of
    /// threads.
    pub(crate) fn runs(&self, index: usize) -> (usize, &[Run]) {
        (self.tallies[index].threads, &self.tallies[index].runs)
    }

    /// Returns the bytes that tables and indexes took after the last run with the number of threads
    /// at place `index`; `None` if there was no run.
    pub(crate) fn table_bytes(&self, index: usize) -> Option<u64> {
        self.tallies[index].memory.as_ref().map(|memory| memory.footprint.memory_bytes)
    }

    /// Makes one more run with the number of threads at place `index`. The check follows the last
    /// run. A workload that grows gets a new database for each run, so that later runs do not work
    /// on larger tables, and is checked after each run.
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
                let reserve_bytes = if rules.reserve { self.reserve_bytes(rules) } else { 0 };
                let variant = &self.variant;
                let files = rules.files.as_ref();
                let seed = *seed;
                let context = LoadContext { variant, cores, seed, agenda, reserve_bytes, files };
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
        let has_failed = || site.log_failure().is_some();
        let mut clock = Clock::new(agenda, &title, warmup + duration);
        if site.durability().is_some() {
            clock = clock.watching(&has_failed);
        }
        let run =
            driver::run(&**site, self.workload.kinds().len(), threads, &timing, cores, &clock);
        drop(clock);
        if let Some(reason) = site.log_failure() {
            return Err(Failure::Run(format!("{title}: the log has failed: {reason}").into()));
        }
        let mut run = run?;
        let turn = if run.ended_early { Turn::EndedEarly } else { Turn::Whole };
        self.unchecked = Some(index);
        // A run that was ended early is shorter than whole runs, so it is kept only if there is no
        // other run.
        let is_wanted = !run.elapsed.is_zero() && (!run.ended_early || tally.runs.is_empty());
        if is_wanted {
            let title = format!("{name} without transactions,");
            let measure = || site.sequential_tps(run.committed());
            run.sequential_tps = progress::with_line(agenda, &title, None, measure);
            tally.runs.push(run);
            tally.memory = Some(Memory::now(site.memory().reserved_bytes));
        }
        if self.workload.grows() || self.tallies[index].runs.len() == rules.runs {
            self.check(agenda)?;
        }
        if self.workload.grows() {
            self.site = None;
        }
        Ok(turn)
    }

    /// Checks the runs that have not been checked yet, and frees the database. The next turn loads
    /// a new one.
    pub(crate) fn close(&mut self, agenda: &Agenda) -> Result<(), Failure> {
        self.check(agenda)?;
        self.site = None;
        Ok(())
    }

    /// Returns the number of bytes to reserve for the next database: for one run if the workload
    /// grows, and otherwise for all runs. Zero if the free memory is not known.
    fn reserve_bytes(&self, rules: &Rules) -> usize {
        let threads = self.tallies.iter().map(|tally| tally.threads).max().unwrap_or(1);
        let keeps_versions = self.variant.protocol.properties().keeps_versions();
        let duration = rules.warmup + rules.duration;
        let size = self.workload.size();
        let free = free_memory().unwrap_or(0);
        let bytes = admission::reserve(size, keeps_versions, threads, duration, free);
        usize::try_from(bytes).unwrap_or(0)
    }

    /// Checks the runs that have not been checked yet.
    fn check(&mut self, agenda: &Agenda) -> Result<(), Failure> {
        let (Some(site), Some(index)) = (&self.site, self.unchecked.take()) else { return Ok(()) };
        let title = format!("checking {} {},", self.workload.name(), self.variant.protocol.name());
        let begun = Instant::now();
        let mut consistency =
            progress::with_line(agenda, &title, self.check_took, || site.check())?;
        let files = site.durability();
        if let Some(problem) = files.and_then(|files| files.checkpoint_failure) {
            consistency.notes.push(format!("a checkpoint has failed: {problem}"));
        }
        self.check_took = Some(begun.elapsed());
        self.tallies[index].consistency.merge(consistency);
        Ok(())
    }

    /// Returns the results with each number of threads; `None` where nothing was measured.
    pub(crate) fn into_measurements(
        self,
        rules: &Rules,
    ) -> Result<Vec<Option<Measurement>>, Failure> {
        let Experiment { workload, variant, tallies, .. } = self;
        let measure = |tally: Tally| {
            let Tally { threads, runs, consistency, memory } = tally;
            let Rules { seed, rate, profile, ref files, .. } = *rules;
            let level = files.as_ref().map(Files::level);
            let variant = &variant;
            let setting = Setting { workload, variant, threads, seed, rate, profile, level };
            let memory = memory.filter(|_| !runs.is_empty());
            memory.map(|memory| setting.measurement(&runs, memory, consistency)).transpose()
        };
        tallies.into_iter().map(measure).collect()
    }
}
