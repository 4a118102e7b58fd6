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
    /// The log: sessions that wait for the logger do not hear that the disk is full.
    FullUnheard,
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
    /// Policies: a session is asked to abort although it has released the lock.
    KillNextTransaction,
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

    const NAMES: [(&str, Mutant); 13] = [
        ("full-unheard", Mutant::FullUnheard),
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
        ("kill-next-transaction", Mutant::KillNextTransaction),
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
