//! The decision whether transactions on registers have a serial order.
//!
//! A search ([`Search`]) comes first: it finds an order of most histories that have one in time in
//! proportion. If it does not, all edges are added that follow from others ([`fixpoint`]). Then the
//! writes whose order is still open fall into parts that do not depend on one another, and each
//! part is searched. An order that is found is played through before it counts.

use super::accesses::Accesses;
use super::fixpoint::{self, Fixpoint};
use super::inference::{Inference, Place};
use super::search::{Found, Search};
use super::{Outcome, RegisterOp, Transaction};
use crate::anomaly::Violation;
use crate::graph::{Edge, Graph, Kind, Kinds};
use crate::white::Verdict;
use std::collections::HashMap;

/// The number of steps of the first search, for each edge. Without a wrong choice, a search takes a
/// few.
const STEPS_PER_EDGE: usize = 20;
/// The distance, in the first search, within which a cycle is searched before the first transaction
/// that is held back. Most circles are among transactions that were running at the same time.
const DISTANCE_MAX: u32 = 64;

/// The number of steps of all searches for the orders of parts.
const STEPS_MAX: usize = 30_000_000;

/// Decides whether the transactions have a serial order that agrees with the edges of `graph` and
/// explains all `accesses`.
///
/// # Errors
/// The violation, if there is no serial order.
pub(super) fn decide(
    inference: &mut Inference<'_, RegisterOp>,
    graph: Graph,
    accesses: &Accesses,
) -> Result<Verdict, Violation> {
    let ranks = ranks(inference, accesses);
    // Each moment comes at its earliest place.
    let rank = |node: u32| ranks.get(node as usize).copied().unwrap_or(0);
    let sorted = graph.sorted(rank);
    let mut search = Search::new(&graph, &sorted, accesses);
    let steps_max = STEPS_PER_EDGE * graph.edges().len();
    if let Found::Order(order) = search.find(&sorted, steps_max, DISTANCE_MAX) {
        play(inference, &graph, &order);
        return Ok(Verdict::Serializable);
    }
    let Some(Fixpoint { graph, open }) = fixpoint::complete(inference, graph, accesses, rank)?
    else {
        return Ok(Verdict::Inconclusive(format!(
            "neither a cycle nor a serial order was found; the derivation of the order of writes stopped after {} steps",
            fixpoint::STEPS_MAX
        )));
    };
    let sorted = graph.sorted(rank);
    let mut search = Search::new(&graph, &sorted, accesses);
    let mut edges = graph.edges().to_vec();
    let (mut undecided, mut steps_left) = (0, STEPS_MAX);
    for part in parts(&graph, accesses, &open) {
        let found = search.find(&part, steps_left, u32::MAX);
        steps_left = steps_left.saturating_sub(search.steps);
        match found {
            Found::Order(order) => edges.extend(order.windows(2).map(|pair| Edge {
                from: pair[0],
                to: pair[1],
                about: 0,
                kind: Kind::Session,
            })),
            Found::Nothing => return Err(inference.without_order(&part)),
            Found::GaveUp => {
                undecided += part.iter().filter(|node| **node < graph.transactions()).count()
            }
        }
    }
    if undecided > 0 {
        return Ok(Verdict::Inconclusive(format!(
            "neither a cycle nor, in {STEPS_MAX} steps, a serial order was found of {undecided} transactions whose order is undecided"
        )));
    }
    play(inference, &graph, &Graph::new(graph.transactions(), edges).sorted(rank));
    Ok(Verdict::Serializable)
}

/// Returns for each transaction the time by which it has probably taken effect: the time at which
/// it had completed, if this is known, or at which a transaction that read from it had.
fn ranks(inference: &Inference<'_, RegisterOp>, accesses: &Accesses) -> Vec<u64> {
    let history = inference.history;
    let completed = |transaction: &Transaction<RegisterOp>| match transaction.outcome {
        Outcome::Committed => transaction.completed,
        _ => u64::MAX,
    };
    let mut ranks: Vec<u64> = history.iter().map(completed).collect();
    for written in &accesses.values {
        let readers = written.readers.iter().map(|reader| history[*reader as usize].completed);
        let rank = &mut ranks[written.writer as usize];
        *rank = readers.fold(*rank, u64::min);
    }
    ranks
}

/// Returns the sets of nodes whose order depends on the order of the `open` pairs of values, and
/// not on that of other sets.
///
/// Of three transactions whose order is open, one reads from another, and the third writes the
/// register before or after both. With an edge for each of the two cases the three are on a cycle.
fn parts(graph: &Graph, accesses: &Accesses, open: &[(usize, usize)]) -> Vec<Vec<u32>> {
    let mut edges = graph.edges().to_vec();
    for &(one, other) in open {
        for (value, third) in [(one, other), (other, one)] {
            let (written, third) = (&accesses.values[value], accesses.values[third].writer);
            let readers = written.readers.iter().copied().filter(|reader| *reader != third);
            let ends = readers.flat_map(|reader| [(third, written.writer), (reader, third)]);
            edges.extend(ends.map(|(from, to)| Edge { from, to, about: 0, kind: Kind::Ww }));
        }
    }
    Graph::new(graph.transactions(), edges).components(Kinds::ALL)
}

/// Runs the transactions in `order`, and asserts that this order agrees with the graph, and that
/// every read by a committed transaction returns the answer that its client got.
fn play(inference: &Inference<'_, RegisterOp>, graph: &Graph, order: &[u32]) {
    let mut position = vec![0; order.len()];
    (0..).zip(order).for_each(|(place, node): (usize, &u32)| position[*node as usize] = place);
    assert_eq!(order.len(), graph.nodes() as usize, "every transaction has its place");
    for &Edge { from, to, .. } in graph.edges() {
        assert!(position[from as usize] < position[to as usize], "every edge leads onwards");
    }
    let mut registers: HashMap<u64, u64> = HashMap::new();
    for &node in order {
        let Some(transaction) = inference.history.get(node as usize) else { continue };
        if !inference.effective(node as Place) {
            continue;
        }
        for operation in &transaction.operations {
            match *operation {
                RegisterOp::Write { key, value } => _ = registers.insert(key, value),
                RegisterOp::Read { key, value } => assert!(
                    transaction.outcome != Outcome::Committed
                        || registers.get(&key).copied() == value,
                    "every read finds the value that was told"
                ),
            }
        }
    }
}
