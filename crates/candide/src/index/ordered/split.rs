//! Restructuring by an insert: splits of full leaves and inner nodes, and slots that become layers.

use super::node::{INNER, KEYS, Node, VERSION_ONE, Value};
use super::permutation::{Permutation, WIDTH};
use super::{Linking, Near, OrderedIndex, Spot, Trail, descend};
use crate::index::node::{Linked, NodeAt, NodeChange};
use crate::memory::{Block, Cache, OutOfMemory};
use crate::record::RecordAt;
use crate::sync::full_fence;

/// An inner node, with its version and upper fence when a descent passed it.
#[derive(Clone, Copy)]
struct Passed {
    node: Node,
    version: u64,
    high: u64,
}

/// The last inner node of a descent, and the topmost full inner node with its parent.
#[derive(Default)]
struct Fullness {
    parent: Option<Passed>,
    full: Option<(Option<Passed>, Passed)>,
}

impl Trail for Fullness {
    fn begin(&mut self) {
        *self = Fullness::default();
    }

    fn pass(&mut self, node: Node, _rank: usize, version: u64, _low: u64, high: u64) {
        let passed = Passed { node, version, high };
        if self.full.is_none() && node.is_full() {
            self.full = Some((self.parent, passed));
        }
        self.parent = Some(passed);
    }
}

/// Locks the parent `above`, if there is one, and then `node`, if both still have the versions at
/// which they were passed. Returns `true` if both are locked, and `false` if none is.
fn lock_both(above: Option<Passed>, node: Node, version: u64) -> bool {
    if above.is_some_and(|above| !above.node.lock_at(above.version)) {
        return false;
    }
    if node.lock_at(version) {
        return true;
    }
    if let Some(above) = above {
        above.node.unlock(above.version);
    }
    false
}

impl OrderedIndex {
    /// Returns the session's cache of nodes, with `count` nodes ready. So nothing needs to be
    /// allocated while nodes are locked (OI6).
    fn make_ready<'a>(
        &self,
        count: usize,
        caches: &'a mut Vec<Option<Cache>>,
    ) -> Result<&'a mut Cache, OutOfMemory> {
        let spare = Cache::of(caches, &self.nodes);
        spare.make_ready(&self.nodes, count, false)?;
        Ok(spare)
    }

    /// Splits a full node on the path to a record's leaf. If this is the leaf itself, links the
    /// record; otherwise, or if a node has changed, returns `None`, and the caller has to search
    /// again.
    #[cold]
    pub(super) fn link_splitting(
        &self,
        root: Node,
        depth: usize,
        linking: &mut Linking<'_, impl FnMut(NodeAt)>,
    ) -> Result<Option<(Near, Linked)>, OutOfMemory> {
        let slice = linking.key[depth];
        let mut fullness = Fullness::default();
        let Some(spot) = descend::<true>(root, slice, &mut fullness) else { return Ok(None) };
        let Some((above, full)) = fullness.full else {
            return self.split_leaf(fullness.parent, spot, depth, linking);
        };
        split_inner(above, full, slice, self.make_ready(nodes_to_split(above), linking.caches)?);
        Ok(None)
    }

    /// Splits a leaf and links a record in one of the halves. Returns `None` if the leaf or its
    /// parent has changed, or if the leaf is not full.
    fn split_leaf(
        &self,
        above: Option<Passed>,
        spot: Spot,
        depth: usize,
        linking: &mut Linking<'_, impl FnMut(NodeAt)>,
    ) -> Result<Option<(Near, Linked)>, OutOfMemory> {
        let Linking { record, key, caches, changes, inherit_from_node } = linking;
        let slice = key[depth];
        let Spot { leaf, version, low, high } = spot;
        debug_assert!((low..=high).contains(&slice), "OI3: the slice is in the fences");
        let spare = self.make_ready(nodes_to_split(above), caches)?;
        if !lock_both(above, leaf, version) {
            return Ok(None);
        }
        let permutation = leaf.permutation();
        if permutation.count() < WIDTH || leaf.value_of(slice) != 0 {
            leaf.unlock(version);
            if let Some(above) = above {
                above.node.unlock(above.version);
            }
            return Ok(None);
        }
        if self.node_words > 0 {
            // A reader of an absent key raises the leaf's timestamp and then reads the version;
            // this thread has locked the leaf and now copies the timestamp (E1).
            full_fence();
        }
        let appending = high == u64::MAX && leaf.is_beyond(permutation, slice);
        let kept = if appending { WIDTH } else { WIDTH.div_ceil(2) };
        let separator = leaf.slice(permutation.slot(kept - 1));
        let right = self.new_leaf_from(leaf, permutation, kept..WIDTH, spare.take_ready());
        let middle = version + VERSION_ONE;
        let (left, left_version) = match above {
            Some(above) => {
                leaf.set_permutation(permutation.truncate(kept));
                permutation.live().skip(kept).for_each(|slot| leaf.set_value(slot, Value::Nothing)); // OI2
                above.node.insert_child(above.node.rank(separator), separator, right);
                (leaf, middle)
            }
            None => {
                let left = self.new_leaf_from(leaf, permutation, 0..kept, spare.take_ready());
                leaf.become_inner(left, separator, right); // OI4
                (left, 0)
            }
        };
        let goes_right = slice > separator;
        let (home, before) = if goes_right { (right, 0) } else { (left, left_version) };
        let after = before + VERSION_ONE;
        home.insert(slice, Value::Record(*record));
        inherit_from_node(home.handle());
        // No reader finds the new leaves while the parent is locked, or the root if there is no
        // parent.
        home.unlock(after);
        match above {
            Some(above) => {
                if goes_right {
                    leaf.unlock(middle);
                }
                above.node.unlock(above.version + VERSION_ONE);
            }
            None => leaf.unlock(middle | INNER),
        }
        let successors = [(left.handle(), left_version), (right.handle(), 0)];
        changes.push(NodeChange {
            node: leaf.handle(),
            before: version,
            successors,
            further: Vec::new(),
        });
        let (low, high) = if goes_right { (separator + 1, high) } else { (low, separator) };
        let near = Near {
            spot: Spot { leaf: home, version: after, low, high },
            depth,
            record: Some(*record),
        };
        Ok(Some((near, Linked::New { node: home.handle(), before, after })))
    }

    /// Returns a new leaf with the slots at `ranks` of `leaf`, which is locked, and with the
    /// protocol's words of `leaf` (OI8).
    fn new_leaf_from(
        &self,
        leaf: Node,
        permutation: Permutation,
        ranks: std::ops::Range<usize>,
        block: Block,
    ) -> Node {
        let slots = ranks.map(|rank| permutation.slot(rank));
        let new = Node::new_leaf(
            block,
            slots.map(|slot| (leaf.slice(slot), Value::of(leaf.value(slot)))),
        );
        self.hand_on(leaf, new);
        new
    }

    /// Gives a new leaf the protocol's words of `leaf`, the locked leaf whose slices it takes
    /// (OI8).
    fn hand_on(&self, leaf: Node, new: Node) {
        new.copy_words(leaf, self.node_words);
    }

    /// Turns the slot of `other`, whose key has a prefix in common with that of `record`, into a
    /// chain of layers. The keys differ in the last of these layers. Returns `None` if the leaf has
    /// changed.
    #[cold]
    pub(super) fn begin_layers(
        &self,
        spot: Spot,
        depth: usize,
        other: RecordAt,
        linking: &mut Linking<'_, impl FnMut(NodeAt)>,
    ) -> Result<Option<(Near, Linked)>, OutOfMemory> {
        let &mut Linking { record, key, .. } = linking;
        let Spot { leaf, version, .. } = spot;
        let last = (depth + 1..self.key_words).find(|&word| other.key_word(word) != key[word]);
        let last = last.expect(
            "the keys differ, and the words before are those of the leaf's prefix and slot",
        );
        let mut further = Vec::with_capacity(last - depth - 1);
        let spare = self.make_ready(last - depth, linking.caches)?;
        if !leaf.lock_at(version) {
            return Ok(None);
        }
        let Some(slot) = leaf.slot_of_value(Value::Record(other)) else {
            // `other` has been unlinked meanwhile, which does not raise the version.
            leaf.unlock(version);
            return Ok(None);
        };
        if self.node_words > 0 {
            full_fence(); // E1, as in `split_leaf`.
        }
        let mut two =
            [(other.key_word(last), Value::Record(other)), (key[last], Value::Record(record))];
        if two[0].0 > two[1].0 {
            two.swap(0, 1);
        }
        let home = Node::new_leaf(spare.take_ready(), two.into_iter());
        self.hand_on(leaf, home);
        home.unlock(VERSION_ONE);
        let mut top = home;
        for &slice in key[depth + 1..last].iter().rev() {
            top = Node::new_leaf(spare.take_ready(), std::iter::once((slice, Value::Layer(top))));
            self.hand_on(leaf, top);
            further.push((top.handle(), 0));
        }
        (linking.inherit_from_node)(home.handle());
        leaf.set_value(slot, Value::Layer(top));
        let after = version + VERSION_ONE;
        leaf.unlock(after); // OI1
        let successors = [(leaf.handle(), after), (home.handle(), 0)];
        linking.changes.push(NodeChange {
            node: leaf.handle(),
            before: version,
            successors,
            further,
        });
        let whole = Spot { leaf: home, version: VERSION_ONE, low: 0, high: u64::MAX };
        let linked = Linked::New { node: home.handle(), before: 0, after: VERSION_ONE };
        Ok(Some((Near { spot: whole, depth: last, record: Some(record) }, linked)))
    }
}

/// Returns the number of new nodes that a split takes: one, or two if a layer's root is split.
fn nodes_to_split(above: Option<Passed>) -> usize {
    if above.is_some() { 1 } else { 2 }
}

/// Splits a full inner node that is a layer's root or has a parent with room, unless the node or
/// the parent has changed.
fn split_inner(above: Option<Passed>, full: Passed, slice: u64, spare: &mut Cache) {
    let Passed { node, version, high } = full;
    if !lock_both(above, node, version) {
        return;
    }
    let appending = high == u64::MAX && node.rank(slice) == KEYS;
    // The index of the key that goes up. The children up to this index stay on its left.
    let middle = if appending { KEYS - 2 } else { KEYS / 2 };
    let separator = node.key(middle);
    let right = Node::new_inner(spare.take_ready());
    right.copy_children(node, middle + 1, KEYS);
    match above {
        Some(above) => {
            node.truncate_children(middle + 1);
            above.node.insert_child(above.node.rank(separator), separator, right);
            node.unlock(version + VERSION_ONE);
            above.node.unlock(above.version + VERSION_ONE);
        }
        None => {
            let left = Node::new_inner(spare.take_ready());
            left.copy_children(node, 0, middle);
            node.become_inner(left, separator, right); // OI4
            node.unlock(version + VERSION_ONE);
        }
    }
}
