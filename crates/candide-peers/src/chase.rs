//! The time of loads that depend on one another.

use std::hint::black_box;
use std::time::Instant;

/// The number of loads that are timed at once.
const LOADS: usize = 1 << 20;
/// The number of rounds in which so many loads are timed.
const ROUNDS: usize = 5;

/// Cache lines, each with the number of another one. From any line, all lines are reached.
struct Chain(Vec<[u64; 8]>);

impl Chain {
    /// Returns a chain of 2^`log2` lines. The numbers are those of a linear congruential generator
    /// of full period (Hull and Dobell 1962), so neighbours in the chain are far apart in memory.
    fn new(log2: u32) -> Chain {
        let mask = (1u64 << log2) - 1;
        let next = |number: u64| {
            number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f) & mask
        };
        Chain((0..=mask).map(|number| [next(number), 0, 0, 0, 0, 0, 0, 0]).collect())
    }

    /// Returns the number at which `loads` loads end that begin at `number`.
    fn after(&self, number: u64, loads: usize) -> u64 {
        (0..loads).fold(number, |number, _| self.0[number as usize][0])
    }
}

/// Returns the nanoseconds of a load that depends on the load before it, if each is from a random
/// one of at most `lines` cache lines: the least of several rounds.
pub(crate) fn load_nanoseconds(lines: usize) -> f64 {
    let chain = Chain::new(lines.max(2).ilog2());
    let mut number = 0;
    let round = |_| {
        let begun = Instant::now();
        number = black_box(chain.after(number, LOADS));
        begun.elapsed().as_secs_f64() * 1e9 / LOADS as f64
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_of_loads_visits_every_place_once() {
        for log2 in [1, 2, 5, 10] {
            let chain = Chain::new(log2);
            let returns = (1..=1 << log2).find(|&loads| chain.after(0, loads) == 0);
            assert_eq!(returns, Some(1 << log2));
        }
    }

    #[test]
    fn a_dependent_load_has_a_measurable_time() {
        assert!((0.01..1e6).contains(&load_nanoseconds(1000)));
    }
}
