//! Bytes of any length that are kept for a while, outside of all rows.

#![forbid(unsafe_code)]

use super::long::{LONG_BYTES_MAX, allocate, free, names_block, short_word};
use crate::error::Abort;
use crate::memory::{Cache, LongMemory};
use crate::schema::{LongColumn, LongSink};

/// The owner of blocks that no row names. What its words have can be read for as long as it is not
/// cleared.
pub(crate) struct KeptBytes<'a> {
    memory: Option<&'a LongMemory>,
    caches: Vec<Option<Cache>>,
    words: Vec<u64>,
    /// The column of a value that was refused, and the number of its bytes.
    pub(crate) too_long: Option<(&'static str, usize)>,
}

impl<'a> KeptBytes<'a> {
    /// Returns an owner without blocks. `memory` is that of the database, which has one if a table
    /// has such columns.
    pub(crate) fn new(memory: Option<&'a LongMemory>) -> KeptBytes<'a> {
        KeptBytes { memory, caches: Vec::new(), words: Vec::new(), too_long: None }
    }

    /// Keeps bytes, of which there are at most [`LONG_BYTES_MAX`], and returns the word that has or
    /// names them.
    ///
    /// # Errors
    /// [`Abort::MemoryLimit`].
    pub(crate) fn word_of(&mut self, bytes: &[u8]) -> Result<u64, Abort> {
        if let Some(word) = short_word(bytes) {
            return Ok(word);
        }
        let memory = self.memory.expect("made with the first table that has such columns");
        let word = allocate(bytes, memory, &mut self.caches).map_err(|_| Abort::MemoryLimit)?;
        self.words.push(word);
        Ok(word)
    }

    /// Frees all blocks.
    pub(crate) fn clear(&mut self) {
        self.too_long = None;
        for word in self.words.drain(..).filter(|word| names_block(*word)) {
            free(word, self.memory.expect("there are blocks"), &mut self.caches);
        }
    }
}

impl LongSink for KeptBytes<'_> {
    fn keep(&mut self, column: LongColumn, bytes: &[u8]) -> Result<u64, Abort> {
        if bytes.len() > LONG_BYTES_MAX {
            self.too_long = Some((column.name, bytes.len()));
            return Err(Abort::TextTooLong);
        }
        self.word_of(bytes)
    }
}

impl Drop for KeptBytes<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}
