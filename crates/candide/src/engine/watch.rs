//! One session's watch of what its attempt has observed (`watchers.rs` has the invariants).

#![forbid(unsafe_code)]

use super::common::Common;
use super::table_core::TableCore;
use super::watchers::{EVERYWHERE, class_of, class_of_links};
use crate::index::NodeAt;
use crate::record::{CellAt, Tid};
use crate::sync::{Instant, Ordering, Signal};
use std::sync::Arc;

/// The reason why an attempt cannot sleep until something changes.
#[derive(Debug, Clone, Copy)]
pub enum Unwatched {
    /// Something has changed since the attempt observed it.
    Changed,
    /// Another session has locked a unit that the attempt has observed.
    Locked(CellAt),
}

/// What an attempt watches. Dropping this value ends the watch.
#[derive(Debug)]
pub struct Watch<'e> {
    engine: &'e Common,
    places: u64,
    woken: Arc<Signal<bool>>,
    /// The tables in which the watch is counted.
    tables: Vec<Arc<TableCore>>,
}

impl<'e> Watch<'e> {
    /// Adds an entry to the list of watchers. Until [`Watch::begin_sleep`], every change wakes it.
    pub(crate) fn begin(engine: &'e Common) -> Watch<'e> {
        Watch { engine, places: 0, woken: engine.watchers.enter(), tables: Vec::new() } // WT1
    }

    /// Adds a unit.
    pub(crate) fn add_cell(&mut self, at: CellAt) {
        self.places |= class_of(at.address());
    }

    /// Adds a unit whose cell is locked by flags in its first word, and raises WATCHED in that
    /// word. `is_seen` returns whether a word, which has just been loaded with Acquire, is of the
    /// version that was observed.
    pub(crate) fn add_lockable(
        &mut self,
        at: CellAt,
        is_seen: impl Fn(Tid) -> bool,
    ) -> Result<(), Unwatched> {
        let cell = at.cell_word(0);
        self.add_cell(at);
        loop {
            let tid = Tid(cell.load(Ordering::Acquire)); // E3
            if tid.has(Tid::DEAD) || !is_seen(tid) {
                return Err(Unwatched::Changed);
            }
            if tid.has(Tid::LOCK | Tid::INSTALL) {
                return Err(Unwatched::Locked(at));
            }
            if tid.has(Tid::ABSENT) {
                self.add_links(at.table());
            }
            // Release: a session that links a record for the key of an absent record, which it has
            // found removed, sees the count in the table (E30). The exchange is made even if the
            // flag is set already.
            let watched = tid.0 | Tid::WATCHED; // WT2
            if cell.compare_exchange(tid.0, watched, Ordering::Release, Ordering::Relaxed).is_ok() {
                return Ok(());
            }
        }
    }

    /// Adds the links of records in a table.
    pub(crate) fn add_links(&mut self, table: u16) {
        self.places |= class_of_links(table);
        if self.tables.iter().all(|counted| counted.number != table) {
            let table = self.engine.table(table);
            table.at_links.watchers.fetch_add(1, Ordering::Relaxed); // WT3
            self.tables.push(table);
        }
    }

    /// Adds the links of records at nodes: each with the table, and the version that was observed.
    pub(crate) fn add_nodes(
        &mut self,
        mut nodes: impl Iterator<Item = (u16, NodeAt, u64)>,
    ) -> Result<(), Unwatched> {
        nodes.try_for_each(|(table, node, version)| {
            self.add_links(table);
            node.confirm_version(version).then_some(()).ok_or(Unwatched::Changed) // WT3
        })
    }

    /// Adds all changes of the database. The caller excludes all other transactions.
    pub(crate) fn add_everything(&mut self) {
        self.places = EVERYWHERE;
    }

    /// Limits the entry to the places that have been added.
    pub(crate) fn begin_sleep(&self) {
        self.engine.watchers.limit(&self.woken, self.places);
    }

    /// Sleeps until a place that is watched may have changed. Returns `false` if that has not
    /// happened by `until`.
    pub(crate) fn sleep(&self, until: Option<Instant>) -> bool {
        self.woken.await_call(until, |woken| woken.then_some(())).is_some() // WT4
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.engine.watchers.leave(&self.woken);
        for table in &self.tables {
            table.at_links.watchers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
