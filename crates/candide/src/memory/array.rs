//! A large zeroed array of words.

use super::{Block, Memory, OutOfMemory, WORD_BYTES};
use crate::sync::AtomicU64;
use std::sync::Arc;

/// An array of words. The array begins on a cache line. All words are zero at first. The array's
/// bytes count as memory of a database. A dropped array frees its bytes.
#[derive(Debug)]
pub(crate) struct WordArray {
    first: Block,
    words: usize,
    memory: Arc<Memory>,
    _storage: Storage,
}

impl WordArray {
    /// Allocates an array of `words` zeros.
    pub(crate) fn new(memory: &Arc<Memory>, words: usize) -> Result<WordArray, OutOfMemory> {
        let bytes = words.checked_mul(WORD_BYTES).ok_or(OutOfMemory)?;
        memory.reserve(bytes)?;
        let storage = Storage::new(memory, words).inspect_err(|_| memory.unreserve(bytes))?;
        Ok(WordArray { first: storage.first(), words, memory: memory.clone(), _storage: storage })
    }

    /// Returns the array's memory as one block of [`WordArray::len`] words. The array owns the
    /// block.
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

    /// A cache line of words. A small array consists of such lines, so that it begins on a cache
    /// line like a large array.
    #[derive(Debug)]
    #[repr(align(64))]
    struct Line(
        #[expect(dead_code, reason = "reached through the address of the first")] [AtomicU64; 8],
    );

    #[derive(Debug)]
    pub(super) struct Storage {
        address: usize,
        kind: Kind,
    }

    #[derive(Debug)]
    enum Kind {
        /// A boxed slice of lines, kept as an address, since moving a box would invalidate other
        /// pointers to its contents.
        Small { lines: usize },
        /// The array has its own mapping.
        Large(#[expect(dead_code, reason = "owns the mapping")] Region),
        /// A part of the database's reserve.
        Reserved { memory: Arc<Memory>, bytes: usize },
    }

    impl Storage {
        pub(super) fn new(memory: &Arc<Memory>, words: usize) -> Result<Storage, OutOfMemory> {
            let bytes = words * WORD_BYTES;
            if bytes >= CHUNK_BYTES / 2 {
                let padded = bytes.checked_next_multiple_of(CHUNK_BYTES).ok_or(OutOfMemory)?;
                if let Some(address) = memory.take_reserve(padded) {
                    let kind = Kind::Reserved { memory: memory.clone(), bytes: padded };
                    return Ok(Storage { address, kind });
                }
                let region = Region::map(padded)?;
                memory.note_fresh(padded);
                return Ok(Storage { address: region.address(), kind: Kind::Large(region) });
            }
            let lines = words.div_ceil(8);
            let boxed: Box<[Line]> =
                (0..lines).map(|_| Line(std::array::from_fn(|_| AtomicU64::new(0)))).collect();
            let address = Box::into_raw(boxed).cast::<Line>().expose_provenance();
            Ok(Storage { address, kind: Kind::Small { lines } })
        }

        pub(super) fn first(&self) -> Block {
            Block::at(self.address as u64).expect("an allocation is never at zero")
        }
    }

    impl Drop for Storage {
        fn drop(&mut self) {
            if let Kind::Reserved { memory, bytes } = &self.kind {
                memory.keep(self.address..self.address + bytes);
            }
            if let Kind::Small { lines } = self.kind {
                let first: *mut Line = std::ptr::with_exposed_provenance_mut(self.address);
                // SAFETY: `new` made this boxed slice of `lines` lines. The caller that drops the
                // array has shown that no thread uses the array any more.
                drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(first, lines)) });
            }
        }
    }
}

#[cfg(any(loom, shuttle))]
mod modelled {
    use super::*;

    #[derive(Debug)]
    pub(super) struct Storage(Box<[AtomicU64]>);

    impl Storage {
        pub(super) fn new(_memory: &Arc<Memory>, words: usize) -> Result<Storage, OutOfMemory> {
            Ok(Storage((0..words.max(1)).map(|_| AtomicU64::new(0)).collect()))
        }

        pub(super) fn first(&self) -> Block {
            Block::at(self.0.as_ptr().expose_provenance() as u64)
                .expect("an allocation is never at zero")
        }
    }
}
