//! Declarations of a row type's secondary indexes.

#![forbid(unsafe_code)]

use super::index_spec::IndexKind;
use super::key::Key;
use super::record::Record;
use super::record::RowMeta;
use std::marker::PhantomData;

/// The name of a secondary index of tables of `R`: the index with number `number` in
/// [`RowMeta::INDEXES`](crate::schema::RowMeta::INDEXES). The index's keys have type `K`.
pub struct IndexOf<R, K, I> {
    pub(crate) number: usize,
    types: PhantomData<fn(R) -> (K, I)>,
}

impl<R: Record, K: Key, I: IndexKind> IndexOf<R, K, I> {
    /// Returns the index with this number.
    ///
    /// # Panics
    /// If there is no such index, or if its keys or its kind are not those of `K` and `I`. In a
    /// constant, that is an error of compilation.
    pub const fn new(number: usize) -> IndexOf<R, K, I> {
        assert!(number < R::INDEXES.len(), "the row type has no index of this number");
        assert!(R::INDEXES[number].key_words == K::WORDS, "the index has keys of another type");
        assert!(R::INDEXES[number].ordered == I::ORDERED, "the index is of another kind");
        IndexOf { number, types: PhantomData }
    }
}

impl<R, K, I> IndexOf<R, K, I> {
    /// Returns the index with this number without checks, for derived code.
    #[doc(hidden)]
    pub const fn derived(number: usize) -> IndexOf<R, K, I> {
        IndexOf { number, types: PhantomData }
    }
}

impl<R, K, I> Clone for IndexOf<R, K, I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, K, I> Copy for IndexOf<R, K, I> {}

impl<R: Record, K, I> std::fmt::Debug for IndexOf<R, K, I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", R::NAME, R::INDEXES[self.number].name)
    }
}
