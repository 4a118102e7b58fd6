//! How often reads of rows have failed to validate, counted approximately.
//!
//! A *temperature* `t` stands for about `2^t` failures: each failure raises it by one with
//! probability `2^-t` (Morris' counter). So rows that fail often seldom write their counters. Rows
//! share a counter if their addresses have the same hash, and two threads that count at the same
//! time may count once: temperatures are hints.

#![forbid(unsafe_code)]

use crate::sync::{AtomicU64, MODELLED, Ordering, Random};
use std::sync::OnceLock;

/// The number of counters. Each counter takes one byte.
const COUNTERS: usize = if MODELLED { 64 } else { 1 << 16 };
/// The highest temperature.
const MAX: u8 = 31;
/// The bit of a counter that is set if rows are read in order to be written.
const WRITTEN: u8 = 1 << 7;

/// The temperatures of a database's rows. The temperatures take 64 KiB from the first failure on,
/// and no memory before.
#[derive(Debug, Default)]
pub(crate) struct Temperatures(OnceLock<Box<[AtomicU64]>>);

impl Temperatures {
    /// Returns the temperature of a key: the address of a row's cell, or of a page.
    pub(crate) fn of(&self, key: u64) -> u8 {
        self.counter(key) & !WRITTEN
    }

    /// Returns whether attempts that read rows of this key usually write them.
    pub(crate) fn is_written(&self, key: u64) -> bool {
        self.counter(key) & WRITTEN != 0
    }

    /// Returns whether no failure has been counted yet.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn is_unused(&self) -> bool {
        self.0.get().is_none()
    }

    fn counter(&self, key: u64) -> u8 {
        let (index, shift) = place(key);
        let word = self.0.get().map_or(0, |words| words[index].load(Ordering::Relaxed));
        (word >> shift) as u8
    }

    /// Counts a failure. Returns the temperature afterwards.
    pub(crate) fn raise(&self, key: u64, random: &mut Random) -> u8 {
        self.change(key, |counter| {
            let (now, written) = (counter & !WRITTEN, counter & WRITTEN);
            let rises = now < MAX && happens(random, now);
            (now + u8::from(rises)) | written
        }) & !WRITTEN
    }

    /// Counts the release of a lock, `2^releases` of which weigh as much as one failure: lowers the
    /// temperature `t` by one with probability `2^-(t + releases)`. Returns the temperature
    /// afterwards.
    pub(crate) fn lower(&self, key: u64, releases: u8, random: &mut Random) -> u8 {
        self.change(key, |counter| {
            let now = counter & !WRITTEN;
            if now > 0 && happens(random, now + releases) { counter - 1 } else { counter }
        }) & !WRITTEN
    }

    /// Raises a temperature that is lower than `least` to `least`.
    pub(crate) fn keep(&self, key: u64, least: u8) {
        if self.of(key) < least.min(MAX) {
            self.change(key, |counter| counter & WRITTEN | least.min(MAX));
        }
    }

    /// Notes whether attempts that read rows of this key usually write them.
    pub(crate) fn set_written(&self, key: u64, is_written: bool) {
        self.change(key, |counter| if is_written { counter | WRITTEN } else { counter & !WRITTEN });
    }

    /// Replaces a counter, and returns its new value. Does nothing if another thread changes the
    /// counter's word meanwhile.
    fn change(&self, key: u64, to: impl FnOnce(u8) -> u8) -> u8 {
        let words = self.0.get_or_init(|| (0..COUNTERS / 8).map(|_| AtomicU64::new(0)).collect());
        let (index, shift) = place(key);
        let word = words[index].load(Ordering::Relaxed);
        let counter = (word >> shift) as u8;
        let to = to(counter);
        if to != counter {
            let changed = word & !(0xff << shift) | u64::from(to) << shift;
            // Relaxed: a temperature carries no other data. A lost change is one failure less.
            let _lost =
                words[index].compare_exchange(word, changed, Ordering::Relaxed, Ordering::Relaxed);
        }
        to
    }
}

/// Returns true with probability `2^-exponent`.
fn happens(random: &mut Random, exponent: u8) -> bool {
    random.next() >> 32 & ((1 << exponent) - 1) == 0
}

/// Returns the word and the shift of a key's counter.
fn place(key: u64) -> (usize, u32) {
    let hash = (key >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let counter = hash as usize % COUNTERS;
    (counter / 8, counter as u32 % 8 * 8)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// Returns the number of failures after which a key has this temperature.
    fn failures_until(temperature: u8, seed: u64) -> u32 {
        let (temperatures, mut random) = (Temperatures::default(), Random::seeded(seed));
        let mut failures = 0;
        while temperatures.of(8) < temperature {
            failures += 1;
            temperatures.raise(8, &mut random);
        }
        failures
    }

    #[test]
    fn a_temperature_approximates_the_binary_logarithm_of_the_failures() {
        for (temperature, expected) in [(1, 1), (3, 7), (5, 31), (10, 1023)] {
            let total: u32 = (1..=200).map(|seed| failures_until(temperature, seed)).sum();
            let mean = f64::from(total) / 200.0;
            assert!((mean / f64::from(expected) - 1.0).abs() < 0.2, "{temperature}: {mean}");
        }
    }

    #[test]
    fn a_temperature_falls_by_many_releases_and_stays_in_its_range() {
        let (temperatures, mut random) = (Temperatures::default(), Random::seeded(7));
        assert_eq!(temperatures.lower(8, 3, &mut random), 0);
        for (releases, useless) in [(0, 20..500), (3, 160..4_000)] {
            while temperatures.raise(8, &mut random) < 6 {}
            let mut count = 0;
            while temperatures.of(8) > 0 {
                count += 1;
                temperatures.lower(8, releases, &mut random);
            }
            assert!(useless.contains(&count), "{count}");
        }
        let place = place(8);
        temperatures.0.get().unwrap()[place.0].store(u64::from(MAX) << place.1, Ordering::Relaxed);
        assert_eq!(temperatures.raise(8, &mut random), MAX);
    }

    #[test]
    fn the_note_that_a_row_is_written_leaves_the_temperature_alone() {
        let (temperatures, mut random) = (Temperatures::default(), Random::seeded(7));
        while temperatures.raise(8, &mut random) < 3 {}
        assert!(!temperatures.is_written(8));
        temperatures.set_written(8, true);
        assert!(temperatures.is_written(8) && temperatures.of(8) == 3);
        temperatures.set_written(8, false);
        assert!(!temperatures.is_written(8) && temperatures.of(8) == 3);
    }
}
