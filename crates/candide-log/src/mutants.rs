//! Deliberate defects. A test must find each of them. They are part of the crate's own tests, and
//! of builds with the simulated disk and debug assertions. In all other builds, no defect is ever
//! active, and `mutant` is compiled to `false`.
//!
//! Defects have no feature of their own. Tests would need it and the command would not, so the
//! engine would be compiled twice.

pub(crate) use active::mutant;
#[cfg(any(test, all(debug_assertions, feature = "simulation")))]
pub use active::with_mutant;

/// A deliberate defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(not(any(test, all(debug_assertions, feature = "simulation"))), allow(dead_code))]
pub enum Mutant {
    /// The directory is not synced after a file in it was created or renamed.
    NoDirSync,
    /// A sync that fails counts as if it had succeeded.
    SyncErrorIgnored,
    /// A sync that fails is tried again.
    SyncRetried,
    /// The end of a generation is no end for the records that it leaves pending.
    TailNotFenced,
    /// What was read is not made durable before the generation's end is written down.
    RecoveredNotSynced,
    /// Blocks of a segment's earlier life are read as if they belonged to the log.
    StaleBlockAccepted,
    /// A block counts as valid whatever its checksum says.
    CrcSkipped,
    /// Any invalid block is taken for damage.
    TornTakenForCorrupt,
    /// Any invalid block is taken for the end of the log.
    CorruptTakenForTorn,
    /// Segments that a checkpoint contains are given back before the checkpoint is in force.
    SegmentsFreedBeforeManifest,
    /// The records of a batch are applied in the order in which they were written.
    PartialUnsorted,
    /// An update of a row that is not there is ignored.
    GhostTolerated,
    /// The records of a round are written as two blocks, both with the round's cut.
    RoundSplit,
    /// A checkpoint does not keep the records that are above its cut.
    CheckpointPendingDropped,
    /// `MANIFEST` does not say which segment is the last one.
    LastSegmentUnnoted,
    /// The copy of `MANIFEST` takes its place although files that it names are missing.
    IncompleteCopyTaken,
    /// An entry of `MANIFEST` counts as whole whatever its checksum says.
    TornEntryAccepted,
    /// A table counts as added before it is in the copy of `MANIFEST`.
    CopyLeftBehind,
}

#[cfg(not(any(test, all(debug_assertions, feature = "simulation"))))]
mod active {
    use super::Mutant;

    #[inline(always)]
    pub(crate) const fn mutant(_: Mutant) -> bool {
        false
    }
}

#[cfg(any(test, all(debug_assertions, feature = "simulation")))]
mod active {
    use super::Mutant;
    use std::cell::Cell;

    thread_local! {
        static ACTIVE: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Returns whether a defect is active in this thread.
    #[inline]
    pub(crate) fn mutant(which: Mutant) -> bool {
        ACTIVE.get() == Some(which)
    }

    /// Runs `body` with a defect in all that this thread calls.
    pub fn with_mutant<T>(which: Mutant, body: impl FnOnce() -> T) -> T {
        /// Ends the defect even if `body` panics.
        struct Restore(Option<Mutant>);
        impl Drop for Restore {
            fn drop(&mut self) {
                ACTIVE.set(self.0);
            }
        }
        let _restore = Restore(ACTIVE.replace(Some(which)));
        body()
    }
}
