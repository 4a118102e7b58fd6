//! The buffer of a session: the records of its commits since the logger's last visit.

#![forbid(unsafe_code)]

use crate::memory::OutOfMemory;
use candide_log::format::commit::RecordBuffer;
use std::mem;

/// The records of a session's commits.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    pub(crate) records: RecordBuffer,
    /// A buffer that the logger has written and given back.
    spare: RecordBuffer,
    /// The number of words for which a commit that is about to begin has reserved room.
    reserved: usize,
}

impl Buffer {
    /// Makes room for a record that a commit is about to add, before anything is locked (C4). If
    /// the logger takes the records before that, it makes the same room again, if it can.
    pub(crate) fn reserve(&mut self, words: usize) -> Result<(), OutOfMemory> {
        self.reserved = words;
        self.records.try_reserve(words).map_err(|_| OutOfMemory)
    }

    /// Notes that the record for which room was reserved has been added.
    pub(crate) fn use_reserved(&mut self) {
        self.reserved = 0;
    }

    /// Takes the records out, and leaves the spare buffer in their place.
    pub(super) fn take(&mut self) -> RecordBuffer {
        let mut next = mem::take(&mut self.spare);
        if self.reserved > 0 {
            // Without memory, the buffer grows when the record is added.
            let _ = next.try_reserve(self.reserved);
        }
        mem::replace(&mut self.records, next)
    }

    /// Gives a buffer back, for the session to use after the next visit.
    pub(super) fn give_back(&mut self, mut buffer: RecordBuffer) {
        buffer.clear();
        if buffer.capacity() <= KEPT_WORDS_MAX {
            self.spare = buffer;
        }
    }
}

/// The largest buffer that is kept: a session with one huge transaction does not keep its memory.
const KEPT_WORDS_MAX: usize = 1 << 17;
