//! One workload on one database: loaded when it is needed, run with each number of threads,
//! checked; and what that came to.

use std::time::{Duration, Instant};

use candide_workloads::Consistency;

use crate::affinity::Cores;
use crate::driver::{self, Run, Timing};
use crate::failure::Failure;
use crate::measurement::{Measurement, Memory, Profile, Setting};
use crate::progress::{self, Agenda, Clock};
use crate::subject::{self, Filling, Site, Subject, Variant};

/// What all turns of an invocation have in common.
pub struct Rules {
    /// The cores that threads may use.
    pub cores: Cores,
    /// How long a run goes on before it is measured.
    pub warmup: Duration,
    /// How long a run is measured.
    pub duration: Duration,
    /// How many turns each number of threads has.
    pub runs: usize,
    /// The seed of everything random.
    pub seed: u64,
    /// So many transactions per second are begun by all threads together; without it, as many as
    /// they can.
    pub rate: Option<f64>,
    /// The length of the slices of which it is told what they came to.
    pub slice: Option<Duration>,
    /// Whether threads look at the workload's hottest row now and then.
    pub hottest: bool,
    /// Whether workloads are run that take more memory than is free.
    pub force: bool,
    /// What the workloads are like.
    pub profile: Profile,
}

/// A workload, a way to set up its database, and the numbers of threads to run it with.
pub(crate) struct Stand<'a> {
    pub(crate) subject: &'a dyn Subject,
    pub(crate) variant: Variant,
    /// One for each number of threads.
    tallies: Vec<Tally>,
    site: Option<Box<dyn Site>>,
    /// The tally whose runs have not been checked.
    unchecked: Option<usize>,
    /// How long the last check took.
    check_took: Option<Duration>,
}

/// What came of one number of threads.
struct Tally {
    threads: usize,
    runs: Vec<Run>,
    consistency: Consistency,
    memory: Option<Memory>,
}

/// Whether a turn went to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Whole,
    /// Ctrl-C was pressed: if anything was measured by then, it has been entered.
    EndedEarly,
}

impl<'a> Stand<'a> {
    pub(crate) fn new(subject: &'a dyn Subject, variant: Variant, threads: &[usize]) -> Self {
        let tally = |&threads| Tally {
            threads,
            runs: Vec::new(),
            consistency: Consistency::default(),
            memory: None,
        };
        let tallies = threads.iter().map(tally).collect();
        Stand { subject, variant, tallies, site: None, unchecked: None, check_took: None }
    }

    /// How many numbers of threads there are.
    pub(crate) fn len(&self) -> usize {
        self.tallies.len()
    }

    /// The runs so far with number `index` of the numbers of threads.
    pub(crate) fn runs(&self, index: usize) -> (usize, &[Run]) {
        (self.tallies[index].threads, &self.tallies[index].runs)
    }

    /// One more run with number `index` of the numbers of threads; the last one is followed by the
    /// check. A workload that grows begins anew for each run, so that later ones do not work on
    /// larger tables, and is checked after each.
    pub(crate) fn turn(
        &mut self,
        index: usize,
        rules: &Rules,
        agenda: &Agenda,
    ) -> Result<Turn, Failure> {
        let Rules { cores, warmup, duration, seed, rate, slice, hottest, .. } = rules;
        let site = match &self.site {
            Some(site) => site,
            None => {
                let filling = Filling { variant: &self.variant, cores, seed: *seed, agenda };
                match subject::load(self.subject, &filling)? {
                    Some(site) => self.site.insert(site),
                    None => return Ok(Turn::EndedEarly),
                }
            }
        };
        let tally = &mut self.tallies[index];
        let (name, protocol, threads) =
            (self.subject.name(), self.variant.protocol.name(), tally.threads);
        let title = format!("{name} {protocol}, {threads} threads");
        let timeline = self.subject.timeline();
        let (warmup, duration) = (*warmup, *duration);
        let timing =
            Timing { warmup, duration, timeline, rate: *rate, slice: *slice, hottest: *hottest };
        let clock = Clock::new(agenda, &title, warmup + duration);
        let run =
            driver::run(&**site, self.subject.kinds().len(), threads, &timing, cores, &clock)?;
        drop(clock);
        let turn = if run.ended_early { Turn::EndedEarly } else { Turn::Whole };
        self.unchecked = Some(index);
        // What is left of a run that was ended early says less than the whole ones before.
        let is_wanted = !run.elapsed.is_zero() && (!run.ended_early || tally.runs.is_empty());
        if is_wanted {
            tally.runs.push(run);
            tally.memory = Some(Memory::now(site.reserved_bytes()));
        }
        if self.subject.grows() || self.tallies[index].runs.len() == rules.runs {
            self.check(agenda)?;
        }
        if self.subject.grows() {
            self.site = None;
        }
        Ok(turn)
    }

    /// Checks what has not been checked yet, and gives the memory back: the next turn begins with a
    /// new database.
    pub(crate) fn close(&mut self, agenda: &Agenda) -> Result<(), Failure> {
        self.check(agenda)?;
        self.site = None;
        Ok(())
    }

    /// Checks what has been run and not been checked yet.
    fn check(&mut self, agenda: &Agenda) -> Result<(), Failure> {
        let (Some(site), Some(index)) = (&self.site, self.unchecked.take()) else { return Ok(()) };
        let title = format!("checking {} {},", self.subject.name(), self.variant.protocol.name());
        let begun = Instant::now();
        let consistency = progress::with_line(agenda, &title, self.check_took, || site.check())?;
        self.check_took = Some(begun.elapsed());
        self.tallies[index].consistency.merge(consistency);
        Ok(())
    }

    /// What came of each number of threads; `None` if nothing was measured.
    pub(crate) fn into_measurements(
        self,
        rules: &Rules,
    ) -> Result<Vec<Option<Measurement>>, Failure> {
        let Stand { subject, variant, tallies, .. } = self;
        let measure = |tally: Tally| {
            let Tally { threads, runs, consistency, memory } = tally;
            let Rules { seed, rate, profile, .. } = *rules;
            let setting = Setting { subject, variant: &variant, threads, seed, rate, profile };
            let memory = memory.filter(|_| !runs.is_empty());
            memory.map(|memory| Measurement::new(&setting, &runs, memory, consistency)).transpose()
        };
        tallies.into_iter().map(measure).collect()
    }
}
