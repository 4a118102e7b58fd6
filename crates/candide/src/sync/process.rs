//! Locks and threads of the whole process, which models cannot explore, and words that models need
//! not explore.
//!
//! A static outlives the executions of a model, whose locks belong to one execution each. A thread
//! that the engine starts runs in real time, and the program that is modelled starts all its
//! threads itself: it calls the functions that the engine's thread would call.

#![forbid(unsafe_code)]

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64};
pub(crate) use std::sync::{Mutex, MutexGuard};
pub(crate) use std::thread::{Builder, JoinHandle, Thread, current, park_timeout, scope};

/// Locks a mutex whose data stays valid when a holder panics.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
