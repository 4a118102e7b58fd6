//! The words of a unit, shared or the transaction's own.

#![forbid(unsafe_code)]

use crate::sync::{AtomicU64, Ordering};

/// The words from which a read copies.
#[derive(Debug, Clone, Copy)]
pub enum Words<'a> {
    /// Words that other threads may be changing; the protocol validates that they are of one
    /// version.
    Shared(&'a [AtomicU64]),
    /// The transaction's own image of the unit.
    Own(&'a [u64]),
}

impl Words<'_> {
    /// Returns the number of words.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn len(&self) -> usize {
        match self {
            Words::Shared(words) => words.len(),
            Words::Own(words) => words.len(),
        }
    }

    /// Returns word `index` of the unit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn get(&self, index: usize) -> u64 {
        match self {
            // Acquire pairs with the Release of the install (E3): a reader that sees a word of an
            // install in progress sees the installer's lock at the second load of the cell.
            Words::Shared(words) => words[index].load(Ordering::Acquire),
            Words::Own(words) => words[index],
        }
    }

    /// Calls `sink` for each of `count` words of the unit, from word `first` on, with the word's
    /// position, counted from zero, and the word.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn copy(&self, first: usize, count: usize, mut sink: impl FnMut(usize, u64)) {
        match self {
            Words::Shared(words) => {
                for (index, word) in words[first..first + count].iter().enumerate() {
                    sink(index, word.load(Ordering::Acquire)); // E3
                }
            }
            Words::Own(words) => {
                for (index, &word) in words[first..first + count].iter().enumerate() {
                    sink(index, word);
                }
            }
        }
    }

    /// Copies bytes of the unit, from the first byte of word `first` on, until `into` is full.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn copy_bytes(&self, first: usize, into: &mut [u8]) {
        let (whole, rest) = into.as_chunks_mut::<8>();
        self.copy(first, whole.len(), |index, word| whole[index] = word.to_le_bytes());
        if !rest.is_empty() {
            let last = self.get(first + whole.len()).to_le_bytes();
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }

    /// Appends the unit's `count` words to `sink`.
    #[inline]
    pub(crate) fn extend(&self, count: usize, sink: &mut Vec<u64>) {
        match self {
            Words::Shared(words) => {
                sink.extend(words[..count].iter().map(|word| word.load(Ordering::Acquire)))
            } // E3
            Words::Own(words) => sink.extend_from_slice(&words[..count]),
        }
    }
}
