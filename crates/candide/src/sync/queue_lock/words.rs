//! The words of a queue node: one shows it to its predecessor, one to its successor.

#![forbid(unsafe_code)]

use std::num::NonZeroU32;

/// The bits of a slot in a [`NodeId`].
const SLOT_BITS: u32 = 10;
/// The bits of a desk in a [`NodeId`].
const DESK_BITS: u32 = 14;

/// The number of a queue node: of the desk of its session, and of its slot there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeId(NonZeroU32);

impl NodeId {
    /// Returns the node of `desk` with number `slot`, which is not zero.
    pub(super) fn new(desk: u16, slot: u16) -> NodeId {
        debug_assert!(u32::from(desk) < 1 << DESK_BITS && u32::from(slot) < 1 << SLOT_BITS);
        let number = u32::from(desk) << SLOT_BITS | u32::from(slot);
        NodeId(NonZeroU32::new(number).expect("slots begin with 1"))
    }

    /// Returns the node that a word of a lock or of a node names; `None` if it names none.
    pub(super) fn named_by(word: u64) -> Option<NodeId> {
        NonZeroU32::new(word as u32).map(NodeId)
    }

    pub(super) fn word(self) -> u64 {
        u64::from(self.0.get())
    }

    pub(super) fn desk(self) -> usize {
        (self.0.get() >> SLOT_BITS) as usize
    }

    pub(super) fn slot(self) -> usize {
        (self.0.get() & ((1 << SLOT_BITS) - 1)) as usize
    }
}

/// The kind of lock that a request wants, which is the class of the request's node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write,
}

/// The bits of a word that name a node, or are a sentinel.
const LINK: u64 = 0xffff_ffff;
/// The predecessor of a node that has been granted the lock.
const ACQUIRED: u64 = LINK;
/// The successor of a node while that successor leaves the queue.
const SUCCESSOR_LEAVING: u64 = LINK - 1;
/// The successor of a node that has nothing left to do for a successor.
const NO_SUCCESSOR: u64 = LINK;

/// The word of a node that its predecessor changes. The word is written by one thread at a time:
/// the node's own before it has linked itself, then the one that has claimed the link to it (QL2).
///
/// ```text
/// bit 33: class (1: writer) | 32: granted | 31..0: predecessor, ACQUIRED or 0
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Front(pub(super) u64);

const GRANTED_FRONT: u64 = 1 << 32;
const WRITER: u64 = 1 << 33;

impl Front {
    /// Returns the word of a node that waits behind `pred`, or at the head of the queue.
    pub(super) fn waiting(mode: Mode, pred: Option<NodeId>) -> Front {
        Front(Front::class(mode) | pred.map_or(0, NodeId::word))
    }

    pub(super) fn granted(mode: Mode) -> Front {
        Front(Front::class(mode) | GRANTED_FRONT | ACQUIRED)
    }

    fn class(mode: Mode) -> u64 {
        if mode == Mode::Write { WRITER } else { 0 }
    }

    pub(super) fn mode(self) -> Mode {
        if self.0 & WRITER != 0 { Mode::Write } else { Mode::Read }
    }

    pub(super) fn is_granted(self) -> bool {
        self.0 & GRANTED_FRONT != 0
    }

    /// Returns the predecessor of a node that waits; `None` at the head of the queue.
    pub(super) fn pred(self) -> Option<NodeId> {
        debug_assert!(!self.is_granted());
        NodeId::named_by(self.0 & LINK)
    }
}

/// The word of a node that its successor changes, too. Each change is one exchange.
///
/// ```text
/// bit 36: busy | 35: leaving | 34: granted | 33..32: class of the successor (1: reader, 2: writer)
///   | 31..0: successor, SUCCESSOR_LEAVING, NO_SUCCESSOR or 0
/// ```
///
/// The status of the paper is the two bits granted and leaving: Waiting, Granted, Leaving, and
/// LeavingGranted for a node that was granted the lock as it was about to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Back(pub(super) u64);

/// The successor of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Successor {
    /// No node has linked itself. A request may have taken its place behind this node already.
    None,
    /// A node that has claimed the link, to leave the queue.
    Leaving,
    /// A successor that this node can ignore.
    Nothing,
    Node(NodeId, Mode),
}

const CLASS_SHIFT: u32 = 32;
const CLASS: u64 = 3 << CLASS_SHIFT;

impl Back {
    pub(super) const GRANTED: u64 = 1 << 34;
    pub(super) const LEAVING: u64 = 1 << 35;
    pub(super) const BUSY: u64 = 1 << 36;
    /// The bits that, set in any word, show that the node has nothing to do for a successor.
    pub(super) const NO_SUCCESSOR: u64 = NO_SUCCESSOR;
    /// The bits with the node behind this node.
    pub(super) const SUCCESSOR: u64 = CLASS | LINK;

    pub(super) fn successor(self) -> Successor {
        match self.0 & LINK {
            0 => Successor::None,
            SUCCESSOR_LEAVING => Successor::Leaving,
            NO_SUCCESSOR => Successor::Nothing,
            word => {
                let is_reader = self.0 & CLASS == 1 << CLASS_SHIFT;
                let mode = if is_reader { Mode::Read } else { Mode::Write };
                Successor::Node(NodeId::named_by(word).expect("not zero"), mode)
            }
        }
    }

    /// Returns the word with `node` as the successor.
    pub(super) fn before(self, node: NodeId, mode: Mode) -> Back {
        let class = if mode == Mode::Read { 1 } else { 2 };
        Back(self.0 & !Back::SUCCESSOR | class << CLASS_SHIFT | node.word())
    }

    /// Returns the word while the successor leaves. Its class stays.
    pub(super) fn while_it_leaves(self) -> Back {
        Back(self.0 & !LINK | SUCCESSOR_LEAVING)
    }

    /// Returns the word of a node that is about to pass the lock on to its successor.
    pub(super) fn busy(self) -> Back {
        Back(self.0 | Back::BUSY)
    }

    pub(super) fn is_granted(self) -> bool {
        self.0 & Back::GRANTED != 0
    }

    /// Returns whether the node is leaving, and has not been granted the lock.
    pub(super) fn is_leaving(self) -> bool {
        self.0 & (Back::GRANTED | Back::LEAVING) == Back::LEAVING
    }

    pub(super) fn is_busy(self) -> bool {
        self.0 & Back::BUSY != 0
    }
}
