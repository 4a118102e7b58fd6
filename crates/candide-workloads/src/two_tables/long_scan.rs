//! The long scan: a transaction reads the row of the small table, scans a thousand rows of the
//! large one, and then writes the row that it read first. Other transactions may write that row
//! meanwhile.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use candide::report::Stats;
use candide::{Abort, Database, Protocol, Session, Table, Tx, Whole};
use serde::Serialize;

use super::TwoTables;
use crate::hottest::probe;
use crate::replay::{Replay, Stopped, draw_all};
use crate::workload::{require_range, require_transactions};
use crate::ycsb::{Joint, JointInOrder, Layout, Operation, UserRow, Value, Writer, scan_all};
use crate::{
    Consistency, Failure, Loaded, Loading, Probe, Size, Step, Think, Worker, Workload, rng,
};

/// A thread's scans are drawn from the random stream of the thread's number with this bit set. The
/// stream with the thread's plain number serves for the columns.
const SCAN_STREAM: u64 = 1 << 40;

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct LongScan {
    /// The number of rows of the large table.
    pub rows: u64,
    /// The number of rows that a transaction scans.
    pub scan: u64,
    /// Whether the read of the row that is written later is a read for update.
    pub for_update: bool,
    /// The work after each of the three operations: the read, the scan as a whole, and the write.
    #[serde(rename = "think_ns")]
    pub think: Think,
    /// The number of transactions that are generated per thread beforehand and replayed in a cycle.
    pub transactions: usize,
}

impl LongScan {
    /// Returns the published knobs: scans of a thousand of a million rows.
    pub fn published() -> Self {
        LongScan {
            rows: 1_000_000,
            scan: 1_000,
            for_update: false,
            think: Think::NONE,
            transactions: 200_000,
        }
    }
}

impl Workload for LongScan {
    type Loaded<P: Protocol> = LongScanTables<P>;

    const KINDS: &'static [&'static str] = &["scan"];
    const TABLES: &'static [&'static str] = &super::TABLES;

    fn name(&self) -> String {
        "long-scan".to_string()
    }

    fn keys(&self) -> u64 {
        self.rows + 1
    }

    fn size(&self) -> Size {
        let size = Size::of(self.rows, "rows", UserRow::<JointInOrder>::BYTES);
        size.with_inputs::<Operation>(self.transactions).with_inputs::<u64>(self.transactions)
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn differences(&self) -> Vec<&'static str> {
        let starts =
            "where a scan begins is not published: here, anywhere with the same probability";
        [starts].into_iter().chain(self.think.difference()).collect()
    }

    fn hottest(&self) -> Option<&'static str> {
        Some("small[0]")
    }

    fn validate(&self) -> Result<(), String> {
        require_range("rows", 1..=u64::from(u32::MAX), self.rows)?;
        require_range("rows to scan", 1..=self.rows, self.scan)?;
        require_transactions(self.transactions)
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<LongScanTables<P>, Failure> {
        let tables = TwoTables::load(JointInOrder, self.rows, 1, self.transactions, db, loading)?;
        Ok(LongScanTables {
            tables,
            knobs: self.clone(),
            seed: loading.seed,
            wrong: AtomicU64::new(0),
        })
    }
}

/// The filled tables, and an account of the scans.
pub struct LongScanTables<P: Protocol> {
    /// The tables.
    pub tables: TwoTables<P, JointInOrder>,
    knobs: LongScan,
    seed: u64,
    /// The number of committed scans that did not return each row of their range once, in order.
    wrong: AtomicU64,
}

impl<P: Protocol> Loaded<P> for LongScanTables<P> {
    type Worker = LongScanWorker<P>;

    fn worker_unless(
        &self,
        session: Session<P>,
        thread: usize,
        stopped: Stopped<'_>,
    ) -> LongScanWorker<P> {
        let (operations, writer) = self.tables.small.inputs(thread, stopped);
        let mut rng = rng::stream(self.seed, thread as u64 | SCAN_STREAM);
        let last = self.knobs.rows - self.knobs.scan;
        let starts = draw_all(self.knobs.transactions, stopped, || rng.u64(..=last));
        let tables = Tables {
            small: self.tables.small.table.clone(),
            large: self.tables.large.table.clone(),
        };
        let starts = Replay::new(starts, 1);
        LongScanWorker {
            session,
            tables,
            operations,
            starts,
            scan: self.knobs.scan,
            for_update: self.knobs.for_update,
            think: self.knobs.think,
            writer,
            wrong: 0,
        }
    }

    fn absorb(&self, worker: LongScanWorker<P>) {
        self.tables.small.absorb_writer(worker.writer);
        self.wrong.fetch_add(worker.wrong, Ordering::Relaxed);
    }

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        let mut consistency = self.tables.check(&RefCell::new(session))?;
        let wrong = self.wrong.load(Ordering::Relaxed);
        consistency.expect(wrong == 0, || {
            format!("{wrong} scans did not give {} rows, each once and in order", self.knobs.scan)
        });
        Ok(consistency)
    }
}

/// The worker that runs the transactions of one thread.
pub struct LongScanWorker<P: Protocol> {
    session: Session<P>,
    tables: Tables<P>,
    /// The columns of the small table's row that are read and written.
    operations: Replay<Operation>,
    /// The keys at which scans begin.
    starts: Replay<u64>,
    scan: u64,
    for_update: bool,
    think: Think,
    writer: Writer<<Joint as Layout>::Value>,
    wrong: u64,
}

impl<P: Protocol> Worker for LongScanWorker<P> {
    fn step(&mut self) -> Result<Step, Abort> {
        let LongScanWorker {
            session,
            tables,
            operations,
            starts,
            scan,
            for_update,
            think,
            writer,
            wrong,
        } = self;
        let operations = operations.next();
        let start = starts.next()[0];
        let mut attempts = 0;
        let is_whole = session.run(|tx| {
            attempts += 1;
            tables.transact(tx, &operations[0], start..start + *scan, *for_update, *think)
        })?;
        writer.committed::<Joint>(operations, 0);
        *wrong += u64::from(!is_whole);
        Ok(Step { kind: 0, committed: true, retries: attempts - 1 })
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }

    fn hottest(&mut self) -> Option<Box<dyn Probe + '_>> {
        probe(&mut self.session, &self.tables.small, 0)
    }
}

/// The tables that a worker uses.
struct Tables<P: Protocol> {
    small: Table<UserRow<Joint>, P>,
    large: Table<UserRow<JointInOrder>, P>,
}

impl<P: Protocol> Tables<P> {
    /// Runs the transaction, and works after each operation. Returns whether the scan returned each
    /// row of its range once and in order.
    fn transact(
        &self,
        tx: &Tx<'_, P>,
        operation: &Operation,
        range: Range<u64>,
        for_update: bool,
        think: Think,
    ) -> Result<bool, Abort> {
        let row = self.small.find(tx, 0)?;
        let before = if for_update { row.read_for_update(Whole)? } else { row.read(Whole)? };
        think.work();
        let is_whole = scan_all(&self.large, tx, range)?;
        think.work();
        let column = usize::from(operation.column);
        row.update(UserRow::<Joint>::HEADS[column].set(before.columns[column].head() + 1))?;
        think.work();
        Ok(is_whole)
    }
}
