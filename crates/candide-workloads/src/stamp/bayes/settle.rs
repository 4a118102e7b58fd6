//! The program but for its objects, and the check.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::Bayes;
use super::learner::Learner;
use super::network::Plain;
use crate::Consistency;
use crate::replay::Stopped;
use crate::stamp::repeated::Program;
use crate::stamp::timed;

/// The records' counts, and what the sequential program has learned.
struct Prepared {
    learner: Learner,
    empty: Plain,
    learned: Plain,
    transactions: u64,
    took: Duration,
}

/// The program but for its objects.
pub struct Learning {
    prepared: Arc<Prepared>,
    /// The next variable of the first stage, which the threads share out.
    pub(super) cursor: AtomicU32,
}

/// The contents of the objects.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    pub(super) network: Plain,
    pub(super) score: i64,
    pub(super) edges: i64,
    pub(super) tasks: Vec<(i64, u32, u32, u32)>,
}

impl Learning {
    /// Draws the records and runs the sequential program. Returns `None` if `stopped` returns
    /// `true` meanwhile.
    pub(super) fn new(knobs: &Bayes, seed: u64, stopped: Stopped<'_>) -> Option<Learning> {
        let prepare = || {
            let learner = Learner::new(knobs, seed);
            let ((learned, transactions), took) = timed(|| learner.sequential(stopped)).ok_or(())?;
            let empty = learner.empty();
            Ok::<_, ()>(Prepared { learner, empty, learned, transactions, took })
        };
        let &Bayes { variables, records, parents, parents_pct, edges, penalty, .. } = knobs;
        let inputs = (seed, variables, records, parents, parents_pct, edges, penalty);
        let prepared = knobs.kept.get_or(&inputs, prepare).ok()?;
        Some(Learning { prepared, cursor: AtomicU32::new(0) })
    }

    pub(super) fn learner(&self) -> &Learner {
        &self.prepared.learner
    }

    /// Returns the network without edges.
    pub(super) fn empty(&self) -> &Plain {
        &self.prepared.empty
    }

    /// Returns the parents of each variable in the network that the sequential program has learned.
    pub fn sequential_parents(&self) -> &[u32] {
        &self.prepared.learned.parents
    }

    /// Returns how many transactions one thread needs.
    pub fn transactions(&self) -> u64 {
        self.prepared.transactions
    }
}

impl Program for Learning {
    type Found = Found;

    fn stages(&self) -> usize {
        2
    }

    fn sequential_tps(&self) -> f64 {
        self.prepared.transactions as f64 / self.prepared.took.as_secs_f64().max(1e-9)
    }

    fn settle(&self, found: &Found, _: usize, counts: &[u64; 4], has_ended: bool) -> Consistency {
        let mut consistency = Consistency::default();
        let ([gained, pushed, taken, ..], learner) = (*counts, self.learner());
        let Found { network, score, edges, tasks } = found;
        consistency.expect(network.is_acyclic(), || "the network has a cycle".to_string());
        consistency.expect(network.is_consistent(), || {
            "the children of some variables are not those whose parents they are".to_string()
        });
        let counted = network.parents.iter().map(|parents| parents.count_ones());
        let most = counted.clone().max().unwrap_or(0);
        consistency.expect(most <= learner.parents_max, || {
            format!("a variable has {most} parents where it may have {}", learner.parents_max)
        });
        let count = counted.map(i64::from).sum::<i64>();
        consistency
            .expect(count == *edges, || format!("there are {count} edges, counted as {edges}"));
        let scratch = (0..).zip(&network.parents).map(|(of, &parents)| learner.score(of, parents));
        let scratch: Vec<i64> = scratch.collect();
        let wrong = scratch.iter().zip(&network.scores).filter(|(one, other)| one != other);
        let wrong = wrong.count();
        consistency.expect(wrong == 0, || format!("{wrong} variables have wrong scores"));
        let (sum, first) = (scratch.iter().sum::<i64>(), self.empty().scores.iter().sum::<i64>());
        consistency.expect(sum == *score, || {
            format!("the network's score is {score} where computed anew it is {sum}")
        });
        consistency.expect(sum >= first, || {
            format!("the network's score is {sum}, and was {first} without edges")
        });
        consistency.expect(sum - first == gained as i64, || {
            format!("the score is {} more than without edges; {gained} was gained", sum - first)
        });
        let waiting = tasks.len() as u64;
        consistency.expect(waiting + taken == pushed, || {
            format!("{waiting} tasks wait and {taken} were taken of {pushed}")
        });
        if has_ended {
            consistency.expect(waiting == 0, || format!("{waiting} tasks wait at the end"));
        }
        consistency
    }

    fn begin(&self, _: usize) {
        self.cursor.store(0, Ordering::Relaxed);
    }
}
