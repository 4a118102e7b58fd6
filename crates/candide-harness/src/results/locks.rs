//! Counts of locks on rows, under protocols whose tables have locking policies.

use candide::report::Stats;
use serde::Serialize;

/// Counts of locks by policy, as sessions have made them. The names of the fields are the interface
/// to other programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Locks {
    /// Locks that were taken.
    pub(crate) taken: u64,
    /// Locks for which an attempt waited.
    pub(crate) waited: u64,
    /// Attempts that aborted because of a lock that they did not get.
    pub(crate) died: u64,
    /// Attempts that aborted because another transaction asked them to.
    pub(crate) killed: u64,
    /// Locks without which an attempt continued.
    pub(crate) forgone: u64,
    /// The locks taken before an attempt began, because the attempt before it had failed. Also
    /// `taken`.
    pub(crate) retrospective: u64,
    /// The number of times that an attempt released locks, to take a lock that comes before them in
    /// the order.
    pub(crate) restored: u64,
    /// Rows that became hot.
    pub(crate) heated: u64,
    /// Rows that no longer were hot.
    pub(crate) cooled: u64,
}

impl Locks {
    /// The names of the counts, in the order of [`Locks::counts`].
    pub(crate) const NAMES: [&str; 9] = [
        "taken",
        "waited",
        "died",
        "killed",
        "forgone",
        "retrospective",
        "restored",
        "heated",
        "cooled",
    ];

    /// Returns the counts between two readings of the same counters.
    pub(crate) fn between(before: &Stats, after: &Stats) -> Locks {
        let locks = after.locks.since(before.locks);
        Locks {
            taken: locks.taken,
            waited: locks.waited,
            died: locks.died,
            killed: locks.killed,
            forgone: locks.forgone,
            retrospective: locks.retrospective,
            restored: locks.restored,
            heated: locks.heated,
            cooled: locks.cooled,
        }
    }

    /// Returns the counts.
    pub(crate) fn counts(self) -> [u64; 9] {
        let Locks { taken, waited, died, killed, forgone, .. } = self;
        let Locks { retrospective, restored, heated, cooled, .. } = self;
        [taken, waited, died, killed, forgone, retrospective, restored, heated, cooled]
    }

    /// Adds the counts of another thread or run.
    pub(crate) fn merge(&mut self, other: Locks) {
        self.taken += other.taken;
        self.waited += other.waited;
        self.died += other.died;
        self.killed += other.killed;
        self.forgone += other.forgone;
        self.retrospective += other.retrospective;
        self.restored += other.restored;
        self.heated += other.heated;
        self.cooled += other.cooled;
    }

    /// Subtracts counts that are part of these.
    pub(crate) fn subtract(&mut self, part: Locks) {
        self.taken -= part.taken;
        self.waited -= part.waited;
        self.died -= part.died;
        self.killed -= part.killed;
        self.forgone -= part.forgone;
        self.retrospective -= part.retrospective;
        self.restored -= part.restored;
        self.heated -= part.heated;
        self.cooled -= part.cooled;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_count_of_locks_is_the_difference_of_its_own_field() {
        let mut before = Stats::default();
        let locks = &mut before.locks;
        (locks.taken, locks.waited, locks.died, locks.killed, locks.forgone) = (1, 1, 1, 1, 1);
        (locks.retrospective, locks.restored, locks.heated, locks.cooled) = (1, 1, 1, 1);
        let mut after = before;
        let locks = &mut after.locks;
        (locks.taken, locks.waited, locks.died, locks.killed, locks.forgone) = (91, 51, 31, 21, 11);
        (locks.retrospective, locks.restored, locks.heated, locks.cooled) = (9, 8, 7, 6);
        let found = Locks::between(&before, &after);
        assert_eq!(found.counts(), [90, 50, 30, 20, 10, 8, 7, 6, 5]);
        let mut sum = found;
        sum.merge(found);
        assert_eq!(sum.counts(), [180, 100, 60, 40, 20, 16, 14, 12, 10]);
        sum.subtract(found);
        assert_eq!(sum, found);
        let json = serde_json::to_value(found).expect("numbers");
        for (name, count) in Locks::NAMES.into_iter().zip(found.counts()) {
            assert_eq!(json[name], count, "{name}");
        }
    }
}
