//! The limits and choices on which the plan of a figure depends.

use std::time::Duration;

use candide_harness::figure::Opacity;

use super::size::Room;

/// The limits and choices on which the plan of a figure depends.
pub(super) struct Bounds {
    /// The numbers of threads, in ascending order.
    pub(super) threads: Vec<usize>,
    /// The measured time of a run.
    pub(super) duration: Duration,
    /// The choice of the lines that are run with opacity.
    pub(super) opacity: Opacity,
    pub(super) room: Room,
}

impl Bounds {
    /// Returns the largest number of threads.
    pub(super) fn most(&self) -> usize {
        *self.threads.last().expect("there is one")
    }
}
