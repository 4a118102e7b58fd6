//! Nodes: 32 words, a leaf or an inner node.
//!
//! ```text
//!         0         1, 2             3             4..18    18..32
//! leaf  | version | protocol words | permutation | slices | values   |
//!
//!         0         1, 2             3..17         17..32
//! inner | version | unused         | keys        | children |
//! ```
//!
//! The protocol's words stay unused in an inner node, since a layer's root changes from a leaf to
//! an inner node and back. Readers of the former leaf may continue raising timestamps in these
//! words.
//!
//! Child `i` of an inner node holds the slices above key `i - 1`, up to and including key `i`.
//! Unused keys have the largest word as their value. No separator is that large, since no slice is
//! above it. So a search needs no count.

use super::permutation::{Permutation, WIDTH};
use crate::index::node::NodeAt;
use crate::index::node::{LOCK, MOVED};
use crate::memory::Block;
use crate::record::RecordAt;
use crate::sync::{AtomicU64, MODELLED, Ordering, Spin, prefetch};

/// Words of a node: four cache lines.
pub(super) const NODE_WORDS: usize = 32;
/// The largest number of keys of an inner node. There is one child more, so both halves of a full
/// node have at least two children.
pub(super) const KEYS: usize = if MODELLED { 3 } else { 14 };
/// The distance between the keys that a search compares first. These keys leave runs of equal
/// length before, between and behind them.
const STRIDE: usize = 5;

const PERMUTATION: usize = 3;
const SLICES: usize = 4;
const VALUES: usize = 18;
const INNER_KEYS: usize = 3;
const CHILDREN: usize = 17;
const _: () = assert!(SLICES + WIDTH <= VALUES && VALUES + WIDTH <= NODE_WORDS);
const _: () = assert!(INNER_KEYS + KEYS <= CHILDREN && CHILDREN + KEYS < NODE_WORDS);
const _: () = assert!(KEYS < STRIDE || KEYS % STRIDE == STRIDE - 1);

/// The bit of a version that is set once the node has left the tree for ever.
pub(super) const DEAD: u64 = MOVED;
pub(super) const INNER: u64 = 4;
pub(super) const VERSION_ONE: u64 = 8;

/// The bit of a leaf's value that is set if the value is the root of the next layer, not a record.
const LAYER: u64 = 1 << 63;

/// The target of a leaf's slot.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value {
    Nothing,
    Record(RecordAt),
    Layer(Node),
}

impl Value {
    /// Returns the meaning of a value word of a leaf. The caller has validated the leaf's version
    /// after loading the word, or has locked the leaf.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn of(word: u64) -> Value {
        match Block::at(word & !LAYER) {
            None => Value::Nothing,
            Some(block) if word & LAYER != 0 => Value::Layer(Node(block)),
            // SAFETY: untagged values of a leaf are records of the table the index belongs to, laid
            // out by its layout (LY1), and the caller of the index is pinned (LY2).
            Some(block) => Value::Record(unsafe { RecordAt::new(block) }),
        }
    }

    /// Returns the record that a value word refers to; `None` if it refers to none. The word was
    /// loaded as for [`Value::of`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn record(word: u64) -> Option<RecordAt> {
        let block = if word & LAYER == 0 { Block::at(word) } else { None };
        // SAFETY: as in `of`.
        block.map(|block| unsafe { RecordAt::new(block) })
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn word(self) -> u64 {
        match self {
            Value::Nothing => 0,
            Value::Record(record) => record.block().address(),
            Value::Layer(root) => root.0.address() | LAYER,
        }
    }
}

/// A node that stays allocated while its holder is pinned (OI7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node(Block);

impl Node {
    /// Returns a leaf with `slots`, which ascend, in a block of the index's slab that the caller
    /// owns. The protocol's words are not written.
    #[inline]
    pub(super) fn new_leaf(block: Block, slots: impl Iterator<Item = (u64, Value)>) -> Node {
        let node = Node(block);
        node.word(0).store(0, Ordering::Relaxed);
        let mut count = 0;
        for (slice, value) in slots {
            node.set(SLICES + count, slice);
            node.set_value(count, value);
            count += 1;
        }
        (count..WIDTH).for_each(|slot| node.set_value(slot, Value::Nothing));
        node.set_permutation(Permutation::first(count));
        node
    }

    /// Returns an inner node without children in a block of the index's slab that the caller owns.
    pub(super) fn new_inner(block: Block) -> Node {
        let node = Node(block);
        node.word(0).store(INNER, Ordering::Relaxed);
        node.clear_inner();
        node
    }

    /// Returns the node at `address`. The address is that of a root, or of a child in a node whose
    /// version has been validated since the address was loaded.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn at(address: u64) -> Node {
        Node(Block::at(address).expect("a node is never at zero"))
    }

    pub(super) fn block(self) -> Block {
        self.0
    }

    pub(super) fn address(self) -> u64 {
        self.0.address()
    }

    /// Returns the leaf's handle for protocols.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn handle(self) -> NodeAt {
        NodeAt::new(self.0)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < NODE_WORDS);
        // SAFETY: a handle is made for a whole node, which outlives the holder's pin (OI7).
        unsafe { self.0.word(index) }
    }

    /// Returns a word of a node's contents. The load is Acquire: a reader that loads a word that is
    /// being changed finds the lock when it validates (E17), and a reader that loads an address
    /// sees the contents at that address (E4).
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn get(&self, index: usize) -> u64 {
        self.word(index).load(Ordering::Acquire)
    }

    /// Sets a word of a node that the caller has locked or that no thread can reach yet.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn set(&self, index: usize, value: u64) {
        self.word(index).store(value, Ordering::Release); // E17, E4
    }

    /// Prefetches the target of a value word: the first line of a record, or those lines of a
    /// layer's root that a leaf with few slots needs. The word may be any word.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn prefetch_value(word: u64) {
        let first = Block::hint_at(word & !LAYER);
        prefetch(first);
        if word & LAYER != 0 {
            prefetch(first.wrapping_add(VALUES));
        }
    }

    /// Prefetches the first line of the target of each of the first `slots` slots of a leaf. The
    /// values are only prefetched from, so they may be any words.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn prefetch_values(self, slots: usize) {
        for slot in 0..slots.min(WIDTH) {
            // For address zero, the processor would search the page tables each time.
            let word = self.value(slot);
            prefetch(Block::hint_at(std::hint::select_unpredictable(
                word == 0,
                self.address(),
                word & !LAYER,
            )));
        }
    }

    /// Prefetches all lines of a node. `address` may also be any other word.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn prefetch(address: u64) {
        if let Some(block) = Block::at(address) {
            (0..NODE_WORDS / 8).for_each(|line| prefetch(block.hint(line * 8)));
        }
    }

    /// Makes loom consider a switch of threads here. Without this, loom would not: it forgets that
    /// one thread has loaded a word once another thread loads the word too. So loom does not see
    /// that the next store of the second thread might have come before the load of the first.
    #[cfg(loom)]
    fn crossing(self) {
        // The last word is unused under a model, and a Relaxed exchange orders nothing else.
        self.word(NODE_WORDS - 1).fetch_add(1, Ordering::Relaxed);
    }

    #[cfg(not(loom))]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn crossing(self) {}

    /// Returns the node's current version. The node may be locked or dead.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn version(self) -> u64 {
        let version = self.word(0).load(Ordering::Acquire); // E16
        self.crossing();
        version
    }

    /// Waits until the node is not locked, and returns its version. The node may be dead.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn stable(self) -> u64 {
        let version = self.version();
        if version & LOCK == 0 { version } else { self.wait_until_stable() }
    }

    #[cold]
    fn wait_until_stable(self) -> u64 {
        let mut spin = Spin::default();
        loop {
            spin.wait();
            let version = self.word(0).load(Ordering::Acquire); // E16
            if version & LOCK == 0 {
                return version;
            }
        }
    }

    /// Validates: returns whether everything loaded from the node since `version` was loaded
    /// belongs to this version. Relaxed, since those loads were Acquire (E17).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_still(self, version: u64) -> bool {
        self.crossing();
        self.word(0).load(Ordering::Relaxed) == version
    }

    /// Locks the node if its version is still `version`, which is the version of a live node.
    /// Returns whether the node is now locked.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn lock_at(self, version: u64) -> bool {
        debug_assert!(version & (LOCK | DEAD) == 0, "OI4: a dead node stays dead");
        // Acquire: this thread sees the changes of the last holder before it changes the node
        // (E16).
        let locked = self
            .word(0)
            .compare_exchange(version, version | LOCK, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        self.crossing();
        locked
    }

    /// Locks a node and returns its version. The node cannot die meanwhile, since the caller has
    /// locked its parent.
    pub(super) fn lock(self) -> u64 {
        let mut spin = Spin::default();
        loop {
            let version = self.stable();
            debug_assert!(version & DEAD == 0, "OI6: its parent is locked");
            if self.lock_at(version) {
                return version;
            }
            spin.wait();
        }
    }

    /// Returns whether the node may be changed: the node is locked, or it has its first version, as
    /// a node that no thread can reach yet (OI1). Only for assertions.
    fn is_owned(self) -> bool {
        let version = self.word(0).load(Ordering::Relaxed);
        version & LOCK != 0 || version & !INNER == 0
    }

    /// Unlocks the node and sets its version to `version`. A thread that sees this version sees
    /// what was done under the lock.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn unlock(self, version: u64) {
        debug_assert!(version & LOCK == 0, "OI1: the owner leaves a version");
        self.crossing();
        self.word(0).store(version, Ordering::Release); // E16
    }
}

/// Methods of leaves.
impl Node {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn permutation(self) -> Permutation {
        Permutation(self.get(PERMUTATION))
    }

    pub(super) fn set_permutation(self, permutation: Permutation) {
        self.set(PERMUTATION, permutation.0);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn slice(self, slot: usize) -> u64 {
        debug_assert!(slot < WIDTH);
        self.get(SLICES + slot)
    }

    /// Returns the value word of a slot: see [`Value::of`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn value(self, slot: usize) -> u64 {
        debug_assert!(slot < WIDTH);
        self.get(VALUES + slot)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn set_value(self, slot: usize, value: Value) {
        debug_assert!(slot < WIDTH);
        self.set(VALUES + slot, value.word());
    }

    /// Returns the value word that belongs to `slice`, or zero. A free slot may still have the
    /// slice of an earlier use, but has no value.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn value_of(self, slice: u64) -> u64 {
        match self.slot_of(slice) {
            WIDTH => 0,
            slot => match self.value(slot) {
                0 => self.value_among(slice),
                value => value,
            },
        }
    }

    /// Does the same as [`Node::value_of`]; returns `None` if a free slot has the slice and others
    /// must be searched.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn value_at_once(self, slice: u64) -> Option<u64> {
        match self.slot_of(slice) {
            WIDTH => Some(0),
            slot => Some(self.value(slot)).filter(|&value| value != 0),
        }
    }

    /// Returns a slot that has the slice now or had it before it was freed; [`WIDTH`] if there is
    /// none.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn slot_of(self, slice: u64) -> usize {
        let pick =
            |found, slot| std::hint::select_unpredictable(self.slice(slot) == slice, slot, found);
        (0..WIDTH).fold(WIDTH, pick)
    }

    /// Does the same as [`Node::value_of`], for a leaf in which a free slot has the slice.
    #[cold]
    fn value_among(self, slice: u64) -> u64 {
        let mut equal =
            (0..WIDTH).fold(0, |equal, slot| equal | u32::from(self.slice(slot) == slice) << slot);
        while equal != 0 {
            let value = self.value(equal.trailing_zeros() as usize);
            if value != 0 {
                return value;
            }
            equal &= equal - 1;
        }
        0
    }

    /// Returns the slot that has this value, in a leaf that the caller has locked; `None` if there
    /// is none. The slot is live, since free slots have no value.
    pub(super) fn slot_of_value(self, value: Value) -> Option<usize> {
        (0..WIDTH).find(|&slot| self.value(slot) == value.word())
    }

    /// Returns the rank of the live slot that has this value, in a leaf that the caller has locked;
    /// `None` if there is none.
    pub(super) fn rank_of_value(self, value: Value) -> Option<usize> {
        self.permutation().live().position(|slot| self.value(slot) == value.word())
    }

    /// Returns whether all live slices of a leaf that the caller has locked are smaller than
    /// `slice`. Usually true if keys are inserted in ascending order.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_beyond(self, permutation: Permutation, slice: u64) -> bool {
        let count = permutation.count();
        count == 0 || self.slice(permutation.slot(count - 1)) < slice
    }

    /// Returns the value word of the largest live slice if that slice equals `slice`. The caller
    /// has locked the leaf, which is not empty.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn value_of_last(self, permutation: Permutation, slice: u64) -> Option<u64> {
        let slot = permutation.slot(permutation.count() - 1);
        (self.slice(slot) == slice).then(|| self.value(slot))
    }

    /// Returns the number of live slices smaller than `slice`, in a leaf that the caller has locked
    /// or that no thread can reach yet.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn rank_of_slice(self, permutation: Permutation, slice: u64) -> usize {
        if self.is_beyond(permutation, slice) {
            return permutation.count();
        }
        permutation.live().filter(|&slot| self.slice(slot) < slice).count()
    }

    /// Adds a slot to a leaf that has a free slot. The caller has locked the leaf, or no thread can
    /// reach it yet.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn insert(self, slice: u64, value: Value) {
        let permutation = self.permutation();
        let rank = self.rank_of_slice(permutation, slice);
        self.fill_free_slot(permutation, slice, value);
        self.set_permutation(permutation.insert(rank));
    }

    /// Does the same as [`Node::insert`], for a slice that [is beyond](Node::is_beyond) all others.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn append(self, permutation: Permutation, slice: u64, value: Value) {
        self.fill_free_slot(permutation, slice, value);
        self.set_permutation(permutation.append());
    }

    /// Writes `slice` and `value` to the first free slot.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn fill_free_slot(self, permutation: Permutation, slice: u64, value: Value) {
        let slot = permutation.slot(permutation.count());
        debug_assert!(self.is_owned(), "OI1: a leaf is locked when a record is linked");
        debug_assert_eq!(self.value(slot), 0, "OI2: a free slot has no value");
        self.set(SLICES + slot, slice);
        self.set_value(slot, value);
    }

    /// Frees the slot at `rank` of a leaf that the caller has locked. Returns whether the leaf has
    /// become empty.
    pub(super) fn remove(self, rank: usize) -> bool {
        debug_assert!(self.is_owned(), "OI1: a leaf is locked when a record is unlinked");
        let permutation = self.permutation();
        self.set_permutation(permutation.remove(rank));
        self.set_value(permutation.slot(rank), Value::Nothing);
        permutation.count() == 1
    }

    /// Sets the protocol's words of a leaf that no thread can reach yet to their first value.
    pub(super) fn clear_words(self, node_words: usize) {
        (0..node_words).for_each(|word| self.handle().node_word(word).store(0, Ordering::Relaxed));
    }

    /// Sets the protocol's words of `self` to those of `from`, a locked leaf. The caller has locked
    /// `self`, or no thread can reach it yet.
    pub(super) fn copy_words(self, from: Node, node_words: usize) {
        debug_assert!(from.is_owned(), "OI8: the words of a locked leaf");
        for word in 0..node_words {
            let inherited = from.handle().node_word(word).load(Ordering::Relaxed);
            self.handle().node_word(word).store(inherited, Ordering::Relaxed);
        }
    }

    /// Raises the protocol's words of a locked leaf to those of another locked leaf, if these are
    /// larger.
    pub(super) fn raise_words(self, from: Node, node_words: usize) {
        debug_assert!(self.is_owned() && from.is_owned(), "OI8: both leaves are locked");
        for word in 0..node_words {
            let inherited = from.handle().node_word(word).load(Ordering::Relaxed);
            // Release as in `merge_into_node`: a thread that sees the raised word sees the leaf
            // locked, or in a later version (E13).
            self.handle().node_word(word).fetch_max(inherited, Ordering::Release);
        }
    }
}

/// Methods of inner nodes.
impl Node {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn key(self, index: usize) -> u64 {
        debug_assert!(index < KEYS);
        self.get(INNER_KEYS + index)
    }

    /// Returns the address of a child, or zero if there is no such child.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn child(self, index: usize) -> u64 {
        debug_assert!(index <= KEYS);
        self.get(CHILDREN + index)
    }

    fn set_key(self, index: usize, key: u64) {
        self.set(INNER_KEYS + index, key);
    }

    pub(super) fn set_child(self, index: usize, child: u64) {
        self.set(CHILDREN + index, child);
    }

    /// Returns the rank of the child that `slice` belongs to. The search first finds the run
    /// between two of every fifth key, then the place in the run. The two steps do not branch on
    /// keys, and no comparison within a step waits for another.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn rank(self, slice: u64) -> usize {
        let is_below = |index| usize::from(self.key(index) < slice);
        let run = (1..=KEYS / STRIDE).map(|run| is_below(run * STRIDE - 1)).sum::<usize>() * STRIDE;
        run + (0..KEYS % STRIDE).map(|index| is_below(run + index)).sum::<usize>()
    }

    /// Returns the fences of child `rank` of a node whose own fences are `low` and `high`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn fences(self, rank: usize, low: u64, high: u64) -> (u64, u64) {
        // A separator is below the largest word, so adding one does not overflow. But a key that
        // has not been validated may be any word.
        let low = if rank > 0 { self.key(rank - 1).wrapping_add(1) } else { low };
        let high = if rank < KEYS { self.key(rank).min(high) } else { high };
        (low, high)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_full(self) -> bool {
        self.child(KEYS) != 0
    }

    /// Returns the number of children of a node the caller has locked.
    pub(super) fn children(self) -> usize {
        (0..=KEYS).take_while(|&index| self.child(index) != 0).count()
    }

    pub(super) fn clear_inner(self) {
        (0..KEYS).for_each(|index| self.set_key(index, u64::MAX));
        (0..=KEYS).for_each(|index| self.set_child(index, 0));
    }

    /// Makes `left` and `right` the node's only children.
    pub(super) fn become_inner(self, left: Node, separator: u64, right: Node) {
        debug_assert!(self.is_owned(), "OI1: a root is locked when its kind changes");
        self.clear_inner();
        self.set_key(0, separator);
        self.set_child(0, left.address());
        self.set_child(1, right.address());
    }

    /// Appends the children `first..=last` of another node, and the keys between them, to a node
    /// without children.
    pub(super) fn copy_children(self, from: Node, first: usize, last: usize) {
        (first..last).for_each(|index| self.set_key(index - first, from.key(index)));
        (first..=last).for_each(|index| self.set_child(index - first, from.child(index)));
    }

    /// Removes all children but the first `count`, and all keys but those between these.
    pub(super) fn truncate_children(self, count: usize) {
        (count - 1..KEYS).for_each(|index| self.set_key(index, u64::MAX));
        (count..=KEYS).for_each(|index| self.set_child(index, 0));
    }

    /// Adds a child after child `index`, with the separator between the two, to a node that is not
    /// full.
    pub(super) fn insert_child(self, index: usize, separator: u64, child: Node) {
        debug_assert!(!self.is_full() && self.is_owned(), "OI1: a locked node with room");
        for key in (index + 1..KEYS).rev() {
            self.set_key(key, self.key(key - 1));
            self.set_child(key + 1, self.child(key));
        }
        self.set_key(index, separator);
        self.set_child(index + 1, child.address());
    }

    /// Removes child `index`. The child's slices fall to the child before it; the slices of the
    /// first child fall to the child after it.
    pub(super) fn remove_child(self, index: usize) {
        debug_assert!(self.is_owned(), "OI1: a node is locked when a child is taken out");
        let children = self.children();
        (index.saturating_sub(1)..children - 2)
            .for_each(|key| self.set_key(key, self.key(key + 1)));
        (index..children - 1).for_each(|child| self.set_child(child, self.child(child + 1)));
        self.truncate_children(children - 1);
    }

    /// Gives the root of a layer the contents of its last child. The caller has locked both.
    /// Returns the version bit for the present kind of the root.
    pub(super) fn take_over(self, child: Node, child_version: u64, node_words: usize) -> u64 {
        (PERMUTATION..NODE_WORDS).for_each(|word| self.set(word, child.get(word)));
        self.copy_words(child, node_words);
        child_version & INNER
    }
}
