//! The shifting workload: a transaction executes one operation on the row of the small table and
//! then reads twenty rows of the large table. The operation is a read in one phase and a
//! read-modify-write in the next. So phases without conflicts and phases with many conflicts
//! alternate.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use candide::report::Stats;
use candide::{Abort, Database, Protocol, Session, Table};
use serde::Serialize;

use super::TwoTables;
use crate::hottest::probe;
use crate::replay::{Replay, Stopped};
use crate::workload::{require, require_range, require_transactions};
use crate::ycsb::{
    Access, Attempt, Joint, Layout, Manner, OPERATIONS_MAX, Operation, UserRow, Writer, YcsbTables,
};
use crate::{
    Consistency, Failure, Loaded, Loading, Probe, Size, Step, Think, Timeline, Worker, Workload,
};

/// The names of the phases, which are also the transaction types.
const PHASES: [&str; 2] = ["read", "read-modify-write"];

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct Shifting {
    /// The number of rows of the large table.
    pub rows: u64,
    /// The number of rows of the large table, all different, that a transaction reads.
    pub reads: usize,
    /// The duration of a phase.
    #[serde(rename = "phase_s", serialize_with = "seconds")]
    pub phase: Duration,
    /// The duration of one slice of a phase. Throughput is reported per slice.
    #[serde(rename = "slice_s", serialize_with = "seconds")]
    pub slice: Duration,
    /// Whether the read of a read-modify-write is a read for update.
    pub for_update: bool,
    /// The work after the operation on the small table's row and after each read.
    #[serde(rename = "think_ns")]
    pub think: Think,
    /// The number of transactions that are generated per thread beforehand and replayed in a cycle.
    pub transactions: usize,
}

fn seconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

impl Shifting {
    /// Returns the published knobs: 20 of a million rows, phases of a tenth of a second, slices of
    /// 10 µs.
    pub fn published() -> Self {
        Shifting {
            rows: 1_000_000,
            reads: 20,
            phase: Duration::from_millis(100),
            slice: Duration::from_micros(10),
            for_update: false,
            think: Think::NONE,
            transactions: 200_000,
        }
    }
}

impl Workload for Shifting {
    type Loaded<P: Protocol> = ShiftingTables<P>;

    const KINDS: &'static [&'static str] = &PHASES;
    const TABLES: &'static [&'static str] = &super::TABLES;

    fn name(&self) -> String {
        "shifting".to_string()
    }

    fn keys(&self) -> u64 {
        self.rows + 1
    }

    fn size(&self) -> Size {
        let size = Size::of(self.rows, "rows", UserRow::<Joint>::BYTES);
        size.with_inputs::<Operation>(self.transactions.saturating_mul(self.reads + 1))
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn differences(&self) -> Vec<&'static str> {
        let phases = "at a switch of phases threads end their transactions, where MOCC abandons those that abort, and no temperature is \
                      reset";
        [phases].into_iter().chain(self.think.difference()).collect()
    }

    fn timeline(&self) -> Option<Timeline> {
        Some(Timeline { phases: &PHASES, phase: self.phase, slice: self.slice })
    }

    fn hottest(&self) -> Option<&'static str> {
        Some("small[0]")
    }

    fn validate(&self) -> Result<(), String> {
        require_range("reads per transaction", 1..=OPERATIONS_MAX, self.reads)?;
        let rows = self.reads as u64..=u64::from(u32::MAX);
        require(rows.contains(&self.rows), || {
            format!(
                "rows must be from {} (the reads differ) to {}, not {}",
                rows.start(),
                rows.end(),
                self.rows
            )
        })?;
        require(!self.slice.is_zero() && self.slice <= self.phase, || {
            format!(
                "a slice must be longer than zero and no longer than the phase of {:?}",
                self.phase
            )
        })?;
        require_transactions(self.transactions)
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<ShiftingTables<P>, Failure> {
        let tables = TwoTables::load(Joint, self.rows, self.reads, self.transactions, db, loading)?;
        let Shifting { for_update, think, .. } = *self;
        let manner = Manner { access: Access::ReadAnother, for_update, think };
        Ok(ShiftingTables { tables, manner, phase: Arc::default() })
    }
}

/// The filled tables, and the current phase of all workers.
pub struct ShiftingTables<P: Protocol> {
    /// The tables.
    pub tables: TwoTables<P, Joint>,
    manner: Manner,
    /// The current phase. A change of phase writes this number, and every transaction reads it at
    /// its beginning.
    phase: Arc<AtomicUsize>,
}

impl<P: Protocol> Loaded<P> for ShiftingTables<P> {
    type Worker = ShiftingWorker<P>;

    fn enter_phase(&self, phase: usize) {
        self.phase.store(phase % PHASES.len(), Ordering::Relaxed);
    }

    fn worker_unless(
        &self,
        session: Session<P>,
        thread: usize,
        stopped: Stopped<'_>,
    ) -> ShiftingWorker<P> {
        let TwoTables { small, large } = &self.tables;
        let phase = Arc::clone(&self.phase);
        let side = |table| Side::new(table, thread, stopped);
        let manner = self.manner;
        ShiftingWorker { session, small: side(small), large: side(large), manner, phase }
    }

    fn absorb(&self, worker: ShiftingWorker<P>) {
        self.tables.small.absorb_writer(worker.small.writer);
        self.tables.large.absorb_writer(worker.large.writer);
    }

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        self.tables.check(&RefCell::new(session))
    }
}

/// A worker's access to one of the tables.
struct Side<P: Protocol> {
    table: Table<UserRow<Joint>, P>,
    operations: Replay<Operation>,
    writer: Writer<<Joint as Layout>::Value>,
}

impl<P: Protocol> Side<P> {
    fn new(loaded: &YcsbTables<P, Joint>, thread: usize, stopped: Stopped<'_>) -> Self {
        let (operations, writer) = loaded.inputs(thread, stopped);
        Side { table: loaded.table.clone(), operations, writer }
    }
}

/// The worker that runs the transactions of one thread.
pub struct ShiftingWorker<P: Protocol> {
    session: Session<P>,
    small: Side<P>,
    large: Side<P>,
    manner: Manner,
    phase: Arc<AtomicUsize>,
}

impl<P: Protocol> Worker for ShiftingWorker<P> {
    fn step(&mut self) -> Result<Step, Abort> {
        let ShiftingWorker { session, small, large, manner, phase } = self;
        let kind = phase.load(Ordering::Relaxed);
        let first = [Operation { write: kind == 1, ..small.operations.next()[0] }];
        let reads = large.operations.next();
        let mut attempts = 0;
        let torn = session.run(|tx| {
            attempts += 1;
            Attempt::new(tx, &small.table, *manner, &small.writer).run(&first)?;
            Attempt::new(tx, &large.table, *manner, &large.writer).run(reads)
        })?;
        small.writer.committed::<Joint>(&first, 0);
        large.writer.committed::<Joint>(reads, torn);
        Ok(Step { kind, committed: true, retries: attempts - 1 })
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }

    fn hottest(&mut self) -> Option<Box<dyn Probe + '_>> {
        probe(&mut self.session, &self.small.table, 0)
    }
}
