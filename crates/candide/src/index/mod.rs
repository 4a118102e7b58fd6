//! From keys to records.

mod deleted_index;
mod hash;
mod ordered;
mod table_index;

pub(crate) use deleted_index::DeletedIndex;
pub use hash::NodeAt;
pub(crate) use hash::{Found, HashIndex, Linked, Retire, Size};
pub use ordered::Direction;
pub(crate) use ordered::{OrderedIndex, Place, Start};
pub(crate) use table_index::{Advance, Cursor, Supplies, TableIndex};

/// A leaf that an insert has divided, or a bucket that it has moved: whoever observed `node` at
/// version `before` now needs all successors, which cover the same keys.
#[derive(Debug)]
pub struct NodeChange {
    pub(crate) node: NodeAt,
    pub(crate) before: u64,
    pub(crate) successors: [(NodeAt, u64); 2],
    /// Those beyond two, which are rare.
    pub(crate) further: Vec<(NodeAt, u64)>,
}

impl NodeChange {
    /// Replaces the node by its successors in an attempt's list of observations, whose parts
    /// `parts` points at. Of equal observations one stays: each would become several, and these
    /// more with every further division.
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
    fn of_equal_observations_one_is_divided() {
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
