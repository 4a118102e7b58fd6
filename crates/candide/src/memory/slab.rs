//! Slabs, which hold blocks of one size; and a session's caches of free blocks.

use super::{Allocator, Block, Memory, OutOfMemory, WORD_BYTES};
use crate::sync::{AtomicUsize, MODELLED, Mutex, Ordering, lock};
use std::sync::{Arc, Weak};

/// The number of bytes that a cache takes from a slab at once. At this size the slab's lock is
/// taken rarely, and little memory lies unused in caches.
const REFILL_BYTES: usize = 16 << 10;
/// The largest number of blocks that a cache takes from a slab at once.
const REFILL_BLOCKS_MAX: usize = 64;

/// The position of a slab's cache in the list of each session. The position is unique within a
/// database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlabId(pub(crate) u32);

/// Blocks of one size for one owner.
#[derive(Debug)]
pub(crate) struct Slab {
    id: SlabId,
    block_words: usize,
    memory: Arc<Memory>,
    /// The number of bytes of the spans and chunks that this slab has taken.
    reserved_bytes: AtomicUsize,
    store: Mutex<Store>,
}

impl Slab {
    /// Makes a slab of blocks that hold at least `words` words.
    pub(crate) fn new(id: SlabId, words: usize, memory: &Arc<Memory>) -> Arc<Slab> {
        let words = block_bytes(words * WORD_BYTES) / WORD_BYTES;
        Arc::new(Slab {
            id,
            block_words: words,
            memory: memory.clone(),
            reserved_bytes: AtomicUsize::new(0),
            store: Mutex::new(Store::new(words, memory.allocator())),
        })
    }

    /// Returns the position of the slab's cache in the list of each session.
    pub(crate) fn id(&self) -> SlabId {
        self.id
    }

    /// Returns the number of words of a block.
    pub(crate) fn block_words(&self) -> usize {
        self.block_words
    }

    /// Returns the number of bytes of the database's memory that this slab has taken.
    pub(crate) fn reserved_bytes(&self) -> usize {
        self.reserved_bytes.load(Ordering::Relaxed)
    }

    /// Moves at least one block and at most `wanted` blocks to `into`. Takes blocks beyond the
    /// memory limit one at a time, and only if `beyond_limit` is set.
    fn take(
        &self,
        wanted: usize,
        into: &mut Vec<Block>,
        beyond_limit: bool,
    ) -> Result<(), OutOfMemory> {
        let mut store = lock(&self.store);
        if store.is_empty(beyond_limit) {
            self.grow(&mut store, beyond_limit)?;
        }
        store.take(wanted, self.block_words, into);
        Ok(())
    }

    /// Returns free blocks to the slab.
    pub(crate) fn give_back(&self, blocks: impl Iterator<Item = Block>) {
        let mut store = lock(&self.store);
        let bytes = blocks.map(|block| store.push(block)).sum();
        if bytes > 0 {
            self.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.memory.unreserve(bytes);
        }
    }
}

/// Rounds the size of a block up, so that little memory is wasted and small records rarely straddle
/// cache lines. Sizes up to a cache line (64 bytes) are rounded up to a multiple of 16 bytes,
/// larger sizes to a multiple of a line.
fn block_bytes(bytes: usize) -> usize {
    if bytes <= 64 { bytes.max(16).next_multiple_of(16) } else { bytes.next_multiple_of(64) }
}

/// A session's free blocks of one slab. The reference to the slab is weak, since a closed session
/// that is kept for later use must not keep the database alive.
#[derive(Debug)]
pub(crate) struct Cache {
    slab: Weak<Slab>,
    free: Vec<Block>,
    refill_blocks: usize,
    /// The largest number of free blocks that the cache keeps.
    kept_blocks: usize,
}

impl Cache {
    fn new(slab: &Arc<Slab>) -> Cache {
        // Under a model a cache takes one block at a time, so that the block freed last is the next
        // one that a session takes.
        let one_by_one = slab.memory.allocator().is_some();
        let max = if MODELLED || one_by_one { 1 } else { REFILL_BLOCKS_MAX };
        let refill_blocks = (REFILL_BYTES / (slab.block_words * WORD_BYTES)).clamp(1, max);
        let kept_blocks = if one_by_one { 0 } else { 2 * refill_blocks };
        Cache { slab: Arc::downgrade(slab), free: Vec::new(), refill_blocks, kept_blocks }
    }

    /// Returns the cache of `slab` in `caches`, the list of a session.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn of<'a>(caches: &'a mut Vec<Option<Cache>>, slab: &Arc<Slab>) -> &'a mut Cache {
        let index = slab.id.0 as usize;
        if caches.get(index).is_none_or(Option::is_none) {
            Cache::begin(caches, slab);
        }
        caches[index].as_mut().expect("it has begun")
    }

    #[cold]
    #[inline(never)]
    fn begin(caches: &mut Vec<Option<Cache>>, slab: &Arc<Slab>) {
        let index = slab.id.0 as usize;
        if caches.len() <= index {
            caches.resize_with(index + 1, || None);
        }
        caches[index] = Some(Cache::new(slab));
    }

    /// Allocates a block of the slab's size. The caller owns the block, whose contents are
    /// arbitrary.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn allocate(
        caches: &mut Vec<Option<Cache>>,
        slab: &Arc<Slab>,
    ) -> Result<Block, OutOfMemory> {
        let cache = caches.get_mut(slab.id.0 as usize).and_then(Option::as_mut);
        match cache.and_then(|cache| cache.free.pop()) {
            Some(block) => Ok(block),
            None => Cache::allocate_anew(caches, slab),
        }
    }

    /// Allocates a block when the cache has no free block left.
    #[cold]
    #[inline(never)]
    fn allocate_anew(
        caches: &mut Vec<Option<Cache>>,
        slab: &Arc<Slab>,
    ) -> Result<Block, OutOfMemory> {
        let cache = Cache::of(caches, slab);
        slab.take(cache.refill_blocks, &mut cache.free, false)?;
        Ok(cache.take_ready())
    }

    /// Returns the number of blocks that can be allocated without taking more from the slab.
    pub(crate) fn ready(&self) -> usize {
        self.free.len()
    }

    /// Takes blocks from the slab until `count` are ready. May exceed the memory limit if
    /// `beyond_limit` is set.
    pub(crate) fn make_ready(
        &mut self,
        slab: &Slab,
        count: usize,
        beyond_limit: bool,
    ) -> Result<(), OutOfMemory> {
        while self.free.len() < count {
            slab.take(self.refill_blocks, &mut self.free, beyond_limit)?;
        }
        Ok(())
    }

    /// Prefetches the first `words` words of the ready block that the `number`-th next call of
    /// `take_ready` returns, counted from 1.
    #[inline]
    pub(crate) fn prefetch_ready(&self, number: usize, words: usize) {
        self.free[self.free.len() - number].prefetch(0, words);
    }

    /// Takes one of the ready blocks.
    ///
    /// # Panics
    /// If no block is ready.
    #[inline]
    pub(crate) fn take_ready(&mut self) -> Block {
        self.free.pop().expect("as many blocks have been made ready as are taken")
    }

    /// Takes back a block that was ready, and has not been used. It is ready again, also if the
    /// cache would give it to the slab after [`Cache::free`].
    pub(crate) fn return_ready(&mut self, block: Block) {
        self.free.push(block);
    }

    /// Adds `block` to the free blocks. No other thread can reach `block`.
    #[inline]
    pub(crate) fn free(&mut self, slab: &Slab, block: Block) {
        if cfg!(debug_assertions) {
            poison(block, slab.block_words);
        }
        self.free.push(block);
        if self.free.len() > self.kept_blocks {
            slab.give_back(self.free.drain(self.kept_blocks / 2..));
        }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        if let Some(slab) = self.slab.upgrade() {
            slab.give_back(self.free.drain(..));
        }
    }
}

/// Fills a free block with a pattern that no reader can take for a record.
fn poison(block: Block, words: usize) {
    // SAFETY: the block is free and ours. `words` is its size.
    let words = unsafe { block.words(0, words) };
    for word in words {
        word.store(0xdddd_dddd_dddd_dddd, Ordering::Relaxed);
    }
}

#[cfg(any(loom, shuttle))]
use modelled::Store;
#[cfg(not(any(loom, shuttle)))]
use real::Store;

#[cfg(not(any(loom, shuttle)))]
mod real {
    use super::*;
    use crate::memory::region::CHUNK_BYTES;
    use crate::memory::supply::SPAN_BYTES;
    use crate::memory::system::SingleBlocks;

    /// The free blocks of a slab, and the unused rest of its newest span or chunk.
    #[derive(Debug)]
    pub(super) struct Store {
        free: Vec<Block>,
        fresh: std::ops::Range<usize>,
        /// The unused rest of a span or chunk taken beyond the memory limit. Only callers that may
        /// exceed the limit take blocks from it.
        beyond: std::ops::Range<usize>,
        /// The blocks from an allocator. `None` if blocks are cut from spans and chunks.
        single: Option<SingleBlocks>,
    }

    impl Store {
        pub(super) fn new(block_words: usize, allocator: Option<Allocator>) -> Store {
            let single = allocator.map(|allocator| SingleBlocks::new(block_words, allocator));
            Store { free: Vec::new(), fresh: 0..0, beyond: 0..0, single }
        }

        pub(super) fn is_empty(&self, beyond_limit: bool) -> bool {
            self.free.is_empty()
                && self.fresh.is_empty()
                && (!beyond_limit || self.beyond.is_empty())
        }

        /// Moves up to `wanted` blocks to `into`. If no block within the memory limit is left,
        /// takes a block from beyond the limit.
        pub(super) fn take(&mut self, wanted: usize, block_words: usize, into: &mut Vec<Block>) {
            let kept = self.free.len().saturating_sub(wanted);
            let more = wanted - (self.free.len() - kept);
            into.extend(self.free.drain(kept..));
            let (rest, most) = match self.fresh.is_empty() {
                true => (&mut self.beyond, more.min(usize::from(more == wanted))),
                false => (&mut self.fresh, more),
            };
            let bytes = block_words * WORD_BYTES;
            let fresh = most.min(rest.len() / bytes);
            let block = |number| {
                Block::at((rest.start + number * bytes) as u64).expect("no span begins at zero")
            };
            // A cache uses the last block of `into` first. So the blocks are pushed in descending
            // order of addresses, to be used in ascending order.
            into.extend((0..fresh).rev().map(block));
            rest.start += fresh * bytes;
            if rest.len() < bytes {
                *rest = 0..0;
            }
        }

        /// Returns a block to the store. The result is the number of bytes that the slab thereby
        /// returns to the allocator; zero if the slab keeps the block.
        pub(super) fn push(&mut self, block: Block) -> usize {
            let Some(single) = &mut self.single else {
                self.free.push(block);
                return 0;
            };
            single.free(block);
            single.block_bytes()
        }
    }

    impl Slab {
        /// Takes more memory for the slab: a span while the slab and its blocks are small, and a
        /// chunk once the slab has a megabyte. If blocks come from an allocator one by one, this
        /// function takes one block.
        pub(super) fn grow(
            &self,
            store: &mut Store,
            beyond_limit: bool,
        ) -> Result<(), OutOfMemory> {
            let small = self.reserved_bytes() < CHUNK_BYTES / 2
                && self.block_words * WORD_BYTES <= SPAN_BYTES / 4;
            let bytes = match &store.single {
                Some(single) => single.block_bytes(),
                None if small => SPAN_BYTES,
                None => CHUNK_BYTES,
            };
            let is_beyond = self.memory.reserve_for(bytes, beyond_limit)?;
            let taken = match &mut store.single {
                Some(single) => single.allocate().map(|block| store.free.push(block)),
                None => self.memory.carve(bytes).map(|start| {
                    let rest = if is_beyond { &mut store.beyond } else { &mut store.fresh };
                    *rest = start..start + bytes;
                }),
            };
            taken.inspect_err(|_| self.memory.unreserve(bytes))?;
            self.reserved_bytes.fetch_add(bytes, Ordering::Relaxed);
            Ok(())
        }
    }
}

#[cfg(any(loom, shuttle))]
mod modelled {
    use super::*;
    use crate::sync::AtomicU64;

    /// Blocks, each a separate allocation. The store keeps a list of the blocks in use, so that
    /// dropping the slab frees them. Under loom, which detects accesses after a free, a returned
    /// block is freed. Under shuttle, which does not detect such accesses, a returned block is the
    /// next one taken.
    #[derive(Debug, Default)]
    pub(super) struct Store {
        ready: Vec<Block>,
        live: std::collections::HashMap<u64, usize>,
    }

    impl Store {
        /// Makes an empty store. A model allocates blocks one by one, whatever the parameters.
        pub(super) fn new(_block_words: usize, _allocator: Option<Allocator>) -> Store {
            Store::default()
        }

        pub(super) fn is_empty(&self, _beyond_limit: bool) -> bool {
            self.ready.is_empty()
        }

        pub(super) fn take(&mut self, wanted: usize, _block_words: usize, into: &mut Vec<Block>) {
            into.extend(self.ready.drain(self.ready.len().saturating_sub(wanted)..).rev());
        }

        pub(super) fn push(&mut self, block: Block) -> usize {
            if cfg!(shuttle) {
                self.ready.push(block);
            } else {
                let words = self
                    .live
                    .remove(&block.address())
                    .expect("a block is given back once, to its own slab");
                free(block, words);
            }
            0
        }
    }

    impl Drop for Store {
        fn drop(&mut self) {
            for (address, words) in self.live.drain() {
                free(Block::at(address).expect("live blocks have addresses"), words);
            }
        }
    }

    fn free(block: Block, words: usize) {
        let first: *mut AtomicU64 = std::ptr::with_exposed_provenance_mut(block.address() as usize);
        // SAFETY: `grow` made this boxed slice of `words` atomics, and no other thread can reach
        // the slice.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(first, words)) });
    }

    impl Slab {
        pub(super) fn grow(
            &self,
            store: &mut Store,
            beyond_limit: bool,
        ) -> Result<(), OutOfMemory> {
            let bytes = self.block_words * WORD_BYTES;
            self.memory.reserve_for(bytes, beyond_limit)?;
            self.reserved_bytes.fetch_add(bytes, Ordering::Relaxed);
            let words: Box<[AtomicU64]> =
                (0..self.block_words).map(|_| AtomicU64::new(0)).collect();
            let block =
                Block::at(Box::into_raw(words).cast::<AtomicU64>().expose_provenance() as u64);
            let block = block.expect("an allocation is never at zero");
            store.live.insert(block.address(), self.block_words);
            store.ready.push(block);
            Ok(())
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_distinct_aligned_and_come_back() {
        let memory = Arc::new(Memory::new(usize::MAX));
        let slab = Slab::new(SlabId(3), 17, &memory);
        let mut caches = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..5_000 {
            let block = Cache::allocate(&mut caches, &slab).unwrap();
            assert_eq!(block.address() % 64, 0);
            assert!(seen.insert(block.address()));
        }
        let reserved = slab.reserved_bytes();
        assert!(reserved >= 5_000 * 192, "{reserved}");
        assert_eq!(memory.reserved_bytes(), reserved);
        for &address in &seen {
            Cache::of(&mut caches, &slab).free(&slab, Block::at(address).unwrap());
        }
        for _ in 0..5_000 {
            Cache::allocate(&mut caches, &slab).unwrap();
        }
        assert_eq!(slab.reserved_bytes(), reserved);
    }

    #[test]
    fn a_span_copies_the_given_number_of_words() {
        let slab = Slab::new(SlabId(0), 16, &Arc::new(Memory::new(usize::MAX)));
        let mut caches = Vec::new();
        let [new, old] = [7, 8].map(|value| {
            let block = Cache::allocate(&mut caches, &slab).unwrap();
            // SAFETY: the block is ours, and has 16 words.
            unsafe { block.words(0, 16) }
                .iter()
                .for_each(|word| word.store(value, Ordering::Relaxed));
            block
        });
        // SAFETY: both blocks belong to this test alone.
        unsafe { new.copy_words(old, 3, 12) };
        // SAFETY: as above.
        let words = unsafe { new.words(0, 16) }.iter().map(|word| word.load(Ordering::Relaxed));
        assert_eq!(words.collect::<Vec<_>>(), [7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7]);
    }

    #[test]
    fn a_refused_span_leaves_the_account_as_it_was() {
        let memory = Arc::new(Memory::new(100 << 10));
        let slab = Slab::new(SlabId(0), 16, &memory);
        let mut caches = Vec::new();
        let mut blocks = 0;
        while Cache::allocate(&mut caches, &slab).is_ok() {
            blocks += 1;
        }
        assert_eq!(blocks, 512);
        assert_eq!(memory.reserved_bytes(), 64 << 10);
    }

    #[test]
    fn memory_beyond_the_limit_is_for_operations_that_may_pass_it() {
        let memory = Arc::new(Memory::new(64 << 10));
        let slab = Slab::new(SlabId(0), 16, &memory);
        let mut caches = Vec::new();
        while Cache::allocate(&mut caches, &slab).is_ok() {}
        let mut cache = Cache::new(&slab);
        cache.make_ready(&slab, 3, true).unwrap();
        assert_eq!((cache.ready(), memory.reserved_bytes()), (3, 128 << 10));
        // A caller that must stay within the limit gets no block from the rest of that span.
        assert!(Cache::allocate(&mut caches, &slab).is_err());
        for _ in 0..512 - 3 {
            cache.make_ready(&slab, cache.ready() + 1, true).unwrap();
        }
        assert_eq!((cache.ready(), memory.reserved_bytes()), (512, 128 << 10));
        cache.make_ready(&slab, 513, true).unwrap();
        assert_eq!(memory.reserved_bytes(), 192 << 10);
        // Any caller can take blocks that were returned.
        drop(cache);
        assert!(Cache::allocate(&mut caches, &slab).is_ok());
    }

    #[test]
    fn size_classes_waste_a_bounded_share() {
        assert_eq!([1, 16, 17, 33, 64, 65, 1080].map(block_bytes), [16, 16, 32, 48, 64, 128, 1088]);
    }
}
