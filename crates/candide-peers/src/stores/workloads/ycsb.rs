//! YCSB: point reads and writes of columns of 100 bytes. A transaction has sixteen of them.

use candide::Bytes;
use candide_workloads::Zipf;
use fastrand::Rng;

use super::Workload;
use crate::stores::value::{COLUMN_BYTES, Column};
use crate::stores::{Done, Failure, Place, Read, Reading, Session, Stopped, Write, Writing};

/// The number of operations in a transaction.
pub(crate) const OPERATIONS: usize = 16;

/// A mix over `rows` rows.
pub(crate) struct Ycsb {
    name: &'static str,
    rows: u64,
    write_probability: f64,
    keys: Zipf,
}

impl Ycsb {
    /// High contention: half of the operations are writes, theta is 0.99.
    pub(crate) fn a(rows: u64) -> Ycsb {
        Ycsb { name: "ycsb-a", rows, write_probability: 0.5, keys: Zipf::new(rows, 0.99) }
    }

    /// Some contention: one operation in twenty is a write, theta is 0.8.
    pub(crate) fn b(rows: u64) -> Ycsb {
        Ycsb { name: "ycsb-b", rows, write_probability: 0.05, keys: Zipf::new(rows, 0.8) }
    }

    /// No contention: uniform reads.
    pub(crate) fn c(rows: u64) -> Ycsb {
        Ycsb { name: "ycsb-c", rows, write_probability: 0.0, keys: Zipf::new(rows, 0.0) }
    }
}

/// The inputs of a transaction: different keys in ascending order, and the set of keys that are
/// written.
pub(crate) struct Request {
    keys: [u64; OPERATIONS],
    /// A bit for each key, set if the key is written.
    writes: u16,
}

impl Workload for Ycsb {
    type Value = Column;
    type Request = Request;
    const TABLES: usize = 1;

    fn name(&self) -> &'static str {
        self.name
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn initial(&self, _: usize, _: u64) -> Column {
        column(0)
    }

    fn draw(&self, rng: &mut Rng) -> Request {
        let mut keys = [u64::MAX; OPERATIONS];
        for index in 0..OPERATIONS {
            while keys[index] == u64::MAX {
                let key = self.keys.sample(rng);
                if !keys[..index].contains(&key) {
                    keys[index] = key;
                }
            }
        }
        keys.sort_unstable();
        let writes = (0..OPERATIONS)
            .map(|index| u16::from(rng.f64() < self.write_probability) << index)
            .sum();
        Request { keys, writes }
    }

    fn carry_out<S: Session<Column>>(
        &self,
        request: &Request,
        session: &mut S,
    ) -> Result<Done<i64>, Failure> {
        let done =
            if request.writes == 0 { session.read(request)? } else { session.write(request)? };
        std::hint::black_box(done.output);
        Ok(Done { output: i64::from(request.writes.count_ones()), retries: done.retries })
    }

    fn examine(&self, _: usize, first: u64, columns: &[Column]) -> Result<i128, String> {
        if let Some(index) = columns.iter().position(|found| *found != column(counter(found))) {
            return Err(format!(
                "row {} holds a mix of two writes: {:?}",
                first + index as u64,
                columns[index]
            ));
        }
        Ok(columns.iter().map(|column| i128::from(counter(column))).sum())
    }
}

/// Returns the counter at the head of a column.
#[inline]
fn counter(column: &Column) -> u64 {
    u64::from_le_bytes(*column.as_bytes().first_chunk().expect("a column is longer than a word"))
}

/// Returns the contents of a column after `counter` writes: the counter, and then copies of the
/// counter's lowest byte up to the end.
#[inline]
fn column(counter: u64) -> Column {
    let mut bytes = [counter as u8; COLUMN_BYTES];
    bytes[..8].copy_from_slice(&counter.to_le_bytes());
    Bytes::new(bytes)
}

impl Request {
    fn places(&self) -> impl Iterator<Item = Place> {
        self.keys.iter().map(|&key| Place { table: 0, key })
    }
}

impl Reading<Column> for Request {
    /// The sum of the values that were read.
    type Output = u64;

    fn places(&self) -> impl Iterator<Item = Place> {
        self.places()
    }

    fn run<X: Read<Column>>(&self, tx: &mut X) -> Result<u64, Stopped> {
        let mut sum = 0;
        for place in self.places() {
            sum += u64::from(seen(&tx.get(place)?));
        }
        Ok(sum)
    }
}

impl Writing<Column> for Request {
    /// The sum of the values that were read and not written.
    type Output = u64;

    fn places(&self) -> impl Iterator<Item = Place> {
        self.places()
    }

    fn run<X: Write<Column>>(&self, tx: &mut X) -> Result<u64, Stopped> {
        let mut sum = 0;
        for (index, place) in self.places().enumerate() {
            if self.writes >> index & 1 == 1 {
                tx.modify(place, |found| *found = column(counter(found) + 1))?;
            } else {
                sum += u64::from(seen(&tx.get(place)?));
            }
        }
        Ok(sum)
    }
}

/// Returns a byte of a column, after the whole column has been copied.
#[inline]
fn seen(column: &Column) -> u8 {
    std::hint::black_box(column).as_bytes()[COLUMN_BYTES - 1]
}
