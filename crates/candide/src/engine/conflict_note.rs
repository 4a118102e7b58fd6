//! Conflicts, before the names of their rows and tables are looked up.

#![forbid(unsafe_code)]

use crate::error::Abort;
use crate::record::CellAt;

/// The cause and the place of a conflict, before the names of its row and table are looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConflictNote {
    pub(crate) cause: Abort,
    /// The name of the transaction, if it has one; noted when the attempt has ended.
    pub(crate) transaction: Option<&'static str>,
    /// The table; `None` if the conflict concerned no table.
    pub(crate) table: Option<u16>,
    /// The unit; `None` if the conflict concerned no row.
    pub(crate) unit: Option<u8>,
    /// The first words of the row's key; zeros if the conflict concerned no row.
    pub(crate) key: [u64; ConflictNote::KEY_WORDS],
    /// Whether the lock was held by a transaction of another session on the same thread.
    pub(crate) is_own_threads: bool,
}

impl ConflictNote {
    pub(crate) const KEY_WORDS: usize = 4;

    /// Returns a hash of the table and the key of the conflict's row; `None` if the conflict
    /// concerned no row.
    #[inline]
    pub(crate) fn row(&self) -> Option<u64> {
        let table = self.unit.and(self.table)?;
        let mix = |hash: u64, word: &u64| {
            (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        };
        Some(self.key.iter().fold(u64::from(table), mix))
    }

    /// Returns whether the conflict concerned the unit `at`. (Units whose keys begin alike are
    /// taken for one.)
    #[cold]
    pub(crate) fn is_about(&self, at: CellAt) -> bool {
        let unit = self.table == Some(at.table()) && self.unit == Some(at.unit() as u8);
        unit && self.key == at.key_prefix()
    }

    /// Returns a conflict that concerned no table and no row.
    #[inline]
    pub(crate) fn nowhere(cause: Abort) -> ConflictNote {
        ConflictNote {
            cause,
            transaction: None,
            table: None,
            unit: None,
            key: [0; ConflictNote::KEY_WORDS],
            is_own_threads: false,
        }
    }
}
