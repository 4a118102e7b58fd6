//! Where a transaction looks for the first and the last key of a table from whose ends it takes
//! rows.
//!
//! A transaction that has looked for the first key and has found one has observed that there is
//! none before it. As long as it inserts none there itself, its next search can begin at that key,
//! or behind it if the key is deleted. So it does not go over the rows that it has deleted. The
//! object that owns the table notes all this. A note is undone with its part of the transaction,
//! and what was observed stays observed.

#![forbid(unsafe_code)]

use super::item::NONE;
use super::user_codes::{Begin, End};
use super::write_set::WriteSet;

impl WriteSet {
    /// Returns the key at which a search begins from an end, and whether the key itself is
    /// searched; `None` if the search begins at the end of the table.
    pub(crate) fn search_from(&self, end: End) -> Option<(&[u64], bool)> {
        let users = self.operations.users();
        let begin = users.begin_of(end)?;
        Some((self.operations.operands(begin.key, begin.words.into()), begin.includes))
    }

    /// Notes where the next search from an end begins.
    pub(crate) fn note_search(&mut self, end: End, key: &[u64], includes: bool) {
        let words = key.len() as u16;
        let key = self.push_operands(key.iter().copied());
        let begin = Begin { end, includes, key, words, older: NONE };
        self.operations.users_mut().push_begin(begin);
    }
}
