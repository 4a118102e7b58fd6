//! Garbage: what transactions leave behind, and what becomes of it.

#![forbid(unsafe_code)]

use super::table_core::{BlockSize, TableCore};
use crate::epoch::Epoch;
use crate::index::Retire;
use crate::memory::{Block, Cache};
use crate::record::{CellAt, RecordAt};
use crate::sync::MODELLED;
use std::fmt::Debug;
use std::sync::Arc;

/// Memory that no new reader can reach.
#[derive(Debug)]
pub(crate) enum Retired {
    Record { table: u16, record: RecordAt },
    Version { table: u16, size: BlockSize, block: Block },
    Index { table: u16, part: Retire },
}

impl Retired {
    /// Frees the memory, which no reader can reach any more.
    pub(crate) fn free(self, tables: &[Arc<TableCore>], caches: &mut Vec<Option<Cache>>) {
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
        }
    }
}

/// An absent record that a session has to reap; or a unit with more than one version, of which it
/// has to collect the old ones.
#[derive(Debug, Clone, Copy)]
pub struct Due {
    /// The first unit of the record, or the unit.
    pub(crate) at: CellAt,
    /// The epoch in which it was queued.
    pub(crate) queued: Epoch,
    /// The result of [`Protocol::begin_ts_bound`](super::Protocol::begin_ts_bound) before that
    /// epoch was read.
    pub(crate) time: u64,
    /// The protocol's note for the next time that the entry is examined; zero before the first
    /// time.
    pub(crate) note: u64,
    /// It has waited for a snapshot to close ([`GcOutcome::Kept`]).
    pub(crate) is_parked: bool,
}

/// The most versions that are taken out of a chain at once: few enough for a writer of the unit to
/// wait for.
pub(crate) const VERSIONS_AT_ONCE: usize = if MODELLED { 2 } else { 256 };

/// The outcome of examining a queued entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcOutcome {
    /// It is dead now and may be unlinked.
    Dead,
    /// It is a row again; the queue forgets it.
    Alive,
    /// A transaction may still depend on it; try again later.
    NotYet,
    /// It is locked, so nothing is known of it; it is the first to be tried next time.
    Busy,
    /// More is left than is taken out of a chain at once ([`VERSIONS_AT_ONCE`]); go on when others
    /// have had their turn.
    Unfinished,
    /// Nothing is left to do before the open snapshot of this timestamp has closed.
    Kept(u64),
    /// The same, and only snapshots see the record: it may be [put out of the
    /// way](Protocol::detach_for_snapshots).
    MoveToDeletedIndex(u64),
    /// It was moved to the index of deleted records, and no snapshot sees it any more.
    Expired,
}
