//! The ordered index: finds records, scans ranges of keys both ways, protects absent keys and
//! ranges.
//!
//! # Shape
//! A key is a fixed number of words, ordered by the first, then the second, and so on. The index is
//! a trie of layers, one per word; each layer is a B+tree over that word, the *slice*. A leaf's
//! value is a record, the only one with this prefix, or the root of the next layer, where two keys
//! agree up to here. Nodes are 256 bytes, have neither siblings nor parents linked to them, and are
//! read without locks: version, contents, version again, from the layer's root down. A lookup of a
//! one-word key touches a node per level and does not touch the record. Prefixes that are words of
//! their own have layers of their own, so ranges under different prefixes share no leaf.
//!
//! # Invariants
//! * **OI1** A node changes only under its lock. A link, a split, the beginning of a layer, and the
//!   node's death raise its version; so does every change of an inner node. An unlinking raises it
//!   only where nodes keep timestamps.
//! * **OI2** Nothing moves within a leaf, and a slot outside its permutation has the value zero. So
//!   a lookup needs no permutation, and an unlinking is, for a concurrent reader, the loss of one
//!   record that is dead already.
//! * **OI3** The leaf that a slice belongs to is the one that a descent from the layer's root
//!   reaches. Each version's *fences*, found on the descent, are slices that belong to the leaf
//!   while it keeps that version; they may be fewer than belong to it, since it inherits the slices
//!   of removed neighbours without notice.
//! * **OI4** A layer's root never moves; it changes between leaf and inner node in place. Once it
//!   is dead, the layer is over, and all its nodes are dead.
//! * **OI5** What has been loaded from a node leads nowhere before the node's version has been
//!   validated; and a child's version counts only if the parent's is validated after it was loaded.
//! * **OI6** Locks are taken from above to below, from layer to layer and from parent to child; an
//!   inheriting leaf after the child that dies beside it, whose parent is locked. They are held for
//!   a few hundred instructions, during which nothing is allocated or freed.
//! * **OI7** Nodes come from the index's own slab. Dead ones are retired, not freed, and callers
//!   are pinned.
//! * **OI8** A new leaf has the protocol's words of the leaf whose slices it takes, before it can
//!   be found, and a dying leaf leaves its words to the one that inherits its slices; words are
//!   timestamps, so the larger one counts.
//!
//! # How it changes
//! *Insert.* The leaf is locked at the version at which the key was seen to be absent; or at the
//! one that the insert before this left, if the key belongs beside that one's (`Place`), and is
//! then looked for. A free slot is written, then the permutation. *Split* (`split.rs`). A leaf that
//! is full moves its upper half to a new leaf, which is complete before its parent, locked as well,
//! links it. Full inner nodes on the way are split before, from the top, each together with a
//! parent that has room; so nothing propagates upwards. A layer's root gives both halves to new
//! nodes. At the right end of a layer nothing is moved, which keeps the nodes of ascending keys
//! full. *Layers.* When a second key with the same slice arrives, the record's slot becomes the
//! root of a chain of layers, up to the word in which the two differ. *Removal* (`remove.rs`). A
//! leaf that becomes empty is taken out of its parent; a parent left with one child is replaced by
//! it; a root left with one child takes over what that one contains; an empty layer loses its slot.
//!
//! # Why lookups are right
//! By OI5 a descent passes from parent to child at a moment when the child was the parent's, for
//! this slice. From then on, the leaf loses the slice only by a split or by its death. Both change
//! its version; so if that is the same after the contents have been read, they were the contents
//! for this slice at that moment. A missing key is vouched for by the leaf and that version: a
//! writer that links it later raises the version of the leaf that it then belongs to, which is this
//! one, a new one made by changing this one, or a neighbour of this one, which then is dead. For
//! the same reason the neighbour needs no raised version: transactions that observed the dead leaf
//! fail by its death, and those that observed the neighbour have seen nothing of what it inherits.
//!
//! # Why scans are right
//! A cursor (`cursor.rs`) reads leaf after leaf, each at one version, and observes each before any
//! of its records is given out. The next leaf is where the slice beyond the last one's fence
//! belongs; so each slice of the range belonged to an observed leaf, at its observed version, when
//! it was read.
//!
//! # Own changes
//! A transaction that restructures what it has observed exchanges its observations: see
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
    /// Words that the protocol keeps in each leaf.
    node_words: usize,
    nodes: Arc<Slab>,
}

/// The place where a record was linked last, so that linking a record with a near key needs no
/// descent; or where a search found no record, so that one can be linked there. Valid during one
/// pin.
#[derive(Debug, Default)]
pub(crate) struct Place(Option<Near>);

#[derive(Debug, Clone, Copy)]
struct Near {
    spot: Spot,
    depth: usize,
    /// The record that was linked there: its key begins with the layer's prefix. `None` if the
    /// prefix is that of the key that was searched, which is the next one to be linked.
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
    /// Returns whether the key belongs to the leaf, as long as that is of this version.
    #[inline(always)]
    fn is_home_of(&self, key: &[u64]) -> bool {
        let Near { spot, depth, record } = self;
        (spot.low..=spot.high).contains(&key[*depth])
            && record.is_none_or(|record| record.begins_like(key, *depth))
    }
}

/// The start of the descent to the leaf of a key that could not be linked near the last one.
#[derive(Debug)]
pub(crate) struct Start(Option<Taken>);

impl Start {
    /// At the root of the first layer.
    pub(crate) const ROOT: Start = Start(None);
}

/// A leaf of the layer at this depth, which the key belongs to, and in which its slice leads to
/// something.
#[derive(Debug)]
struct Taken {
    spot: Spot,
    depth: usize,
    by: Value,
}

impl Place {
    /// Links a record in the leaf itself, if its key belongs there, nothing has changed the leaf
    /// since, and that is all it takes; otherwise [`OrderedIndex::link`] does it from where this
    /// says. The record's key and cells are written.
    #[inline(always)]
    pub(crate) fn link_near(
        &mut self,
        record: RecordAt,
        key: &[u64],
        inherit_from_node: &mut impl FnMut(NodeAt),
    ) -> Result<Linked, Start> {
        let Some(near) = self.0.as_mut() else { return Err(Start::ROOT) };
        let Spot { leaf, version: before, .. } = near.spot;
        // Under the lock the version cannot change, so one check suffices.
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

/// A leaf found by a descent, and slices that belong to it at this version (OI3).
#[derive(Debug, Clone, Copy)]
struct Spot {
    leaf: Node,
    version: u64,
    low: u64,
    high: u64,
}

/// The inner nodes that a descent passes, as it notes them.
trait Trail {
    /// The descent begins, perhaps again.
    fn begin(&mut self);

    /// It has chosen child `rank` of `node`; `low` and `high` are the node's fences.
    fn pass(&mut self, node: Node, rank: usize, version: u64, low: u64, high: u64);
}

impl Trail for () {
    fn begin(&mut self) {}

    fn pass(&mut self, _node: Node, _rank: usize, _version: u64, _low: u64, _high: u64) {}
}

/// Goes down a layer to the leaf of `slice`; nothing if the layer is over. Fences are found only if
/// asked for.
#[inline(always)]
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
            // OI5: before the address is used, and after the child's version is known.
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

/// Looks a slice up in a layer; nothing if the layer is over.
#[inline(always)]
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

    /// Returns an index for records whose key has `key_words` words, with its nodes in a slab of
    /// its own.
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

    #[inline(always)]
    fn root(&self) -> Node {
        Node::at(self.root.get())
    }

    /// Returns whether a record found in layer `depth` under the key's words up to there has this
    /// key.
    #[inline(always)]
    fn has_rest(&self, record: RecordAt, key: &[u64], depth: usize) -> bool {
        (depth + 1..self.key_words).all(|index| record.key_word(index) == key[index])
    }

    /// Does the work of [`OrderedIndex::find`]; if the key has no record, notes the place to link
    /// one.
    #[inline(always)]
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
                // The layer is over; the thread that ended it is taking its slot away.
                None => {
                    spin.wait();
                    (root, depth) = (self.root(), 0);
                }
            }
        }
    }

    /// Links `record`, whose key and cells are written, unless its key has a record. The caller is
    /// pinned, and has tried [`Place::link_near`], which returned the start.
    ///
    /// `changes` receives the nodes that this has restructured; the restructuring comes before the
    /// change of version in [`Linked::New`]. `inherit_from_node` runs under the lock of the
    /// record's leaf, or before other threads can find the leaf. In it, a protocol copies what the
    /// leaf says of the absent key (such as a read timestamp) to the record.
    ///
    /// # Errors
    /// If the memory limit leaves no room for a node; the index is unchanged then.
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

    /// Links a record, going down from the root of a layer that its key leads to.
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

    /// Calls `each`, in the order of keys, for every record, present or absent, that is linked
    /// during the whole call, and for some of the records that are linked or unlinked meanwhile.
    /// The caller is pinned.
    pub(crate) fn for_each(&self, each: &mut dyn FnMut(RecordAt)) {
        let mut cursor =
            self.cursor(WordRange::beginning_with(&[], self.key_words), Direction::Forward);
        loop {
            match self.advance(&mut cursor, &mut |_, _| {}) {
                Advance::Next(record) => each(record),
                Advance::End => return,
                // A layer has ended under the cursor, so nothing in it is linked any more.
                Advance::Doomed => {}
            }
        }
    }
}

/// Links a record in a leaf in which its slice was missing; nothing if the leaf has changed since,
/// or has no room.
#[inline(always)]
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
    // The version is unchanged, so at most a record has been unlinked: the slice is still missing,
    // and the leaf has room.
    leaf.insert(linking.key[depth], Value::Record(linking.record));
    let after = unlock_linked(leaf, version, &mut linking.inherit_from_node);
    let near = Near { spot: Spot { version: after, ..spot }, depth, record: Some(linking.record) };
    Some((near, Linked::New { node: leaf.handle(), before: version, after }))
}

/// Ends the link of a record in a leaf that the caller has locked: unlocks the leaf and returns its
/// version then.
#[inline(always)]
fn unlock_linked(leaf: Node, version: u64, inherit_from_node: &mut impl FnMut(NodeAt)) -> u64 {
    inherit_from_node(leaf.handle());
    let after = version + VERSION_ONE;
    leaf.unlock(after); // OI1
    after
}
