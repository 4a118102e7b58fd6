//! Recovery: rows and changes from files become rows of tables whose row types are not known yet.
//!
//! The rows go through ordinary transactions, many at once, since no session of the program exists
//! yet and nothing is logged before the end of recovery.

#![forbid(unsafe_code)]

use super::changes::{self, Failure};
use super::session::Session;
use crate::engine::{Protocol, TableCore};
use crate::handle::Handle;
use crate::sync::{Mutex, lock};
use candide_log::format::commit::{Change, ChangeKind};
use candide_log::schema::TableSchema;
use candide_log::{LoadError, Loader, OpenError, Target};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of words of changes that a loader collects for one transaction.
const BATCH_WORDS: usize = 4096;

/// The database that is being recovered.
pub(crate) struct Recovery<'a, P: Protocol> {
    inner: &'a Handle<P>,
    /// The recovered tables by their numbers in the log.
    tables: Mutex<BTreeMap<u32, Arc<TableCore>>>,
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
        lock(&self.tables).insert(schema.number, core);
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
    tables: BTreeMap<u32, Arc<TableCore>>,
    /// Changes that are not in the database yet, with their keys and words in `words`.
    pending: Vec<Kept>,
    words: Vec<u64>,
}

/// A change whose key and words are kept elsewhere, one after the other.
#[derive(Debug, Clone, Copy)]
struct Kept {
    table: u16,
    kind: ChangeKind,
    first: u16,
    start: usize,
    key_words: usize,
    end: usize,
}

impl<P: Protocol> Loader for RowLoader<'_, P> {
    fn row(&mut self, table: u32, key: &[u64], words: &[u64]) -> Result<(), LoadError> {
        let (table, kind, value_words) = (table as u16, ChangeKind::Put, &[][..]);
        let change = Change { table, kind, first: 0, key, words, value_words };
        self.apply(&change)
    }

    fn apply(&mut self, change: &Change<'_>) -> Result<(), LoadError> {
        let &Change { table, kind, first, key, words, .. } = change;
        let core = self.tables.get(&table.into());
        changes::check(core, change).map_err(LoadError::Ghost)?;
        let start = self.words.len();
        self.words.extend_from_slice(key);
        self.words.extend_from_slice(words);
        let end = self.words.len();
        self.pending.push(Kept { table, kind, first, start, key_words: key.len(), end });
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
                let key = &words[kept.start..kept.start + kept.key_words];
                let words = &words[kept.start + kept.key_words..kept.end];
                let Kept { table, kind, first, .. } = *kept;
                let core = &tables[&table.into()];
                let change = Change { table, kind, first, key, words, value_words: &[] };
                changes::apply(tx, state, core, &change)
            })
        })?;
        self.pending.clear();
        self.words.clear();
        Ok(())
    }
}
