//! The sizes of read and write sets, and the commits that OCC would have aborted.

use candide::report::Stats;
use serde::Serialize;

/// Sums over committed transactions, taken from the counters of their sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SetSums {
    commits: u64,
    read_set: u64,
    write_set: u64,
    stale_commits: u64,
}

impl SetSums {
    /// Adds the counts of a session between two readings of its counters.
    pub(crate) fn add(&mut self, before: &Stats, after: &Stats) {
        self.commits += after.commits - before.commits;
        self.read_set += after.read_set - before.read_set;
        self.write_set += after.write_set - before.write_set;
        self.stale_commits += after.stale_commits - before.stale_commits;
    }

    /// Adds the sums of another thread, run or type.
    pub(crate) fn merge(&mut self, other: SetSums) {
        self.commits += other.commits;
        self.read_set += other.read_set;
        self.write_set += other.write_set;
        self.stale_commits += other.stale_commits;
    }

    /// Subtracts sums that are part of these.
    pub(crate) fn subtract(&mut self, part: SetSums) {
        self.commits -= part.commits;
        self.read_set -= part.read_set;
        self.write_set -= part.write_set;
        self.stale_commits -= part.stale_commits;
    }

    /// Returns the averages; `None` if nothing committed. `counts_stale` says whether stale commits
    /// were counted.
    pub(crate) fn averages(self, counts_stale: bool) -> Option<SetSizes> {
        let share = |sum: u64| sum as f64 / self.commits as f64;
        (self.commits > 0).then(|| SetSizes {
            read_set: share(self.read_set),
            write_set: share(self.write_set),
            occ_would_abort: counts_stale.then(|| share(self.stale_commits)),
        })
    }
}

/// Averages per committed transaction of the engine. The names of the fields are the interface to
/// other programs.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct SetSizes {
    /// Entries in the read set.
    pub(crate) read_set: f64,
    /// Entries in the write set.
    pub(crate) write_set: f64,
    /// The share of the committed transactions that OCC would have aborted; `None` if they were not
    /// counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) occ_would_abort: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn average_set_sizes_are_of_the_commits_between_two_readings() {
        let stats = |commits, read_set, write_set, stale_commits| Stats {
            commits,
            read_set,
            write_set,
            stale_commits,
            ..Stats::default()
        };
        let mut sums = SetSums::default();
        assert!(sums.averages(true).is_none());
        sums.add(&stats(10, 100, 20, 1), &stats(14, 106, 21, 2));
        let averages = sums.averages(true).expect("some committed");
        assert_eq!((averages.read_set, averages.write_set), (1.5, 0.25));
        assert_eq!(averages.occ_would_abort, Some(0.25));
        assert_eq!(sums.averages(false).and_then(|averages| averages.occ_would_abort), None);
        let part = sums;
        sums.merge(part);
        sums.subtract(part);
        assert_eq!(sums, part);
    }
}
