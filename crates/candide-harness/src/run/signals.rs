//! The timing of a run, and the orders by which its threads keep to it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use candide_workloads::Timeline;
use quanta::Instant;

use super::barrier::Barrier;

/// The orders to a run's threads. The current order is one byte, written by the timekeeper and read
/// by all other threads.
pub(super) const WARM_UP: u8 = 0;
pub(super) const MEASURE: u8 = 1;
pub(super) const STOP: u8 = 2;
/// The order to wait for the other threads while the workload changes.
pub(super) const MEET: u8 = 3;

/// The timing of a run.
pub(crate) struct Timing {
    pub(crate) warmup: Duration,
    pub(crate) duration: Duration,
    /// The changes of the workload during the run; `None` if it does not change.
    pub(crate) timeline: Option<Timeline>,
    /// The number of transactions per second that all threads together begin; `None` if the threads
    /// begin as many as they can.
    pub(crate) rate: Option<f64>,
    /// The length of the slices whose results are reported; `None` if the run is not cut into
    /// slices. A workload that changes has its own slices instead.
    pub(crate) slice: Option<Duration>,
    /// Whether threads occasionally read the workload's hottest row.
    pub(crate) hottest: bool,
    /// Whether the session's counters are read after every transaction, so that the sizes of read
    /// and write sets are known by transaction type.
    pub(crate) set_sizes: bool,
}

#[cfg(test)]
impl Timing {
    /// Returns the timing of a run that begins at once and measures nothing besides.
    pub(super) fn immediate(duration: Duration) -> Timing {
        Timing {
            warmup: Duration::ZERO,
            duration,
            timeline: None,
            rate: None,
            slice: None,
            hottest: false,
            set_sizes: false,
        }
    }
}

/// The state that the timekeeper and the threads of a run share.
pub(super) struct Signals {
    orders: AtomicU8,
    pub(super) meeting: Barrier,
    /// The time at which the first thread began to warm up.
    pub(super) started: OnceLock<Instant>,
    /// The time at which measuring began, for workloads without phases. The time is set before the
    /// order to measure is given.
    pub(super) measured: OnceLock<Instant>,
}

impl Signals {
    /// Creates the state of a run of `threads` threads, which are to warm up.
    pub(super) fn new(threads: usize) -> Signals {
        Signals {
            orders: AtomicU8::new(WARM_UP),
            meeting: Barrier::of(threads),
            started: OnceLock::new(),
            measured: OnceLock::new(),
        }
    }

    /// Returns the current order.
    #[inline]
    pub(super) fn order(&self) -> u8 {
        self.orders.load(Ordering::Relaxed)
    }

    /// Gives an order.
    pub(super) fn give(&self, order: u8) {
        self.orders.store(order, Ordering::Relaxed);
    }
}
