//! The transactions on a map and on a queue, and the checks of what they leave.

use std::sync::atomic::{AtomicI64, Ordering};

use candide_workloads::stream;
use clap::ValueEnum;

use crate::timed::{Failure, Lot, Sample, drive};

/// What transactions use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// A map
    Map,
    /// A queue
    Queue,
}

impl Shape {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Shape::Map => "map",
            Shape::Queue => "queue",
        }
    }
}

/// The number of operations of a transaction on a map.
pub(crate) const OPERATIONS: usize = 8;

/// An operation on a map. The value of every key is the key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    Get(u64),
    Insert(u64),
    Remove(u64),
}

/// A map from some numbers below a limit to themselves.
pub(crate) trait MapSide: Sync {
    type Session<'s>: FnMut(&[Operation; OPERATIONS]) -> Result<Ended, Failure>
    where
        Self: 's;

    /// Returns what runs a transaction.
    fn session(&self) -> Result<Self::Session<'_>, Failure>;

    /// Returns the number of keys that are there.
    fn len(&self) -> u64;
}

/// A queue of numbers.
pub(crate) trait QueueSide: Sync {
    type Session<'s>: FnMut(Option<i64>) -> Result<Ended, Failure>
    where
        Self: 's;

    /// Returns what pushes a number, or pops one if there is none to push. It returns the popped
    /// number, or 0 if the queue was empty.
    fn session(&self) -> Result<Self::Session<'_>, Failure>;
}

/// The result of a transaction: what it has added (keys) or popped, and the number of attempts
/// before the last one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) output: i64,
    pub(crate) retries: u64,
}

/// Runs transactions on a map in which the even keys below `keys` are there.
pub(crate) fn run_map(map: &impl MapSide, keys: u64, lot: Lot) -> Result<Sample, Failure> {
    let grown = AtomicI64::new(0);
    let threads = (0..lot.threads).map(|thread| {
        let grown = &grown;
        move |running: &dyn Fn() -> bool| -> Result<(u64, u64), Failure> {
            let mut rng = stream(lot.seed, thread as u64);
            let (mut run, mut sum, mut committed, mut retries) = (map.session()?, 0, 0, 0);
            while running() {
                let mut operations = [Operation::Get(0); OPERATIONS];
                for (place, operation) in operations.iter_mut().enumerate() {
                    let key = rng.u64(..keys);
                    *operation = match place {
                        0 => Operation::Insert(key),
                        1 => Operation::Remove(key),
                        _ => Operation::Get(key),
                    };
                }
                let ended = run(&operations)?;
                sum += ended.output;
                retries += ended.retries;
                committed += 1;
            }
            grown.fetch_add(sum, Ordering::Relaxed);
            Ok((committed, retries))
        }
    });
    let sample = drive(threads, lot.duration)?;
    let (left, expected) = (map.len() as i64, keys.div_ceil(2) as i64 + grown.into_inner());
    if left != expected {
        return Err(format!("the map has {left} keys where {expected} were committed").into());
    }
    Ok(sample)
}

/// The numbers that each thread pushes before the run.
const BEFORE: i64 = 1000;

/// Runs transactions on an empty queue.
pub(crate) fn run_queue(queue: &impl QueueSide, lot: Lot) -> Result<Sample, Failure> {
    let balance = AtomicI64::new(0);
    let mut session = queue.session()?;
    for number in 1..=BEFORE * lot.threads as i64 {
        session(Some(number))?;
        balance.fetch_add(number, Ordering::Relaxed);
    }
    drop(session);
    let threads = (0..lot.threads).map(|thread| {
        let balance = &balance;
        move |running: &dyn Fn() -> bool| -> Result<(u64, u64), Failure> {
            let mut run = queue.session()?;
            let (mut sum, mut committed, mut retries) = (0, 0, 0);
            let mut number = thread as i64 + 1;
            while running() {
                let push = (committed % 2 == 0).then_some(number);
                let ended = run(push)?;
                sum += push.unwrap_or(0) - ended.output;
                number += lot.threads as i64;
                retries += ended.retries;
                committed += 1;
            }
            balance.fetch_add(sum, Ordering::Relaxed);
            Ok((committed, retries))
        }
    });
    let sample = drive(threads, lot.duration)?;
    let (mut session, mut left) = (queue.session()?, 0);
    loop {
        match session(None)?.output {
            0 => break,
            number => left += number,
        }
    }
    let expected = balance.into_inner();
    if left != expected {
        return Err(format!("the queue holds {left} in sum where {expected} were committed").into());
    }
    Ok(sample)
}
