//! Queue nodes, and each session's supply of them.

#![forbid(unsafe_code)]

use super::words::{Back, Front, Mode, NodeId};
use crate::sync::{AtomicU64, MODELLED, Ordering};
use std::sync::OnceLock;

/// The number of slots of a desk. Slot 0 is not used.
pub(super) const SLOTS: u16 = if MODELLED { 4 } else { 1 << 10 };
/// The number of desks.
pub(super) const DESKS: usize = if MODELLED { 8 } else { 1 << 14 };

/// A request's place in the queue of a lock, alone on its cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Node {
    /// A [`Front`].
    pub(super) front: AtomicU64,
    /// A [`Back`].
    pub(super) back: AtomicU64,
    /// Zero if the node was never taken, [`TAKEN`], or 1 plus the epoch in which it was given back.
    /// Only the session at the desk uses it.
    state: AtomicU64,
}

/// The state of a node that a session has taken.
const TAKEN: u64 = u64::MAX;

impl Node {
    /// Prepares the node for a new request, which no other thread sees yet.
    pub(super) fn begin(&self, mode: Mode) {
        self.front.store(Front::waiting(mode, None).0, Ordering::Relaxed);
        self.back.store(0, Ordering::Relaxed);
    }

    /// Returns the class, which does not change while the node is in a queue.
    pub(super) fn mode(&self) -> Mode {
        Front(self.front.load(Ordering::Relaxed)).mode()
    }

    pub(super) fn back(&self) -> Back {
        // Acquire: sees the earlier writes of the thread that wrote the word (E24).
        Back(self.back.load(Ordering::Acquire))
    }

    /// Claims a link by an exchange of the back word. Returns false if the word is not `back`.
    pub(super) fn claim(&self, back: Back, claimed: Back) -> bool {
        // Relaxed: the order of one word decides between claims.
        self.back.compare_exchange(back.0, claimed.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Returns the number by which the thread that waits for this node is found.
    pub(super) fn address(&self) -> u64 {
        std::ptr::from_ref(self).addr() as u64
    }
}

/// The nodes of one desk.
pub(super) type Group = Box<[Node]>;

/// The queue nodes of a database: a group for each desk, made when a session at that desk first
/// takes a node, and kept.
///
/// # Memory
/// 64 KiB for each desk that has ever taken a node, and 384 KiB for the table of desks, which is
/// made with the first group.
#[derive(Debug, Default)]
pub(crate) struct Nodes(OnceLock<Box<[OnceLock<Group>]>>);

impl Nodes {
    pub(crate) fn new() -> Nodes {
        Nodes::default()
    }

    /// Returns the nodes of a desk, and makes them if there are none.
    fn group(&self, desk: u16) -> &Group {
        let desks = self.0.get_or_init(|| (0..DESKS).map(|_| OnceLock::new()).collect());
        desks[usize::from(desk)].get_or_init(|| (0..SLOTS).map(|_| Node::default()).collect())
    }

    /// Returns a node that was taken.
    pub(super) fn node(&self, id: NodeId) -> &Node {
        let group = self.0.get().and_then(|desks| desks[id.desk()].get());
        &group.expect("made when the node was first taken")[id.slot()]
    }
}

/// The nodes that a session may use: those of its desk.
#[derive(Debug)]
pub(crate) struct Supply {
    desk: u16,
    /// The slot of the node that was taken last.
    last: u16,
    /// The safe epoch at which no node was free; zero if there was none.
    none_at: u64,
}

impl Supply {
    /// Returns the supply of a session that has the desk. The desk's earlier session has given its
    /// nodes back.
    pub(crate) fn new(desk: u16) -> Supply {
        Supply { desk, last: 0, none_at: 0 }
    }

    /// Takes a node that was given back in an epoch before `safe`, or never taken. No session is
    /// pinned any more that was pinned in an epoch before `safe`. Returns `None` if there is no
    /// such node; then the session has to do without.
    ///
    /// Nodes are taken in turn, so the next one is nearly always free if any is.
    pub(crate) fn take(&mut self, nodes: &Nodes, safe: u64) -> Option<NodeId> {
        if safe != 0 && safe == self.none_at {
            // All nodes given back since the last search were given back in this epoch or a later
            // one.
            return None;
        }
        let group = nodes.group(self.desk);
        for _ in 1..SLOTS {
            self.last = if self.last + 1 == SLOTS { 1 } else { self.last + 1 };
            let state = &group[usize::from(self.last)].state;
            let given = state.load(Ordering::Relaxed);
            // `given` is one more than the epoch (QL6).
            if given <= safe {
                state.store(TAKEN, Ordering::Relaxed);
                return Some(NodeId::new(self.desk, self.last));
            }
        }
        self.none_at = safe;
        None
    }

    /// Gives back a node that is in no queue. `now` is an epoch that was read after the node had
    /// left its queue.
    pub(crate) fn give_back(&mut self, nodes: &Nodes, id: NodeId, now: u64) {
        let state = &nodes.node(id).state;
        debug_assert_eq!(state.load(Ordering::Relaxed), TAKEN, "given back once");
        debug_assert_eq!(id.desk(), usize::from(self.desk), "its own node");
        state.store(now + 1, Ordering::Relaxed);
    }
}
