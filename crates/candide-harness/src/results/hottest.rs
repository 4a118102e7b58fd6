//! Reads of a workload's hottest row by the threads that run its transactions. These reads measure
//! how long a read of this row takes, and how many versions the row has.

use candide_workloads::{Failure, Worker};
use hdrhistogram::Histogram;
use quanta::Instant;
use serde::Serialize;

use super::locks::Locks;
use super::sets::SetSums;

/// The results of the reads by one thread, or by several.
pub(crate) struct Probes {
    /// The nanoseconds that each read took, from the first attempt to the end.
    reads: Histogram<u64>,
    /// The numbers of versions that the row had after a read.
    versions: Histogram<u64>,
    longest: u64,
    /// The numbers of read attempts that a conflict has aborted, by reason, in the order of the
    /// engine's statistics.
    aborts: Vec<u64>,
    /// The read and write sets of the reads.
    pub(crate) sets: SetSums,
    /// The locks that the reads met.
    pub(crate) locks: Locks,
}

impl Probes {
    pub(crate) fn new() -> Self {
        let reads = Histogram::new_with_bounds(1, 3_600_000_000_000, 2).expect("bounds in order");
        // With three digits, counts up to two thousand are exact. More versions than the bound do
        // not fit into memory.
        let versions = Histogram::new_with_bounds(1, 1 << 36, 3).expect("bounds in order");
        Probes {
            reads,
            versions,
            longest: 0,
            aborts: Vec::new(),
            sets: SetSums::default(),
            locks: Locks::default(),
        }
    }

    /// Makes `worker` read the hottest row of its workload.
    #[cold]
    #[inline(never)]
    pub(crate) fn look(&mut self, worker: &mut dyn Worker) -> Result<(), Failure> {
        let before = worker.stats();
        if let Some(mut probe) = worker.hottest() {
            let begun = Instant::now();
            probe.read()?;
            let took = begun.elapsed();
            let versions = probe.versions()? as u64;
            self.enter(took.as_nanos() as u64, versions);
        }
        let after = worker.stats();
        let aborts = after.aborts.into_iter().zip(before.aborts);
        add(&mut self.aborts, aborts.map(|(after, before)| after - before));
        self.sets.add(&before, &after);
        self.locks.merge(Locks::between(&before, &after));
        Ok(())
    }

    fn enter(&mut self, nanos: u64, versions: u64) {
        self.reads.saturating_record(nanos);
        self.versions.saturating_record(versions);
        self.longest = self.longest.max(versions);
    }

    /// Returns the number of read attempts that were aborted for reason number `reason`.
    pub(crate) fn aborts(&self, reason: usize) -> u64 {
        self.aborts.get(reason).copied().unwrap_or(0)
    }

    /// Adds the results of another thread or run.
    pub(crate) fn merge(&mut self, other: &Probes) {
        self.reads.add(&other.reads).expect("all have the same bounds");
        self.versions.add(&other.versions).expect("all have the same bounds");
        self.longest = self.longest.max(other.longest);
        add(&mut self.aborts, other.aborts.iter().copied());
        self.sets.merge(other.sets);
        self.locks.merge(other.locks);
    }
}

fn add(sums: &mut Vec<u64>, counts: impl ExactSizeIterator<Item = u64>) {
    if sums.len() < counts.len() {
        sums.resize(counts.len(), 0);
    }
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

/// The results of the reads of all runs. The names of the fields are the interface to other
/// programs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Hottest {
    /// The name of the row.
    pub(crate) row: &'static str,
    /// The number of reads. If it is zero, the other fields mean nothing.
    pub(crate) probes: u64,
    /// The number of read attempts that a conflict has aborted. These attempts do not count among
    /// the aborted attempts of transactions.
    pub(crate) aborted: u64,
    /// The time that a read takes, at the median; `None` if there were no reads.
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
    /// The number of versions of the row after a read; `None` if there were no reads.
    pub(crate) versions_p99: Option<u64>,
    pub(crate) versions_max: Option<u64>,
}

impl Hottest {
    pub(crate) fn new(row: &'static str, all: &Probes) -> Self {
        let probes = all.reads.len();
        let read =
            |quantile| (probes > 0).then(|| all.reads.value_at_quantile(quantile) as f64 / 1e3);
        Hottest {
            row,
            probes,
            aborted: all.aborts.iter().sum(),
            p50_us: read(0.5),
            p99_us: read(0.99),
            versions_p99: (probes > 0)
                .then(|| all.versions.value_at_quantile(0.99).min(all.longest)),
            versions_max: (probes > 0).then_some(all.longest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_of_the_hottest_row_are_merged_over_threads() {
        let [mut one, mut other] = [(); 2].map(|()| Probes::new());
        (1..=98).for_each(|versions| one.enter(2_000, versions));
        other.enter(500_000, 7_777_777);
        other.enter(9_000, 1_500);
        one.aborts = vec![0, 3];
        other.aborts = vec![1, 1];
        one.merge(&other);
        let Hottest { row, probes, aborted, p50_us, p99_us, versions_p99, versions_max } =
            Hottest::new("rows[0]", &one);
        assert_eq!((row, probes, aborted), ("rows[0]", 100, 5));
        assert_eq!((one.aborts(0), one.aborts(1), one.aborts(2)), (1, 4, 0));
        let about =
            |time: Option<f64>, us: f64| time.is_some_and(|time| (time / us - 1.0).abs() < 0.01);
        assert!(about(p50_us, 2.0) && about(p99_us, 9.0), "{p50_us:?} {p99_us:?}");
        assert_eq!(
            (versions_p99, versions_max),
            (Some(1_500), Some(7_777_777)),
            "the longest is exact"
        );
    }

    #[test]
    fn without_probes_the_hottest_row_has_no_latencies() {
        let nothing = Hottest::new("rows[0]", &Probes::new());
        assert_eq!((nothing.probes, nothing.p99_us, nothing.versions_max), (0, None, None));
    }
}
