//! The rows of maps.

#![forbid(unsafe_code)]

use super::words::{Image, words_of};
use crate::schema::{
    Column, Field, Group, Hashed, IndexKind, Key, Meta, Record, RowReader, RowWriter,
};
use std::marker::PhantomData;

/// The row of a [`TMap`](super::TMap): a key and its value. Programs meet this type in the types of
/// scans alone.
#[derive(Debug)]
pub struct Entry<K, V, I = Hashed> {
    pub(super) key: K,
    pub(super) value: V,
    index: PhantomData<fn() -> I>,
}

impl<K: Copy, V: Copy, I> Clone for Entry<K, V, I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Copy, V: Copy, I> Copy for Entry<K, V, I> {}

impl<K: Key, V: Field, I: IndexKind> Entry<K, V, I> {
    /// The value.
    pub(super) const VALUE: Column<Entry<K, V, I>, V> = Column::new(0, 0, "value");

    pub(super) fn new(key: K, value: V) -> Entry<K, V, I> {
        Entry { key, value, index: PhantomData }
    }
}

impl<K: Key, V: Field, I: IndexKind> Record for Entry<K, V, I> {
    type Key = K;
    type Index = I;
    type Image = Image<V>;
    const META: Meta = Meta::new("Entry", &[Group::new("value", words_of::<V>())]);

    #[inline]
    fn key(&self) -> K {
        self.key
    }

    #[inline]
    fn store(&self, row: &mut RowWriter<'_>) {
        for (index, word) in row.words().iter_mut().enumerate().take(V::WORDS) {
            *word = self.value.word(index);
        }
    }

    #[inline]
    fn load(key: &K, row: &RowReader<'_>) -> Entry<K, V, I> {
        Entry::new(*key, Self::VALUE.take(row))
    }
}

/// The value of an entry that has none: the member of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member;

impl Field for Member {
    const BITS: u32 = 1;
    type Buffer = [u64; 1];

    fn word(&self, _index: usize) -> u64 {
        0
    }

    fn from_buffer(_buffer: &[u64; 1]) -> Member {
        Member
    }
}
