//! The transactions that can still take part in a cycle, and the dependencies between them.
//!
//! A transaction that has no live predecessor and can get no new predecessor is on no cycle, now or
//! later. Such a transaction is *peeled* off, and each of its successors loses a predecessor. As in
//! Kahn's topological sort, a whole history is peeled in time linear in the number of its
//! dependencies. The transactions that are never peeled contain all cycles.

use crate::anomaly::Party;
use crate::graph::{Edge, Kind};

/// The number that stands for no node, no tie or no unit.
pub(super) const NONE: u32 = u32::MAX;

/// The greatest generation. One bit of a word stays free, for structures that keep many
/// generations.
pub(super) const GENERATION_MAX: u32 = u32::MAX >> 1;

/// A reference to a node that may have been peeled. The slot of a peeled node is used for another
/// node, with another generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeId {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// A transaction, or a moment between transactions.
#[derive(Debug)]
struct Node {
    party: Party,
    generation: u32,
    /// The number of edges from live nodes, plus the number of holds.
    predecessors: u32,
    /// The ties of the node. When the node has been peeled, the next node in the slot reuses their
    /// memory.
    ties: Vec<Tie>,
    moment: bool,
    /// Whether the node can get no new predecessors.
    closed: bool,
    live: bool,
}

/// An edge from a node, or a write of the node. A tie is removed when its node is peeled.
#[derive(Debug, Clone, Copy)]
struct Tie {
    /// The successor, or `NONE` if the tie is the node's write of `unit`.
    to: u32,
    unit: u32,
    kind: Kind,
}

/// A peeled node with more ties than this frees their memory.
const TIES_KEPT: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Live {
    nodes: Vec<Node>,
    free_nodes: Vec<u32>,
    /// The closed nodes without predecessors, which can be peeled.
    peelable: Vec<u32>,
    count: usize,
    pub(super) edges: u64,
}

impl Live {
    /// Returns the number of nodes.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn add(&mut self, party: Party, moment: bool) -> NodeId {
        self.count += 1;
        let node = |generation, ties| Node {
            party,
            generation,
            predecessors: 0,
            ties,
            moment,
            closed: false,
            live: true,
        };
        if let Some(slot) = self.free_nodes.pop() {
            let place = &mut self.nodes[slot as usize];
            let generation = place.generation;
            *place = node(generation, std::mem::take(&mut place.ties));
            return NodeId { slot, generation };
        }
        self.nodes.push(node(0, Vec::new()));
        NodeId { slot: (self.nodes.len() - 1) as u32, generation: 0 }
    }

    pub(super) fn is_live(&self, node: NodeId) -> bool {
        self.nodes[node.slot as usize].generation == node.generation
    }

    pub(super) fn party(&self, slot: u32) -> Party {
        self.nodes[slot as usize].party
    }

    /// Adds an edge by which `from` comes before `to`. Both nodes must be live. Does nothing if
    /// `from` equals `to`.
    pub(super) fn edge(&mut self, from: u32, to: u32, unit: u32, kind: Kind) {
        if from != to {
            self.edges += 1;
            self.nodes[to as usize].predecessors += 1;
            self.nodes[from as usize].ties.push(Tie { to, unit, kind });
        }
    }

    /// Records that a node wrote a unit.
    pub(super) fn wrote(&mut self, slot: u32, unit: u32) {
        self.nodes[slot as usize].ties.push(Tie { to: NONE, unit, kind: Kind::Ww });
    }

    /// Keeps a node from being peeled until [`release`](Self::release) has been called once for
    /// each call of `hold`.
    pub(super) fn hold(&mut self, slot: u32) {
        self.nodes[slot as usize].predecessors += 1;
    }

    pub(super) fn release(&mut self, slot: u32) {
        let node = &mut self.nodes[slot as usize];
        node.predecessors -= 1;
        if node.predecessors == 0 && node.closed {
            self.peelable.push(slot);
        }
    }

    /// Closes a node, which then gets no new predecessors.
    pub(super) fn close(&mut self, slot: u32) {
        let node = &mut self.nodes[slot as usize];
        node.closed = true;
        if node.predecessors == 0 {
            self.peelable.push(slot);
        }
    }

    /// Peels the nodes that can be peeled. Calls `wrote` with each unit that a peeled transaction
    /// wrote.
    pub(super) fn peel(&mut self, mut wrote: impl FnMut(u32, Party)) {
        while let Some(slot) = self.peelable.pop() {
            let node = &mut self.nodes[slot as usize];
            node.generation = node.generation.wrapping_add(1) & GENERATION_MAX;
            node.live = false;
            let party = node.party;
            let mut ties = std::mem::take(&mut node.ties);
            self.count -= 1;
            self.free_nodes.push(slot);
            for tie in ties.drain(..) {
                if tie.to == NONE {
                    wrote(tie.unit, party);
                } else {
                    self.release(tie.to);
                }
            }
            if ties.capacity() <= TIES_KEPT {
                self.nodes[slot as usize].ties = ties;
            }
        }
    }

    fn edges_from(&self, slot: u32) -> impl Iterator<Item = &Tie> {
        self.nodes[slot as usize].ties.iter().filter(|tie| tie.to != NONE)
    }

    /// Returns the nodes that would be left if all nodes were closed and peeled: the nodes on
    /// cycles and the nodes after them. Moments come last. Holds do not count. The graph is not
    /// changed.
    pub(super) fn knot(&self) -> Vec<u32> {
        let mut predecessors = vec![0; self.nodes.len()];
        let live = (0..self.nodes.len() as u32).filter(|slot| self.nodes[*slot as usize].live);
        for slot in live.clone() {
            self.edges_from(slot).for_each(|tie| predecessors[tie.to as usize] += 1);
        }
        let mut ready: Vec<u32> =
            live.clone().filter(|slot| predecessors[*slot as usize] == 0).collect();
        while let Some(slot) = ready.pop() {
            for tie in self.edges_from(slot) {
                predecessors[tie.to as usize] -= 1;
                if predecessors[tie.to as usize] == 0 {
                    ready.push(tie.to);
                }
            }
        }
        let mut knot: Vec<u32> = live.filter(|slot| predecessors[*slot as usize] > 0).collect();
        knot.sort_by_key(|slot| self.nodes[*slot as usize].moment);
        knot
    }

    /// Returns the number of transactions among `nodes`, and the edges between `nodes`. In these
    /// edges, a node's number is its place in `nodes`.
    pub(super) fn edges_among(&self, nodes: &[u32]) -> (u32, Vec<Edge>) {
        let mut number = vec![NONE; self.nodes.len()];
        (0..).zip(nodes).for_each(|(place, slot)| number[*slot as usize] = place);
        let transactions =
            nodes.iter().filter(|slot| !self.nodes[**slot as usize].moment).count() as u32;
        let mut edges = Vec::new();
        for (from, slot) in (0..).zip(nodes) {
            for tie in self.edges_from(*slot) {
                let to = number[tie.to as usize];
                if to != NONE {
                    edges.push(Edge { from, to, about: tie.unit, kind: tie.kind });
                }
            }
        }
        (transactions, edges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTY: Party = Party { session: 0, begun: 0, ended: 1, committed: true };

    #[test]
    fn closed_nodes_are_removed_after_their_predecessors() {
        let mut live = Live::default();
        let [one, two, three] = [(); 3].map(|()| live.add(PARTY, false));
        live.edge(one.slot, two.slot, 7, Kind::Ww);
        live.edge(two.slot, three.slot, 8, Kind::Wr);
        live.wrote(two.slot, 7);
        live.close(two.slot);
        live.peel(|_, _| panic!("nothing can go before the first"));
        live.close(one.slot);
        let mut units = Vec::new();
        live.peel(|unit, _| units.push(unit));
        assert_eq!((units, live.count()), (vec![7], 1));
        assert!(!live.is_live(one) && !live.is_live(two) && live.is_live(three));
        let four = live.add(PARTY, false);
        assert!(
            live.is_live(four) && !live.is_live(one) && !live.is_live(two),
            "a place taken again is another node"
        );
    }

    #[test]
    fn nodes_of_cycles_and_their_successors_stay() {
        let mut live = Live::default();
        let slots = [(); 4].map(|()| live.add(PARTY, false).slot);
        for (from, to) in [(0, 1), (1, 2), (2, 1), (2, 3)] {
            live.edge(slots[from], slots[to], 0, Kind::Rw);
        }
        assert_eq!(live.knot(), slots[1..]);
        slots.into_iter().for_each(|slot| live.close(slot));
        live.peel(|_, _| ());
        assert_eq!(live.count(), 3);
        let (transactions, edges) = live.edges_among(&live.knot());
        assert_eq!((transactions, edges.len()), (3, 3));
    }
}
