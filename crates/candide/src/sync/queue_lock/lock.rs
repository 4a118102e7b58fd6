//! The words of a lock.

#![forbid(unsafe_code)]

use super::nodes::Nodes;
use super::words::NodeId;
use crate::sync::{AtomicU64, Ordering, Parking};

/// A lock, whose words are elsewhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueLock<'a> {
    /// The node of the last request; zero if the queue is empty.
    pub(super) tail: &'a AtomicU64,
    /// The number of readers that hold the lock.
    pub(super) readers: &'a AtomicU64,
    /// The node of the writer at the head of the queue, while it waits for readers; or zero.
    pub(super) next_writer: &'a AtomicU64,
    pub(super) nodes: &'a Nodes,
    pub(super) parking: &'a Parking,
}

impl<'a> QueueLock<'a> {
    /// Returns the lock with these words, which are zero at first.
    pub(crate) fn new(
        [tail, readers, next_writer]: [&'a AtomicU64; 3],
        nodes: &'a Nodes,
        parking: &'a Parking,
    ) -> QueueLock<'a> {
        QueueLock { tail, readers, next_writer, nodes, parking }
    }

    /// Takes the node out of the queue if it is the last one; `before` is the node before it, or
    /// zero.
    pub(super) fn take_from_tail(self, id: NodeId, before: u64) -> bool {
        // Release: the writes of this thread (E23).
        self.tail.compare_exchange(id.word(), before, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Returns whether another request stands behind this one. The result may be out of date.
    #[cfg(test)]
    pub(crate) fn is_awaited(self, id: NodeId) -> bool {
        let tail = self.tail.load(Ordering::Relaxed);
        tail != 0 && tail != id.word()
    }

    /// Returns whether there are requests, and no reader holds the lock: so a writer does, or is
    /// about to. The result may be out of date.
    pub(crate) fn is_written(self) -> bool {
        self.tail.load(Ordering::Relaxed) != 0 && self.readers.load(Ordering::Relaxed) == 0
    }

    /// Returns whether no session holds the lock or waits for it. The result may be out of date.
    pub(crate) fn is_free(self) -> bool {
        self.tail.load(Ordering::Relaxed) == 0 && self.readers.load(Ordering::Relaxed) == 0
    }
}
