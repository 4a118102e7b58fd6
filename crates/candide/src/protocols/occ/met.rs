//! The versions that a session has met: versions that its own commits have installed, and versions
//! at which a view moved forward.
//!
//! An attempt may accept such a version without revalidation, though the version is of a recent
//! epoch (invariant VW4 of `view.rs`). Most recent versions that a transaction reads are of this
//! kind: its own thread's last transactions have written them, or they belong to hot rows that the
//! thread has just read.
//!
//! The table holds the latest of these versions. Each address has one place in the table, and
//! several addresses share a place. If a met version has been replaced in its place, the next read
//! of that version costs a revalidation. An entry is one word, which identifies the cell and the
//! version exactly: the place in the table gives a part of the address, and epochs are counted from
//! the table's first epoch.

#![forbid(unsafe_code)]

use crate::epoch::Epoch;
use crate::record::{CellAt, Tid};

/// The logarithm of the number of places in the table. The places take 32 KiB, and suffice for most
/// writes of a session between two passes of the advancer.
const PLACES_LOG2: u32 = 12;
/// The number of bits of an address without its last three, which are zero. A cell with a greater
/// address is never met.
const ADDRESS_BITS: u32 = 48 - 3;
const TAG_BITS: u32 = ADDRESS_BITS - PLACES_LOG2;
/// The number of bits of an entry that hold the epoch. One more bit of the entry is set if the row
/// is absent.
const EPOCH_BITS: u32 = 64 - TAG_BITS - Tid::SEQUENCE_BITS - 1;

/// Cells by their addresses, with the last version of each that was met.
#[derive(Debug, Default)]
pub(super) struct Met {
    /// Empty until a version is met. Zero means that a place is free: no entry is zero, since its
    /// epoch is at least one.
    entries: Vec<u64>,
    /// The epoch before the epoch of the first entry.
    begun: Epoch,
}

impl Met {
    /// Allocates the table, unless that was done before.
    #[inline]
    pub(super) fn reserve(&mut self) {
        if self.entries.is_empty() {
            self.begin_anew(self.begun);
        }
    }

    /// Notes that the version `tid` of a cell was met.
    #[inline]
    pub(super) fn note(&mut self, at: CellAt, tid: Tid) {
        if tid.epoch().wrapping_sub(self.begun) >> EPOCH_BITS != 0 || self.entries.is_empty() {
            self.begin_anew(tid.epoch());
        }
        if let Some((place, entry)) = self.entry(at, tid) {
            self.entries[place] = entry;
        }
    }

    /// Returns whether the version `tid` of a cell was met. The versions of one cell only grow, so
    /// no two of them are equal. But two cells may have equal versions, by commits of two sessions.
    #[inline]
    pub(super) fn has(&self, at: CellAt, tid: Tid) -> bool {
        self.entry(at, tid).is_some_and(|(place, entry)| self.entries.get(place) == Some(&entry))
    }

    /// Returns the place of a cell, and the entry that this place holds if the version `tid` was
    /// met; `None` if the version is too old or too young for the table.
    #[inline]
    fn entry(&self, at: CellAt, tid: Tid) -> Option<(usize, u64)> {
        let address = at.address() >> 3;
        let epoch = tid.epoch().checked_sub(self.begun)?;
        let is_out_of_range =
            epoch == 0 || epoch >> EPOCH_BITS != 0 || address >> ADDRESS_BITS != 0;
        if is_out_of_range || tid.has(Tid::DEAD) {
            return None;
        }
        // The product is one to one, since the factor is odd. The multiplication puts neighbouring
        // addresses far from one another.
        let mixed = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) & ((1 << ADDRESS_BITS) - 1);
        let (place, tag) = (mixed >> TAG_BITS, mixed & ((1 << TAG_BITS) - 1));
        let absent = u64::from(tid.has(Tid::ABSENT));
        let entry =
            ((tag << EPOCH_BITS | epoch) << Tid::SEQUENCE_BITS | tid.sequence()) << 1 | absent;
        Some((place as usize, entry))
    }

    #[cold]
    #[inline(never)]
    fn begin_anew(&mut self, epoch: Epoch) {
        self.begun = epoch.saturating_sub(1);
        self.entries.clear();
        self.entries.resize(1 << PLACES_LOG2, 0);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::protocols::occ::Occ;
    use crate::{Database, Record};

    #[derive(Record, Clone, Copy)]
    #[record(crate = crate)]
    struct Item {
        #[key]
        id: u64,
    }

    #[test]
    fn exactly_the_noted_versions_count_as_met() {
        let db = Database::<Occ>::builder().manual_epochs(1).build().unwrap();
        let table = db.table::<Item>("items").unwrap();
        db.run(|tx| table.insert(tx, Item { id: 1 })).unwrap();
        let mut at = None;
        table.core().index.for_each(&mut |record| {
            at = table.core().layout.cells(record).next();
        });
        let at = at.expect("a row");
        let version = |epoch, sequence| {
            (0..sequence).fold(Tid::first_of(epoch), |tid, _| tid.next_in(epoch).unwrap())
        };
        let mut met = Met::default();
        let first = 1 << 20;
        assert!(!met.has(at, version(first, 3)), "no version is noted yet");
        for epoch in [
            first,
            first + 1,
            first + (1 << EPOCH_BITS) - 2,
            first + (1 << EPOCH_BITS),
            first + (1 << 30),
        ] {
            met.note(at, version(epoch, 3));
            let others = [
                version(epoch, 2),
                version(epoch, 4),
                version(epoch + 1, 3),
                version(epoch - 1, 3),
            ];
            let later = version(epoch + (1 << EPOCH_BITS), 3);
            let absent = Tid(version(epoch, 3).0 | Tid::ABSENT);
            assert!(
                met.has(at, version(epoch, 3)) && met.has(at, Tid(version(epoch, 3).0 | Tid::LOCK)),
                "{epoch}"
            );
            assert!(
                !others.into_iter().chain([later, absent]).any(|other| met.has(at, other)),
                "{epoch}"
            );
        }
        assert!(!met.has(at, version(first, 3)), "the filter has been cleared since");
    }
}
