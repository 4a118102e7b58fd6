//! YCSB on strings of any length: the transactions of [`Ycsb`], on columns of `String` instead of
//! columns of 100 bytes.

use std::cell::RefCell;
use std::hint::black_box;
use std::sync::{Mutex, MutexGuard};

use candide::report::Stats;
use candide::{
    Abort, Column, Database, Protocol, Record, RunOptions, Session, Table, TableOptions, Tx,
};
use serde::Serialize;

use super::audit::settle;
use super::layout::Value;
use super::row::Pool;
use super::writer::{Tally, Writer};
use super::{Operation, POOL_STREAM, Verify, Ycsb};
use crate::hottest::probe;
use crate::read_back::long_rows;
use crate::replay::{Replay, Stopped};
use crate::workload::{require, run_as};
use crate::{Consistency, Failure, Loaded, Loading, Probe, Size, Step, Worker, Workload, rng};

/// YCSB on strings of any length. The operations and the characters are those of [`Ycsb`], whose
/// writes are blind. A read is lent its string, and copies nothing.
#[derive(Debug, Clone, Serialize)]
pub struct YcsbStrings {
    #[serde(flatten)]
    knobs: Ycsb,
    values: &'static str,
}

impl YcsbStrings {
    /// Returns the workload with these knobs.
    pub fn new(knobs: Ycsb) -> Self {
        let name = format!("{}-strings", knobs.name);
        YcsbStrings { knobs: Ycsb { name, ..knobs }, values: "strings of any length" }
    }
}

/// A row: ten strings of 100 bytes, the even ones under one timestamp and the odd ones under
/// another.
#[derive(Debug, Clone, PartialEq, Eq, Record)]
pub struct StringsRow {
    /// The key.
    #[key]
    pub key: u64,
    /// The columns.
    pub c0: String,
    /// As the first.
    pub c2: String,
    /// As the first.
    pub c4: String,
    /// As the first.
    pub c6: String,
    /// As the first.
    pub c8: String,
    /// The columns of the second timestamp.
    #[group(odd)]
    pub c1: String,
    /// As the second.
    #[group(odd)]
    pub c3: String,
    /// As the second.
    #[group(odd)]
    pub c5: String,
    /// As the second.
    #[group(odd)]
    pub c7: String,
    /// As the second.
    #[group(odd)]
    pub c9: String,
}

impl StringsRow {
    const COLUMNS: [Column<StringsRow, String>; 10] = [
        StringsRow::C0,
        StringsRow::C1,
        StringsRow::C2,
        StringsRow::C3,
        StringsRow::C4,
        StringsRow::C5,
        StringsRow::C6,
        StringsRow::C7,
        StringsRow::C8,
        StringsRow::C9,
    ];

    /// The approximate number of bytes of a row: ten words, ten blocks of 128 bytes, and the
    /// engine's own data.
    const BYTES: u64 = 10 * (8 + 128) + 64;

    fn of(key: u64, columns: [String; 10]) -> StringsRow {
        let [c0, c1, c2, c3, c4, c5, c6, c7, c8, c9] = columns;
        StringsRow { key, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 }
    }

    /// Passes the number and the bytes of each column to `each`.
    fn for_each(&self, each: &mut dyn FnMut(usize, &[u8])) {
        let StringsRow { key: _, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 } = self;
        let columns = [c0, c1, c2, c3, c4, c5, c6, c7, c8, c9];
        (0..).zip(columns).for_each(|(column, value)| each(column, value.bytes()));
    }
}

impl Workload for YcsbStrings {
    type Loaded<P: Protocol> = StringsTables<P>;

    const KINDS: &'static [&'static str] = Ycsb::<super::Wide>::KINDS;
    const TABLES: &'static [&'static str] = Ycsb::<super::Wide>::TABLES;

    fn name(&self) -> String {
        self.knobs.name()
    }

    fn keys(&self) -> u64 {
        self.knobs.keys()
    }

    fn size(&self) -> Size {
        let Ycsb { rows, transactions, operations, .. } = self.knobs;
        let size = Size::of(rows, "rows", StringsRow::BYTES);
        size.with_inputs::<Operation>(transactions.saturating_mul(operations))
    }

    fn unchecked(&self) -> Option<&'static str> {
        self.knobs.unchecked()
    }

    fn differences(&self) -> Vec<&'static str> {
        let own = "a value is a string of any length, which a read does not copy";
        self.knobs.differences().into_iter().chain([own]).collect()
    }

    fn hottest(&self) -> Option<&'static str> {
        self.knobs.hottest()
    }

    fn validate(&self) -> Result<(), String> {
        require(self.knobs.verify != Verify::Increment, || {
            "a string has no counter: writes are verified by tag, values or counts".to_string()
        })?;
        self.knobs.validate()
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<StringsTables<P>, Failure> {
        let (knobs, seed) = (self.knobs.clone(), loading.seed);
        let options = TableOptions::default().capacity(knobs.rows as usize);
        let table = db.table_with(Self::TABLES[0], options)?;
        let pool = Pool::new(&mut rng::stream(seed, POOL_STREAM));
        loading.fill(db, knobs.rows, |tx, key| {
            let mut rng = rng::stream(seed, key);
            let value = |_| knobs.verify.initial(pool.get(rng.usize(..)));
            table.insert(tx, StringsRow::of(key, std::array::from_fn(value)))
        })?;
        Ok(StringsTables { table, knobs, seed, tally: Mutex::default() })
    }
}

/// The filled table.
pub struct StringsTables<P: Protocol> {
    /// The only table.
    pub table: Table<StringsRow, P>,
    knobs: Ycsb,
    seed: u64,
    tally: Mutex<Tally>,
}

impl<P: Protocol> StringsTables<P> {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().expect("no thread panics while holding the tally")
    }
}

impl<P: Protocol> Loaded<P> for StringsTables<P> {
    type Worker = StringsWorker<P>;

    fn worker_unless(
        &self,
        session: Session<P>,
        thread: usize,
        stopped: Stopped<'_>,
    ) -> StringsWorker<P> {
        let (knobs, mut rng) = (&self.knobs, rng::stream(self.seed, thread as u64));
        let operations = Operation::draw_all(knobs, &mut rng, stopped);
        let operations = Replay::new(operations, knobs.operations);
        let writer = Writer::new(knobs, thread, &mut rng, &mut self.tally());
        StringsWorker { session, table: self.table.clone(), operations, writer }
    }

    fn absorb(&self, worker: StringsWorker<P>) {
        self.tally().absorb(worker.writer);
    }

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        let session = RefCell::new(session);
        let rows = long_rows(&self.table, &session);
        settle(&*rows, &self.knobs, &self.tally(), StringsRow::for_each)
    }
}

/// The worker that runs the transactions of one thread.
pub struct StringsWorker<P: Protocol> {
    session: Session<P>,
    table: Table<StringsRow, P>,
    operations: Replay<Operation>,
    writer: Writer<String>,
}

impl<P: Protocol> Worker for StringsWorker<P> {
    fn step(&mut self) -> Result<Step, Abort> {
        let StringsWorker { session, table, operations, writer } = self;
        let operations = operations.next();
        let writes = operations.iter().any(|operation| operation.write);
        let options = if writes { RunOptions::new() } else { RunOptions::new().read_only() };
        let (torn, retries) = run_as(session, options, |tx| attempt(tx, table, writer, operations));
        writer.committed::<super::Wide>(operations, torn?);
        Ok(Step { kind: usize::from(writes), committed: true, retries })
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }

    fn hottest(&mut self) -> Option<Box<dyn Probe + '_>> {
        probe(&mut self.session, &self.table, 0)
    }
}

/// Executes the operations in batches, as for columns of 100 bytes. Returns the number of torn
/// reads.
fn attempt<P: Protocol>(
    tx: &Tx<'_, P>,
    table: &Table<StringsRow, P>,
    writer: &Writer<String>,
    operations: &[Operation],
) -> Result<u64, Abort> {
    let (mut rest, mut position, mut torn) = (operations, 0, 0);
    while !rest.is_empty() {
        let (taken, read) = match rest.len() {
            16.. => (16, batch::<16, P>(tx, table, writer, rest, position)?),
            4.. => (4, batch::<4, P>(tx, table, writer, rest, position)?),
            2.. => (2, batch::<2, P>(tx, table, writer, rest, position)?),
            _ => (1, batch::<1, P>(tx, table, writer, rest, position)?),
        };
        (rest, position, torn) = (&rest[taken..], position + taken, torn + read);
    }
    Ok(torn)
}

/// Finds the rows of the first `N` operations and prefetches their words, before it accesses the
/// first one. Returns the number of torn reads.
fn batch<const N: usize, P: Protocol>(
    tx: &Tx<'_, P>,
    table: &Table<StringsRow, P>,
    writer: &Writer<String>,
    operations: &[Operation],
    position: usize,
) -> Result<u64, Abort> {
    let operations = &operations[..N];
    let keys: [u64; N] = std::array::from_fn(|place| operations[place].key.into());
    let rows = table.find_many(tx, &keys)?;
    for (row, operation) in rows.iter().zip(operations) {
        row.prefetch(StringsRow::COLUMNS[usize::from(operation.column)]);
    }
    let mut torn = 0;
    for (place, (row, operation)) in rows.iter().zip(operations).enumerate() {
        let column = StringsRow::COLUMNS[usize::from(operation.column)];
        if operation.write {
            writer.lend(position + place, |value| row.update(column.set(value)))?;
        } else {
            let is_torn = |value: &str| writer.is_torn(black_box(value).as_bytes());
            torn += u64::from(row.read_with(column, is_torn)?);
        }
    }
    Ok(torn)
}
