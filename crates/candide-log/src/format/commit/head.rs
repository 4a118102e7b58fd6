//! The headers of entries.

/// The number of words before the first entry.
pub const HEADER_WORDS: usize = 3;
/// The bit of an entry's kind that is set if the entry has no key: the entry changes the same row
/// as the entry before.
pub const SAME_ROW: u8 = 0x80;

/// The bit of an entry's kind that is set if there are values behind its words.
pub const VALUES: u8 = 0x40;

/// The effect of a change on its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ChangeKind {
    /// Stores words of a row that exists.
    Update = 0,
    /// Creates the row, all its words zero, if it does not exist; then stores the words.
    Put = 1,
    /// Removes a row that exists. There are no words.
    Delete = 2,
}

/// The header of an entry, apart from the key's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The effect of the change.
    pub kind: ChangeKind,
    /// The number of the table.
    pub table: u16,
    /// The place in the row of the first word that is stored.
    pub first: u16,
    /// The number of words that are stored; 0 for a delete. `first` and `count` together are at
    /// most [`ROW_WORDS_MAX`](crate::schema::ROW_WORDS_MAX).
    pub count: u16,
}

impl Head {
    /// Returns the header's word. `low` is the lowest 16 bits without the kind.
    #[inline]
    pub(super) fn word(self, low: u64) -> u64 {
        debug_assert!(self.first.checked_add(self.count).is_some(), "the words are within a row");
        u64::from(self.table) << 48
            | u64::from(self.first) << 32
            | u64::from(self.count) << 16
            | low
            | self.kind as u64
    }
}

/// Returns the number of words of an entry whose key is not omitted.
pub const fn entry_words(key_words: u8, count: u16) -> usize {
    1 + key_words as usize + count as usize
}
