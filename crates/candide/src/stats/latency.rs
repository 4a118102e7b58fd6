//! The latencies of transactions by name, under the feature `histograms`.
//!
//! A session counts its latencies in words of its own, which only its thread writes and any thread
//! reads. The bounds of the counts are those of a histogram of the crate `hdrhistogram` with two
//! significant digits, so reading loses nothing: the counts of all sessions are added to one such
//! histogram.

#![forbid(unsafe_code)]

use super::count;
use crate::sync::{AtomicU64, Duration, Ordering};
use hdrhistogram::Histogram;
use std::array;
use std::sync::OnceLock;

/// The significant decimal digits of a latency.
const DIGITS: u8 = 2;
/// The number of counts for the latencies between a power of two and the next one.
const STEPS: usize = 1 << STEP_BITS;
const STEP_BITS: u32 = 7;
/// The number of ranges of latencies. The first has the nanoseconds below [`STEPS`], and each
/// further one ends at the next power of two.
const RANGES: usize = (u64::BITS - STEP_BITS) as usize + 1;

/// A session's counts of the latencies of one name. Only the session's thread writes them.
#[derive(Debug)]
pub(super) struct LatencyCounts([OnceLock<Box<[AtomicU64; STEPS]>>; RANGES]);

impl Default for LatencyCounts {
    fn default() -> LatencyCounts {
        LatencyCounts(array::from_fn(|_| OnceLock::new()))
    }
}

impl LatencyCounts {
    /// Counts a latency. The first latency between two powers of two takes a kibibyte of memory.
    pub(super) fn record(&self, latency: Duration) {
        let (range, step) = place(nanoseconds(latency));
        let new = || Box::new(array::from_fn(|_| AtomicU64::new(0)));
        count(&self.0[range].get_or_init(new)[step], 1);
    }

    pub(super) fn add_to(&self, sum: &mut Merged) {
        for (range, counts) in self.0.iter().enumerate() {
            for (step, word) in
                counts.get().into_iter().flat_map(|counts| counts.iter().enumerate())
            {
                let many = word.load(Ordering::Relaxed);
                if many > 0 {
                    sum.0.record_n(lowest(range, step), many).expect("the histogram grows");
                }
            }
        }
    }
}

/// Returns a time in whole nanoseconds; 584 years if it is longer.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the range and the step in which a latency is counted.
fn place(nanoseconds: u64) -> (usize, usize) {
    let bits = u64::BITS - nanoseconds.leading_zeros();
    let range = bits.saturating_sub(STEP_BITS) as usize;
    let shift = range.saturating_sub(1);
    (range, (nanoseconds >> shift) as usize % STEPS)
}

/// Returns the lowest latency that is counted in a step, in nanoseconds.
fn lowest(range: usize, step: usize) -> u64 {
    match range {
        0 => step as u64,
        _ => ((STEPS + step) as u64) << (range - 1),
    }
}

/// The latencies of several sessions.
#[derive(Debug, Clone)]
pub(super) struct Merged(Histogram<u64>);

impl Default for Merged {
    fn default() -> Merged {
        Merged(Histogram::new(DIGITS).expect("the number of digits is valid"))
    }
}

impl Merged {
    pub(super) fn named(self, name: &'static str) -> Latency {
        Latency { name, histogram: self.0 }
    }
}

/// The latencies of the transactions that have been given one name, by
/// [`RunOptions::named`](crate::RunOptions::named). See
/// [`Database::latencies`](crate::Database::latencies).
///
/// Times are exact to one percent: each function returns the upper end of the step in which a
/// latency was counted, so at most 1/128 too much, and never too little.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    name: &'static str,
    histogram: Histogram<u64>,
}

impl Latency {
    /// Returns the name; `"(other)"` for all names that came when the database had 256 names.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the number of transactions: those that committed, and those that ended in an error
    /// or a panic.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the time that half of the transactions did not exceed; zero if there were none.
    pub fn p50(&self) -> Duration {
        self.quantile(0.5)
    }

    /// Returns the time that nine of ten transactions did not exceed; zero if there were none.
    pub fn p90(&self) -> Duration {
        self.quantile(0.9)
    }

    /// Returns the time that 99 of 100 transactions did not exceed; zero if there were none.
    pub fn p99(&self) -> Duration {
        self.quantile(0.99)
    }

    /// Returns the time of the longest transaction; zero if there were none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.histogram.max())
    }

    /// Returns the time that a share of the transactions did not exceed; zero if there were none.
    /// `share` lies between 0 and 1; values outside count as 0 and 1, and so does a value that is
    /// no number as 0.
    pub fn quantile(&self, share: f64) -> Duration {
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        Duration::from_nanos(self.histogram.value_at_quantile(share))
    }

    /// Returns the histogram, of nanoseconds, with two significant digits: for other quantiles,
    /// and for files in the formats of `hdrhistogram`.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::sync::Random;

    fn recorded(latencies: impl IntoIterator<Item = u64>) -> Latency {
        let (counts, mut sum) = (LatencyCounts::default(), Merged::default());
        for latency in latencies {
            counts.record(Duration::from_nanos(latency));
        }
        counts.add_to(&mut sum);
        sum.named("test")
    }

    #[test]
    fn counts_become_the_histogram_that_would_have_been_recorded() {
        let mut random = Random::seeded(7);
        let edges = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        let drawn = (0..20_000).map(|_| random.below(u64::MAX) >> random.below(64));
        let latencies: Vec<u64> = edges.chain([u64::MAX]).chain(drawn).collect();
        let mut direct = Histogram::<u64>::new(DIGITS).unwrap();
        latencies.iter().for_each(|&latency| direct.record(latency).unwrap());
        let merged = recorded(latencies);
        assert_eq!(merged.count(), direct.len());
        for share in 0..=1_000 {
            let share = f64::from(share) / 1_000.0;
            let expected = Duration::from_nanos(direct.value_at_quantile(share));
            assert_eq!(merged.quantile(share), expected, "{share}");
        }
        let buckets = |of: &Histogram<u64>| -> Vec<_> {
            of.iter_recorded().map(|at| (at.value_iterated_to(), at.count_at_value())).collect()
        };
        assert_eq!(buckets(merged.histogram()), buckets(&direct));
    }

    #[test]
    fn every_latency_lies_in_the_step_where_it_is_counted() {
        let mut random = Random::seeded(8);
        for _ in 0..20_000 {
            let latency = random.below(u64::MAX) >> random.below(64);
            let (range, step) = place(latency);
            let width = 1 << range.saturating_sub(1);
            assert!((lowest(range, step)..).contains(&latency), "{latency}");
            assert!(latency - lowest(range, step) < width, "{latency}");
        }
    }

    #[test]
    fn quantiles_are_times_with_units_and_at_most_one_percent_too_long() {
        let of_all = recorded((1..=1_000).map(|number| number * 1_000));
        assert_eq!((of_all.name(), of_all.count()), ("test", 1_000));
        for (seen, microseconds) in
            [(of_all.p50(), 500), (of_all.p90(), 900), (of_all.p99(), 990), (of_all.max(), 1_000)]
        {
            let exact = Duration::from_micros(microseconds);
            assert!((exact..=exact.mul_f64(1.0 + 1.0 / 128.0)).contains(&seen), "{seen:?}");
        }
        assert_eq!(of_all.quantile(-1.0), of_all.quantile(0.0));
        assert_eq!(of_all.quantile(f64::NAN), of_all.quantile(0.0));
        assert_eq!(of_all.quantile(2.0), of_all.max());
        let of_none = recorded([]);
        assert_eq!(
            (of_none.count(), of_none.p99(), of_none.max()),
            (0, Duration::ZERO, Duration::ZERO)
        );
    }
}
