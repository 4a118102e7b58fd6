//! A lock with a few requests, and the data that the lock guards.

#[cfg(not(any(loom, shuttle)))]
mod by_hand;
#[cfg(loom)]
mod loom;
#[cfg(not(any(loom, shuttle)))]
mod model;
#[cfg(not(loom))]
mod stress;
#[cfg(not(any(loom, shuttle)))]
mod supply;

use super::hand_shake::HandShake;
use super::{Mode, NodeId, Nodes, QueueLock, Supply};
use crate::sync::{AtomicU64, Ordering, Parking, Patience};

/// A lock, two words that are equal while no writer holds it, and a request for each number.
struct Guarded {
    words: [AtomicU64; 3],
    nodes: Nodes,
    parking: Parking,
    ids: Vec<NodeId>,
    left: AtomicU64,
    right: AtomicU64,
    /// The writes done. The count is not part of the explored state.
    writes: std::sync::atomic::AtomicU64,
}

impl Guarded {
    /// Makes the lock and `requests` nodes, each of a desk of its own.
    fn new(requests: u16) -> Guarded {
        let word = || AtomicU64::new(0);
        let nodes = Nodes::new();
        let ids = (0..requests).map(|desk| Supply::new(desk).take(&nodes, 0).unwrap()).collect();
        Guarded {
            words: [word(), word(), word()],
            nodes,
            parking: Parking::new(),
            ids,
            left: word(),
            right: word(),
            writes: std::sync::atomic::AtomicU64::new(0),
        }
    }

    fn lock(&self) -> QueueLock<'_> {
        let [tail, readers, next_writer] = &self.words;
        QueueLock::new([tail, readers, next_writer], &self.nodes, &self.parking)
    }

    fn request(&self, request: usize, mode: Mode) -> bool {
        self.lock().request(self.ids[request], mode)
    }

    fn is_granted(&self, request: usize) -> bool {
        self.lock().poll(self.ids[request])
    }

    fn cancel(&self, request: usize) -> bool {
        self.lock().cancel(self.ids[request])
    }

    fn release(&self, request: usize) {
        self.lock().release(self.ids[request]);
    }

    /// Uses the lock, which is held, and releases it.
    fn leave(&self, id: NodeId) {
        let [left, right] = [&self.left, &self.right].map(|word| word.load(Ordering::Relaxed));
        assert_eq!(left, right, "a holder sees every write before, and none in progress");
        if self.nodes.node(id).mode() == Mode::Write {
            self.left.store(left + 1, Ordering::Relaxed);
            self.right.store(right + 1, Ordering::Relaxed);
            self.writes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        self.lock().release(id);
    }

    /// Waits for a request that is queued, uses the lock, and releases it.
    fn wait_and_leave(&self, id: NodeId) {
        if cfg!(loom) {
            let mut hand_shake = HandShake::default();
            while !self.lock().wait(id, Patience::Rounds(1)) {
                hand_shake.wait();
            }
        } else {
            assert!(self.lock().wait(id, Patience::Endless));
        }
        self.leave(id);
    }

    fn acquire_and_leave(&self, id: NodeId, mode: Mode) {
        if self.lock().request(id, mode) {
            assert!(self.lock().poll(id));
            self.leave(id);
        } else {
            self.wait_and_leave(id);
        }
    }

    fn cancel_or_leave(&self, id: NodeId) {
        if !self.lock().cancel(id) {
            self.leave(id);
        }
    }

    fn try_and_leave(&self, id: NodeId, mode: Mode) -> bool {
        let is_acquired = self.lock().try_acquire(id, mode);
        if is_acquired {
            assert!(self.lock().poll(id), "a try that succeeds has acquired the lock");
            self.leave(id);
        }
        is_acquired
    }

    /// Checks that the lock is free, can be acquired with `id`, and has lost no write.
    fn check_at_the_end(&self, id: NodeId) {
        let words = [0, 1, 2].map(|word: usize| self.words[word].load(Ordering::Relaxed));
        assert_eq!(words, [0; 3], "all requests have left");
        assert!(self.lock().is_free());
        assert!(self.lock().request(id, Mode::Write), "the lock is free");
        assert!(!self.lock().is_awaited(id));
        self.leave(id);
        let writes = self.writes.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(self.left.load(Ordering::Relaxed), writes, "a write was lost");
    }
}
