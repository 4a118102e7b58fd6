//! Changes of rows as words, of tables whose row types need not be known: what the log has.

#![forbid(unsafe_code)]

use crate::access::Intent;
use crate::engine::{Protocol, TableCore};
use crate::error::Abort;
use crate::index::Found;
use crate::record::RecordAt;
use crate::record::long::NOTHING;
use crate::schema::{Op, image_words};
use crate::txn::{State, Tx};
use candide_log::format::commit::{Change, ChangeKind};
use candide_log::format::long_row::LongRow;
use candide_log::schema::TableSchema;
use candide_log::{LoadError, LongColumns};
use std::borrow::Cow;
use std::slice;
use std::sync::Arc;

/// A table whose rows are changed.
#[derive(Debug, Clone)]
pub(super) struct ChangedTable {
    pub(super) core: Arc<TableCore>,
    long: Arc<LongColumns>,
}

impl ChangedTable {
    /// Returns the table that has been made from its description.
    pub(super) fn new(core: Arc<TableCore>, schema: &TableSchema) -> ChangedTable {
        ChangedTable { core, long: Arc::new(LongColumns::of(schema)) }
    }

    /// Returns the columns whose values have any length.
    pub(super) fn long(&self) -> &LongColumns {
        &self.long
    }

    /// Returns a table without columns of any length.
    pub(super) fn plain(core: Arc<TableCore>) -> ChangedTable {
        ChangedTable { core, long: Arc::default() }
    }
}

/// Checks that a change fits its table.
///
/// # Errors
/// The difference.
pub(super) fn check(changed: Option<&ChangedTable>, change: &Change<'_>) -> Result<(), String> {
    let Change { table, first, key, words, .. } = *change;
    let Some(ChangedTable { core, long }) = changed else {
        return Err(format!("there is no table with number {table}"));
    };
    let row_words = image_words(core.groups);
    let key_words = core.layout.unpacked_key_words();
    if key.len() != key_words || usize::from(first) + words.len() > row_words {
        let name = &core.name;
        return Err(format!(
            "a change of table {name:?} has {} key words, and {} words from word {first} on; keys \
             of the table have {key_words} words, and rows {row_words}",
            key.len(),
            words.len(),
        ));
    }
    let checked = long.check(first, words, change.values());
    checked.map_err(|what| format!("table {:?}: {what}", core.name))
}

/// The reason why a transaction that makes such changes failed.
pub(super) enum Failure {
    Abort(Abort),
    /// A change is none of the rows that there are.
    Ghost(String),
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
            Failure::Ghost(what) => LoadError::Ghost(what),
        }
    }
}

/// Makes one change, and those of the entries in indexes. Rows that are permanent or frozen for the
/// program change, too.
pub(super) fn apply<P: Protocol>(
    tx: &Tx<'_, P>,
    state: &mut State<P>,
    table: &ChangedTable,
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
        Failure::Ghost(format!("{what} of a row that is not there: table {name:?}, key {key:x?}"))
    };
    let mut staged = Staged::new(change);
    if !table.long.is_empty() {
        state.note_value_write(tx.engine, core)?;
        if change.kind != ChangeKind::Delete {
            staged.add_values(tx, state, (core, &table.long), change)?;
        }
    }
    let is_plain = core.indexes.writes_are_plain();
    core.layout.in_kept_words(change.key, |key| match change.kind {
        ChangeKind::Put if change.words.len() == image_words(core.groups) => {
            Ok(state.put_admitted(tx.engine, core, (key, &staged.words), is_plain)?)
        }
        ChangeKind::Put => {
            let present = row(tx, state, core, key)?;
            let record = match present {
                Some(record) => record,
                None => {
                    let zeros = vec![0; image_words(core.groups)];
                    state.put_admitted(tx.engine, core, (key, &zeros), is_plain)?;
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
            if !core.indexes.is_empty() {
                state.remove_entries(tx.engine, core, record)?;
            }
            Ok(state.delete_admitted(tx.engine, core, record)?)
        }
    })
}

/// Stages the values of a row that is about to be inserted, and returns its words in memory.
///
/// # Errors
/// Those of every operation, and [`Abort::MemoryLimit`].
pub(super) fn staged_words<'a, P: Protocol>(
    tx: &Tx<'_, P>,
    state: &mut State<P>,
    (core, long): (&TableCore, &LongColumns),
    row: LongRow<'a>,
) -> Result<Cow<'a, [u64]>, Abort> {
    if long.is_empty() {
        return state.admit(tx.engine, core).map(|()| Cow::Borrowed(row.words));
    }
    state.note_value_write(tx.engine, core)?;
    let (kind, LongRow { key, words, .. }) = (ChangeKind::Put, row);
    let change = Change { table: 0, kind, first: 0, key, words, value_words: row.value_words() };
    let mut staged = Staged::new(&change);
    staged.add_values(tx, state, (core, long), &change)?;
    Ok(staged.words)
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
        (core, long): (&TableCore, &LongColumns),
        change: &Change<'_>,
    ) -> Result<(), Abort> {
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
pub(super) fn row<P: Protocol>(
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
    if !core.indexes.is_empty() {
        state.change_row(tx.engine, core, (record, true), &mut |row| {
            for (first, words) in staged.runs() {
                row[first..first + words.len()].copy_from_slice(words);
            }
            Ok(())
        })?;
    }
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
