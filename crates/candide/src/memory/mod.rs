//! The memory of records, index lines and versions.
//!
//! * [`Memory`]: one per database. Maps regions, cuts them into 2 MiB chunks and 64 KiB spans,
//!   counts the bytes and keeps the limit.
//! * [`Slab`]: blocks of one size for one owner (a table's records, an index's overflow lines).
//! * [`Cache`]: a session's few free blocks of one slab, so that the common allocation touches
//!   nothing shared.
//! * `SystemBlocks`: blocks from the system's allocator, for comparison.
//! * [`WordArray`]: one large zeroed array (the buckets of an index).
//!
//! A block is 64-bit atomic words and nothing else; that is what makes optimistic reading sound
//! (`docs/decisions/2026-11-21-protocol-seam.md`). Blocks go from a slab to a session, become
//! reachable, are retired, wait for the epoch bound and come back; the layers above never see an
//! address they could free.

mod array;
mod region;
mod slab;
#[cfg(not(any(loom, shuttle)))]
mod system;

pub(crate) use array::WordArray;
pub(crate) use region::Memory;
pub(crate) use slab::{Cache, Slab, SlabId};

use crate::sync::{AtomicU64, MODELLED, Ordering, prefetch};
use std::ptr::NonNull;

/// The bytes of a word.
pub(crate) const WORD_BYTES: usize = 8;

/// The words of a cache line.
const LINE_WORDS: usize = 8;

/// An allocation refused by the memory limit of the database or by the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

/// The address of a block's first word.
///
/// A block proves nothing about the memory behind it; its source does ([`Cache::allocate`], a
/// handle of `record`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block(NonNull<AtomicU64>);

// SAFETY: a block is an address; the words behind it are atomics, which any thread may use.
unsafe impl Send for Block {}

impl Block {
    /// Returns the address, for an atomic word that links to this block. User space ends below 2^48
    /// on the supported platforms, which leaves 16 bits to the index.
    #[inline]
    pub(crate) fn address(self) -> u64 {
        let address = self.0.as_ptr().expose_provenance() as u64;
        debug_assert!(address >> 48 == 0);
        address
    }

    /// Returns the block at an address from [`Block::address`]; `None` for zero.
    #[inline]
    pub(crate) fn at(address: u64) -> Option<Block> {
        NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize)).map(Block)
    }

    /// Returns word `index` of the block.
    ///
    /// # Safety
    /// `index` is within the block's size, and the block is not freed during `'a`: it is owned by
    /// the caller, or was reachable under a pin that lasts for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn word<'a>(self, index: usize) -> &'a AtomicU64 {
        // SAFETY: in bounds and alive by this function's contract; words are made as atomics by
        // `region` and `slab`.
        unsafe { self.0.add(index).as_ref() }
    }

    /// Returns words `first..first + count` of the block.
    ///
    /// # Safety
    /// As for [`Block::word`], for each of the words.
    #[inline(always)]
    pub(crate) unsafe fn words<'a>(self, first: usize, count: usize) -> &'a [AtomicU64] {
        // SAFETY: in bounds and alive by this function's contract; shared slices of atomics may
        // alias.
        unsafe { std::slice::from_raw_parts(self.0.add(first).as_ptr(), count) }
    }

    /// Copies words `first..first + count` of another block into this one by wide copies, not as
    /// single atomics.
    ///
    /// # Safety
    /// As for [`Block::words`], for these words of both blocks. Until this returns, no other thread
    /// uses these words of this block, and no thread writes these words of the other block. The
    /// caller has seen the last writes of the other block's words.
    #[inline(always)]
    pub(crate) unsafe fn copy_words(self, from: Block, first: usize, count: usize) {
        if MODELLED {
            // SAFETY: by this function's contract.
            let (new, old) = unsafe { (self.words(first, count), from.words(first, count)) };
            new.iter()
                .zip(old)
                .for_each(|(new, old)| new.store(old.load(Ordering::Relaxed), Ordering::Relaxed));
        } else {
            let (new, old) =
                (self.hint(first).cast::<u64>().cast_mut(), from.hint(first).cast::<u64>());
            // SAFETY: in bounds and alive, and nothing races with it, by this function's contract;
            // outside of models an atomic word is represented like a word. Two blocks do not
            // overlap.
            unsafe { std::ptr::copy_nonoverlapping(old, new, count) };
        }
    }

    /// Returns the block that begins `words` words further on; its use needs a proof of its own.
    #[inline(always)]
    pub(crate) fn offset(self, words: usize) -> Block {
        Block(
            NonNull::new(self.0.as_ptr().wrapping_add(words))
                .expect("an address within a block is not zero"),
        )
    }

    /// Prefetches words `first..first + count` of what may be a block.
    #[inline(always)]
    pub(crate) fn prefetch(self, first: usize, count: usize) {
        for line in 0..count.div_ceil(LINE_WORDS) {
            prefetch(self.hint(first + line * LINE_WORDS));
        }
        if count > 1 {
            prefetch(self.hint(first + count - 1));
        }
    }

    /// Returns the raw address of what may be a block, for prefetching.
    #[inline(always)]
    pub(crate) fn hint_at(address: u64) -> *const AtomicU64 {
        std::ptr::with_exposed_provenance(address as usize)
    }

    /// Returns the raw address of a word, for prefetching.
    #[inline(always)]
    pub(crate) fn hint(self, index: usize) -> *const AtomicU64 {
        self.0.as_ptr().wrapping_add(index)
    }
}
