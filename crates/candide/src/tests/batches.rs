//! Rows inserted as a batch. For all keys, refusals and interleavings, the effect must be the same
//! as if the rows were inserted one by one.

use super::rows::Item;
use super::transactions::run;
use crate::engine::Protocol;
use crate::sync::Random;
use crate::sync::size::is_short;
use crate::{Abort, Database, Prefix, RunOptions, Table, Tx};
use candide_derive::Record;
use std::cell::Cell;
use std::collections::BTreeMap;

/// A line of an order. The key of a line has four words, so the index has a layer for each word. A
/// line has two groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate, ordered)]
struct Line {
    #[key]
    warehouse: u16,
    #[key]
    district: u8,
    #[key]
    order: u32,
    #[key]
    number: u16,
    item: u32,
    #[group(delivery)]
    delivered: u64,
}

type Key = (u16, u8, u32, u16);

fn line((warehouse, district, order, number): Key, item: u32) -> Line {
    Line { warehouse, district, order, number, item, delivered: u64::from(item) + 1 }
}

fn rows<P: Protocol>(tx: &Tx<'_, P>, lines: &Table<Line, P>) -> Result<BTreeMap<Key, u32>, Abort> {
    lines.scan(tx, .., Line::ITEM).collect()
}

/// Draws the keys of a batch: neighbouring keys in one order or several, with gaps, repetitions and
/// steps back.
fn batch(random: &mut Random) -> Vec<Key> {
    let (warehouse, district) = (random.below(2) as u16, random.below(2) as u8);
    let (mut order, mut number) = (random.below(30) as u32, random.below(30) as u16);
    let (shuffled, repeating, ends) =
        (random.below(4) == 0, random.below(4) == 0, random.below(3) == 0);
    let mut keys: Vec<Key> = (0..1 + random.below(40))
        .map(|_| {
            let key = (warehouse, district, order, number);
            number +=
                if repeating && random.below(20) == 0 { 0 } else { 1 + random.below(2) as u16 };
            if ends && random.below(8) == 0 {
                (order, number) = (order + 1, random.below(4) as u16);
            }
            key
        })
        .collect();
    if shuffled {
        (1..keys.len()).for_each(|index| keys.swap(index, random.below(index as u64 + 1) as usize));
    }
    keys
}

protocol_tests!(all: a_batch_has_the_effect_of_single_operations);
fn a_batch_has_the_effect_of_single_operations<P: Protocol>() {
    let (mut whole, mut refused) = (0, 0);
    let seeds = if is_short() { 5 } else { 30 };
    for seed in 0..seeds as u64 {
        let mut random = Random::seeded(seed);
        let db = Database::<P>::builder().manual_epochs(1).seed(seed).build().unwrap();
        let lines = db.table::<Line>("lines").unwrap();
        let mut session = db.session().unwrap();
        let mut model = BTreeMap::new();
        for item in 0..40 {
            let batches = [batch(&mut random), batch(&mut random)];
            let gone: Vec<Key> = model.keys().copied().filter(|_| random.below(6) == 0).collect();
            let fails = random.below(4) == 0;
            let mut after = model.clone();
            let result = session.run(|tx| {
                after.clone_from(&model);
                for key in &gone {
                    lines.delete(tx, key)?;
                    after.remove(key);
                }
                for keys in &batches {
                    let wanted = keys.iter().position(|&key| {
                        after.insert(key, item).is_some_and(|old| {
                            after.insert(key, old);
                            true
                        })
                    });
                    let inserted = lines.insert_many(tx, keys.iter().map(|&key| line(key, item)));
                    assert_eq!(
                        inserted,
                        if wanted.is_some() { Err(Abort::Duplicate) } else { Ok(()) },
                        "seed {seed}"
                    );
                    (whole, refused) = (
                        whole + usize::from(wanted.is_none()),
                        refused + usize::from(wanted.is_some()),
                    );
                    assert_eq!(
                        rows(tx, &lines)?,
                        after,
                        "the contents that the transaction sees, seed {seed}"
                    );
                }
                if fails { Err(Abort::NotFound) } else { Ok(()) }
            });
            assert_eq!(result, if fails { Err(Abort::NotFound) } else { Ok(()) });
            if !fails {
                model.clone_from(&after);
            }
            let kept = session.run(|tx| rows(tx, &lines)).unwrap_or_else(|abort| panic!("{abort}"));
            assert_eq!(kept, model, "seed {seed}");
            db.inner.engine.epochs.pass();
        }
    }
    assert!(
        whole > 10 * seeds && refused > 10 * seeds,
        "{whole} batches were inserted, {refused} refused"
    );
}

protocol_tests!(
    #[cfg_attr(sanitized, ignore = "it counts the memory of slabs, and there are none")]
    all: a_batch_that_meets_the_memory_limit_keeps_its_earlier_rows
);
fn a_batch_that_meets_the_memory_limit_keeps_its_earlier_rows<P: Protocol>() {
    /// The number of rows of the batch. Each order has seven of the rows.
    const ROWS: u32 = 3_000;
    let key = |number: u32| (1, 1, number / 7, (number % 7) as u16);
    let room = |limit| {
        let db =
            Database::<P>::builder().manual_epochs(1).memory_limit(limit).seed(1).build().unwrap();
        let lines = db.table::<Line>("lines").unwrap();
        (db, lines)
    };
    let (db, lines) = room(usize::MAX);
    let empty = db.memory().reserved_bytes;
    let all = || (0..ROWS).map(|number| line(key(number), number));
    db.run(|tx| lines.insert_many(tx, all())).unwrap();
    let enough = db.memory().reserved_bytes;
    let mut counts = Vec::new();
    for limit in (empty..enough).step_by(40 << 10).chain([enough]) {
        let (db, lines) = room(limit);
        let taken = Cell::new(0);
        let inserted = db.run(|tx| {
            taken.set(0);
            let counted = all().inspect(|_| taken.set(taken.get() + 1));
            match lines.insert_many(tx, counted) {
                Ok(()) => return Ok(ROWS),
                Err(Abort::MemoryLimit) => {}
                Err(abort) => return Err(abort),
            }
            // The closure continues. The refused row has no effect, and the rows before it are
            // inserted.
            let refused = taken.get() - 1;
            assert_eq!(lines.get(tx, &key(refused), Line::ITEM)?, None);
            assert_eq!(rows(tx, &lines)?.len(), refused as usize);
            Ok(refused)
        });
        let inserted = inserted.unwrap();
        let expected: BTreeMap<Key, u32> =
            (0..inserted).map(|number| (key(number), number)).collect();
        assert_eq!(db.run(|tx| rows(tx, &lines)).unwrap(), expected);
        assert_eq!(lines.len_estimate(), u64::from(inserted));
        counts.push(inserted);
    }
    assert_eq!(counts.last(), Some(&ROWS));
    let between = counts.iter().filter(|count| (1..ROWS).contains(count)).count();
    assert!(between > 3, "{counts:?}");
}

/// Returns whether two sessions both commit. The first session reads an order or a district and
/// inserts lines there. The second session disturbs it before one of these lines, or after the
/// last.
fn both_commit<P: Protocol>(whole_district: bool, at: u16, disturbing: Option<Key>) -> bool {
    let once = || RunOptions::new().attempts_max(1);
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let lines = db.table::<Line>("lines").unwrap();
    let beside = db.table::<Item>("beside").unwrap();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let before = (0..30).map(|number| line((1, 1, 3 + number / 20, number as u16), number));
    first
        .run(|tx| {
            beside.insert(tx, Item::new(0, 0))?;
            lines.insert_many(tx, before.clone())
        })
        .unwrap();
    let mut inner = Ok(());
    let outer = first.with(once()).run(|tx| {
        let seen = match whole_district {
            true => lines.scan(tx, Prefix((1, 1)), ()).count()?,
            false => lines.scan(tx, Prefix((1, 1, 9)), ()).count()?,
        };
        assert_eq!(seen, if whole_district { 30 } else { 0 });
        let mut disturb = || {
            inner = second.with(once()).run(|tx| {
                // The read excludes a serial order of the two transactions, since it does not see
                // the write of the first.
                beside.read(tx, 0, Item::COUNT)?;
                disturbing.map_or(Ok(()), |key| lines.insert(tx, line(key, 7)))
            });
        };
        let new = (0..20).map(|number| {
            if number == at {
                disturb();
            }
            line((1, 1, 9, number), 1)
        });
        lines.insert_many(tx, new)?;
        if at == 20 {
            disturb();
        }
        beside.update(tx, 0, Item::COUNT.add(1))
    });
    for result in [outer, inner] {
        assert!(result == Ok(()) || result == Err(Abort::AttemptsExhausted), "{result:?}");
    }
    outer == Ok(()) && inner == Ok(())
}

protocol_tests!(overlapping: a_batch_conflicts_with_inserts_of_others_and_not_with_its_own);
fn a_batch_conflicts_with_inserts_of_others_and_not_with_its_own<P: Protocol>() {
    // The second line begins a layer, and the fifteenth line splits the leaf of that layer.
    for at in [0, 1, 2, 3, 14, 15, 16, 20] {
        for whole_district in [false, true] {
            assert!(
                both_commit::<P>(whole_district, at, None),
                "its own lines are no phantoms ({at})"
            );
            for number in [30, 65_535] {
                assert!(
                    !both_commit::<P>(whole_district, at, Some((1, 1, 9, number))),
                    "{whole_district} {at} {number}"
                );
            }
        }
        assert!(
            !both_commit::<P>(true, at, Some((1, 1, 3, 100))),
            "another order of the district ({at})"
        );
        assert!(both_commit::<P>(true, at, Some((1, 2, 9, 1))), "another district ({at})");
    }
}

protocol_tests!(overlapping: a_batch_commits_while_others_insert_and_delete_its_rows);
/// A batch has linked a record. Before the batch commits, another session inserts a row into this
/// record and deletes it.
fn a_batch_commits_while_others_insert_and_delete_its_rows<P: Protocol>() {
    for deletes in [true, false] {
        let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
        let lines = db.table::<Line>("lines").unwrap();
        let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
        let key = |number| (1, 1, 9, number);
        let mut insert = |used: Option<u16>| {
            first.with(RunOptions::new().attempts_max(1)).run(|tx| {
                let rows = (0..20).map(|number| {
                    if used == Some(number) {
                        run(&mut second, |tx| lines.insert(tx, line(key(number - 1), 7)));
                        if deletes {
                            run(&mut second, |tx| lines.delete(tx, &key(number - 1)));
                        }
                    }
                    line(key(number), 1)
                });
                lines.insert_many(tx, rows)
            })
        };
        let inserted = insert(Some(12));
        assert!(
            inserted == Err(Abort::AttemptsExhausted) || deletes && inserted == Ok(()),
            "{inserted:?}"
        );
        if inserted.is_err() {
            // The failed batch leaves nothing that could refuse the insert.
            let again = insert(None);
            assert_eq!(again, if deletes { Ok(()) } else { Err(Abort::Duplicate) });
        }
        let there = run(&mut second, |tx| rows(tx, &lines));
        let wanted = if deletes {
            (0..20).map(|number| (key(number), 1)).collect()
        } else {
            BTreeMap::from([(key(11), 7)])
        };
        assert_eq!(there, wanted);
        for _ in 0..6 {
            db.inner.engine.epochs.pass();
            [&mut first, &mut second].into_iter().for_each(|session| run(session, |_| Ok(())));
        }
        assert_eq!((lines.len_estimate(), db.memory().garbage), (wanted.len() as u64, 0));
    }
}

protocol_tests!(all: an_empty_batch_finds_and_inserts_nothing);
fn an_empty_batch_finds_and_inserts_nothing<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let (lines, items) = (db.table::<Line>("lines").unwrap(), db.table::<Item>("items").unwrap());
    let found = run(&mut db.session().unwrap(), |tx| {
        lines.insert_many(tx, [])?;
        Ok(lines.find_many(tx, &[])?.len() + items.find_many(tx, &[])?.len())
    });
    assert_eq!(found, 0);
}
