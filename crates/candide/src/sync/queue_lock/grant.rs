//! Granting, and passing the lock from readers to the next writer.

#![forbid(unsafe_code)]

use super::lock::QueueLock;
use super::words::{Back, Front, Mode, NodeId, Successor};
use crate::sync::{Ordering, full_fence, store_then_full_fence};

impl QueueLock<'_> {
    /// Grants the lock to `first`, and if it reads, to the readers directly behind it. The caller
    /// has claimed the link to `first` (QL2), or it is the caller's own node.
    pub(super) fn grant(self, first: NodeId) {
        let mut next = Some(first);
        while let Some(id) = next {
            let node = self.nodes.node(id);
            let mode = node.mode();
            if mode == Mode::Read {
                // The reader is counted before it is granted the lock (QL5). Relaxed: see E24.
                self.readers.fetch_add(1, Ordering::Relaxed);
            }
            // By this exchange, the caller claims the link to a reader behind a reader (QL4).
            let back = Back(node.back.fetch_or(Back::GRANTED, Ordering::AcqRel)); // E24
            next = match (mode, back.successor()) {
                (Mode::Read, Successor::Node(behind, Mode::Read)) => Some(behind),
                _ => None,
            };
            let address = node.address();
            // Release: the writes of the lock's last holders (E25).
            node.front.store(Front::granted(mode).0, Ordering::Release);
            // From here on the node may be released.
            if self.parking.has_sleepers() {
                self.parking.wake(address);
            }
        }
    }

    /// Puts `next` behind `pred`, where the caller has the place: it has drawn it from the tail, or
    /// leaves it. Returns whether `next` has been granted the lock.
    pub(super) fn attach(self, next: NodeId, mode: Mode, pred: NodeId) -> bool {
        let before = self.nodes.node(pred);
        let front = Front::waiting(mode, Some(pred));
        // Release: the predecessor as it was when it came into the queue (E24).
        self.nodes.node(next).front.store(front.0, Ordering::Release);
        let both_read = mode == Mode::Read && before.mode() == Mode::Read;
        let mut back = before.back();
        loop {
            if both_read && back.is_granted() {
                // The predecessor holds the lock, and keeps it until it sees NO_SUCCESSOR.
                self.grant(next);
                before.back.fetch_or(Back::NO_SUCCESSOR, Ordering::Release); // E24
                return true;
            }
            // Release: the node `next`, and its place behind this node. Acquire: E24.
            match before.back.compare_exchange(
                back.0,
                back.before(next, mode).0,
                Ordering::Release,
                Ordering::Acquire,
            ) {
                Ok(_) => return false,
                Err(now) => back = Back(now),
            }
        }
    }

    /// Makes the writer at the head of the queue the next writer. If no reader holds the lock,
    /// takes it out again. Returns whether the lock is the caller's to grant to it.
    pub(super) fn make_next_writer(self, writer: NodeId) -> bool {
        // The fence orders this store before the load below. The last reader has a fence in the
        // same place (E26). Release: its words.
        store_then_full_fence(self.next_writer, writer.word());
        // Acquire: the writes of the readers (E25).
        self.readers.load(Ordering::Acquire) == 0 && self.is_no_longer_next(writer)
    }

    /// Takes the next writer out. Returns whether it was `writer`; then the caller has claimed the
    /// link to it.
    pub(super) fn is_no_longer_next(self, writer: NodeId) -> bool {
        // Acquire: the writes of the thread that made it the next writer (E25).
        let exchange = self.next_writer.compare_exchange(
            writer.word(),
            0,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        exchange.is_ok()
    }

    /// Counts a reader out. The last one grants the lock to the next writer.
    pub(super) fn count_out(self) {
        // Release: the writes of this reader (E25).
        if self.readers.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        full_fence(); // E26
        // Acquire: sees the readers that were counted before this node became the next writer
        // (E26).
        let next = self.next_writer.load(Ordering::Acquire);
        let Some(writer) = NodeId::named_by(next) else { return };
        // Acquire: the writes of other readers (E25). Other readers may have been counted in
        // and out after this one was counted out and before the writer came. From then on no reader
        // is counted (QL5).
        if self.readers.load(Ordering::Acquire) == 0 && self.is_no_longer_next(writer) {
            self.grant(writer);
        }
    }
}
