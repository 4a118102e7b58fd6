//! The ordered index: finds records, scans ranges of keys both ways, protects absent keys and
//! ranges.
//!
//! # Shape
//! A key is a fixed number of words, ordered by the first, then the second, and so on. The index is
//! a trie of layers, one per word. Each layer is a B+tree over that word, the *slice*. The value of
//! a leaf's slot is either a record, the only one with this prefix, or, if several keys share the
//! prefix, the root of the next layer. Nodes have 256 bytes, and no links to siblings or parents.
//! Nodes are read without locks, from the layer's root down: a reader loads the version, then the
//! contents, then the version again. A lookup of a one-word key touches one node per level and does
//! not touch the record. Prefixes of whole words have layers of their own, so ranges under
//! different prefixes share no leaf.
//!
//! # Invariants
//! * **OI1** A node changes only under its lock. A link, a split, the beginning of a layer, and the
//!   node's death raise its version; so does every change of an inner node. The unlinking of a
//!   record raises it only where nodes keep timestamps.
//! * **OI2** Nothing moves within a leaf, and a slot outside the permutation has the value zero. So
//!   a lookup needs no permutation. To a concurrent reader, an unlinking is the loss of one record
//!   that is dead already.
//! * **OI3** A slice belongs to the leaf that a descent for the slice reaches from the layer's
//!   root. A descent also finds the *fences* of the leaf's version: all slices between the fences
//!   belong to the leaf while it keeps that version. More slices may belong to the leaf, since it
//!   inherits those of removed neighbours, and its version need not be raised for this.
//! * **OI4** A layer's root never moves; it changes between leaf and inner node in place. Once the
//!   root is dead, the layer has ended, and all its nodes are dead.
//! * **OI5** Words loaded from a node are followed only after the node's version has been
//!   validated. A child's version counts only if the parent's version is validated after the
//!   child's was loaded.
//! * **OI6** Locks are taken from above to below, from layer to layer and from parent to child. An
//!   inheriting leaf is locked after the dying child beside it, while their parent is locked. Locks
//!   are held for a few hundred instructions, during which nothing is allocated or freed.
//! * **OI7** Nodes come from the index's own slab. Dead nodes are retired, not freed, and callers
//!   are pinned. The first layer's root returns to the slab when the index is dropped: no
//!   transaction has observed it then that has not ended.
//! * **OI8** Before a new leaf can be found, it has the protocol's words of the leaf whose slices
//!   it takes. A dying leaf leaves its words to the leaf that inherits its slices. The words are
//!   timestamps, so the larger one counts.
//!
//! # How it changes
//! *Insert.* The leaf is locked at the version at which the key was seen to be absent. If the key
//! belongs to the leaf of the previous insert, that leaf is locked at the version that the previous
//! insert left (`Place`), and then searched for the key. A free slot is written, then the
//! permutation. *Split* (`split.rs`). A full leaf moves its upper half to a new leaf. The new leaf
//! is complete before the parent, which is locked as well, links it. Full inner nodes on the path
//! are split first, from the top, each under a parent that has room; so no split propagates
//! upwards. If the layer's root is split, both halves go to new nodes. At the right end of a layer
//! nothing is moved, which keeps the nodes of ascending keys full. *Layers.* When a second key with
//! the same slice arrives, the record's slot becomes the root of a chain of layers, up to the word
//! in which the two keys differ. *Removal* (`remove.rs`). A leaf that becomes empty is taken out of
//! its parent. A parent left with one child is replaced by that child. A root left with one child
//! takes over the child's contents. A layer that becomes empty loses its slot.
//!
//! # Why lookups are right
//! By OI5 a descent passes from parent to child at a moment when the child was the parent's child
//! for this slice. From then on, the leaf loses the slice only by a split or by its death. Both
//! change the leaf's version. So if the version is the same after the contents have been read, the
//! contents were those for this slice at that moment. The leaf at that version proves that a
//! missing key is absent: a writer that links the key later raises the version of the leaf that the
//! key then belongs to. That leaf is this one, or a new one made by changing this one, or a
//! neighbour of this one, which then is dead. In the last case the inheritance need not raise the
//! neighbour's version: transactions that observed the dead leaf fail by its death. Transactions
//! that observed the neighbour have not read the slices that it inherits.
//!
//! # Why scans are right
//! A cursor (`cursor.rs`) reads leaf after leaf, each at one version, and observes each leaf before
//! it returns any of its records. The next leaf is the one to which the slice beyond the last
//! leaf's fence belongs. So each slice of the range belonged to an observed leaf, at its observed
//! version, when it was read.
//!
//! # Own changes
//! A transaction that restructures nodes it has observed replaces its observations: see
//! [`NodeChange`].

mod cursor;
mod find;
#[cfg(all(test, loom))]
mod loom;
mod many;
mod node;
mod permutation;
mod remove;
mod split;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub(crate) use cursor::Cursor;
pub use cursor::Direction;

use super::node::{Advance, Found, Linked, NodeAt, NodeChange};
use crate::memory::{Cache, OutOfMemory, Slab};
use crate::record::RecordAt;
use crate::schema::WordRange;
use crate::sync::Spin;
use node::{DEAD, INNER, NODE_WORDS, Node, VERSION_ONE, Value};
use permutation::WIDTH;
use std::num::NonZeroU64;
use std::sync::Arc;

/// The index of one table.
#[derive(Debug)]
pub(crate) struct OrderedIndex {
    /// The address of the first layer's root, which never moves and never dies.
    root: NonZeroU64,
    key_words: usize,
    /// The number of words that the protocol keeps in each leaf.
    node_words: usize,
    nodes: Arc<Slab>,
}

/// The place of the last link, so that a link of a near key needs no descent; or the place where a
/// lookup found a key absent, so that the key can be linked there. Valid during one pin.
#[derive(Debug, Default)]
pub(crate) struct Place(Option<Near>);

#[derive(Debug, Clone, Copy)]
struct Near {
    spot: Spot,
    depth: usize,
    /// The record linked last in the leaf: its key begins with the layer's prefix. `None` after a
    /// lookup; then the prefix belongs to the absent key, which is the next key to be linked.
    record: Option<RecordAt>,
}

/// The state that the parts of [`OrderedIndex::link`] share.
struct Linking<'a, B> {
    record: RecordAt,
    key: &'a [u64],
    caches: &'a mut Vec<Option<Cache>>,
    changes: &'a mut Vec<NodeChange>,
    inherit_from_node: B,
}

impl Near {
    /// Returns whether the key belongs to the leaf, as long as the leaf has the version in `spot`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_home_of(&self, key: &[u64]) -> bool {
        let Near { spot, depth, record } = self;
        (spot.low..=spot.high).contains(&key[*depth])
            && record.is_none_or(|record| record.begins_like(key, *depth))
    }
}

/// The place where [`OrderedIndex::link`] begins, if a key could not be linked near the last one: a
/// leaf, or, if `None`, the root of the first layer.
#[derive(Debug)]
pub(crate) struct Start(Option<Taken>);

impl Start {
    /// The root of the first layer.
    pub(crate) const ROOT: Start = Start(None);
}

/// A leaf in layer `depth`, to which the key belongs. The slot of the key's slice has the value
/// `by`.
#[derive(Debug)]
struct Taken {
    spot: Spot,
    depth: usize,
    by: Value,
}

impl Place {
    /// Links a record in the leaf of this place. The link succeeds if the key belongs to the leaf,
    /// the leaf has not changed since, and a free slot is enough. Otherwise returns where
    /// [`OrderedIndex::link`] has to begin. The record's key and cells are written.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn link_near(
        &mut self,
        record: RecordAt,
        key: &[u64],
        inherit_from_node: &mut impl FnMut(NodeAt),
    ) -> Result<Linked, Start> {
        let Some(near) = self.0.as_mut() else { return Err(Start::ROOT) };
        let Spot { leaf, version: before, .. } = near.spot;
        // Under the lock the version is certain, so the leaf needs no second validation.
        if !(near.is_home_of(key) && leaf.lock_at(before)) {
            return Err(Start::ROOT);
        }
        let slice = key[near.depth];
        let permutation = leaf.permutation();
        if permutation.count() == WIDTH {
            leaf.unlock(before);
            return Err(Start::ROOT);
        }
        if leaf.is_beyond(permutation, slice) {
            leaf.append(permutation, slice, Value::Record(record));
        } else {
            match leaf.value_of_last(permutation, slice).unwrap_or_else(|| leaf.value_of(slice)) {
                0 => leaf.insert(slice, Value::Record(record)),
                taken => {
                    leaf.unlock(before);
                    return Err(Start(Some(Taken {
                        spot: near.spot,
                        depth: near.depth,
                        by: Value::of(taken),
                    })));
                }
            }
        }
        let after = unlock_linked(leaf, before, inherit_from_node);
        (near.spot.version, near.record) = (after, Some(record));
        Ok(Linked::New { node: leaf.handle(), before, after })
    }
}

/// A leaf found by a descent, and the fences of this version (OI3).
#[derive(Debug, Clone, Copy)]
struct Spot {
    leaf: Node,
    version: u64,
    low: u64,
    high: u64,
}

/// A receiver of the inner nodes that a descent passes.
trait Trail {
    /// Notes that the descent begins, perhaps again.
    fn begin(&mut self);

    /// Notes that the descent has chosen child `rank` of `node`; `low` and `high` are the node's
    /// fences.
    fn pass(&mut self, node: Node, rank: usize, version: u64, low: u64, high: u64);
}

impl Trail for () {
    fn begin(&mut self) {}

    fn pass(&mut self, _node: Node, _rank: usize, _version: u64, _low: u64, _high: u64) {}
}

/// Descends a layer to the leaf of `slice`. Returns `None` if the layer has ended. The fences in
/// the result are narrowed only if `FENCES` is true.
#[cfg_attr(not(debug_assertions), inline(always))]
fn descend<const FENCES: bool>(root: Node, slice: u64, trail: &mut impl Trail) -> Option<Spot> {
    let mut spin = Spin::default();
    'again: loop {
        trail.begin();
        let (mut node, mut version) = (root, root.stable());
        if version & DEAD != 0 {
            return None;
        }
        let (mut low, mut high) = (0, u64::MAX);
        while version & INNER != 0 {
            let rank = node.rank(slice);
            let child = node.child(rank);
            Node::prefetch(child);
            trail.pass(node, rank, version, low, high);
            if FENCES {
                (low, high) = node.fences(rank, low, high);
            }
            // OI5: the version is validated before the address is used, and again after the child's
            // version is known.
            if !node.is_still(version) {
                spin.wait();
                continue 'again;
            }
            let child = Node::at(child);
            let child_version = child.stable();
            if !node.is_still(version) {
                spin.wait();
                continue 'again;
            }
            debug_assert!(child_version & DEAD == 0, "OI5: a node dies under its parent's lock");
            (node, version) = (child, child_version);
        }
        return Some(Spot { leaf: node, version, low, high });
    }
}

/// Looks a slice up in a layer. Returns `None` if the layer has ended.
#[cfg_attr(not(debug_assertions), inline(always))]
fn look<const FENCES: bool>(root: Node, slice: u64) -> Option<(Spot, Value)> {
    let mut spin = Spin::default();
    loop {
        let spot = descend::<FENCES>(root, slice, &mut ())?;
        let value = spot.leaf.value_of(slice);
        if spot.leaf.is_still(spot.version) {
            return Some((spot, Value::of(value)));
        }
        spin.wait();
    }
}

impl OrderedIndex {
    /// Words of a node.
    pub(crate) const NODE_WORDS: usize = NODE_WORDS;

    /// Returns an index for records whose keys have `key_words` words; the index keeps its nodes in
    /// the slab `nodes`.
    pub(crate) fn new(
        nodes: Arc<Slab>,
        key_words: usize,
        node_words: usize,
    ) -> Result<OrderedIndex, OutOfMemory> {
        assert!(nodes.block_words() >= NODE_WORDS && key_words > 0 && node_words <= 2);
        let block = Cache::allocate(&mut Vec::new(), &nodes)?;
        let root = Node::new_leaf(block, std::iter::empty());
        root.clear_words(node_words);
        Ok(OrderedIndex {
            root: NonZeroU64::new(root.address()).expect("a node is never at zero"),
            key_words,
            node_words,
            nodes,
        })
    }

    pub(crate) fn key_words(&self) -> usize {
        self.key_words
    }

    /// Returns the slab of nodes.
    pub(crate) fn nodes(&self) -> &Arc<Slab> {
        &self.nodes
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn root(&self) -> Node {
        Node::at(self.root.get())
    }

    /// Returns whether a record has this key, if the record was found in layer `depth` under the
    /// key's first `depth + 1` words.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn has_rest(&self, record: RecordAt, key: &[u64], depth: usize) -> bool {
        (depth + 1..self.key_words).all(|index| record.key_word(index) == key[index])
    }

    /// Finds a record as [`OrderedIndex::find`] does; if there is none, notes where to link a
    /// record with this key.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn find_place(&self, key: &[u64], place: &mut Place) -> Found {
        debug_assert_eq!(key.len(), self.key_words);
        let mut spin = Spin::default();
        let (mut root, mut depth) = (self.root(), 0);
        loop {
            match look::<false>(root, key[depth]) {
                Some((_, Value::Layer(next))) => (root, depth) = (next, depth + 1),
                Some((_, Value::Record(record))) if self.has_rest(record, key, depth) => {
                    return Found::Record(record);
                }
                Some((spot, _)) => {
                    let own = Spot { low: key[depth], high: key[depth], ..spot };
                    place.0 = Some(Near { spot: own, depth, record: None });
                    return Found::Nothing { node: spot.leaf.handle(), version: spot.version };
                }
                // The layer has ended; the thread that ended it is about to clear its slot.
                None => {
                    spin.wait();
                    (root, depth) = (self.root(), 0);
                }
            }
        }
    }

    /// Calls `each` with the records of the leaf to which a key belongs; with none if the leaf
    /// changes meanwhile. The caller is pinned.
    pub(crate) fn for_each_beside(&self, key: &[u64], each: &mut dyn FnMut(RecordAt)) {
        let (mut root, mut depth) = (self.root(), 0);
        let Spot { leaf, version, .. } = loop {
            match look::<false>(root, key[depth]) {
                Some((_, Value::Layer(next))) => (root, depth) = (next, depth + 1),
                Some((spot, _)) => break spot,
                None => return,
            }
        };
        let permutation = leaf.permutation();
        let mut values = [0; WIDTH];
        let count = permutation.count();
        for (rank, value) in values[..count].iter_mut().enumerate() {
            *value = leaf.value(permutation.slot(rank));
        }
        if leaf.is_still(version) {
            values[..count].iter().filter_map(|&value| Value::record(value)).for_each(each);
        }
    }

    /// Links `record`, whose key and cells are written, unless another record with its key is
    /// linked. The caller is pinned, and has called [`Place::link_near`], which returned the start.
    ///
    /// The call adds its splits and new layers to `changes`. These changes come before the step
    /// from one version to the next that [`Linked::New`] reports. `inherit_from_node` runs under
    /// the lock of the record's leaf, or before that leaf can be found. In it, a protocol lets the
    /// record inherit what the leaf recorded about the absent key.
    ///
    /// # Errors
    /// If the memory limit leaves no room for a node; the index then contains the same records as
    /// before.
    pub(crate) fn link(
        &self,
        record: RecordAt,
        key: &[u64],
        (place, start): (&mut Place, Start),
        caches: &mut Vec<Option<Cache>>,
        changes: &mut Vec<NodeChange>,
        inherit_from_node: impl FnMut(NodeAt),
    ) -> Result<Linked, OutOfMemory> {
        debug_assert_eq!(key.len(), self.key_words);
        let mut linking = Linking { record, key, caches, changes, inherit_from_node };
        let from = match start.0 {
            Some(Taken { depth, by: Value::Layer(next), .. }) => (next, depth + 1),
            Some(Taken { depth, by: Value::Record(existing), .. })
                if self.has_rest(existing, key, depth) =>
            {
                return Ok(Linked::Existing(existing));
            }
            Some(Taken { spot, depth, by: Value::Record(other) }) => {
                if let Some((near, linked)) = self.begin_layers(spot, depth, other, &mut linking)? {
                    place.0 = Some(near);
                    return Ok(linked);
                }
                (self.root(), 0)
            }
            Some(Taken { by: Value::Nothing, .. }) | None => (self.root(), 0),
        };
        self.link_from(from, place, &mut linking)
    }

    /// Links a record, descending from the root of a layer that the record's key leads to.
    fn link_from(
        &self,
        (mut root, mut depth): (Node, usize),
        place: &mut Place,
        linking: &mut Linking<'_, impl FnMut(NodeAt)>,
    ) -> Result<Linked, OutOfMemory> {
        let key = linking.key;
        let mut spin = Spin::default();
        loop {
            let linked = match look::<true>(root, key[depth]) {
                None => None,
                Some((_, Value::Layer(next))) => {
                    (root, depth) = (next, depth + 1);
                    continue;
                }
                Some((_, Value::Record(existing))) if self.has_rest(existing, key, depth) => {
                    return Ok(Linked::Existing(existing));
                }
                Some((spot, Value::Record(other))) => {
                    self.begin_layers(spot, depth, other, linking)?
                }
                Some((spot, Value::Nothing)) if spot.leaf.permutation().count() == WIDTH => {
                    self.link_splitting(root, depth, linking)?
                }
                Some((spot, Value::Nothing)) => link_at(spot, depth, linking),
            };
            if let Some((near, linked)) = linked {
                place.0 = Some(near);
                return Ok(linked);
            }
            spin.wait();
            (root, depth) = (self.root(), 0);
        }
    }

    /// Calls `each`, in the order of the keys, with every record that is linked during the whole
    /// call, present or not, and with some of the records linked or unlinked meanwhile. The caller
    /// is pinned.
    pub(crate) fn for_each(&self, each: &mut dyn FnMut(RecordAt)) {
        let mut cursor =
            self.cursor(WordRange::beginning_with(&[], self.key_words), Direction::Forward);
        loop {
            match self.advance(&mut cursor, &mut |_, _| {}) {
                Advance::Next(record) => each(record),
                Advance::End => return,
                // A layer has ended under the cursor, so no record in it is linked any more.
                Advance::Doomed => {}
            }
        }
    }
}

impl Drop for OrderedIndex {
    fn drop(&mut self) {
        // Other nodes, if there are any, stay with the slab, and are freed with it.
        self.nodes.give_back(std::iter::once(self.root().block()));
    }
}

/// Links a record in a leaf that had no slot for its slice. Returns `None` if the leaf has changed
/// since.
#[cfg_attr(not(debug_assertions), inline(always))]
fn link_at(
    spot: Spot,
    depth: usize,
    linking: &mut Linking<'_, impl FnMut(NodeAt)>,
) -> Option<(Near, Linked)> {
    let Spot { leaf, version, low, high } = spot;
    debug_assert!((low..=high).contains(&linking.key[depth]), "OI3: the slice is in the fences");
    if !leaf.lock_at(version) {
        return None;
    }
    // The version is the same, so at most records have been unlinked: the slice is still missing,
    // and there is room.
    leaf.insert(linking.key[depth], Value::Record(linking.record));
    let after = unlock_linked(leaf, version, &mut linking.inherit_from_node);
    let near = Near { spot: Spot { version: after, ..spot }, depth, record: Some(linking.record) };
    Some((near, Linked::New { node: leaf.handle(), before: version, after }))
}

/// Ends the link of a record in a leaf that the caller has locked: unlocks the leaf and returns its
/// new version.
#[cfg_attr(not(debug_assertions), inline(always))]
fn unlock_linked(leaf: Node, version: u64, inherit_from_node: &mut impl FnMut(NodeAt)) -> u64 {
    inherit_from_node(leaf.handle());
    let after = version + VERSION_ONE;
    leaf.unlock(after); // OI1
    after
}
