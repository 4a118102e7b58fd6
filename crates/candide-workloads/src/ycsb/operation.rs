//! What a transaction will touch, drawn before the clock starts.

use fastrand::Rng;

use super::Ycsb;
use super::row::COLUMNS;
use crate::Zipf;

/// One access to one column. Eight bytes, so that a transaction's inputs are two cache lines.
#[derive(Clone, Copy)]
pub(super) struct Operation {
    pub(super) key: u32,
    pub(super) column: u8,
    pub(super) write: bool,
}

impl Operation {
    /// The operations of all transactions of one thread, one transaction after another.
    pub(super) fn draw_all(knobs: &Ycsb, rng: &mut Rng) -> Vec<Operation> {
        let zipf = Zipf::new(knobs.rows, knobs.theta);
        let mut operations = Vec::with_capacity(knobs.transactions * knobs.operations);
        let mut keys = Vec::with_capacity(knobs.operations);
        for _ in 0..knobs.transactions {
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
            operations.extend(keys.iter().map(|&key| Operation {
                key,
                column: rng.u8(..COLUMNS.len() as u8),
                write: rng.f64() < knobs.write_probability,
            }));
        }
        operations
    }
}
