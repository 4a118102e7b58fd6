//! The buffer of a session: the records of its commits since the logger's last visit.

#![forbid(unsafe_code)]

use candide_log::format::commit::RecordBuffer;
use std::mem;

/// The records of a session's commits.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    pub(crate) records: RecordBuffer,
    /// A buffer that the logger has written and given back.
    spare: RecordBuffer,
}

impl Buffer {
    /// Takes the records out, and leaves the spare buffer in their place.
    pub(super) fn take(&mut self) -> RecordBuffer {
        mem::replace(&mut self.records, mem::take(&mut self.spare))
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
