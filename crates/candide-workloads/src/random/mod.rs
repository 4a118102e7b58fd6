//! Transactions drawn at random from all operations of the engine, on few keys. The workload is for
//! checking, not for measuring.
//!
//! The checker judges recorded histories of this workload. Rows are inserted, deleted and inserted
//! again, and every kind of operation conflicts with every other. Some transactions fail, and some
//! panic. Even without a recorded history, the tables must agree with their own indexes at the end.

mod action;
mod audit;
mod knobs;
mod tables;

use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};

use candide::report::Stats;
use candide::{Abort, Database, Protocol, Session};
use fastrand::Rng;

use crate::replay::Stopped;
use crate::workload::require_range;
use crate::{Consistency, Failure, Loaded, Loading, Size, Step, Worker, Workload, rng};
use action::{Script, Turn};
pub use knobs::Random;
pub use tables::{Item, Piece, Tables};

/// The bytes of a key in all tables when they are filled.
const ROW_BYTES: u64 = 150;

impl Workload for Random {
    type Loaded<P: Protocol> = RandomTables<P>;

    const KINDS: &'static [&'static str] = &["mixed"];
    const TABLES: &'static [&'static str] = &["items", "pieces"];

    fn name(&self) -> String {
        "random".to_string()
    }

    fn keys(&self) -> u64 {
        u64::from(self.keys)
    }

    fn size(&self) -> Size {
        Size::of(self.keys(), "keys", ROW_BYTES)
    }

    fn unchecked(&self) -> Option<&'static str> {
        Some("only the agreement of rows and indexes is checked; the history is checked by `check`")
    }

    fn validate(&self) -> Result<(), String> {
        require_range("keys", 1..=1 << 20, self.keys)?;
        require_range("operations", 1..=1000, self.operations)
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<RandomTables<P>, Failure> {
        let tables = Tables::create(db)?;
        loading.fill(db, self.keys(), |tx, key| tables.load(tx, key as u32))?;
        Ok(RandomTables { tables, knobs: self.clone(), seed: loading.seed })
    }
}

/// The tables, with their loaded rows.
pub struct RandomTables<P: Protocol> {
    /// The tables.
    pub tables: Tables<P>,
    knobs: Random,
    seed: u64,
}

impl<P: Protocol> Loaded<P> for RandomTables<P> {
    type Worker = RandomWorker<P>;

    fn worker_unless(
        &self,
        session: Session<P>,
        thread: usize,
        _stopped: Stopped<'_>,
    ) -> RandomWorker<P> {
        let rng = rng::stream(self.seed, thread as u64);
        RandomWorker { session, tables: self.tables.clone(), knobs: self.knobs.clone(), rng }
    }

    fn absorb(&self, _worker: RandomWorker<P>) {}

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        audit::check(&self.tables, session)
    }
}

/// The worker that draws and runs the transactions of one thread.
pub struct RandomWorker<P: Protocol> {
    session: Session<P>,
    tables: Tables<P>,
    knobs: Random,
    rng: Rng,
}

/// The payload of a planned panic.
struct Drawn;

impl<P: Protocol> Worker for RandomWorker<P> {
    fn step(&mut self) -> Result<Step, Abort> {
        let RandomWorker { session, tables, knobs, rng } = self;
        let script = Script::draw(knobs, rng);
        let mut attempts = 0;
        let run = || {
            session.run(|tx| {
                attempts += 1;
                script
                    .actions
                    .iter()
                    .try_for_each(|action| tables.carry_out(tx, action, script.stops))?;
                match script.turn {
                    Turn::Commit => Ok(()),
                    Turn::Fail => Err(Abort::NotFound),
                    // The panic hook has nothing to print here.
                    Turn::Panic => resume_unwind(Box::new(Drawn)),
                }
            })
        };
        let end = catch_unwind(AssertUnwindSafe(run));
        let committed = match end {
            Ok(Ok(())) => true,
            Ok(Err(
                Abort::NotFound
                | Abort::Duplicate
                | Abort::NotUnique
                | Abort::Guard
                | Abort::Overflow
                | Abort::NotYet,
            )) => false,
            Ok(Err(abort)) => return Err(abort),
            Err(panic) if panic.is::<Drawn>() => false,
            Err(panic) => panic::resume_unwind(panic),
        };
        Ok(Step { kind: 0, committed, retries: attempts - 1 })
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }
}
