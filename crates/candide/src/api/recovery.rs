//! Recovery: rows and changes from files become rows of tables whose row types are not known yet.
//!
//! The rows go through ordinary transactions, many at once, since no session of the program exists
//! yet and nothing is logged before the end of recovery.

#![forbid(unsafe_code)]

use super::session::Session;
use crate::access::Intent;
use crate::engine::{Protocol, TableCore};
use crate::error::Abort;
use crate::handle::Handle;
use crate::index::Found;
use crate::record::RecordAt;
use crate::record::long::NOTHING;
use crate::schema::{Op, image_words};
use crate::sync::{Mutex, lock};
use crate::txn::{State, Tx};
use candide_log::format::commit::{Change, ChangeKind};
use candide_log::format::long_row::LongRow;
use candide_log::schema::TableSchema;
use candide_log::{LoadError, Loader, LongColumns, OpenError, Target};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;

/// The number of words of changes that a loader collects for one transaction.
const BATCH_WORDS: usize = 4096;

/// The database that is being recovered.
pub(crate) struct Recovery<'a, P: Protocol> {
    inner: &'a Handle<P>,
    /// The recovered tables by their numbers in the log.
    tables: Mutex<BTreeMap<u32, RecoveredTable>>,
}

/// A table that is being recovered.
#[derive(Clone)]
struct RecoveredTable {
    core: Arc<TableCore>,
    long: Arc<LongColumns>,
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
        let long = Arc::new(LongColumns::of(schema));
        lock(&self.tables).insert(schema.number, RecoveredTable { core, long });
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
    tables: BTreeMap<u32, RecoveredTable>,
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
        self.check(change)?;
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
            pending.iter().try_for_each(|kept| {
                let Kept { table, kind, first, start, key_words, row_words, end } = *kept;
                let (key, words) = words[start..end].split_at(key_words);
                let (words, value_words) = words.split_at(row_words);
                let change = Change { table, kind, first, key, words, value_words };
                apply(tx, state, &tables[&table.into()], &change)
            })
        })?;
        self.pending.clear();
        self.words.clear();
        Ok(())
    }
}

impl<P: Protocol> RowLoader<'_, P> {
    /// Checks that a change fits its table.
    fn check(&self, change: &Change<'_>) -> Result<(), LoadError> {
        let Change { table, first, key, words, .. } = *change;
        let Some(RecoveredTable { core, long }) = self.tables.get(&table.into()) else {
            return Err(LoadError::Ghost(format!("there is no table with number {table}")));
        };
        let row_words = image_words(core.groups);
        let key_words = core.layout.unpacked_key_words();
        if key.len() != key_words || usize::from(first) + words.len() > row_words {
            let name = &core.name;
            return Err(LoadError::Ghost(format!(
                "a change of table {name:?} has {} key words, and {} words from word {first} on; \
                 keys of the table have {key_words} words, and rows {row_words}",
                key.len(),
                words.len(),
            )));
        }
        let checked = long.check(first, words, change.values());
        checked.map_err(|what| LoadError::Ghost(format!("table {:?}: {what}", core.name)))
    }
}

/// The reason why a transaction of recovery failed.
enum Failure {
    Abort(Abort),
    Load(LoadError),
}

impl From<Abort> for Failure {
    fn from(abort: Abort) -> Failure {
        Failure::Abort(abort)
    }
}

impl From<Failure> for LoadError {
    fn from(failure: Failure) -> LoadError {
        match failure {
            Failure::Abort(abort) => LoadError::Other(Box::new(abort)),
            Failure::Load(error) => error,
        }
    }
}

/// Makes one change.
fn apply<P: Protocol>(
    tx: &Tx<'_, P>,
    state: &mut State<P>,
    table: &RecoveredTable,
    change: &Change<'_>,
) -> Result<(), Failure> {
    let core = &*table.core;
    let ghost = || {
        let Change { kind, key, .. } = change;
        let what = match kind {
            ChangeKind::Delete => "a delete",
            _ => "an update",
        };
        let name = &core.name;
        Failure::Load(LoadError::Ghost(format!(
            "{what} of a row that is not there: table {name:?}, key {key:x?}"
        )))
    };
    let mut staged = Staged::new(change);
    if !table.long.is_empty() && change.kind != ChangeKind::Delete {
        staged.add_values(tx, state, table, change)?;
    }
    core.layout.in_kept_words(change.key, |key| match change.kind {
        ChangeKind::Put if change.words.len() == image_words(core.groups) => {
            Ok(state.put(tx.engine, core, key, &staged.words)?)
        }
        ChangeKind::Put => {
            let present = row(tx, state, core, key)?;
            let record = match present {
                Some(record) => record,
                None => {
                    let zeros = vec![0; image_words(core.groups)];
                    state.put(tx.engine, core, key, &zeros)?;
                    row(tx, state, core, key)?.ok_or(Failure::Abort(Abort::NotFound))?
                }
            };
            Ok(set(tx, state, core, record, &staged)?)
        }
        ChangeKind::Update => {
            let record = row(tx, state, core, key)?.ok_or_else(ghost)?;
            Ok(set(tx, state, core, record, &staged)?)
        }
        ChangeKind::Delete => {
            let record = row(tx, state, core, key)?.ok_or_else(ghost)?;
            Ok(state.delete_row(tx.engine, core, record)?)
        }
    })
}

/// The words that a change stores in the row.
struct Staged<'a> {
    first: usize,
    words: Cow<'a, [u64]>,
    /// The places in `words` of those that are not stored, in ascending order.
    left: Vec<usize>,
    /// Other words of the row, with their places in it.
    others: Vec<(usize, u64)>,
}

impl<'a> Staged<'a> {
    /// Returns the words of a change of a table without columns of any length.
    fn new(change: &Change<'a>) -> Staged<'a> {
        let (first, words) = (change.first.into(), Cow::Borrowed(change.words));
        Staged { first, words, left: Vec::new(), others: Vec::new() }
    }

    /// Stages the values of a change, and adds the words that have or name them.
    fn add_values<P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        RecoveredTable { core, long }: &RecoveredTable,
        change: &Change<'_>,
    ) -> Result<(), Abort> {
        state.note_value_write(tx.engine, core)?;
        let words = self.words.to_mut();
        if change.kind == ChangeKind::Update {
            let places = long.places().filter_map(|place| place.checked_sub(change.first));
            self.left = places.map(usize::from).filter(|place| *place < words.len()).collect();
        }
        for value in change.values() {
            let is_optional = long.at(value.place).is_some_and(|column| column.is_optional);
            let word = match value.bytes() {
                Some(bytes) if is_optional || !bytes.is_empty() => {
                    state.stage_long(tx.engine, core, &bytes)?
                }
                _ => NOTHING,
            };
            let place = usize::from(value.place);
            match place.checked_sub(self.first).filter(|place| *place < words.len()) {
                Some(place) => {
                    words[place] = word;
                    self.left.retain(|left| *left != place);
                }
                None => self.others.push((place, word)),
            }
        }
        Ok(())
    }

    /// Returns the words that are stored, in runs, each with its first place in the row.
    fn runs(&self) -> impl Iterator<Item = (usize, &[u64])> {
        let begins = std::iter::once(0).chain(self.left.iter().map(|left| left + 1));
        let ends = self.left.iter().copied().chain([self.words.len()]);
        let runs =
            begins.zip(ends).map(|(begin, end)| (self.first + begin, &self.words[begin..end]));
        runs.chain(self.others.iter().map(|(place, word)| (*place, slice::from_ref(word))))
    }
}

/// Returns the record of a row that exists.
fn row<P: Protocol>(
    tx: &Tx<'_, P>,
    state: &mut State<P>,
    core: &TableCore,
    key: &[u64],
) -> Result<Option<RecordAt>, Abort> {
    match state.find(tx.engine, core, key)? {
        Found::Record(record) => {
            let first = core.layout.first_of(record);
            Ok(state.is_there(tx.engine, first)?.then_some(record))
        }
        Found::Nothing { .. } => Ok(None),
    }
}

/// Stages the words of a change of a row that exists. The change may lie in several units, since
/// the table may have been split otherwise when the change was logged.
fn set<P: Protocol>(
    tx: &Tx<'_, P>,
    state: &mut State<P>,
    core: &TableCore,
    record: RecordAt,
    staged: &Staged<'_>,
) -> Result<(), Abort> {
    for (first, words) in staged.runs() {
        let end = first + words.len();
        for unit in core.layout.placed_units() {
            let at = unit.of(record);
            let (start, stop) = (unit.start(), unit.start() + at.payload_words());
            let (from, to) = (first.max(start), end.min(stop));
            if from >= to {
                continue;
            }
            let words = words[from - first..to - first].iter().copied();
            let op = Op::set_words((from - start) as u16, (to - from) as u16);
            let op = Op { operand: state.writes.push_operands(words), ..op };
            state.stage(tx.engine, at, Intent::Update, op)?;
        }
    }
    Ok(())
}
