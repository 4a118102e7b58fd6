//! Three instruments of the tests: points at which a test can run code, mutants (defects) that a
//! test must detect, and patience (longer waits).
//!
//! Outside the crate's own tests all three do nothing: points run no code, no mutant is active, and
//! patience does not prolong waits.

pub(crate) use active::{mutant, pass, patience};
#[cfg(test)]
pub(crate) use active::{with_hook, with_patience};

/// A place in a protocol where a test may run code of its own, to build an exact interleaving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// Before a transaction: another transaction owns the database, and this transaction waits.
    Excluded,
    /// Waiting until a fixed set of other sessions' transactions, or of their commits, has ended.
    Awaiting,
    /// Commit: the closure has returned, and nothing is locked.
    Unlocked,
    /// Commit: the write set is locked, and nothing has been validated.
    Locked,
    /// Commit: the attempt has failed to take a lock. It holds no lock, and has not waited for that
    /// lock yet.
    GivenUp,
    /// Commit: a lock has been handed over to the attempt. The attempt has not yet read the cell.
    HandedOver,
    /// Read: the words are copied, and the cell has not been loaded a second time.
    Copied,
    /// Read, or collecting: the time of the cell's last write is known. The cell's older versions
    /// have not been searched.
    LookingBack,
    /// Read: the attempt's time has moved on, and the attempt has not read the cell again.
    MovedOn,
    /// Moving forward in time: the attempt has validated its reads, but not yet the expectations of
    /// its writes.
    LookedAgain,
    /// Read: the attempt's view has to move on, and the epoch has not been loaded.
    Moving,
    /// Revalidation: a row has been examined of which the closure knows only the existence. Other
    /// such rows may not have been examined.
    Asked,
    /// Read: everything in the view has been found unchanged, and the view has not moved on.
    Looked,
    /// Validation: one of a version's two timestamps has been loaded, and the other has not.
    Extending,
    /// Commit: the version to be replaced has not been read, and the new version is not linked.
    Linking,
    /// Collecting: a chain is locked, and about to be pruned.
    Pruning,
    /// Commit: the predecessor of a version has been found, and its read timestamp has not been
    /// raised.
    Following,
    /// Commit: everything is validated, and updaters have not been evaluated.
    Validated,
    /// Commit: the words of one unit are about to be stored.
    Installing,
    /// Read: a node has been searched without finding the key, or by a scan. The transaction has
    /// not yet noted the node.
    Searched,
    /// Commit: the attempt has committed or failed, and nothing is locked any more.
    Released,
    /// Commit: the attempt has committed, and its record is not in the buffer of the log.
    Recording,
    /// The attempt has ended, and its session is not pinned any more.
    Unpinned,
    /// Garbage: an entry is about to be examined.
    Collecting,
    /// Garbage: an absent record is locked, and about to be made dead.
    Reaping,
    /// Garbage: a record is both in its index and in the index of deleted records.
    MovingToDeletedIndex,
}

/// A deliberate defect. `cargo xtask mutants` runs the tests once with each mutant, and reports
/// each mutant with which no test fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// No fence between locking and validating.
    NoFence,
    /// The log: a commit ends its turn before its record is in the buffer.
    AppendAfterUnlock,
    /// The log: the logger takes its cut after it has emptied the buffers.
    CutAfterSwap,
    /// The log: records above the cut of their block count as durable without a later block.
    CutNotClosed,
    /// The log: a commit counts as durable once it is written.
    AckBeforeSync,
    /// The log: closing does not write what the sessions have left.
    ClosedUnwritten,
    /// The log: a commit takes its turn before its locks.
    TurnBeforeLocks,
    /// The log: the epoch of a commit is loaded after its validation.
    EpochAfterValidation,
    /// The log: a transaction that only reads is acknowledged at once.
    ReadOnlyAckAtOnce,
    /// The log: the absence of a row counts as known since the epoch in its tombstone.
    AbsenceAckByTid,
    /// The log: entries of secondary indexes are logged.
    IndexEntryLogged,
    /// The log: no fence between loading the epoch of a commit and validating.
    EpochUnfenced,
    /// The log: an outcome, an error or a panic is acknowledged at once.
    OutcomeAckAtOnce,
    /// The log: the logger looks for records, and only then notes that it is idle.
    IdleNotedLate,
    /// The log: sessions that wait for the logger do not hear that the disk is full.
    FullUnheard,
    /// Sequences: a limit is used before it is durable, once the transaction that has raised it has
    /// committed.
    LimitRaisedAtCommit,
    /// Sequences: a limit is used as soon as a transaction has staged it.
    LimitRaisedAtDraw,
    /// Sequences: a limit that was staged in a part of a transaction is undone with the part.
    LimitUndone,
    /// Views: a version from the base's epoch or later is accepted although the view has not moved
    /// on.
    ViewUnmoved,
    /// Views: earlier reads are not checked when the view moves on.
    MovedUnlooked,
    /// Views: the new cell is not checked when the view moves on.
    NewUnlooked,
    /// Views: nodes are not checked when the view moves on.
    NodesUnlooked,
    /// Views: a commit under way is not noticed when the view moves on.
    InstallUnlooked,
    /// Views: the epoch is loaded after the revalidation.
    EpochAfterLook,
    /// Views: the version of another cell counts as met.
    MetElsewhere,
    /// Views: the initial version of a row that never existed counts as met, though no commit has
    /// installed it.
    MetUninstalled,
    /// Views: the existence of a row is returned without a check by the view.
    PeekUnchecked,
    /// Views: rows of which only the existence is known are not examined.
    ToldUnlooked,
    /// Views: rows of which only the existence is known are examined only once.
    ToldOnce,
    /// Reads are not validated.
    NoReadValidation,
    /// Validation ignores that another transaction has locked a row that was read.
    OthersLocksIgnored,
    /// A tombstone counts as absence, but is not observed.
    TombstoneUnobserved,
    /// Memory is reused one epoch too early.
    ReclaimEarly,
    /// Updaters see the row as it was before the lock was taken.
    EvaluateBeforeLock,
    /// A commit does not set INSTALL in the cells that its own reads for update have locked.
    HeldNotInstalling,
    /// An attempt that fails keeps the locks of its reads for update.
    HeldForEver,
    /// Policies: a session that is granted a lock does not look at the flags again.
    NoRecheckAfterGrant,
    /// Policies: the flags that make readers and writers ask are changed in a locked cell.
    AskSetWhileLocked,
    /// Policies: an attempt keeps its lock for reading while it waits for the lock for writing.
    UpgradeInPlace,
    /// Policies: a writer that gives up waiting leaves WANT set.
    WantLeft,
    /// Policies: a circle of waiting sessions is not noticed.
    CircleUnseen,
    /// Policies: the flags of a row are cleared while other sessions hold its lock for reading.
    CooledWhileShared,
    /// Policies: an attempt that learns from conflicts waits for locks in any order.
    WaitsOutOfOrder,
    /// Policies: the retrospective lock list is always empty.
    NothingRetrospective,
    /// Policies: a retrospective lock list that is too long becomes empty.
    LongListEmptied,
    /// Policies: an attempt that locks ahead does not sleep for a commit.
    CommitUnawaitedAhead,
    /// Between attempts: a transaction does not wait for the lock on which it has failed.
    LockUnawaited,
    /// Policies: a session is asked to abort although it has released the lock.
    KillNextTransaction,
    /// Policies: rows for which the attempt has asked its policy are not validated.
    LockedUnvalidated,
    /// Phase 1 locks cells without INSTALL.
    LockedNotInstalling,
    /// The nodes that prove the absence of keys are not validated.
    NoNodeValidation,
    /// An attempt does not track a node that it has split itself.
    SplitUntracked,
    /// A scan that meets an absent record does not observe it.
    AbsentSkippedByScan,
    /// A delete changes only the first group of the row.
    DeleteOneGroup,
    /// A scan sees operations that its transaction has made after the scan began.
    MarkIgnored,
    /// A commit's version may be below versions that the commit has read.
    VersionBelowRead,
    /// A commit's version may be one that the replaced unit has had before.
    VersionBelowReplaced,
    /// The epoch that numbers a commit is read before its locks are taken.
    EpochBeforeLock,
    /// A node's version is loaded after the node has been searched.
    NodeObservedLate,
    /// Words are installed before the reads are validated.
    InstallBeforeValidation,
    /// A cell is released with its new version before the new words are stored.
    UnlockBeforeInstall,
    /// Updaters are evaluated after the first unit has been installed.
    EvaluateBetweenInstalls,
    /// No session gives way to the token.
    TokenIgnored,
    /// A row that was deleted while its record was queued is unlinked as early as if it had been
    /// deleted before.
    ReapedEarly,
    /// A put or an insert that is staged on the record of an absent row does not keep the record in
    /// its index.
    StagedUnflagged,
    /// A row that is deleted while its record is queued does not make the queue's entry begin anew.
    DeletedUnflagged,
    /// An entry that could not be collected is as old as before when it is queued again.
    RequeuedAsOld,
    /// Versions: a record that only snapshots see is unlinked from its table's index before it is
    /// linked in the index of deleted records.
    MovedLate,
    /// Versions: a reader of an older version accepts a deleted record as the row, regardless of
    /// the time of the delete.
    DeletedIndexPreferred,
    /// A record is made dead by a load and a store. Between the two, an insert may lock the record.
    KilledByStore,
    /// Versions: a unit that is written all the time stays in the queue of the session that wrote
    /// the unit first.
    HotKept,
    /// Versions: a shared entry is collected by a list of snapshots that is older than the entry.
    HotByOldList,
    /// Epochs: memory is freed when only readers in snapshots can still reach it.
    FreedByHorizon,
    /// Savepoints: what undone writes have assumed is not observed.
    UndoneUnobserved,
    /// Transactions: an operation that ends in a panic does not spoil its transaction.
    PanicForgotten,
    /// Savepoints: effects of an undone part run after the commit.
    UndoneEffectKept,
    /// Unique indexes: a row that waits for a key does not get it when the key is given up.
    WaitingForgotten,
    /// Unique indexes: a row that waits for a key keeps waiting after it has got another one.
    WaitingForEver,
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

    /// Runs `body`. In `body`, this thread waits for other threads without a time limit.
    pub(crate) fn with_patience<T>(body: impl FnOnce() -> T) -> T {
        PATIENT.set(true);
        let result = body();
        PATIENT.set(false);
        result
    }

    /// Returns the time for which this thread waits for other threads: `usual`, or no limit within
    /// [`with_patience`].
    pub(crate) fn patience(usual: Duration) -> Duration {
        // A thread that is ending may have lost this thread-local already.
        if PATIENT.try_with(Cell::get).unwrap_or(false) { Duration::MAX } else { usual }
    }

    /// Runs `body`, and calls `hook` at every point that this thread passes. Points that `hook`
    /// itself passes call no hook.
    pub(crate) fn with_hook<T>(hook: impl FnMut(Point) + 'static, body: impl FnOnce() -> T) -> T {
        HOOK.with(|slot| *slot.borrow_mut() = Some(Box::new(hook)));
        let result = body();
        HOOK.with(|slot| slot.borrow_mut().take());
        result
    }

    /// Runs the hook of this thread at `point`. Does nothing if the thread has no hook.
    pub(crate) fn pass(point: Point) {
        // A thread that is ending may have lost its hook already.
        if let Ok(Some(mut hook)) = HOOK.try_with(|slot| slot.borrow_mut().take()) {
            hook(point);
            HOOK.with(|slot| *slot.borrow_mut() = Some(hook));
        }
    }

    const NAMES: [(&str, Mutant); 78] = [
        ("no-fence", Mutant::NoFence),
        ("append-after-unlock", Mutant::AppendAfterUnlock),
        ("cut-after-swap", Mutant::CutAfterSwap),
        ("ack-before-sync", Mutant::AckBeforeSync),
        ("closed-unwritten", Mutant::ClosedUnwritten),
        ("turn-before-locks", Mutant::TurnBeforeLocks),
        ("epoch-after-validation", Mutant::EpochAfterValidation),
        ("read-only-ack-at-once", Mutant::ReadOnlyAckAtOnce),
        ("absence-ack-by-tid", Mutant::AbsenceAckByTid),
        ("index-entry-logged", Mutant::IndexEntryLogged),
        ("epoch-unfenced", Mutant::EpochUnfenced),
        ("outcome-ack-at-once", Mutant::OutcomeAckAtOnce),
        ("cut-not-closed", Mutant::CutNotClosed),
        ("idle-noted-late", Mutant::IdleNotedLate),
        ("full-unheard", Mutant::FullUnheard),
        ("limit-raised-at-commit", Mutant::LimitRaisedAtCommit),
        ("limit-raised-at-draw", Mutant::LimitRaisedAtDraw),
        ("limit-undone", Mutant::LimitUndone),
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
        ("no-recheck-after-grant", Mutant::NoRecheckAfterGrant),
        ("ask-set-while-locked", Mutant::AskSetWhileLocked),
        ("upgrade-in-place", Mutant::UpgradeInPlace),
        ("want-left", Mutant::WantLeft),
        ("circle-unseen", Mutant::CircleUnseen),
        ("cooled-while-shared", Mutant::CooledWhileShared),
        ("waits-out-of-order", Mutant::WaitsOutOfOrder),
        ("nothing-retrospective", Mutant::NothingRetrospective),
        ("long-list-emptied", Mutant::LongListEmptied),
        ("commit-unawaited-ahead", Mutant::CommitUnawaitedAhead),
        ("lock-unawaited", Mutant::LockUnawaited),
        ("kill-next-transaction", Mutant::KillNextTransaction),
        ("locked-unvalidated", Mutant::LockedUnvalidated),
        ("locked-not-installing", Mutant::LockedNotInstalling),
        ("no-node-validation", Mutant::NoNodeValidation),
        ("split-untracked", Mutant::SplitUntracked),
        ("absent-skipped-by-scan", Mutant::AbsentSkippedByScan),
        ("delete-one-group", Mutant::DeleteOneGroup),
        ("mark-ignored", Mutant::MarkIgnored),
        ("version-below-read", Mutant::VersionBelowRead),
        ("version-below-replaced", Mutant::VersionBelowReplaced),
        ("epoch-before-lock", Mutant::EpochBeforeLock),
        ("node-observed-late", Mutant::NodeObservedLate),
        ("install-before-validation", Mutant::InstallBeforeValidation),
        ("unlock-before-install", Mutant::UnlockBeforeInstall),
        ("evaluate-between-installs", Mutant::EvaluateBetweenInstalls),
        ("token-ignored", Mutant::TokenIgnored),
        ("reaped-early", Mutant::ReapedEarly),
        ("staged-unflagged", Mutant::StagedUnflagged),
        ("deleted-unflagged", Mutant::DeletedUnflagged),
        ("requeued-as-old", Mutant::RequeuedAsOld),
        ("undone-unobserved", Mutant::UndoneUnobserved),
        ("panic-forgotten", Mutant::PanicForgotten),
        ("undone-effect-kept", Mutant::UndoneEffectKept),
        ("waiting-forgotten", Mutant::WaitingForgotten),
        ("waiting-for-ever", Mutant::WaitingForEver),
        ("moved-late", Mutant::MovedLate),
        ("deleted-index-preferred", Mutant::DeletedIndexPreferred),
        ("killed-by-store", Mutant::KilledByStore),
        ("hot-kept", Mutant::HotKept),
        ("hot-by-old-list", Mutant::HotByOldList),
        ("freed-by-horizon", Mutant::FreedByHorizon),
    ];

    static MET: AtomicBool = AtomicBool::new(false);

    /// Returns whether the tests run with defect `which` (`CANDIDE_MUTANT=name`).
    pub(crate) fn mutant(which: Mutant) -> bool {
        static ACTIVE: std::sync::OnceLock<Option<Mutant>> = std::sync::OnceLock::new();
        let active = ACTIVE.get_or_init(|| {
            let name = std::env::var("CANDIDE_MUTANT").ok()?;
            // The others are in the list of `xtask`.
            let known = NAMES.iter().find(|(known, _)| *known == name);
            known.map(|(_, mutant)| *mutant)
        });
        let is_active = *active == Some(which);
        if is_active && !MET.load(Ordering::Relaxed) && !MET.swap(true, Ordering::Relaxed) {
            eprintln!("mutant: met");
        }
        is_active
    }
}
