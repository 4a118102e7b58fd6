//! Reading an entry of a secondary index.

#![forbid(unsafe_code)]

use crate::engine::{IndexCore, Protocol, TableCore};
use crate::error::Abort;
use crate::record::RecordAt;
use crate::schema::{KeyWords, Unit, Words};
use crate::txn::{Mark, State, Tx};

/// Returns the primary key in `entry`; `None` if the entry did not exist at `mark`.
pub(crate) fn primary_key<P: Protocol>(
    tx: &Tx<'_, P>,
    state: &mut State<P>,
    table: &TableCore,
    index: &IndexCore,
    entry: RecordAt,
    mark: Mark,
) -> Result<Option<KeyWords>, Abort> {
    let mut primary = KeyWords::zeros(table.layout.key_words());
    let at = index.entries.layout.at(entry, Unit::ROW);
    let words = primary.as_mut_slice();
    let copy = |from: Words<'_>| {
        if index.unique {
            from.copy(0, words.len(), |word, value| words[word] = value);
        }
    };
    if !state.read_at_mark(tx.engine, at, mark, copy)? {
        return Ok(None);
    }
    if !index.unique {
        let words = primary.as_mut_slice().iter_mut().enumerate();
        words.for_each(|(word, value)| *value = entry.key_word(index.key_words + word));
    }
    Ok(Some(primary))
}
