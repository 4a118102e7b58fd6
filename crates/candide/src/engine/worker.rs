//! The data that a session keeps from attempt to attempt.

#![forbid(unsafe_code)]

use super::common::Common;
use super::conflict_note::ConflictNote;
use super::garbage::Retired;
use super::late_scratch::{KnownTables, LateScratch};
use super::observation::ReadView;
use super::table_core::TableCore;
use super::values::Values;
use super::wanted::Wanted;
use crate::epoch::Slot;
use crate::index::{NodeChange, Retire};
use crate::memory::Cache;
use crate::record::CellAt;
use crate::record::value::Value;
use crate::stats::TallyPart;
use crate::sync::Random;
use std::sync::Arc;

/// The data that one session keeps from attempt to attempt: a part independent of the protocol, and
/// a part about old versions.
#[derive(Debug)]
pub(crate) struct Worker<V> {
    pub(crate) local: Local,
    pub(crate) versions: V,
}

impl<V: Default> Worker<V> {
    /// Creates the worker of session `id` of database `database`. The session pins through `slot`.
    #[inline]
    pub(crate) fn new(database: u64, id: u64, slot: Arc<Slot>) -> Worker<V> {
        Worker { local: Local::new(database, id, slot), versions: V::default() }
    }
}

/// The data of a session that are independent of the protocol.
#[derive(Debug)]
pub(crate) struct Local {
    /// The session's number, not zero.
    pub(crate) id: u64,
    pub(crate) caches: Vec<Option<Cache>>,
    pub(crate) slot: Arc<Slot>,
    /// The view of the session's current transaction.
    pub(crate) read_view: ReadView,
    /// For each table, the session's part of the number of linked records; `None` if the session
    /// has counted none.
    pub(crate) tallies: Vec<Option<Arc<TallyPart>>>,
    pub(crate) random: Random,
    /// The first cells of the records that this attempt has linked. A record that is left absent is
    /// queued to be reaped.
    pub(crate) linked: Vec<CellAt>,
    /// The first cells of absent records that this session has to reap.
    pub(crate) reap_queue: Vec<CellAt>,
    pub(crate) retired: Vec<Retired>,
    /// Memory that an index has retired in the current operation. [`Local::retire_parts`] adds the
    /// number of the table.
    pub(crate) retired_parts: Vec<Retire>,
    /// The nodes that the current index operation has divided.
    pub(crate) divided: Vec<NodeChange>,
    /// The places that the attempt has changed and that sessions watch, one bit for each class of
    /// places; their sessions are woken when the attempt has ended.
    pub(crate) changed_places: u64,
    /// The values outside of records that the attempt writes.
    pub(crate) values: Values,
    pub(crate) late: LateScratch,
    pub(crate) known_tables: Arc<KnownTables>,
    /// The conflict of the running attempt; `None` if there was none. Taken when the attempt has
    /// ended.
    pub(crate) conflict: Option<ConflictNote>,
    /// Whether this transaction has waited for the token's holder as long as it must. The holder
    /// itself may be waiting for this transaction.
    pub(crate) has_yielded: bool,
    /// Whether the session belongs to a raw iteration. The attempts of a raw iteration are no
    /// transactions.
    pub(crate) is_raw: bool,
    /// Whether the session's commits are logged.
    pub(crate) is_logged: bool,
    /// The units that earlier attempts of the current transaction wanted to lock.
    pub(crate) wanted: Wanted,
    /// Whether OCC would have aborted the last commit; false if the database does not count such
    /// commits.
    is_stale: bool,
}

impl Local {
    fn new(database: u64, id: u64, slot: Arc<Slot>) -> Local {
        Local {
            id,
            slot,
            caches: Vec::new(),
            read_view: ReadView::Current,
            tallies: Vec::new(),
            random: Random::seeded(database << 32 ^ id),
            linked: Vec::new(),
            reap_queue: Vec::new(),
            retired: Vec::new(),
            retired_parts: Vec::new(),
            divided: Vec::new(),
            changed_places: 0,
            values: Values::default(),
            late: LateScratch::default(),
            known_tables: Arc::default(),
            conflict: None,
            has_yielded: false,
            is_raw: false,
            is_logged: false,
            wanted: Wanted::default(),
            is_stale: false,
        }
    }
}

impl Local {
    /// Returns whether OCC would have aborted the last commit, which only builds for experiments
    /// find out.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_stale(&self) -> bool {
        cfg!(any(test, feature = "experiments")) && self.is_stale
    }

    /// Notes whether OCC would have aborted the current commit.
    #[cold]
    pub(crate) fn note_staleness(&mut self, is_stale: bool) {
        self.is_stale = is_stale;
    }

    /// Frees memory that no reader can reach any more. A boxed value is left to the session, which
    /// drops it later.
    pub(crate) fn free(&mut self, retired: Retired, common: &Common, tables: &[Arc<TableCore>]) {
        if let Some(value) = retired.free(tables, &mut self.caches) {
            self.discard(value, common);
        }
    }

    /// Frees a value that no reader can reach any more, as [`Local::free`] does.
    #[inline]
    pub(crate) fn discard(&mut self, value: Value, common: &Common) {
        self.values.discard(value, common.long_memory(), &mut self.caches);
    }

    /// Returns whether the session has left queue entries or memory that its garbage must take
    /// over, or has to wake other sessions.
    #[inline]
    pub(crate) fn leaves_some(&self) -> bool {
        !self.reap_queue.is_empty() || !self.retired.is_empty() || self.changed_places != 0
    }

    /// Notes that places have changed that sessions watch (WT6).
    #[cold]
    #[inline(never)]
    pub(crate) fn note_changed(&mut self, places: u64) {
        self.changed_places |= places;
    }

    /// Counts a record that has been linked in the index of a table (if `up`) or unlinked from that
    /// index (if not).
    #[inline]
    pub(crate) fn count_linked(&mut self, table: &TableCore, up: bool) {
        match self.tallies.get(usize::from(table.number)) {
            Some(Some(part)) => part.count(up),
            _ => self.begin_tally(table).count(up),
        }
    }

    /// Makes sure that [`Local::count_linked`] allocates nothing for a table.
    #[cold]
    pub(crate) fn prepare_to_count(&mut self, table: &TableCore) {
        if !matches!(self.tallies.get(usize::from(table.number)), Some(Some(_))) {
            self.begin_tally(table);
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

    /// Hands over the session's counts of linked records.
    #[inline]
    pub(crate) fn leave_tallies(&mut self, tables: &[Arc<TableCore>]) {
        for (table, part) in tables.iter().zip(self.tallies.drain(..)) {
            if part.is_some() {
                table.linked.leave(self.id);
            }
        }
    }

    /// Moves the memory that the index of a table has retired from `retired_parts` to `retired`.
    /// Usually the list is empty.
    #[inline]
    pub(crate) fn retire_parts(&mut self, table: u16) {
        if self.retired_parts.is_empty() {
            return;
        }
        let parts = self.retired_parts.drain(..).map(|part| Retired::Index { table, part });
        self.retired.extend(parts);
    }
}
