//! The measured time of a run, cut into slices: the results of each slice, and the memory at its
//! end.
//!
//! Workloads that change while they run also have shorter slices, without latencies. Such slices
//! are in `timeline.rs`.

use std::sync::Mutex;
use std::time::Duration;

use candide_workloads::Step;
use quanta::Instant;

use crate::failure::Failure;
use crate::results::{Footprint, Kind, RunSlice, Transactions};

/// The largest number of slices of a run. Each slice takes 40 kB while results are collected, and
/// is a line of the report.
const MOST: usize = 1000;

/// Returns an error if a run of `duration` has more than [`MOST`] slices of length `slice`.
pub(crate) fn expect_few(slice: Option<Duration>, duration: Duration) -> Result<(), Failure> {
    match slice {
        Some(slice) if duration.as_nanos().div_ceil(slice.as_nanos()) > MOST as u128 => {
            let [slice, run] = [slice, duration].map(humantime::format_duration);
            Err(Failure::Usage(format!(
                "a run of {run} has at most {MOST} slices, so not of {slice}"
            )))
        }
        _ => Ok(()),
    }
}

/// The place where the threads of a run collect their results of each slice.
pub(crate) struct Slices {
    length: Duration,
    /// The results of all threads by slice, as far as the threads have added them.
    kinds: Mutex<Vec<Kind>>,
}

impl Slices {
    /// Creates slices of `length` each.
    pub(crate) fn new(length: Duration) -> Self {
        Slices { length, kinds: Mutex::new(Vec::new()) }
    }

    pub(crate) fn length(&self) -> Duration {
        self.length
    }

    /// Returns a thread's share of the slices; the first slice began at `begun`.
    pub(crate) fn share(&self, begun: Instant) -> Share<'_> {
        Share { slices: self, begun, index: 0, ends: begun + self.length, kind: Kind::new() }
    }

    fn add(&self, index: usize, kind: &Kind) {
        let mut kinds = self.kinds.lock().expect("no thread panics while holding it");
        if kinds.len() <= index {
            kinds.resize_with(index + 1, Kind::new);
        }
        kinds[index].merge(kind);
    }

    /// Returns the results of the slices. There are as many slices as `footprints`, and they take
    /// `elapsed` in all. Transactions that began in time but ended after the last slice are counted
    /// in the last slice.
    pub(crate) fn into_list(self, elapsed: Duration, footprints: Vec<Footprint>) -> Vec<RunSlice> {
        let mut kinds = self.kinds.into_inner().expect("no thread panics while holding it");
        let count = footprints.len();
        let late = kinds.split_off(count.min(kinds.len()));
        kinds.resize_with(count, Kind::new);
        if let Some(last) = kinds.last_mut() {
            late.iter().for_each(|kind| last.merge(kind));
        }
        let length = self.length.as_secs_f64();
        let slice = |(index, (kind, footprint)): (usize, (&Kind, Footprint))| {
            let from_s = index as f64 * length;
            let duration_s =
                if index + 1 == count { elapsed.as_secs_f64() - from_s } else { length };
            RunSlice { from_s, duration_s, all: Transactions::new(kind, false), footprint }
        };
        kinds.iter().zip(footprints).enumerate().map(slice).collect()
    }
}

/// The results of one thread in its current slice. The thread adds them to [`Slices`] when that
/// slice has ended.
pub(crate) struct Share<'a> {
    slices: &'a Slices,
    begun: Instant,
    index: usize,
    /// The end of the current slice.
    ends: Instant,
    kind: Kind,
}

impl Share<'_> {
    /// Counts a transaction that ended at `end`.
    #[inline]
    pub(crate) fn record(&mut self, step: &Step, latency: Duration, end: Instant) {
        if end >= self.ends {
            self.turn_to(end);
        }
        self.kind.record(step, latency);
    }

    /// Moves on to the slice that contains `moment`. The change of the slice takes some ten
    /// microseconds, which are part of the next transaction's latency.
    #[cold]
    fn turn_to(&mut self, moment: Instant) {
        self.slices.add(self.index, &self.kind);
        self.kind.clear();
        let length = self.slices.length;
        self.index = ((moment - self.begun).as_nanos() / length.as_nanos()) as usize;
        self.ends = self.begun + length * (self.index as u32 + 1);
    }

    /// Adds the results of the current slice to [`Slices`].
    pub(crate) fn close(self) {
        self.slices.add(self.index, &self.kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLIS: fn(u64) -> Duration = Duration::from_millis;

    fn enter(share: &mut Share<'_>, after: Duration, committed: bool) {
        let end = share.begun + after;
        share.record(&Step { kind: 0, committed, retries: 1 }, after, end);
    }

    #[test]
    fn transactions_are_counted_in_the_slice_of_their_end_and_none_is_lost() {
        let slices = Slices::new(MILLIS(10));
        let begun = Instant::now();
        let (mut one, mut other) = (slices.share(begun), slices.share(begun));
        for after in [1, 9, 10, 34] {
            enter(&mut one, MILLIS(after), true);
        }
        enter(&mut other, MILLIS(20) - Duration::from_nanos(1), false);
        // This transaction began in time, but ended after the last slice.
        enter(&mut other, MILLIS(57), true);
        one.close();
        other.close();
        let footprints =
            (1..=4).map(|bytes| Footprint { memory_bytes: bytes, rss_bytes: None }).collect();
        let list = slices.into_list(MILLIS(35), footprints);
        let counts: Vec<_> = list
            .iter()
            .map(|slice| (slice.all.committed, slice.all.aborted, slice.all.user_aborted))
            .collect();
        assert_eq!(counts, [(2, 2, 0), (1, 2, 1), (0, 0, 0), (2, 2, 0)]);
        let places: Vec<_> = list
            .iter()
            .map(|slice| [slice.from_s, slice.duration_s].map(|s| (s * 1e3).round()))
            .collect();
        assert_eq!(places, [[0.0, 10.0], [10.0, 10.0], [20.0, 10.0], [30.0, 5.0]]);
        assert_eq!(
            list.iter().map(|slice| slice.footprint.memory_bytes).collect::<Vec<_>>(),
            [1, 2, 3, 4]
        );
        assert!((list[3].throughput() - 400.0).abs() < 1e-6);
        assert!(
            list[0].all.max_us > 8000.0 && list[0].all.max_us < 10_000.0,
            "{}",
            list[0].all.max_us
        );
        assert_eq!(list[2].all.max_us, 0.0, "the slice before has been taken");
        assert!(list[3].all.p50_us > 30_000.0, "{}", list[3].all.p50_us);
    }

    #[test]
    fn a_measurement_of_no_time_has_no_slices() {
        assert!(Slices::new(MILLIS(10)).into_list(Duration::ZERO, Vec::new()).is_empty());
    }
}
