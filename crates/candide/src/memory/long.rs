//! Memory for values of any length: slabs of some twenty sizes, and arrays for what is larger.
//!
//! The slabs belong to the database, not to a table, so that a session caches each size once.

use super::{Block, Cache, Memory, OutOfMemory, Slab, SlabId, WORD_BYTES, WordArray};
#[cfg(test)]
use crate::sync::process::AtomicU64;
use crate::sync::{Mutex, lock};
use std::collections::HashMap;
use std::sync::Arc;

/// The sizes of the slabs' blocks, in bytes, in ascending order. Each is a size to which slabs
/// round ([`Slab::new`]), and at most twice the one before. So less than half of a block is unused,
/// and of a large one less than a third.
const SIZES: [usize; 22] = [
    32, 48, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12_288,
    16_384, 24_576, 32_768, 49_152, 65_536,
];

/// The number of slabs.
pub(crate) const LONG_SLABS: usize = SIZES.len();

/// The kind of a block: the number of its slab, or [`LongKind::LARGE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LongKind(pub(crate) u32);

impl LongKind {
    /// The kind of blocks that are arrays of their own.
    const LARGE: LongKind = LongKind(LONG_SLABS as u32);

    /// Returns the kind of the smallest blocks of at least `bytes` bytes.
    fn of(bytes: usize) -> LongKind {
        LongKind(SIZES.partition_point(|&size| size < bytes) as u32)
    }
}

/// The memory for the long values of a database.
#[derive(Debug)]
pub(crate) struct LongMemory {
    slabs: [Arc<Slab>; LONG_SLABS],
    memory: Arc<Memory>,
    /// The blocks that are larger than those of the slabs.
    large: Mutex<Large>,
    /// The number of blocks in use.
    #[cfg(test)]
    in_use: AtomicU64,
}

/// Blocks that are arrays of their own.
#[derive(Debug, Default)]
struct Large {
    /// By their addresses.
    blocks: HashMap<u64, WordArray>,
    /// The number of their words.
    words: usize,
}

impl LongMemory {
    /// Makes the slabs, without blocks. Their numbers are `first` and those that follow.
    pub(crate) fn new(first: SlabId, memory: &Arc<Memory>) -> LongMemory {
        let slab = |number: usize| {
            let id = SlabId(first.0 + number as u32);
            Slab::new(id, SIZES[number] / WORD_BYTES, memory)
        };
        LongMemory {
            slabs: std::array::from_fn(slab),
            memory: memory.clone(),
            large: Mutex::default(),
            #[cfg(test)]
            in_use: AtomicU64::new(0),
        }
    }

    /// Allocates a block of at least `words` words. The caller owns the block, whose contents are
    /// arbitrary. `caches` are those of the session.
    #[inline]
    pub(crate) fn allocate(
        &self,
        words: usize,
        caches: &mut Vec<Option<Cache>>,
    ) -> Result<(Block, LongKind), OutOfMemory> {
        let kind = LongKind::of(words * WORD_BYTES);
        let block = match self.slabs.get(kind.0 as usize) {
            Some(slab) => Cache::allocate(caches, slab)?,
            None => {
                debug_assert_eq!(kind, LongKind::LARGE);
                self.allocate_large(words)?
            }
        };
        #[cfg(test)]
        self.in_use.fetch_add(1, crate::sync::Ordering::Relaxed);
        Ok((block, kind))
    }

    #[cold]
    #[inline(never)]
    fn allocate_large(&self, words: usize) -> Result<Block, OutOfMemory> {
        let array = WordArray::new(&self.memory, words)?;
        let block = array.block();
        let mut large = lock(&self.large);
        large.words += array.len();
        large.blocks.insert(block.address(), array);
        Ok(block)
    }

    /// Frees a block of this kind, which no thread can reach.
    #[inline]
    pub(crate) fn free(&self, block: Block, kind: LongKind, caches: &mut Vec<Option<Cache>>) {
        #[cfg(test)]
        self.in_use.fetch_sub(1, crate::sync::Ordering::Relaxed);
        match self.slabs.get(kind.0 as usize) {
            Some(slab) => Cache::of(caches, slab).free(slab, block),
            None => self.free_large(block),
        }
    }

    #[cold]
    #[inline(never)]
    fn free_large(&self, block: Block) {
        let mut large = lock(&self.large);
        let array = large.blocks.remove(&block.address());
        debug_assert!(array.is_some(), "a large block is freed once");
        large.words -= array.as_ref().map_or(0, WordArray::len);
        drop(large);
    }

    /// Returns the number of bytes of the database's memory that the blocks have taken, free blocks
    /// of the slabs included.
    pub(crate) fn reserved_bytes(&self) -> usize {
        let large = lock(&self.large).words * WORD_BYTES;
        self.slabs.iter().map(|slab| slab.reserved_bytes()).sum::<usize>() + large
    }

    /// Returns the number of blocks in use.
    #[cfg(test)]
    pub(crate) fn in_use(&self) -> u64 {
        self.in_use.load(crate::sync::Ordering::Relaxed)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn long_memory(limit_bytes: usize) -> (LongMemory, Arc<Memory>) {
        let memory = Arc::new(Memory::new(limit_bytes));
        (LongMemory::new(SlabId(3), &memory), memory)
    }

    #[test]
    fn a_block_has_the_next_size() {
        let (long, _) = long_memory(usize::MAX);
        for (size, slab) in SIZES.into_iter().zip(&long.slabs) {
            assert_eq!(slab.block_words() * WORD_BYTES, size);
            assert_eq!(LongKind::of(size).0 + 1, LongKind::of(size + 1).0);
        }
        assert!(SIZES.windows(2).all(|pair| pair[1] <= 2 * pair[0]));
        assert_eq!(LongKind::of(SIZES[LONG_SLABS - 1] + 1), LongKind::LARGE);
    }

    #[test]
    fn blocks_of_all_sizes_come_back() {
        let (long, memory) = long_memory(usize::MAX);
        let mut caches = Vec::new();
        let mut reserved = 0;
        for round in 0..3 {
            let words = [3, 4, 5, 100, 8192, 8193, 200_000, 2 << 20];
            let blocks = words.map(|words| long.allocate(words, &mut caches).unwrap());
            assert_eq!(long.in_use(), words.len() as u64);
            assert!(blocks.iter().all(|(block, _)| block.address() % 16 == 0));
            if round == 0 {
                reserved = memory.reserved_bytes();
            }
            assert_eq!((memory.reserved_bytes(), long.reserved_bytes()), (reserved, reserved));
            blocks.into_iter().for_each(|(block, kind)| long.free(block, kind, &mut caches));
            assert_eq!(long.in_use(), 0);
            assert_eq!(reserved - long.reserved_bytes(), 8 * (8193 + 200_000 + (2 << 20)));
        }
    }

    #[test]
    fn the_limit_counts_blocks() {
        let (long, memory) = long_memory(1 << 20);
        let mut caches = Vec::new();
        assert_eq!(long.allocate(200_000, &mut caches), Err(OutOfMemory));
        assert!(long.allocate(100_000, &mut caches).is_ok());
        assert_eq!(long.allocate(50_000, &mut caches), Err(OutOfMemory));
        assert_eq!(memory.reserved_bytes(), 800_000);
        while long.allocate(10, &mut caches).is_ok() {}
        drop(long);
        assert!(memory.reserved_bytes() < 800_000, "large blocks are freed with their owner");
    }
}
