//! The accesses of a transaction, drawn before the measurement begins.

use fastrand::Rng;

use super::knobs::{Access, Writes, Ycsb};
use super::layout::{Layout, Values};
use crate::Zipf;
use crate::replay::{Stopped, until};

/// One access to a row. An operation takes eight bytes, so that a transaction's inputs take two
/// cache lines.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) key: u32,
    /// The column that is written if `write` is set, and read otherwise.
    pub(crate) column: u8,
    /// The column that is read before the write, if the knobs request such a read.
    pub(crate) observed: u8,
    pub(crate) write: bool,
}

impl Operation {
    /// Draws the operations of all transactions of one thread, one transaction after another. Draws
    /// fewer if `stopped` returns `true`.
    pub(crate) fn draw_all<L: Layout>(
        knobs: &Ycsb<L>,
        rng: &mut Rng,
        stopped: Stopped<'_>,
    ) -> Vec<Operation> {
        let zipf = Zipf::new(knobs.rows, knobs.theta);
        let columns = L::Values::COUNT as u8;
        let mut operations = Vec::with_capacity(knobs.transactions * knobs.operations);
        let mut keys = Vec::with_capacity(knobs.operations);
        for _ in until(knobs.transactions, stopped) {
            keys.clear();
            while keys.len() < knobs.operations {
                let key = zipf.sample(rng) as u32;
                if !knobs.distinct || !keys.contains(&key) {
                    keys.push(key);
                }
            }
            if knobs.sorted {
                keys.sort_unstable();
            }
            let reads_only = knobs.read_only > 0.0 && rng.f64() < knobs.read_only;
            operations.extend(keys.iter().enumerate().map(|(position, &key)| {
                let column = rng.u8(..columns);
                let write = match knobs.writes {
                    Writes::Probability(probability) => rng.f64() < probability,
                    Writes::First(count) => position < count,
                };
                let observed = match knobs.access {
                    // Any column except the one that is written.
                    Access::ReadAnother => (column + rng.u8(1..columns)) % columns,
                    Access::Blind | Access::Modify => column,
                };
                Operation { key, column, observed, write: write && !reads_only }
            }));
        }
        operations
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream;

    #[test]
    fn the_first_operations_write_one_column_and_read_another() {
        let knobs = Ycsb { transactions: 1_000, ..Ycsb::hot(3) };
        let mut columns = [0; 10];
        for operations in Operation::draw_all(&knobs, &mut stream(1, 0), &|| false).chunks(10) {
            let written: Vec<bool> = operations.iter().map(|operation| operation.write).collect();
            assert_eq!(
                written,
                [true, true, true, false, false, false, false, false, false, false]
            );
            assert!(operations.iter().all(|operation| operation.observed != operation.column));
            assert!(operations.iter().all(|operation| operation.key < 50));
            operations.iter().for_each(|operation| columns[usize::from(operation.observed)] += 1);
        }
        assert!(columns.iter().all(|&count| (900..1_100).contains(&count)), "{columns:?}");
    }

    #[test]
    fn the_share_of_read_only_transactions_is_that_of_the_knob() {
        let knobs = Ycsb { transactions: 10_000, read_only: 0.25, ..Ycsb::hot(10) };
        let operations = Operation::draw_all(&knobs, &mut stream(1, 0), &|| false);
        let reading = operations
            .chunks(10)
            .filter(|operations| operations.iter().all(|operation| !operation.write));
        let reading = reading.count();
        assert!((2_300..2_700).contains(&reading), "{reading} of 10,000");
    }
}
