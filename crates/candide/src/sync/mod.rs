//! The only door to atomics, fences, spinning, time, randomness and threads.
//!
//! All words that threads share have types exported here, so that one source runs under `std`,
//! under [loom](https://docs.rs/loom) (`--cfg loom`: exhaustive, weak memory) and under
//! [shuttle](https://docs.rs/shuttle) (`--cfg shuttle`: random schedules of whole transactions).

mod exclusive;
mod instruments;
mod parking;
pub(crate) mod process;
pub(crate) mod queue_lock;
mod random;
mod signal;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod size;
mod spin;
mod steps;
mod system_clock;
mod thread_pins;
#[cfg(loom)]
mod weaken;

pub(crate) use exclusive::{Exclusive, Refusal, Turn, Turns};
pub(crate) use instruments::{Point, pass, patience};
#[cfg(test)]
pub(crate) use instruments::{with_hook, with_patience};
pub(crate) use parking::{Parking, Patience, Wait, Waited, Wish};
pub(crate) use random::Random;
pub(crate) use signal::Signal;
pub(crate) use spin::Spin;
pub(crate) use steps::step;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use steps::steps;
pub(crate) use system_clock::{SystemClock, TICK_BITS};
pub(crate) use thread_pins::{InStep, count_pin, count_unpin, is_in_step, is_inside_transaction};

#[cfg(loom)]
pub(crate) use loom::{
    sync::{Mutex, MutexGuard},
    thread, thread_local,
};
#[cfg(shuttle)]
pub(crate) use shuttle::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Mutex, MutexGuard},
    thread, thread_local,
};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Mutex, MutexGuard},
    thread, thread_local,
};
#[cfg(loom)]
pub(crate) use weaken::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

// Only [`Signal`] sleeps with it.
#[cfg(loom)]
use loom::sync::Condvar;
#[cfg(shuttle)]
use shuttle::sync::Condvar;
#[cfg(not(any(loom, shuttle)))]
use std::sync::Condvar;

use std::mem::MaybeUninit;
use std::sync::TryLockError;
pub(crate) use std::time::{Duration, Instant};
// `sleep` is not available under models, which simulate time.
pub(crate) use std::thread::sleep;

/// Whether threads, time and memory are simulated: no advancer thread, one allocation per block.
pub(crate) const MODELLED: bool = cfg!(any(loom, shuttle));

/// Whether the processor makes each store visible to all other threads at the same time, and keeps
/// loads by Acquire in order. If so, a commit needs no fence between the load of its epoch and its
/// validation (edge E29 of `docs/memory-ordering.md`). The language's memory model does not
/// guarantee this order, and loom follows the model.
pub(crate) const MULTI_COPY_ATOMIC: bool =
    cfg!(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(loom)));

/// Returns a number other than zero that no other call in this process returns. Models do not
/// explore the atomic counter behind this function.
pub(crate) fn process_unique() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// Locks a mutex whose data stays valid when a holder panics.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Locks a mutex if it is free.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Executes the store-load barrier between a thread's store and its load of another thread's word
/// (edge E1 of `docs/memory-ordering.md`).
#[inline]
#[cfg_attr(loom, track_caller)]
pub(crate) fn full_fence() {
    fence(Ordering::SeqCst);
}

/// Stores `value` and orders it before every later load of this thread: `store; full_fence`.
///
/// On x86-64 one locked exchange is the same barrier at half the cost of `mfence`. The language's
/// memory model promises less for an exchange than for a fence, so the models run a store and a
/// fence.
#[inline]
pub(crate) fn store_then_full_fence(word: &AtomicU64, value: u64) {
    if cfg!(all(target_arch = "x86_64", not(loom), not(shuttle))) {
        word.swap(value, Ordering::SeqCst);
    } else {
        word.store(value, Ordering::Release);
        full_fence();
    }
}

/// Writes `value` without converting it to an integer: some of its bits may be uninitialized, like
/// a struct's padding, or belong to a pointer, whose provenance an integer would lose. The access
/// is not atomic.
///
/// # Safety
/// No other thread accesses the word during the call: every such access happens before or after it.
/// If [`MODELLED`], words hold only numbers: all bits are initialized, and none belongs to a
/// pointer.
pub(crate) unsafe fn write_as_is(word: &AtomicU64, value: MaybeUninit<u64>) {
    #[cfg(not(any(loom, shuttle)))]
    // SAFETY: by this function's contract, the word is borrowed and no other thread accesses it
    // during the call. An atomic has the size and alignment of its number.
    unsafe {
        word.as_ptr().cast::<MaybeUninit<u64>>().write(value);
    }
    #[cfg(any(loom, shuttle))]
    // SAFETY: all bits are initialized, by this function's contract.
    word.store(unsafe { value.assume_init() }, Ordering::Relaxed);
}

/// Reads a word that [`write_as_is`] has written, or a word that holds a number. The access is not
/// atomic.
///
/// # Safety
/// No other thread writes the word during the call: every such write happens before or after it.
pub(crate) unsafe fn read_as_is(word: &AtomicU64) -> MaybeUninit<u64> {
    #[cfg(not(any(loom, shuttle)))]
    // SAFETY: as in `write_as_is`; no other thread writes the word, by this function's contract.
    return unsafe { word.as_ptr().cast::<MaybeUninit<u64>>().read() };
    #[cfg(any(loom, shuttle))]
    return MaybeUninit::new(word.load(Ordering::Relaxed));
}

/// Prefetches the cache line of `address`. A prefetch is not a memory access in the sense of the
/// language.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn prefetch(address: *const AtomicU64) {
    #[cfg(all(target_arch = "x86_64", not(any(loom, shuttle))))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect on memory and never faults, whatever the address; SSE is
        // part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, shuttle)))))]
    let _ = address;
}

/// Returns the most forced thread switches that loom tries in one schedule of a scene: the value of
/// `CANDIDE_LOOM_PREEMPTIONS`, or no limit if the variable is not set.
#[cfg(all(test, loom))]
pub(crate) fn preemptions_max() -> usize {
    std::env::var("CANDIDE_LOOM_PREEMPTIONS")
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(usize::MAX)
}
