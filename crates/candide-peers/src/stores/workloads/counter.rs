//! Counters, of which each transaction increments one.

use fastrand::Rng;

use super::{Workload, sum_of_positive};
use crate::stores::{Done, Failure, Place, Session, Stopped, Write, Writing};

/// The workload over `counters` counters.
pub(crate) struct Counter {
    pub(crate) counters: u64,
}

/// The input of a transaction: the key of the counter.
pub(crate) struct Increment(u64);

impl Workload for Counter {
    type Value = i64;
    type Request = Increment;
    const TABLES: usize = 1;

    fn name(&self) -> &'static str {
        "counter"
    }

    fn rows(&self) -> u64 {
        self.counters
    }

    fn initial(&self, _: usize, _: u64) -> i64 {
        0
    }

    fn draw(&self, rng: &mut Rng) -> Increment {
        Increment(rng.u64(..self.counters))
    }

    fn carry_out<S: Session<i64>>(
        &self,
        increment: &Increment,
        session: &mut S,
    ) -> Result<Done<i64>, Failure> {
        let done = session.write(increment)?;
        Ok(Done { output: 1, retries: done.retries })
    }

    fn examine(&self, _: usize, first: u64, counts: &[i64]) -> Result<i128, String> {
        sum_of_positive(first, counts)
    }
}

impl Writing<i64> for Increment {
    type Output = ();

    fn places(&self) -> impl Iterator<Item = Place> {
        std::iter::once(Place { table: 0, key: self.0 })
    }

    fn run<X: Write<i64>>(&self, tx: &mut X) -> Result<(), Stopped> {
        tx.modify(Place { table: 0, key: self.0 }, |count| *count += 1)
    }
}
