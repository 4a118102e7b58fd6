//! Changes of rows as words, of tables whose row types need not be known: what the log has.

#![forbid(unsafe_code)]

use crate::access::Intent;
use crate::engine::{Protocol, TableCore};
use crate::error::Abort;
use crate::index::Found;
use crate::record::RecordAt;
use crate::schema::{Op, image_words};
use crate::txn::{State, Tx};
use candide_log::LoadError;
use candide_log::format::commit::{Change, ChangeKind};
use std::sync::Arc;

/// Checks that a change fits its table.
///
/// # Errors
/// The difference.
pub(super) fn check(core: Option<&Arc<TableCore>>, change: &Change<'_>) -> Result<(), String> {
    let Change { table, first, key, words, .. } = *change;
    let Some(core) = core else {
        return Err(format!("there is no table with number {table}"));
    };
    if let Some(value) = change.values().next() {
        let (name, place) = (&core.name, value.place);
        return Err(format!("a value of word {place} of table {name:?}, whose columns have none"));
    }
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
    Ok(())
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
    core: &TableCore,
    change: &Change<'_>,
) -> Result<(), Failure> {
    let ghost = || {
        let Change { kind, key, .. } = change;
        let what = match kind {
            ChangeKind::Delete => "a delete",
            _ => "an update",
        };
        let name = &core.name;
        Failure::Ghost(format!("{what} of a row that is not there: table {name:?}, key {key:x?}"))
    };
    let is_plain = core.indexes.writes_are_plain();
    core.layout.in_kept_words(change.key, |key| match change.kind {
        ChangeKind::Put if change.words.len() == image_words(core.groups) => {
            Ok(state.put_admitted(tx.engine, core, (key, change.words), is_plain)?)
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
            Ok(set(tx, state, core, record, change)?)
        }
        ChangeKind::Update => {
            let record = row(tx, state, core, key)?.ok_or_else(ghost)?;
            Ok(set(tx, state, core, record, change)?)
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
    change: &Change<'_>,
) -> Result<(), Abort> {
    let (first, end) = (usize::from(change.first), usize::from(change.first) + change.words.len());
    if !core.indexes.is_empty() {
        state.change_row(tx.engine, core, (record, true), &mut |words| {
            words[first..end].copy_from_slice(change.words);
            Ok(())
        })?;
    }
    for unit in core.layout.placed_units() {
        let at = unit.of(record);
        let (start, stop) = (unit.start(), unit.start() + at.payload_words());
        let (from, to) = (first.max(start), end.min(stop));
        if from >= to {
            continue;
        }
        let words = change.words[from - first..to - first].iter().copied();
        let op = Op::set_words((from - start) as u16, (to - from) as u16);
        let op = Op { operand: state.writes.push_operands(words), ..op };
        state.stage(tx.engine, at, Intent::Update, op)?;
    }
    Ok(())
}
