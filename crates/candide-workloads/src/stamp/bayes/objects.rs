//! The objects, and the transactions on them.

use std::sync::atomic::Ordering;

use candide::objects::{TArray, TList};
use candide::{Abort, Database, Protocol, Session, Tx};

use super::ad_tree::Bits;
use super::learner::{Learner, Plan};
use super::network::{Element, Network, Plain, Task, Variable};
use super::settle::{Found, Learning};
use crate::Failure;
use crate::load::run_unmeasured;
use crate::stamp::repeated::{Objects, Turn, in_batches};
use crate::workload::run_counted;

/// The index of the network's score in the totals, and that of its number of edges.
const SCORE: usize = 0;
const EDGES: usize = 1;

/// The network and the tasks.
pub struct Learned<P: Protocol> {
    /// The parents of each variable, a bit for each.
    pub parents: TArray<u32, P>,
    /// The variables of which each one is a parent.
    pub children: TArray<u32, P>,
    /// The score of each variable.
    pub scores: TArray<i64, P>,
    /// The sum of all scores, and the number of edges.
    pub totals: TArray<i64, P>,
    /// The tasks, of which the best one comes first.
    pub tasks: TList<(i64, u32, u32, u32), P>,
}

impl<P: Protocol> Clone for Learned<P> {
    fn clone(&self) -> Self {
        let Learned { parents, children, scores, totals, tasks } = self;
        Learned {
            parents: parents.clone(),
            children: children.clone(),
            scores: scores.clone(),
            totals: totals.clone(),
            tasks: tasks.clone(),
        }
    }
}

/// What a thread has in hand.
#[derive(Debug, Default)]
pub enum Hand {
    /// Nothing.
    #[default]
    Empty,
    /// A task.
    Task(Task),
    /// The variable of a task that has been done or refused.
    Variable(u32),
    /// The variable's next task.
    Next(Task),
    /// Nothing, and the list was empty.
    Over,
}

/// The network as a transaction sees it.
struct InTransaction<'a, P: Protocol>(&'a Learned<P>, &'a Tx<'a, P>);

impl<P: Protocol> Network for InTransaction<'_, P> {
    fn parents(&self, variable: u32) -> Result<Bits, Abort> {
        self.0.parents.get(self.1, variable as usize)
    }

    fn children(&self, variable: u32) -> Result<Bits, Abort> {
        self.0.children.get(self.1, variable as usize)
    }

    fn score(&self, variable: u32) -> Result<i64, Abort> {
        self.0.scores.get(self.1, variable as usize)
    }
}

impl<P: Protocol> Learned<P> {
    /// Does a task, if it can be done and the score gains. Returns by how much.
    fn apply(&self, tx: &Tx<'_, P>, learner: &Learner, task: Task) -> Result<u64, Abort> {
        let Task { change, from, to, .. } = task;
        let plan = learner.plan(&InTransaction(self, tx), (change, from, to))?;
        let Some(Plan { variables, gain, edges }) = plan.filter(|plan| plan.gain > 0) else {
            return Ok(0);
        };
        variables.iter().try_for_each(|variable| self.set(tx, variable))?;
        self.totals.modify(tx, SCORE, |score| *score += gain)?;
        self.totals.modify(tx, EDGES, |count| *count += edges)?;
        Ok(gain.unsigned_abs())
    }

    fn set(&self, tx: &Tx<'_, P>, variable: &Variable) -> Result<(), Abort> {
        let number = variable.number as usize;
        self.parents.set(tx, number, variable.parents)?;
        self.children.set(tx, number, variable.children)?;
        self.scores.set(tx, number, variable.score)
    }
}

impl<P: Protocol> Objects<P> for Learned<P> {
    type Program = Learning;
    type Hand = Hand;

    fn create(db: &Database<P>, program: &Learning) -> Result<Self, Failure> {
        let variables = program.learner().variables as usize;
        let none = || TArray::new(db, variables, |_| 0);
        let scores = TArray::new(db, variables, |_| 0)?;
        let totals = TArray::new(db, 2, |_| 0)?;
        Ok(Learned { parents: none()?, children: none()?, scores, totals, tasks: TList::new(db)? })
    }

    fn fill(&self, session: &mut Session<P>, program: &Learning) -> Result<(), Abort> {
        let Plain { scores, .. } = program.empty();
        let variables: Vec<Variable> = (0..)
            .zip(scores)
            .map(|(number, &score)| Variable { number, parents: 0, children: 0, score })
            .collect();
        in_batches(session, &variables, &mut |tx, variable| self.set(tx, variable))?;
        run_unmeasured(session, &mut |tx| {
            self.totals.set(tx, SCORE, scores.iter().sum())?;
            self.totals.set(tx, EDGES, 0)
        })
    }

    fn clear(&self, session: &mut Session<P>, _: &Learning, found: &Found) -> Result<(), Abort> {
        in_batches(session, &found.tasks, &mut |tx, _| self.tasks.pop_first(tx).map(drop))
    }

    fn read(&self, session: &mut Session<P>, _: &Learning) -> Result<Found, Abort> {
        let mut found = Found::default();
        run_unmeasured(session, &mut |tx| {
            let (parents, children) = (self.parents.to_vec(tx)?, self.children.to_vec(tx)?);
            found.network = Plain { parents, children, scores: self.scores.to_vec(tx)? };
            found.score = self.totals.get(tx, SCORE)?;
            found.edges = self.totals.get(tx, EDGES)?;
            found.tasks = self.tasks.iter(tx).collect::<Result<_, _>>()?;
            Ok(())
        })?;
        Ok(found)
    }

    fn step(
        &self,
        turn: Turn<'_, P, Learning>,
        hand: &mut Hand,
    ) -> Result<Option<(usize, u64)>, Abort> {
        let Turn { session, program, stage, counts } = turn;
        let learner = program.learner();
        let push = |session: &mut Session<P>, task: Task| {
            run_counted(session, |tx| self.tasks.insert(tx, Element::from(task)))
        };
        if stage == 0 {
            loop {
                let variable = program.cursor.fetch_add(1, Ordering::Relaxed);
                if variable >= learner.variables {
                    return Ok(None);
                }
                let Some(task) = learner.best(program.empty(), variable)? else { continue };
                let (end, retries) = push(session, task);
                end?;
                counts[1] += 1;
                return Ok(Some((0, retries)));
            }
        }
        let (kind, retries) = match std::mem::take(hand) {
            Hand::Empty => {
                let (task, retries) = run_counted(session, |tx| self.tasks.pop_first(tx));
                let task = task?;
                counts[2] += u64::from(task.is_some());
                *hand = task.map_or(Hand::Over, |task| Hand::Task(task.into()));
                (1, retries)
            }
            Hand::Over => return Ok(None),
            Hand::Task(task) => {
                let (gain, retries) = run_counted(session, |tx| self.apply(tx, learner, task));
                counts[0] += gain?;
                *hand = Hand::Variable(task.to);
                (2, retries)
            }
            Hand::Variable(to) => {
                let (next, retries) =
                    run_counted(session, |tx| learner.best(&InTransaction(self, tx), to));
                *hand = next?.map_or(Hand::Empty, Hand::Next);
                (3, retries)
            }
            Hand::Next(task) => {
                let (end, retries) = push(session, task);
                end?;
                counts[1] += 1;
                (4, retries)
            }
        };
        Ok(Some((kind, retries)))
    }

    fn is_busy(hand: &Hand) -> bool {
        !matches!(hand, Hand::Empty | Hand::Over)
    }
}
