//! A search for a serial order of transactions on registers: it places one transaction after
//! another, and turns back where none can follow.
//!
//! A transaction can be placed if all transactions are placed that an edge leads from, and no
//! transaction that is left has read a value that this one would overwrite. So each read finds the
//! value that it returned.
//!
//! * If no transaction that is left has read what the next one writes, nothing is lost by placing
//!   it now: take any order of those that are left, and move this one to the front. The transaction
//!   overwrites nothing that the others read, and they read nothing that it writes. So only the
//!   other transactions are *choices*.
//! * A choice holds back the other writers of its registers until its readers are placed. If a
//!   circle arises of transactions that wait for one another, the choice is no good, and stays so
//!   until one of the circle has been placed.
//! * The set of placed transactions determines the possible continuations: a register has a value
//!   that is still to be read only if the value is its current one. So a set of placed transactions
//!   from which nothing was found is remembered, where the search is small, and not tried again.

use super::accesses::Accesses;
use crate::graph::Graph;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The result of a search.
pub(super) enum Found {
    /// The transactions, and the moments between them, in an order that explains all reads.
    Order(Vec<u32>),
    /// There is no serial order: all orders were tried.
    Nothing,
    /// The search ended without a result.
    GaveUp,
}

/// The greatest number of nodes for which a search remembers the rejected sets.
const SMALL_MAX: usize = 2_000;
/// The greatest number of sets of nodes that a search remembers: at most some 100 MB.
const FAILED_MAX: usize = 300_000;

/// A search among some of the nodes of a graph.
pub(super) struct Search<'a> {
    graph: &'a Graph,
    reversed: Graph,
    accesses: &'a Accesses,
    /// All nodes, in the order in which they are tried.
    sorted: &'a [u32],
    /// For each node, its position in `sorted`.
    position: Vec<u32>,
    /// The number of the search in which each node takes part, and the number of this search.
    search: (Vec<u32>, u32),
    /// For each node, its number among the nodes of this search.
    number: Vec<u32>,
    placed: Vec<bool>,
    /// For each node, the number of edges from nodes that are not placed.
    waits: Vec<u32>,
    /// The positions of the nodes that no edge holds back.
    ready: BTreeSet<u32>,
    /// For each value, the number of its readers that are not placed.
    pending: Vec<u32>,
    /// For each value, the value that it replaced.
    replaced: Vec<Option<usize>>,
    /// For each register, its current value.
    current: Vec<Option<usize>>,
    /// For each register, the positions of its writers that are not placed.
    unwritten: Vec<BTreeSet<u32>>,
    /// For each rejected choice, the circle that arose.
    rejected: HashMap<u32, Vec<u32>>,
    /// The placed nodes as a set of bits; empty in a search that is not small.
    state: Vec<u64>,
    is_small: bool,
    /// The distance, before the first node that is held back, within which a cycle is searched.
    distance_max: u32,
    /// For each node, the number of the last look for a circle that came to it and of the last that
    /// left it, and the number of such looks.
    entered: Vec<u32>,
    left: Vec<u32>,
    looks: u32,
    /// The number of steps of this search: nodes and edges that were looked at.
    pub(super) steps: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(graph: &'a Graph, sorted: &'a [u32], accesses: &'a Accesses) -> Search<'a> {
        let mut position = vec![0; sorted.len()];
        (0..).zip(sorted).for_each(|(place, node)| position[*node as usize] = place);
        let (zeros, values) = (vec![0; sorted.len()], accesses.values.len());
        Search {
            graph,
            reversed: graph.reversed(),
            accesses,
            sorted,
            position,
            search: (zeros.clone(), 0),
            number: zeros.clone(),
            placed: vec![false; sorted.len()],
            waits: zeros.clone(),
            ready: BTreeSet::new(),
            pending: vec![0; values],
            replaced: vec![None; values],
            current: vec![None; accesses.registers.len()],
            unwritten: vec![BTreeSet::new(); accesses.registers.len()],
            rejected: HashMap::new(),
            state: Vec::new(),
            is_small: false,
            distance_max: 0,
            entered: zeros.clone(),
            left: zeros,
            looks: 0,
            steps: 0,
        }
    }

    /// Looks for an order of `members`, in at most `steps_max` steps. The reads between these
    /// transactions and others are explained in any case. The search for circles begins up to
    /// `distance_max` nodes before the first node that is held back.
    pub(super) fn find(&mut self, members: &[u32], steps_max: usize, distance_max: u32) -> Found {
        self.distance_max = distance_max;
        self.begin(members);
        // The trail has the placed nodes, each with a flag that is set if there was a choice.
        let mut trail: Vec<(u32, bool)> = Vec::with_capacity(members.len());
        let mut failed: HashSet<Vec<u64>> = HashSet::new();
        let mut from = 0;
        while trail.len() < members.len() {
            if self.steps > steps_max {
                return Found::GaveUp;
            }
            let next = self.advance(from);
            trail.extend(next);
            from = 0;
            match next {
                Some((_, is_choice)) if !is_choice || !failed.contains(&self.state) => continue,
                Some(_) => {}
                None if self.is_small && failed.len() < FAILED_MAX => {
                    failed.insert(self.state.clone());
                }
                None => {}
            }
            loop {
                let Some((node, is_choice)) = trail.pop() else { return Found::Nothing };
                self.take_back(node);
                if is_choice {
                    from = self.position[node as usize] + 1;
                    break;
                }
            }
            self.rejected.clear();
        }
        Found::Order(trail.into_iter().map(|(node, _)| node).collect())
    }

    fn begin(&mut self, members: &[u32]) {
        let accesses = self.accesses;
        self.search.1 += 1;
        self.steps = 0;
        self.is_small = members.len() <= SMALL_MAX;
        self.state = if self.is_small { vec![0; members.len() / 64 + 1] } else { Vec::new() };
        self.ready.clear();
        self.rejected.clear();
        for (number, &node) in (0..).zip(members) {
            let at = node as usize;
            self.search.0[at] = self.search.1;
            (self.number[at], self.placed[at], self.waits[at]) = (number, false, 0);
            for &value in accesses.reads[at].iter().chain(&accesses.writes[at]) {
                let register = accesses.values[value].register;
                (self.pending[value], self.current[register]) = (0, None);
                self.unwritten[register].clear();
            }
        }
        for &node in members {
            let at = node as usize;
            accesses.reads[at].iter().for_each(|value| self.pending[*value] += 1);
            for &value in &accesses.writes[at] {
                self.unwritten[accesses.values[value].register].insert(self.position[at]);
            }
            for edge in self.graph.edges_from(node) {
                if self.takes_part(edge.to) {
                    self.waits[edge.to as usize] += 1;
                }
            }
        }
        let waits = &self.waits;
        let ready = members.iter().filter(|node| waits[**node as usize] == 0);
        self.ready.extend(ready.map(|node| self.position[*node as usize]));
    }

    fn takes_part(&self, node: u32) -> bool {
        self.search.0[node as usize] == self.search.1
    }

    /// Places the first node, from position `from` on, that can be placed. Returns that node, and
    /// whether it was a choice; `None` if there is none.
    fn advance(&mut self, mut from: u32) -> Option<(u32, bool)> {
        let accesses = self.accesses;
        while let Some(&position) = self.ready.range(from..).next() {
            from = position + 1;
            self.steps += 1;
            let node = self.sorted[position as usize];
            let writes = &accesses.writes[node as usize];
            if writes.iter().any(|value| self.is_held_back(node, accesses.values[*value].register))
            {
                continue;
            }
            let is_choice = writes.iter().any(|value| self.pending[*value] > 0);
            if !is_choice {
                self.place(node);
                return Some((node, false));
            }
            if let Some(circle) = self.rejected.get(&node) {
                self.steps += circle.len();
                if circle.iter().all(|other| !self.placed[*other as usize]) {
                    continue;
                }
            }
            self.place(node);
            match self.circle(node) {
                None => return Some((node, true)),
                Some(circle) => {
                    self.take_back(node);
                    self.rejected.insert(node, circle);
                }
            }
        }
        None
    }

    /// Returns whether other transactions than `node` have still to read the current value of a
    /// register.
    fn is_held_back(&self, node: u32, register: usize) -> bool {
        self.current[register].is_some_and(|value| {
            let own = self.accesses.reads[node as usize].contains(&value);
            self.pending[value] > u32::from(own)
        })
    }

    fn place(&mut self, node: u32) {
        let (at, accesses) = (node as usize, self.accesses);
        self.placed[at] = true;
        self.flip(node);
        self.ready.remove(&self.position[at]);
        accesses.reads[at].iter().for_each(|value| self.pending[*value] -= 1);
        for &value in &accesses.writes[at] {
            let register = accesses.values[value].register;
            self.replaced[value] = self.current[register].replace(value);
            self.unwritten[register].remove(&self.position[at]);
        }
        let edges = self.graph.edges_from(node);
        self.steps += edges.len();
        for to in edges.iter().map(|edge| edge.to) {
            if self.takes_part(to) {
                self.waits[to as usize] -= 1;
                if self.waits[to as usize] == 0 {
                    self.ready.insert(self.position[to as usize]);
                }
            }
        }
    }

    /// Undoes the last [`Search::place`].
    fn take_back(&mut self, node: u32) {
        let (at, accesses) = (node as usize, self.accesses);
        self.placed[at] = false;
        self.flip(node);
        self.ready.insert(self.position[at]);
        accesses.reads[at].iter().for_each(|value| self.pending[*value] += 1);
        for &value in &accesses.writes[at] {
            let register = accesses.values[value].register;
            self.current[register] = self.replaced[value];
            self.unwritten[register].insert(self.position[at]);
        }
        let edges = self.graph.edges_from(node);
        self.steps += edges.len();
        for to in edges.iter().map(|edge| edge.to) {
            if self.takes_part(to) {
                self.waits[to as usize] += 1;
                self.ready.remove(&self.position[to as usize]);
            }
        }
    }

    fn flip(&mut self, node: u32) {
        let number = self.number[node as usize];
        if let Some(word) = self.state.get_mut(number as usize / 64) {
            *word ^= 1 << (number % 64);
        }
    }

    /// Returns a circle of transactions that wait for one another since `node` has been placed.
    ///
    /// Each has an edge to the next one, or has still to read a value that the next one overwrites.
    fn circle(&mut self, node: u32) -> Option<Vec<u32>> {
        let accesses = self.accesses;
        let unread =
            accesses.writes[node as usize].iter().filter(|value| self.pending[**value] > 0);
        let held_back = unread
            .clone()
            .filter_map(|value| self.unwritten[accesses.values[*value].register].first().copied());
        let floor = held_back.min()?.saturating_sub(self.distance_max);
        self.looks += 1;
        // Nodes to enter, and nodes to leave: the latter are the way to the last node.
        let readers = unread.flat_map(|value| &accesses.values[*value].readers);
        let readers = readers.filter(|reader| self.is_left(**reader, 0));
        let mut stack: Vec<(u32, bool)> = readers.map(|reader| (*reader, false)).collect();
        while let Some((node, leaves)) = stack.pop() {
            let at = node as usize;
            self.steps += 1;
            if leaves {
                self.left[at] = self.looks;
            } else if self.entered[at] != self.looks {
                self.entered[at] = self.looks;
                stack.push((node, true));
                self.push_those_before(node, floor, &mut stack);
            } else if self.left[at] != self.looks {
                let way = stack.iter().rev().filter(|(_, leaves)| *leaves).map(|(node, _)| *node);
                let length = way.clone().position(|other| other == node).map_or(0, |last| last + 1);
                return Some(way.take(length).collect());
            }
        }
        None
    }

    /// Adds to `stack` the nodes, at `floor` or after it, for which `node` waits.
    fn push_those_before(&self, node: u32, floor: u32, stack: &mut Vec<(u32, bool)>) {
        let edges = self.reversed.edges_from(node).iter().map(|edge| edge.to);
        stack.extend(edges.filter(|other| self.is_left(*other, floor)).map(|other| (other, false)));
        for &value in &self.accesses.writes[node as usize] {
            let current = self.current[self.accesses.values[value].register];
            if let Some(current) = current.filter(|current| self.pending[*current] > 0) {
                let readers = self.accesses.values[current].readers.iter().copied();
                let others = readers.filter(|other| *other != node && self.is_left(*other, floor));
                stack.extend(others.map(|other| (other, false)));
            }
        }
    }

    /// Returns whether a node takes part, is not placed, and is at the position `floor` or after
    /// it.
    fn is_left(&self, node: u32, floor: u32) -> bool {
        let at = node as usize;
        self.takes_part(node) && !self.placed[at] && self.position[at] >= floor
    }
}
