//! Three instruments of the tests: points where a test can step in, mutants that a test must catch,
//! and patience.
//!
//! Outside the crate's own tests all are empty: a point does nothing, no mutant is ever active, and
//! nothing is waited for longer.

#[cfg(all(test, shuttle))]
pub(crate) use active::was_met;
pub(crate) use active::{mutant, pass, patience};
#[cfg(test)]
pub(crate) use active::{with_hook, with_patience};

/// A place in a protocol where a test may run code of its own (an exact interleaving without luck).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// Before a transaction: another one has the database to itself, and this one waits.
    Excluded,
    /// Others' transactions, or their commits, go on, and are waited for; which ones is settled.
    Awaiting,
    /// Commit: the closure is done, nothing is locked.
    Unlocked,
    /// Commit: the write set is locked, nothing validated.
    Locked,
    /// Commit: it has failed on a lock, owns nothing, and has not waited for that yet.
    GivenUp,
    /// Commit: a lock has been handed over to the attempt, which has not looked at the cell.
    HandedOver,
    /// Read: the words are copied, the second look at the cell has not happened.
    Copied,
    /// Read, or collecting: a cell says when its unit was written last; what there was before has
    /// not been looked for.
    LookingBack,
    /// Read: the attempt has moved on in time, and has not looked at the cell again.
    MovedOn,
    /// An attempt that moves on in time has looked at all it has read, and not at what its writes
    /// expect.
    LookedAgain,
    /// Read: what the attempt has seen has to move on, and the epoch has not been loaded.
    Moving,
    /// Read: a row of which only the existence was told has said that it exists, or does not;
    /// others may not have been asked.
    Asked,
    /// Read: all that the attempt has seen is as it was; it has not moved on.
    Looked,
    /// Validation: one of a version's two timestamps is loaded, the other is not.
    Extending,
    /// Commit: the version that is to be replaced has not been read, and the new one is not linked.
    Linking,
    /// Collecting: a chain is locked, and about to be gone through.
    Thinning,
    /// Commit: what a version follows has been found, and its read timestamp has not been raised.
    Following,
    /// Commit: everything is validated, updaters have not been evaluated.
    Validated,
    /// Commit: the words of one unit are about to be stored.
    Installing,
    /// Read: a node has been searched in vain, or by a scan; the transaction has not taken note of
    /// it.
    Searched,
    /// Commit: over, whatever came of it, and nothing is locked any more.
    Released,
    /// The attempt is over, and its session is not pinned any more.
    Unpinned,
    /// Garbage: an entry is about to be looked at.
    Collecting,
    /// Garbage: an absent record is locked, and about to be made dead.
    Burying,
    /// Garbage: a record is both in its index and in the index of deleted records.
    Stowing,
}

/// A deliberate defect. `cargo xtask mutants` runs the tests once with each and demands that they
/// fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// No fence between locking and validating.
    NoFence,
    /// Views: a version of the base's epoch or later is taken as it is.
    ViewUnmoved,
    /// Views: what has been seen is not looked at when the view moves on.
    MovedUnlooked,
    /// Views: the new cell is not looked at when the view moves on.
    NewUnlooked,
    /// Views: nodes are not looked at when the view moves on.
    NodesUnlooked,
    /// Views: a commit under way is not noticed when the view moves on.
    InstallUnlooked,
    /// Views: the epoch is loaded after the look.
    EpochAfterLook,
    /// Views: a version is taken for met that another cell has.
    MetElsewhere,
    /// Views: a version that a commit has not installed, since the row was never there, is met.
    MetUninstalled,
    /// Views: whether a row exists is told without asking the view.
    PeekUnchecked,
    /// Views: what was told of rows that were not read is not looked at.
    ToldUnlooked,
    /// Views: what was told of rows that were not read is looked at once.
    ToldOnce,
    /// Reads are not validated.
    NoReadValidation,
    /// Validation ignores that another transaction has locked what was read.
    OthersLocksIgnored,
    /// A tombstone is taken as absence without being observed.
    TombstoneUnobserved,
    /// Memory is reused one epoch too early.
    ReclaimEarly,
    /// Updaters see the row as it was before it was locked.
    EvaluateBeforeLock,
    /// A commit does not tell anyone that it is about to write what a read for update has locked.
    HeldNotInstalling,
    /// An attempt that fails keeps what its reads for update have locked.
    HeldForEver,
    /// Nodes that vouched for absent keys are not validated.
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
    /// Scans: the leaf of a layer that is put into the hand as a whole is not observed.
    TwigUnobserved,
    /// A scan sees what the transaction does while it goes on.
    MarkIgnored,
    /// A commit's version may be below those of what it read.
    VersionBelowRead,
    /// A commit's version may be one that what it replaces has had.
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
    /// An owner that has just freed a lock does not look whether there are sleepers now.
    SleepersUnseen,
    /// A lock that is handed over is free for a moment.
    HandedByFreeing,
    /// Timestamps: a value is taken for that of the timestamps beside it without a second look at
    /// them.
    SecondLookSkipped,
    /// Timestamps: validation loads when a version was written before it loads how far it is valid.
    WtsBeforeRts,
    /// Timestamps: a commit reads a version beyond its rts without raising that.
    NotExtended,
    /// Timestamps: a commit that has missed a key does not raise its node's nrts.
    NodeNotExtended,
    /// Timestamps: a commit that has missed a key may come before the delete that it saw by that.
    NodeWtsIgnored,
    /// Timestamps: a version is extended though a commit has locked it to replace it.
    ExtendedUnderLock,
    /// Timestamps: a commit is above what it replaces was written at, not above what it was read
    /// at.
    CommitBelowRts,
    /// Timestamps: a commit does not notice that what it held has been extended meanwhile.
    HeldExtensionMissed,
    /// Timestamps: a new record does not inherit its node's.
    InsertInheritsNothing,
    /// Timestamps: the record of a deleted row does not leave its own to the node.
    DeleteLeavesNothing,
    /// Timestamps: the record of an insert that failed does not leave its own to the node.
    AbortLeavesNothing,
    /// Timestamps: new leaves do not inherit those of the leaf they were made from.
    SplitInheritsNothing,
    /// Timestamps: the halves of a bucket do not inherit its own.
    GrowthInheritsNothing,
    /// Timestamps: a leaf or layer that is removed does not leave its own behind.
    CollapseLeavesNothing,
    /// A row that was deleted while its record was queued is buried as if it had been deleted
    /// before.
    BuriedEarly,
    /// Versions: a commit draws its timestamp before it has locked what it writes.
    DrawnBeforeLocks,
    /// Versions: a reader does not wait for a commit that may have drawn a timestamp it has to see.
    InstallNotAwaited,
    /// Versions: an attempt that has read what was replaced writes all the same.
    OldReadsWritten,
    /// Versions: who makes a unit what it was looks for what was put aside before he copies the
    /// words.
    UndosFirst,
    /// Versions: what a write expects of a row is held against the newest version when the attempt
    /// moves on in time.
    ExpectedAsNewest,
    /// Versions: what only snapshots see leaves its index before it can be found in the index of
    /// deleted records.
    StowedLate,
    /// Versions: who looks back takes what is in the index of deleted records for what there was,
    /// whenever that was.
    DeletedIndexPreferred,
    /// Versions: an old version is collected when there is a newer one, though a reader may still
    /// come to see it.
    CollectedEarly,
    /// Versions: collecting heeds no open snapshot.
    SnapshotsIgnored,
    /// Versions: what only a snapshot keeps is looked at again and again.
    NeverParked,
    /// Versions: when a chain is thinned, what stays is without the words that only those had which
    /// went.
    WordsLost,
    /// Versions: pruning goes by when the unit had been written before a commit wrote it once more.
    ThinnedByOldWord,
    /// Versions: undo records are freed while a session looks through chains.
    FreedInSight,
    /// Versions: what was parked is given up without a word, since the unit has been queued
    /// meanwhile.
    ParkedForgotten,
    /// Versions: a record is buried though something of it is parked.
    ParkedBuried,
    /// A record is made dead by a load and a store: nothing keeps away who comes for it in between.
    KilledByStore,
    /// Timestamp order: the room in the record is used again for a version when the first has left
    /// its chain.
    RoomUsedAgain,
    /// Versions: what is written all the time stays with the session that has written it first.
    HotKept,
    /// Versions: what is for all is collected by a list of snapshots from before it was queued.
    HotByOldList,
    /// Versions: what a long attempt sees that only reads is not kept, though it does not hold it
    /// back either.
    KeptUnlisted,
    /// Epochs: memory is free when only readers in snapshots can come to look at it.
    FreedByHorizon,
    /// Indexes: whether a key is taken is asked of entries that may be from before they were all
    /// right.
    RefusedEarly,
    /// Indexes: a row is refused for a key that is taken, and may be its own.
    TwinUnobserved,
    /// Indexes: dropping an index does not wait for transactions that it has refused.
    DroppedAtOnce,
    /// TicToc: an attempt may come before the time at which an index that it reads was complete.
    IndexReadEarly,
    /// TicToc: who does not keep a dropped index any more may come before those whom it has
    /// refused.
    PartedAtOnce,
    /// An attempt that moves a bucket does not know of it afterwards.
    MoveUntracked,
    /// Timestamp order: a commit does not tell anyone that it is going to draw a timestamp.
    CommitUnannounced,
    /// Timestamps from the clock: a time is taken to the end of a tick that goes on.
    TickNotOver,
    /// Timestamps from the clock: no fence between telling others of a commit and drawing its
    /// timestamp.
    DrawnUnfenced,
    /// Timestamps from the clock: a commit waits for the tick of its timestamp to be over when it
    /// has validated.
    TickAwaitedLate,
    /// Timestamps from the clock: commits do not wait for the tick of a timestamp to be over.
    TickNotAwaited,
    /// Timestamp order: what looks back does not wait for commits that are going on.
    UnsettledSnapshot,
    /// Timestamp order: a commit does not raise the read timestamps of what it has read.
    NotRaised,
    /// Timestamp order: a version is linked below those who have read what it follows.
    LinkedUnlooked,
    /// Timestamp order: a commit takes what its version follows for what it has raised.
    RaisedUnlooked,
    /// Timestamp order: a commit does not look again, after linking, whether its version has come
    /// below readers of what it follows.
    RelinkedUnlooked,
    /// Timestamp order: an update that reads no row is not held against there being one.
    RestedOnNothing,
    /// Timestamp order: how late it was read that there is no row is not asked when one is linked.
    AbsenceForgotten,
    /// Timestamp order: what a commit has read is held against the time that it was read at, not
    /// the commit's.
    ValidatedInPast,
    /// Timestamp order: a record that was buried vouches for there being no row at later times.
    DeadUnnoticed,
    /// Timestamp order: a delta becomes a row without what is still pending below it.
    FlattenedOverPending,
    /// Timestamp order: a delta becomes a row, and others are linked below it afterwards.
    FlattenedUnraised,
    /// Timestamp order: a row is deleted below deltas that rest on it.
    DeletedUnderDelta,
    /// Timestamp order: what is below a delta is collected before that has become a row.
    DeltaCutLoose,
    /// Timestamp order: what an updater has done that has panicked half way, after it was put off,
    /// stays done.
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
    // No model is to see it.
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    type Hook = Box<dyn FnMut(Point)>;

    thread_local! {
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
        static PATIENT: Cell<bool> = const { Cell::new(false) };
    }

    /// Runs `body`, in which this thread waits for others for as long as it takes.
    pub(crate) fn with_patience<T>(body: impl FnOnce() -> T) -> T {
        PATIENT.set(true);
        let result = body();
        PATIENT.set(false);
        result
    }

    /// How long this thread waits for others that it `usual`ly waits for so long.
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

    /// Called by protocols as they pass a point.
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
        ("twig-unobserved", Mutant::TwigUnobserved),
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
        ("buried-early", Mutant::BuriedEarly),
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
        ("stowed-late", Mutant::StowedLate),
        ("deleted-index-preferred", Mutant::DeletedIndexPreferred),
        ("collected-early", Mutant::CollectedEarly),
        ("snapshots-ignored", Mutant::SnapshotsIgnored),
        ("never-parked", Mutant::NeverParked),
        ("words-lost", Mutant::WordsLost),
        ("thinned-by-old-word", Mutant::ThinnedByOldWord),
        ("freed-in-sight", Mutant::FreedInSight),
        ("parked-forgotten", Mutant::ParkedForgotten),
        ("parked-buried", Mutant::ParkedBuried),
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

    /// Whether the tests run with this defect (`CANDIDE_MUTANT=name`).
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
        // Looked at first: this is asked everywhere, and a store would be a shared write.
        if is_active && !MET.load(Ordering::Relaxed) {
            MET.store(true, Ordering::Relaxed);
        }
        is_active
    }

    /// Whether the tests have come to a place where the defect that they run with is.
    #[cfg(shuttle)]
    pub(crate) fn was_met() -> bool {
        MET.load(Ordering::Relaxed)
    }
}
