//! Mappings of memory from the operating system.

use super::{Block, LINE_WORDS, OutOfMemory, WORD_BYTES};
use crate::sync::Ordering;
use std::ops::Range;

/// The size and alignment of a chunk, in bytes: one huge page.
pub(crate) const CHUNK_BYTES: usize = 2 << 20;
/// The size of the smallest page of any supported system, in bytes.
const PAGE_BYTES: usize = 4 << 10;

/// Zeroed memory that begins at a multiple of a chunk's size. The operating system is advised to
/// use huge pages for it. A dropped region is unmapped.
#[derive(Debug)]
pub(super) struct Region {
    address: usize,
    bytes: usize,
}

impl Region {
    pub(super) fn address(&self) -> usize {
        self.address
    }

    /// Returns the addresses of the region.
    pub(super) fn range(&self) -> Range<usize> {
        self.address..self.address + self.bytes
    }
}

/// Stores a zero in each page of `addresses`, so that the operating system provides the pages. The
/// range consists of whole pages.
///
/// # Safety
/// The range belongs to a region that is not dropped meanwhile. The range contains only zeros, and
/// no other thread uses it.
pub(super) unsafe fn touch(addresses: Range<usize>) {
    const PAGE_WORDS: usize = PAGE_BYTES / WORD_BYTES;
    const { assert!(PAGE_WORDS >= LINE_WORDS) };
    let first = Block::at(addresses.start as u64).expect("a region is never at zero");
    for page in 0..addresses.len() / PAGE_BYTES {
        // SAFETY: in bounds and mapped by this function's contract.
        unsafe { first.word(page * PAGE_WORDS) }.store(0, Ordering::Relaxed);
    }
}

/// Returns the pages of `addresses` to the operating system. The range stays mapped, and its
/// contents become zeros. Returns whether the system can do so.
///
/// # Safety
/// The range belongs to a region that is not dropped meanwhile, and no other thread uses it.
#[cfg(target_os = "linux")]
pub(super) unsafe fn give_back(addresses: Range<usize>) -> bool {
    let start = std::ptr::with_exposed_provenance_mut(addresses.start);
    // SAFETY: the range is mapped and unused, by this function's contract.
    unsafe {
        rustix::mm::madvise(start, addresses.len(), rustix::mm::Advice::LinuxDontNeed).is_ok()
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) unsafe fn give_back(_addresses: Range<usize>) -> bool {
    false
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
                // In a process with too many mappings this fails, and untouched addresses are lost.
                // SAFETY: `from..to` lies in the mapping just made, outside the part that is kept.
                let _ = unsafe { munmap(std::ptr::with_exposed_provenance_mut(from), to - from) };
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
    fn layout(bytes: usize) -> Result<std::alloc::Layout, OutOfMemory> {
        std::alloc::Layout::from_size_align(bytes, CHUNK_BYTES).map_err(|_| OutOfMemory)
    }

    pub(super) fn map(bytes: usize) -> Result<Region, OutOfMemory> {
        let layout = Region::layout(bytes)?;
        // SAFETY: the layout's size is not zero.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        if start.is_null() {
            return Err(OutOfMemory);
        }
        Ok(Region { address: start.expose_provenance(), bytes })
    }
}

#[cfg(not(target_os = "linux"))]
impl Drop for Region {
    fn drop(&mut self) {
        let start = std::ptr::with_exposed_provenance_mut(self.address);
        let layout = Region::layout(self.bytes).expect("`map` has made this layout");
        // SAFETY: `map` has allocated the memory with the same layout.
        unsafe { std::alloc::dealloc(start, layout) };
    }
}

#[cfg(all(test, target_os = "linux", not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::memory::crowd::{Crowd, alone};

    #[test]
    fn a_process_with_too_many_mappings_is_refused_regions_and_does_not_panic() {
        alone(
            "memory::region::tests::a_process_with_too_many_mappings_is_refused_regions_and_does_not_panic",
            || {
                let crowd = Crowd::new();
                (1..40).for_each(|chunks| drop(Region::map(chunks * CHUNK_BYTES)));
                drop(crowd);
                assert!(Region::map(CHUNK_BYTES).is_ok());
            },
        );
    }
}
