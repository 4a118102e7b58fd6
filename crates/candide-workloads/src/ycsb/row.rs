//! The table's row, and the random values with which rows are filled.

use candide::schema::{Field, RowReader, RowWriter};
use candide::{Column, Record};
use fastrand::Rng;

use super::layout::{COLUMNS_MAX, Layout, Value, Values, Wide};

const NAMES: [&str; COLUMNS_MAX] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"];

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserRow<L: Layout = Wide> {
    /// The key.
    pub key: u64,
    /// The columns.
    pub columns: L::Values,
}

impl<L: Layout> UserRow<L> {
    /// The number of columns.
    pub const COUNT: usize = L::Values::COUNT;

    /// The approximate number of bytes of a row: the columns, in whole words, and the engine's own
    /// data.
    pub(crate) const BYTES: u64 = (Self::COUNT * L::Value::WORDS * 9 + 64) as u64;

    /// The columns by number, each as a whole. Numbers beyond the last column stand for the first
    /// column.
    pub const COLUMNS: [Column<Self, L::Value>; COLUMNS_MAX] = starts();

    /// The first word of each column, where a counter can be kept.
    pub const HEADS: [Column<Self, u64>; COLUMNS_MAX] = starts();
}

/// Returns, for each column, the field of type `T` at its start. Columns are assigned to the groups
/// in rotation.
const fn starts<L: Layout, T: Field>() -> [Column<UserRow<L>, T>; COLUMNS_MAX] {
    let mut columns = [Column::new(0, 0, NAMES[0]); COLUMNS_MAX];
    let groups = L::GROUPS.len();
    let mut index = 1;
    while index < L::Values::COUNT {
        columns[index] =
            Column::new(index % groups, index / groups * L::Value::WORDS, NAMES[index]);
        index += 1;
    }
    columns
}

impl<L: Layout> Record for UserRow<L> {
    type Key = u64;
    type Index = L::Index;
    type Image = L::Image;
    const META: candide::schema::Meta = candide::schema::Meta::new(L::NAME, L::GROUPS);

    fn key(&self) -> u64 {
        self.key
    }

    fn store(&self, row: &mut RowWriter<'_>) {
        for (column, value) in Self::COLUMNS.iter().zip(self.columns.as_ref()) {
            column.put(row, value);
        }
    }

    fn load(key: &u64, row: &RowReader<'_>) -> Self {
        UserRow { key: *key, columns: L::Values::from_fn(|index| Self::COLUMNS[index].take(row)) }
    }
}

/// Random alphanumeric values, made once, since drawing a hundred characters costs more than
/// writing them.
pub(crate) struct Pool<V>(Vec<V>);

impl<V: Value> Pool<V> {
    /// The number of values: a power of two, and small enough for the values to stay in the
    /// first-level cache together with the other data in use.
    const VALUES: usize = 128;

    pub(crate) fn new(rng: &mut Rng) -> Self {
        Pool((0..Self::VALUES).map(|_| V::from_fn(|_| rng.alphanumeric() as u8)).collect())
    }

    /// Returns value number `index`, modulo the number of values.
    pub(crate) fn get(&self, index: usize) -> &V {
        &self.0[index % Self::VALUES]
    }
}
