//! TIDs: a cell's first word, which holds the cell's lock and the number of its version.

#![forbid(unsafe_code)]

use crate::epoch::{EPOCH_MAX, Epoch};

/// `| epoch: 38 | sequence: 14 | flags: 12 |`
///
/// Epoch and sequence together are the number of the cell's version. The number only grows. The
/// sequence never carries into the epoch. The flags are states of the cell, not part of the
/// version. Under protocols that order transactions by timestamps, the number is a timestamp.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tid(pub(crate) u64);

const FLAG_BITS: u32 = 12;
const SEQUENCE_MAX: u64 = (1 << Tid::SEQUENCE_BITS) - 1;
const _: () = assert!(EPOCH_MAX.leading_zeros() == FLAG_BITS + Tid::SEQUENCE_BITS);

impl Tid {
    /// The lock of the cell. Set by one atomic exchange, cleared by the lock's owner. If LOCK is
    /// set without INSTALL, the payload still belongs to the version in this word.
    pub(crate) const LOCK: u64 = 1 << 0;
    /// The lock's owner has begun to commit. The payload may be changing, and other transactions
    /// that have read the payload must fail to validate.
    pub(crate) const INSTALL: u64 = 1 << 1;
    /// The row is absent: it was never inserted, or has been deleted.
    pub(crate) const ABSENT: u64 = 1 << 2;
    /// The record is being removed from its index. No transaction writes the record again.
    pub(crate) const DEAD: u64 = 1 << 3;
    /// The record is in a session's queue of records to be removed. The flag is used only in a
    /// record's first cell. The flag is not a state of the row.
    pub(crate) const QUEUED: u64 = 1 << 4;
    /// The record's entry in a queue may be older than the deletion of the row, or than a write
    /// that a running transaction has staged on the absent row. The flag is used only in a record's
    /// first cell. The flag is not a state of the row.
    pub(crate) const REQUEUE: u64 = 1 << 5;
    /// A session sleeps until the cell's version is replaced. The flag is not a state of the row.
    pub(crate) const WATCHED: u64 = 1 << 6;
    /// The first bit of the flags to which each protocol gives its own meaning.
    const OWN_FLAGS: u32 = 7;

    pub(crate) const SEQUENCE_BITS: u32 = 14;
    const FLAGS: u64 = (1 << FLAG_BITS) - 1;
    /// The bits that identify a version. If they are unchanged, the cell still has the version that
    /// was read.
    const IDENTITY: u64 = !Tid::FLAGS | Tid::ABSENT | Tid::DEAD;

    /// The last timestamp.
    pub(crate) const TS_MAX: u64 = u64::MAX >> FLAG_BITS;

    /// The cell's word in a record that has just been linked.
    pub(crate) const INITIAL: Tid = Tid(Tid::ABSENT);

    /// Returns flag `number`, counted from zero, of the flags to which each protocol gives its own
    /// meaning.
    pub(crate) const fn own_flag(number: u32) -> u64 {
        assert!(Tid::OWN_FLAGS + number < FLAG_BITS, "a word has five such flags");
        1 << (Tid::OWN_FLAGS + number)
    }

    /// Returns the first version of an epoch.
    pub(crate) fn first_of(epoch: Epoch) -> Tid {
        debug_assert!(epoch <= EPOCH_MAX);
        Tid(epoch << (FLAG_BITS + Tid::SEQUENCE_BITS))
    }

    pub(crate) fn epoch(self) -> Epoch {
        self.0 >> (FLAG_BITS + Tid::SEQUENCE_BITS)
    }

    /// Returns the sequence number within the epoch.
    #[inline]
    pub(crate) fn sequence(self) -> u64 {
        self.0 >> FLAG_BITS & SEQUENCE_MAX
    }

    /// Returns the number of the version as a timestamp, for protocols that order transactions by
    /// timestamps.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn ts(self) -> u64 {
        self.0 >> FLAG_BITS
    }

    /// Returns the version whose timestamp is `ts`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn of_ts(ts: u64) -> Tid {
        debug_assert!(ts <= Tid::TS_MAX);
        Tid(ts << FLAG_BITS)
    }

    /// Returns epoch and sequence, without the flags.
    #[inline]
    pub(crate) fn version(self) -> u64 {
        self.0 & !Tid::FLAGS
    }

    #[inline]
    pub(crate) fn has(self, flags: u64) -> bool {
        self.0 & flags != 0
    }

    /// Returns this word without LOCK and INSTALL.
    #[inline]
    pub(crate) fn unlocked(self) -> Tid {
        Tid(self.0 & !(Tid::LOCK | Tid::INSTALL))
    }

    /// Returns whether `other` has the same version, and the same flags ABSENT and DEAD.
    #[inline]
    pub(crate) fn same_version(self, other: Tid) -> bool {
        (self.0 ^ other.0) & Tid::IDENTITY == 0
    }

    /// Returns the smallest version of `epoch` above `self`; `None` if the numbers of `epoch` are
    /// used up.
    ///
    /// The epoch of `self` must not be later than `epoch`. The condition holds if the caller read
    /// `self` from a cell before it read `epoch`: commits number versions by epochs that have
    /// begun.
    #[inline]
    pub(crate) fn next_in(self, epoch: Epoch) -> Option<Tid> {
        if self.epoch() < epoch {
            return Some(Tid::first_of(epoch));
        }
        (self.epoch() == epoch && self.sequence() < SEQUENCE_MAX)
            .then(|| Tid(self.version() + (1 << FLAG_BITS)))
    }
}

impl std::fmt::Debug for Tid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.epoch(), self.sequence())?;
        let flags = [
            (Tid::LOCK, "lock"),
            (Tid::INSTALL, "install"),
            (Tid::ABSENT, "absent"),
            (Tid::DEAD, "dead"),
            (Tid::QUEUED, "queued"),
            (Tid::REQUEUE, "requeue"),
            (Tid::WATCHED, "watched"),
        ];
        flags
            .iter()
            .filter(|(flag, _)| self.has(*flag))
            .try_for_each(|(_, name)| write!(f, "+{name}"))?;
        let mut own =
            (0..FLAG_BITS - Tid::OWN_FLAGS).filter(|&number| self.has(Tid::own_flag(number)));
        own.try_for_each(|number| write!(f, "+own{number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tids_grow_without_carrying_into_the_epoch() {
        let mut tid = Tid::first_of(7);
        for _ in 0..SEQUENCE_MAX {
            let next = tid.next_in(7).unwrap();
            assert!(next.version() > tid.version());
            assert_eq!(next.epoch(), 7);
            tid = next;
        }
        assert_eq!(tid.next_in(7), None);
        assert_eq!(tid.next_in(8), Some(Tid::first_of(8)));
    }

    #[test]
    fn the_last_tid_has_no_successor() {
        let last = Tid(Tid::first_of(EPOCH_MAX).0 | SEQUENCE_MAX << FLAG_BITS);
        assert_eq!(last.next_in(EPOCH_MAX), None);
        assert_eq!(last.version(), !Tid::FLAGS);
    }

    #[test]
    fn the_version_of_a_tid_depends_on_absence_and_not_on_locks() {
        let tid = Tid::first_of(3);
        assert!(tid.same_version(Tid(tid.0
            | Tid::LOCK
            | Tid::INSTALL
            | Tid::QUEUED
            | Tid::WATCHED
            | Tid::own_flag(0))));
        assert!(!tid.same_version(Tid(tid.0 | Tid::ABSENT)));
        assert!(!tid.same_version(Tid(tid.0 | Tid::DEAD)));
        assert_eq!(format!("{:?}", Tid(tid.0 | Tid::LOCK | Tid::own_flag(2))), "3.0+lock+own2");
    }
}
