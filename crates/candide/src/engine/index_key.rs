//! The keys of rows in a secondary index.

#![forbid(unsafe_code)]

use crate::record::long;
use crate::schema::{Group, IndexSpec, KeyLimit, KeyPacking, Pinned, RowReader, RowType, start_of};

/// A function that appends the index key of a row to a vector. Further arguments are the row's
/// primary key, as the table stores it, and the row's other words.
pub(crate) type KeyOf = dyn Fn(&[u64], &RowReader<'_>, &mut Vec<u64>) + Send + Sync;

/// The way in which an index makes the keys of rows.
pub(crate) struct IndexKey {
    /// Called for no row with a value that is too long.
    of: Box<KeyOf>,
    /// The limits of the index's columns of any length, each with the number of the column's word
    /// among all words of a row.
    limits: Box<[(usize, KeyLimit)]>,
    /// The words of a row that are columns of any length.
    long: &'static [u16],
}

/// A value that is longer than an index keeps of its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong {
    pub(crate) column: &'static str,
    /// The length in bytes; and, in `length_max`, the most that the index keeps.
    pub(crate) length: usize,
    pub(crate) length_max: usize,
}

impl IndexKey {
    /// Returns the keys that `of` makes. `limits` are those of the index's columns, of rows with
    /// these groups; `long` are the words of all columns of any length.
    pub(crate) fn new(
        of: Box<KeyOf>,
        limits: &[KeyLimit],
        (groups, long): (&[Group], &'static [u16]),
    ) -> IndexKey {
        let word = |KeyLimit { place, .. }: KeyLimit| {
            start_of(groups, place.group.into()) + usize::from(place.word)
        };
        let limits = limits.iter().map(|&limit| (word(limit), limit)).collect();
        IndexKey { of, limits, long }
    }

    /// Returns the keys of an index that a row type declares. `packing` is the packing of the
    /// table's keys; `None` if they are not packed.
    pub(super) fn of_spec(
        spec: &IndexSpec,
        packing: Option<KeyPacking>,
        row: &RowType,
    ) -> IndexKey {
        let key = spec.key;
        let of: Box<KeyOf> = match packing {
            None => Box::new(key),
            Some(packing) => Box::new(move |primary, row, index_key| {
                key(packing.unpack(primary).as_slice(), row, index_key)
            }),
        };
        IndexKey::new(of, spec.limits, (row.groups, row.long))
    }

    /// Returns whether a column of the index has any length.
    pub(crate) fn has_limits(&self) -> bool {
        !self.limits.is_empty()
    }

    /// Returns whether the words `new` of a row repeat the columns of any length of `old`.
    pub(crate) fn repeats(&self, old: &[u64], new: &[u64]) -> bool {
        self.limits.iter().all(|&(word, _)| old[word] == new[word])
    }

    /// Appends the index key of a row. The words of the row's columns have been read in this pin,
    /// or staged by the attempt.
    ///
    /// # Errors
    /// [`TooLong`] if the index cannot have the row. Nothing is appended then.
    pub(super) fn append<'a>(
        &self,
        primary: &[u64],
        words: &'a [u64],
        pin: Pinned<'a>,
        key: &mut Vec<u64>,
    ) -> Result<(), TooLong> {
        for &(word, KeyLimit { column, bytes: length_max, .. }) in &self.limits {
            let length = long::len(words[word], &pin);
            if length > length_max {
                return Err(TooLong { column, length, length_max });
            }
        }
        (self.of)(primary, &RowReader::pinned(words, self.long, pin), key);
        Ok(())
    }
}
