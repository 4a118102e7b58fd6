//! Blocks that come one by one from the system's allocator. They exist to compare slabs with that
//! allocator.

use super::{Block, OutOfMemory, WORD_BYTES};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::{NonNull, null_mut};

/// The blocks of one slab that come from the system's allocator. They are linked into a list, so
/// that dropping the list frees the blocks that are still in use.
#[derive(Debug)]
pub(super) struct SystemBlocks {
    /// The header of the block allocated last; null if the list is empty.
    last: *mut Head,
    block_words: usize,
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
unsafe impl Send for SystemBlocks {}

impl SystemBlocks {
    /// Makes an empty list of blocks of `block_words` words each.
    pub(super) fn new(block_words: usize) -> SystemBlocks {
        SystemBlocks { last: null_mut(), block_words }
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
        let memory = unsafe { alloc_zeroed(self.layout()) };
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
        // list. `allocate` has allocated the block with the same layout.
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
