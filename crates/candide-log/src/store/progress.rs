//! The progress of a recovery.

/// The progress of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The checkpoint is being loaded.
    Checkpoint {
        /// The bytes of the parts that are loaded.
        done: u64,
        /// The bytes of all parts.
        total: u64,
    },
    /// The log is being replayed.
    Log {
        /// The bytes of the blocks that are replayed.
        done: u64,
        /// The bytes of all segments, which are not full.
        total: u64,
    },
}
