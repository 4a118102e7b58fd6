//! The buffer of a session: the records of its commits since the logger's last visit.

#![forbid(unsafe_code)]

/// The records of commits, in words, one after another.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    pub(crate) words: Vec<u64>,
    /// The largest stamp of a record that has been in the buffer.
    pub(crate) last_stamp: u64,
    /// A buffer that the logger has written and given back.
    pub(super) spare: Vec<u64>,
}

impl Buffer {
    /// Takes the records out, and leaves the spare buffer in their place.
    pub(super) fn take(&mut self) -> Vec<u64> {
        std::mem::replace(&mut self.words, std::mem::take(&mut self.spare))
    }

    /// Gives an empty buffer back, for the session to use after the next visit.
    pub(super) fn give_back(&mut self, mut buffer: Vec<u64>) {
        buffer.clear();
        if buffer.capacity() <= KEPT_WORDS_MAX {
            self.spare = buffer;
        }
    }
}

/// The largest buffer that is kept: a session with one huge transaction does not keep its memory.
const KEPT_WORDS_MAX: usize = 1 << 17;
