//! The table's row, and values to fill it with.

use candide::{Bytes, Column, Field, Group, Hashed, Record};
use fastrand::Rng;

/// Bytes in a column.
pub const COLUMN_BYTES: usize = 100;

/// Columns in a row.
const COLUMN_COUNT: usize = 10;

/// Words that a column occupies.
const COLUMN_WORDS: usize = COLUMN_BYTES.div_ceil(8);

const NAMES: [&str; COLUMN_COUNT] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"];

/// What a column holds.
pub(super) type Value = Bytes<COLUMN_BYTES>;

/// A row: ten columns of 100 bytes, the even ones under one timestamp and the odd ones under another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserRow {
    /// The key.
    pub key: u64,
    /// The columns.
    pub columns: [Bytes<COLUMN_BYTES>; COLUMN_COUNT],
}

/// The columns by number, whole.
pub const COLUMNS: [Column<UserRow, Bytes<COLUMN_BYTES>>; COLUMN_COUNT] = starts();

/// The first word of each column, where a counter can be kept.
pub(super) const HEADS: [Column<UserRow, u64>; COLUMN_COUNT] = starts();

/// Fields of type `T` where the columns start: five of them in each of the two groups.
const fn starts<T: Field>() -> [Column<UserRow, T>; COLUMN_COUNT] {
    let mut columns = [Column::new(0, 0, NAMES[0]); COLUMN_COUNT];
    let mut index = 1;
    while index < COLUMN_COUNT {
        columns[index] = Column::new(index % 2, index / 2 * COLUMN_WORDS, NAMES[index]);
        index += 1;
    }
    columns
}

impl Record for UserRow {
    type Key = u64;
    type Index = Hashed;
    type Image = [u64; COLUMN_COUNT * COLUMN_WORDS];
    const NAME: &'static str = "UserRow";
    const GROUPS: &'static [Group] =
        &[Group::new("even", COLUMN_COUNT / 2 * COLUMN_WORDS), Group::new("odd", COLUMN_COUNT / 2 * COLUMN_WORDS)];

    fn key(&self) -> u64 {
        self.key
    }

    fn store(&self, words: &mut [u64]) {
        for (column, value) in COLUMNS.iter().zip(&self.columns) {
            column.put(words, value);
        }
    }

    fn load(key: &u64, words: &[u64]) -> Self {
        UserRow { key: *key, columns: COLUMNS.map(|column| column.take(words)) }
    }
}

/// Random alphanumeric values, made once: drawing a hundred characters costs more than writing them.
pub(super) struct Pool(Vec<Value>);

impl Pool {
    /// Few enough to stay in the first-level cache beside everything else, and a power of two.
    const VALUES: usize = 128;

    pub(super) fn new(rng: &mut Rng) -> Self {
        Pool((0..Self::VALUES).map(|_| Bytes::from_fn(|_| rng.alphanumeric() as u8)).collect())
    }

    /// Value number `index`, counted around and around.
    pub(super) fn get(&self, index: usize) -> Value {
        self.0[index % Self::VALUES]
    }
}
