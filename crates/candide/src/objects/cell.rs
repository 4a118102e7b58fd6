//! The rows of tables that boxes, counters and arrays share.

#![forbid(unsafe_code)]

use super::words::{Image, words_of};
use crate::schema::{Column, Field, Group, Hashed, Meta, Record, RowReader, RowType, RowWriter};
use std::any::TypeId;

/// A row that holds one value. Its key is a number that no other cell of the table has ever had.
#[derive(Debug, Clone, Copy)]
pub struct Cell<V> {
    pub(super) number: u64,
    pub(super) value: V,
}

impl<V: Field> Cell<V> {
    /// The value.
    pub(super) const VALUE: Column<Cell<V>, V> = Column::new(0, 0, "value");

    /// Returns the type of the rows of a table that all values of as many words share.
    pub(super) fn row_type() -> RowType {
        RowType { id: TypeId::of::<Cell<u64>>(), path: "Cell", ..RowType::of::<Cell<V>>() }
    }
}

impl<V: Field> Record for Cell<V> {
    type Key = u64;
    type Index = Hashed;
    type Image = Image<V>;
    const META: Meta = Meta::new("Cell", &[Group::new("value", words_of::<V>())]);

    #[inline]
    fn key(&self) -> u64 {
        self.number
    }

    #[inline]
    fn store(&self, row: &mut RowWriter<'_>) {
        for (index, word) in row.words().iter_mut().enumerate().take(V::WORDS) {
            *word = self.value.word(index);
        }
    }

    #[inline]
    fn load(number: &u64, row: &RowReader<'_>) -> Cell<V> {
        Cell { number: *number, value: Cell::<V>::VALUE.take(row) }
    }
}
