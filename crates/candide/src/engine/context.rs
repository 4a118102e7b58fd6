//! The context of a protocol's functions: the database and the session for which a function is
//! called.

#![forbid(unsafe_code)]

use super::common::{Common, Engine};
use super::conflict_note::ConflictNote;
use super::garbage::Retired;
use super::own_thread;
use super::parts::Parts;
use super::table_core::TableCore;
use super::worker::{Local, Worker};
use crate::access::WriteSet;
use crate::epoch::{EPOCH_MAX, Epoch};
use crate::error::Abort;
use crate::factor::Factor;
use crate::index::NodeAt;
use crate::record::{CellAt, RecordAt};

/// The context of a protocol's function: its database and its session.
pub struct Context<'a, P: Parts> {
    pub(crate) engine: &'a Common,
    pub(crate) clock: &'a P::Clock,
    pub(crate) local: &'a mut Local,
    pub(crate) versions: &'a mut P::SessionVersions,
}

impl<'a, P: Parts> Context<'a, P> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn new(
        engine: &'a Engine<P>,
        worker: &'a mut Worker<P::SessionVersions>,
    ) -> Context<'a, P> {
        let Worker { local, versions } = worker;
        Context { engine: &engine.common, clock: &engine.clock, local, versions }
    }

    /// Returns this context with a shorter lifetime.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn again(&mut self) -> Context<'_, P> {
        let Context { engine, clock, local, versions } = self;
        Context { engine, clock, local, versions }
    }

    /// Notes a conflict about the row of the unit `at`, and returns `cause`.
    #[cold]
    pub(crate) fn conflict(&mut self, cause: Abort, at: CellAt) -> Abort {
        let (table, unit, key) = (Some(at.table()), Some(at.unit() as u8), at.key_prefix());
        let is_own_threads =
            cause == Abort::Locked && own_thread::is_held_by_another(at, self.local.id);
        if cause == Abort::Locked {
            self.local.wanted.note_awaited(self.engine, at);
        }
        let nowhere = ConflictNote::nowhere(cause);
        self.local.conflict = Some(ConflictNote { table, unit, key, is_own_threads, ..nowhere });
        cause
    }

    /// Makes the next attempt lock a unit before its closure begins.
    #[cold]
    pub(crate) fn want(&mut self, at: CellAt) {
        self.local.wanted.add(self.engine, at);
    }

    /// Notes a conflict about an absent key of a table, and returns the conflict's cause.
    #[cold]
    pub(crate) fn phantom(&mut self, table: u16) -> Abort {
        self.local.conflict =
            Some(ConflictNote { table: Some(table), ..ConflictNote::nowhere(Abort::Phantom) });
        Abort::Phantom
    }

    /// Notes whether OCC would abort the current commit, if the database counts such commits. A
    /// protocol that may commit what OCC would abort calls this for each attempt that it has
    /// validated.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn note_staleness(&mut self, is_stale: impl FnOnce() -> bool) {
        if self.engine.options.counts_stale() {
            self.local.note_staleness(is_stale());
        }
    }

    /// Refuses to start a writing commit while another session holds the token, unless this
    /// transaction has already waited for the token as long as it must.
    #[inline]
    pub(crate) fn yield_to_token(&self) -> Result<(), Abort> {
        let must_yield = self.engine.token.is_others(self.local.id) && !self.local.has_yielded;
        if must_yield { Err(Abort::Yielded) } else { Ok(()) }
    }

    /// Checks that a commit may be stamped with `epoch`, the current epoch.
    ///
    /// # Errors
    /// [`Abort::VersionsExhausted`] if the commit is logged and `epoch` is the last one. The logger
    /// cannot end that epoch, so a commit in it would never be below a cut.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn check_stamp(&self, epoch: Epoch) -> Result<(), Abort> {
        if epoch == EPOCH_MAX && self.local.is_logged {
            return Err(Abort::VersionsExhausted);
        }
        Ok(())
    }

    /// Reserves memory for the queue entries that a commit may add, so that nothing is allocated
    /// while locks are held.
    #[inline]
    pub(crate) fn reserve_for(&mut self, writes: &WriteSet) {
        self.local.reap_queue.reserve(writes.items().len());
    }

    /// Sorts a write set that is about to be locked, if the database was built to sort them.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn sort_writes(&mut self, writes: &mut WriteSet) {
        let factors = self.engine.options.factors;
        if factors.has(Factor::SortedLocks) {
            writes.sort();
        }
        if factors.has(Factor::SortedKeys) {
            self.sort_by_keys(writes);
        }
    }

    #[cold]
    #[inline(never)]
    fn sort_by_keys(&mut self, writes: &mut WriteSet) {
        let last = writes.items().iter().map(|item| item.at.table()).max();
        let count = last.map_or(0, |last| usize::from(last) + 1);
        let known = &self.local.known_tables;
        let tables = known.take(self.engine, count);
        writes.sort_by_keys(|table| tables[usize::from(table)].layout.key_words());
        known.give_back(tables);
    }

    /// Unlinks a record from its index. The record is freed once no reader can hold it.
    #[inline]
    pub(crate) fn unlink(
        &mut self,
        record: RecordAt,
        table: &TableCore,
        merge_into_node: impl FnOnce(NodeAt),
    ) {
        self.remove_from_index(record, table, merge_into_node);
        self.local.retired.push(Retired::Record { table: table.number, record });
    }

    /// Removes a record from its index, but not its memory.
    #[inline]
    pub(super) fn remove_from_index(
        &mut self,
        record: RecordAt,
        table: &TableCore,
        merge_into_node: impl FnOnce(NodeAt),
    ) {
        let key = record.key_words(table.layout.key_words());
        table.index.unlink(record, key.as_slice(), &mut self.local.retired_parts, merge_into_node);
        self.local.count_linked(table, false);
        self.local.retire_parts(table.number);
    }
}
