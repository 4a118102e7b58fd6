//! The index of deleted records of an ordered table. This index holds the records of deleted rows
//! that only snapshots can see.
//!
//! In some tables, such as a queue, rows are inserted at one end and deleted at the other. While a
//! snapshot is open, the records of all rows that were deleted since its opening lie before the
//! record of the first present row. A reader of that row would pass these records one by one. So
//! they are moved out of the table's index into this index. Only readers of the past search this
//! index.
//!
//! # Invariants
//! * **DI1** A record that a snapshot may see is in the table's index or in this index: the record
//!   is linked here before it is unlinked there. A reader of the past searches the table's index
//!   first and then this index. So the reader finds the record in at least one of them.
//! * **DI2** This index holds at most one record of a key. A further record of the key stays in the
//!   table's index. Every record stays in the table's index if memory for this index is refused.
//! * **DI3** A record that is only in this index is dead. The record is unlinked and retired once
//!   no snapshot can see it.

#![forbid(unsafe_code)]

use super::node::{Advance, Found, Linked, Retire};
use super::ordered::{Direction, OrderedIndex, Place, Start};
use crate::memory::{Cache, OutOfMemory};
use crate::record::RecordAt;
use crate::schema::WordRange;
use crate::sync::{AtomicUsize, Ordering};

/// The number of records that a reader takes from this index at once, to merge them with the
/// records of the table's index. The number is small, since a reader may want only the first
/// record.
const PREFETCH_BATCH: usize = 32;

/// The index of deleted records of one table.
#[derive(Debug)]
pub(crate) struct DeletedIndex {
    records: OrderedIndex,
    /// The number of records that are here or are being linked here.
    count: AtomicUsize,
}

impl DeletedIndex {
    /// Returns an empty index of deleted records for the table of `index`, with nodes from the same
    /// slab.
    ///
    /// # Errors
    /// If the memory limit leaves no room for a node.
    pub(crate) fn beside(index: &OrderedIndex) -> Result<DeletedIndex, OutOfMemory> {
        let records = OrderedIndex::new(index.nodes().clone(), index.key_words(), 0)?;
        Ok(DeletedIndex { records, count: AtomicUsize::new(0) })
    }

    /// Returns whether this index holds no record that the caller could have missed in the table's
    /// index. The caller has already searched the table's index.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: if a reader has seen that a record has left the table's index (E17), then the
        // reader also sees that the record was counted here before.
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Links `record` in this index. The caller will then unlink `record` from the table's index.
    /// Returns `false` if `record` was not linked: memory was refused, or `key` has a record here
    /// already. The caller is pinned.
    pub(crate) fn enter(
        &self,
        record: RecordAt,
        key: &[u64],
        caches: &mut Vec<Option<Cache>>,
    ) -> bool {
        // DI1: the record is counted before the caller unlinks it from the table's index.
        self.count.fetch_add(1, Ordering::Relaxed);
        let place = (&mut Place::default(), Start::ROOT);
        let linked = self.records.link(record, key, place, caches, &mut Vec::new(), |_| {});
        let is_here = matches!(linked, Ok(Linked::New { .. })); // DI2
        if !is_here {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        is_here
    }

    /// Unlinks a record from this index. The caller is pinned.
    pub(crate) fn leave(&self, record: RecordAt, key: &[u64], retired: &mut Vec<Retire>) {
        self.records.unlink(record, key, retired, |_| {});
        let count = self.count.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(count > 0, "DI3: a record leaves once");
    }

    /// Returns the record with this key; `None` if this index has no such record. The caller is
    /// pinned, and has searched the table's index for the key before.
    pub(crate) fn find(&self, key: &[u64]) -> Option<RecordAt> {
        match self.records.find(key) {
            Found::Record(record) => Some(record),
            Found::Nothing { .. } => None,
        }
    }

    /// Appends the wanted records of `range` to `into`, in direction `direction`, but at most
    /// [`PREFETCH_BATCH`] of them. Returns whether the end of the range was reached. The caller is
    /// pinned, and has searched the range in the table's index before.
    pub(crate) fn list(
        &self,
        range: WordRange,
        direction: Direction,
        into: &mut Vec<RecordAt>,
        is_wanted: &dyn Fn(RecordAt) -> bool,
    ) -> bool {
        let most = into.len() + PREFETCH_BATCH;
        let mut cursor = self.records.cursor(range, direction);
        while into.len() < most {
            match self.records.advance(&mut cursor, &mut |_, _| {}) {
                Advance::Next(record) if is_wanted(record) => into.push(record),
                // `Doomed`: a layer has ended under the cursor, so no record in it is linked any
                // more.
                Advance::Next(_) | Advance::Doomed => {}
                Advance::End => return true,
            }
        }
        false
    }
}
