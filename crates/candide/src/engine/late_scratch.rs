//! What a session keeps for commits that compute keys.

#![forbid(unsafe_code)]

use super::common::Common;
use super::table_core::TableCore;
use crate::access::LateRow;
use crate::sync::{Mutex, Ordering, lock};
use std::sync::{Arc, PoisonError};

/// The late rows of a commit, and their tables. Empty between commits.
#[derive(Debug, Default)]
pub(crate) struct LateScratch {
    /// The rows, in the order of the program.
    pub(crate) rows: Vec<LateRow>,
    /// The numbers of their tables, each with its number of rows.
    pub(crate) counts: Vec<(u16, usize)>,
    /// The tables of the database by number, as far as the session has met them.
    pub(crate) tables: Vec<Arc<TableCore>>,
}

/// The tables of a database by number, as far as a session has met them. So a commit takes no lock,
/// and changes no word, that sessions share.
///
/// The database empties the list at its end, since a thread may keep its session for longer. Before
/// that, only the session locks it.
#[derive(Debug, Default)]
pub(crate) struct KnownTables(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    tables: Vec<Arc<TableCore>>,
    /// [`Common::reuses`] when the list was made.
    reuses: u64,
}

impl KnownTables {
    /// Takes the list, which has at least `count` tables then.
    pub(crate) fn take(&self, common: &Common, count: usize) -> Vec<Arc<TableCore>> {
        let known = &mut *lock(&self.0);
        let mut tables = std::mem::take(&mut known.tables);
        // Relaxed: a thread that knows a table with a used number sees the count.
        let reuses = common.reuses.load(Ordering::Relaxed);
        if tables.len() < count || reuses != known.reuses {
            known.reuses = reuses;
            tables.clone_from(&common.tables.read().unwrap_or_else(PoisonError::into_inner));
        }
        tables
    }

    /// Gives the list back that was taken.
    pub(crate) fn give_back(&self, tables: Vec<Arc<TableCore>>) {
        lock(&self.0).tables = tables;
    }

    /// Empties the list.
    pub(crate) fn clear(&self) {
        let tables = std::mem::take(&mut lock(&self.0).tables);
        drop(tables);
    }
}
