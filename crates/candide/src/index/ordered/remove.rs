//! Unlinking records, and removing the leaves and layers that become empty.

use super::node::{DEAD, INNER, Node, VERSION_ONE, Value};
use super::{OrderedIndex, Spot, Trail, descend, look};
use crate::index::node::{NodeAt, Retire};
use crate::record::RecordAt;
use crate::sync::{Spin, full_fence};

/// The last two inner nodes of a descent, each with its version.
#[derive(Default)]
struct Ancestors {
    parent: Option<(Node, u64)>,
    grandparent: Option<(Node, u64)>,
}

impl Trail for Ancestors {
    fn begin(&mut self) {
        *self = Ancestors::default();
    }

    fn pass(&mut self, node: Node, _rank: usize, version: u64, _low: u64, _high: u64) {
        self.grandparent = self.parent.replace((node, version));
    }
}

impl OrderedIndex {
    /// Unlinks `record`, which is dead, from its leaf. The caller is pinned and retires the record
    /// afterwards.
    ///
    /// `merge_into_node` runs under the leaf's lock, before the slot is cleared. The version is
    /// raised only where nodes keep timestamps. In commit order this is not needed: the dead
    /// record's own cell already fails every transaction that observed its absence.
    pub(crate) fn unlink(
        &self,
        record: RecordAt,
        key: &[u64],
        retired: &mut Vec<Retire>,
        merge_into_node: impl FnOnce(NodeAt),
    ) {
        let (leaf, version, rank, depth) = self.lock_slot_of(record, key);
        merge_into_node(leaf.handle());
        let is_empty = leaf.remove(rank);
        leaf.unlock(self.after_removal(version));
        if is_empty {
            self.prune(key, depth, retired);
        }
    }

    /// Returns the version that a leaf with `version` has after the loss of a slot (OI1).
    fn after_removal(&self, version: u64) -> u64 {
        if self.node_words == 0 { version } else { version + VERSION_ONE }
    }

    /// Finds and locks the leaf of a linked record. Returns the leaf, its version, the rank of the
    /// record's slot, and the depth of the layer.
    fn lock_slot_of(&self, record: RecordAt, key: &[u64]) -> (Node, u64, usize, usize) {
        let mut spin = Spin::default();
        let (mut root, mut depth) = (self.root(), 0);
        loop {
            match look::<false>(root, key[depth]) {
                Some((_, Value::Layer(next))) => {
                    (root, depth) = (next, depth + 1);
                    continue;
                }
                // The record stays in the leaf while the version is the same, since no other thread
                // unlinks the record.
                Some((Spot { leaf, version, .. }, Value::Record(found)))
                    if found == record && leaf.lock_at(version) =>
                {
                    let rank = leaf
                        .rank_of_value(Value::Record(record))
                        .expect("the child was found in the parent");
                    return (leaf, version, rank, depth);
                }
                // The leaf has changed since, or the record is being moved into a new layer.
                _ => {}
            }
            spin.wait();
            (root, depth) = (self.root(), 0);
        }
    }

    /// Removes the leaf of `key` in layer `depth` if the leaf is empty, and then the layers that
    /// become empty by this. Every thread that empties a leaf calls this function, so no empty leaf
    /// stays.
    #[cold]
    fn prune(&self, key: &[u64], mut depth: usize, retired: &mut Vec<Retire>) {
        let mut spin = Spin::default();
        'again: loop {
            spin.wait();
            let (mut root, mut holder) = (self.root(), None);
            for &slice in &key[..depth] {
                match look::<false>(root, slice) {
                    Some((spot, Value::Layer(next))) => (root, holder) = (next, Some(spot)),
                    // Another thread has ended the layer.
                    Some(_) => return,
                    None => continue 'again,
                }
            }
            let mut ancestors = Ancestors::default();
            let Some(spot) = descend::<false>(root, key[depth], &mut ancestors) else { continue };
            let is_empty = spot.leaf.permutation().count() == 0;
            if !spot.leaf.is_still(spot.version) {
                continue;
            }
            let removed = match (ancestors.parent, holder) {
                _ if !is_empty => return,
                (Some(parent), _) => {
                    self.remove_leaf(ancestors.grandparent, parent, spot, key[depth], retired)
                }
                (None, Some(holder)) => match self.remove_layer(holder, spot, retired) {
                    Some(false) => true,
                    Some(true) => {
                        // The leaf that held the layer's slot is empty now.
                        depth -= 1;
                        false
                    }
                    None => false,
                },
                // The index is empty.
                (None, None) => return,
            };
            if removed {
                return;
            }
        }
    }

    /// Ends a layer whose root is an empty leaf. Returns whether `holder`, the leaf with the
    /// layer's slot, is then empty; `None` if `holder` or `root` has changed.
    fn remove_layer(&self, holder: Spot, root: Spot, retired: &mut Vec<Retire>) -> Option<bool> {
        if !holder.leaf.lock_at(holder.version) {
            return None;
        }
        if !root.leaf.lock_at(root.version) {
            holder.leaf.unlock(holder.version);
            return None;
        }
        // Both versions are those at which the root was an empty leaf and the holder's slot led to
        // the root.
        if self.node_words > 0 {
            full_fence(); // E1, as in `inherit`.
            self.pass_words_on(root.leaf, holder.leaf);
        }
        debug_assert_ne!(root.leaf, self.root(), "OI4: the first layer is never over");
        root.leaf.unlock(root.version | DEAD); // OI4
        let rank = holder
            .leaf
            .rank_of_value(Value::Layer(root.leaf))
            .expect("a layer has a slot while it is not dead");
        let is_empty = holder.leaf.remove(rank);
        holder.leaf.unlock(self.after_removal(holder.version));
        retired.push(Retire::Block(root.leaf.block()));
        Some(is_empty)
    }

    /// Removes an empty leaf from its parent. If this leaves the parent one child, the parent is
    /// removed too, or takes over that child's contents if it is a layer's root. Returns false if a
    /// node has changed.
    fn remove_leaf(
        &self,
        grandparent: Option<(Node, u64)>,
        (parent, parent_version): (Node, u64),
        Spot { leaf, version, .. }: Spot,
        slice: u64,
        retired: &mut Vec<Retire>,
    ) -> bool {
        // The grandparent is locked first (OI6). Locking the parent at its version confirms
        // the number of its children, which decides whether the grandparent is needed.
        let above = if parent.child(2) == 0 { grandparent } else { None };
        if above.is_some_and(|(above, above_version)| !above.lock_at(above_version)) {
            return false;
        }
        let parent_is_ours = parent.lock_at(parent_version);
        if !parent_is_ours || !leaf.lock_at(version) {
            if parent_is_ours {
                parent.unlock(parent_version);
            }
            if let Some((above, above_version)) = above {
                above.unlock(above_version);
            }
            return false;
        }
        // The versions are those at which the leaf was empty and the number of the parent's
        // children was read.
        let index = parent.rank(slice);
        let neighbour = Node::at(parent.child(if index == 0 { 1 } else { index - 1 }));
        debug_assert_ne!(neighbour, leaf, "OI8: a neighbour inherits");
        if self.node_words > 0 {
            self.inherit(leaf, neighbour, index > 0);
        }
        leaf.unlock(version | DEAD);
        let other = if parent.children() > 2 {
            parent.remove_child(index);
            parent.unlock(parent_version + VERSION_ONE);
            None
        } else if let Some((above, above_version)) = above {
            above.set_child(above.rank(slice), neighbour.address());
            parent.unlock(parent_version | DEAD);
            above.unlock(above_version + VERSION_ONE);
            Some(parent)
        } else {
            // The parent is the layer's root, and is not removed (OI4).
            let neighbour_version = neighbour.lock();
            if self.node_words > 0 {
                full_fence(); // E1, as in `inherit`.
            }
            let kind = parent.take_over(neighbour, neighbour_version, self.node_words);
            neighbour.unlock(neighbour_version | DEAD);
            parent.unlock((parent_version & !INNER | kind) + VERSION_ONE);
            Some(neighbour)
        };
        retired.push(Retire::Block(leaf.block())); // OI7
        retired.extend(other.map(|node| Retire::Block(node.block())));
        true
    }

    /// Passes the protocol's words of a dying leaf to the leaf that inherits its slices: the last
    /// one below the left neighbour, or the first one below the right neighbour. The dying leaf and
    /// its parent are locked.
    fn inherit(&self, leaf: Node, neighbour: Node, is_left: bool) {
        let (mut neighbour, mut version) = (neighbour, neighbour.lock());
        while version & INNER != 0 {
            // OI6: a child cannot die while its parent is locked.
            let child =
                Node::at(neighbour.child(if is_left { neighbour.children() - 1 } else { 0 }));
            let child_version = child.lock();
            neighbour.unlock(version);
            (neighbour, version) = (child, child_version);
        }
        // A reader of an absent key raises the leaf's timestamp and then reads the version; this
        // thread has locked the leaf and now copies the timestamp (E1).
        full_fence();
        self.pass_words_on(leaf, neighbour);
        neighbour.unlock(version + VERSION_ONE);
    }
    /// Passes the protocol's words of a dying leaf to the locked leaf that inherits its slices
    /// (OI8).
    fn pass_words_on(&self, leaf: Node, neighbour: Node) {
        neighbour.raise_words(leaf, self.node_words);
    }
}
