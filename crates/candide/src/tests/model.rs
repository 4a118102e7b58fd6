//! Tests that every sequence of operations on one row has the effect that it would have on a map.
//!
//! The tests run all sequences of up to five operations on one key, from both initial states, in
//! one transaction. Then they run long random sequences over a few keys, with commits, errors and
//! panics in between. Unless `CANDIDE_FULL` is set, sequences have at most three
//! operations.

use super::properties;
use super::rows::Item;
use crate::engine::Protocol;
use crate::schema::{Refused, Updater};
use crate::sync::Random;
use crate::sync::size::is_short;
use crate::{Abort, Database, Session, Table, Whole};
use std::collections::BTreeMap;

/// An operation of a transaction on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Read,
    ReadColumn,
    ReadForUpdate,
    Insert,
    Put,
    Add,
    AddSmall,
    Guarded,
    SetFlag,
    SetBoth,
    SetGuarded,
    User,
    UserTotal,
    Modify,
    Delete,
}

use Operation::*;
const OPERATIONS: [Operation; 15] = [
    Read,
    ReadColumn,
    ReadForUpdate,
    Insert,
    Put,
    Add,
    AddSmall,
    Guarded,
    SetFlag,
    SetBoth,
    SetGuarded,
    User,
    Modify,
    Delete,
    UserTotal,
];
/// The number of operations in the longest sequences. The longest sequences omit the last
/// operation, which within one transaction is much like the other updater.
const OPERATIONS_OF_LONGEST: usize = 14;

/// An updater that doubles the count, and refuses to go beyond 1,000.
#[derive(Debug, Clone, Copy)]
struct Double;

impl Updater<Item> for Double {
    type Target = (crate::Column<Item, i64>, crate::Column<Item, bool>);

    fn target(&self) -> Self::Target {
        (Item::COUNT, Item::FLAG)
    }

    fn apply(&self, (count, flag): &mut (i64, bool)) -> Result<(), Refused> {
        *count *= 2;
        *flag = !*flag;
        if *count > 1_000 { Err(Refused) } else { Ok(()) }
    }
}

/// Returns the count after [`Triple`]. The result stays small, so that the operation can be
/// repeated often.
fn tripled(count: i64) -> i64 {
    count % 1_000 * 3 + 1
}

/// An updater that triples the count, and never fails.
#[derive(Debug, Clone, Copy)]
struct Triple;

impl Updater<Item> for Triple {
    type Target = (crate::Column<Item, bool>, crate::Column<Item, i64>);
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        (Item::FLAG, Item::COUNT)
    }

    fn apply(&self, (flag, count): &mut (bool, i64)) -> Result<(), Refused> {
        *count = tripled(*count);
        *flag = false;
        Ok(())
    }
}

/// The result that an operation returned to its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shown {
    Row(Option<Item>),
    Count(Result<i64, Abort>),
    Done(Result<(), Abort>),
}

/// A map with the documented semantics.
#[derive(Debug, Clone, Default)]
struct Model {
    rows: BTreeMap<u64, Item>,
    /// The units whose pending update has failed, each with its first failure.
    failed: Vec<(u64, u8, Abort)>,
}

impl Model {
    fn failure(&self, key: u64, group: u8) -> Option<Abort> {
        self.failed
            .iter()
            .find(|failed| failed.0 == key && failed.1 == group)
            .map(|failed| failed.2)
    }

    /// Applies one operation. `split` is whether each group is a unit, so that updates of groups
    /// fail separately.
    fn apply(&mut self, operation: Operation, key: u64, split: bool) -> Shown {
        let cold = u8::from(split);
        let failure = self.failure(key, 0).or(self.failure(key, cold));
        let hot_failure = self.failure(key, 0);
        let Some(row) = self.rows.get_mut(&key) else {
            return match operation {
                Read => Shown::Row(None),
                ReadColumn | ReadForUpdate => Shown::Count(Err(Abort::NotFound)),
                Insert | Put => {
                    self.rows.insert(key, Item::new(key, 1));
                    Shown::Done(Ok(()))
                }
                Modify => Shown::Count(Err(Abort::NotFound)),
                _ => Shown::Done(Err(Abort::NotFound)),
            };
        };
        let mut failed = None;
        let mut check = |value: Option<i64>, abort| match value {
            Some(value) => value,
            None => {
                failed = Some((key, 0, abort));
                i64::MAX
            }
        };
        let shown = match operation {
            Read => match failure {
                Some(abort) => Shown::Done(Err(abort)),
                None => Shown::Row(Some(*row)),
            },
            ReadColumn | ReadForUpdate => Shown::Count(hot_failure.map_or(Ok(row.count), Err)),
            Insert => Shown::Done(Err(Abort::Duplicate)),
            Put => {
                *row = Item::new(key, 1);
                Shown::Done(Ok(()))
            }
            Add => {
                row.count = row.count.saturating_add(5);
                Shown::Done(Ok(()))
            }
            AddSmall => {
                let small = u8::try_from(i64::from(row.small) + 200).ok();
                row.small = check(small.map(i64::from), Abort::Overflow) as u8;
                Shown::Done(Ok(()))
            }
            Guarded => {
                let count = row.count.saturating_sub(6);
                row.count = check((count >= 0).then_some(count), Abort::Guard);
                Shown::Done(Ok(()))
            }
            SetFlag => {
                row.flag = true;
                Shown::Done(Ok(()))
            }
            SetBoth => {
                row.count = row.count.max(9);
                row.other += 1;
                Shown::Done(Ok(()))
            }
            SetGuarded => {
                // The guard demands that five is at most four, so it fails for every old value.
                row.count = check(None, Abort::Guard);
                Shown::Done(Ok(()))
            }
            User => {
                row.flag = !row.flag;
                let count = row.count.saturating_mul(2);
                row.count = check((count <= 1_000).then_some(count), Abort::Guard);
                Shown::Done(Ok(()))
            }
            UserTotal => {
                (row.flag, row.count) = (false, tripled(row.count));
                Shown::Done(Ok(()))
            }
            Modify => match hot_failure {
                Some(abort) => Shown::Count(Err(abort)),
                None => {
                    row.count = row.count.saturating_add(100);
                    Shown::Count(Ok(row.count))
                }
            },
            Delete => {
                self.rows.remove(&key);
                Shown::Done(Ok(()))
            }
        };
        // After a failure the unit's value is undefined; only the first failure counts.
        if let Some(failed) = failed
            && self.failure(key, 0).is_none()
        {
            self.failed.push(failed);
        }
        shown
    }
}

/// Performs one operation in the engine.
fn perform<P: Protocol>(
    table: &Table<Item, P>,
    tx: &crate::Tx<'_, P>,
    operation: Operation,
    key: u64,
) -> Shown {
    match operation {
        Read => match table.get(tx, &key, Whole) {
            Ok(row) => Shown::Row(row),
            Err(abort) => Shown::Done(Err(abort)),
        },
        ReadColumn => Shown::Count(table.read(tx, &key, Item::COUNT)),
        ReadForUpdate => Shown::Count(table.read_for_update(tx, &key, Item::COUNT)),
        Insert => Shown::Done(table.insert(tx, Item::new(key, 1))),
        Put => Shown::Done(table.put(tx, Item::new(key, 1))),
        Add => Shown::Done(table.update(tx, &key, Item::COUNT.add(5))),
        AddSmall => Shown::Done(table.update(tx, &key, Item::SMALL.add(200))),
        Guarded => Shown::Done(table.update(tx, &key, Item::COUNT.sub(6).at_least(0))),
        SetFlag => Shown::Done(table.update(tx, &key, Item::FLAG.set(true))),
        SetBoth => Shown::Done(table.update(tx, &key, (Item::COUNT.max(9), Item::OTHER.add(1)))),
        SetGuarded => Shown::Done(table.update(tx, &key, Item::COUNT.set(5).at_most(4))),
        User => Shown::Done(table.update_with(tx, &key, Double)),
        UserTotal => Shown::Done(table.update_with(tx, &key, Triple)),
        Modify => Shown::Count(table.modify(tx, &key, Item::COUNT, |count| {
            *count += 100;
            *count
        })),
        Delete => Shown::Done(table.delete(tx, &key)),
    }
}

/// Runs a script as one transaction in the engine and in the model. Compares all visible results.
fn compare<P: Protocol>(
    session: &mut Session<P>,
    table: &Table<Item, P>,
    split: bool,
    model: &mut Model,
    script: &[(Operation, u64)],
) {
    let before = model.rows.clone();
    let expected: Vec<Shown> =
        script.iter().map(|&(operation, key)| model.apply(operation, key, split)).collect();
    let outcome = match model.failed.first() {
        Some(&(_, _, abort)) => {
            model.rows = before;
            Err(abort)
        }
        None => Ok(()),
    };
    model.failed.clear();
    let mut shown = Vec::new();
    let result = session.run(|tx| {
        shown.clear();
        shown.extend(script.iter().map(|&(operation, key)| perform(table, tx, operation, key)));
        Ok(())
    });
    assert_eq!(shown, expected, "{script:?}");
    assert_eq!(result, outcome, "{script:?}");
    let keys: std::collections::BTreeSet<u64> = script.iter().map(|&(_, key)| key).collect();
    for key in keys {
        let row = session.run(|tx| table.get(tx, &key, Whole)).unwrap();
        assert_eq!(row.as_ref(), model.rows.get(&key), "after {script:?}");
    }
}

protocol_tests!(all: all_sequences_of_up_to_five_operations_on_one_key);
fn all_sequences_of_up_to_five_operations_on_one_key<P: Protocol>() {
    for (splitting, updates) in [(true, true), (false, true), (true, false)] {
        let db = Database::<P>::builder()
            .timestamp_splitting(splitting)
            .commit_time_updates(updates)
            .manual_epochs(1)
            .build()
            .unwrap();
        let table = db.table::<Item>("items").unwrap();
        let mut session = db.session().unwrap();
        let split = splitting && properties::<P>().cell_words > 0;
        // The longest sequences run under one setting. Under the other settings, shorter sequences
        // run.
        let longest = if is_short() { 2 } else { 4 } + u32::from(splitting && updates);
        for length in 1..=longest {
            let operations =
                if length == 5 { &OPERATIONS[..OPERATIONS_OF_LONGEST] } else { &OPERATIONS[..] };
            for number in 0..operations.len().pow(length) {
                let mut rest = number;
                let script: Vec<_> = (0..length)
                    .map(|_| {
                        let operation = operations[rest % operations.len()];
                        rest /= operations.len();
                        (operation, 1)
                    })
                    .collect();
                for present in [false, true] {
                    let mut model = Model::default();
                    session
                        .run(|tx| {
                            table.delete_if_present(tx, 1)?;
                            if present { table.put(tx, Item::new(1, 3)) } else { Ok(()) }
                        })
                        .unwrap();
                    if present {
                        model.rows.insert(1, Item::new(1, 3));
                    }
                    compare(&mut session, &table, split, &mut model, &script);
                }
            }
        }
    }
}

protocol_tests!(all: long_random_sequences_with_errors_and_burials);
protocol_tests!(
    erased: long_random_sequences_under_erased_protocols
        = long_random_sequences_with_errors_and_burials()
);
fn long_random_sequences_with_errors_and_burials<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let epochs = db.inner.engine.epochs.clone();
    let table = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    let mut model = Model::default();
    let mut random = Random::seeded(20);
    for round in 0..3_000 {
        let script: Vec<_> = (0..1 + random.below(30))
            .map(|_| (OPERATIONS[random.below(OPERATIONS.len() as u64) as usize], random.below(20)))
            .collect();
        if random.below(5) == 0 {
            // A transaction that ends in an error of its own leaves no trace.
            let result: Result<(), Abort> = session.run(|tx| {
                for &(operation, key) in &script {
                    perform(&table, tx, operation, key);
                }
                Err(Abort::NotFound)
            });
            assert!(result.is_err());
        } else {
            compare(&mut session, &table, properties::<P>().cell_words > 0, &mut model, &script);
        }
        if round % 7 == 0 {
            // Meanwhile records of deleted rows are removed, and their memory is reused.
            epochs.pass();
        }
    }
    for key in 0..20 {
        assert_eq!(
            session.run(|tx| table.get(tx, &key, Whole)).unwrap().as_ref(),
            model.rows.get(&key)
        );
    }
    let mut raw = BTreeMap::new();
    table.for_each_quiescent(|row| assert!(raw.insert(row.id, *row).is_none())).unwrap();
    assert_eq!(raw, model.rows);
}
