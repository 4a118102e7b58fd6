//! Cancelling requests.

#![forbid(unsafe_code)]

use super::hand_shake::HandShake;
use super::lock::QueueLock;
use super::words::{Back, Front, Mode, NodeId, Successor};
use crate::sync::Ordering;

impl QueueLock<'_> {
    /// Cancels a request. Returns true if the node is in no queue any more, and may be given back;
    /// false if the lock was granted to it meanwhile, and is held.
    pub(crate) fn cancel(self, id: NodeId) -> bool {
        self.hold_successor(id);
        let Ok(pred) = self.detach(id) else { return false };
        let Some((next, mode)) = self.successor_to_tell(id, pred) else { return true };
        match (pred, mode) {
            (Some(pred), _) => {
                self.attach(next, mode, pred);
            }
            (None, Mode::Read) => self.grant(next),
            (None, Mode::Write) => {
                let front = Front::waiting(Mode::Write, None);
                // Relaxed: a canceller that sees this waits for the next store, and a thread that
                // grants has seen it.
                self.nodes.node(next).front.store(front.0, Ordering::Relaxed);
                if self.make_next_writer(next) {
                    self.grant(next);
                }
            }
        }
        true
    }

    /// Keeps the successor from leaving: forbids it, and waits if the successor is leaving already.
    fn hold_successor(self, id: NodeId) {
        let node = self.nodes.node(id);
        // Relaxed: it keeps the successor from leaving, by the order of one word.
        node.back.fetch_or(Back::LEAVING, Ordering::Relaxed);
        let mut hand_shake = HandShake::default();
        while node.back().successor() == Successor::Leaving {
            hand_shake.wait();
        }
    }

    /// Claims the link to the node itself, so that it will not be granted the lock. Returns the
    /// predecessor, which waits from then on until its next successor is known; `None` at the head
    /// of the queue. Returns an error if the lock was granted to the node first.
    fn detach(self, id: NodeId) -> Result<Option<NodeId>, Granted> {
        let node = self.nodes.node(id);
        let mut hand_shake = HandShake::default();
        loop {
            // Acquire: sees the writes of the lock's last holders (E25), or of the predecessor
            // (E24).
            let front = Front(node.front.load(Ordering::Acquire));
            if front.is_granted() {
                return Err(Granted);
            }
            match front.pred() {
                None if self.is_no_longer_next(id) => return Ok(None),
                // The node is about to become the next writer, or to be granted the lock.
                None => {}
                Some(pred) if self.mark_leaving(id, front.mode(), pred) => return Ok(Some(pred)),
                // The predecessor leaves or passes the lock on, or is another one already (QL3).
                Some(_) => {}
            }
            hand_shake.wait();
        }
    }

    /// Marks that the node leaves, in the word of its predecessor. Returns false if the node cannot
    /// leave.
    fn mark_leaving(self, id: NodeId, mode: Mode, pred: NodeId) -> bool {
        let before = self.nodes.node(pred);
        let back = Back(before.back.load(Ordering::Relaxed));
        let is_granting = back.is_granted() && mode == Mode::Read && before.mode() == Mode::Read;
        if back.successor() != Successor::Node(id, mode)
            || back.is_busy()
            || back.is_leaving()
            || is_granting
        {
            return false;
        }
        before.claim(back, back.while_it_leaves())
    }

    /// Returns the successor of a node that is out of its predecessor's reach. If there is none,
    /// makes the predecessor the tail.
    fn successor_to_tell(self, id: NodeId, pred: Option<NodeId>) -> Option<(NodeId, Mode)> {
        let node = self.nodes.node(id);
        let mut hand_shake = HandShake::default();
        loop {
            match node.back().successor() {
                Successor::Node(next, mode) => return Some((next, mode)),
                Successor::None if self.take_from_tail(id, pred.map_or(0, NodeId::word)) => {
                    if let Some(pred) = pred {
                        let before = self.nodes.node(pred);
                        // Relaxed: the word carries no data.
                        before.back.fetch_and(!Back::SUCCESSOR, Ordering::Relaxed);
                    }
                    return None;
                }
                Successor::None => {}
                Successor::Leaving | Successor::Nothing => {
                    unreachable!("the successor of a node that leaves stays")
                }
            }
            hand_shake.wait();
        }
    }
}

/// The lock was granted to a request that was to be cancelled.
struct Granted;
