//! The checkers against a search through all serial orders.
//!
//! Both must agree.

use crate::store::{Load, Operation, Store, run};
use candide_check::Verdict;
use candide_check::black::{
    ListOp, Options, Outcome, RegisterOp, Transaction, check_lists, check_registers,
};
use fastrand::Rng;
use std::collections::{HashMap, HashSet};

const HISTORIES: u64 = 12_000;

/// An operation as the search does it.
trait Serial: Operation + Clone + std::fmt::Debug {
    /// The key, and what was written to it or else read of it.
    fn parts(&self) -> (u64, Result<u64, Vec<u64>>);
}

impl Serial for ListOp {
    fn parts(&self) -> (u64, Result<u64, Vec<u64>>) {
        match self {
            ListOp::Append { key, value } => (*key, Ok(*value)),
            ListOp::Read { key, values } => (*key, Err(values.clone())),
        }
    }
}

impl Serial for RegisterOp {
    fn parts(&self) -> (u64, Result<u64, Vec<u64>>) {
        match self {
            RegisterOp::Write { key, value } => (*key, Ok(*value)),
            RegisterOp::Read { key, value } => (*key, Err(value.iter().copied().collect())),
        }
    }
}

type State = HashMap<u64, Vec<u64>>;

/// Returns whether some serial order of the committed transactions, and of some with an unknown
/// outcome, explains all reads.
fn has_serial_order<O: Serial>(history: &[Transaction<O>], options: Options) -> bool {
    let before = |one: &Transaction<O>, other: &Transaction<O>| {
        let real_time = options.real_time && one.completed < other.invoked;
        let session =
            options.sessions && one.session == other.session && one.completed <= other.invoked;
        one.outcome == Outcome::Committed && (real_time || session)
    };
    let run = |state: &State, transaction: &Transaction<O>| -> Option<State> {
        let mut state = state.clone();
        for operation in &transaction.operations {
            let (key, part) = operation.parts();
            let held = state.entry(key).or_default();
            match part {
                Ok(value) => {
                    if O::REPLACES {
                        held.clear();
                    }
                    held.push(value);
                }
                Err(read) if transaction.outcome == Outcome::Committed && read != *held => {
                    return None;
                }
                Err(_) => {}
            }
        }
        Some(state)
    };
    fn search<O: Serial>(
        history: &[Transaction<O>],
        done: u32,
        state: &State,
        before: &dyn Fn(&Transaction<O>, &Transaction<O>) -> bool,
        run: &dyn Fn(&State, &Transaction<O>) -> Option<State>,
    ) -> bool {
        let left =
            |place: &usize| done & 1 << place == 0 && history[*place].outcome != Outcome::Aborted;
        let left: Vec<usize> = (0..history.len()).filter(left).collect();
        if left.iter().all(|place| history[*place].outcome == Outcome::Unknown) {
            return true;
        }
        left.iter().any(|next| {
            let free = left.iter().all(|other| !before(&history[*other], &history[*next]));
            free && run(state, &history[*next])
                .is_some_and(|state| search(history, done | 1 << next, &state, before, run))
        })
    }
    search(history, 0, &State::new(), &before, &run)
}

/// A small history of some store, in which a read may have been changed afterwards.
fn small<O: Serial>(rng: &mut Rng) -> Vec<Transaction<O>> {
    let stores =
        [Store::Serial, Store::LostUpdates, Store::DirtyReads, Store::Snapshots, Store::StaleReads];
    let store = stores[rng.usize(0..stores.len())];
    let load = Load {
        sessions: rng.usize(1..5),
        transactions: rng.usize(2..7),
        operations: rng.usize(1..5),
        keys: rng.u64(1..4),
        writes_per_key: 1_000,
        mishaps: rng.bool(),
    };
    let mut history: Vec<Transaction<O>> = run(store, &load, rng);
    match rng.u8(0..5) {
        0 | 1 => {}
        2 => damage(&mut history, rng),
        _ => scramble(&mut history, rng),
    }
    // A coarse clock, on which some events are at the same time.
    let tick = rng.u64(1..4);
    for transaction in &mut history {
        transaction.invoked /= tick;
        transaction.completed /= tick;
    }
    history
}

/// Lets every transaction read anything that is not wrong by itself, so that only cycles can be.
fn scramble<O: Serial>(history: &mut [Transaction<O>], rng: &mut Rng) {
    let mut orders: HashMap<u64, Vec<u64>> = HashMap::new();
    for (key, part) in history.iter().flat_map(|transaction| &transaction.operations).map(O::parts)
    {
        orders.entry(key).or_default().extend(part);
    }
    let mut keys: Vec<u64> = orders.keys().copied().collect();
    keys.sort_unstable();
    keys.iter().for_each(|key| rng.shuffle(orders.get_mut(key).expect("one of its keys")));
    for transaction in history {
        let mut touched = HashSet::new();
        transaction.operations.retain(|operation| {
            let (key, part) = operation.parts();
            touched.insert(key) || part.is_ok()
        });
        for operation in &mut transaction.operations {
            if let (key, Err(_)) = operation.parts() {
                let order = &orders[&key];
                *operation = O::read(key, &order[..rng.usize(0..=order.len())]);
            }
        }
    }
}

/// Changes a read of a committed transaction.
fn damage<O: Serial>(history: &mut [Transaction<O>], rng: &mut Rng) {
    let transaction = rng.usize(0..history.len());
    let operations = &mut history[transaction].operations;
    let place = rng.usize(0..operations.len());
    if let (key, Err(mut values)) = operations[place].parts() {
        match rng.u8(0..4) {
            0 => drop(values.pop()),
            1 => values.push(rng.u64(1..6)),
            2 => rng.shuffle(&mut values),
            _ if values.is_empty() => {}
            _ => drop(values.remove(0)),
        }
        operations[place] = O::read(key, &values);
    }
}

/// Asserts that histories are accepted if they have a serial order and refused if they have none.
fn compare<O: Serial>(
    what: &str,
    options: Options,
    check: fn(&[Transaction<O>], Options) -> Verdict,
) {
    let mut bad = 0;
    for seed in 0..HISTORIES {
        let history: Vec<Transaction<O>> = small(&mut Rng::with_seed(seed));
        let is_good = has_serial_order(&history, options);
        match check(&history, options) {
            Verdict::Serializable if is_good => {}
            Verdict::Violated(_) if !is_good => bad += 1,
            verdict => panic!("{what}, seed {seed}, {options:?}: {verdict:#?} of {history:#?}"),
        }
    }
    println!("{what}, {options:?}: {bad} of {HISTORIES} histories have no serial order");
    assert!(
        (HISTORIES / 10..HISTORIES * 9 / 10).contains(&bad),
        "too few good or bad histories to tell"
    );
}

fn each_option(mut run: impl FnMut(Options)) {
    for (sessions, real_time) in [(false, false), (true, false), (false, true), (true, true)] {
        run(Options { sessions, real_time });
    }
}

#[test]
fn lists_are_refused_if_and_only_if_there_is_no_serial_order() {
    each_option(|options| {
        compare::<ListOp>("lists", options, |history, options| check_lists(history, options).into())
    });
}

#[test]
fn registers_are_refused_if_and_only_if_there_is_no_serial_order() {
    each_option(|options| compare::<RegisterOp>("registers", options, check_registers));
}
