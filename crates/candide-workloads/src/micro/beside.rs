//! Short writers beside readers of the whole database: some threads read all balances of a table,
//! each time in one transaction, while the others move amounts between two of them.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use candide::report::Stats;
use candide::{Abort, Database, Protocol, Record, Session, Table, TableOptions};
use fastrand::Rng;
use serde::Serialize;

use crate::read_back::rows;
use crate::replay::Stopped;
use crate::workload::{look_counted, require_range, run_counted};
use crate::{Consistency, Failure, Loaded, Loading, Size, Step, Worker, Workload, rng};

/// The bytes of a row.
const HOLDING_BYTES: u64 = 90;
/// The balance with which each row begins.
const OPENING: i64 = 1_000;

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(ordered)]
pub struct Holding {
    /// The number of the row.
    #[key]
    pub id: u64,
    /// The balance.
    pub balance: i64,
}

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct Beside {
    /// The number of rows.
    pub rows: u64,
    /// The number of threads that read all rows: the first ones. The last thread always writes.
    pub readers: usize,
}

impl Beside {
    /// Returns the usual knobs.
    pub fn usual() -> Self {
        Beside { rows: 10_000, readers: 1 }
    }
}

impl Workload for Beside {
    type Loaded<P: Protocol> = BesideTable<P>;

    const KINDS: &'static [&'static str] = &["write", "read all"];
    const TABLES: &'static [&'static str] = &["holdings"];

    fn name(&self) -> String {
        "beside".to_string()
    }

    fn keys(&self) -> u64 {
        self.rows
    }

    fn size(&self) -> Size {
        Size::of(self.rows, "rows", HOLDING_BYTES)
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn validate(&self) -> Result<(), String> {
        require_range("rows", 2..=u64::from(u32::MAX), self.rows)?;
        require_range("readers", 0..=1_000, self.readers)
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<BesideTable<P>, Failure> {
        let options = TableOptions::default().capacity(self.rows as usize);
        let table = db.table_with("holdings", options)?;
        loading.fill(db, self.rows, |tx, id| table.insert(tx, Holding { id, balance: OPENING }))?;
        Ok(BesideTable {
            table,
            knobs: self.clone(),
            seed: loading.seed,
            threads: AtomicUsize::new(1),
            wrong: AtomicU64::new(0),
        })
    }
}

/// The filled table.
pub struct BesideTable<P: Protocol> {
    /// The only table.
    pub table: Table<Holding, P>,
    knobs: Beside,
    seed: u64,
    /// The number of threads in this round.
    threads: AtomicUsize,
    /// The number of committed reads that did not see each row once, or another sum.
    wrong: AtomicU64,
}

impl<P: Protocol> BesideTable<P> {
    /// Returns the number of rows and their sum at each moment between two transactions.
    fn due(&self) -> (u64, i64) {
        (self.knobs.rows, self.knobs.rows as i64 * OPENING)
    }
}

impl<P: Protocol> Loaded<P> for BesideTable<P> {
    type Worker = BesideWorker<P>;

    fn expect_workers(&self, workers: usize) {
        self.threads.store(workers, Ordering::Relaxed);
    }

    fn worker_unless(&self, session: Session<P>, thread: usize, _: Stopped<'_>) -> BesideWorker<P> {
        let threads = self.threads.load(Ordering::Relaxed).max(thread + 1);
        BesideWorker {
            session,
            table: self.table.clone(),
            rng: rng::stream(self.seed, thread as u64),
            due: self.due(),
            reads: thread < self.knobs.readers && thread + 1 < threads,
            wrong: 0,
        }
    }

    fn absorb(&self, worker: BesideWorker<P>) {
        self.wrong.fetch_add(worker.wrong, Ordering::Relaxed);
    }

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        let session = RefCell::new(session);
        let table = rows(&self.table, &session);
        let [mut looked_up, mut iterated] = [(0, 0); 2];
        let count = |(rows, sum): &mut (u64, i64), row: &Holding| {
            *rows += 1;
            *sum += row.balance;
        };
        table.by_keys(&mut (0..self.knobs.rows), &mut |row| count(&mut looked_up, row))?;
        table.by_iteration(&mut |row| count(&mut iterated, row))?;
        let (due, wrong) = (self.due(), self.wrong.load(Ordering::Relaxed));
        let mut consistency = Consistency::default();
        for (way, found) in [("transactions", looked_up), ("raw iteration", iterated)] {
            consistency.expect(found == due, || {
                let (rows, sum) = found;
                format!(
                    "read by {way}: {rows} balances add up to {sum}, and {} to {}",
                    due.0, due.1
                )
            });
        }
        consistency.expect(wrong == 0, || {
            format!("{wrong} reads of all rows did not give {} that add up to {}", due.0, due.1)
        });
        Ok(consistency)
    }
}

/// The worker that runs the transactions of one thread.
pub struct BesideWorker<P: Protocol> {
    session: Session<P>,
    table: Table<Holding, P>,
    rng: Rng,
    /// The number of rows and their sum.
    due: (u64, i64),
    /// Whether the thread reads all rows, and writes none.
    reads: bool,
    wrong: u64,
}

impl<P: Protocol> Worker for BesideWorker<P> {
    fn step(&mut self) -> Result<Step, Abort> {
        let BesideWorker { session, table, rng, due, reads, wrong } = self;
        if *reads {
            let (seen, retries) = look_counted(session, |tx| {
                let (mut rows, mut sum) = (0, 0);
                for row in table.scan(tx, .., Holding::BALANCE) {
                    rows += 1;
                    sum += row?.1;
                }
                Ok::<_, Abort>((rows, sum))
            });
            *wrong += u64::from(seen? != *due);
            return Ok(Step { kind: 1, committed: true, retries });
        }
        let (from, amount) = (rng.u64(..due.0), rng.i64(1..10));
        let to = (from + rng.u64(1..due.0)) % due.0;
        let (moved, retries) = run_counted(session, |tx| {
            table.modify(tx, from, Holding::BALANCE, |balance| *balance -= amount)?;
            table.modify(tx, to, Holding::BALANCE, |balance| *balance += amount)
        });
        moved.map(|()| Step { kind: 0, committed: true, retries })
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }
}
