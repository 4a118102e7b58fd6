//! Values of objects as words, and the names of their types.

#![forbid(unsafe_code)]

use crate::schema::{Buffer, Field};
use std::any::type_name;
use std::marker::PhantomData;

/// The largest number of words of a value.
pub(super) const VALUE_WORDS_MAX: usize = 64;

/// Returns the number of words of a unit that holds a value of type `V`.
pub(super) const fn words_of<V: Field>() -> usize {
    assert!(V::WORDS <= VALUE_WORDS_MAX, "a value of an object has at most 64 words (512 bytes)");
    if V::WORDS == 0 { 1 } else { V::WORDS }
}

/// The words of a value.
#[derive(Clone, Copy)]
pub struct Image<V> {
    words: [u64; VALUE_WORDS_MAX],
    value: PhantomData<fn() -> V>,
}

impl<V: Field> Buffer for Image<V> {
    const ZERO: Image<V> = Image { words: [0; VALUE_WORDS_MAX], value: PhantomData };

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn set(&mut self, index: usize, word: u64) {
        self.words[index] = word;
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn words(&mut self) -> &mut [u64] {
        &mut self.words[..const { words_of::<V>() }]
    }
}

impl<V> std::fmt::Debug for Image<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image").finish_non_exhaustive()
    }
}

/// Returns the name of a type without the modules of its parts: `Option<Cents>`. This is the name
/// as programs write it, so it stays the same when a program moves the type to another module.
pub(super) fn short_name<T: ?Sized>() -> String {
    let mut name = String::new();
    for part in type_name::<T>().split_inclusive(|c: char| !c.is_alphanumeric() && c != '_') {
        match part.strip_suffix(':') {
            // A module, or the second colon behind it.
            Some(_) => {}
            None => name.push_str(part),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_leave_out_modules() {
        assert_eq!(short_name::<u64>(), "u64");
        assert_eq!(short_name::<Option<[i64; 3]>>(), "Option<[i64; 3]>");
        assert_eq!(short_name::<(u32, crate::Text<8>)>(), "(u32, Text<8>)");
    }

    #[test]
    fn a_value_takes_as_many_words_as_its_type() {
        assert_eq!([words_of::<bool>(), words_of::<u128>(), words_of::<[i64; 64]>()], [1, 2, 64]);
        let mut image = Image::<u128>::ZERO;
        assert_eq!(image.words().len(), 2);
    }
}
