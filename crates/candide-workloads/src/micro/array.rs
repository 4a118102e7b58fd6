//! The micro-benchmark of deferred runtime pipelining (MU19 in `docs/references.md`, section 7.1):
//! transactions increment numbers in an array, of which each thread has a shard of its own.

use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use candide::report::Stats;
use candide::{Abort, Database, Protocol, Record, Session, Table, TableOptions};
use fastrand::Rng;
use serde::Serialize;

use crate::read_back::rows;
use crate::replay::Stopped;
use crate::stamp::Form;
use crate::workload::{lock, require_range, run_counted};
use crate::{Consistency, Failure, Loaded, Loading, Size, Step, Worker, Workload, rng};

/// The bytes of an element.
const NUMBER_BYTES: u64 = 70;
/// The largest number of increments of a transaction.
const INCREMENTS_MAX: usize = 1_000;
/// The sequential program runs this many transactions between two looks at the clock.
const SEQUENTIAL: u32 = 20_000;

/// An element of the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
pub struct Number {
    /// The index.
    #[key]
    pub index: u64,
    /// The number.
    pub value: i64,
}

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct Array {
    /// The number of elements.
    pub elements: u64,
    /// The number of elements that a transaction increments. It may draw one repeatedly.
    pub increments: usize,
    /// Whether transactions read the numbers that they increment.
    pub form: Form,
}

impl Array {
    /// Returns the published knobs.
    pub fn published(form: Form) -> Self {
        Array { elements: 1_000_000, increments: 50, form }
    }
}

impl Workload for Array {
    type Loaded<P: Protocol> = ArrayTable<P>;

    const KINDS: &'static [&'static str] = &["increment"];
    const TABLES: &'static [&'static str] = &["array"];

    fn name(&self) -> String {
        "array".to_string()
    }

    fn keys(&self) -> u64 {
        self.elements
    }

    fn size(&self) -> Size {
        Size::of(self.elements, "elements", NUMBER_BYTES)
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn differences(&self) -> Vec<&'static str> {
        vec!["the array is a hashed table, whose keys are the indexes"]
    }

    fn validate(&self) -> Result<(), String> {
        require_range("elements", 1_024..=u64::from(u32::MAX), self.elements)?;
        require_range("increments", 1..=INCREMENTS_MAX, self.increments)
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<ArrayTable<P>, Failure> {
        let options = TableOptions::default().capacity(self.elements as usize);
        let table = db.table_with("array", options)?;
        loading
            .fill(db, self.elements, |tx, index| table.insert(tx, Number { index, value: 0 }))?;
        let (due, threads) = (Mutex::new(0), AtomicUsize::new(1));
        Ok(ArrayTable { table, knobs: self.clone(), seed: loading.seed, due, threads })
    }
}

/// The array.
pub struct ArrayTable<P: Protocol> {
    /// The only table.
    pub table: Table<Number, P>,
    knobs: Array,
    seed: u64,
    /// The sum of all numbers, by the committed transactions.
    due: Mutex<i128>,
    /// The number of threads in this round.
    threads: AtomicUsize,
}

/// The indexes of one transaction after the other, of a part of the array.
struct Indexes {
    rng: Rng,
    first: u64,
    end: u64,
    drawn: Vec<u64>,
}

impl Indexes {
    fn draw(&mut self) -> &[u64] {
        let Indexes { rng, first, end, drawn } = self;
        drawn.iter_mut().for_each(|index| *index = rng.u64(*first..*end));
        drawn
    }
}

impl<P: Protocol> ArrayTable<P> {
    /// Returns the indexes of thread number `thread` of `threads`.
    fn indexes(&self, thread: usize, threads: usize) -> Indexes {
        let elements = u128::from(self.knobs.elements);
        let bound = |thread: usize| (elements * thread as u128 / threads as u128) as u64;
        Indexes {
            rng: rng::stream(self.seed, thread as u64),
            first: bound(thread),
            end: bound(thread + 1),
            drawn: vec![0; self.knobs.increments],
        }
    }
}

impl<P: Protocol> Loaded<P> for ArrayTable<P> {
    type Worker = ArrayWorker<P>;

    fn expect_workers(&self, workers: usize) {
        self.threads.store(workers, Ordering::Relaxed);
    }

    fn worker_unless(&self, session: Session<P>, thread: usize, _: Stopped<'_>) -> ArrayWorker<P> {
        let threads = self.threads.load(Ordering::Relaxed).max(thread + 1);
        let (indexes, form) = (self.indexes(thread, threads), self.knobs.form);
        ArrayWorker { session, table: self.table.clone(), indexes, form, brought: 0 }
    }

    fn absorb(&self, worker: ArrayWorker<P>) {
        *lock(&self.due) += worker.brought;
    }

    fn sequential_tps(&self, _: u64, _: Stopped<'_>) -> Option<f64> {
        let mut array = vec![0_i64; self.knobs.elements as usize];
        let mut indexes = self.indexes(0, 1);
        let begun = Instant::now();
        for _ in 0..SEQUENTIAL {
            for &index in indexes.draw() {
                array[index as usize] = array[index as usize].wrapping_add(1);
            }
        }
        std::hint::black_box(&array);
        Some(f64::from(SEQUENTIAL) / begun.elapsed().as_secs_f64().max(1e-9))
    }

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        let (elements, due) = (self.knobs.elements, *lock(&self.due));
        let session = RefCell::new(session);
        let table = rows(&self.table, &session);
        let [mut looked_up, mut iterated] = [(0, 0); 2];
        let count = |(rows, sum): &mut (u64, i128), row: &Number| {
            *rows += 1;
            *sum += i128::from(row.value);
        };
        table.by_keys(&mut (0..elements), &mut |row| count(&mut looked_up, row))?;
        table.by_iteration(&mut |row| count(&mut iterated, row))?;
        let mut consistency = Consistency::default();
        for (way, (rows, sum)) in [("transactions", looked_up), ("raw iteration", iterated)] {
            consistency.expect((rows, sum) == (elements, due), || {
                format!(
                    "read by {way}: {rows} numbers add up to {sum}, where there were {elements}, and by the committed transactions they add up to {due}"
                )
            });
        }
        Ok(consistency)
    }
}

/// The worker that runs the transactions of one thread.
pub struct ArrayWorker<P: Protocol> {
    session: Session<P>,
    table: Table<Number, P>,
    indexes: Indexes,
    form: Form,
    /// The sum that committed transactions have added.
    brought: i128,
}

impl<P: Protocol> Worker for ArrayWorker<P> {
    fn step(&mut self) -> Result<Step, Abort> {
        let ArrayWorker { session, table, indexes, form, brought } = self;
        let drawn = indexes.draw();
        let (end, retries) = run_counted(session, |tx| {
            drawn.iter().try_for_each(|index| match form {
                Form::Eager => table.modify(tx, index, Number::VALUE, |value| *value += 1),
                Form::Deferred => table.update(tx, index, Number::VALUE.wrapping_add(1)),
            })
        });
        let () = end?;
        *brought += drawn.len() as i128;
        Ok(Step { kind: 0, committed: true, retries })
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }
}
