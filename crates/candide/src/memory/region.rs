//! Regions of memory from the operating system, the count of bytes, and the limit.

use super::{Allocator, OutOfMemory};
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// The size and alignment of a chunk, in bytes: one huge page.
pub(crate) const CHUNK_BYTES: usize = 2 << 20;
/// The size of a span, in bytes. A small slab takes one span at a time. A chunk has 32 spans.
pub(crate) const SPAN_BYTES: usize = 64 << 10;
/// The size of a region, in bytes. This size keeps both the number of mappings and the unused
/// address space low.
const REGION_BYTES: usize = 16 * CHUNK_BYTES;

/// The memory of one database.
#[derive(Debug)]
pub(crate) struct Memory {
    limit_bytes: usize,
    /// The allocator from which blocks come one by one. `None` if blocks come from slabs.
    allocator: Option<Allocator>,
    /// The number of bytes handed out to slabs and arrays. Written when a span, a chunk or an array
    /// is taken or returned.
    reserved_bytes: AtomicUsize,
    carving: Mutex<Carving>,
}

#[derive(Debug, Default)]
struct Carving {
    regions: Vec<Region>,
    /// The unused rest of the newest region, in whole chunks.
    chunks: std::ops::Range<usize>,
    /// The unused rest of the chunk from which small slabs take spans.
    spans: std::ops::Range<usize>,
}

impl Memory {
    pub(crate) fn new(limit_bytes: usize) -> Memory {
        let carving = Mutex::new(Carving::default());
        Memory { limit_bytes, allocator: None, reserved_bytes: AtomicUsize::new(0), carving }
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

    /// Returns the address of `bytes` bytes (a span or a chunk) of zeroed memory, which is not
    /// unmapped before `self` is dropped.
    ///
    /// # Errors
    /// If the operating system refuses the memory.
    pub(super) fn carve(&self, bytes: usize) -> Result<usize, OutOfMemory> {
        debug_assert!(bytes == SPAN_BYTES || bytes == CHUNK_BYTES);
        let mut carving = lock(&self.carving);
        if bytes == SPAN_BYTES {
            if carving.spans.is_empty() {
                let chunk = carving.next_chunk()?;
                carving.spans = chunk..chunk + CHUNK_BYTES;
            }
            let span = carving.spans.start;
            carving.spans.start += SPAN_BYTES;
            return Ok(span);
        }
        carving.next_chunk()
    }
}

impl Carving {
    fn next_chunk(&mut self) -> Result<usize, OutOfMemory> {
        if self.chunks.is_empty() {
            let region = Region::map(REGION_BYTES)?;
            self.chunks = region.address()..region.address() + REGION_BYTES;
            self.regions.push(region);
        }
        let chunk = self.chunks.start;
        self.chunks.start += CHUNK_BYTES;
        Ok(chunk)
    }
}

/// Zeroed memory that begins at a multiple of a chunk's size. The operating system is advised to
/// use huge pages for it. Dropping the region unmaps it.
#[derive(Debug)]
pub(super) struct Region {
    address: usize,
    bytes: usize,
}

impl Region {
    pub(super) fn address(&self) -> usize {
        self.address
    }
}

#[cfg(target_os = "linux")]
impl Region {
    /// Maps `bytes` bytes. `bytes` is a multiple of the chunk size.
    ///
    /// # Errors
    /// If the operating system refuses the memory.
    pub(super) fn map(bytes: usize) -> Result<Region, OutOfMemory> {
        use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
        let padded = bytes.checked_add(CHUNK_BYTES).ok_or(OutOfMemory)?;
        // SAFETY: a new private anonymous mapping at an address of the kernel's choice overlaps
        // nothing.
        let mapped = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                padded,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let start = mapped.map_err(|_| OutOfMemory)?.expose_provenance();
        let address = start.next_multiple_of(CHUNK_BYTES);
        let trim = |from: usize, to: usize| {
            if from < to {
                // SAFETY: `from..to` lies in the mapping just made, outside the part that is kept.
                let unmapped =
                    unsafe { munmap(std::ptr::with_exposed_provenance_mut(from), to - from) };
                unmapped.expect("unmapping part of an own mapping succeeds");
            }
        };
        trim(start, address);
        trim(address + bytes, start + padded);
        // Without huge pages everything still works, but slower. The report shows which pages the
        // kernel gave.
        // SAFETY: advice about a mapping of our own does not change its contents.
        let _ = unsafe {
            madvise(std::ptr::with_exposed_provenance_mut(address), bytes, Advice::LinuxHugepage)
        };
        Ok(Region { address, bytes })
    }
}

#[cfg(target_os = "linux")]
impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and whole. The caller that drops the region has shown that no
        // block in it is in use.
        let unmapped = unsafe {
            rustix::mm::munmap(std::ptr::with_exposed_provenance_mut(self.address), self.bytes)
        };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(not(target_os = "linux"))]
impl Region {
    fn layout(bytes: usize) -> std::alloc::Layout {
        std::alloc::Layout::from_size_align(bytes, CHUNK_BYTES)
            .expect("a region's size is far below isize::MAX")
    }

    pub(super) fn map(bytes: usize) -> Result<Region, OutOfMemory> {
        // SAFETY: the layout's size is not zero.
        let start = unsafe { std::alloc::alloc_zeroed(Region::layout(bytes)) };
        if start.is_null() {
            return Err(OutOfMemory);
        }
        Ok(Region { address: start.expose_provenance(), bytes })
    }
}

#[cfg(not(target_os = "linux"))]
impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: `map` has allocated the memory with the same layout.
        unsafe {
            std::alloc::dealloc(
                std::ptr::with_exposed_provenance_mut(self.address),
                Region::layout(self.bytes),
            )
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_exact() {
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
        let memory = Memory::new(usize::MAX);
        let first = memory.carve(SPAN_BYTES).unwrap();
        assert_eq!(memory.carve(SPAN_BYTES), Ok(first + SPAN_BYTES));
        let chunk = memory.carve(CHUNK_BYTES).unwrap();
        assert_eq!(chunk % CHUNK_BYTES, 0);
        assert_eq!(memory.carve(SPAN_BYTES), Ok(first + 2 * SPAN_BYTES));
    }
}
