//! One large zeroed array of words.

use super::{Block, Memory, OutOfMemory, WORD_BYTES};
use crate::sync::AtomicU64;
use std::sync::Arc;

/// A zeroed array of words on the account of a database, freed when dropped. It begins on a cache line.
#[derive(Debug)]
pub(crate) struct WordArray {
    first: Block,
    words: usize,
    memory: Arc<Memory>,
    _storage: Storage,
}

impl WordArray {
    /// An array of `words` zeros.
    pub(crate) fn new(memory: &Arc<Memory>, words: usize) -> Result<WordArray, OutOfMemory> {
        memory.reserve(words * WORD_BYTES)?;
        let storage = Storage::new(words);
        Ok(WordArray { first: storage.first(), words, memory: memory.clone(), _storage: storage })
    }

    /// The array's memory as one block of [`WordArray::len`] words, owned by `self`.
    #[inline]
    pub(crate) fn block(&self) -> Block {
        self.first
    }

    pub(crate) fn len(&self) -> usize {
        self.words
    }
}

impl Drop for WordArray {
    fn drop(&mut self) {
        self.memory.unreserve(self.words * WORD_BYTES);
    }
}

#[cfg(any(loom, shuttle))]
use modelled::Storage;
#[cfg(not(any(loom, shuttle)))]
use real::Storage;

#[cfg(not(any(loom, shuttle)))]
mod real {
    use super::*;
    use crate::memory::region::{CHUNK_BYTES, Region};

    /// A cache line's worth of words, so that a small array is aligned like a large one.
    #[derive(Debug)]
    #[repr(align(64))]
    pub(super) struct Line(#[expect(dead_code, reason = "reached through the address of the first")] [AtomicU64; 8]);

    #[derive(Debug)]
    pub(super) enum Storage {
        Small(Box<[Line]>),
        Large(Region),
    }

    impl Storage {
        pub(super) fn new(words: usize) -> Storage {
            let bytes = words * WORD_BYTES;
            if bytes >= CHUNK_BYTES / 2 {
                return Storage::Large(Region::map(bytes.next_multiple_of(CHUNK_BYTES)));
            }
            let line = || Line(std::array::from_fn(|_| AtomicU64::new(0)));
            Storage::Small((0..words.div_ceil(8)).map(|_| line()).collect())
        }

        pub(super) fn first(&self) -> Block {
            let address = match self {
                Storage::Small(lines) => lines.as_ptr().expose_provenance(),
                Storage::Large(region) => region.address(),
            };
            Block::at(address as u64).expect("an allocation is never at zero")
        }
    }
}

#[cfg(any(loom, shuttle))]
mod modelled {
    use super::*;

    #[derive(Debug)]
    pub(super) struct Storage(Box<[AtomicU64]>);

    impl Storage {
        pub(super) fn new(words: usize) -> Storage {
            Storage((0..words.max(1)).map(|_| AtomicU64::new(0)).collect())
        }

        pub(super) fn first(&self) -> Block {
            Block::at(self.0.as_ptr().expose_provenance() as u64).expect("an allocation is never at zero")
        }
    }
}
