//! Measures single operations of an ordered table on one thread: lookups, inserts, short scans.
//!
//! ```text
//! cargo run --release -p candide-measure --bin ordered -- \
//!     [--rows 1000000,5000000] [--words 1,3] [--rounds 5]
//! ```
//!
//! A line gives nanoseconds per operation: the minimum and the median of the rounds. Time in which
//! the thread does not run is not counted. Ten lookups or inserts make a transaction, and so does
//! one scan. A lookup is `find` and a read of one column. The processor may overlap lookups. Each
//! of two kinds of inserts adds one percent of rows in a round. "Insert at random" takes keys from
//! anywhere. "Insert at ends" takes keys that ascend under random prefixes or random present words.
//!
//! `ordered_peers` in `candide-peers` includes this file and measures other maps too.

use candide::{Abort, Column, Database, Ordered, Record, Session, Table};
use std::{error::Error, hint::black_box, time::Duration};

/// The number of lookups or inserts in a transaction.
pub(crate) const BATCH: usize = 10;
/// The numbers of operations in a round.
const LOOKUPS: usize = 500_000;
const SCANS: [(usize, usize); 2] = [(10, 50_000), (100, 10_000)];
/// The distance of the numbers that ascend under a prefix. Keys inserted at random lie between.
const SPACING: u64 = 1 << 20;

pub(crate) type Wide = (u64, u64, u64);

#[derive(Record, Clone, Copy)]
#[record(ordered)]
pub(crate) struct NarrowRow {
    #[key]
    key: u64,
    value: u64,
}

#[derive(Record, Clone, Copy)]
#[record(ordered)]
pub(crate) struct WideRow {
    #[key]
    group: u64,
    #[key]
    sub: u64,
    #[key]
    sequence: u64,
    value: u64,
}

/// A key that is measured.
pub(crate) trait Key: candide::Key + Ord {
    type Row: Record<Key = Self, Index = Ordered>;
    const VALUE: Column<Self::Row, u64>;

    /// Returns the row of the key.
    fn row(self) -> Self::Row;
}

impl Key for u64 {
    type Row = NarrowRow;
    const VALUE: Column<NarrowRow, u64> = NarrowRow::VALUE;

    fn row(self) -> NarrowRow {
        NarrowRow { key: self, value: 1 }
    }
}

impl Key for Wide {
    type Row = WideRow;
    const VALUE: Column<WideRow, u64> = WideRow::VALUE;

    fn row(self) -> WideRow {
        WideRow { group: self.0, sub: self.1, sequence: self.2, value: 1 }
    }
}

/// A map under measurement. Each key maps to 1.
pub(crate) trait Map<K: Key> {
    const NAME: &'static str;

    /// Creates an empty map.
    fn new() -> Self;

    /// Inserts keys that are not present, in one transaction.
    fn insert(&mut self, keys: &[K]);

    /// Returns the sum of the values of the keys, read in one transaction.
    fn lookup(&mut self, keys: &[K]) -> u64;

    /// Returns the sum of `count` values, beginning with the value of key `from`.
    fn scan(&mut self, from: &K, count: usize) -> u64;
}

/// The engine.
pub(crate) struct Candide<K: Key> {
    session: Session,
    table: Table<K::Row>,
}

impl<K: Key> Map<K> for Candide<K> {
    const NAME: &'static str = "candide";

    fn new() -> Self {
        let db = Database::new();
        let table = db.table("rows").expect("it is the only table");
        Candide { session: db.session().expect("it is the only session"), table }
    }

    fn insert(&mut self, keys: &[K]) {
        let inserted =
            self.session.run(|tx| keys.iter().try_for_each(|key| self.table.insert(tx, key.row())));
        inserted.unwrap_or_else(|abort: Abort| panic!("the keys are new: {abort}"));
    }

    fn lookup(&mut self, keys: &[K]) -> u64 {
        let sum = self.session.run(|tx| {
            keys.iter().try_fold(0, |sum, key| Ok(sum + self.table.find(tx, key)?.read(K::VALUE)?))
        });
        sum.unwrap_or_else(|abort: Abort| panic!("the keys are present: {abort}"))
    }

    fn scan(&mut self, from: &K, count: usize) -> u64 {
        let sum = self.session.run(|tx| {
            let mut rows = self.table.scan(tx, *from.., K::VALUE).take(count);
            rows.try_fold(0, |sum, row| Ok(sum + row?.1))
        });
        sum.unwrap_or_else(|abort: Abort| panic!("nothing disturbs a scan: {abort}"))
    }
}

/// The distribution of keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    /// One random word.
    OneWord,
    /// The key is (group, part, number), with `rows / 100` groups and 10 parts in each group. Each
    /// part has about 10 numbers.
    ManyGroups,
    /// The key is (group, part, random word), with 10 groups and 10 parts.
    FewGroups,
}

/// A table to be measured.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) shape: Shape,
    pub(crate) rows: usize,
    pub(crate) rounds: usize,
}

/// The keys of a map.
struct Keys<K> {
    case: Case,
    random: fastrand::Rng,
    present: Vec<K>,
}

impl<K: Key> Keys<K> {
    /// Adds a new key: at a random place, or the last under a random prefix.
    fn add(&mut self, at_end: bool) -> K {
        let (made, few, many) = (self.present.len() as u64 + 1, 10, self.case.rows as u64 / 100);
        let group = self.random.u64(..if self.case.shape == Shape::FewGroups { few } else { many });
        let sequence = match (self.case.shape, at_end) {
            (Shape::OneWord, true) => self.draw().words().as_ref()[0] + made,
            (Shape::ManyGroups, true) => made * SPACING,
            (Shape::ManyGroups, false) => self.random.u64(..made * SPACING) | 1,
            (Shape::FewGroups, true) => u64::MAX / 2 + made,
            (Shape::OneWord | Shape::FewGroups, false) => self.random.u64(..u64::MAX / 2),
        };
        let key = K::from_words(&[group, self.random.u64(..few), sequence][3 - K::WORDS..]);
        self.present.push(key);
        key
    }

    /// Returns a random key that is present.
    fn draw(&mut self) -> K {
        self.present[self.random.usize(..self.present.len())]
    }
}

/// Measures a map and prints the results.
pub(crate) fn measure<K: Key, M: Map<K>>(case: Case) {
    let mut keys = Keys { case, random: fastrand::Rng::with_seed(1), present: Vec::new() };
    let mut map = M::new();
    // Numbers ascend under the prefixes of `ManyGroups`. Others are random.
    (0..case.rows).for_each(|_| _ = keys.add(case.shape == Shape::ManyGroups));
    keys.present.chunks(BATCH).for_each(|keys| map.insert(keys));
    let mut nanos = [const { Vec::new() }; 5];
    for _ in 0..case.rounds {
        let lookups: Vec<K> = (0..LOOKUPS).map(|_| keys.draw()).collect();
        nanos[0].push(time(&lookups, BATCH, |keys| assert_eq!(map.lookup(keys), BATCH as u64)));
        for at_end in [false, true] {
            let new: Vec<K> = (0..case.rows / 1000 * BATCH).map(|_| keys.add(at_end)).collect();
            nanos[1 + usize::from(at_end)].push(time(&new, BATCH, |keys| map.insert(keys)));
        }
        for (number, (count, scans)) in SCANS.into_iter().enumerate() {
            let from: Vec<K> = (0..scans).map(|_| keys.draw()).collect();
            let scan = |from: &[K]| _ = black_box(map.scan(&from[0], count));
            nanos[3 + number].push(time(&from, 1, scan));
        }
    }
    println!("{}, {} rows, {:?}:", M::NAME, case.rows, case.shape);
    let names = ["lookup", "insert at random", "insert at ends", "scan of 10", "scan of 100"];
    names.into_iter().zip(&mut nanos).for_each(|(name, nanos)| print_nanos(name, nanos));
}

/// Passes the keys to `operate` in batches. Returns nanoseconds per key.
fn time<K>(keys: &[K], batch: usize, operate: impl FnMut(&[K])) -> f64 {
    let begun = running();
    keys.chunks_exact(batch).for_each(operate);
    (running() - begun) as f64 / keys.len() as f64
}

/// Returns the nanoseconds for which this thread has run.
pub(crate) fn running() -> u64 {
    // The kernel updates the count when the thread sleeps.
    std::thread::sleep(Duration::from_micros(10));
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    times.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("it has three numbers")
}

/// Sorts and prints times.
pub(crate) fn print_nanos(name: &str, nanos: &mut [f64]) {
    nanos.sort_unstable_by(f64::total_cmp);
    println!("  {name:16} min {:7.1} ns  median {:7.1} ns", nanos[0], nanos[nanos.len() / 2]);
}

/// Reads the arguments. Passes each case to `narrow` or `wide`.
pub(crate) fn run_cases(narrow: fn(Case), wide: fn(Case)) -> Result<(), Box<dyn Error>> {
    let names = ["--rows", "--words", "--rounds"];
    let mut lists = [vec![1_000_000, 5_000_000], vec![1, 3], vec![5]];
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let list = names.iter().position(|name| *name == argument).ok_or("unknown argument")?;
        let text = arguments.next().ok_or("a number is missing")?;
        lists[list] = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
    }
    let [rows, words, rounds] = lists;
    let shapes = [(1, Shape::OneWord), (3, Shape::ManyGroups), (3, Shape::FewGroups)];
    for rows in rows {
        for (_, shape) in shapes.into_iter().filter(|(count, _)| words.contains(count)) {
            let run = if shape == Shape::OneWord { narrow } else { wide };
            run(Case { shape, rows: rows.max(1000), rounds: rounds[0].max(1) });
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run_cases(measure::<u64, Candide<u64>>, measure::<Wide, Candide<Wide>>)
}
