//! Dropped tables, whose numbers and memory later tables get: of a table with its declared indexes,
//! one of the same row type, and of the entries of another index, those of any index with keys of
//! as many words.

#![forbid(unsafe_code)]

use super::options::{Made, TableOptions};
use crate::engine::{Common, TableCore};
use crate::policy::Policy;
use crate::schema::Group;
use crate::sync::{Mutex, Ordering, lock};
use std::any::TypeId;
use std::sync::Arc;

/// Dropped tables.
#[derive(Debug, Default)]
pub(super) struct Former {
    /// Tables whose rows have been deleted, and that garbage may still name.
    waiting: Mutex<Vec<FormerTable>>,
    free: Mutex<Vec<FormerTable>>,
}

/// A dropped table and the entries of its declared indexes, or the entries of an index.
#[derive(Debug)]
pub(crate) struct FormerTable {
    /// The row type; `None` if these are the entries of an index.
    pub(super) of: Option<(TypeId, FormerOptions)>,
    pub(super) cores: Vec<Arc<TableCore>>,
}

/// The options on which the layout of a table depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FormerOptions {
    made: Made,
    ordered: bool,
    splitting: Option<bool>,
    policy: Policy,
    has_values: bool,
}

impl FormerOptions {
    pub(super) fn of(options: &TableOptions, common: &Common, policy: Policy) -> FormerOptions {
        let TableOptions { ordered, splitting, has_values, .. } = *options;
        FormerOptions { made: options.made(common), ordered, splitting, policy, has_values }
    }
}

impl Former {
    /// Notes dropped tables without rows.
    pub(super) fn add(&self, former: Vec<FormerTable>) {
        lock(&self.waiting).extend(former);
    }

    /// Returns whether there are dropped tables that garbage may still name.
    pub(super) fn has_waiting(&self) -> bool {
        !lock(&self.waiting).is_empty()
    }

    /// Frees the dropped tables all of whose cores `is_unnamed` allows.
    pub(super) fn free(&self, is_unnamed: impl Fn(&TableCore) -> bool) {
        let mut waiting = lock(&self.waiting);
        let is_free = |former: &mut FormerTable| former.cores.iter().all(|core| is_unnamed(core));
        lock(&self.free).extend(waiting.extract_if(.., is_free));
    }

    /// Returns the cores of a dropped table with rows of this type and these options, which is
    /// free; an empty list if there is none. The caller prevents other threads from making tables.
    pub(super) fn find(&self, row: TypeId, options: FormerOptions) -> Vec<Arc<TableCore>> {
        let free = lock(&self.free);
        let found = free.iter().find(|former| former.of == Some((row, options)));
        found.map_or_else(Vec::new, |former| former.cores.clone())
    }

    /// Returns the free table of a dropped index's entries that have keys of `key_words` words and
    /// these groups, in order or not. The caller prevents other threads from making tables.
    pub(super) fn find_entries(
        &self,
        key_words: usize,
        groups: &[Group],
        ordered: bool,
    ) -> Option<Arc<TableCore>> {
        let free = lock(&self.free);
        let is_alike = |core: &TableCore| {
            core.layout.key_words() == key_words
                && core.groups == groups
                && core.index.is_ordered() == ordered
        };
        let mut entries = free.iter().filter(|former| former.of.is_none());
        entries.find(|former| is_alike(&former.cores[0])).map(|former| former.cores[0].clone())
    }

    /// Adds new tables to those of the database, or puts them in the places of the dropped ones
    /// that [`Former::find`] has found.
    pub(super) fn replace(
        &self,
        common: &Common,
        tables: &mut Vec<Arc<TableCore>>,
        cores: Vec<Arc<TableCore>>,
    ) {
        let is_new = |of: &FormerTable| of.cores[0].number != cores[0].number;
        lock(&self.free).retain(is_new);
        for core in cores {
            match tables.get_mut(usize::from(core.number)) {
                Some(former) => {
                    *former = core;
                    // Relaxed: the table is found behind a lock that the caller holds.
                    common.reuses.fetch_add(1, Ordering::Relaxed);
                }
                None => tables.push(core),
            }
        }
    }
}
