//! A comparison of queues, vectors, priority queues and lists with types of the standard library,
//! as [`super::model`] compares other objects.

use super::model::is_its_model;
use super::subjects::{Subject, Told, answer, done, option};
use crate::engine::Protocol;
use crate::objects::{TList, TPriorityQueue, TQueue, TVec};
use crate::{Abort, Database, Tx};
use std::collections::VecDeque;

use Told::{Refused, Shown as Shows};

protocol_tests!(all: operations_on_a_queue_agree_with_a_deque);
fn operations_on_a_queue_agree_with_a_deque<P: Protocol>() {
    is_its_model::<Queue<P>, P>();
}

protocol_tests!(all: operations_on_a_vector_agree_with_a_vector);
fn operations_on_a_vector_agree_with_a_vector<P: Protocol>() {
    is_its_model::<Vector<P>, P>();
}

protocol_tests!(all: operations_on_a_priority_queue_agree_with_a_sorted_vector);
fn operations_on_a_priority_queue_agree_with_a_sorted_vector<P: Protocol>() {
    is_its_model::<PriorityQueue<P>, P>();
}

protocol_tests!(all: operations_on_a_list_agree_with_a_sorted_vector);
fn operations_on_a_list_agree_with_a_sorted_vector<P: Protocol>() {
    is_its_model::<List<P>, P>();
}

fn number(result: Result<usize, Abort>) -> Result<Vec<i64>, Abort> {
    result.map(|number| vec![number as i64])
}

struct Queue<P: Protocol>(TQueue<i64, P>);

impl<P: Protocol> Subject<P> for Queue<P> {
    type Model = VecDeque<i64>;
    const SEQUENCED: u64 = 7;
    const OPERATIONS: u64 = 9;

    fn new(db: &Database<P>) -> Self {
        Queue(TQueue::new(db).unwrap())
    }

    fn run(&self, tx: &Tx<'_, P>, operation: u64) -> Result<Vec<i64>, Abort> {
        match operation {
            0 => done(self.0.push(tx, 5)),
            1 => done(self.0.push(tx, 6)),
            2 => option(self.0.pop(tx)),
            3 => option(self.0.peek(tx)),
            4 => answer(self.0.is_empty(tx)),
            5 => number(self.0.len(tx)),
            6 => self.contents(tx),
            7 => done(self.0.clear(tx)),
            _ => self.0.iter(tx)?.rev().collect(),
        }
    }

    fn model(model: &mut VecDeque<i64>, operation: u64) -> Told {
        Shows(match operation {
            0 | 1 => {
                model.push_back(5 + operation as i64);
                vec![]
            }
            2 => model.pop_front().into_iter().collect(),
            3 => model.front().copied().into_iter().collect(),
            4 => vec![i64::from(model.is_empty())],
            5 => vec![model.len() as i64],
            6 => Self::contents_of(model),
            7 => {
                model.clear();
                vec![]
            }
            _ => model.iter().rev().copied().collect(),
        })
    }

    fn other() -> VecDeque<i64> {
        VecDeque::from([1, 2])
    }

    fn begin_with(&self, tx: &Tx<'_, P>, model: &VecDeque<i64>) -> Result<(), Abort> {
        self.0.clear(tx)?;
        model.iter().try_for_each(|&value| self.0.push(tx, value))
    }

    fn contents(&self, tx: &Tx<'_, P>) -> Result<Vec<i64>, Abort> {
        self.0.iter(tx)?.collect()
    }

    fn contents_of(model: &VecDeque<i64>) -> Vec<i64> {
        model.iter().copied().collect()
    }
}

struct Vector<P: Protocol>(TVec<i64, P>);

impl<P: Protocol> Subject<P> for Vector<P> {
    type Model = Vec<i64>;
    const SEQUENCED: u64 = 8;
    const OPERATIONS: u64 = 14;

    fn new(db: &Database<P>) -> Self {
        Vector(TVec::new(db).unwrap())
    }

    fn run(&self, tx: &Tx<'_, P>, operation: u64) -> Result<Vec<i64>, Abort> {
        match operation {
            0 => done(self.0.push(tx, 5)),
            1 => done(self.0.push(tx, 6)),
            2 => option(self.0.pop(tx)),
            3 => option(self.0.get(tx, 0)),
            4 => done(self.0.set(tx, 1, 9)),
            5 => answer(self.0.is_empty(tx)),
            6 => self.contents(tx),
            7 => number(self.0.len(tx)),
            8 => done(self.0.truncate(tx, 1)),
            9 => done(self.0.modify(tx, 0, |value| *value = value.wrapping_add(1))),
            10 => done(self.0.swap(tx, 0, 1)),
            11 => self.0.replace(tx, 0, 4).map(|value| vec![value]),
            12 => answer(self.0.has_len_within(tx, 1..=2)),
            _ => option(self.0.get(tx, usize::MAX)),
        }
    }

    fn model(model: &mut Vec<i64>, operation: u64) -> Told {
        let needed = match operation {
            4 | 10 => 2,
            9 | 11 => 1,
            _ => 0,
        };
        if model.len() < needed {
            return Refused(Abort::OutOfBounds);
        }
        match operation {
            0 | 1 => model.push(5 + operation as i64),
            2 => return Shows(model.pop().into_iter().collect()),
            3 => return Shows(model.first().copied().into_iter().collect()),
            4 => model[1] = 9,
            5 => return Shows(vec![i64::from(model.is_empty())]),
            6 => return Shows(model.clone()),
            7 => return Shows(vec![model.len() as i64]),
            8 => model.truncate(1),
            9 => model[0] = model[0].wrapping_add(1),
            10 => model.swap(0, 1),
            11 => return Shows(vec![std::mem::replace(&mut model[0], 4)]),
            12 => return Shows(vec![i64::from((1..=2).contains(&model.len()))]),
            _ => {}
        }
        Shows(vec![])
    }

    fn other() -> Vec<i64> {
        vec![1, 2]
    }

    fn begin_with(&self, tx: &Tx<'_, P>, model: &Vec<i64>) -> Result<(), Abort> {
        self.0.clear(tx)?;
        model.iter().try_for_each(|&value| self.0.push(tx, value))
    }

    fn contents(&self, tx: &Tx<'_, P>) -> Result<Vec<i64>, Abort> {
        self.0.to_vec(tx)
    }

    fn contents_of(model: &Vec<i64>) -> Vec<i64> {
        model.clone()
    }
}

struct PriorityQueue<P: Protocol>(TPriorityQueue<u8, i64, P>);

impl<P: Protocol> PriorityQueue<P> {
    /// Pushes a value that follows from the priority, so that the order of equal priorities does
    /// not show.
    fn push(&self, tx: &Tx<'_, P>, priority: u8) -> Result<(), Abort> {
        self.0.push(tx, priority, i64::from(priority) * 10)
    }
}

fn entry(entry: Option<(u8, i64)>) -> Vec<i64> {
    entry.into_iter().flat_map(|(priority, value)| [priority.into(), value]).collect()
}

impl<P: Protocol> Subject<P> for PriorityQueue<P> {
    /// The priorities, in their order.
    type Model = Vec<u8>;
    const SEQUENCED: u64 = 7;
    const OPERATIONS: u64 = 7;

    fn new(db: &Database<P>) -> Self {
        PriorityQueue(TPriorityQueue::new(db).unwrap())
    }

    fn run(&self, tx: &Tx<'_, P>, operation: u64) -> Result<Vec<i64>, Abort> {
        match operation {
            0..=2 => done(self.push(tx, operation as u8)),
            3 => self.0.pop(tx).map(entry),
            4 => self.0.peek(tx).map(entry),
            5 => answer(self.0.is_empty(tx)),
            _ => self.contents(tx),
        }
    }

    fn model(model: &mut Vec<u8>, operation: u64) -> Told {
        let shown = |priority: u8| (priority, i64::from(priority) * 10);
        Shows(match operation {
            0..=2 => {
                model.push(operation as u8);
                model.sort_unstable();
                vec![]
            }
            3 if model.is_empty() => vec![],
            3 => entry(Some(shown(model.remove(0)))),
            4 => entry(model.first().copied().map(shown)),
            5 => vec![i64::from(model.is_empty())],
            _ => Self::contents_of(model),
        })
    }

    fn other() -> Vec<u8> {
        vec![1, 1, 2]
    }

    fn begin_with(&self, tx: &Tx<'_, P>, model: &Vec<u8>) -> Result<(), Abort> {
        while self.0.pop(tx)?.is_some() {}
        model.iter().try_for_each(|&priority| self.push(tx, priority))
    }

    fn contents(&self, tx: &Tx<'_, P>) -> Result<Vec<i64>, Abort> {
        let entries = self.0.iter(tx).collect::<Result<Vec<_>, _>>()?;
        Ok(entries.into_iter().flat_map(|each| entry(Some(each))).collect())
    }

    fn contents_of(model: &Vec<u8>) -> Vec<i64> {
        model.iter().flat_map(|&priority| [priority.into(), i64::from(priority) * 10]).collect()
    }
}

struct List<P: Protocol>(TList<u64, P>);

fn element(result: Result<Option<u64>, Abort>) -> Result<Vec<i64>, Abort> {
    result.map(|element| element.into_iter().map(|element| element as i64).collect())
}

fn elements(elements: impl Iterator<Item = Result<u64, Abort>>) -> Result<Vec<i64>, Abort> {
    elements.map(|element| Ok(element? as i64)).collect()
}

impl<P: Protocol> Subject<P> for List<P> {
    type Model = Vec<i64>;
    const SEQUENCED: u64 = 8;
    const OPERATIONS: u64 = 13;

    fn new(db: &Database<P>) -> Self {
        List(TList::new(db).unwrap())
    }

    fn run(&self, tx: &Tx<'_, P>, operation: u64) -> Result<Vec<i64>, Abort> {
        match operation {
            0 => done(self.0.insert(tx, 2)),
            1 => done(self.0.insert(tx, 1)),
            2 => answer(self.0.remove(tx, 2)),
            3 => element(self.0.pop_first(tx)),
            4 => element(self.0.pop_last(tx)),
            5 => self.contents(tx),
            6 => self.0.count(tx, 2).map(|count| vec![count as i64]),
            7 => elements(self.0.range(tx, 2..9).rev()),
            8 => element(self.0.first(tx)),
            9 => element(self.0.last(tx)),
            10 => self.0.remove_all(tx, 2).map(|count| vec![count as i64]),
            11 => answer(self.0.contains(tx, 3)),
            _ => done(self.0.insert(tx, 3)),
        }
    }

    fn model(model: &mut Vec<i64>, operation: u64) -> Told {
        let count = |model: &Vec<i64>, of: i64| model.iter().filter(|&&each| each == of).count();
        Shows(match operation {
            0 | 1 | 12 => {
                model.push([2, 1, 3][operation.min(2) as usize]);
                model.sort_unstable();
                vec![]
            }
            2 => {
                let place = model.iter().position(|&each| each == 2);
                vec![i64::from(place.map(|place| model.remove(place)).is_some())]
            }
            3 if model.is_empty() => vec![],
            3 => vec![model.remove(0)],
            4 => model.pop().into_iter().collect(),
            5 => model.clone(),
            6 => vec![count(model, 2) as i64],
            7 => model.iter().rev().copied().filter(|&each| each >= 2).collect(),
            8 => model.first().copied().into_iter().collect(),
            9 => model.last().copied().into_iter().collect(),
            10 => {
                let twos = count(model, 2);
                model.retain(|&each| each != 2);
                vec![twos as i64]
            }
            _ => vec![i64::from(model.contains(&3))],
        })
    }

    fn other() -> Vec<i64> {
        vec![1, 2, 2]
    }

    fn begin_with(&self, tx: &Tx<'_, P>, model: &Vec<i64>) -> Result<(), Abort> {
        (1..=3).try_for_each(|element: u64| self.0.remove_all(tx, element).map(drop))?;
        model.iter().try_for_each(|&element| self.0.insert(tx, element as u64))
    }

    fn contents(&self, tx: &Tx<'_, P>) -> Result<Vec<i64>, Abort> {
        elements(self.0.iter(tx))
    }

    fn contents_of(model: &Vec<i64>) -> Vec<i64> {
        model.clone()
    }
}
