//! The effect of open snapshots on an entry of the garbage.

#![forbid(unsafe_code)]

/// The outcome of examining a queue entry whose record or unit snapshots see or have seen.
/// [`settle`](super::settle) acts on the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotOutcome {
    /// Nothing can be done before the open snapshot with this timestamp has closed.
    Kept(u64),
    /// The same as `Kept`, and only snapshots see the record. The record may be [moved to the index
    /// of deleted records](super::Versions::detach_for_snapshots).
    MoveToDeletedIndex(u64),
    /// The record is in the index of deleted records, and no snapshot sees it any more.
    Expired,
}
