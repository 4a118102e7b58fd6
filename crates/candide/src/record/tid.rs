//! The word that locks a cell and numbers its version.

#![forbid(unsafe_code)]

use crate::epoch::{EPOCH_MAX, Epoch};

/// `| epoch: 38 | sequence: 14 | flags: 12 |`
///
/// Epoch and sequence number the version; they only grow, and the sequence never carries into the
/// epoch. The flags are states of the cell, not part of the version. Under protocols in timestamp
/// order the number is a timestamp.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tid(pub(crate) u64);

const FLAG_BITS: u32 = 12;
const SEQUENCE_MAX: u64 = (1 << Tid::SEQUENCE_BITS) - 1;
const _: () = assert!(EPOCH_MAX.leading_zeros() == FLAG_BITS + Tid::SEQUENCE_BITS);

impl Tid {
    /// Someone may change this cell. Set by one atomic exchange, cleared by its owner. Alone, it
    /// says that the words are still those of the version.
    pub(crate) const LOCK: u64 = 1 << 0;
    /// The lock's owner has begun to commit: the words may be changing, others' validation must
    /// fail.
    pub(crate) const INSTALL: u64 = 1 << 1;
    /// The row is not there: never was, or was deleted.
    pub(crate) const ABSENT: u64 = 1 << 2;
    /// The record is leaving its index, and nobody writes it again.
    pub(crate) const DEAD: u64 = 1 << 3;
    /// The record is in a session's burial queue (first cell only). Not a state of the row.
    pub(crate) const QUEUED: u64 = 1 << 4;
    /// The version is the record's inheritance: nobody has written it. For protocols whose records
    /// inherit one.
    pub(crate) const UNWRITTEN: u64 = 1 << 5;
    /// The row was deleted while its record was queued: the queue's entry is older than the
    /// absence. For protocols whose versions do not tell when that began.
    pub(crate) const REQUEUE: u64 = 1 << 6;
    /// The room for a version in the record has been used, and will not be again. For protocols
    /// that link versions before they know whether they stand.
    pub(crate) const INLINE_USED: u64 = 1 << 7;
    /// Somebody takes something out of the chain of a dead unit. For protocols whose dead records
    /// may have one.
    pub(crate) const PRUNING: u64 = 1 << 9;
    /// What is left to collect of the unit waits for a snapshot to close, in one session's garbage.
    /// Not a state of the row.
    pub(crate) const ON_SNAPSHOT_LIST: u64 = 1 << 8;

    pub(crate) const SEQUENCE_BITS: u32 = 14;
    const FLAGS: u64 = (1 << FLAG_BITS) - 1;
    /// What must be unchanged for a version to be the one that was read.
    const IDENTITY: u64 = !Tid::FLAGS | Tid::ABSENT | Tid::DEAD;

    /// The last timestamp.
    pub(crate) const TS_MAX: u64 = u64::MAX >> FLAG_BITS;

    /// The cell of a record that has just been linked.
    pub(crate) const INITIAL: Tid = Tid(Tid::ABSENT);

    /// The first version of an epoch.
    pub(crate) fn first_of(epoch: Epoch) -> Tid {
        debug_assert!(epoch <= EPOCH_MAX);
        Tid(epoch << (FLAG_BITS + Tid::SEQUENCE_BITS))
    }

    pub(crate) fn epoch(self) -> Epoch {
        self.0 >> (FLAG_BITS + Tid::SEQUENCE_BITS)
    }

    /// Which of the epoch's versions it is.
    #[inline]
    pub(crate) fn sequence(self) -> u64 {
        self.0 >> FLAG_BITS & SEQUENCE_MAX
    }

    /// The version as a timestamp, under protocols in timestamp order.
    #[inline(always)]
    pub(crate) fn ts(self) -> u64 {
        self.0 >> FLAG_BITS
    }

    /// A version of this timestamp.
    #[inline(always)]
    pub(crate) fn of_ts(ts: u64) -> Tid {
        debug_assert!(ts <= Tid::TS_MAX);
        Tid(ts << FLAG_BITS)
    }

    /// Epoch and sequence.
    #[inline]
    pub(crate) fn version(self) -> u64 {
        self.0 & !Tid::FLAGS
    }

    #[inline]
    pub(crate) fn has(self, flags: u64) -> bool {
        self.0 & flags != 0
    }

    /// What a cell that says this was before it was locked.
    #[inline]
    pub(crate) fn unlocked(self) -> Tid {
        Tid(self.0 & !(Tid::LOCK | Tid::INSTALL))
    }

    /// Whether `other` is the same version in the same state of existence.
    #[inline]
    pub(crate) fn same_version(self, other: Tid) -> bool {
        (self.0 ^ other.0) & Tid::IDENTITY == 0
    }

    /// The smallest version of `epoch` that lies above `self`; `None` when the epoch's numbers are
    /// used up.
    ///
    /// The caller has made sure that `self` is not from a later epoch: every version in a cell was
    /// numbered by an epoch that had begun.
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
            (Tid::UNWRITTEN, "unwritten"),
            (Tid::REQUEUE, "requeue"),
            (Tid::INLINE_USED, "spent"),
            (Tid::ON_SNAPSHOT_LIST, "parked"),
            (Tid::PRUNING, "thinning"),
        ];
        flags
            .iter()
            .filter(|(flag, _)| self.has(*flag))
            .try_for_each(|(_, name)| write!(f, "+{name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_grow_and_never_carry() {
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
    fn the_last_version_has_no_successor() {
        let last = Tid(Tid::first_of(EPOCH_MAX).0 | SEQUENCE_MAX << FLAG_BITS);
        assert_eq!(last.next_in(EPOCH_MAX), None);
        assert_eq!(last.version(), !Tid::FLAGS);
    }

    #[test]
    fn locks_and_queueing_do_not_change_the_version_but_existence_does() {
        let tid = Tid::first_of(3);
        assert!(tid.same_version(Tid(tid.0
            | Tid::LOCK
            | Tid::INSTALL
            | Tid::QUEUED
            | Tid::ON_SNAPSHOT_LIST)));
        assert!(!tid.same_version(Tid(tid.0 | Tid::ABSENT)));
        assert!(!tid.same_version(Tid(tid.0 | Tid::DEAD)));
        assert_eq!(format!("{:?}", Tid(tid.0 | Tid::LOCK | Tid::ABSENT)), "3.0+lock+absent");
    }
}
