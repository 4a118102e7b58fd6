//! Keys as words.

#![forbid(unsafe_code)]

/// The largest number of words of a key: room for four words of integers and a text of 200 bytes.
pub(crate) const KEY_WORDS_MAX: usize = 32;

/// The words of a key of any length.
#[derive(Debug, Clone, Copy)]
pub struct KeyWords {
    words: [u64; KEY_WORDS_MAX],
    count: usize,
}

impl AsRef<[u64]> for KeyWords {
    #[inline]
    fn as_ref(&self) -> &[u64] {
        self.as_slice()
    }
}

impl KeyWords {
    #[inline]
    pub(crate) fn zeros(count: usize) -> KeyWords {
        KeyWords { words: [0; KEY_WORDS_MAX], count }
    }

    /// Returns a copy of these words.
    ///
    /// # Panics
    /// If they are more than [`KEY_WORDS_MAX`].
    pub(crate) fn copied(words: &[u64]) -> KeyWords {
        KeyWords::of([words])
    }

    /// Returns the words of all parts, one after another.
    ///
    /// # Panics
    /// If they are more than [`KEY_WORDS_MAX`].
    pub(super) fn of<const N: usize>(parts: [&[u64]; N]) -> KeyWords {
        let mut all = KeyWords::zeros(0);
        for part in parts {
            all.words[all.count..][..part.len()].copy_from_slice(part);
            all.count += part.len();
        }
        all
    }

    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u64] {
        &mut self.words[..self.count]
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u64] {
        &self.words[..self.count]
    }
}
