//! Lookups of one key. The short path contains no code for waiting. If a node on the path is
//! locked, or changes meanwhile, separate code repeats the lookup.

#![forbid(unsafe_code)]

use super::node::{DEAD, INNER, Node, Value};
use super::{Found, OrderedIndex, Place};
use crate::index::node::LOCK;
use crate::index::node::NodeAt;
use crate::record::RecordAt;

/// The leaf that shows that a key has no record, and the version at which it does.
type Missed = Option<(NodeAt, u64)>;

impl OrderedIndex {
    /// Returns the record with this key. If there is none, returns the leaf, and the version at
    /// which it shows the key's absence. The caller is pinned.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn find(&self, key: &[u64]) -> Found {
        debug_assert_eq!(key.len(), self.key_words);
        let mut missed = None;
        let record = match *key {
            [slice] => find_slice(self.root(), slice, &mut missed),
            _ => self.find_slices(key, &mut missed),
        };
        if let Some(record) = record {
            return Found::Record(record);
        }
        let record = if missed.is_none() { self.search(key, &mut missed) } else { None };
        match (record, missed) {
            (Some(record), _) => Found::Record(record),
            (None, Some((node, version))) => Found::Nothing { node, version },
            (None, None) => unreachable!("a leaf vouches for every key that is missed"),
        }
    }

    /// Returns the result of [`OrderedIndex::find_patiently`] in parts, which need no memory if a
    /// record is found.
    #[cold]
    #[inline(never)]
    fn search(&self, key: &[u64], missed: &mut Missed) -> Option<RecordAt> {
        match self.find_patiently(key) {
            Found::Record(record) => Some(record),
            Found::Nothing { node, version } => {
                *missed = Some((node, version));
                None
            }
        }
    }

    /// Returns the record with this key. If there is none, sets `missed`. In all other cases the
    /// lookup has to be repeated.
    #[inline(never)]
    fn find_slices(&self, key: &[u64], missed: &mut Missed) -> Option<RecordAt> {
        let (mut root, mut depth) = (self.root(), 0);
        loop {
            let (leaf, version, value) = look_at_once(root, key[depth])?;
            match Value::of(value) {
                Value::Layer(next) => (root, depth) = (next, depth + 1),
                Value::Record(record) if self.has_rest(record, key, depth) => return Some(record),
                _ => {
                    *missed = Some((leaf.handle(), version));
                    return None;
                }
            }
        }
    }

    /// Returns the result of [`OrderedIndex::find`]. Repeats the lookup until no node on the path
    /// changes meanwhile.
    #[cold]
    #[inline(never)]
    pub(super) fn find_patiently(&self, key: &[u64]) -> Found {
        self.find_place(key, &mut Place::default())
    }
}

/// Does the same as [`OrderedIndex::find_slices`], for a key of one word. The arguments and the
/// result are in registers, so the short path needs no stack.
#[inline(never)]
fn find_slice(root: Node, slice: u64, missed: &mut Missed) -> Option<RecordAt> {
    let (leaf, version, value) = look_at_once(root, slice)?;
    let record = Value::record(value);
    if record.is_none() {
        *missed = Some((leaf.handle(), version));
    }
    record
}

/// Looks a slice up in a layer. Returns the leaf that the slice belongs to, its version, and the
/// value word. Returns `None` if a node is locked or dead, or changes meanwhile, or if the leaf has
/// to be searched further.
#[cfg_attr(not(debug_assertions), inline(always))]
fn look_at_once(root: Node, slice: u64) -> Option<(Node, u64, u64)> {
    // The lock bit is ignored here. If the node was locked, the validation finds another version;
    // if it finds the same one, the node was unlocked without a change.
    let unlocked = |node: Node| node.version() & !LOCK;
    let (mut node, mut version) = (root, unlocked(root));
    while version & INNER != 0 {
        let child = node.child(node.rank(slice));
        Node::prefetch(child);
        // The version is validated by OI5, as in `descend`.
        if child == 0 || !node.is_still(version) {
            return None;
        }
        let child = Node::at(child);
        let child_version = unlocked(child);
        if !node.is_still(version) {
            return None;
        }
        (node, version) = (child, child_version);
    }
    if version & DEAD != 0 {
        return None;
    }
    let value = node.value_at_once(slice)?;
    node.is_still(version).then_some((node, version, value))
}
