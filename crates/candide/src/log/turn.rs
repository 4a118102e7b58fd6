//! The turn of a commit to log: the lock on the session's buffer.
//!
//! # Invariants
//! * **LG1** A commit takes its turn before it takes its stamp, and ends the turn after its record
//!   is in the buffer, or after it has failed.
//! * **LG2** A commit takes its turn after it has been granted its last lock, and gives the turn up
//!   before it waits for a lock. So a transaction that holds a lock and has stopped does not keep
//!   the logger waiting. One wait is excepted, since it is short: up to seven times, a validation
//!   waits `ROUNDS_HELD` rounds at most for a commit that changes a number of which the transaction
//!   has observed a range.
//! * **LG3** The logger takes a cut, and then locks and empties all buffers, one after another. By
//!   LG1, each commit with a stamp up to the cut has left its record in its buffer when the logger
//!   locks that buffer. A commit that takes its turn after the logger's visit takes a stamp above
//!   the cut, since the logger's unlocking carries the cut to it (E27). A session that joins after
//!   the cut has a buffer that the logger may not have visited; the lock on the list of buffers
//!   carries the cut to it.
//! * **LG4** The logger publishes a cut as written or durable only if every record with a stamp up
//!   to it is in a block, and that stamp is no larger than the cut of the last block. Recovery
//!   drops records above the last cut, and blocks may contain such records (LG3).

#![forbid(unsafe_code)]

use super::buffer::Buffer;
use crate::sync::{Mutex, MutexGuard, Point, lock, pass};

/// The turn of a commit to log. In a database without a log, taking the turn does nothing.
#[derive(Debug)]
pub struct LogTurn<'a> {
    buffer: Option<&'a Mutex<Buffer>>,
    held: Option<MutexGuard<'a, Buffer>>,
}

impl<'a> LogTurn<'a> {
    /// Returns the turn of a commit that is not logged.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn unlogged() -> LogTurn<'a> {
        LogTurn { buffer: None, held: None }
    }

    /// Returns the turn of a commit that is logged in `buffer`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn of(buffer: &'a Mutex<Buffer>) -> LogTurn<'a> {
        LogTurn { buffer: Some(buffer), held: None }
    }

    /// Takes the turn.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn take(&mut self) {
        if let Some(buffer) = self.buffer {
            self.take_slowly(buffer);
        }
    }

    #[inline(never)]
    fn take_slowly(&mut self, buffer: &'a Mutex<Buffer>) {
        if self.held.is_none() {
            self.held = Some(lock(buffer));
        }
    }

    /// Ends the turn of a commit that is not logged: there is nothing to unlock, and its
    /// destructor does not look.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn end_unlogged(self) {
        debug_assert!(self.buffer.is_none() && self.held.is_none());
        std::mem::forget(self);
    }

    /// Gives the turn up, for a commit that has failed and is going to wait.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn give_up(&mut self) {
        self.held = None;
    }

    /// Returns the buffer, locked, for the record of the commit.
    #[inline]
    pub(crate) fn into_buffer(self) -> MutexGuard<'a, Buffer> {
        pass(Point::Recording);
        let buffer = self.buffer.expect("the commit is logged");
        self.held.unwrap_or_else(|| lock(buffer))
    }
}
