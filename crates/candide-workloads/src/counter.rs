//! Numbers that are given away outside of concurrency control.

use std::sync::atomic::{AtomicU64, Ordering};

/// A source of numbers: a worker keeps one that it has drawn, whatever becomes of its transaction.
/// On cache lines of its own.
#[repr(align(128))]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Creates the numbers after those of `loaded` rows, which began with 1.
    pub(crate) fn after(loaded: u64) -> Self {
        Counter(AtomicU64::new(loaded + 1))
    }

    /// Draws the next number, which no other caller gets.
    pub(crate) fn draw(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number that would be drawn next.
    pub(crate) fn peek(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
