//! The queue lock of a cell of four words.

#![forbid(unsafe_code)]

use super::shared::LockBase;
use super::word::Mode;
use crate::record::CellAt;
use crate::sync::queue_lock::{self, QueueLock};

/// Returns whether a cell has a queue lock.
#[inline]
pub(super) fn has_queue(at: CellAt) -> bool {
    at.cell_words() > 2
}

/// Returns the queue lock of a cell.
#[inline]
pub(crate) fn queue<'a>(base: LockBase<'a>, at: &'a CellAt) -> QueueLock<'a> {
    let words = [at.cell_word(1), at.cell_word(2), at.cell_word(3)];
    QueueLock::new(words, &base.locks.queue_nodes, &base.engine.parking)
}

/// Returns the mode in which a queue lock is requested.
#[inline]
pub(crate) fn queue_mode(mode: Mode) -> queue_lock::Mode {
    match mode {
        Mode::Read => queue_lock::Mode::Read,
        Mode::Write => queue_lock::Mode::Write,
    }
}
