//! A model of chains of transactions over relaxed locks. The tests explore all interleavings of a
//! few transactions, and see that without any one of its rules something goes wrong.
//!
//! A version for each transaction, members that fail, rows that are deleted and inserted, wild
//! transactions, a transaction that held a cell before, a reader with a view, and what a recovery
//! from the log restores.

mod world;

use std::collections::{BTreeSet, HashSet};
use world::{Cast, Op, Plan, Rule, Second, World};

const WAITS: &str = "a transaction waits for ever";
const CIRCLE: &str = "no serial order explains the result";
const LOCKED: &str = "a cell stays locked";
const RECOVERED: &str = "a recovery restores another value";
const EXISTENCE: &str = "a row that is absent is deleted, or a present one inserted";
const HALF: &str = "a transaction that has failed has an effect";

/// Returns what is wrong with a state that has no successor.
fn faults(world: &World, cast: &Cast) -> Vec<&'static str> {
    if !world.is_over() {
        return vec![WAITS];
    }
    let mut found = Vec::new();
    let is_left = world.cells.iter().any(|cell| cell.locked || cell.second != Second::Free);
    let committed = |txn: &u8| world.txns[usize::from(*txn)].counts == Some(true);
    if is_left {
        found.push(LOCKED);
    }
    if !world.cells.iter().all(|cell| cell.words.iter().all(committed)) {
        found.push(HALF);
    }
    if !is_serial(world) {
        found.push(CIRCLE);
    }
    for (place, cell) in world.cells.iter().enumerate() {
        let records =
            cast.plans.iter().zip(&world.txns).filter(|(_, txn)| txn.counts == Some(true));
        let records = records.filter_map(|(plan, txn)| {
            let item = plan.writes.iter().position(|&(cell, _)| cell == place)?;
            Some((txn.version, &txn.images[item]))
        });
        if records.max_by_key(|record| record.0).is_some_and(|(_, image)| *image != cell.words) {
            found.push(RECOVERED);
        }
        let mut exists = true;
        for &txn in &cell.words {
            let mut writes = cast.plans[usize::from(txn)].writes.iter();
            let (_, op) = writes.find(|(cell, _)| *cell == place).expect("it writes the cell");
            if exists == (*op == Op::Insert) {
                found.push(EXISTENCE);
            }
            exists = *op != Op::Delete;
        }
    }
    found
}

/// Returns whether some order of the transactions and the reader explains what was read.
fn is_serial(world: &World) -> bool {
    let count = world.txns.len() + 1;
    let mut edges = HashSet::new();
    let mut reads = |reader: usize, place: usize, seen: usize| {
        for (number, &writer) in world.cells[place].words.iter().enumerate() {
            let writer = usize::from(writer);
            if writer != reader {
                edges.insert(if number < seen { (writer, reader) } else { (reader, writer) });
            }
        }
    };
    for (number, txn) in world.txns.iter().enumerate() {
        if txn.counts == Some(true) {
            txn.seen.iter().for_each(|&(place, _, seen)| reads(number, place, seen));
        }
    }
    if let Some(reader) = &world.reader {
        for (place, (_, words)) in reader.seen.iter().enumerate() {
            if !world.cells[place].words.starts_with(words) {
                return false;
            }
            reads(count - 1, place, words.len());
        }
    }
    for cell in &world.cells {
        for pair in cell.words.windows(2) {
            edges.insert((usize::from(pair[0]), usize::from(pair[1])));
        }
        if cell.words.iter().collect::<HashSet<_>>().len() < cell.words.len() {
            return false;
        }
    }
    has_order(&mut (0..count).collect(), &edges)
}

/// Returns whether the edges among the participants in `left` have no circle.
fn has_order(left: &mut Vec<usize>, edges: &HashSet<(usize, usize)>) -> bool {
    while let Some(first) =
        left.iter().position(|to| !edges.iter().any(|(from, end)| end == to && left.contains(from)))
    {
        left.swap_remove(first);
    }
    left.is_empty()
}

/// Explores all interleavings. Returns the number of states, and what went wrong.
fn explore(cast: &Cast) -> (usize, BTreeSet<&'static str>) {
    let first = World::new(cast);
    let mut seen = HashSet::from([first.clone()]);
    let (mut fresh, mut found) = (vec![first], BTreeSet::new());
    while let Some(world) = fresh.pop() {
        let next = world.steps(cast);
        // A tick of the epoch or a step of the reader does not help a transaction that waits.
        let is_stuck = !next.iter().any(|next| next.txns != world.txns);
        if is_stuck {
            found.extend(faults(&world, cast));
        }
        for next in next {
            if seen.insert(next.clone()) {
                fresh.push(next);
            }
        }
    }
    (seen.len(), found)
}

/// Returns the casts of the explorations, each by the name of what it shows.
fn casts() -> Vec<(&'static str, Vec<Plan>, bool)> {
    let changes = Plan::changes;
    let holder = Plan { holds: Some(1), ..changes(&[0]) };
    vec![
        ("three", vec![changes(&[0, 1]), changes(&[1, 2]), changes(&[0, 2])], false),
        ("pair", vec![changes(&[0, 1]), changes(&[0, 1])], false),
        ("overtaking", vec![changes(&[0, 1]), changes(&[0]), changes(&[0, 1])], false),
        ("chain", vec![changes(&[0]).last(90), changes(&[0]).fails(), changes(&[0])], false),
        ("middle", vec![changes(&[0, 1]).last(90), changes(&[0]).fails(), changes(&[0, 1])], false),
        ("half", vec![changes(&[0, 1]), changes(&[0, 1]).fails()], false),
        ("viewed", vec![changes(&[0, 1]), changes(&[0]).fails()], true),
        ("seen", vec![changes(&[0, 1]), changes(&[0, 1])], true),
        ("wild", vec![changes(&[0]), changes(&[0]).reads(&[0])], false),
        ("wilds", vec![changes(&[0]).reads(&[0]), changes(&[0]).reads(&[0]), changes(&[0])], false),
        ("skew", vec![changes(&[0]).reads(&[1]), changes(&[1]).reads(&[0]), changes(&[0])], false),
        ("rows", vec![Plan::doing(Op::Delete), Plan::doing(Op::Insert), changes(&[0])], false),
        ("deletes", vec![Plan::doing(Op::Delete), Plan::doing(Op::Delete)], false),
        ("held", vec![changes(&[0, 1]), holder], false),
    ]
}

/// Explores the cast with this name.
fn explore_named(wanted: &str, without: Option<Rule>) -> (usize, BTreeSet<&'static str>) {
    let all = casts();
    let (_, plans, has_reader) =
        all.into_iter().find(|(name, ..)| *name == wanted).expect("there is such a cast");
    explore(&Cast { plans, has_reader, without })
}

#[test]
fn chains_are_serial_and_never_wait_for_ever() {
    let mut all = 0;
    for (name, ..) in casts() {
        let (states, found) = explore_named(name, None);
        println!("{name}: {states} states");
        assert_eq!(found, BTreeSet::new(), "{name}");
        all += states;
    }
    assert!(all > 50_000, "{all} states");
}

#[test]
fn leaving_out_any_rule_about_chains_fails_the_model() {
    for (rule, cast, fault) in [
        (Rule::Gate, "pair", WAITS),
        (Rule::Frontier, "overtaking", WAITS),
        (Rule::CommitOrder, "wild", CIRCLE),
        (Rule::AwaitDone, "chain", RECOVERED),
        (Rule::CloseByExchange, "chain", LOCKED),
        (Rule::AbovePredecessors, "chain", RECOVERED),
        (Rule::VersionLeft, "chain", RECOVERED),
        (Rule::PublishFound, "chain", RECOVERED),
        (Rule::ExistenceAtGate, "deletes", EXISTENCE),
        (Rule::CertifyLate, "wild", CIRCLE),
        (Rule::HolderTakesFree, "held", WAITS),
        (Rule::EvaluateAllFirst, "half", HALF),
    ] {
        let (states, found) = explore_named(cast, Some(rule));
        println!("{cast} without {rule:?}: {states} states, {found:?}");
        assert!(found.contains(fault), "{cast} without {rule:?}: {found:?}");
    }
}
