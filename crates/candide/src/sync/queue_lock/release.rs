//! Releases.

#![forbid(unsafe_code)]

use super::hand_shake::HandShake;
use super::lock::QueueLock;
use super::words::{Front, Mode, NodeId, Successor};
use crate::sync::Ordering;

impl QueueLock<'_> {
    /// Releases the lock, which was granted to the node. Then the node is in no queue, and may be
    /// given back.
    pub(crate) fn release(self, id: NodeId) {
        let mode = self.nodes.node(id).mode();
        let successor = self.leave_behind(id, mode);
        match (mode, successor) {
            (Mode::Write, Some(next)) => return self.grant(next),
            (Mode::Write, None) => return,
            (Mode::Read, None) => {}
            (Mode::Read, Some(writer)) => {
                let front = Front::waiting(Mode::Write, None);
                // Relaxed: a canceller that sees this waits for the next store, and a thread that
                // grants has seen it.
                self.nodes.node(writer).front.store(front.0, Ordering::Relaxed);
                // Release: its words, and that this reader was counted (E26).
                self.next_writer.store(writer.word(), Ordering::Release);
            }
        }
        self.count_out();
    }

    /// Takes the node of a holder out of the queue. Returns the successor to which the holder has
    /// to pass the lock on, if any; the link to it is claimed.
    fn leave_behind(self, id: NodeId, mode: Mode) -> Option<NodeId> {
        let node = self.nodes.node(id);
        let mut hand_shake = HandShake::default();
        loop {
            let back = node.back();
            match back.successor() {
                Successor::Nothing => return None,
                // Granted by the thread that has granted the lock to this node.
                Successor::Node(_, Mode::Read) if mode == Mode::Read => return None,
                Successor::Node(next, _) => {
                    if node.claim(back, back.busy()) {
                        return Some(next);
                    }
                    continue;
                }
                Successor::None if self.take_from_tail(id, 0) => return None,
                // A successor has not linked itself yet, or leaves (QL3).
                Successor::None | Successor::Leaving => {}
            }
            hand_shake.wait();
        }
    }
}
