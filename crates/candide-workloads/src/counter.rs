//! A counter for numbers that are drawn outside of concurrency control.

use std::sync::atomic::{AtomicU64, Ordering};

/// A source of numbers. A worker keeps a number that it has drawn, even if its transaction aborts.
/// The counter has its own cache lines.
#[repr(align(128))]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Creates a source that continues after the numbers of `loaded` rows, which are numbered from
    /// 1.
    pub(crate) fn after(loaded: u64) -> Self {
        Counter(AtomicU64::new(loaded + 1))
    }

    /// Draws the next number. No other caller gets the same number.
    pub(crate) fn draw(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number that would be drawn next.
    pub(crate) fn peek(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
