//! The workloads, each written once for all peers.

mod counter;
mod skew;
mod smallbank;
mod transfer;
mod ycsb;

pub(crate) use counter::Counter;
use fastrand::Rng;
pub(crate) use skew::Skew;
pub(crate) use smallbank::SmallBank;
pub(crate) use transfer::Transfer;
pub(crate) use ycsb::Ycsb;

use super::{Done, Failure, Place, Read, Reading, Session, Stopped, Value};

/// A workload over a given number of rows.
pub(crate) trait Workload: Sync {
    /// The contents of rows.
    type Value: Value;
    /// The inputs of a transaction.
    type Request: Send + Sync;
    /// The number of tables.
    const TABLES: usize;

    /// Returns the workload's name, as in `--workload`.
    fn name(&self) -> &'static str;

    /// Returns the number of rows in each table, with keys from 0.
    fn rows(&self) -> u64;

    /// Returns the initial contents of a row.
    fn initial(&self, table: usize, key: u64) -> Self::Value;

    /// Draws the inputs of a transaction.
    fn draw(&self, rng: &mut Rng) -> Self::Request;

    /// Runs a transaction. The transaction's result is the growth of the sum over all rows.
    fn carry_out<S: Session<Self::Value>>(
        &self,
        request: &Self::Request,
        session: &mut S,
    ) -> Result<Done<i64>, Failure>;

    /// Examines consecutive rows of a table after the run. `values` are their contents. The first
    /// of these rows has the key `first`, an even number. Returns the sum of the rows.
    ///
    /// # Errors
    /// If the rows have contents that no serial order of transactions could leave.
    fn examine(&self, table: usize, first: u64, values: &[Self::Value]) -> Result<i128, String>;
}

/// The number of rows that are read in one transaction when a store is examined.
const PORTION: u64 = 1000;

/// Checks that the store's contents are possible. `growth` is the amount by which the transactions
/// have made the sum over all rows grow.
pub(crate) fn examine<W: Workload>(
    workload: &W,
    session: &mut impl Session<W::Value>,
    growth: i128,
) -> Result<(), Failure> {
    let mut sum = 0;
    let mut expected = growth;
    for portion in portions(workload) {
        let Portion { table, first, .. } = portion;
        sum += workload.examine(table, first, &session.read(&portion)?.output)?;
        let loaded: Vec<_> =
            portion.places().map(|place| workload.initial(table, place.key)).collect();
        expected += workload.examine(table, first, &loaded)?;
    }
    if sum != expected {
        return Err(format!(
            "the rows add up to {sum}, but the committed transactions to {expected}"
        )
        .into());
    }
    Ok(())
}

/// Returns the contents of all rows.
pub(crate) fn contents<W: Workload>(
    workload: &W,
    session: &mut impl Session<W::Value>,
) -> Result<Vec<W::Value>, Failure> {
    let mut values = Vec::new();
    for portion in portions(workload) {
        values.extend(session.read(&portion)?.output);
    }
    Ok(values)
}

/// Divides the rows of all tables into portions, in their order.
fn portions<W: Workload>(workload: &W) -> impl Iterator<Item = Portion> {
    let rows = workload.rows();
    (0..W::TABLES).flat_map(move |table| {
        let first = (0..rows).step_by(PORTION as usize);
        first.map(move |first| Portion { table, first, end: (first + PORTION).min(rows) })
    })
}

/// Returns the sum of balances. A balance below zero is an error.
fn sum_of_positive(first: u64, balances: &[i64]) -> Result<i128, String> {
    match balances.iter().position(|&balance| balance < 0) {
        Some(index) => {
            Err(format!("account {} is below zero: {}", first + index as u64, balances[index]))
        }
        None => Ok(balances.iter().map(|&balance| i128::from(balance)).sum()),
    }
}

/// A transaction that reads consecutive rows.
struct Portion {
    table: usize,
    first: u64,
    end: u64,
}

impl Portion {
    fn places(&self) -> impl Iterator<Item = Place> {
        (self.first..self.end).map(|key| Place { table: self.table, key })
    }
}

impl<V: Value> Reading<V> for Portion {
    type Output = Vec<V>;

    fn places(&self) -> impl Iterator<Item = Place> {
        self.places()
    }

    fn run<X: Read<V>>(&self, tx: &mut X) -> Result<Vec<V>, Stopped> {
        self.places().map(|place| tx.get(place)).collect()
    }
}
