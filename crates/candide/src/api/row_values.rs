//! Rows with the bytes of their values, as files and exports have them.
//!
//! In memory, the word of a column of any length has bytes or names a block that does. Outside,
//! that word is zero, and the bytes come behind the words of the row ([`LongRow`]).

#![forbid(unsafe_code)]

use super::changes::staged_words;
use super::quiescent::for_each_row;
use crate::engine::{Protocol, TableCore};
use crate::error::{Abort, Error};
use crate::index::Place;
use crate::record::long::{NOTHING, with_bytes};
use crate::schema::image_words;
use crate::shared::Inner;
use crate::txn::{InsertTarget, Tx};
use candide_log::LongColumns;
use candide_log::format::long_row::{LongRow, append_value};

/// Moves the bytes that words of a row have or name behind `values`, as files have them. `places`
/// are those of the words of columns of any length. The words are those of a present row, and were
/// read in the pin `pin`, or what they name is kept for as long.
pub(super) fn take_values<A: ?Sized>(
    places: impl Iterator<Item = u16>,
    words: &mut [u64],
    pin: &A,
    values: &mut Vec<u64>,
) {
    let mut last = None;
    for place in places {
        let word = std::mem::replace(&mut words[usize::from(place)], 0);
        if word != NOTHING {
            with_bytes(word, pin, |bytes| append_value(values, &mut last, place, bytes));
        }
    }
}

/// As [`for_each_row`], with the bytes of values.
pub(super) fn for_each_long_row<P: Protocol>(
    inner: &Inner<P>,
    table: &TableCore,
    each: &mut dyn FnMut(LongRow<'_>),
) -> Result<usize, Error> {
    if table.layout.named().is_empty() {
        return for_each_row(inner, table, &mut |key, words| each(LongRow::fixed(key, words)));
    }
    let (mut fixed, mut values) = (Vec::new(), Vec::new());
    for_each_row(inner, table, &mut |key, words| {
        fixed.clear();
        fixed.extend_from_slice(words);
        values.clear();
        take_values(table.layout.named_places(), &mut fixed, words, &mut values);
        each(LongRow::of(key, &fixed, &values).expect("the values of a row"));
    })
}

/// Inserts a row unless a row with its key exists; returns whether the row was inserted. If
/// possible, links the record at `near`, where the last one was linked. The values are those of
/// columns of the table.
///
/// # Errors
/// Those of every operation, and [`Abort::MemoryLimit`].
pub(super) fn insert_row<P: Protocol>(
    tx: &Tx<'_, P>,
    (core, long): (&TableCore, &LongColumns),
    row: LongRow<'_>,
    near: &mut Place,
) -> Result<bool, Abort> {
    insert_checked(tx, (core, long), row, near, &|_| Ok(()))
}

/// As [`insert_row`], if `check` allows the words of the row as they are in memory.
fn insert_checked<P: Protocol>(
    tx: &Tx<'_, P>,
    (core, long): (&TableCore, &LongColumns),
    row: LongRow<'_>,
    near: &mut Place,
    check: &dyn Fn(&[u64]) -> Result<(), Abort>,
) -> Result<bool, Abort> {
    let words = staged_words(tx, &mut tx.state.borrow_mut(), (core, long), row)?;
    check(&words)?;
    let state = &mut *tx.state.borrow_mut();
    core.layout.in_kept_words(row.key, |key| {
        let InsertTarget { record, is_new } = state.link(tx.engine, core, key, near)?;
        if !is_new {
            return state.insert_again(tx.engine, core, record, &words);
        }
        if !core.indexes.is_empty() {
            state.add_entries(tx.engine, core, record, &words)?;
        }
        state.stage_new_words(tx.engine, core, record, &words)?;
        Ok(true)
    })
}

/// A function that allows a row or refuses it, by the words of its key, and those of the row as
/// they are in memory.
type CheckRow<'a> = dyn Fn(&[u64], &[u64]) -> Result<(), Abort> + 'a;

/// Inserts rows that follow one another as [`LongRow::append_to`] writes them, if `check` allows
/// each. The values are those of columns of the table.
///
/// # Errors
/// [`Abort::Duplicate`] and what `check` returns; those of [`insert_row`].
pub(super) fn insert_rows<P: Protocol>(
    tx: &Tx<'_, P>,
    (core, long): (&TableCore, &LongColumns),
    rows: &[u64],
    check: &CheckRow<'_>,
) -> Result<(), Abort> {
    let (key_words, row_words) = (core.layout.unpacked_key_words(), image_words(core.groups));
    let (mut rest, mut near) = (rows, Place::default());
    while !rest.is_empty() {
        let taken = LongRow::take(rest, key_words, row_words);
        let (row, behind) = taken.expect("the rows have been checked");
        if !insert_checked(tx, (core, long), row, &mut near, &|words| check(row.key, words))? {
            let mut state = tx.state.borrow_mut();
            let refused = |key: &[u64]| state.outcome_of(Abort::Duplicate, core, key);
            return Err(core.layout.in_kept_words(row.key, refused));
        }
        rest = behind;
    }
    Ok(())
}
