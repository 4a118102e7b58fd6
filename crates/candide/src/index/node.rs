//! Nodes, which are the units by which transactions observe absent keys; and the results of index
//! operations.

use crate::memory::{Block, Cache};
use crate::record::RecordAt;
use crate::sync::{AtomicU64, Ordering};
use std::fmt::Debug;

/// The number of words of a bucket and of an overflow line: one cache line.
pub(crate) const LINE_WORDS: usize = 8;

/// The word of a line that links to its overflow line.
pub(crate) const OVERFLOW: usize = LINE_WORDS - 1;

/// The flags of a version word, in both kinds of index.
pub(crate) const LOCK: u64 = 1;

pub(crate) const MOVED: u64 = 2;

/// A bucket of a hash index or a leaf of an ordered index. A node is the unit by which a
/// transaction observes an absent key.
///
/// Like a [`RecordAt`], a handle is valid while its holder stays pinned, because arrays and leaves
/// are retired and not freed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeAt(pub(super) Block);

impl NodeAt {
    /// Returns a handle on a block of the ordered index, which is larger than a bucket and begins
    /// like one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn new(block: Block) -> NodeAt {
        NodeAt(block)
    }

    /// Returns the version word. The word holds the version, the lock bit, and whether the bucket
    /// has moved or the leaf is dead.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.word(0).load(Ordering::Acquire) // E9
    }

    /// Returns whether the node has `version`, which is unlocked. If so, a thread that locks the
    /// node later sees what the caller has done before.
    pub(crate) fn confirm_version(&self, version: u64) -> bool {
        let word = self.word(0);
        // Release pairs with the Acquire of an exchange that locks the node (E30).
        word.compare_exchange(version, version, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Returns the overflow line that this line links to; `None` if this line is the last.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn overflow(&self) -> Option<NodeAt> {
        Block::at(self.word(OVERFLOW).load(Ordering::Acquire)).map(NodeAt) // E4
    }

    #[inline]
    pub(crate) fn address(self) -> u64 {
        self.0.address()
    }

    /// Returns word `index` of the words that the protocol keeps in the node.
    #[inline]
    pub(crate) fn node_word(&self, index: usize) -> &AtomicU64 {
        self.word(1 + index)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < LINE_WORDS);
        // SAFETY: a handle is made for a whole bucket of an array, or for a whole leaf. The array
        // or leaf outlives the holder's pin.
        unsafe { self.0.word(index) }
    }

    /// Returns whether `version`, which was loaded from a bucket, shows that the bucket is not
    /// locked and has not been moved.
    #[inline]
    pub(crate) fn is_stable(version: u64) -> bool {
        version & (LOCK | MOVED) == 0
    }
}

/// The result of a lookup.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Found {
    Record(RecordAt),
    /// The key has no record, and will have none as long as `node` keeps version `version`.
    Nothing {
        node: NodeAt,
        version: u64,
    },
}

/// The result of an attempt to link a record.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Linked {
    /// The key has a record already.
    Existing(RecordAt),
    /// The new record is linked. Linking it has raised the version of `node` from `before` to
    /// `after`.
    New { node: NodeAt, before: u64, after: u64 },
}

/// Memory that the index no longer uses after growth, or after the removal of a leaf or of an
/// overflow line. The memory is freed once no thread can reach it.
#[derive(Debug)]
pub(crate) enum Retire {
    /// A node of an ordered index, or an overflow line.
    Block(Block),
    /// A whole array. All of its buckets have been moved.
    Array(Box<dyn Debug + Send>),
}

/// The parts of a session that the linking of a record reads or changes.
pub(crate) struct Supplies<'a> {
    pub(crate) caches: &'a mut Vec<Option<Cache>>,
    pub(crate) retired: &'a mut Vec<Retire>,
    /// Nodes that the operation has split or moved.
    pub(crate) changes: &'a mut Vec<NodeChange>,
}

/// The result of advancing a cursor by one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advance {
    /// The next record in the range. The record's cells show whether the record is absent or dead.
    Next(RecordAt),
    /// The range has no more records, and the nodes that prove this have been observed.
    End,
    /// An observed node has changed, and will not change back, so the transaction will not
    /// validate. A caller without a transaction can continue: the cursor has skipped no record that
    /// is still linked.
    Doomed,
}

/// The split of a leaf, or the move of a bucket, by an insert. A transaction that observed `node`
/// at version `before` must now observe all successors, which together cover the same keys.
#[derive(Debug)]
pub struct NodeChange {
    pub(crate) node: NodeAt,
    pub(crate) before: u64,
    pub(crate) successors: [(NodeAt, u64); 2],
    /// The further successors, if the node has more than two. This is rare.
    pub(crate) further: Vec<(NodeAt, u64)>,
}

impl NodeChange {
    /// Replaces the node by its successors in `observed`, an attempt's list of observations.
    /// `parts` returns references to the node and the version of an observation. Of equal
    /// observations only one is kept. Otherwise each of them would become several observations, and
    /// every further split would multiply their number again.
    pub(crate) fn replace<T: Copy + PartialEq>(
        &self,
        observed: &mut Vec<T>,
        parts: impl Fn(&mut T) -> (&mut NodeAt, &mut u64),
    ) {
        let mut first = None;
        observed.retain_mut(|read| {
            let (node, version) = parts(read);
            if node.address() != self.node.address() || *version != self.before {
                return true;
            }
            match first {
                None => {
                    first = Some(*read);
                    true
                }
                Some(first) => first != *read,
            }
        });
        for index in 0..observed.len() {
            let (node, version) = parts(&mut observed[index]);
            if node.address() != self.node.address() || *version != self.before {
                continue;
            }
            let [first, second] = self.successors;
            (*node, *version) = first;
            for successor in std::iter::once(&second).chain(&self.further) {
                let mut added = observed[index];
                let (node, version) = parts(&mut added);
                (*node, *version) = *successor;
                observed.push(added);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Block;

    #[test]
    fn splitting_a_node_divides_one_of_equal_observations() {
        let [old, left, right, other] =
            [64, 128, 192, 256].map(|address| NodeAt::new(Block::at(address).unwrap()));
        let change = NodeChange {
            node: old,
            before: 7,
            successors: [(left, 8), (right, 1)],
            further: Vec::new(),
        };
        let mut observed = vec![
            (old, 7, 'a'),
            (other, 7, 'a'),
            (old, 7, 'a'),
            (old, 6, 'a'),
            (old, 7, 'b'),
            (old, 7, 'a'),
        ];
        change.replace(&mut observed, |(node, version, _)| (node, version));
        let expected = [
            (left, 8, 'a'),
            (other, 7, 'a'),
            (old, 6, 'a'),
            (left, 8, 'b'),
            (right, 1, 'a'),
            (right, 1, 'b'),
        ];
        assert!(observed == expected, "{observed:?}");
    }
}
