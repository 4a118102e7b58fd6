//! AD-trees: counts of the records in which some variables have some values, for all variables and
//! values (A. Moore and M. S. Lee, *Cached Sufficient Statistics for Efficient Machine Learning
//! with Large Datasets*, JAIR 8, 1998).
//!
//! A node stands for the records in which some variables have certain values. For each later
//! variable it has a node of those records in which that has its rarer value; counts of the more
//! common value are differences (section 3 of the paper). Nodes of few records have a list of them
//! instead (section 4).

/// A set of variables, or their values: a bit for each.
pub(super) type Bits = u32;

/// A node.
enum Node {
    /// A list of the records.
    Few(Box<[Bits]>),
    /// The number of records, and a part for each variable from some one on.
    Many(u32, Box<[Part]>),
}

/// The records of a node, by the value of one variable.
struct Part {
    /// The value that fewer records have.
    rarer: bool,
    /// The node of these records.
    node: Node,
}

/// An AD-tree.
pub(super) struct AdTree(Node);

impl AdTree {
    /// Builds the tree of the records of some variables.
    pub(super) fn build(records: Vec<Bits>, variables: u32) -> AdTree {
        let few = (records.len() / 16).max(8);
        AdTree(build(records, 0, variables, few))
    }

    /// Returns how many records have which values of the variables in the set: at the index whose
    /// bits are the values, of which the first variable's is the highest.
    pub(super) fn counts(&self, variables: Bits) -> Vec<u32> {
        let mut counts = vec![0; 1 << variables.count_ones()];
        fill(&self.0, 0, variables, &mut counts);
        counts
    }
}

fn build(records: Vec<Bits>, first: u32, variables: u32, few: usize) -> Node {
    if records.len() <= few {
        return Node::Few(records.into());
    }
    let part = |variable: u32| {
        let has = |value: bool| {
            let records =
                records.iter().filter(move |&&record| (record >> variable & 1 == 1) == value);
            records.copied()
        };
        let rarer = has(true).count() * 2 <= records.len();
        Part { rarer, node: build(has(rarer).collect(), variable + 1, variables, few) }
    };
    Node::Many(records.len() as u32, (first..variables).map(part).collect())
}

/// Sets `counts` to those of a node, which has parts from the variable `first` on.
fn fill(node: &Node, first: u32, variables: Bits, counts: &mut [u32]) {
    match node {
        Node::Few(records) => {
            counts.fill(0);
            records.iter().for_each(|&record| counts[index(record, variables)] += 1);
        }
        Node::Many(all, _) if variables == 0 => counts[0] = *all,
        Node::Many(_, parts) => {
            let (variable, rest) = (variables.trailing_zeros(), variables & (variables - 1));
            let Part { rarer, node: rare } = &parts[(variable - first) as usize];
            let (of_false, of_true) = counts.split_at_mut(counts.len() / 2);
            let (rare_counts, others) =
                if *rarer { (of_true, of_false) } else { (of_false, of_true) };
            fill(rare, variable + 1, rest, rare_counts);
            fill(node, first, rest, others);
            others.iter_mut().zip(rare_counts).for_each(|(other, rare)| *other -= *rare);
        }
    }
}

/// Returns the values of some variables, of which the first one's is the highest bit.
fn index(record: Bits, mut variables: Bits) -> usize {
    let mut index = 0;
    while variables != 0 {
        index = index << 1 | (record >> variables.trailing_zeros() & 1) as usize;
        variables &= variables - 1;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_records() {
        let mut rng = fastrand::Rng::with_seed(5);
        let records: Vec<Bits> =
            (0..500).map(|_| rng.u32(..256) & rng.u32(..256) | rng.u32(..16)).collect();
        let tree = AdTree::build(records.clone(), 8);
        for variables in 0..256u32 {
            let mut counts = vec![0; 1 << variables.count_ones()];
            records.iter().for_each(|&record| counts[index(record, variables)] += 1);
            assert_eq!(tree.counts(variables), counts, "{variables:b}");
        }
        assert_eq!(index(0b100, 0b101), 0b01);
        assert!(matches!(tree.0, Node::Many(500, _)));
        assert_eq!(AdTree::build(Vec::new(), 3).counts(0b10), [0, 0]);
    }
}
