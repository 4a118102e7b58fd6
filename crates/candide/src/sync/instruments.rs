//! Two instruments of the tests: points at which a test can run code, and patience (longer waits).
//!
//! Outside the crate's own tests both do nothing: points run no code, and patience does not prolong
//! waits.

pub(crate) use active::{pass, patience};
#[cfg(test)]
pub(crate) use active::{with_hook, with_patience};

/// A place in a protocol where a test may run code of its own, to build an exact interleaving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// Before a transaction: another transaction owns the database, and this transaction waits.
    Excluded,
    /// Before a transaction that sees the past: a view is known, and the session is about to be
    /// pinned.
    JoiningPast,
    /// Before a single read: the session is about to be pinned.
    Pinning,
    /// Waiting until a fixed set of other sessions' transactions, or of their commits, has ended.
    Awaiting,
    /// Commit: the closure has returned, and nothing is locked.
    Unlocked,
    /// Commit with keys that come late: memory is there, and the ranks of the tables are known. The
    /// session's desk does not show the attempt.
    Prepared,
    /// Commit: the write set is locked, and nothing has been validated.
    Locked,
    /// Commit: the attempt has failed to take a lock. The attempt holds no lock, and has not waited
    /// for that lock yet.
    GivenUp,
    /// Commit: a lock has been handed over to the attempt. The attempt has not yet read the cell.
    HandedOver,
    /// Read: the words are copied, and the cell has not been loaded a second time.
    Copied,
    /// Read, or collecting: the time of the cell's last write is known. The cell's older versions
    /// have not been searched.
    LookingBack,
    /// Retry: the attempt has raised its flags, and the session has not slept yet.
    Watching,
    /// Read: the attempt's time has moved on, and the attempt has not read the cell again.
    MovedOn,
    /// Moving forward in time: the attempt has validated its reads, but not yet the expectations of
    /// its writes.
    LookedAgain,
    /// Read: the attempt's view has to move on, and the epoch has not been loaded.
    Moving,
    /// Revalidation: one row of which the closure has learned only the existence has been examined.
    /// Other rows of this kind may still have to be examined.
    Asked,
    /// Read: everything in the view has been found unchanged, and the view has not moved on.
    Looked,
    /// Validation: a number of which the attempt has observed a range has been read again, if its
    /// unit has changed. Other such numbers have not.
    Ranged,
    /// Validation: one of a version's two timestamps has been loaded, and the other has not.
    Extending,
    /// Commit: the version to be replaced has not been read, and the new version is not linked.
    Linking,
    /// Collecting: a chain is locked, and about to be pruned.
    Pruning,
    /// Commit: the predecessor of a version has been found, and its read timestamp has not been
    /// raised.
    Following,
    /// Commit in a pipeline: a lock has been handed on, and the next one has not been asked for.
    Relaxed,
    /// Commit in a pipeline: everything has been evaluated, and nothing executed.
    Evaluated,
    /// Commit in a pipeline: everything has been executed, and predecessors may still run.
    Executed,
    /// Commit in a pipeline: the predecessors are over, and the attempt takes its turn to log.
    InOrder,
    /// Commit in a pipeline: one cell is about to be closed.
    Closing,
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

#[cfg(not(test))]
mod active {
    use super::Point;
    use std::time::Duration;

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) const fn pass(_: Point) {}

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) const fn patience(usual: Duration) -> Duration {
        usual
    }
}

#[cfg(test)]
mod active {
    use super::Point;
    use std::cell::{Cell, RefCell};
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
}
