//! From keys to records.

mod hash;
mod ordered;
mod table_index;

pub use hash::NodeAt;
pub(crate) use hash::{Found, HashIndex, Linked, Retire, Size};
pub use ordered::Direction;
pub(crate) use ordered::{OrderedIndex, Place, Start};
pub(crate) use table_index::{Advance, Cursor, Supplies, TableIndex};

/// A leaf that an insert has divided, or a bucket that it has moved: whoever observed `node` at version `before` now needs all
/// successors, which cover the same keys.
#[derive(Debug)]
pub struct NodeChange {
    pub(crate) node: NodeAt,
    pub(crate) before: u64,
    pub(crate) successors: [(NodeAt, u64); 2],
    /// Those beyond two, which are rare.
    pub(crate) further: Vec<(NodeAt, u64)>,
}

impl NodeChange {
    /// Replaces the node by its successors in an attempt's list of observations, whose parts `parts` points at.
    pub(crate) fn replace<T: Copy>(&self, observed: &mut Vec<T>, parts: impl Fn(&mut T) -> (&mut NodeAt, &mut u64)) {
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
