//! YCSB A, B and C as STOv2 (VLDB 2020) defines them: point reads and writes of single 100-byte columns, several to a
//! transaction, with keys drawn from a Zipf distribution.

mod census;
mod operation;
mod row;
mod transaction;
mod writer;

use std::str::FromStr;
use std::sync::{Mutex, MutexGuard};

use candide::{Database, Protocol, Session, Table, TableOptions};
use serde::Serialize;

use crate::replay::Replay;
use crate::workload::{require, require_theta, require_transactions};
use crate::{Consistency, Failure, Loaded, Loading, Workload, rng};
use operation::Operation;
use row::Pool;
pub use row::{COLUMN_BYTES, COLUMNS, UserRow};
pub use transaction::YcsbWorker;
use writer::{Tally, Writer};

/// The most operations a transaction may have.
pub const OPERATIONS_MAX: usize = 64;

/// The random stream of the loader's values; the small ones belong to the keys and the threads.
const POOL_STREAM: u64 = u64::MAX - 1;

/// The three mixes of STOv2. The paper leaves two of the numbers out; they are those of its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// High contention: 16 operations, half of them writes, theta 0.99.
    A,
    /// Medium contention: 16 operations, one in twenty a write, theta 0.8.
    B,
    /// No contention: 2 uniform reads.
    C,
}

impl FromStr for Mode {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "a" => Ok(Mode::A),
            "b" => Ok(Mode::B),
            "c" => Ok(Mode::C),
            _ => Err("expected a, b or c"),
        }
    }
}

/// What the writes write, and with it what can be checked afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    /// A fresh random value for the column. Only the rows are counted afterwards.
    Counts,
    /// A fresh random value for the column. Every column must be alphanumeric afterwards.
    Values,
    /// One more in a counter at the head of the column. The counters must add up to the committed writes: no update was
    /// lost, none was made twice.
    Increment,
    /// A column filled with a tag that names the writer and the write. What survives must be its writer's last committed
    /// write to that column, whole.
    Tag,
}

impl FromStr for Verify {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "counts" => Ok(Verify::Counts),
            "values" => Ok(Verify::Values),
            "increment" => Ok(Verify::Increment),
            "tag" => Ok(Verify::Tag),
            _ => Err("expected counts, values, increment or tag"),
        }
    }
}

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct Ycsb {
    /// The mix that the other knobs started from; it names the workload.
    #[serde(skip)]
    pub mode: Mode,
    /// Rows in the table, with keys from 0.
    pub rows: u64,
    /// Operations per transaction.
    pub operations: usize,
    /// The probability that an operation writes.
    pub write_probability: f64,
    /// The skew of the keys: 0 is uniform, and the smaller the key the more often it is drawn.
    pub theta: f64,
    /// Whether a transaction goes through its keys in ascending order, or as they were drawn.
    pub sorted: bool,
    /// Whether the keys of a transaction are redrawn until they differ.
    pub distinct: bool,
    /// Transactions generated per thread beforehand and replayed over and over.
    pub transactions: usize,
    /// What is written, and what is checked.
    pub verify: Verify,
}

impl Ycsb {
    /// `mode` as it was published, over ten million rows and without verification.
    pub fn published(mode: Mode) -> Self {
        let (operations, write_probability, theta) = match mode {
            Mode::A => (16, 0.5, 0.99),
            Mode::B => (16, 0.05, 0.8),
            Mode::C => (2, 0.0, 0.0),
        };
        Ycsb {
            mode,
            rows: 10_000_000,
            operations,
            write_probability,
            theta,
            sorted: true,
            distinct: true,
            transactions: 200_000,
            verify: Verify::Counts,
        }
    }
}

impl Workload for Ycsb {
    type Loaded<P: Protocol> = YcsbTables<P>;

    const KINDS: &'static [&'static str] = &["read-only", "read-write"];

    fn name(&self) -> String {
        format!("ycsb-{:?}", self.mode).to_lowercase()
    }

    fn keys(&self) -> u64 {
        self.rows
    }

    fn unchecked(&self) -> Option<&'static str> {
        match self.verify {
            Verify::Counts => Some("only the number of rows is checked: a lost update would go unnoticed"),
            Verify::Values => Some("values are checked for their form only: a lost update would go unnoticed"),
            Verify::Increment | Verify::Tag => None,
        }
    }

    fn validate(&self) -> Result<(), String> {
        let rows_min = if self.distinct { self.operations as u64 } else { 1 };
        let rows_max = u64::from(u32::MAX);
        require((1..=OPERATIONS_MAX).contains(&self.operations), || {
            format!("operations per transaction must be from 1 to {OPERATIONS_MAX}, not {}", self.operations)
        })?;
        require((rows_min..=rows_max).contains(&self.rows), || {
            let least = format!("{rows_min} (a transaction's keys have to fit)");
            format!("rows must be from {least} to {rows_max}, not {}", self.rows)
        })?;
        require((0.0..=1.0).contains(&self.write_probability), || {
            format!("the write probability must be from 0 to 1, not {}", self.write_probability)
        })?;
        require_theta(self.theta)?;
        require_transactions(self.transactions)
    }

    fn load<P: Protocol>(&self, db: &Database<P>, loading: &Loading<'_>) -> Result<YcsbTables<P>, Failure> {
        let table = db.table_with("usertable", TableOptions::default().capacity(self.rows as usize))?;
        let seed = loading.seed;
        let pool = Pool::new(&mut rng::stream(seed, POOL_STREAM));
        loading.fill(db, self.rows, |tx, key| {
            let mut rng = rng::stream(seed, key);
            let columns = std::array::from_fn(|_| self.verify.initial(pool.get(rng.usize(..))));
            table.insert(tx, UserRow { key, columns })
        })?;
        Ok(YcsbTables { table, knobs: self.clone(), seed, tally: Mutex::default() })
    }
}

/// The table, filled.
pub struct YcsbTables<P: Protocol> {
    /// The only table.
    pub table: Table<UserRow, P>,
    knobs: Ycsb,
    seed: u64,
    tally: Mutex<Tally>,
}

impl<P: Protocol> YcsbTables<P> {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().expect("nobody panics while holding the tally")
    }
}

impl<P: Protocol> Loaded<P> for YcsbTables<P> {
    type Worker = YcsbWorker<P>;

    fn worker(&self, session: Session<P>, thread: usize) -> YcsbWorker<P> {
        let mut rng = rng::stream(self.seed, thread as u64);
        let operations = Operation::draw_all(&self.knobs, &mut rng);
        let writer = Writer::new(&self.knobs, thread, &mut rng, &mut self.tally());
        YcsbWorker::new(session, self.table.clone(), Replay::new(operations, self.knobs.operations), writer)
    }

    fn absorb(&self, worker: YcsbWorker<P>) {
        self.tally().absorb(worker.into_writer());
    }

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        census::check(&self.table, session, &self.knobs, &self.tally())
    }
}
