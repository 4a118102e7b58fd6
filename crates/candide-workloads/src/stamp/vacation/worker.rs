//! The worker that runs the transactions, and the sequential program's time.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use candide::report::Stats;
use candide::{Abort, Protocol, Session};

use super::knobs::Vacation;
use super::program::{Changes, Sequential};
use super::tables::Agency;
use super::task::Tasks;
use crate::replay::Stopped;
use crate::stamp::choices::Form;
use crate::workload::{lock, run_counted};
use crate::{Step, Worker};

/// What committed transactions have done.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) tasks: u64,
    /// The number of tasks that were done eagerly, since rows had to be inserted or removed, or a
    /// reservation was there already.
    pub(super) refused: u64,
    pub(super) changes: Changes,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Tally) {
        self.tasks += other.tasks;
        self.refused += other.refused;
        self.changes.add(&other.changes);
    }
}

/// The worker that runs the transactions of one thread.
pub struct VacationWorker<P: Protocol> {
    session: Session<P>,
    agency: Agency<P>,
    tasks: Tasks,
    form: Form,
    tally: Tally,
}

impl<P: Protocol> VacationWorker<P> {
    pub(super) fn new(session: Session<P>, agency: Agency<P>, tasks: Tasks, form: Form) -> Self {
        VacationWorker { session, agency, tasks, form, tally: Tally::default() }
    }

    pub(super) fn into_tally(self) -> Tally {
        self.tally
    }
}

impl<P: Protocol> Worker for VacationWorker<P> {
    fn step(&mut self) -> Result<Step, Abort> {
        let VacationWorker { session, agency, tasks, form, tally } = self;
        let task = tasks.draw();
        let (mut deferred, mut retries) = (None, 0);
        if *form == Form::Deferred {
            let mut attempts = 0;
            let end = session.run_deferred(|tx| {
                attempts += 1;
                agency.defer(tx, &task)
            });
            retries += attempts - 1;
            deferred = match end {
                Err(Abort::NotFound | Abort::Duplicate | Abort::Guard) => None,
                end => Some(end?),
            };
            tally.refused += u64::from(deferred.is_none());
        }
        let changes = match deferred {
            Some(changes) => changes,
            None => {
                let (end, repeated) = run_counted(session, |tx| agency.run(tx, &task));
                retries += repeated;
                end?
            }
        };
        tally.tasks += 1;
        tally.changes.add(&changes);
        Ok(Step { kind: task.kind(), committed: true, retries })
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }
}

/// The number of tasks between two readings of the clock.
const TASKS_BETWEEN: u64 = 256;

/// The sequential program, which goes on as far as it is asked for.
///
/// The more reservations there are, the longer tasks take. So a run is compared with the same
/// number of tasks, after as many before.
pub struct Measured(Mutex<Progress>);

struct Progress {
    tables: Sequential,
    tasks: Tasks,
    /// The time that the first tasks have taken, after each [`TASKS_BETWEEN`] more.
    took: Vec<Duration>,
}

impl Measured {
    /// Returns the sequential program, which all databases with the same knobs share.
    pub fn kept(knobs: &Vacation, seed: u64) -> Arc<Measured> {
        let Vacation { queries, queried_pct, user_pct, relations, tasks, .. } = *knobs;
        let inputs = (seed, queries, queried_pct, user_pct, relations, tasks);
        let kept = knobs.kept.get_or(&inputs, || Ok::<_, Infallible>(Measured::new(knobs, seed)));
        kept.unwrap_or_else(|never| match never {})
    }

    /// Fills the tables.
    fn new(knobs: &Vacation, seed: u64) -> Measured {
        let tables = Sequential::load(knobs, seed);
        let tasks = Tasks::of_client(knobs, seed, 0, 1);
        Measured(Mutex::new(Progress { tables, tasks, took: vec![Duration::ZERO] }))
    }

    /// Returns how many tasks per second are done of those after the first `before` and up to
    /// number `until`; `None` if there are none, or if `stopped` returns `true`.
    pub fn tps(&self, before: u64, until: u64, stopped: Stopped<'_>) -> Option<f64> {
        let (first, last) = (before / TASKS_BETWEEN, until.div_ceil(TASKS_BETWEEN));
        let mut progress = lock(&self.0);
        progress.reach(last as usize, stopped)?;
        let took = progress.took[last as usize] - progress.took[first as usize];
        let tasks = (last - first) * TASKS_BETWEEN;
        (until > before).then(|| tasks as f64 / took.as_secs_f64().max(1e-9))
    }
}

impl Progress {
    /// Goes on until there are `last` readings of the clock.
    fn reach(&mut self, last: usize, stopped: Stopped<'_>) -> Option<()> {
        let before = *self.took.last().expect("at least one");
        let begun = Instant::now();
        while self.took.len() <= last {
            for _ in 0..TASKS_BETWEEN {
                self.tables.run(&self.tasks.draw());
            }
            self.took.push(before + begun.elapsed());
            if stopped() {
                return None;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::choices::Mode;

    #[test]
    fn the_sequential_program_continues_where_it_stopped() {
        let published = Vacation::published(Mode::LowSim, Form::Eager);
        let measured = Measured::new(&Vacation { relations: 100, ..published }, 5);
        assert!(measured.tps(0, 1_000, &|| false).is_some_and(|tps| tps > 0.0));
        assert_eq!(lock(&measured.0).took.len(), 5);
        assert!(measured.tps(512, 700, &|| true).is_some(), "has been measured");
        assert_eq!(measured.tps(0, 10_000, &|| true), None);
        assert_eq!(lock(&measured.0).took.len(), 6);
        assert_eq!(measured.tps(7, 7, &|| false), None);
        assert!(lock(&measured.0).took.is_sorted());
    }
}
