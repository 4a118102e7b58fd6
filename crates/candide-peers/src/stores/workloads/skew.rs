//! A probe of isolation: in each pair of rows, at least one row has to stay 1. Each transaction
//! reads both rows of a pair. If both rows are 1, the transaction sets one of them to 0. If only
//! one row is 1, the transaction sets both to 1. If two transactions both read two ones and
//! overwrite different rows, both rows become 0. This is write skew, which snapshot isolation
//! permits. The zeros then remain until the check at the end.

use fastrand::Rng;

use super::Workload;
use crate::stores::{Done, Failure, Place, Session, Stopped, Write, Writing};

/// The workload over `rows` rows, two for each pair.
pub(crate) struct Skew {
    pub(crate) rows: u64,
}

impl Skew {
    /// The most rows. The number is so small that transactions conflict.
    pub(crate) const ROWS_MAX: u64 = 8;
}

/// The inputs of a transaction: the row that is to become 0.
pub(crate) struct Leave {
    row: u64,
}

impl Workload for Skew {
    type Value = i64;
    type Request = Leave;
    const TABLES: usize = 1;

    fn name(&self) -> &'static str {
        "skew"
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn initial(&self, _: usize, _: u64) -> i64 {
        1
    }

    fn draw(&self, rng: &mut Rng) -> Leave {
        Leave { row: rng.u64(..self.rows) }
    }

    fn carry_out<S: Session<i64>>(
        &self,
        leave: &Leave,
        session: &mut S,
    ) -> Result<Done<i64>, Failure> {
        session.write(leave)
    }

    fn examine(&self, _: usize, first: u64, values: &[i64]) -> Result<i128, String> {
        if let Some(index) = values.chunks(2).position(|pair| pair.iter().sum::<i64>() < 1) {
            return Err(format!(
                "write skew: neither row has stayed of pair {}",
                first / 2 + index as u64
            ));
        }
        Ok(values.iter().map(|&value| i128::from(value)).sum())
    }
}

impl Leave {
    fn place(&self) -> Place {
        Place { table: 0, key: self.row }
    }

    fn other(&self) -> Place {
        Place { table: 0, key: self.row ^ 1 }
    }
}

impl Writing<i64> for Leave {
    type Output = i64;

    fn places(&self) -> impl Iterator<Item = Place> {
        [self.place(), self.other()].into_iter()
    }

    fn run<X: Write<i64>>(&self, tx: &mut X) -> Result<i64, Stopped> {
        let here = tx.get(self.place())?;
        let there = tx.get(self.other())?;
        // Lets other transactions run between the reads and the writes, if the store permits this.
        std::thread::yield_now();
        match here + there {
            2 => {
                tx.put(self.place(), 0)?;
                Ok(-1)
            }
            1 => {
                tx.put(self.place(), 1)?;
                tx.put(self.other(), 1)?;
                Ok(1)
            }
            _ => Ok(0),
        }
    }
}
