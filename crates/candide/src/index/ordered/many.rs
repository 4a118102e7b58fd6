//! Lookups of many keys at once, one step of each in turn, so that their cache misses overlap.

#![forbid(unsafe_code)]

use super::node::{DEAD, INNER, Node, Value};
use super::{Found, OrderedIndex, look};
use crate::record::RecordAt;
use crate::sync::prefetch;

/// The state of one lookup. The node or record that its next step reads is being prefetched.
#[derive(Clone, Copy)]
struct Descent {
    node: Node,
    /// The inner node above `node`, with the version at which it was passed; `None` at a layer's
    /// root.
    above: Option<(Node, u64)>,
    depth: usize,
    /// A record whose key remains to be compared, and the version of `node`, the leaf that holds
    /// its slot.
    candidate: Option<(RecordAt, u64)>,
}

impl OrderedIndex {
    /// Returns the result of [`OrderedIndex::find`] for each of many keys.
    pub(crate) fn find_many<const N: usize, W: AsRef<[u64]>>(&self, keys: &[W; N]) -> [Found; N] {
        let (root, depth) = self.common_layer(keys);
        let mut descents = [Descent { node: root, above: None, depth, candidate: None }; N];
        let mut found = [None; N];
        let mut left = N;
        while left > 0 {
            for ((key, descent), found) in keys.iter().zip(&mut descents).zip(&mut found) {
                if found.is_none() {
                    *found = self.step(key.as_ref(), descent);
                    left -= usize::from(found.is_some());
                }
            }
        }
        found.map(|found| found.expect("all have been found"))
    }

    /// Returns the last layer that all keys lead to, and its depth.
    fn common_layer<const N: usize, W: AsRef<[u64]>>(&self, keys: &[W; N]) -> (Node, usize) {
        let (mut root, mut depth) = (self.root(), 0);
        let Some(first) = keys.first() else { return (root, depth) };
        while depth + 1 < self.key_words {
            let slice = first.as_ref()[depth];
            if keys.iter().any(|key| key.as_ref()[depth] != slice) {
                break;
            }
            let Some((_, Value::Layer(next))) = look::<false>(root, slice) else { break };
            (root, depth) = (next, depth + 1);
        }
        (root, depth)
    }

    /// Advances a lookup by one node. Returns the result if the lookup ends there. If a node on the
    /// path has changed meanwhile, repeats this lookup alone and returns its result.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn step(&self, key: &[u64], descent: &mut Descent) -> Option<Found> {
        let &mut Descent { node, above, depth, candidate } = descent;
        if let Some((record, version)) = candidate {
            let is_it = self.has_rest(record, key, depth);
            return Some(if is_it {
                Found::Record(record)
            } else {
                Found::Nothing { node: node.handle(), version }
            });
        }
        let version = node.stable();
        // OI5: the child's version counts only if the parent's is validated after it was loaded.
        if version & DEAD != 0 || above.is_some_and(|(above, version)| !above.is_still(version)) {
            return Some(self.find_patiently(key));
        }
        if version & INNER != 0 {
            let child = node.child(node.rank(key[depth]));
            if !node.is_still(version) {
                return Some(self.find_patiently(key));
            }
            Node::prefetch(child);
            (descent.node, descent.above) = (Node::at(child), Some((node, version)));
            return None;
        }
        let value = node.value_of(key[depth]);
        if !node.is_still(version) {
            return Some(self.find_patiently(key));
        }
        match Value::of(value) {
            Value::Nothing => Some(Found::Nothing { node: node.handle(), version }),
            Value::Layer(root) => {
                Node::prefetch(root.address());
                (descent.node, descent.above, descent.depth) = (root, None, depth + 1);
                None
            }
            Value::Record(record) => {
                prefetch(record.block().hint(0));
                if depth + 1 == key.len() {
                    return Some(Found::Record(record));
                }
                descent.candidate = Some((record, version));
                None
            }
        }
    }
}
