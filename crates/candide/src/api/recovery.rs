//! Recovery: rows and changes from files become rows of tables whose row types are not known yet.
//!
//! The rows go through ordinary transactions, many at once, since no session of the program exists
//! yet and nothing is logged before the end of recovery.

#![forbid(unsafe_code)]

use super::changes::{self, ChangedTable, Failure};
use super::session::Session;
use crate::engine::Protocol;
use crate::handle::Handle;
use crate::sync::{Mutex, lock};
use candide_log::format::commit::{Change, ChangeKind};
use candide_log::format::long_row::LongRow;
use candide_log::schema::TableSchema;
use candide_log::{LoadError, Loader, OpenError, Target};
use std::collections::BTreeMap;

/// The number of words of changes that a loader collects for one transaction.
const BATCH_WORDS: usize = 4096;

/// The database that is being recovered.
pub(crate) struct Recovery<'a, P: Protocol> {
    inner: &'a Handle<P>,
    /// The recovered tables by their numbers in the log.
    tables: Mutex<BTreeMap<u32, ChangedTable>>,
}

impl<'a, P: Protocol> Recovery<'a, P> {
    pub(crate) fn new(inner: &'a Handle<P>) -> Recovery<'a, P> {
        Recovery { inner, tables: Mutex::default() }
    }
}

impl<P: Protocol> Target for Recovery<'_, P> {
    fn table(&self, schema: &TableSchema) -> Result<(), OpenError> {
        let (catalog, common) = (&self.inner.catalog, &self.inner.engine.common);
        let core = catalog
            .recovered(common, schema)
            .map_err(|error| OpenError::Target(Box::new(error)))?;
        lock(&self.tables).insert(schema.number, ChangedTable::new(core, schema));
        Ok(())
    }

    fn loader(&self) -> Box<dyn Loader + '_> {
        Box::new(RowLoader {
            inner: self.inner,
            session: None,
            tables: lock(&self.tables).clone(),
            pending: Vec::new(),
            words: Vec::new(),
        })
    }
}

/// A thread's part of recovery.
struct RowLoader<'a, P: Protocol> {
    inner: &'a Handle<P>,
    /// `None` before the first row.
    session: Option<Session<P>>,
    tables: BTreeMap<u32, ChangedTable>,
    /// Changes that are not in the database yet, with their keys, words and values in `words`.
    pending: Vec<Kept>,
    words: Vec<u64>,
}

/// A change whose key, words and values are kept elsewhere, one after the other.
#[derive(Debug, Clone, Copy)]
struct Kept {
    table: u16,
    kind: ChangeKind,
    first: u16,
    start: usize,
    key_words: usize,
    row_words: usize,
    end: usize,
}

impl<P: Protocol> Loader for RowLoader<'_, P> {
    fn row(&mut self, table: u32, row: LongRow<'_>) -> Result<(), LoadError> {
        let (table, kind, value_words) = (table as u16, ChangeKind::Put, row.value_words());
        let LongRow { key, words, .. } = row;
        let change = Change { table, kind, first: 0, key, words, value_words };
        self.apply(&change)
    }

    fn apply(&mut self, change: &Change<'_>) -> Result<(), LoadError> {
        let &Change { table, kind, first, key, words, value_words } = change;
        changes::check(self.tables.get(&table.into()), change).map_err(LoadError::Ghost)?;
        let start = self.words.len();
        self.words.extend_from_slice(key);
        self.words.extend_from_slice(words);
        self.words.extend_from_slice(value_words);
        let (key_words, row_words, end) = (key.len(), words.len(), self.words.len());
        self.pending.push(Kept { table, kind, first, start, key_words, row_words, end });
        if self.words.len() < BATCH_WORDS { Ok(()) } else { self.finish() }
    }

    fn finish(&mut self) -> Result<(), LoadError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let session = match &mut self.session {
            Some(session) => session,
            None => {
                let session = Session::new(self.inner);
                self.session.insert(session.map_err(|error| LoadError::Other(Box::new(error)))?)
            }
        };
        let (pending, words, tables) = (&self.pending, &self.words, &self.tables);
        session.try_run(|tx| {
            let state = &mut *tx.state.borrow_mut();
            pending.iter().try_for_each(|kept| -> Result<(), Failure> {
                let Kept { table, kind, first, start, key_words, row_words, end } = *kept;
                let (key, words) = words[start..end].split_at(key_words);
                let (words, value_words) = words.split_at(row_words);
                let change = Change { table, kind, first, key, words, value_words };
                changes::apply(tx, state, &tables[&table.into()], &change)
            })
        })?;
        self.pending.clear();
        self.words.clear();
        Ok(())
    }
}
