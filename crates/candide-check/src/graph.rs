//! Dependencies between transactions, and the worst cycle among them.
//!
//! A transaction is a number below [`Graph::transactions`]. Higher numbers are *moments*: nodes
//! without a transaction, in a chain. Edges through moments order the transactions that ended
//! before a moment before the transactions that began after it. With moments, the number of edges
//! for real time is proportional to the number of transactions. Without moments, the number of
//! edges would be proportional to the number of pairs of transactions.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::BitOr;

/// The reason why a first transaction comes before a second one, in every serial order that
/// explains the observations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The first wrote a version of a unit, and the second wrote the next version of that unit.
    Ww,
    /// The first wrote a version, and the second read that version.
    Wr,
    /// The first read a version of a unit, and the second wrote the next version of that unit.
    Rw,
    /// The first scanned a range and did not find a key, and the second wrote that key.
    Predicate,
    /// Both transactions belong to one session, and the second follows the first there.
    Session,
    /// The second began after the first had ended.
    RealTime,
}

impl Kind {
    /// Returns the set that contains only this kind.
    pub const fn alone(self) -> Kinds {
        Kinds(1 << self as u8)
    }
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// The set of all kinds.
    pub const ALL: Kinds = Kinds(u8::MAX);

    /// Returns whether the set contains `kind`.
    pub const fn contain(self, kind: Kind) -> bool {
        self.0 & kind.alone().0 != 0
    }
}

impl BitOr for Kinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The node that comes first.
    pub from: u32,
    /// The node that comes after it.
    pub to: u32,
    /// The unit of the dependency, as a number in the caller's tables.
    pub about: u32,
    /// The kind of the dependency.
    pub kind: Kind,
}

/// The number of edges that one search for a smallest cycle examines. After that, the search
/// returns the smallest cycle found so far.
///
/// A search from each node of a strongly connected component takes time in proportion to the
/// product of the numbers of nodes and edges. A thousand nodes with ten edges each stay within the
/// limit. A component that exceeds the limit has many cycles, and then a short cycle serves as well
/// as a smallest one.
const EFFORT: usize = 10_000_000;

/// Edges, sorted by the node that they leave.
#[derive(Debug, Clone)]
pub struct Graph {
    transactions: u32,
    /// The edges from node `n` are those at `starts[n]..starts[n + 1]`.
    starts: Vec<usize>,
    edges: Vec<Edge>,
}

impl Graph {
    /// Creates a graph. Its nodes are `transactions` transactions, and the moments: the higher
    /// numbers in `edges`.
    pub fn new(transactions: u32, mut edges: Vec<Edge>) -> Self {
        let named = edges.iter().map(|edge| edge.from.max(edge.to) + 1).max().unwrap_or(0);
        edges.sort_by_key(|edge| edge.from);
        let mut starts = vec![0; transactions.max(named) as usize + 1];
        for edge in &edges {
            starts[edge.from as usize + 1] += 1;
        }
        for node in 1..starts.len() {
            starts[node] += starts[node - 1];
        }
        Self { transactions, starts, edges }
    }

    /// Returns the number of nodes that are transactions.
    pub fn transactions(&self) -> u32 {
        self.transactions
    }

    /// Returns the number of nodes, moments included.
    pub fn nodes(&self) -> u32 {
        (self.starts.len() - 1) as u32
    }

    /// Returns all edges, sorted by the node that they leave.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns the edges that leave a node.
    pub fn edges_from(&self, node: u32) -> &[Edge] {
        &self.edges[self.starts[node as usize]..self.starts[node as usize + 1]]
    }

    /// Returns all edges.
    pub(crate) fn into_edges(self) -> Vec<Edge> {
        self.edges
    }

    /// Returns the graph with every edge turned round.
    pub(crate) fn reversed(&self) -> Graph {
        let turned = self.edges.iter().map(|edge| Edge { from: edge.to, to: edge.from, ..*edge });
        Graph::new(self.nodes(), turned.collect())
    }

    /// Returns the nodes in an order in which every edge leads onwards; nodes on a cycle, and those
    /// that only a cycle leads to, are missing. If several nodes may come next, the node with the
    /// lowest `rank` does.
    pub(crate) fn sorted(&self, rank: impl Fn(u32) -> u64) -> Vec<u32> {
        let mut waits = vec![0_u32; self.nodes() as usize];
        self.edges.iter().for_each(|edge| waits[edge.to as usize] += 1);
        let first = (0..self.nodes()).filter(|node| waits[*node as usize] == 0);
        let mut ready: BinaryHeap<_> = first.map(|node| Reverse((rank(node), node))).collect();
        let mut sorted = Vec::with_capacity(waits.len());
        while let Some(Reverse((_, node))) = ready.pop() {
            sorted.push(node);
            for edge in self.edges_from(node) {
                waits[edge.to as usize] -= 1;
                if waits[edge.to as usize] == 0 {
                    ready.push(Reverse((rank(edge.to), edge.to)));
                }
            }
        }
        sorted
    }

    /// Returns the strongly connected components that have more than one node, in linear time. Only
    /// edges of `kinds` count.
    pub fn components(&self, kinds: Kinds) -> Vec<Vec<u32>> {
        Tarjan::new(self, kinds).run()
    }

    /// Returns the most informative cycle; `None` if the graph has no cycle. The cycle is
    /// contracted to transactions: each edge leads to the transaction where the next edge starts,
    /// and the last edge leads to the start of the first.
    ///
    /// The worst sort of cycle has no anti-dependency. Next come cycles with one anti-dependency,
    /// and then cycles with several. Predicates, sessions and real time are considered only if
    /// there is no cycle without them. The result is a smallest cycle of the worst sort. But if a
    /// strongly connected component is so large that the search is cut off, the result may have
    /// several anti-dependencies although a cycle with one exists.
    pub fn worst_cycle(&self) -> Option<Vec<Edge>> {
        let dependencies = Kind::Ww.alone() | Kind::Wr.alone();
        let items = dependencies | Kind::Rw.alone();
        let data = items | Kind::Predicate.alone();
        let sessions = data | Kind::Session.alone();
        // For each sort of cycle: the kind of its first edge, and the kinds of the edges by which
        // it returns.
        let sorts = [
            (Kind::Ww, Kind::Ww.alone()),
            (Kind::Wr, dependencies),
            (Kind::Rw, dependencies),
            (Kind::Rw, items),
            (Kind::Predicate, dependencies),
            (Kind::Predicate, data),
            (Kind::Session, sessions),
            (Kind::RealTime, sessions | Kind::RealTime.alone()),
        ];
        if self.components(sorts[sorts.len() - 1].1).is_empty() {
            return None;
        }
        sorts.into_iter().find_map(|(first, back)| self.smallest_cycle(first, back))
    }

    /// Returns the smallest cycle that leaves some transaction by an edge of kind `first` and
    /// returns along edges of the kinds `back`. Returns `None` if no such cycle was found.
    ///
    /// In a strongly connected component that is too large for a full search, the cycle may be
    /// longer than the smallest. If `back` does not include `first`, `None` may also mean that the
    /// search was cut off there.
    pub fn smallest_cycle(&self, first: Kind, back: Kinds) -> Option<Vec<Edge>> {
        let mut search = Search::new(self);
        let mut best: Option<Vec<Edge>> = None;
        let mut component = vec![0; self.nodes() as usize];
        let components = self.components(first.alone() | back);
        for (number, members) in (1..).zip(&components) {
            members.iter().for_each(|node| component[*node as usize] = number);
        }
        for start in components.into_iter().flatten().filter(|node| *node < self.transactions) {
            let length_max = best.as_ref().map_or(u32::MAX, |cycle| cycle.len() as u32 - 1);
            // If `back` contains `first`, the search finds a cycle from the first start that has an
            // edge of kind `first`. Otherwise possibly no start finds a cycle, and the search has
            // to end then, too.
            let settled = best.is_some() || !back.contain(first);
            if length_max < 2 || search.looked_at > EFFORT && settled {
                break;
            }
            if let Some(cycle) = search.from(start, first, back, &component, length_max) {
                best = Some(cycle);
            }
        }
        best
    }
}

/// Tarjan's algorithm. The algorithm uses an explicit stack, since a path can have as many nodes as
/// the history.
struct Tarjan<'g> {
    graph: &'g Graph,
    kinds: Kinds,
    /// The time at which each node was first visited, from 1; 0 before the first visit.
    met: Vec<u32>,
    /// The earliest node on the stack that each node can reach; `u32::MAX` once the node's
    /// component is complete.
    low: Vec<u32>,
    clock: u32,
    stack: Vec<u32>,
    components: Vec<Vec<u32>>,
}

impl<'g> Tarjan<'g> {
    fn new(graph: &'g Graph, kinds: Kinds) -> Self {
        let nodes = graph.nodes() as usize;
        let (met, low) = (vec![0; nodes], vec![0; nodes]);
        Self { graph, kinds, met, low, clock: 0, stack: Vec::new(), components: Vec::new() }
    }

    fn run(mut self) -> Vec<Vec<u32>> {
        for root in 0..self.graph.nodes() {
            if self.met[root as usize] == 0 {
                self.explore(root);
            }
        }
        self.components
    }

    fn meet(&mut self, node: u32) {
        self.clock += 1;
        self.met[node as usize] = self.clock;
        self.low[node as usize] = self.clock;
        self.stack.push(node);
    }

    fn explore(&mut self, root: u32) {
        self.meet(root);
        // The path from the root. Each node has the number of its next edge.
        let mut path = vec![(root, self.graph.starts[root as usize])];
        while let Some((node, next)) = path.last_mut() {
            let node = *node as usize;
            if *next < self.graph.starts[node + 1] {
                let edge = self.graph.edges[*next];
                *next += 1;
                let to = edge.to as usize;
                if !self.kinds.contain(edge.kind) {
                    continue;
                }
                if self.met[to] == 0 {
                    self.meet(edge.to);
                    path.push((edge.to, self.graph.starts[to]));
                } else if self.low[to] != u32::MAX {
                    self.low[node] = self.low[node].min(self.met[to]);
                }
            } else {
                path.pop();
                if self.low[node] == self.met[node] {
                    self.complete(node as u32);
                } else if let Some((parent, _)) = path.last() {
                    let parent = *parent as usize;
                    self.low[parent] = self.low[parent].min(self.low[node]);
                }
            }
        }
    }

    /// Pops the component of `node` from the stack. `node` is the node of the component that was
    /// visited first.
    fn complete(&mut self, node: u32) {
        let first = self
            .stack
            .iter()
            .rposition(|member| *member == node)
            .expect("a node stays until it is complete");
        self.stack[first..].iter().for_each(|member| self.low[*member as usize] = u32::MAX);
        let members = self.stack.split_off(first);
        if members.len() > 1 {
            self.components.push(members);
        }
    }
}

/// Breadth-first searches for the shortest way from a node back to itself.
struct Search<'g> {
    graph: &'g Graph,
    /// The number of the search that has set a node's `length` and `via`, for each node.
    search: Vec<u32>,
    /// The number of transactions on the shortest way to each node, including that node.
    length: Vec<u32>,
    /// The last edge of the shortest way to each node.
    via: Vec<Option<Edge>>,
    searches: u32,
    looked_at: usize,
}

impl<'g> Search<'g> {
    fn new(graph: &'g Graph) -> Self {
        let nodes = graph.nodes() as usize;
        let (search, length, via) = (vec![0; nodes], vec![0; nodes], vec![None; nodes]);
        Self { graph, search, length, via, searches: 0, looked_at: 0 }
    }

    /// Returns the smallest cycle through `start`; `None` if no cycle through `start` has at most
    /// `length_max` transactions.
    fn from(
        &mut self,
        start: u32,
        first: Kind,
        back: Kinds,
        component: &[u32],
        length_max: u32,
    ) -> Option<Vec<Edge>> {
        self.searches += 1;
        // Moments add nothing to the length, and are pushed to the front of the queue. So lengths
        // never decrease along the queue.
        let mut queue = VecDeque::from([(start, 0)]);
        while let Some((node, length)) = queue.pop_front() {
            let beginning = node == start && length == 0;
            let kinds = if beginning { first.alone() } else { back };
            let outdated = !beginning && self.length[node as usize] < length;
            if outdated || length >= length_max {
                continue;
            }
            for edge in self.graph.edges_from(node) {
                self.looked_at += 1;
                let to = edge.to as usize;
                let moment = edge.to >= self.graph.transactions;
                let length = length + u32::from(!moment);
                let known = self.search[to] == self.searches && self.length[to] <= length;
                if known || !kinds.contain(edge.kind) || component[to] != component[start as usize]
                {
                    continue;
                }
                (self.search[to], self.length[to], self.via[to]) =
                    (self.searches, length, Some(*edge));
                if edge.to == start {
                    return Some(self.way(start));
                }
                if moment {
                    queue.push_front((edge.to, length))
                } else {
                    queue.push_back((edge.to, length))
                }
            }
        }
        None
    }

    /// Returns the cycle just found, without its moments.
    fn way(&self, start: u32) -> Vec<Edge> {
        let mut cycle: Vec<Edge> = Vec::new();
        let mut node = start;
        loop {
            let edge = self.via[node as usize].expect("every node on the way was entered");
            match cycle.last_mut() {
                // The edge out of the last moment stands for the whole way through the moments.
                Some(later) if later.from >= self.graph.transactions => later.from = edge.from,
                _ => cycle.push(edge),
            }
            node = edge.from;
            if node == start {
                break;
            }
        }
        cycle.reverse();
        cycle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(transactions: u32, edges: &[(u32, u32, Kind)]) -> Graph {
        let edges =
            edges.iter().map(|&(from, to, kind)| Edge { from, to, about: 0, kind }).collect();
        Graph::new(transactions, edges)
    }

    fn ways(cycle: Option<Vec<Edge>>) -> Vec<(u32, u32, Kind)> {
        cycle.unwrap_or_default().iter().map(|edge| (edge.from, edge.to, edge.kind)).collect()
    }

    #[test]
    fn a_graph_in_a_serial_order_has_no_cycle() {
        let order = graph(
            4,
            &[(0, 1, Kind::Ww), (1, 2, Kind::Wr), (0, 3, Kind::Rw), (3, 2, Kind::RealTime)],
        );
        assert_eq!(order.worst_cycle(), None);
        assert_eq!(graph(0, &[]).worst_cycle(), None);
    }

    #[test]
    fn the_smallest_cycle_is_found() {
        let edges =
            [(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (4, 2)].map(|(from, to)| (from, to, Kind::Ww));
        let cycle = ways(graph(5, &edges).worst_cycle());
        assert_eq!(cycle.len(), 2);
        assert!(cycle.contains(&(2, 4, Kind::Ww)) && cycle.contains(&(4, 2, Kind::Ww)));
    }

    #[test]
    fn a_cycle_of_a_worse_anomaly_is_reported_before_a_smaller_one() {
        let edges = [
            (0, 1, Kind::Rw),
            (1, 0, Kind::Rw),
            (2, 3, Kind::Wr),
            (3, 4, Kind::Ww),
            (4, 2, Kind::Ww),
            (4, 0, Kind::Predicate),
        ];
        assert_eq!(ways(graph(5, &edges).worst_cycle()).len(), 3);
    }

    #[test]
    fn nodes_of_moments_are_left_out_of_reported_cycles() {
        // Transaction 0 ended before moment 3, and transaction 1 began after moment 4.
        let time = Kind::RealTime;
        let edges = [
            (0, 3, time),
            (3, 4, time),
            (4, 1, time),
            (1, 2, Kind::Rw),
            (2, 0, Kind::Ww),
            (3, 2, time),
        ];
        let cycle = ways(graph(3, &edges).worst_cycle());
        assert_eq!(
            cycle,
            [(0, 2, time), (2, 0, Kind::Ww)],
            "the shorter way is through moment 3 to transaction 2"
        );
        let cycle = ways(graph(3, &edges[..5]).worst_cycle());
        assert_eq!(cycle, [(0, 1, time), (1, 2, Kind::Rw), (2, 0, Kind::Ww)]);
    }

    #[test]
    fn a_path_of_any_length_is_searched_without_recursion() {
        let count = 1_000_000;
        let edges: Vec<_> = (0..count).map(|node| (node, (node + 1) % count, Kind::Ww)).collect();
        assert_eq!(graph(count, &edges).components(Kind::Ww.alone()).len(), 1);
        assert_eq!(graph(count, &edges[1..]).components(Kind::Ww.alone()).len(), 0);
    }
}
