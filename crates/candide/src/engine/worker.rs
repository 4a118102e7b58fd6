//! The parts of a session that it keeps from attempt to attempt.

#![forbid(unsafe_code)]

use super::conflict_note::ConflictNote;
use super::garbage::Retired;
use super::garbage::UndoEntry;
use super::observation::ReadView;
use super::table_core::{BlockSize, TableCore};
use super::wanted::Wanted;
use crate::epoch::{Moment, Slot};
use crate::index::{NodeChange, Retire};
use crate::memory::{Block, Cache, SlabId};
use crate::record::CellAt;
use crate::stats::TallyPart;
use crate::sync::Random;
use std::sync::Arc;

/// What a session knows that looks at what was put aside.
#[derive(Debug, Default)]
pub(crate) struct Looking {
    /// The session is counted among those that prune chains.
    pub(crate) is_listed: bool,
    /// So is another session.
    pub(crate) others_are: bool,
    /// All attempts that run have reached this timestamp, but for those which see what an open
    /// snapshot keeps.
    pub(crate) reached: u64,
    /// The units of chains that others were just changing, by their addresses: they are not looked
    /// through again by this collection.
    pub(crate) in_the_way: Vec<u64>,
    /// The chain that it looks through.
    pub(crate) chain: Vec<Block>,
    /// What a unit was.
    pub(crate) image: Vec<u64>,
}

/// What one session keeps for itself from attempt to attempt.
#[derive(Debug)]
pub(crate) struct Local {
    /// The session's number, not zero.
    pub(crate) id: u64,
    pub(crate) caches: Vec<Option<Cache>>,
    /// By table: the slabs of its versions, once the session has made one of them.
    pub(crate) version_slabs: Vec<[Option<SlabId>; 2]>,
    pub(crate) slot: Arc<Slot>,
    /// What the session's transaction is to see.
    pub(crate) read_view: ReadView,
    /// If what its attempt sees is kept like a snapshot: its time, and the moment at which it
    /// began.
    pub(crate) kept: Option<(u64, Moment)>,
    /// The timestamps of open snapshots in falling order, as of the last time this session began to
    /// collect.
    pub(crate) snapshots: Vec<u64>,
    /// By table: its part in the number of records.
    pub(crate) tallies: Vec<Option<Arc<TallyPart>>>,
    pub(crate) random: Random,
    /// Records this attempt has linked; one that is left absent is queued for burial.
    pub(crate) linked: Vec<CellAt>,
    /// First cells of absent records that this session has to bury.
    pub(crate) reap_queue: Vec<CellAt>,
    /// Units that have been written for the first time since an open snapshot, whose timestamp
    /// comes with them.
    pub(crate) parked: Vec<(u64, CellAt)>,
    pub(crate) retired: Vec<Retired>,
    /// What commits have put aside, in the order of their timestamps.
    pub(crate) undo_entries: Vec<UndoEntry>,
    pub(crate) looking: Looking,
    /// What the index has left behind in the operation at hand, until it is known of which table.
    pub(crate) retired_parts: Vec<Retire>,
    /// Nodes divided by the operation at hand.
    pub(crate) divided: Vec<NodeChange>,
    /// Where the running attempt has met a conflict; taken when it has ended.
    pub(crate) conflict: Option<ConflictNote>,
    /// This transaction has waited for the token's holder as long as it must: the holder may be
    /// waiting for it.
    pub(crate) has_yielded: bool,
    /// Whether raw iteration uses it, whose attempts are no transactions.
    pub(crate) is_raw: bool,
    /// What its attempts so far wanted to lock.
    pub(crate) wanted: Wanted,
}

impl Local {
    /// For session number `id` of database number `database`, which is pinned there.
    pub(crate) fn new(database: u64, id: u64, slot: Arc<Slot>) -> Local {
        Local {
            id,
            slot,
            kept: None,
            caches: Vec::new(),
            version_slabs: Vec::new(),
            read_view: ReadView::Current,
            snapshots: Vec::new(),
            tallies: Vec::new(),
            random: Random::seeded(database << 32 ^ id),
            linked: Vec::new(),
            reap_queue: Vec::new(),
            parked: Vec::new(),
            retired: Vec::new(),
            undo_entries: Vec::new(),
            looking: Looking::default(),
            retired_parts: Vec::new(),
            divided: Vec::new(),
            conflict: None,
            has_yielded: false,
            is_raw: false,
            wanted: Wanted::default(),
        }
    }
}

impl Local {
    /// Whether it has left something behind that its garbage has to take over.
    #[inline]
    pub(crate) fn leaves_some(&self) -> bool {
        !self.undo_entries.is_empty()
            || !self.reap_queue.is_empty()
            || !self.retired.is_empty()
            || !self.parked.is_empty()
    }

    /// Counts a record that has come into the index of a table, or gone from it.
    #[inline]
    pub(crate) fn count_linked(&mut self, table: &TableCore, up: bool) {
        match self.tallies.get(usize::from(table.number)) {
            Some(Some(part)) => part.count(up),
            _ => self.begin_tally(table).count(up),
        }
    }

    #[cold]
    fn begin_tally(&mut self, table: &TableCore) -> &TallyPart {
        let number = usize::from(table.number);
        if self.tallies.len() <= number {
            self.tallies.resize_with(number + 1, || None);
        }
        self.tallies[number].get_or_insert_with(|| table.linked.join(self.id))
    }

    /// Hands over what it has counted.
    pub(crate) fn leave_tallies(&mut self, tables: &[Arc<TableCore>]) {
        for (table, part) in tables.iter().zip(self.tallies.drain(..)) {
            if part.is_some() {
                table.linked.leave(self.id);
            }
        }
    }

    /// Queues what the index of a table has left behind, which mostly is nothing.
    #[inline]
    pub(crate) fn retire_parts(&mut self, table: u16) {
        if self.retired_parts.is_empty() {
            return;
        }
        let parts = self.retired_parts.drain(..).map(|part| Retired::Index { table, part });
        self.retired.extend(parts);
    }
}

impl Local {
    /// The session's cache of blocks for a table's versions, once it has asked for one of this
    /// size.
    #[inline]
    pub(crate) fn version_cache(&mut self, table: u16, size: BlockSize) -> Option<&mut Cache> {
        let slab = self.version_slabs.get(usize::from(table))?[size as usize];
        self.caches.get_mut(slab?.0 as usize)?.as_mut()
    }
}
