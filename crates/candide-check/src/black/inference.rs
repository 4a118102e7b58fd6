//! The common part of both black-box checkers: it collects violations, and edges that order
//! transactions.

use super::{Options, Outcome, Transaction};
use crate::anomaly::{About, Anomaly, Evidence, Party, Step, Violation};
use crate::graph::{Edge, Graph, Kind};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// The place of a transaction in the history.
pub(super) type Place = u32;

/// The subject of an edge: a key, and the values of that key that the two transactions of the edge
/// read or wrote.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values {
    pub(super) key: u64,
    pub(super) before: Option<u64>,
    pub(super) after: Option<u64>,
}

/// The facts known about a history so far.
pub(super) struct Inference<'h, O> {
    pub(super) history: &'h [Transaction<O>],
    /// For each transaction, whether any of its writes was read. A transaction with an unknown
    /// outcome counts only if one of its writes was read.
    seen: Vec<bool>,
    observations: Vec<Violation>,
    edges: Vec<Edge>,
    /// The subject of each edge. If the edge was derived from others: also the third transaction,
    /// by which it follows.
    abouts: Vec<(Values, Option<Place>)>,
    nodes: u32,
}

impl<'h, O> Inference<'h, O> {
    pub(super) fn new(history: &'h [Transaction<O>]) -> Self {
        let nodes =
            u32::try_from(history.len()).expect("a history of fewer than 2^32 transactions");
        let seen = vec![false; history.len()];
        Self {
            history,
            seen,
            observations: Vec::new(),
            edges: Vec::new(),
            abouts: Vec::new(),
            nodes,
        }
    }

    /// Returns the transactions whose clients know that they committed. Only the reads of these
    /// transactions count.
    pub(super) fn committed(
        &self,
    ) -> impl Iterator<Item = (Place, &'h Transaction<O>)> + use<'h, O> {
        (0..).zip(self.history).filter(|(_, transaction)| transaction.outcome == Outcome::Committed)
    }

    /// Records that some transaction read a write of `writer`.
    pub(super) fn see(&mut self, writer: Place) {
        self.seen[writer as usize] = true;
    }

    pub(super) fn outcome(&self, of: Place) -> Outcome {
        self.history[of as usize].outcome
    }

    /// Returns whether the writes of `writer` count as having taken effect.
    pub(super) fn effective(&self, writer: Place) -> bool {
        match self.outcome(writer) {
            Outcome::Committed => true,
            Outcome::Aborted => false,
            Outcome::Unknown => self.seen[writer as usize],
        }
    }

    /// Records a violation that needs no cycle. Only the first violation of each anomaly is kept.
    pub(super) fn observe(
        &mut self,
        anomaly: Anomaly,
        parties: &[Place],
        observed: impl FnOnce() -> String,
    ) {
        if self.observations.iter().all(|known| known.anomaly != anomaly) {
            let parties =
                parties.iter().map(|place| party(&self.history[*place as usize])).collect();
            let evidence = Evidence::Observation { parties, observed: observed() };
            self.observations.push(Violation { anomaly, evidence });
        }
    }

    /// Adds an edge by which `from` comes before `to`. Does nothing if `from` equals `to`.
    pub(super) fn edge(&mut self, from: Place, to: Place, kind: Kind, values: Values) {
        if from != to {
            self.push(from, to, kind, values, None);
        }
    }

    /// Adds an edge that follows from other edges and from what `since` read or wrote.
    pub(super) fn derive(
        &mut self,
        from: Place,
        to: Place,
        kind: Kind,
        values: Values,
        since: Place,
    ) {
        self.push(from, to, kind, values, Some(since));
    }

    fn push(&mut self, from: u32, to: u32, kind: Kind, values: Values, since: Option<Place>) {
        let about = self.abouts.len() as u32;
        self.abouts.push((values, since));
        self.edges.push(Edge { from, to, about, kind });
    }

    fn moment(&mut self) -> u32 {
        self.nodes += 1;
        self.nodes - 1
    }

    /// Creates the crowd of a key's writers. `members` are the writers, each with the value that it
    /// wrote.
    pub(super) fn crowd(&mut self, key: u64, members: Vec<(Place, u64)>) -> Crowd {
        // Node `n` of the tree leads to nodes `2n` and `2n + 1`. The second half of the nodes are
        // the members.
        let count = members.len();
        let mut nodes = vec![0; count];
        nodes.extend(members.iter().map(|(writer, _)| *writer));
        for node in (1..count).rev() {
            nodes[node] = self.moment();
            for child in [2 * node, 2 * node + 1] {
                let after = (child >= count).then(|| members[child - count].1);
                self.edge(nodes[node], nodes[child], Kind::Ww, Values { key, before: None, after });
            }
        }
        let places = (0..).zip(&members).map(|(place, (writer, _))| (*writer, place)).collect();
        Crowd { key, nodes, members, places }
    }

    /// Adds edges by which `from` comes before each member of a range of a crowd, except before
    /// `from` itself.
    pub(super) fn before_crowd(
        &mut self,
        from: Place,
        kind: Kind,
        before: Option<u64>,
        crowd: &Crowd,
        of: Range<usize>,
    ) {
        match crowd.places.get(&from) {
            Some(&own) if of.contains(&own) => {
                self.before_range(from, kind, before, crowd, of.start..own);
                self.before_range(from, kind, before, crowd, own + 1..of.end);
            }
            _ => self.before_range(from, kind, before, crowd, of),
        }
    }

    fn before_range(
        &mut self,
        from: Place,
        kind: Kind,
        before: Option<u64>,
        crowd: &Crowd,
        of: Range<usize>,
    ) {
        let count = crowd.members.len();
        let (mut low, mut high) = (of.start + count, of.end + count);
        let lead = |inference: &mut Self, node: usize| {
            let after = (node >= count).then(|| crowd.members[node - count].1);
            inference.edge(from, crowd.nodes[node], kind, Values { key: crowd.key, before, after });
        };
        while low < high {
            if low % 2 == 1 {
                lead(self, low);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                lead(self, high);
            }
            (low, high) = (low / 2, high / 2);
        }
    }

    /// Returns the edges as a graph without cycles, or the worst violation: one of those recorded,
    /// or else a cycle of the edges.
    pub(super) fn conclude(&mut self, options: Options) -> Result<Graph, Violation> {
        const WORST_FIRST: [Anomaly; 8] = [
            Anomaly::RepeatedValue,
            Anomaly::UnknownValue,
            Anomaly::AbortedRead,
            Anomaly::DuplicateElement,
            Anomaly::Internal,
            Anomaly::IncompatibleOrder,
            Anomaly::LostAppend,
            Anomaly::IntermediateRead,
        ];
        let rank = |violation: &Violation| {
            WORST_FIRST.iter().position(|anomaly| *anomaly == violation.anomaly)
        };
        if let Some(worst) = std::mem::take(&mut self.observations).into_iter().min_by_key(rank) {
            return Err(worst);
        }
        if options.sessions {
            self.order_sessions();
        }
        if options.real_time {
            self.order_real_time();
        }
        self.acyclic(Vec::new())
    }

    /// Returns a graph of the edges `known` and of those that have been added since the last graph,
    /// or the violation that its worst cycle shows.
    pub(super) fn acyclic(&mut self, mut known: Vec<Edge>) -> Result<Graph, Violation> {
        known.append(&mut self.edges);
        let graph = Graph::new(self.history.len() as u32, known);
        match graph.worst_cycle() {
            None => Ok(graph),
            Some(cycle) => Err(self.violation(&graph, &cycle)),
        }
    }

    /// Returns the violation that no order of the transactions among `members` explains their
    /// reads.
    pub(super) fn without_order(&self, members: &[u32]) -> Violation {
        const SHOWN_MAX: usize = 12;
        let mut places: Vec<u32> = members.to_vec();
        places.retain(|member| (*member as usize) < self.history.len());
        places.sort_unstable();
        let shown = places.iter().take(SHOWN_MAX);
        let parties = shown.map(|place| party(&self.history[*place as usize])).collect();
        let observed = match places.len().saturating_sub(SHOWN_MAX) {
            0 => "No order of these transactions explains what they read; all were tried".into(),
            more => format!(
                "No order of these transactions and of {more} more explains what they read; all were tried"
            ),
        };
        let evidence = Evidence::Observation { parties, observed };
        Violation { anomaly: Anomaly::NoSerialOrder, evidence }
    }

    /// Adds edges for sessions: from each committed transaction to those of its session that were
    /// invoked when it had completed.
    fn order_sessions(&mut self) {
        let history = self.history;
        for session in sessions(history).into_values() {
            // The committed transactions so far, without those that others here imply. If a session
            // runs one transaction at a time, there are at most two.
            let mut last: Vec<Place> = Vec::new();
            for place in session {
                if !self.effective(place) {
                    continue;
                }
                let comes_before = |one: Place, other: Place| {
                    history[one as usize].completed <= history[other as usize].invoked
                };
                let before: Vec<Place> =
                    last.iter().copied().filter(|one| comes_before(*one, place)).collect();
                for (number, &from) in (1..).zip(&before) {
                    if before[number..].iter().any(|between| comes_before(from, *between)) {
                        last.retain(|one| *one != from);
                    } else {
                        self.edges.push(Edge { from, to: place, about: 0, kind: Kind::Session });
                    }
                }
                if self.outcome(place) == Outcome::Committed {
                    last.push(place);
                }
            }
        }
    }

    /// Adds edges for real time. These edges lead from every transaction, through a chain of
    /// moments, to the transactions that were invoked after it had completed.
    fn order_real_time(&mut self) {
        // At equal times, invocations come first, so that no transaction counts as completed before
        // an invocation of the same time.
        let mut events: Vec<(u64, bool, Place)> = Vec::with_capacity(2 * self.history.len());
        for (place, transaction) in
            (0..).zip(self.history).filter(|(place, _)| self.effective(*place))
        {
            events.push((transaction.invoked, false, place));
            if transaction.outcome == Outcome::Committed {
                events.push((transaction.completed, true, place));
            }
        }
        events.sort_unstable();
        let mut latest = None;
        let mut completed: Vec<u32> = Vec::new();
        for (_, completes, place) in events {
            if completes {
                completed.push(place);
                continue;
            }
            if !completed.is_empty() {
                let moment = self.moment();
                let before = completed.drain(..).chain(latest);
                self.edges.extend(before.map(|from| Edge {
                    from,
                    to: moment,
                    about: 0,
                    kind: Kind::RealTime,
                }));
                latest = Some(moment);
            }
            self.edges.extend(latest.map(|from| Edge {
                from,
                to: place,
                about: 0,
                kind: Kind::RealTime,
            }));
        }
    }

    fn violation(&self, graph: &Graph, cycle: &[Edge]) -> Violation {
        let steps: Vec<Step> = cycle.iter().map(|edge| self.step(graph, edge)).collect();
        let mut violation = Violation::cycle(steps);
        if let Evidence::Cycle(steps) = &violation.evidence
            && violation.anomaly == Anomaly::WriteSkew
            && key_of(&steps[0]) == key_of(&steps[1])
        {
            // Each of the two transactions read a version that the other overwrote. So the later
            // transaction had not read the version that it overwrote.
            violation.anomaly = Anomaly::LostUpdate;
        }
        violation
    }

    fn step(&self, graph: &Graph, edge: &Edge) -> Step {
        let from = party(&self.history[edge.from as usize]);
        if edge.kind >= Kind::Session {
            return Step { from, kind: edge.kind, about: None, since: None };
        }
        let mut kind = edge.kind;
        let (mut values, since) = self.abouts[edge.about as usize];
        if edge.kind == Kind::Ww && values.before.is_none() {
            // The dependency leads through a crowd, and `edge` is only its last part. The first
            // part holds the kind.
            let first = graph.edges_from(edge.from).iter().find(|first| {
                first.to >= graph.transactions()
                    && first.kind < Kind::Session
                    && self.abouts[first.about as usize].0.key == values.key
            });
            if let Some(first) = first {
                kind = first.kind;
                values.before = self.abouts[first.about as usize].0.before;
            }
        }
        let Values { key, before, after } = values;
        Step {
            from,
            kind,
            about: Some(About { table: None, key: [key].into(), group: 0, before, after }),
            since: since.map(|place| party(&self.history[place as usize])),
        }
    }
}

/// The ordered writers of a key, as a tree. If a reader comes before a range of these writers, the
/// tree keeps the number of edges small.
pub(super) struct Crowd {
    key: u64,
    nodes: Vec<u32>,
    members: Vec<(Place, u64)>,
    /// The position of each writer among the members.
    places: HashMap<Place, usize>,
}

impl Crowd {
    pub(super) fn all(&self) -> Range<usize> {
        0..self.members.len()
    }
}

/// Returns the transactions of each session, in the session's order.
pub(super) fn sessions<O>(history: &[Transaction<O>]) -> BTreeMap<u64, Vec<Place>> {
    let mut sessions: BTreeMap<u64, Vec<Place>> = BTreeMap::new();
    for (place, transaction) in (0..).zip(history) {
        sessions.entry(transaction.session).or_default().push(place);
    }
    for session in sessions.values_mut() {
        session.sort_by_key(|place| {
            (history[*place as usize].invoked, history[*place as usize].completed)
        });
    }
    sessions
}

fn party<O>(transaction: &Transaction<O>) -> Party {
    let &Transaction { session, invoked, completed, outcome, .. } = transaction;
    Party { session, begun: invoked, ended: completed, committed: outcome == Outcome::Committed }
}

fn key_of(step: &Step) -> Option<u64> {
    step.about.as_ref().map(|about| about.key[0])
}
