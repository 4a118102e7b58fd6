//! Requests, and waiting for them.

#![forbid(unsafe_code)]

use super::hand_shake::HandShake;
use super::lock::QueueLock;
use super::words::{Front, Mode, NodeId, Successor};
use crate::sync::{Ordering, Patience, Wait, Waited, Wish};

impl QueueLock<'_> {
    /// Asks for the lock with a node that is in no queue. Returns whether the lock is granted at
    /// once. If not, the request is queued: the caller polls, waits, or cancels.
    pub(crate) fn request(self, id: NodeId, mode: Mode) -> bool {
        let node = self.nodes.node(id);
        node.begin(mode);
        // One exchange gives the node its place in the queue (QL1). Release: publishes the node's
        // words. Acquire: sees the words of the node before it, or the writes of the lock's last
        // holder (E23).
        match NodeId::named_by(self.tail.swap(id.word(), Ordering::AcqRel)) {
            Some(pred) => {
                let mut hand_shake = HandShake::default();
                // A node that was there before may still be leaving (QL3).
                while self.nodes.node(pred).back().successor() != Successor::None {
                    hand_shake.wait();
                }
                self.attach(id, mode, pred)
            }
            None if mode == Mode::Read || self.make_next_writer(id) => {
                self.grant(id);
                true
            }
            None => false,
        }
    }

    /// Acquires the lock if it is free for `mode`, without waiting for its holders. If it is not,
    /// the node is in no queue, and may be given back.
    pub(crate) fn try_acquire(self, id: NodeId, mode: Mode) -> bool {
        self.looks_open(mode) && (self.request(id, mode) || !self.cancel(id))
    }

    /// Returns whether a request of this mode would be granted at once. The result may be out of
    /// date when the function returns.
    pub(crate) fn looks_open(self, mode: Mode) -> bool {
        // Acquire: sees that the node was made (E23).
        match (NodeId::named_by(self.tail.load(Ordering::Acquire)), mode) {
            (None, Mode::Read) => true,
            (None, Mode::Write) => self.readers.load(Ordering::Relaxed) == 0,
            (Some(_), Mode::Write) => false,
            (Some(last), Mode::Read) => {
                let last = self.nodes.node(last);
                last.mode() == Mode::Read && last.back().is_granted()
            }
        }
    }

    /// Returns whether a request has been granted the lock.
    pub(crate) fn poll(self, id: NodeId) -> bool {
        // Acquire: sees the writes of the lock's last holders (E25).
        Front(self.nodes.node(id).front.load(Ordering::Acquire)).is_granted()
    }

    /// Waits until a request is granted the lock: a few rounds on its own node, then asleep.
    /// Returns whether it was granted; if not, it is still queued.
    pub(crate) fn wait(self, id: NodeId, patience: Patience) -> bool {
        let address = self.nodes.node(id).address();
        let mut wait = Wait::new(self.parking, address, Wish::Look, patience);
        while !self.poll(id) {
            if wait.wait() == Waited::InVain {
                return self.poll(id);
            }
        }
        true
    }
}
