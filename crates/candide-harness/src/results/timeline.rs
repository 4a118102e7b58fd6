//! The results, slice by slice, of a workload that changes while it runs.

use std::time::Duration;

use candide_workloads::{Step, Timeline};
use serde::{Serialize, Serializer};

use super::number::abort_ratio;

/// A slice of a phase.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slice {
    /// The length of the slice.
    pub(crate) seconds: f64,
    pub(crate) committed: u64,
    /// The attempts aborted by a conflict, of transactions that ended in this slice.
    pub(crate) aborted: u64,
}

impl Slice {
    pub(crate) fn add(&mut self, other: &Slice) {
        self.seconds += other.seconds;
        self.committed += other.committed;
        self.aborted += other.aborted;
    }

    /// Returns the committed transactions per second.
    pub(crate) fn throughput(&self) -> f64 {
        if self.seconds > 0.0 { self.committed as f64 / self.seconds } else { 0.0 }
    }

    /// Returns the share of attempts that were aborted.
    pub(crate) fn abort_ratio(&self) -> f64 {
        abort_ratio(self.committed, self.aborted)
    }
}

/// The results of a phase: of one thread, of all threads, or of all runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Phase {
    pub(crate) slices: Vec<Slice>,
}

impl Phase {
    /// Counts a transaction that ended `after` the beginning of the phase, which is cut into slices
    /// of length `slice`.
    #[inline]
    pub(crate) fn record(&mut self, step: &Step, after: Duration, slice: Duration) {
        let slice = self.slice((after.as_nanos() as u64 / slice.as_nanos() as u64) as usize);
        slice.committed += u64::from(step.committed);
        slice.aborted += step.retries;
    }

    /// Records the length of the phase. All of its slices have length `slice`, except that the last
    /// one may be shorter.
    pub(crate) fn measured(&mut self, length: Duration, slice: Duration) {
        let (whole, rest) =
            (length.as_nanos() / slice.as_nanos(), length.as_nanos() % slice.as_nanos());
        (0..whole as usize).for_each(|index| self.slice(index).seconds = slice.as_secs_f64());
        if rest > 0 {
            self.slice(whole as usize).seconds = rest as f64 / 1e9;
        }
    }

    /// Adds the results of another thread or run.
    pub(crate) fn merge(&mut self, other: &Phase) {
        other.slices.iter().enumerate().for_each(|(index, slice)| self.slice(index).add(slice));
    }

    fn slice(&mut self, index: usize) -> &mut Slice {
        if self.slices.len() <= index {
            self.slices.resize(index + 1, Slice::default());
        }
        &mut self.slices[index]
    }

    /// Returns the results of the phase in `count` parts of about the same length.
    pub(crate) fn parts(&self, count: usize) -> Vec<Slice> {
        let total: f64 = self.slices.iter().map(|slice| slice.seconds).sum();
        let mut parts = vec![Slice::default(); count];
        let mut passed = 0.0;
        for slice in &self.slices {
            let middle = passed + slice.seconds / 2.0;
            parts[((middle / total * count as f64) as usize).min(count - 1)].add(slice);
            passed += slice.seconds;
        }
        parts
    }
}

/// All phases of a measurement, in their order. The results of several runs are added up.
#[derive(Debug, Serialize)]
pub(crate) struct Timeslices {
    pub(crate) phase_s: f64,
    pub(crate) slice_s: f64,
    pub(crate) phases: Vec<NamedPhase>,
}

#[derive(Debug, Serialize)]
pub(crate) struct NamedPhase {
    pub(crate) name: &'static str,
    /// The results of the phase. The results are serialized as three lists of the same length,
    /// since a phase may have many slices.
    #[serde(flatten, serialize_with = "lists")]
    pub(crate) phase: Phase,
}

fn lists<S: Serializer>(phase: &Phase, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Lists {
        seconds: Vec<f64>,
        committed: Vec<u64>,
        aborted: Vec<u64>,
    }
    Lists {
        seconds: phase.slices.iter().map(|slice| slice.seconds).collect(),
        committed: phase.slices.iter().map(|slice| slice.committed).collect(),
        aborted: phase.slices.iter().map(|slice| slice.aborted).collect(),
    }
    .serialize(serializer)
}

impl Timeslices {
    pub(crate) fn new(timeline: &Timeline, phases: &[Phase]) -> Self {
        let names = timeline.phases.iter().cycle();
        let phases = names
            .zip(phases)
            .map(|(name, phase)| NamedPhase { name, phase: phase.clone() })
            .collect();
        Timeslices {
            phase_s: timeline.phase.as_secs_f64(),
            slice_s: timeline.slice.as_secs_f64(),
            phases,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_counted_in_the_slice_of_their_end_and_partial_slices_kept() {
        let millis = Duration::from_millis;
        let step = |retries| Step { kind: 0, committed: true, retries };
        let mut phase = Phase::default();
        for (after, retries) in [(1, 0), (9, 2), (10, 0), (34, 1)] {
            phase.record(&step(retries), millis(after), millis(10));
        }
        phase.measured(millis(35), millis(10));
        let counts: Vec<_> =
            phase.slices.iter().map(|slice| (slice.committed, slice.aborted)).collect();
        assert_eq!(counts, [(2, 2), (1, 0), (0, 0), (1, 1)]);
        let seconds: Vec<_> =
            phase.slices.iter().map(|slice| (slice.seconds * 1e3).round()).collect();
        assert_eq!(seconds, [10.0, 10.0, 10.0, 5.0]);
        assert!((phase.slices[3].throughput() - 200.0).abs() < 1e-6);
        assert_eq!(phase.slices[0].abort_ratio(), 0.5);

        let other = phase.clone();
        phase.merge(&other);
        for count in [1, 2, 3, 7] {
            let mut sum = Slice::default();
            phase.parts(count).iter().for_each(|part| sum.add(part));
            assert_eq!((sum.committed, sum.aborted), (8, 6), "{count} parts");
            assert!((sum.seconds - 0.07).abs() < 1e-9);
        }
    }
}
