//! The parts of a session that it keeps from attempt to attempt.

#![forbid(unsafe_code)]

use super::conflict_note::ConflictNote;
use super::garbage::Retired;
use super::observation::ReadView;
use super::table_core::TableCore;
use super::wanted::Wanted;
use crate::epoch::{Moment, Slot};
use crate::index::{NodeChange, Retire};
use crate::memory::Cache;
use crate::record::CellAt;
use crate::stats::TallyPart;
use crate::sync::Random;
use std::sync::Arc;

/// The data that a session keeps from attempt to attempt: the part that is the same under every
/// protocol, and the protocol's part about old versions.
#[derive(Debug)]
pub(crate) struct Worker<V> {
    pub(crate) local: Local,
    pub(crate) versions: V,
}

impl<V: Default> Worker<V> {
    /// Makes the worker of session number `id` of database number `database`, which is pinned
    /// there.
    #[inline]
    pub(crate) fn new(database: u64, id: u64, slot: Arc<Slot>) -> Worker<V> {
        Worker { local: Local::new(database, id, slot), versions: V::default() }
    }
}

/// The part of a session that is the same under every protocol.
#[derive(Debug)]
pub(crate) struct Local {
    /// The session's number, not zero.
    pub(crate) id: u64,
    pub(crate) caches: Vec<Option<Cache>>,
    pub(crate) slot: Arc<Slot>,
    /// The state of the database that the session's transaction sees.
    pub(crate) read_view: ReadView,
    /// The time at which its attempt reads and the moment at which the attempt began, if the
    /// attempt is registered as a snapshot.
    pub(crate) kept: Option<(u64, Moment)>,
    /// By table: its part in the number of records.
    pub(crate) tallies: Vec<Option<Arc<TallyPart>>>,
    pub(crate) random: Random,
    /// Records this attempt has linked; one that is left absent is queued to be reaped.
    pub(crate) linked: Vec<CellAt>,
    /// First cells of absent records that this session has to reap.
    pub(crate) reap_queue: Vec<CellAt>,
    pub(crate) retired: Vec<Retired>,
    /// The parts of an index that the current operation has retired, before they are queued with
    /// the number of their table.
    pub(crate) retired_parts: Vec<Retire>,
    /// Nodes divided by the operation at hand.
    pub(crate) divided: Vec<NodeChange>,
    /// The place of the running attempt's conflict; taken when the attempt has ended.
    pub(crate) conflict: Option<ConflictNote>,
    /// This transaction has waited for the token's holder as long as it must: the holder may be
    /// waiting for it.
    pub(crate) has_yielded: bool,
    /// Whether the session serves a raw iteration, whose attempts are not transactions.
    pub(crate) is_raw: bool,
    /// The units that its attempts so far wanted to lock.
    pub(crate) wanted: Wanted,
}

impl Local {
    fn new(database: u64, id: u64, slot: Arc<Slot>) -> Local {
        Local {
            id,
            slot,
            kept: None,
            caches: Vec::new(),
            read_view: ReadView::Current,
            tallies: Vec::new(),
            random: Random::seeded(database << 32 ^ id),
            linked: Vec::new(),
            reap_queue: Vec::new(),
            retired: Vec::new(),
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
    /// Returns whether the session has absent records to reap, or retired memory, that are to
    /// become garbage.
    #[inline]
    pub(crate) fn leaves_some(&self) -> bool {
        !self.reap_queue.is_empty() || !self.retired.is_empty()
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

    /// Ends the session's share in counting the records of each table.
    #[inline]
    pub(crate) fn leave_tallies(&mut self, tables: &[Arc<TableCore>]) {
        for (table, part) in tables.iter().zip(self.tallies.drain(..)) {
            if part.is_some() {
                table.linked.leave(self.id);
            }
        }
    }

    /// Queues the parts that the index of a table has retired. Most operations retire none.
    #[inline]
    pub(crate) fn retire_parts(&mut self, table: u16) {
        if self.retired_parts.is_empty() {
            return;
        }
        let parts = self.retired_parts.drain(..).map(|part| Retired::Index { table, part });
        self.retired.extend(parts);
    }
}
