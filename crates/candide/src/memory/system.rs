//! Blocks from the system's allocator, one by one, to measure slabs against.

use super::{Block, OutOfMemory, WORD_BYTES};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::{NonNull, null_mut};

/// The blocks of one slab from the system's allocator, in a list, so that those in use to the end
/// are freed with it.
#[derive(Debug)]
pub(super) struct SystemBlocks {
    /// The block allocated last.
    last: *mut Head,
    block_words: usize,
}

/// The header of a block: a cache line, so that the block begins on one.
#[derive(Debug)]
#[repr(align(64))]
struct Head {
    earlier: *mut Head,
    later: *mut Head,
}

// SAFETY: the list is reached through this alone, and links allocations that no thread owns.
unsafe impl Send for SystemBlocks {}

impl SystemBlocks {
    /// Makes an empty list of blocks of `block_words` words each.
    pub(super) fn new(block_words: usize) -> SystemBlocks {
        SystemBlocks { last: null_mut(), block_words }
    }

    /// Returns the bytes of a block with its header.
    pub(super) fn block_bytes(&self) -> usize {
        size_of::<Head>() + self.block_words * WORD_BYTES
    }

    fn layout(&self) -> Layout {
        Layout::from_size_align(self.block_bytes(), align_of::<Head>()).expect("blocks are small")
    }

    /// Allocates a zeroed block.
    pub(super) fn allocate(&mut self) -> Result<Block, OutOfMemory> {
        // SAFETY: the layout is not empty: it has a head.
        let memory = unsafe { alloc_zeroed(self.layout()) };
        let head = NonNull::new(memory.cast::<Head>()).ok_or(OutOfMemory)?.as_ptr();
        // SAFETY: the head begins the allocation, which is ours; `last` is null or a head of the
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
        // SAFETY: a slab gets back only its own blocks, each once, so a header of the list precedes
        // this block; the links of that header are null or point to headers of the list. `allocate`
        // used the same layout.
        unsafe {
            let Head { earlier, later } = head.read();
            match later.as_mut() {
                Some(later) => later.earlier = earlier,
                None => self.last = earlier,
            }
            if let Some(earlier) = earlier.as_mut() {
                earlier.later = later;
            }
            dealloc(head.cast(), self.layout());
        }
    }
}

impl Drop for SystemBlocks {
    fn drop(&mut self) {
        while !self.last.is_null() {
            let block = Block::at(self.last.wrapping_add(1).expose_provenance() as u64);
            self.free(block.expect("an allocation is never at zero"));
        }
    }
}
