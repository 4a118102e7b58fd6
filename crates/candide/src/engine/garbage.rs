//! Garbage: the memory, records and versions that transactions leave behind, and the outcomes of
//! collecting them.

#![forbid(unsafe_code)]

use super::snapshot_outcome::SnapshotOutcome;
use super::table_core::{BlockSize, TableCore};
use crate::epoch::Epoch;
use crate::index::Retire;
use crate::memory::{Block, Cache};
use crate::record::value::Value;
use crate::record::{CellAt, RecordAt};
use crate::sync::MODELLED;
use std::fmt::Debug;
use std::sync::Arc;

/// Memory that is unlinked, so that readers that begin now cannot reach it.
#[derive(Debug)]
pub(crate) enum Retired {
    Record { table: u16, record: RecordAt },
    Version { table: u16, size: BlockSize, block: Block },
    Index { table: u16, part: Retire },
    Value(Value),
}

impl Retired {
    /// Returns whether the memory belongs to the table with this number.
    pub(crate) fn names(&self, number: u16) -> bool {
        match self {
            Retired::Record { table, .. }
            | Retired::Version { table, .. }
            | Retired::Index { table, .. } => *table == number,
            Retired::Value(_) => false,
        }
    }

    /// Frees the memory, which no reader can reach any more. A value is returned.
    pub(super) fn free(
        self,
        tables: &[Arc<TableCore>],
        caches: &mut Vec<Option<Cache>>,
    ) -> Option<Value> {
        match self {
            Retired::Record { table, record } => {
                let slab = &tables[usize::from(table)].records;
                Cache::of(caches, slab).free(slab, record.block());
            }
            Retired::Version { table, size, block } => {
                let slab = tables[usize::from(table)].version_slab(size);
                Cache::of(caches, slab).free(slab, block);
            }
            Retired::Index { table, part: Retire::Block(block) } => {
                let slab = tables[usize::from(table)].index.blocks();
                Cache::of(caches, slab).free(slab, block);
            }
            Retired::Index { part: Retire::Array(array), .. } => drop(array),
            Retired::Value(value) => return Some(value),
        }
        None
    }
}

/// A queue entry of a session: an absent record to reap, or a unit with several versions, whose old
/// versions are to be collected.
#[derive(Debug, Clone, Copy)]
pub struct Due {
    /// The first unit of the absent record, or the unit with several versions.
    pub(crate) at: CellAt,
    /// The epoch in which the entry was queued: a stamp (EP2) that was read after the entry's
    /// record became absent, or after the record's first cell lost REQUEUE. So if the epoch is
    /// behind the horizon, all attempts have ended that may have found the record as it was before.
    pub(crate) queued: Epoch,
    /// The bound on begin timestamps ([`begin_ts_bound`](super::Protocol::begin_ts_bound)) that was
    /// read before that epoch.
    pub(crate) time: u64,
    /// The protocol's note for its next examination of the entry; zero before the first
    /// examination.
    pub(crate) note: u64,
    /// Whether the entry has waited for a snapshot to close ([`SnapshotOutcome::Kept`]).
    pub(crate) is_parked: bool,
}

/// The largest number of versions that are removed from a chain at once. The number is small
/// because a writer of the unit has to wait meanwhile.
pub(crate) const VERSIONS_AT_ONCE: usize = if MODELLED { 2 } else { 256 };

/// The outcome of examining a queue entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcOutcome {
    /// The record is dead now and may be unlinked.
    Dead,
    /// The record holds a row again, so the queue drops the entry.
    Alive,
    /// A transaction may still depend on the record or version; the entry is examined again later.
    NotYet,
    /// The unit is locked, so it could not be examined. The next collection examines this entry
    /// first.
    Busy,
    /// The chain has more old versions than are removed at once ([`VERSIONS_AT_ONCE`]). The entry
    /// is examined again after other entries.
    Unfinished,
    /// The entry is [settled](super::settle) as the open snapshots require.
    OfSnapshots(SnapshotOutcome),
}
