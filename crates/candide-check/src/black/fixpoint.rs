//! The order of writes of a register as far as it follows from the order of transactions, and that
//! order as far as it follows from the order of writes.
//!
//! Let R be a transaction that read the value of W in some register, and V another writer of that
//! register. V is not between W and R. So if V comes before R, V comes before W; and if W comes
//! before V, R comes before V. Each conclusion is an edge, from which others may follow.
//!
//! For 64 writers of a register at a time, one pass over the nodes, in an order in which all edges
//! lead onwards, finds which of these writers come before each transaction that accessed the
//! register.

use super::accesses::Accesses;
use super::inference::{Inference, Place, Values};
use crate::anomaly::Violation;
use crate::graph::{Graph, Kind};
use std::collections::HashSet;

/// The number of steps before the rule is given up. Looking at an edge is a step.
pub(super) const STEPS_MAX: usize = 200_000_000;
/// The number of steps for which a pair of writes in no order counts, and each transaction that
/// read one of the two: they are kept, and memory is bounded, too.
const STEPS_PER_PAIR: usize = 16;

/// The state of the search for all edges that follow.
pub(super) struct Fixpoint {
    /// The edges, among which there is no cycle.
    pub(super) graph: Graph,
    /// The pairs of values of one register whose writers are in no order.
    pub(super) open: Vec<(usize, usize)>,
}

/// Adds all edges that follow from the edges of `graph`. Returns `None` if that takes more than
/// [`STEPS_MAX`] steps.
///
/// # Errors
/// A cycle.
pub(super) fn complete<O>(
    inference: &mut Inference<'_, O>,
    mut graph: Graph,
    accesses: &Accesses,
    rank: impl Fn(u32) -> u64,
) -> Result<Option<Fixpoint>, Violation> {
    let mut known: HashSet<(u32, u32)> =
        graph.edges().iter().map(|edge| (edge.from, edge.to)).collect();
    let mut steps = 0;
    loop {
        let mut pass = Pass::new(&graph, graph.sorted(&rank), accesses, &mut known, steps);
        for register in 0..accesses.registers.len() {
            pass.look_at(register);
            if pass.steps > STEPS_MAX {
                return Ok(None);
            }
        }
        let Pass { found, open, steps: taken, .. } = pass;
        if found.is_empty() {
            return Ok(Some(Fixpoint { graph, open }));
        }
        steps = taken;
        for Found { from, to, kind, values, since } in found {
            inference.derive(from, to, kind, values, since);
        }
        graph = inference.acyclic(graph.into_edges())?;
    }
}

/// An edge that follows from other edges.
struct Found {
    from: Place,
    to: Place,
    kind: Kind,
    values: Values,
    since: Place,
}

/// One pass over all registers.
struct Pass<'p> {
    graph: &'p Graph,
    accesses: &'p Accesses,
    /// The nodes in an order in which all edges lead onwards.
    sorted: Vec<u32>,
    /// For each node, its position in `sorted`.
    position: Vec<u32>,
    /// For each node, the writers that come before it, of the 64 in question.
    before: Vec<u64>,
    /// The edges that are known, by their ends.
    known: &'p mut HashSet<(u32, u32)>,
    found: Vec<Found>,
    open: Vec<(usize, usize)>,
    steps: usize,
}

/// An access to the register in question: a node's position, whether it wrote, and the value.
type Access = (u32, bool, usize);

impl<'p> Pass<'p> {
    fn new(
        graph: &'p Graph,
        sorted: Vec<u32>,
        accesses: &'p Accesses,
        known: &'p mut HashSet<(u32, u32)>,
        steps: usize,
    ) -> Pass<'p> {
        let mut position = vec![0; sorted.len()];
        (0..).zip(&sorted).for_each(|(place, node)| position[*node as usize] = place);
        let before = vec![0; sorted.len()];
        let (found, open) = (Vec::new(), Vec::new());
        Pass { graph, accesses, sorted, position, before, known, found, open, steps }
    }

    /// Finds the edges that follow from the accesses to one register.
    fn look_at(&mut self, register: usize) {
        let mut accesses: Vec<Access> = Vec::new();
        for value in self.accesses.registers[register].clone() {
            let written = &self.accesses.values[value];
            accesses.push((self.position[written.writer as usize], true, value));
            let readers = written.readers.iter();
            accesses.extend(readers.map(|node| (self.position[*node as usize], false, value)));
        }
        // A transaction that read and wrote is a reader first.
        accesses.sort_unstable();
        let writes = |access: &&Access| access.1;
        let writers: Vec<usize> = accesses.iter().filter(writes).map(|access| access.2).collect();
        for members in writers.chunks(u64::BITS as usize) {
            self.look_at_members(members, &accesses);
            if self.steps > STEPS_MAX {
                return;
            }
        }
    }

    /// Finds the edges that follow from the order of `members`, some writers of a register, among
    /// all `accesses` to it.
    fn look_at_members(&mut self, members: &[usize], accesses: &[Access]) {
        let place = |pass: &Self, value: usize| {
            pass.position[pass.accesses.values[value].writer as usize] as usize
        };
        let first = place(self, members[0]);
        let last = accesses[accesses.len() - 1].0 as usize;
        self.sorted[first..=last].iter().for_each(|node| self.before[*node as usize] = 0);
        let mut accesses =
            accesses.iter().skip_while(|access| (access.0 as usize) < first).peekable();
        let mut own = members.iter().zip(0..).peekable();
        for position in first..=last {
            let node = self.sorted[position];
            while let Some(&(_, wrote, value)) =
                accesses.next_if(|access| access.0 as usize == position)
            {
                if wrote {
                    self.follow_writes(node, value, members);
                } else {
                    self.follow_read(node, value, members, first);
                }
            }
            let mut leading = self.before[node as usize];
            if let Some((_, bit)) = own.next_if(|(value, _)| place(self, **value) == position) {
                leading |= 1_u64 << bit;
            }
            if leading != 0 {
                let edges = self.graph.edges_from(node);
                self.steps += edges.len();
                for edge in edges {
                    self.before[edge.to as usize] |= leading;
                }
            }
        }
    }

    /// Concludes from the writers before `next`, which wrote `value`: those that read the latest of
    /// them come before `next`, too.
    fn follow_writes(&mut self, next: u32, value: usize, members: &[usize]) {
        let accesses = self.accesses;
        let before = self.before[next as usize];
        for earlier in self.latest(before, members) {
            let written = &accesses.values[earlier];
            self.steps += written.readers.len();
            for &reader in written.readers.iter().filter(|reader| **reader != next) {
                let (one, other) = (Some(written.value), Some(accesses.values[value].value));
                let values = Values { key: written.key, before: one, after: other };
                self.add(reader, next, Kind::Rw, values, written.writer);
            }
        }
        for (&other, bit) in members.iter().zip(0..) {
            let writer = accesses.values[other].writer;
            if self.position[writer as usize] >= self.position[next as usize] {
                break;
            }
            if before & 1 << bit == 0 {
                let readers = [other, value].map(|value| accesses.values[value].readers.len());
                self.steps += STEPS_PER_PAIR * (1 + readers[0] + readers[1]);
                self.open.push((other, value));
            }
        }
    }

    /// Concludes from the writers before `reader`, which read `value`: they come before the writer
    /// of `value`, too. `first` is the position of the first member.
    fn follow_read(&mut self, reader: u32, value: usize, members: &[usize], first: usize) {
        let accesses = self.accesses;
        let written = &accesses.values[value];
        let writer = written.writer as usize;
        let known = match (self.position[writer] as usize) < first {
            true => 0,
            false => self.before[writer],
        };
        let own = members.iter().position(|member| *member == value).map_or(0, |bit| 1 << bit);
        let new = self.before[reader as usize] & !known & !own;
        for earlier in self.latest(new, members) {
            let other = &accesses.values[earlier];
            let (one, after) = (Some(other.value), Some(written.value));
            let values = Values { key: written.key, before: one, after };
            self.add(other.writer, written.writer, Kind::Ww, values, reader);
        }
        if self.position[writer] as usize >= first {
            self.before[writer] |= new;
        }
    }

    /// Returns the members of a set that come before no other member of the set.
    fn latest(&self, set: u64, members: &[usize]) -> Vec<usize> {
        let of = |set: u64| {
            members.iter().zip(0..).filter(move |(_, bit)| set & 1 << bit != 0).map(|pair| *pair.0)
        };
        let writer = |value: usize| self.accesses.values[value].writer as usize;
        let earlier = of(set).fold(0, |earlier, value| earlier | self.before[writer(value)]);
        of(set & !earlier).collect()
    }

    fn add(&mut self, from: Place, to: Place, kind: Kind, values: Values, since: Place) {
        if self.known.insert((from, to)) {
            self.found.push(Found { from, to, kind, values, since });
        }
    }
}
