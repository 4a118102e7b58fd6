//! Cicada's benchmark of scans. Most transactions scan up to a hundred rows, beginning at one key.
//! The other transactions read and write the row of one key.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use candide::report::Stats;
use candide::{Abort, Database, Protocol, Session, Table};
use fastrand::Rng;
use serde::Serialize;

use crate::hottest::{if_hot, probe};
use crate::replay::{Replay, Stopped, draw_all};
use crate::workload::{
    look_counted, require_range, require_share, require_theta, require_transactions, run_counted,
};
use crate::ycsb::{
    JointInOrder, Layout, Operation, UserRow, Verify, Writer, Writes, Ycsb, YcsbTables, scan_all,
};
use crate::{
    Consistency, Failure, Loaded, Loading, Probe, Size, Step, Worker, Workload, Zipf, rng,
};

/// A thread's ranges are drawn from the random stream of the thread's number with this bit set. The
/// stream with the thread's plain number serves for the columns.
const RANGE_STREAM: u64 = 1 << 40;

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct Ranges {
    /// The number of rows in the table. Their keys start from 0.
    pub rows: u64,
    /// The largest number of rows that a transaction scans; the smallest is one.
    pub scan: u64,
    /// The share of transactions that scan. The other transactions read and write one row.
    pub read_only: f64,
    /// The skew of the keys: 0 is uniform.
    pub theta: f64,
    /// The number of transactions that are generated per thread beforehand and replayed in a cycle.
    pub transactions: usize,
}

impl Ranges {
    /// Returns the published knobs (SIGMOD 2017), with records of 100 bytes.
    pub fn published() -> Self {
        Ranges { rows: 10_000_000, scan: 99, read_only: 0.95, theta: 0.99, transactions: 200_000 }
    }
}

impl Workload for Ranges {
    type Loaded<P: Protocol> = RangesTables<P>;

    const KINDS: &'static [&'static str] = &["scan", "read-modify-write"];
    const TABLES: &'static [&'static str] = &["ranges"];

    fn name(&self) -> String {
        "range-scan".to_string()
    }

    fn keys(&self) -> u64 {
        self.rows
    }

    fn size(&self) -> Size {
        let size = Size::of(self.rows, "rows", UserRow::<JointInOrder>::BYTES);
        size.with_inputs::<Operation>(self.transactions).with_inputs::<Range>(self.transactions)
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn differences(&self) -> Vec<&'static str> {
        vec![
            "scans are of the present and can be aborted, where Cicada's are of a snapshot",
            "hot rows are neighbours, where Cicada scatters them",
        ]
    }

    fn hottest(&self) -> Option<&'static str> {
        if_hot("ranges[0]", self.rows, self.theta)
    }

    fn validate(&self) -> Result<(), String> {
        require_range("rows", 1..=u64::from(u32::MAX), self.rows)?;
        require_range("rows to scan", 1..=self.rows, self.scan)?;
        require_share(self.read_only)?;
        require_theta(self.theta)?;
        require_transactions(self.transactions)
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<RangesTables<P>, Failure> {
        let table = Ycsb {
            rows: self.rows,
            operations: 1,
            writes: Writes::First(1),
            transactions: self.transactions,
            verify: Verify::Increment,
            theta: self.theta,
            ..Ycsb::blind("ranges".to_string(), JointInOrder)
        };
        let rows = table.load_as("ranges", db, loading)?;
        Ok(RangesTables { rows, knobs: self.clone(), seed: loading.seed, wrong: AtomicU64::new(0) })
    }
}

/// The table, and an account of the scans.
pub struct RangesTables<P: Protocol> {
    /// The table, with a counter of committed writes at the head of each column.
    pub rows: YcsbTables<P, JointInOrder>,
    knobs: Ranges,
    seed: u64,
    /// The number of committed scans that did not return each row of their range once, in order.
    wrong: AtomicU64,
}

/// A step of a transaction.
#[derive(Debug, Clone, Copy)]
enum Range {
    /// Scans `length` rows, beginning at the key `start`.
    Scan { start: u32, length: u32 },
    /// Reads and writes a row.
    Modify,
}

impl Range {
    fn draw_all(knobs: &Ranges, rng: &mut Rng, stopped: Stopped<'_>) -> Vec<Range> {
        let zipf = Zipf::new(knobs.rows, knobs.theta);
        let draw = || {
            if rng.f64() >= knobs.read_only {
                return Range::Modify;
            }
            let start = zipf.sample(rng);
            // A range ends at the last row at the latest.
            let length = rng.u64(1..=knobs.scan).min(knobs.rows - start);
            Range::Scan { start: start as u32, length: length as u32 }
        };
        draw_all(knobs.transactions, stopped, draw)
    }
}

impl<P: Protocol> Loaded<P> for RangesTables<P> {
    type Worker = RangesWorker<P>;

    fn worker_unless(
        &self,
        session: Session<P>,
        thread: usize,
        stopped: Stopped<'_>,
    ) -> RangesWorker<P> {
        let (operations, writer) = self.rows.inputs(thread, stopped);
        let ranges = Range::draw_all(
            &self.knobs,
            &mut rng::stream(self.seed, thread as u64 | RANGE_STREAM),
            stopped,
        );
        let (table, ranges) = (self.rows.table.clone(), Replay::new(ranges, 1));
        RangesWorker { session, table, operations, ranges, writer, wrong: 0 }
    }

    fn absorb(&self, worker: RangesWorker<P>) {
        self.rows.absorb_writer(worker.writer);
        self.wrong.fetch_add(worker.wrong, Ordering::Relaxed);
    }

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        let mut consistency = self.rows.audit(&RefCell::new(session))?;
        let wrong = self.wrong.load(Ordering::Relaxed);
        consistency.expect(wrong == 0, || {
            format!("{wrong} scans did not give the rows of their range, each once and in order")
        });
        Ok(consistency)
    }
}

/// The worker that runs the transactions of one thread.
pub struct RangesWorker<P: Protocol> {
    session: Session<P>,
    table: Table<UserRow<JointInOrder>, P>,
    /// The rows to modify.
    operations: Replay<Operation>,
    ranges: Replay<Range>,
    writer: Writer<<JointInOrder as Layout>::Value>,
    wrong: u64,
}

impl<P: Protocol> Worker for RangesWorker<P> {
    fn step(&mut self) -> Result<Step, Abort> {
        let RangesWorker { session, table, operations, ranges, writer, wrong } = self;
        let (kind, retries) = match ranges.next()[0] {
            Range::Scan { start, length } => {
                let range = u64::from(start)..u64::from(start) + u64::from(length);
                let (is_whole, retries) =
                    look_counted(session, |tx| scan_all(table, tx, range.clone()));
                *wrong += u64::from(!is_whole?);
                (0, retries)
            }
            Range::Modify => {
                let operations = operations.next();
                let column = UserRow::<JointInOrder>::HEADS[usize::from(operations[0].column)];
                let key = u64::from(operations[0].key);
                let (end, retries) =
                    run_counted(session, |tx| table.modify(tx, &key, column, |head| *head += 1));
                let () = end?;
                writer.committed::<JointInOrder>(operations, 0);
                (1, retries)
            }
        };
        Ok(Step { kind, committed: true, retries })
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }

    fn hottest(&mut self) -> Option<Box<dyn Probe + '_>> {
        probe(&mut self.session, &self.table, 0)
    }
}
