//! Three instruments of the tests: points where a test can run code, mutants that a test must
//! catch, and patience.
//!
//! Outside the crate's own tests all three do nothing: points run no code, no mutant is active, and
//! patience does not prolong waits.

#[cfg(all(test, shuttle))]
pub(crate) use active::was_met;
pub(crate) use active::{mutant, pass, patience};
#[cfg(test)]
pub(crate) use active::{with_hook, with_patience};

/// A place in a protocol where a test may run code of its own, to build an exact interleaving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// Before a transaction: another one owns the database, and this one waits.
    Excluded,
    /// Waiting for a fixed set of others' transactions, or their commits, to end.
    Awaiting,
    /// Commit: the closure is done, nothing is locked.
    Unlocked,
    /// Commit: the write set is locked, nothing validated.
    Locked,
    /// Commit: it has failed on a lock, owns nothing, and has not waited for the lock yet.
    GivenUp,
    /// Commit: a lock has been handed over to the attempt, which has not looked at the cell.
    HandedOver,
    /// Read: the words are copied, the second load of the cell has not happened.
    Copied,
    /// Read, or collecting: the cell's last write is known; its older versions have not been
    /// searched.
    LookingBack,
    /// Read: the attempt's time has moved on, and it has not looked at the cell again.
    MovedOn,
    /// Moving forward in time: the attempt has validated its reads, but not yet the expectations of
    /// its writes.
    LookedAgain,
    /// Read: the attempt's view has to move on, and the epoch has not been loaded.
    Moving,
    /// Revalidation: a row of which the closure knows only the existence has been examined; other
    /// rows may not have been.
    Asked,
    /// Read: all of the view is unchanged; it has not moved on.
    Looked,
    /// Validation: one of a version's two timestamps is loaded, the other is not.
    Extending,
    /// Commit: the version to be replaced has not been read, and the new one is not linked.
    Linking,
    /// Collecting: a chain is locked, and about to be pruned.
    Pruning,
    /// Commit: the predecessor of a version has been found, and its read timestamp has not been
    /// raised.
    Following,
    /// Commit: everything is validated, updaters have not been evaluated.
    Validated,
    /// Commit: the words of one unit are about to be stored.
    Installing,
    /// Read: a node has been searched in vain, or by a scan, and not yet noted by the transaction.
    Searched,
    /// Commit: ended, with or without success, and nothing is locked any more.
    Released,
    /// The attempt has ended, and its session is not pinned any more.
    Unpinned,
    /// Garbage: an entry is about to be examined.
    Collecting,
    /// Garbage: an absent record is locked, and about to be made dead.
    Reaping,
    /// Garbage: a record is both in its index and in the index of deleted records.
    MovingToDeletedIndex,
}

/// A deliberate defect. `cargo xtask mutants` runs the tests once with each and demands that they
/// fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// No fence between locking and validating.
    NoFence,
    /// Views: a version of the base's epoch or later is taken as it is.
    ViewUnmoved,
    /// Views: earlier reads are not looked at when the view moves on.
    MovedUnlooked,
    /// Views: the new cell is not looked at when the view moves on.
    NewUnlooked,
    /// Views: nodes are not looked at when the view moves on.
    NodesUnlooked,
    /// Views: a commit under way is not noticed when the view moves on.
    InstallUnlooked,
    /// Views: the epoch is loaded after the revalidation.
    EpochAfterLook,
    /// Views: another cell's version is taken for met.
    MetElsewhere,
    /// Views: a version that a commit has not installed, since the row never existed, is met.
    MetUninstalled,
    /// Views: the existence of a row is returned without asking the view.
    PeekUnchecked,
    /// Views: rows of which only the existence is known are not examined.
    ToldUnlooked,
    /// Views: rows of which only the existence is known are examined only once.
    ToldOnce,
    /// Reads are not validated.
    NoReadValidation,
    /// Validation ignores that another transaction has locked a row that was read.
    OthersLocksIgnored,
    /// A tombstone is taken as absence without being observed.
    TombstoneUnobserved,
    /// Memory is reused one epoch too early.
    ReclaimEarly,
    /// Updaters see the row as it was before it was locked.
    EvaluateBeforeLock,
    /// A commit does not set INSTALL in cells that a read for update has locked.
    HeldNotInstalling,
    /// An attempt that fails keeps the locks of its reads for update.
    HeldForEver,
    /// The nodes that prove the absence of keys are not validated.
    NoNodeValidation,
    /// An attempt does not notice that it has divided a node itself.
    SplitUntracked,
    /// A scan that meets an absent record does not observe it.
    AbsentSkippedByScan,
    /// A delete leaves all groups of the row but the first as they are.
    DeleteOneGroup,
    /// The entry by which an index finds a row is not observed.
    EntryUnvalidated,
    /// A reverse scan goes past the last key of the next leaf.
    ReverseOffByOne,
    /// Scans: the leaf of an inlined layer is not observed.
    InlinedLayerUnobserved,
    /// A scan sees the transaction's operations from after its beginning.
    MarkIgnored,
    /// A commit's version may be below the versions it read.
    VersionBelowRead,
    /// A commit's version may be one that the replaced unit has had.
    VersionBelowReplaced,
    /// The epoch that numbers a commit is read before its locks are taken.
    EpochBeforeLock,
    /// A node is observed as it is after it has been searched.
    NodeObservedLate,
    /// Words are installed before the reads are validated.
    InstallBeforeValidation,
    /// A cell is released in its new version before its words are stored.
    UnlockBeforeInstall,
    /// Updaters are evaluated when the first unit has been installed.
    EvaluateBetweenInstalls,
    /// No session gives way to the token.
    TokenIgnored,
    /// An owner that has just freed a lock does not check again for sleepers.
    SleepersUnseen,
    /// A lock that is handed over is free for a moment.
    HandedByFreeing,
    /// Timestamps: a read takes the words for those of the timestamps beside them, without loading
    /// the timestamps a second time.
    SecondLookSkipped,
    /// Timestamps: validation loads a version's wts before its rts.
    WtsBeforeRts,
    /// Timestamps: a commit reads a version beyond its rts without raising the rts.
    NotExtended,
    /// Timestamps: a commit that has missed a key does not raise its node's nrts.
    NodeNotExtended,
    /// Timestamps: a commit that has missed a key may come before the delete of that key.
    NodeWtsIgnored,
    /// Timestamps: a version is extended though a commit has locked it to replace it.
    ExtendedUnderLock,
    /// Timestamps: a commit's timestamp is above the wts of the version it replaces, not above its
    /// rts.
    CommitBelowRts,
    /// Timestamps: a commit does not notice that a version it held has been extended meanwhile.
    HeldExtensionMissed,
    /// Timestamps: a new record does not inherit its node's timestamps.
    InsertInheritsNothing,
    /// Timestamps: the timestamps of a deleted record are not merged into the node.
    DeleteLeavesNothing,
    /// Timestamps: the timestamps of the record of a failed insert are not merged into the node.
    AbortLeavesNothing,
    /// Timestamps: new leaves do not inherit the timestamps of the leaf they were split from.
    SplitInheritsNothing,
    /// Timestamps: the halves of a bucket do not inherit its timestamps.
    GrowthInheritsNothing,
    /// Timestamps: the timestamps of a removed leaf or layer are lost.
    CollapseLeavesNothing,
    /// A row that was deleted while its record was queued is unlinked as if it had been deleted
    /// before.
    ReapedEarly,
    /// Versions: a commit draws its timestamp before it has locked its write set.
    DrawnBeforeLocks,
    /// Versions: a reader does not wait for a commit that may have drawn a timestamp it has to see.
    InstallNotAwaited,
    /// Versions: an attempt that has read a replaced version writes nevertheless.
    OldReadsWritten,
    /// Versions: a reader of an older version searches the undo records before it copies the words.
    UndosFirst,
    /// Versions: a write's expectation is compared with the newest version when the attempt moves
    /// on in time.
    ExpectedAsNewest,
    /// Versions: a record that only snapshots see leaves its index before it is in the index of
    /// deleted records.
    MovedLate,
    /// Versions: a reader of an older version takes a deleted record for the row, whenever it was
    /// deleted.
    DeletedIndexPreferred,
    /// Versions: an old version is collected as soon as there is a newer one, though a reader may
    /// still see it.
    CollectedEarly,
    /// Versions: garbage collection ignores open snapshots.
    SnapshotsIgnored,
    /// Versions: entries kept for a snapshot are examined again and again.
    NeverParked,
    /// Versions: pruning a chain loses the words that only the removed records had.
    WordsLost,
    /// Versions: pruning uses an outdated time of the unit's last write, read before a commit wrote
    /// the unit again.
    PrunedByOldWord,
    /// Versions: undo records are freed while a session searches chains.
    FreedInSight,
    /// Versions: a parked unit is dropped because it has been queued meanwhile.
    ParkedForgotten,
    /// Versions: a record is unlinked though one of its units is parked.
    ParkedReaped,
    /// A record is made dead by a load and a store, between which an insert may lock it.
    KilledByStore,
    /// Timestamp order: the inline version of a record is used again when the first has left its
    /// chain.
    RoomUsedAgain,
    /// Versions: a unit that is written all the time stays with the session that wrote it first.
    HotKept,
    /// Versions: a shared entry is collected by a list of snapshots from before it was queued.
    HotByOldList,
    /// Versions: the snapshot of a long read-only attempt is not listed, though the attempt does
    /// not hold back the horizon.
    KeptUnlisted,
    /// Epochs: memory is freed when only readers in snapshots can still reach it.
    FreedByHorizon,
    /// Indexes: uniqueness is checked against entries from before all of them were right.
    RefusedEarly,
    /// Indexes: a row is refused because its key is taken, perhaps by the row itself.
    TwinUnobserved,
    /// Indexes: dropping an index does not wait for transactions that it has refused.
    DroppedAtOnce,
    /// TicToc: an attempt may come before the time at which an index that it reads was complete.
    IndexReadEarly,
    /// TicToc: a transaction that no longer maintains a dropped index may be serialized before
    /// transactions that the index has refused.
    PartedAtOnce,
    /// An attempt that moves a bucket does not track it.
    MoveUntracked,
    /// Timestamp order: a commit does not announce that it is going to draw a timestamp.
    CommitUnannounced,
    /// Timestamps from the clock: a time of reading includes a tick that is not over.
    TickNotOver,
    /// Timestamps from the clock: no fence between announcing a commit and drawing its timestamp.
    DrawnUnfenced,
    /// Timestamps from the clock: a commit waits for the tick of its timestamp to be over only
    /// after validation.
    TickAwaitedLate,
    /// Timestamps from the clock: commits do not wait for the tick of a timestamp to be over.
    TickNotAwaited,
    /// Timestamp order: a snapshot does not wait for commits in progress.
    UnsettledSnapshot,
    /// Timestamp order: a commit does not raise the read timestamps of the versions it has read.
    NotRaised,
    /// Timestamp order: a version is linked below readers of its predecessor.
    LinkedUnlooked,
    /// Timestamp order: a commit assumes that its version's predecessor is the version it has
    /// raised.
    RaisedUnlooked,
    /// Timestamp order: a commit does not check again, after linking, whether its version is below
    /// readers of its predecessor.
    RelinkedUnlooked,
    /// Timestamp order: an update without a read is not checked against the row's existence.
    RestedOnNothing,
    /// Timestamp order: the read timestamp of an absence is ignored when a row is linked.
    AbsenceForgotten,
    /// Timestamp order: reads are validated at the time of the read, not the commit's.
    ValidatedInPast,
    /// Timestamp order: a dead record counts as proof of absence at later times.
    DeadUnnoticed,
    /// Timestamp order: a delta becomes a row without the pending versions below it.
    FlattenedOverPending,
    /// Timestamp order: a delta becomes a row, and versions are linked below it afterwards.
    FlattenedUnraised,
    /// Timestamp order: a row is deleted below deltas that rest on it.
    DeletedUnderDelta,
    /// Timestamp order: versions below a delta are collected before it has become a row.
    DeltaCutLoose,
    /// Timestamp order: the partial changes of a deferred updater that panicked are kept.
    BrokenWordApplied,
}

#[cfg(not(test))]
mod active {
    use super::{Mutant, Point};
    use std::time::Duration;

    #[inline(always)]
    pub(crate) const fn pass(_: Point) {}

    #[inline(always)]
    pub(crate) const fn mutant(_: Mutant) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) const fn patience(usual: Duration) -> Duration {
        usual
    }
}

#[cfg(test)]
mod active {
    use super::{Mutant, Point};
    use std::cell::{Cell, RefCell};
    // These atomics are not part of the state that the models explore.
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    type Hook = Box<dyn FnMut(Point)>;

    thread_local! {
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
        static PATIENT: Cell<bool> = const { Cell::new(false) };
    }

    /// Runs `body`, in which this thread waits for others without a time limit.
    pub(crate) fn with_patience<T>(body: impl FnOnce() -> T) -> T {
        PATIENT.set(true);
        let result = body();
        PATIENT.set(false);
        result
    }

    /// Returns how long this thread waits for others, instead of the `usual` time.
    pub(crate) fn patience(usual: Duration) -> Duration {
        // A thread that is ending may have lost it already.
        if PATIENT.try_with(Cell::get).unwrap_or(false) { Duration::MAX } else { usual }
    }

    /// Runs `body` with `hook` called at every point this thread passes; the hook itself passes
    /// points unhooked.
    pub(crate) fn with_hook<T>(hook: impl FnMut(Point) + 'static, body: impl FnOnce() -> T) -> T {
        HOOK.with(|slot| *slot.borrow_mut() = Some(Box::new(hook)));
        let result = body();
        HOOK.with(|slot| slot.borrow_mut().take());
        result
    }

    /// Runs the hook of this thread, if it has one, at a point.
    pub(crate) fn pass(point: Point) {
        // A thread that is ending may have lost its hook already.
        if let Ok(Some(mut hook)) = HOOK.try_with(|slot| slot.borrow_mut().take()) {
            hook(point);
            HOOK.with(|slot| *slot.borrow_mut() = Some(hook));
        }
    }

    const NAMES: [(&str, Mutant); 98] = [
        ("no-fence", Mutant::NoFence),
        ("view-unmoved", Mutant::ViewUnmoved),
        ("moved-unlooked", Mutant::MovedUnlooked),
        ("new-unlooked", Mutant::NewUnlooked),
        ("nodes-unlooked", Mutant::NodesUnlooked),
        ("install-unlooked", Mutant::InstallUnlooked),
        ("epoch-after-look", Mutant::EpochAfterLook),
        ("met-elsewhere", Mutant::MetElsewhere),
        ("met-uninstalled", Mutant::MetUninstalled),
        ("peek-unchecked", Mutant::PeekUnchecked),
        ("told-unlooked", Mutant::ToldUnlooked),
        ("told-once", Mutant::ToldOnce),
        ("no-read-validation", Mutant::NoReadValidation),
        ("others-locks-ignored", Mutant::OthersLocksIgnored),
        ("tombstone-unobserved", Mutant::TombstoneUnobserved),
        ("reclaim-early", Mutant::ReclaimEarly),
        ("evaluate-before-lock", Mutant::EvaluateBeforeLock),
        ("held-not-installing", Mutant::HeldNotInstalling),
        ("held-for-ever", Mutant::HeldForEver),
        ("no-node-validation", Mutant::NoNodeValidation),
        ("split-untracked", Mutant::SplitUntracked),
        ("absent-skipped-by-scan", Mutant::AbsentSkippedByScan),
        ("delete-one-group", Mutant::DeleteOneGroup),
        ("entry-unvalidated", Mutant::EntryUnvalidated),
        ("reverse-off-by-one", Mutant::ReverseOffByOne),
        ("inlined-layer-unobserved", Mutant::InlinedLayerUnobserved),
        ("mark-ignored", Mutant::MarkIgnored),
        ("version-below-read", Mutant::VersionBelowRead),
        ("version-below-replaced", Mutant::VersionBelowReplaced),
        ("epoch-before-lock", Mutant::EpochBeforeLock),
        ("node-observed-late", Mutant::NodeObservedLate),
        ("install-before-validation", Mutant::InstallBeforeValidation),
        ("unlock-before-install", Mutant::UnlockBeforeInstall),
        ("evaluate-between-installs", Mutant::EvaluateBetweenInstalls),
        ("token-ignored", Mutant::TokenIgnored),
        ("sleepers-unseen", Mutant::SleepersUnseen),
        ("handed-by-freeing", Mutant::HandedByFreeing),
        ("second-look-skipped", Mutant::SecondLookSkipped),
        ("wts-before-rts", Mutant::WtsBeforeRts),
        ("not-extended", Mutant::NotExtended),
        ("node-not-extended", Mutant::NodeNotExtended),
        ("node-wts-ignored", Mutant::NodeWtsIgnored),
        ("extended-under-lock", Mutant::ExtendedUnderLock),
        ("commit-below-rts", Mutant::CommitBelowRts),
        ("held-extension-missed", Mutant::HeldExtensionMissed),
        ("insert-inherits-nothing", Mutant::InsertInheritsNothing),
        ("delete-leaves-nothing", Mutant::DeleteLeavesNothing),
        ("abort-leaves-nothing", Mutant::AbortLeavesNothing),
        ("split-inherits-nothing", Mutant::SplitInheritsNothing),
        ("growth-inherits-nothing", Mutant::GrowthInheritsNothing),
        ("collapse-leaves-nothing", Mutant::CollapseLeavesNothing),
        ("reaped-early", Mutant::ReapedEarly),
        ("drawn-before-locks", Mutant::DrawnBeforeLocks),
        ("install-not-awaited", Mutant::InstallNotAwaited),
        ("old-reads-written", Mutant::OldReadsWritten),
        ("undos-first", Mutant::UndosFirst),
        ("expected-as-newest", Mutant::ExpectedAsNewest),
        ("refused-early", Mutant::RefusedEarly),
        ("twin-unobserved", Mutant::TwinUnobserved),
        ("dropped-at-once", Mutant::DroppedAtOnce),
        ("index-read-early", Mutant::IndexReadEarly),
        ("parted-at-once", Mutant::PartedAtOnce),
        ("move-untracked", Mutant::MoveUntracked),
        ("moved-late", Mutant::MovedLate),
        ("deleted-index-preferred", Mutant::DeletedIndexPreferred),
        ("collected-early", Mutant::CollectedEarly),
        ("snapshots-ignored", Mutant::SnapshotsIgnored),
        ("never-parked", Mutant::NeverParked),
        ("words-lost", Mutant::WordsLost),
        ("pruned-by-old-word", Mutant::PrunedByOldWord),
        ("freed-in-sight", Mutant::FreedInSight),
        ("parked-forgotten", Mutant::ParkedForgotten),
        ("parked-reaped", Mutant::ParkedReaped),
        ("killed-by-store", Mutant::KilledByStore),
        ("room-used-again", Mutant::RoomUsedAgain),
        ("hot-kept", Mutant::HotKept),
        ("hot-by-old-list", Mutant::HotByOldList),
        ("kept-unlisted", Mutant::KeptUnlisted),
        ("freed-by-horizon", Mutant::FreedByHorizon),
        ("commit-unannounced", Mutant::CommitUnannounced),
        ("unsettled-snapshot", Mutant::UnsettledSnapshot),
        ("tick-not-over", Mutant::TickNotOver),
        ("tick-awaited-late", Mutant::TickAwaitedLate),
        ("drawn-unfenced", Mutant::DrawnUnfenced),
        ("tick-not-awaited", Mutant::TickNotAwaited),
        ("flattened-over-pending", Mutant::FlattenedOverPending),
        ("flattened-unraised", Mutant::FlattenedUnraised),
        ("deleted-under-delta", Mutant::DeletedUnderDelta),
        ("delta-cut-loose", Mutant::DeltaCutLoose),
        ("broken-word-applied", Mutant::BrokenWordApplied),
        ("not-raised", Mutant::NotRaised),
        ("linked-unlooked", Mutant::LinkedUnlooked),
        ("raised-unlooked", Mutant::RaisedUnlooked),
        ("relinked-unlooked", Mutant::RelinkedUnlooked),
        ("rested-on-nothing", Mutant::RestedOnNothing),
        ("absence-forgotten", Mutant::AbsenceForgotten),
        ("validated-in-past", Mutant::ValidatedInPast),
        ("dead-unnoticed", Mutant::DeadUnnoticed),
    ];

    static MET: AtomicBool = AtomicBool::new(false);

    /// Returns whether the tests run with this defect (`CANDIDE_MUTANT=name`).
    pub(crate) fn mutant(which: Mutant) -> bool {
        static ACTIVE: std::sync::OnceLock<Option<Mutant>> = std::sync::OnceLock::new();
        let active = ACTIVE.get_or_init(|| {
            let name = std::env::var("CANDIDE_MUTANT").ok()?;
            let known = NAMES.iter().find(|(known, _)| *known == name);
            Some(
                known
                    .unwrap_or_else(|| panic!("no mutant is called {name:?}; there are {NAMES:?}"))
                    .1,
            )
        });
        let is_active = *active == Some(which);
        // Loaded first: this runs everywhere, and a store would be a shared write.
        if is_active && !MET.load(Ordering::Relaxed) {
            MET.store(true, Ordering::Relaxed);
        }
        is_active
    }

    /// Returns whether the tests have reached a place of their active defect.
    #[cfg(shuttle)]
    pub(crate) fn was_met() -> bool {
        MET.load(Ordering::Relaxed)
    }
}
