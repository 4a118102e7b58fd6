//! Blocks that come one by one from the system's allocator or another one. Such blocks exist to
//! compare slabs with that allocator.

use super::{Allocator, Block, OutOfMemory, WORD_BYTES};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{NonNull, null_mut};

impl Allocator {
    fn implementation(self) -> &'static dyn GlobalAlloc {
        match self {
            Allocator::System => &System,
            #[cfg(feature = "mimalloc")]
            Allocator::Mimalloc => &mimalloc::MiMalloc,
            #[cfg(feature = "jemalloc")]
            Allocator::Jemalloc => &tikv_jemallocator::Jemalloc,
        }
    }
}

/// The blocks of one slab that come from an allocator. The blocks are linked into a list, so that
/// dropping the list frees the blocks that are still in use.
#[derive(Debug)]
pub(super) struct SingleBlocks {
    /// The header of the block allocated last; null if the list is empty.
    last: *mut Head,
    block_words: usize,
    allocator: Allocator,
}

/// The header in front of a block. The header takes a whole cache line, so that the block begins on
/// a cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Head {
    earlier: *mut Head,
    later: *mut Head,
}

// SAFETY: no other value reaches the list, and the allocations that it links belong to no thread.
unsafe impl Send for SingleBlocks {}

impl SingleBlocks {
    /// Makes an empty list of blocks of `block_words` words each.
    pub(super) fn new(block_words: usize, allocator: Allocator) -> SingleBlocks {
        SingleBlocks { last: null_mut(), block_words, allocator }
    }

    /// Returns the number of bytes of a block with its header.
    pub(super) fn block_bytes(&self) -> usize {
        size_of::<Head>() + self.block_words * WORD_BYTES
    }

    fn layout(&self) -> Layout {
        Layout::from_size_align(self.block_bytes(), align_of::<Head>()).expect("blocks are small")
    }

    /// Allocates a zeroed block.
    pub(super) fn allocate(&mut self) -> Result<Block, OutOfMemory> {
        // SAFETY: the layout is not empty, since it has a head.
        let memory = unsafe { self.allocator.implementation().alloc_zeroed(self.layout()) };
        let head = NonNull::new(memory.cast::<Head>()).ok_or(OutOfMemory)?.as_ptr();
        // SAFETY: the allocation is ours and begins with the head. `last` is null or a head of the
        // list.
        unsafe {
            head.write(Head { earlier: self.last, later: null_mut() });
            if let Some(last) = self.last.as_mut() {
                last.later = head;
            }
        }
        self.last = head;
        Ok(Block::at(head.wrapping_add(1).expose_provenance() as u64)
            .expect("an allocation is never at zero"))
    }

    /// Frees a block of the list.
    pub(super) fn free(&mut self, block: Block) {
        let head =
            std::ptr::with_exposed_provenance_mut::<Head>(block.address() as usize).wrapping_sub(1);
        // SAFETY: only blocks of this list are returned to the slab, each of them once. So `block`
        // has a head of the list in front of it. The head's neighbours are null or heads of the
        // list. `allocate` has allocated the block from the same allocator with the same layout.
        unsafe {
            let Head { earlier, later } = head.read();
            match later.as_mut() {
                Some(later) => later.earlier = earlier,
                None => self.last = earlier,
            }
            if let Some(earlier) = earlier.as_mut() {
                earlier.later = later;
            }
            self.allocator.implementation().dealloc(head.cast(), self.layout());
        }
    }
}

impl Drop for SingleBlocks {
    fn drop(&mut self) {
        while !self.last.is_null() {
            let block = Block::at(self.last.wrapping_add(1).expose_provenance() as u64);
            self.free(block.expect("an allocation is never at zero"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factor::Factor;
    use crate::sync::Ordering;

    #[test]
    fn blocks_of_every_allocator_are_zeroed_aligned_and_freed() {
        for allocator in Factor::ALL.into_iter().filter_map(Allocator::of) {
            let mut list = SingleBlocks::new(20, allocator);
            let blocks: Vec<Block> = (0..100).map(|_| list.allocate().unwrap()).collect();
            for (number, block) in blocks.iter().enumerate() {
                assert_eq!(block.address() % 64, 0, "{allocator:?}");
                // SAFETY: the block has 20 words, and the list has not freed it.
                for word in unsafe { block.words(0, 20) } {
                    assert_eq!(word.swap(number as u64 + 1, Ordering::Relaxed), 0, "{allocator:?}");
                }
            }
            // Blocks in the middle, at the end and at the beginning; dropping the list frees the
            // others.
            for &index in &[50, 99, 0] {
                list.free(blocks[index]);
            }
            // SAFETY: as above.
            let word = |block: &Block| unsafe { block.word(19) }.load(Ordering::Relaxed);
            assert_eq!(blocks[1..50].iter().map(word).sum::<u64>(), (2..=50).sum::<u64>());
        }
    }
}
