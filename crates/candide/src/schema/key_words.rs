//! Keys as words.

#![forbid(unsafe_code)]

/// The largest number of words of a key: room for four words of integers and a text of 200 bytes.
pub(crate) const KEY_WORDS_MAX: usize = 32;

/// A copy of a record's key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyWords {
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

    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u64] {
        &mut self.words[..self.count]
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u64] {
        &self.words[..self.count]
    }
}
