//! How transactions change rows, and an account of those that leave their changes to the commit.
//!
//! Under the policy `pipelined` such a transaction is *tame* if it has read nothing that may
//! change. Tame transactions meet no conflict. The engine counts by their reasons the attempts that
//! were not tame (*wild*), and those that gave way to its other locks.

use std::cell::Cell;

use candide::report::LockStats;

use crate::Consistency;

/// How one transaction changes rows.
pub(super) struct Manner {
    /// Whether it leaves its changes to the commit.
    pub(super) is_deferred: bool,
    /// Whether an attempt has read columns that may change, or asked whether a row is there.
    has_read: Cell<bool>,
}

impl Manner {
    pub(super) fn new(is_deferred: bool) -> Self {
        Manner { is_deferred, has_read: Cell::new(false) }
    }

    /// Notes that an attempt reads what may change, or asks whether a row is there.
    pub(super) fn read(&self) {
        self.has_read.set(true);
    }
}

/// A reason, and the count of it.
type Reason = (&'static str, fn(&LockStats) -> u64);

/// The reasons for which an attempt was not tame, as counted by the engine.
const REASONS: [Reason; 6] = [
    ("reads", |locks| locks.wild_reads),
    ("absent keys or ranges", |locks| locks.wild_keys),
    ("other wild ones", |locks| locks.wild_others),
    ("locks held before", |locks| locks.unchained_holds),
    ("numbers drawn at the commit", |locks| locks.unchained_late),
    ("other ones that gave way", |locks| locks.unchained_others),
];

/// The attempts of the transactions that leave their changes to the commit.
#[derive(Debug, Default)]
pub(super) struct Tame {
    /// The attempts that have locked in a pipeline, or would have.
    attempts: u64,
    /// Those that were not tame, by the reasons in [`REASONS`].
    others: [u64; REASONS.len()],
    /// The attempts that conflicts aborted although they were tame.
    conflicts: u64,
}

impl Tame {
    /// Adds a transaction that has had `retries` conflicts, and during which the session's counts
    /// have gone from `before` to `after`.
    pub(super) fn note(
        &mut self,
        manner: &Manner,
        retries: u64,
        before: &LockStats,
        after: &LockStats,
    ) {
        self.attempts += retries + 1;
        let mut counted = 0;
        for (others, (_, count)) in self.others.iter_mut().zip(REASONS) {
            let new = count(after) - count(before);
            *others += new;
            counted += new;
        }
        if !manner.has_read.get() {
            self.conflicts += retries.saturating_sub(counted);
        }
    }

    /// Adds the account of another worker.
    pub(super) fn add(&mut self, other: Tame) {
        self.attempts += other.attempts;
        self.others.iter_mut().zip(other.others).for_each(|(sum, more)| *sum += more);
        self.conflicts += other.conflicts;
    }

    /// Checks that tame attempts have met no conflict, and notes how many attempts were not tame.
    pub(super) fn check(&self, consistency: &mut Consistency) {
        let Tame { attempts, others, conflicts } = self;
        if *attempts == 0 {
            return;
        }
        consistency.expect(*conflicts == 0, || {
            format!("{conflicts} of {attempts} deferred attempts met a conflict, and were tame")
        });
        let told = others.iter().zip(REASONS).filter(|(count, _)| **count > 0);
        let told: Vec<String> = told.map(|(count, (name, _))| format!("{name} {count}")).collect();
        let not_tame: u64 = others.iter().sum();
        consistency.notes.push(match told.is_empty() {
            true => format!("all {attempts} attempts of deferred transactions were tame"),
            false => format!(
                "of {attempts} attempts of deferred transactions, {not_tame} were not tame: {}",
                told.join(", ")
            ),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_of_tame_attempts_are_failures_and_others_are_notes() {
        let none = LockStats::default();
        let mut one_wild = none;
        one_wild.wild_reads = 1;
        let mut tame = Tame::default();
        let checked = |tame: &Tame| {
            let mut consistency = Consistency::default();
            tame.check(&mut consistency);
            (consistency.failed.len(), consistency.notes.join(""))
        };
        tame.note(&Manner::new(true), 0, &none, &none);
        assert_eq!(checked(&tame), (0, "all 1 attempts of deferred transactions were tame".into()));
        tame.note(&Manner::new(true), 1, &none, &one_wild);
        let words = "of 3 attempts of deferred transactions, 1 were not tame: reads 1";
        assert_eq!(checked(&tame), (0, words.to_string()));
        let reads = Manner::new(true);
        reads.read();
        tame.note(&reads, 5, &none, &none);
        assert_eq!(checked(&tame).0, 0);
        tame.note(&Manner::new(true), 2, &none, &one_wild);
        assert_eq!(checked(&tame).0, 1, "one of three attempts was wild, and two conflicted");
    }
}
