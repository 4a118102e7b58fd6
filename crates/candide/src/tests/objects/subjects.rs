//! The objects that are compared with types of the standard library.

use crate::engine::Protocol;
use crate::objects::{TArray, TBox, TCounter, TMap, TOrderedMap, TSet};
use crate::{Abort, Database, Tx};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What a model says of an operation.
pub(super) enum Told {
    /// The operation returns these values: nothing, one or no value of an option, or 1 for true.
    Shown(Vec<i64>),
    /// The operation returns this error, and has no effect.
    Refused(Abort),
    /// The transaction cannot but end in this outcome.
    Fails(Abort),
}

use Told::{Fails, Refused, Shown as Shows};

/// An object, with a model of it. Operations have numbers from zero.
pub(super) trait Subject<P: Protocol>: Sized {
    type Model: Clone + Default;
    /// The number of operations of which all sequences are run: the first ones.
    const SEQUENCED: u64;
    const OPERATIONS: u64;

    fn new(db: &Database<P>) -> Self;
    fn run(&self, tx: &Tx<'_, P>, operation: u64) -> Result<Vec<i64>, Abort>;
    fn model(model: &mut Self::Model, operation: u64) -> Told;
    /// Returns another state than the default, from which sequences begin.
    fn other() -> Self::Model;
    /// Gives the object the state of the model.
    fn begin_with(&self, tx: &Tx<'_, P>, model: &Self::Model) -> Result<(), Abort>;
    fn contents(&self, tx: &Tx<'_, P>) -> Result<Vec<i64>, Abort>;
    fn contents_of(model: &Self::Model) -> Vec<i64>;
}

pub(super) fn done(result: Result<(), Abort>) -> Result<Vec<i64>, Abort> {
    result.map(|()| Vec::new())
}

pub(super) fn answer(result: Result<bool, Abort>) -> Result<Vec<i64>, Abort> {
    result.map(|is_so| vec![i64::from(is_so)])
}

fn value(result: Result<i64, Abort>) -> Result<Vec<i64>, Abort> {
    result.map(|value| vec![value])
}

pub(super) fn option(result: Result<Option<i64>, Abort>) -> Result<Vec<i64>, Abort> {
    result.map(|value| value.into_iter().collect())
}

fn pair(result: Result<Option<(u64, i64)>, Abort>) -> Result<Vec<i64>, Abort> {
    result.map(|entry| entry.into_iter().flat_map(|(key, value)| [key as i64, value]).collect())
}

/// Replaces a number by a sum, unless that overflows or leaves the bounds.
fn add(number: &mut i64, summand: i64, least: i64, most: i64) -> Told {
    let sum = i128::from(*number) + i128::from(summand);
    if sum < i128::from(least) && least > i64::MIN || sum > i128::from(most) && most < i64::MAX {
        return Fails(Abort::Guard);
    }
    match i64::try_from(sum) {
        Ok(sum) => {
            *number = sum;
            Shows(vec![])
        }
        Err(_) => Fails(Abort::Overflow),
    }
}

pub(super) struct Boxed<P: Protocol>(TBox<i64, P>);

impl<P: Protocol> Subject<P> for Boxed<P> {
    type Model = i64;
    const SEQUENCED: u64 = 8;
    const OPERATIONS: u64 = 9;

    fn new(db: &Database<P>) -> Self {
        Boxed(TBox::new(db, 0).unwrap())
    }

    fn run(&self, tx: &Tx<'_, P>, operation: u64) -> Result<Vec<i64>, Abort> {
        match operation {
            0 => value(self.0.get(tx)),
            1 => done(self.0.set(tx, 5)),
            2 => value(self.0.replace(tx, 2)),
            3 => value(self.0.modify(tx, |value| {
                *value = value.wrapping_mul(2) + 1;
                *value
            })),
            4 => done(self.0.add(tx, 3)),
            5 => answer(self.0.is_within(tx, 3..=6)),
            6 => value(self.0.get_for_update(tx)),
            7 => done(self.0.add(tx, i64::MAX - 4)),
            _ => done(self.0.set(tx, i64::MIN)),
        }
    }

    fn model(model: &mut i64, operation: u64) -> Told {
        match operation {
            0 | 6 => Shows(vec![*model]),
            1 => {
                *model = 5;
                Shows(vec![])
            }
            2 => Shows(vec![std::mem::replace(model, 2)]),
            3 => {
                *model = model.wrapping_mul(2) + 1;
                Shows(vec![*model])
            }
            4 => add(model, 3, i64::MIN, i64::MAX),
            5 => Shows(vec![i64::from((3..=6).contains(model))]),
            7 => add(model, i64::MAX - 4, i64::MIN, i64::MAX),
            _ => {
                *model = i64::MIN;
                Shows(vec![])
            }
        }
    }

    fn other() -> i64 {
        4
    }

    fn begin_with(&self, tx: &Tx<'_, P>, model: &i64) -> Result<(), Abort> {
        self.0.set(tx, *model)
    }

    fn contents(&self, tx: &Tx<'_, P>) -> Result<Vec<i64>, Abort> {
        value(self.0.get(tx))
    }

    fn contents_of(model: &i64) -> Vec<i64> {
        vec![*model]
    }
}

pub(super) struct Counter<P: Protocol>(TCounter<P>);

impl<P: Protocol> Subject<P> for Counter<P> {
    type Model = i64;
    const SEQUENCED: u64 = 8;
    const OPERATIONS: u64 = 12;

    fn new(db: &Database<P>) -> Self {
        Counter(TCounter::new(db).unwrap())
    }

    fn run(&self, tx: &Tx<'_, P>, operation: u64) -> Result<Vec<i64>, Abort> {
        match operation {
            0 => value(self.0.get(tx)),
            1 => done(self.0.add(tx, 2)),
            2 => done(self.0.sub(tx, 3)),
            3 => done(self.0.set(tx, 4)),
            4 => done(self.0.add_within(tx, -3, 0, 10)),
            5 => answer(self.0.at_least(tx, 1)),
            6 => answer(self.0.at_most(tx, 3)),
            7 => done(self.0.wrapping_add(tx, i64::MAX)),
            8 => answer(self.0.is_within(tx, 2..5)),
            9 => answer(self.0.is_within(tx, 5..5)),
            10 => answer(self.0.is_within(tx, ..)),
            _ => done(self.0.add(tx, i64::MAX)),
        }
    }

    fn model(model: &mut i64, operation: u64) -> Told {
        let says = |is_so| Shows(vec![i64::from(is_so)]);
        match operation {
            0 => Shows(vec![*model]),
            1 => add(model, 2, i64::MIN, i64::MAX),
            2 => add(model, -3, i64::MIN, i64::MAX),
            3 => {
                *model = 4;
                Shows(vec![])
            }
            4 => add(model, -3, 0, 10),
            5 => says(*model >= 1),
            6 => says(*model <= 3),
            7 => {
                *model = model.wrapping_add(i64::MAX);
                Shows(vec![])
            }
            8 => says((2..5).contains(model)),
            9 => says(false),
            10 => says(true),
            _ => add(model, i64::MAX, i64::MIN, i64::MAX),
        }
    }

    fn other() -> i64 {
        3
    }

    fn begin_with(&self, tx: &Tx<'_, P>, model: &i64) -> Result<(), Abort> {
        self.0.set(tx, *model)
    }

    fn contents(&self, tx: &Tx<'_, P>) -> Result<Vec<i64>, Abort> {
        value(self.0.get(tx))
    }

    fn contents_of(model: &i64) -> Vec<i64> {
        vec![*model]
    }
}

pub(super) struct Array<P: Protocol>(TArray<i64, P>);

impl<P: Protocol> Subject<P> for Array<P> {
    type Model = [i64; 3];
    const SEQUENCED: u64 = 8;
    const OPERATIONS: u64 = 11;

    fn new(db: &Database<P>) -> Self {
        Array(TArray::new(db, 3, |_| 0).unwrap())
    }

    fn run(&self, tx: &Tx<'_, P>, operation: u64) -> Result<Vec<i64>, Abort> {
        match operation {
            0 => value(self.0.get(tx, 0)),
            1 => value(self.0.get(tx, 3)),
            2 => done(self.0.set(tx, 0, 4)),
            3 => done(self.0.swap(tx, 0, 2)),
            4 => done(self.0.add(tx, 2, 3)),
            5 => value(self.0.modify(tx, 1, |value| {
                *value += 1;
                *value
            })),
            6 => answer(self.0.is_within(tx, 2, 1..)),
            7 => self.0.to_vec(tx),
            8 => done(self.0.swap(tx, 1, 1)),
            9 => value(self.0.replace(tx, 2, -1)),
            _ => done(self.0.set(tx, usize::MAX, 1)),
        }
    }

    fn model(model: &mut [i64; 3], operation: u64) -> Told {
        match operation {
            0 => Shows(vec![model[0]]),
            1 | 10 => Refused(Abort::OutOfBounds),
            2 => {
                model[0] = 4;
                Shows(vec![])
            }
            3 => {
                model.swap(0, 2);
                Shows(vec![])
            }
            4 => add(&mut model[2], 3, i64::MIN, i64::MAX),
            5 => {
                model[1] += 1;
                Shows(vec![model[1]])
            }
            6 => Shows(vec![i64::from(model[2] >= 1)]),
            7 => Shows(model.to_vec()),
            8 => Shows(vec![]),
            _ => Shows(vec![std::mem::replace(&mut model[2], -1)]),
        }
    }

    fn other() -> [i64; 3] {
        [7, 8, 9]
    }

    fn begin_with(&self, tx: &Tx<'_, P>, model: &[i64; 3]) -> Result<(), Abort> {
        model.iter().enumerate().try_for_each(|(index, &value)| self.0.set(tx, index, value))
    }

    fn contents(&self, tx: &Tx<'_, P>) -> Result<Vec<i64>, Abort> {
        self.0.to_vec(tx)
    }

    fn contents_of(model: &[i64; 3]) -> Vec<i64> {
        model.to_vec()
    }
}

pub(super) struct Map<P: Protocol>(TMap<u64, i64, P>);

impl<P: Protocol> Subject<P> for Map<P> {
    type Model = HashMap<u64, i64>;
    const SEQUENCED: u64 = 8;
    const OPERATIONS: u64 = 14;

    fn new(db: &Database<P>) -> Self {
        Map(TMap::new(db).unwrap())
    }

    fn run(&self, tx: &Tx<'_, P>, operation: u64) -> Result<Vec<i64>, Abort> {
        match operation {
            0 => option(self.0.get(tx, 1)),
            1 => done(self.0.put(tx, 1, 5)),
            2 => option(self.0.insert(tx, 1, 6)),
            3 => option(self.0.remove(tx, 1)),
            4 => done(self.0.add(tx, 1, 2)),
            5 => option(self.0.modify(tx, 1, |value| {
                *value += 1;
                *value
            })),
            6 => answer(self.0.insert_if_absent(tx, 2, 7)),
            7 => self.contents(tx),
            8 => answer(self.0.delete(tx, 2)),
            9 => value(self.0.get_or_insert(tx, 2, 9)),
            10 => value(self.0.modify_or_insert(tx, 3, 10, |value| {
                *value = value.wrapping_mul(2);
                *value % 1_000
            })),
            11 => answer(self.0.contains_key(tx, 3)),
            12 => option(self.0.is_within(tx, 1, 5..=7).map(|is_so| is_so.map(i64::from))),
            _ => option(self.0.get_for_update(tx, 3)),
        }
    }

    fn model(model: &mut HashMap<u64, i64>, operation: u64) -> Told {
        Shows(match operation {
            0 => model.get(&1).copied().into_iter().collect(),
            1 => {
                model.insert(1, 5);
                vec![]
            }
            2 => model.insert(1, 6).into_iter().collect(),
            3 => model.remove(&1).into_iter().collect(),
            4 => {
                *model.entry(1).or_insert(0) += 2;
                vec![]
            }
            5 => {
                let value = model.get_mut(&1);
                value
                    .map(|value| *value += 1)
                    .and_then(|()| model.get(&1))
                    .copied()
                    .into_iter()
                    .collect()
            }
            6 => {
                let is_absent = !model.contains_key(&2);
                model.entry(2).or_insert(7);
                vec![i64::from(is_absent)]
            }
            7 => Self::contents_of(model),
            8 => vec![i64::from(model.remove(&2).is_some())],
            9 => vec![*model.entry(2).or_insert(9)],
            10 => {
                let value = model.entry(3).or_insert(10);
                *value = value.wrapping_mul(2);
                vec![*value % 1_000]
            }
            11 => vec![i64::from(model.contains_key(&3))],
            12 => {
                model.get(&1).map(|value| i64::from((5..=7).contains(value))).into_iter().collect()
            }
            _ => model.get(&3).copied().into_iter().collect(),
        })
    }

    fn other() -> HashMap<u64, i64> {
        HashMap::from([(1, 3), (2, 4)])
    }

    fn begin_with(&self, tx: &Tx<'_, P>, model: &HashMap<u64, i64>) -> Result<(), Abort> {
        (1..=3).try_for_each(|key| self.0.delete(tx, key).map(|_| ()))?;
        model.iter().try_for_each(|(&key, &value)| self.0.put(tx, key, value))
    }

    fn contents(&self, tx: &Tx<'_, P>) -> Result<Vec<i64>, Abort> {
        let entries: BTreeMap<u64, i64> = self.0.iter(tx).collect::<Result<_, _>>()?;
        Ok(entries.into_iter().flat_map(|(key, value)| [key as i64, value]).collect())
    }

    fn contents_of(model: &HashMap<u64, i64>) -> Vec<i64> {
        let sorted: BTreeMap<u64, i64> = model.iter().map(|(&key, &value)| (key, value)).collect();
        sorted.into_iter().flat_map(|(key, value)| [key as i64, value]).collect()
    }
}

pub(super) struct Set<P: Protocol>(TSet<u64, P>);

impl<P: Protocol> Subject<P> for Set<P> {
    type Model = HashSet<u64>;
    const SEQUENCED: u64 = 7;
    const OPERATIONS: u64 = 9;

    fn new(db: &Database<P>) -> Self {
        Set(TSet::new(db).unwrap())
    }

    fn run(&self, tx: &Tx<'_, P>, operation: u64) -> Result<Vec<i64>, Abort> {
        match operation {
            0 => answer(self.0.contains(tx, 1)),
            1 => answer(self.0.insert(tx, 1)),
            2 => done(self.0.put(tx, 1)),
            3 => answer(self.0.remove(tx, 1)),
            4 => answer(self.0.insert(tx, 2)),
            5 => answer(self.0.remove(tx, 2)),
            6 => self.contents(tx),
            7 => answer(self.0.insert(tx, 3)),
            _ => answer(self.0.remove(tx, 3)),
        }
    }

    fn model(model: &mut HashSet<u64>, operation: u64) -> Told {
        let says = |is_so| Shows(vec![i64::from(is_so)]);
        match operation {
            0 => says(model.contains(&1)),
            1 => says(model.insert(1)),
            2 => {
                model.insert(1);
                Shows(vec![])
            }
            3 => says(model.remove(&1)),
            4 => says(model.insert(2)),
            5 => says(model.remove(&2)),
            6 => Shows(Self::contents_of(model)),
            7 => says(model.insert(3)),
            _ => says(model.remove(&3)),
        }
    }

    fn other() -> HashSet<u64> {
        HashSet::from([1, 3])
    }

    fn begin_with(&self, tx: &Tx<'_, P>, model: &HashSet<u64>) -> Result<(), Abort> {
        (1..=3).try_for_each(|key| self.0.remove(tx, key).map(|_| ()))?;
        model.iter().try_for_each(|&key| self.0.put(tx, key))
    }

    fn contents(&self, tx: &Tx<'_, P>) -> Result<Vec<i64>, Abort> {
        let keys: BTreeSet<u64> = self.0.iter(tx).collect::<Result<_, _>>()?;
        Ok(keys.into_iter().map(|key| key as i64).collect())
    }

    fn contents_of(model: &HashSet<u64>) -> Vec<i64> {
        let sorted: BTreeSet<u64> = model.iter().copied().collect();
        sorted.into_iter().map(|key| key as i64).collect()
    }
}

pub(super) struct OrderedMap<P: Protocol>(TOrderedMap<u64, i64, P>);

impl<P: Protocol> Subject<P> for OrderedMap<P> {
    type Model = BTreeMap<u64, i64>;
    const SEQUENCED: u64 = 8;
    const OPERATIONS: u64 = 13;

    fn new(db: &Database<P>) -> Self {
        OrderedMap(TOrderedMap::new(db).unwrap())
    }

    fn run(&self, tx: &Tx<'_, P>, operation: u64) -> Result<Vec<i64>, Abort> {
        let entries = |entries: Vec<(u64, i64)>| {
            entries.into_iter().flat_map(|(key, value)| [key as i64, value]).collect()
        };
        match operation {
            0 => done(self.0.put(tx, 2, 5)),
            1 => done(self.0.put(tx, 1, 6)),
            2 => option(self.0.remove(tx, 2)),
            3 => pair(self.0.first(tx)),
            4 => pair(self.0.last(tx)),
            5 => pair(self.0.pop_first(tx)),
            6 => self.0.range(tx, 2..9).collect::<Result<_, _>>().map(entries),
            7 => option(self.0.insert(tx, 3, 7)),
            8 => pair(self.0.pop_last(tx)),
            9 => self.0.range(tx, ..3).rev().collect::<Result<_, _>>().map(entries),
            10 => done(self.0.add(tx, 3, 4)),
            11 => option(self.0.get(tx, 3)),
            _ => self.contents(tx),
        }
    }

    fn model(model: &mut BTreeMap<u64, i64>, operation: u64) -> Told {
        let entry = |entry: Option<(u64, i64)>| -> Vec<i64> {
            entry.into_iter().flat_map(|(key, value)| [key as i64, value]).collect()
        };
        let copied = |(&key, &value): (&u64, &i64)| (key, value);
        Shows(match operation {
            0 => {
                model.insert(2, 5);
                vec![]
            }
            1 => {
                model.insert(1, 6);
                vec![]
            }
            2 => model.remove(&2).into_iter().collect(),
            3 => entry(model.first_key_value().map(copied)),
            4 => entry(model.last_key_value().map(copied)),
            5 => entry(model.pop_first()),
            6 => model.range(2..9).flat_map(|(&key, &value)| [key as i64, value]).collect(),
            7 => model.insert(3, 7).into_iter().collect(),
            8 => entry(model.pop_last()),
            9 => model.range(..3).rev().flat_map(|(&key, &value)| [key as i64, value]).collect(),
            10 => {
                *model.entry(3).or_insert(0) += 4;
                vec![]
            }
            11 => model.get(&3).copied().into_iter().collect(),
            _ => Self::contents_of(model),
        })
    }

    fn other() -> BTreeMap<u64, i64> {
        BTreeMap::from([(2, 3), (3, 4)])
    }

    fn begin_with(&self, tx: &Tx<'_, P>, model: &BTreeMap<u64, i64>) -> Result<(), Abort> {
        (1..=3).try_for_each(|key| self.0.delete(tx, key).map(|_| ()))?;
        model.iter().try_for_each(|(&key, &value)| self.0.put(tx, key, value))
    }

    fn contents(&self, tx: &Tx<'_, P>) -> Result<Vec<i64>, Abort> {
        let entries = self.0.iter(tx).collect::<Result<Vec<_>, _>>()?;
        Ok(entries.into_iter().flat_map(|(key, value)| [key as i64, value]).collect())
    }

    fn contents_of(model: &BTreeMap<u64, i64>) -> Vec<i64> {
        model.iter().flat_map(|(&key, &value)| [key as i64, value]).collect()
    }
}
