//! The memory of one database: chunks, the count of bytes, and the limit.

use super::free::free_memory;
use super::growth::{Demand, Growth};
use super::provider::{self, Growing};
use super::region::{CHUNK_BYTES, Region, give_back, touch};
use super::reserve::{NotReserved, touched_region};
use super::{Allocator, OutOfMemory};
use crate::sync::{AtomicUsize, MODELLED, Mutex, Ordering, lock};
use std::ops::Range;
use std::sync::Arc;

/// The size of a span, in bytes. A small slab takes one span at a time. A chunk has 32 spans.
pub(crate) const SPAN_BYTES: usize = 64 << 10;
/// The size of a region, in bytes. This size keeps both the number of mappings and the unused
/// address space low.
const REGION_BYTES: usize = 16 * CHUNK_BYTES;

/// The memory of one database.
///
/// A chunk is *touched* once the operating system has provided its pages. The chunks that the
/// database takes were touched before if possible: they come from its reserve, or from the stretch
/// that the provider touches ahead of demand. Otherwise they are *fresh*, and the first transaction
/// that uses a page of them waits while the system clears it.
#[derive(Debug)]
pub(crate) struct Memory {
    limit_bytes: usize,
    /// The allocator from which blocks come one by one. `None` if blocks come from slabs.
    allocator: Option<Allocator>,
    /// The number of bytes handed out to slabs and arrays. Written when a span, a chunk or an array
    /// is taken or returned.
    reserved_bytes: AtomicUsize,
    /// The number of bytes that are touched and not handed out.
    ready_bytes: AtomicUsize,
    /// The number of bytes that were fresh when they were handed out.
    fresh_bytes: AtomicUsize,
    chunks: Mutex<Chunks>,
}

#[derive(Debug, Default)]
struct Chunks {
    regions: Vec<Region>,
    /// The untouched rest of the newest region.
    untouched: Range<usize>,
    /// Chunks whose pages were given back to the operating system.
    returned: Vec<usize>,
    /// The unused rest of the reserve, which contains only zeros.
    reserve: Range<usize>,
    /// Chunks of the reserve that an array has used and returned.
    kept: Vec<usize>,
    /// Chunks that the provider has touched.
    ahead: Vec<usize>,
    /// The unused rest of the chunk from which small slabs take spans.
    spans: Range<usize>,
    growth: Growth,
}

impl Memory {
    pub(crate) fn new(limit_bytes: usize) -> Memory {
        Memory {
            limit_bytes,
            allocator: None,
            reserved_bytes: AtomicUsize::new(0),
            ready_bytes: AtomicUsize::new(0),
            fresh_bytes: AtomicUsize::new(0),
            chunks: Mutex::new(Chunks::default()),
        }
    }

    /// Sets the allocator from which blocks come one by one.
    pub(crate) fn by_allocator(self, allocator: Option<Allocator>) -> Memory {
        Memory { allocator, ..self }
    }

    /// Returns the allocator from which blocks come one by one.
    pub(super) fn allocator(&self) -> Option<Allocator> {
        self.allocator
    }

    /// Returns the number of bytes handed out to slabs and arrays.
    pub(crate) fn reserved_bytes(&self) -> usize {
        self.reserved_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that are touched and not handed out.
    pub(crate) fn ready_bytes(&self) -> usize {
        self.ready_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that were fresh when they were handed out.
    pub(crate) fn fresh_bytes(&self) -> usize {
        self.fresh_bytes.load(Ordering::Relaxed)
    }

    /// Maps and touches at least `bytes` bytes, which the slabs and arrays take before any other
    /// memory. `stopped` is asked before each chunk; once it returns true, nothing is reserved.
    pub(crate) fn touch_reserve(
        &self,
        bytes: usize,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), NotReserved> {
        if bytes > self.limit_bytes {
            return Err(NotReserved::AboveLimit);
        }
        if bytes == 0 {
            return Ok(());
        }
        if let Some(free) = free_memory().filter(|&free| bytes as u64 > free) {
            return Err(NotReserved::AboveFree(Some(free)));
        }
        if MODELLED || self.allocator.is_some() {
            return Ok(());
        }
        let padded = bytes.checked_next_multiple_of(CHUNK_BYTES).ok_or(OutOfMemory)?;
        let region = touched_region(padded, stopped)?;
        let mut chunks = lock(&self.chunks);
        debug_assert!(chunks.reserve.is_empty(), "there is one reserve");
        chunks.reserve = region.range();
        chunks.regions.push(region);
        self.ready_bytes.fetch_add(padded, Ordering::Relaxed);
        Ok(())
    }

    /// Counts `bytes` as handed out, if the limit allows.
    pub(super) fn reserve(&self, bytes: usize) -> Result<(), OutOfMemory> {
        let grown =
            |reserved: usize| reserved.checked_add(bytes).filter(|&sum| sum <= self.limit_bytes);
        match self.reserved_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown) {
            Ok(_) => Ok(()),
            Err(_) => Err(OutOfMemory),
        }
    }

    /// Counts `bytes` as handed out. May exceed the limit if `beyond_limit` is set, for callers
    /// that must complete what they have begun (a half-moved bucket, the version of a delete).
    /// Returns whether this call exceeds the limit.
    pub(super) fn reserve_for(
        &self,
        bytes: usize,
        beyond_limit: bool,
    ) -> Result<bool, OutOfMemory> {
        match self.reserve(bytes) {
            Err(OutOfMemory) if beyond_limit => {
                self.reserved_bytes.fetch_add(bytes, Ordering::Relaxed);
                Ok(true)
            }
            within => within.map(|()| false),
        }
    }

    pub(super) fn unreserve(&self, bytes: usize) {
        self.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns the address of `bytes` bytes (a span or a chunk), which are not unmapped before
    /// `self` is dropped. The bytes have arbitrary contents.
    ///
    /// # Errors
    /// If the operating system refuses the memory.
    pub(super) fn carve(self: &Arc<Memory>, bytes: usize) -> Result<usize, OutOfMemory> {
        debug_assert!(bytes == SPAN_BYTES || bytes == CHUNK_BYTES);
        let chunks = &mut *lock(&self.chunks);
        if bytes == CHUNK_BYTES {
            return self.next_chunk(chunks);
        }
        if chunks.spans.is_empty() {
            let chunk = self.next_chunk(chunks)?;
            chunks.spans = chunk..chunk + CHUNK_BYTES;
        }
        let span = chunks.spans.start;
        chunks.spans.start += SPAN_BYTES;
        Ok(span)
    }

    /// Returns a touched chunk if there is one, and a fresh one otherwise.
    fn next_chunk(self: &Arc<Memory>, chunks: &mut Chunks) -> Result<usize, OutOfMemory> {
        let chunk = match chunks.next_touched() {
            Some(chunk) => {
                self.ready_bytes.fetch_sub(CHUNK_BYTES, Ordering::Relaxed);
                chunk
            }
            None => {
                let chunk = chunks.next_untouched()?;
                self.fresh_bytes.fetch_add(CHUNK_BYTES, Ordering::Relaxed);
                chunk
            }
        };
        let is_dry = chunks.touched() == 0;
        match chunks.growth.take(is_dry) {
            Demand::None => {}
            Demand::Watch => {
                let memory: Arc<dyn Growing> = self.clone();
                if !provider::watch(Arc::downgrade(&memory)) {
                    chunks.growth.end_watch();
                }
            }
            Demand::Hurry => provider::hurry(),
        }
        Ok(chunk)
    }

    /// Returns the address of `bytes` bytes of zeros, in whole chunks, if the reserve has enough.
    /// The caller returns them by [`Memory::keep`].
    pub(super) fn take_reserve(&self, bytes: usize) -> Option<usize> {
        debug_assert!(bytes.is_multiple_of(CHUNK_BYTES));
        let reserve = &mut lock(&self.chunks).reserve;
        if reserve.len() < bytes {
            return None;
        }
        // The bytes come from the end of the reserve, since single chunks come from the start.
        reserve.end -= bytes;
        self.ready_bytes.fetch_sub(bytes, Ordering::Relaxed);
        Some(reserve.end)
    }

    /// Takes back memory of the reserve that no thread uses any more.
    pub(super) fn keep(&self, addresses: Range<usize>) {
        self.ready_bytes.fetch_add(addresses.len(), Ordering::Relaxed);
        lock(&self.chunks).kept.extend(addresses.step_by(CHUNK_BYTES));
    }

    /// Counts `bytes` of an array as fresh.
    pub(super) fn note_fresh(&self, bytes: usize) {
        self.fresh_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns whether the bytes handed out, the touched bytes and `more` bytes are within the
    /// limit.
    fn has_room(&self, more: usize) -> bool {
        let used = self.reserved_bytes().saturating_add(self.ready_bytes());
        used.saturating_add(more) <= self.limit_bytes
    }

    /// Touches chunks until `target` chunks are touched, but no more than `target`: if the database
    /// takes chunks as fast as this function touches them, other databases have their turn, too.
    fn touch_ahead(&self, target: usize) {
        let _ = (0..target).all(|_| self.touch_next(target));
    }

    /// Touches one more chunk ahead of demand. Returns whether it has done so; if not, there are
    /// `target` touched chunks already, the limit leaves no room, or the system refuses memory.
    fn touch_next(&self, target: usize) -> bool {
        let untouched = {
            let chunks = &mut *lock(&self.chunks);
            let is_wanted = chunks.touched() < target && self.has_room(CHUNK_BYTES);
            is_wanted.then(|| chunks.next_untouched().ok()).flatten()
        };
        let Some(chunk) = untouched else { return false };
        // SAFETY: the chunk belongs to a region of `self` and is in none of the lists, so this
        // thread alone uses it. The chunk's pages are new, or were given back.
        unsafe { touch(chunk..chunk + CHUNK_BYTES) };
        let chunks = &mut *lock(&self.chunks);
        chunks.ahead.push(chunk);
        self.ready_bytes.fetch_add(CHUNK_BYTES, Ordering::Relaxed);
        true
    }

    /// Gives the pages of the chunk that the provider has touched last back to the operating
    /// system. Returns whether a chunk was given back.
    fn return_last(&self) -> bool {
        let Some(chunk) = lock(&self.chunks).ahead.pop() else { return false };
        // SAFETY: the chunk belongs to a region of `self` and is in none of the lists, so this
        // thread alone uses it.
        let is_returned = unsafe { give_back(chunk..chunk + CHUNK_BYTES) };
        let chunks = &mut *lock(&self.chunks);
        if is_returned {
            chunks.returned.push(chunk);
            self.ready_bytes.fetch_sub(CHUNK_BYTES, Ordering::Relaxed);
        } else {
            chunks.ahead.push(chunk);
        }
        is_returned
    }
}

impl Growing for Memory {
    fn provide(&self) -> bool {
        let target = lock(&self.chunks).growth.tick();
        let Some(target) = target else {
            while self.return_last() {}
            return false;
        };
        self.touch_ahead(target);
        // An array may have taken the last memory within the limit.
        while !self.has_room(0) && self.return_last() {}
        true
    }
}

impl Chunks {
    /// Takes a touched chunk.
    fn next_touched(&mut self) -> Option<usize> {
        if !self.reserve.is_empty() {
            let chunk = self.reserve.start;
            self.reserve.start += CHUNK_BYTES;
            return Some(chunk);
        }
        // The chunk touched last is the most likely one to be in a cache.
        self.kept.pop().or_else(|| self.ahead.pop())
    }

    /// Takes a chunk that is not touched.
    fn next_untouched(&mut self) -> Result<usize, OutOfMemory> {
        if let Some(chunk) = self.returned.pop() {
            return Ok(chunk);
        }
        if self.untouched.is_empty() {
            let region = Region::map(REGION_BYTES)?;
            self.untouched = region.range();
            self.regions.push(region);
        }
        let chunk = self.untouched.start;
        self.untouched.start += CHUNK_BYTES;
        Ok(chunk)
    }

    /// Returns the number of touched chunks.
    fn touched(&self) -> usize {
        self.reserve.len() / CHUNK_BYTES + self.kept.len() + self.ahead.len()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::sync::AtomicBool;

    #[test]
    fn memory_is_allocated_up_to_the_exact_limit() {
        let memory = Memory::new(100);
        assert_eq!(memory.reserve(60), Ok(()));
        assert_eq!(memory.reserve(41), Err(OutOfMemory));
        assert_eq!(memory.reserve(40), Ok(()));
        assert_eq!(memory.reserve(1), Err(OutOfMemory));
        memory.unreserve(1);
        assert_eq!(memory.reserve(1), Ok(()));
        assert_eq!(memory.reserved_bytes(), 100);
    }

    #[test]
    fn spans_share_a_chunk_and_chunks_are_aligned() {
        let memory = Arc::new(Memory::new(usize::MAX));
        let first = memory.carve(SPAN_BYTES).unwrap();
        assert_eq!(memory.carve(SPAN_BYTES), Ok(first + SPAN_BYTES));
        let chunk = memory.carve(CHUNK_BYTES).unwrap();
        assert_eq!(chunk % CHUNK_BYTES, 0);
        assert_eq!(memory.carve(SPAN_BYTES), Ok(first + 2 * SPAN_BYTES));
        assert_eq!((memory.fresh_bytes(), memory.ready_bytes()), (2 * CHUNK_BYTES, 0));
    }

    /// Returns memory that the provider does not watch, whatever it takes.
    fn unwatched(limit_bytes: usize) -> Arc<Memory> {
        let memory = Arc::new(Memory::new(limit_bytes));
        lock(&memory.chunks).growth.watch_by_hand();
        memory
    }

    fn take(memory: &Arc<Memory>, chunks: usize) {
        for _ in 0..chunks {
            memory.reserve(CHUNK_BYTES).unwrap();
            memory.carve(CHUNK_BYTES).unwrap();
        }
    }

    #[test]
    fn the_reserve_is_used_first_and_arrays_return_their_chunks() {
        let memory = unwatched(usize::MAX);
        memory.touch_reserve(7 * CHUNK_BYTES + 1, &|| false).unwrap();
        assert_eq!(memory.ready_bytes(), 8 * CHUNK_BYTES);
        take(&memory, 3);
        let array = memory.take_reserve(4 * CHUNK_BYTES).unwrap();
        assert_eq!(memory.take_reserve(2 * CHUNK_BYTES), None);
        assert_eq!(memory.ready_bytes(), CHUNK_BYTES);
        memory.keep(array..array + 4 * CHUNK_BYTES);
        assert_eq!(memory.ready_bytes(), 5 * CHUNK_BYTES);
        assert_eq!(memory.take_reserve(2 * CHUNK_BYTES), None, "returned chunks are not zeroed");
        take(&memory, 5);
        assert_eq!((memory.ready_bytes(), memory.fresh_bytes()), (0, 0));
        take(&memory, 1);
        assert_eq!(memory.fresh_bytes(), CHUNK_BYTES);
    }

    #[test]
    fn a_reserve_above_the_limit_or_above_free_memory_is_refused() {
        let memory = Memory::new(1 << 50);
        let reserve = |bytes| memory.touch_reserve(bytes, &|| false);
        assert_eq!(reserve((1 << 50) + 1), Err(NotReserved::AboveLimit));
        assert!(matches!(reserve(1 << 50), Err(NotReserved::AboveFree(_))));
        assert_eq!(memory.touch_reserve(1, &|| true), Err(NotReserved::Stopped));
        assert_eq!((memory.ready_bytes(), memory.reserved_bytes()), (0, 0));
        assert!(lock(&memory.chunks).regions.is_empty());
    }

    #[test]
    fn the_provider_touches_ahead_and_gives_back() {
        let memory = unwatched(usize::MAX);
        for _ in 0..30 {
            take(&memory, 2);
            assert!(memory.provide());
        }
        assert!(memory.ready_bytes() >= 10 * CHUNK_BYTES, "{}", memory.ready_bytes());
        let fresh = memory.fresh_bytes();
        take(&memory, 8);
        assert_eq!(memory.fresh_bytes(), fresh, "touched chunks are taken first");
        while memory.provide() {}
        let is_given_back = cfg!(target_os = "linux");
        assert_eq!(memory.ready_bytes() == 0, is_given_back);
        take(&memory, 1);
        assert_eq!(memory.fresh_bytes() > fresh, is_given_back);
    }

    #[test]
    fn the_provider_stays_within_the_limit() {
        let memory = unwatched(64 * CHUNK_BYTES);
        take(&memory, 40);
        while memory.ready_bytes() == 0 {
            assert!(memory.provide());
        }
        let ahead = memory.ready_bytes() / CHUNK_BYTES;
        assert!((5..=24).contains(&ahead), "{ahead}");
        // An array takes all memory within the limit, so the touched chunks are given back.
        memory.reserve(24 * CHUNK_BYTES).unwrap();
        memory.provide();
        assert_eq!(memory.ready_bytes() == 0, cfg!(target_os = "linux"));
    }

    #[test]
    fn a_database_that_grows_fast_does_not_keep_the_provider() {
        let memory = unwatched(usize::MAX);
        let (is_over, both_begin) = (AtomicBool::new(false), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                both_begin.wait();
                let mut taken = 0;
                while taken < 100 && !is_over.load(Ordering::Relaxed) {
                    if memory.ready_bytes() > 0 {
                        take(&memory, 1);
                        taken += 1;
                    }
                }
            });
            both_begin.wait();
            memory.touch_ahead(16);
            is_over.store(true, Ordering::Relaxed);
        });
        let touched = memory.reserved_bytes() - memory.fresh_bytes() + memory.ready_bytes();
        assert!(touched <= 16 * CHUNK_BYTES, "{touched} bytes");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_refused_thread_is_started_later() {
        use crate::memory::crowd::{Crowd, alone};
        alone("memory::supply::tests::a_refused_thread_is_started_later", || {
            let memory = Arc::new(Memory::new(usize::MAX));
            take(&memory, 3);
            let crowd = Crowd::new();
            take(&memory, 1);
            drop(crowd);
            let is_touched_ahead = |_| {
                take(&memory, 1);
                std::thread::sleep(std::time::Duration::from_millis(1));
                memory.ready_bytes() > 0
            };
            assert!((0..5_000).any(is_touched_ahead));
        });
    }
}
