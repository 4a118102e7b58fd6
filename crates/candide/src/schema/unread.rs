//! Columns whose words are read, and from which a value is made later.

#![forbid(unsafe_code)]

use super::codec::Undecoded;
use super::column::{Projection, private};
use super::operation::Sink;
use super::place::Place;
use super::record::Record;
use super::row_words::Pinned;
use super::unit::Unit;
use super::words::Words;
use crate::error::Abort;

/// The columns of another projection, of which a read returns the words. They are words of a row
/// that is present, and the caller makes a value of them in the same pin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unread<Pr>(pub(crate) Pr);

impl<Pr> private::Sealed for Unread<Pr> {}

impl<R: Record, Pr: Projection<R>> Projection<R> for Unread<Pr> {
    type Value = Pr::Words;
    type View<'v> = Pr::Words;
    type Words = Pr::Words;
    const EMPTY: Pr::Words = Pr::EMPTY;
    const INDEXED: bool = Pr::INDEXED;
    const LONG: bool = Pr::LONG;
    const COLUMNS: usize = Pr::COLUMNS;
    const ONE_GROUP: bool = Pr::ONE_GROUP;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn column_groups(&self) -> u64 {
        self.0.column_groups()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn copy(&self, unit: Unit, from: Words<'_>, into: &mut Pr::Words) {
        self.0.copy(unit, from, into);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn copy_all(&self, start: usize, from: Words<'_>, into: &mut Pr::Words) {
        self.0.copy_all(start, from, into);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn runs(&self, unit: Unit, each: &mut impl FnMut(usize, usize)) {
        self.0.runs(unit, each);
    }

    fn places(&self, each: &mut impl FnMut(Place)) {
        self.0.places(each);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn value(&self, _key: &R::Key, words: &Pr::Words, _: Pinned<'_>) -> Pr::Words {
        *words
    }

    fn view<'v>(
        &self,
        _key: &R::Key,
        words: &'v Pr::Words,
        _: Pinned<'v>,
    ) -> Result<Pr::Words, Undecoded> {
        Ok(*words)
    }

    fn assign(&self, _: &R::Key, _: &Pr::Words, _: &mut impl Sink) -> Result<(), Abort> {
        unreachable!("words are only read")
    }
}
