//! Records, scores, the search for tasks, and the sequential program.

use std::collections::BTreeSet;

use candide::Abort;
use fastrand::Rng;

use super::Bayes;
use super::ad_tree::{AdTree, Bits};
use super::network::{Change, Element, Network, Plain, Task, Variable, descendants};
use crate::replay::Stopped;
use crate::rng;

/// The random stream from which records are drawn.
const STREAM: u64 = 1 << 32;

/// The whole number that stands for a score of 1.
const ONE: f64 = 65_536.0;

/// Draws a network without cycles, and records from it.
fn draw_records(knobs: &Bayes, rng: &mut Rng) -> Vec<Bits> {
    let mut order: Vec<u32> = (0..knobs.variables).collect();
    rng.shuffle(&mut order);
    let mut chosen = Vec::new();
    for (place, &variable) in order.iter().enumerate() {
        let mut candidates = order[..place].to_vec();
        rng.shuffle(&mut candidates);
        candidates.truncate(knobs.parents.min(16) as usize);
        candidates.retain(|_| rng.u32(..100) < knobs.parents_pct);
        let chances: Vec<f64> = (0..1 << candidates.len()).map(|_| rng.f64()).collect();
        chosen.push((variable, candidates, chances));
    }
    let mut draw = || {
        chosen.iter().fold(0, |record, (variable, parents, chances)| {
            let value = |parent: &u32| (record >> parent & 1) as usize;
            let index = parents.iter().fold(0, |index, parent| index << 1 | value(parent));
            record | Bits::from(rng.f64() < chances[index]) << variable
        })
    };
    (0..knobs.records).map(|_| draw()).collect()
}

/// The change of one or two variables that a task makes.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    /// What the variables are to have.
    pub(super) variables: Vec<Variable>,
    /// How much more the score is afterwards.
    pub(super) gain: i64,
    /// How many more edges there are afterwards.
    pub(super) edges: i64,
}

/// What learning needs beside the network.
pub(super) struct Learner {
    tree: AdTree,
    pub(super) variables: u32,
    pub(super) parents_max: u32,
    penalty: f64,
}

impl Learner {
    /// Draws records, and builds the tree of their counts.
    pub(super) fn new(knobs: &Bayes, seed: u64) -> Learner {
        let &Bayes { variables, records, edges, penalty, .. } = knobs;
        let drawn = draw_records(knobs, &mut rng::stream(seed, STREAM));
        let penalty = f64::from(penalty) * f64::from(records).ln() / 2.0;
        Learner { tree: AdTree::build(drawn, variables), variables, parents_max: edges, penalty }
    }

    /// Returns the score of a variable with these parents.
    pub(super) fn score(&self, variable: u32, parents: Bits) -> i64 {
        let all = parents | 1 << variable;
        let counts = self.tree.counts(all);
        let bit = 1 << (u64::from(all) >> (variable + 1)).count_ones();
        let mut score = -self.penalty * f64::from(parents.count_ones());
        for index in (0..counts.len()).filter(|index| index & bit == 0) {
            let of_values = [counts[index], counts[index | bit]].map(f64::from);
            let sum = of_values[0] + of_values[1];
            let some = of_values.into_iter().filter(|&count| count > 0.0);
            score += some.map(|count| count * (count / sum).ln()).sum::<f64>();
        }
        (score * ONE).round() as i64
    }

    /// Returns the network without edges.
    pub(super) fn empty(&self) -> Plain {
        Plain::empty((0..self.variables).map(|variable| self.score(variable, 0)).collect())
    }

    /// Returns what a change of the edge between two variables does; `None` if the edge is not as
    /// the change needs it, or a variable would have too many parents, or there would be a cycle.
    pub(super) fn plan(
        &self,
        network: &dyn Network,
        (change, from, to): (Change, u32, u32),
    ) -> Result<Option<Plan>, Abort> {
        let (parents, is_edge) = (network.parents(to)?, 1 << from);
        let is_there = parents & is_edge != 0;
        let is_full = |parents: Bits| parents.count_ones() >= self.parents_max;
        let of_from = network.children(from)?;
        match change {
            Change::Insert => {
                let is_cycle = || Ok::<_, Abort>(descendants(network, 1 << to)? & is_edge != 0);
                if is_there || is_full(parents) || is_cycle()? {
                    return Ok(None);
                }
            }
            Change::Remove if !is_there => return Ok(None),
            Change::Remove => {}
            Change::Reverse => {
                let others = of_from & !(1 << to);
                let is_cycle = || Ok::<_, Abort>(descendants(network, others)? & 1 << to != 0);
                if !is_there || is_full(network.parents(from)?) || is_cycle()? {
                    return Ok(None);
                }
            }
        }
        let turns = Bits::from(change == Change::Reverse);
        let mut plan = Plan { variables: Vec::new(), gain: 0, edges: 0 };
        let mut add = |number, parents: Bits, children| -> Result<(), Abort> {
            let (before, old) = (network.parents(number)?, network.score(number)?);
            let score = if parents == before { old } else { self.score(number, parents) };
            plan.gain += score - old;
            plan.edges += i64::from(parents.count_ones()) - i64::from(before.count_ones());
            plan.variables.push(Variable { number, parents, children, score });
            Ok(())
        };
        add(to, parents ^ is_edge, network.children(to)? | turns << from)?;
        add(from, network.parents(from)? | turns << to, of_from ^ 1 << to)?;
        Ok(Some(plan))
    }

    /// Returns the change of an edge that ends at a variable by which the score gains most; `None`
    /// if it gains by none.
    pub(super) fn best(&self, network: &dyn Network, to: u32) -> Result<Option<Task>, Abort> {
        let mut best: Option<Task> = None;
        let parents = network.parents(to)?;
        for from in (0..self.variables).filter(|&from| from != to) {
            let changes: &[Change] = match parents >> from & 1 {
                0 => &[Change::Insert],
                _ => &[Change::Remove, Change::Reverse],
            };
            for &change in changes {
                let Some(plan) = self.plan(network, (change, from, to))? else { continue };
                if plan.gain > best.map_or(0, |best| best.gain) {
                    best = Some(Task { gain: plan.gain, change, from, to });
                }
            }
        }
        Ok(best)
    }

    /// Learns on one thread, without transactions. Returns the network, and how many transactions
    /// one thread needs for the same; `None` if it was told to stop.
    pub(super) fn sequential(&self, stopped: Stopped<'_>) -> Option<(Plain, u64)> {
        let mut network = self.empty();
        let mut tasks: BTreeSet<Element> = (0..self.variables)
            .filter_map(|to| self.best(&network, to).expect("no transaction"))
            .map(Element::from)
            .collect();
        // The last one finds the list empty.
        let mut transactions = tasks.len() as u64 + 1;
        while let Some(task) = tasks.pop_first() {
            let Task { change, from, to, .. } = task.into();
            let plan = self.plan(&network, (change, from, to)).expect("no transaction");
            let gaining = plan.filter(|plan| plan.gain > 0);
            let changed = gaining.map_or_else(Vec::new, |plan| plan.variables);
            changed.into_iter().for_each(|variable| network.set(variable));
            let next = self.best(&network, to).expect("no transaction");
            transactions += 3 + u64::from(next.is_some());
            tasks.extend(next.map(Element::from));
            if stopped() {
                return None;
            }
        }
        Some((network, transactions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::choices::Scale;

    #[test]
    fn learning_finds_a_network_that_is_better_than_none() {
        let knobs =
            Bayes { variables: 10, parents_pct: 80, records: 600, ..Bayes::published(Scale::Sim) };
        let learner = Learner::new(&knobs, 5);
        let (network, transactions) = learner.sequential(&|| false).expect("not stopped");
        assert!(network.is_acyclic() && network.is_consistent());
        let edges: u32 = network.parents.iter().map(|parents| parents.count_ones()).sum();
        assert!(edges > 4 && network.parents.iter().all(|parents| parents.count_ones() <= 2));
        let total = |network: &Plain| network.scores.iter().sum::<i64>();
        assert!(total(&network) > total(&learner.empty()));
        assert!(transactions > 4 * u64::from(edges), "{transactions} for {edges} edges");
        assert_eq!(learner.sequential(&|| false), Some((network, transactions)));
        assert_eq!(learner.sequential(&|| true), None);
    }

    #[test]
    fn plans_change_both_ends_of_an_edge_and_refuse_cycles() {
        let knobs = Bayes { variables: 3, records: 50, ..Bayes::published(Scale::Sim) };
        let learner = Learner::new(&knobs, 5);
        let mut network = learner.empty();
        let mut apply = |change, from, to| {
            let plan = learner.plan(&network, (change, from, to)).expect("no transaction");
            let is_planned = plan.is_some();
            plan.into_iter().flat_map(|plan| plan.variables).for_each(|of| network.set(of));
            assert!(network.is_acyclic() && network.is_consistent());
            let scratch = |number| learner.score(number, network.parents[number as usize]);
            assert_eq!(network.scores, (0..3).map(scratch).collect::<Vec<_>>());
            is_planned
        };
        use Change::{Insert, Remove, Reverse};
        assert!(apply(Insert, 0, 1) && apply(Insert, 1, 2));
        assert!(!apply(Insert, 2, 0) && !apply(Insert, 0, 1) && !apply(Remove, 0, 2));
        assert!(apply(Insert, 0, 2) && !apply(Reverse, 0, 2) && apply(Reverse, 0, 1));
        assert!(apply(Remove, 0, 2) && !apply(Reverse, 0, 2));
        assert_eq!(network.parents, [0b010, 0, 0b010]);
    }
}
