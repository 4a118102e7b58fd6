//! The index of deleted records of an ordered table: an index of the records of deleted rows that
//! only snapshots see.
//!
//! Where rows come at one end of a table and go at the other, as in a queue, all that have gone
//! while a snapshot is open lie before the first that is there, and a reader that looks for that
//! would pass them, one by one. So they are taken out of the table's index, and put into one that
//! only readers of the past look at.
//!
//! # Invariants
//! * **DI1** A record that a snapshot may see is in the table's index or here: it comes here before
//!   it leaves there. So a reader of the past looks there first, and then here, and finds it in one
//!   of them, or in both.
//! * **DI2** There is one record of a key here at most. The next one stays in the table's index, as
//!   all do if there is no memory for this.
//! * **DI3** A record that is here alone is dead. It leaves once no snapshot can see it, and is
//!   then retired.

#![forbid(unsafe_code)]

use super::node::{Advance, Found, Linked, Retire};
use super::ordered::{Direction, OrderedIndex, Place, Start};
use crate::memory::{Cache, OutOfMemory};
use crate::record::RecordAt;
use crate::schema::WordRange;
use crate::sync::{AtomicUsize, Ordering};

/// The number of records of this index that are merged at once with the records of the table's
/// index. It is small, for readers that want only the first record.
const PREFETCH_BATCH: usize = 32;

/// The index of deleted records of one table.
#[derive(Debug)]
pub(crate) struct DeletedIndex {
    records: OrderedIndex,
    /// The number of records in the index, including those that are being added.
    count: AtomicUsize,
}

impl DeletedIndex {
    /// Makes the index of deleted records for a table's index, with nodes from the same slab.
    ///
    /// # Errors
    /// If the memory limit leaves no room for a node.
    pub(crate) fn beside(index: &OrderedIndex) -> Result<DeletedIndex, OutOfMemory> {
        let records = OrderedIndex::new(index.nodes().clone(), index.key_words(), 0)?;
        Ok(DeletedIndex { records, count: AtomicUsize::new(0) })
    }

    /// Returns whether nothing is here that the caller does not find in the table's index, after
    /// having looked there.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: a reader that has seen that a record has left the table's index (E17) sees that
        // it had been counted here.
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Puts a record here, which the caller is going to take out of the table's index, unless there
    /// is no room for it; returns whether it did. The caller is pinned.
    pub(crate) fn enter(
        &self,
        record: RecordAt,
        key: &[u64],
        caches: &mut Vec<Option<Cache>>,
    ) -> bool {
        // DI1: before the caller takes it out there.
        self.count.fetch_add(1, Ordering::Relaxed);
        let place = (&mut Place::default(), Start::ROOT);
        let linked = self.records.link(record, key, place, caches, &mut Vec::new(), |_| {});
        let is_here = matches!(linked, Ok(Linked::New { .. })); // DI2
        if !is_here {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        is_here
    }

    /// Takes a record away from here. The caller is pinned.
    pub(crate) fn leave(&self, record: RecordAt, key: &[u64], retired: &mut Vec<Retire>) {
        self.records.unlink(record, key, retired, |_| {});
        let count = self.count.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(count > 0, "DI3: a record leaves once");
    }

    /// Returns the record with this key. The caller is pinned, and has looked for it in the table's
    /// index.
    pub(crate) fn find(&self, key: &[u64]) -> Option<RecordAt> {
        match self.records.find(key) {
            Found::Record(record) => Some(record),
            Found::Nothing { .. } => None,
        }
    }

    /// Adds the records of a range that are wanted, in this direction, up to the end or as many as
    /// are looked at together; returns whether it reached the end. The caller is pinned, and has
    /// looked through the range in the table's index.
    pub(crate) fn list(
        &self,
        range: WordRange,
        direction: Direction,
        into: &mut Vec<RecordAt>,
        is_wanted: impl Fn(RecordAt) -> bool,
    ) -> bool {
        let most = into.len() + PREFETCH_BATCH;
        let mut cursor = self.records.cursor(range, direction);
        while into.len() < most {
            match self.records.advance(&mut cursor, &mut |_, _| {}) {
                Advance::Next(record) if is_wanted(record) => into.push(record),
                // Or a layer has ended under the cursor, so nothing in it is linked any more.
                Advance::Next(_) | Advance::Doomed => {}
                Advance::End => return true,
            }
        }
        false
    }
}
