//! The memory of records, index lines and versions.
//!
//! * [`Memory`]: one per database. Maps regions, cuts them into 2 MiB chunks and 64 KiB spans,
//!   counts the bytes handed out, and enforces the memory limit. The supply's reserve is touched
//!   when the database is built.
//! * `provider`: the thread that touches chunks ahead of demand, by the rate of `growth`.
//! * [`Slab`]: blocks of one size for one owner (a table's records, an index's overflow lines).
//! * [`Cache`]: a session's few free blocks of one slab, so that most allocations use no shared
//!   memory.
//! * `SingleBlocks`: blocks from another [`Allocator`], for comparing slabs with it.
//! * [`WordArray`]: one large zeroed array (the buckets of an index).
//! * [`LongMemory`]: blocks for values of any length, of all tables of a database.
//!
//! A block consists of 64-bit atomic words only. So an optimistic read of a block that another
//! thread is writing is not undefined behaviour (`docs/decisions/2026-11-21-protocol-seam.md`). A
//! session takes a block from a slab and makes the block reachable. Later the block is retired,
//! waits for the epoch bound, and is free again. The layers above `memory` never see an address
//! that they could free.

mod array;
#[cfg(all(test, target_os = "linux", not(any(loom, shuttle))))]
mod crowd;
mod free;
mod growth;
mod long;
mod provider;
mod region;
mod reserve;
mod slab;
mod supply;
#[cfg(not(any(loom, shuttle)))]
mod system;

pub(crate) use array::WordArray;
#[cfg(any(test, feature = "experiments"))]
pub use free::free_memory;
pub(crate) use long::{LONG_SLABS, LongKind, LongMemory};
pub(crate) use reserve::NotReserved;
pub(crate) use slab::{Cache, Slab, SlabId};
pub(crate) use supply::Memory;

use crate::factor::Factor;
use crate::sync::{AtomicU64, MODELLED, Ordering, prefetch};
use std::ptr::NonNull;

/// The number of bytes of a word.
pub(crate) const WORD_BYTES: usize = 8;

/// The number of words of a cache line.
const LINE_WORDS: usize = 8;

/// An allocation refused by the memory limit of the database or by the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

/// An allocator from which blocks come one by one, instead of from slabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allocator {
    System,
    #[cfg(feature = "mimalloc")]
    Mimalloc,
    #[cfg(feature = "jemalloc")]
    Jemalloc,
}

impl Allocator {
    /// Returns the allocator that a factor chooses; `None` if the factor chooses none, or an
    /// allocator that this build lacks.
    pub(crate) fn of(factor: Factor) -> Option<Allocator> {
        match factor {
            Factor::SystemAllocator => Some(Allocator::System),
            #[cfg(feature = "mimalloc")]
            Factor::Mimalloc => Some(Allocator::Mimalloc),
            #[cfg(feature = "jemalloc")]
            Factor::Jemalloc => Some(Allocator::Jemalloc),
            _ => None,
        }
    }
}

/// The address of a block's first word.
///
/// A block alone does not prove that its memory is allocated. The proof is where the block comes
/// from: [`Cache::allocate`], or a handle of `record`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block(NonNull<AtomicU64>);

// SAFETY: a block is an address; the words behind it are atomics, which any thread may use.
unsafe impl Send for Block {}

impl Block {
    /// Returns the address, for an atomic word that links to this block. On the supported platforms
    /// user space ends below 2^48, so an index may use the upper 16 bits of such a word.
    #[inline]
    pub(crate) fn address(self) -> u64 {
        let address = self.0.as_ptr().expose_provenance() as u64;
        debug_assert!(address >> 48 == 0);
        address
    }

    /// Returns the block at `address`; `None` if `address` is zero. Any other address was returned
    /// by [`Block::address`].
    #[inline]
    pub(crate) fn at(address: u64) -> Option<Block> {
        NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize)).map(Block)
    }

    /// Returns word `index` of the block.
    ///
    /// # Safety
    /// `index` is within the block's size, and the block is not freed during `'a`: the caller owns
    /// the block, or the block was reachable under a pin that lasts for `'a`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) unsafe fn word<'a>(self, index: usize) -> &'a AtomicU64 {
        // SAFETY: in bounds and alive by this function's contract. `region` and `slab` make the
        // words as atomics.
        unsafe { self.0.add(index).as_ref() }
    }

    /// Returns words `first..first + count` of the block.
    ///
    /// # Safety
    /// The conditions of [`Block::word`] hold for each of the words.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) unsafe fn words<'a>(self, first: usize, count: usize) -> &'a [AtomicU64] {
        // SAFETY: in bounds and alive by this function's contract. Shared slices of atomics may
        // alias.
        unsafe { std::slice::from_raw_parts(self.0.add(first).as_ptr(), count) }
    }

    /// Copies words `first..first + count` of block `from` to the same words of this block. The
    /// copy is not atomic, and may copy several words at a time.
    ///
    /// # Safety
    /// The conditions of [`Block::words`] hold for the words of both blocks. Until this function
    /// returns, no other thread uses the words of this block or writes the words of `from`. The
    /// last writes to the words of `from` are visible to the caller.
    #[cfg_attr(not(debug_assertions), inline(always))]
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
            // SAFETY: in bounds, alive and without a data race, by this function's contract.
            // Outside of models an atomic word is represented like a word. Two blocks do not
            // overlap.
            unsafe { std::ptr::copy_nonoverlapping(old, new, count) };
        }
    }

    /// Writes `bytes` into the block, beginning at word `first`, in the order of addresses. The
    /// rest of the last word stays, and is zero before.
    ///
    /// # Safety
    /// The words are within the block's size, and the caller owns the block.
    #[inline]
    pub(crate) unsafe fn write_bytes(self, first: usize, bytes: &[u8]) {
        if MODELLED {
            for (index, bytes) in bytes.chunks(WORD_BYTES).enumerate() {
                let mut word = [0; WORD_BYTES];
                word[..bytes.len()].copy_from_slice(bytes);
                let word = u64::from_le_bytes(word);
                // SAFETY: by this function's contract.
                unsafe { self.word(first + index) }.store(word, Ordering::Relaxed);
            }
        } else {
            let to = self.hint(first).cast::<u8>().cast_mut();
            // SAFETY: in bounds and without a data race, by this function's contract. Outside of
            // models an atomic word is represented like a word.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        }
    }

    /// Returns the first `count` bytes from word `first` on, in the order of addresses. Not for
    /// models, whose words have other bytes.
    ///
    /// # Safety
    /// The conditions of [`Block::words`] hold for the words of these bytes, and no thread writes
    /// them during `'a`. The last writes are visible to the caller.
    #[inline]
    pub(crate) unsafe fn bytes<'a>(self, first: usize, count: usize) -> &'a [u8] {
        if MODELLED {
            unreachable!("the words of models have other bytes");
        }
        // SAFETY: in bounds, alive and not written, by this function's contract. Outside of models
        // an atomic word is represented like a word.
        unsafe { std::slice::from_raw_parts(self.hint(first).cast(), count) }
    }

    /// Returns the block that begins `words` words after this one. The use of that block's words
    /// needs its own proof that they are allocated.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn offset(self, words: usize) -> Block {
        Block(
            NonNull::new(self.0.as_ptr().wrapping_add(words))
                .expect("an address within a block is not zero"),
        )
    }

    /// Prefetches words `first..first + count` of this block. The block need not be allocated.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn prefetch(self, first: usize, count: usize) {
        for line in 0..count.div_ceil(LINE_WORDS) {
            prefetch(self.hint(first + line * LINE_WORDS));
        }
        if count > 1 {
            prefetch(self.hint(first + count - 1));
        }
    }

    /// Returns `address` as a raw pointer, for prefetching. No block needs to exist at `address`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn hint_at(address: u64) -> *const AtomicU64 {
        std::ptr::with_exposed_provenance(address as usize)
    }

    /// Returns a raw pointer to word `index`, for prefetching.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn hint(self, index: usize) -> *const AtomicU64 {
        self.0.as_ptr().wrapping_add(index)
    }
}
