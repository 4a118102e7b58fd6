//! Searches for the first and the last key of an object's table.

#![forbid(unsafe_code)]

use crate::engine::{Protocol, TableCore};
use crate::schema::{Key, KeyRange, WordRange};
use crate::txn::Tx;
use std::ops::Bound;

/// The keys among which all rows of a table are, as far as the transaction knows that from its
/// earlier searches.
pub(super) struct KeysLeft(WordRange);

impl KeysLeft {
    pub(super) fn of<K: Key, P: Protocol>(tx: &Tx<'_, P>, table: &TableCore) -> KeysLeft {
        let state = tx.state.borrow();
        let bound = |is_last| match state.writes.search_from((table.number, is_last)) {
            None => Bound::Unbounded,
            Some((words, true)) => Bound::Included(words),
            Some((words, false)) => Bound::Excluded(words),
        };
        KeysLeft(WordRange::between_words(bound(false), bound(true), K::WORDS))
    }
}

impl<K: Key> KeyRange<K> for KeysLeft {
    fn word_range(&self) -> WordRange {
        self.0.clone()
    }
}

/// Notes that the transaction has deleted the first key of a table, or the last one if `is_last`,
/// which it has searched among [`KeysLeft`].
pub(super) fn note_taken<K: Key, P: Protocol>(
    tx: &Tx<'_, P>,
    table: &TableCore,
    is_last: bool,
    key: K,
) {
    let words = key.words();
    let words = words.as_ref();
    tx.state.borrow_mut().writes.note_search((table.number, is_last), words, false);
}

/// Notes that the transaction has inserted a key.
pub(super) fn note_inserted<K: Key, P: Protocol>(tx: &Tx<'_, P>, table: &TableCore, key: K) {
    let words = key.words();
    let words = words.as_ref();
    let writes = &mut tx.state.borrow_mut().writes;
    for is_last in [false, true] {
        let end = (table.number, is_last);
        let is_outside = writes.search_from(end).is_some_and(|(begin, includes)| {
            let is_at_end = if is_last { words >= begin } else { words <= begin };
            is_at_end && !(includes && words == begin)
        });
        if is_outside {
            writes.note_search(end, words, true);
        }
    }
}
