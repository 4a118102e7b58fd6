//! Memory that is touched when a database is built.

use super::OutOfMemory;
use super::region::{CHUNK_BYTES, Region, touch};
use crate::sync::{AtomicUsize, Ordering, process};

/// The number of chunks for each of which one thread is started.
const CHUNKS_PER_THREAD: usize = 16;

/// The reason why no memory was reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotReserved {
    AboveLimit,
    /// More than the given number of free bytes; `None` if the operating system has refused the
    /// memory without saying how much is free.
    AboveFree(Option<u64>),
    Stopped,
}

impl From<OutOfMemory> for NotReserved {
    fn from(_: OutOfMemory) -> Self {
        NotReserved::AboveFree(None)
    }
}

/// Maps a region of `bytes` bytes, whole chunks, and touches all of it, by several threads if it is
/// large. `stopped` is asked before each chunk; once it returns true, nothing is reserved.
pub(super) fn touched_region(
    bytes: usize,
    stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Region, NotReserved> {
    let region = Region::map(bytes)?;
    let chunks = bytes / CHUNK_BYTES;
    let next = AtomicUsize::new(0);
    let touch_chunks = || {
        while !stopped() {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            if chunk >= chunks {
                return true;
            }
            let start = region.address() + chunk * CHUNK_BYTES;
            // SAFETY: the region is new, and each chunk of it is given to one thread.
            unsafe { touch(start..start + CHUNK_BYTES) };
        }
        false
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let others = cores.min(chunks.div_ceil(CHUNKS_PER_THREAD)).saturating_sub(1);
    let complete = process::scope(|scope| {
        let spawn = |_| process::Builder::new().spawn_scoped(scope, touch_chunks);
        // If the system refuses to start a thread, the other threads take its share.
        let threads: Vec<_> = (0..others).filter_map(|number| spawn(number).ok()).collect();
        let is_complete = touch_chunks();
        threads.into_iter().fold(is_complete, |complete, thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) && complete
        })
    });
    if complete { Ok(region) } else { Err(NotReserved::Stopped) }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_is_touched_unless_stopped() {
        let bytes = 40 * CHUNK_BYTES;
        let asked = AtomicUsize::new(0);
        let count_to = |last| {
            let stopped = || asked.fetch_add(1, Ordering::Relaxed) >= last;
            asked.store(0, Ordering::Relaxed);
            touched_region(bytes, &stopped).map(|region| region.range().len())
        };
        assert_eq!(count_to(usize::MAX), Ok(bytes));
        assert!(asked.load(Ordering::Relaxed) > 40);
        assert_eq!(count_to(20), Err(NotReserved::Stopped));
        assert_eq!(count_to(0), Err(NotReserved::Stopped));
        for bytes in [1 << 60, 1 << 63] {
            let refused = touched_region(bytes, &|| false).err();
            assert_eq!(refused, Some(NotReserved::AboveFree(None)));
        }
    }
}
