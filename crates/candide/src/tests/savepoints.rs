//! Parts of transactions that are undone: [`Tx::attempt`](crate::Tx::attempt).

use super::indexed_rows::{Filed, Parcel};
use super::rows::{Item, OfCount};
use super::transactions::{CONFLICT, ONCE, run};
use crate::access::VISITS;
use crate::engine::Protocol;
use crate::schema::Refused;
use crate::{Abort, Database, Session, Table, Tx, Whole};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// A database with items 0 to 9, whose counts are ten times their keys.
struct Scene<P: Protocol> {
    items: Table<Item, P>,
    session: Session<P>,
    db: Database<P>,
}

fn scene<P: Protocol>() -> Scene<P> {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| items.insert_many(tx, (0..10).map(|id| Item::new(id, 10 * id as i64))));
    Scene { items, session, db }
}

impl<P: Protocol> Scene<P> {
    /// Returns the keys and counts of all items, in the order of the keys.
    fn counts(&mut self) -> Vec<(u64, i64)> {
        let items = &self.items;
        // The collector may change the index meanwhile, which is a conflict.
        let rows = self.session.run(|tx| counts_seen_by(items, tx)).unwrap();
        let mut stored = Vec::new();
        items.for_each_quiescent(|item| stored.push((item.id, item.count))).unwrap();
        stored.sort();
        assert_eq!(rows, stored, "{}", P::NAME);
        rows
    }
}

/// Returns the keys and counts of all items as a transaction sees them.
fn counts_seen_by<P: Protocol>(
    items: &Table<Item, P>,
    tx: &Tx<'_, P>,
) -> Result<Vec<(u64, i64)>, Abort> {
    let mut rows = items.iter(tx, Item::COUNT).collect::<Result<Vec<_>, Abort>>()?;
    rows.sort();
    Ok(rows)
}

/// A change of items.
type Act<P> = fn(&Table<Item, P>, &Tx<'_, P>) -> Result<(), Abort>;

/// Fails a part by an error of its closure.
fn fail<P: Protocol>(
    tx: &Tx<'_, P>,
    part: impl FnOnce(&Tx<'_, P>) -> Result<(), Abort>,
) -> Result<(), Abort> {
    let result = tx.attempt(|tx| part(tx).and(Err::<(), _>(Abort::Indexed)));
    match result {
        Err(Abort::Indexed) => Ok(()),
        other => other,
    }
}

/// Halves the count of an item; refuses an odd one, and panics at 13.
fn halve(count: &mut i64) -> Result<(), Refused> {
    assert_ne!(*count, 13, "not that number");
    if *count % 2 != 0 {
        return Err(Refused);
    }
    *count /= 2;
    Ok(())
}

protocol_tests!(all: writes_of_a_part_that_fails_are_undone);
fn writes_of_a_part_that_fails_are_undone<P: Protocol>() {
    let mut scene = scene::<P>();
    let items = scene.items.clone();
    run(&mut scene.session, |tx| {
        items.delete(tx, 0)?;
        items.update(tx, 1, Item::COUNT.set(11))?;
        items.insert(tx, Item::new(20, 200))?;
        fail(tx, |tx| {
            items.put(tx, Item::new(0, 1))?;
            items.update(tx, 1, (Item::COUNT.add(1), Item::OTHER.set(1)))?;
            items.delete(tx, 2)?;
            items.modify(tx, 3, Whole, |item| item.count = 1)?;
            items.delete(tx, 20)?;
            items.insert(tx, Item::new(21, 1))?;
            assert_eq!(items.get(tx, 1, Item::COUNT)?, Some(12));
            assert_eq!(counts_seen_by(&items, tx)?.len(), 10);
            Ok(())
        })?;
        assert_eq!(items.get(tx, 0, Item::COUNT)?, None);
        assert_eq!(items.get(tx, 21, Item::COUNT)?, None);
        assert_eq!(items.read(tx, 1, (Item::COUNT, Item::OTHER))?, (11, 100));
        assert_eq!(items.read(tx, 20, Item::COUNT)?, 200);
        items.update(tx, 3, Item::COUNT.add(3))?;
        items.insert(tx, Item::new(21, 210))
    });
    let wanted = [(1, 11), (2, 20), (3, 33), (4, 40), (5, 50), (6, 60), (7, 70), (8, 80), (9, 90)];
    assert_eq!(scene.counts(), [&wanted[..], &[(20, 200), (21, 210)]].concat(), "{}", P::NAME);
}

protocol_tests!(all: parts_within_parts_are_undone_one_by_one);
fn parts_within_parts_are_undone_one_by_one<P: Protocol>() {
    let mut scene = scene::<P>();
    let items = scene.items.clone();
    run(&mut scene.session, |tx| {
        tx.attempt(|tx| {
            items.update(tx, 1, Item::COUNT.add(1))?;
            fail(tx, |tx| {
                items.update(tx, 1, Item::COUNT.add(100))?;
                tx.attempt(|tx| items.update(tx, 2, Item::COUNT.add(100)))
            })?;
            tx.attempt(|tx| items.update(tx, 3, Item::COUNT.add(1)))?;
            items.update(tx, 1, Item::COUNT.add(1))
        })?;
        fail(tx, |tx| {
            items.delete(tx, 4)?;
            fail(tx, |tx| items.insert(tx, Item::new(4, 1)))?;
            tx.attempt(|tx| items.insert(tx, Item::new(4, 2)))
        })
    });
    assert_eq!(scene.counts()[1..5], [(1, 12), (2, 20), (3, 31), (4, 40)], "{}", P::NAME);
}

protocol_tests!(all: effects_of_a_failed_part_do_not_run);
fn effects_of_a_failed_part_do_not_run<P: Protocol>() {
    let mut scene = scene::<P>();
    let ran = Arc::new(Mutex::new(Vec::new()));
    let note = |number: u32| {
        let ran = ran.clone();
        move || ran.lock().unwrap().push(number)
    };
    run(&mut scene.session, |tx| {
        tx.on_commit(note(1));
        fail(tx, |tx| {
            tx.on_commit(note(2));
            tx.attempt(|tx| {
                tx.on_commit(note(3));
                Ok(())
            })
        })?;
        tx.attempt(|tx| {
            tx.on_commit(note(4));
            fail(tx, |tx| {
                tx.on_commit(note(5));
                Ok(())
            })
        })?;
        tx.on_commit(note(6));
        Ok(())
    });
    assert_eq!(*ran.lock().unwrap(), [1, 4, 6], "{}", P::NAME);
}

protocol_tests!(all: a_scan_goes_on_after_a_part_that_was_undone);
fn a_scan_goes_on_after_a_part_that_was_undone<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let parcels = db.table::<Parcel>("parcels").unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| parcels.insert_many(tx, (0..6).map(|number| Parcel::new(1, number))));
    run(&mut session, |tx| {
        parcels.update(tx, &(1, 5), Parcel::WEIGHT.set(5))?;
        let mut before = parcels.scan(tx, .., Parcel::WEIGHT);
        let mut left_behind = None;
        assert_eq!(before.next().transpose()?, Some(((1, 0), 10)));
        fail(tx, |tx| {
            parcels.delete(tx, &(1, 1))?;
            parcels.update(tx, &(1, 2), Parcel::WEIGHT.set(2))?;
            parcels.insert(tx, Parcel::new(1, 9))?;
            parcels.update(tx, &(1, 5), Parcel::WEIGHT.add(1))?;
            let mut within = parcels.scan(tx, .., Parcel::WEIGHT);
            assert_eq!(within.next().transpose()?, Some(((1, 0), 10)));
            assert_eq!(within.next().transpose()?, Some(((1, 2), 2)));
            Ok(())
        })?;
        fail(tx, |_| {
            parcels.update(tx, &(1, 3), Parcel::WEIGHT.set(3))?;
            parcels.delete(tx, &(1, 5))?;
            left_behind = Some(parcels.scan(tx, .., Parcel::WEIGHT));
            parcels.delete(tx, &(1, 2))
        })?;
        // The transaction now stages as many operations as the part had, and some more.
        for number in 0..4 {
            parcels.update(tx, &(1, number), Parcel::WEIGHT.set(100))?;
        }
        parcels.insert(tx, Parcel::new(1, 8))?;
        let rest = before.map(|row| Ok(row?.1)).collect::<Result<Vec<_>, Abort>>()?;
        assert_eq!(rest, [10, 10, 10, 10, 5], "{}", P::NAME);
        let left = left_behind.expect("the part has made it");
        let left = left.map(|row| Ok(row?.1)).collect::<Result<Vec<_>, Abort>>()?;
        assert_eq!(left, [10, 10, 10, 10, 10, 5], "{}", P::NAME);
        let now = parcels.scan(tx, .., Parcel::WEIGHT).map(|row| Ok(row?.1));
        assert_eq!(now.collect::<Result<Vec<_>, Abort>>()?, [100, 100, 100, 100, 10, 5, 10]);
        Ok(())
    });
}

protocol_tests!(all: an_update_that_fails_fails_its_part);
fn an_update_that_fails_fails_its_part<P: Protocol>() {
    let mut scene = scene::<P>();
    let items = scene.items.clone();
    run(&mut scene.session, |tx| {
        items.update(tx, 1, Item::COUNT.add(5))?;
        let guarded = tx.attempt(|tx| {
            items.insert(tx, Item::new(30, 1))?;
            items.update(tx, 1, Item::COUNT.sub(16).at_least(0))?;
            items.update(tx, 2, Item::COUNT.set(1))
        });
        assert_eq!(guarded, Err(Abort::Guard));
        assert_eq!(tx.attempt(|tx| items.update(tx, 1, Item::COUNT.sub(15).at_least(0))), Ok(()));
        let overflown = tx.attempt(|tx| items.update(tx, 3, Item::SMALL.add(250)));
        assert_eq!(overflown, Err(Abort::Overflow));
        assert_eq!(tx.attempt(|tx| items.update_with(tx, 5, OfCount(halve))), Ok(()));
        assert_eq!(tx.attempt(|tx| items.update_with(tx, 5, OfCount(halve))), Err(Abort::Guard));
        // The first failure counts, also if the part deletes the row.
        let both = tx.attempt(|tx| {
            items.update(tx, 6, Item::SMALL.add(250))?;
            items.update(tx, 4, Item::COUNT.sub(100).at_least(0))?;
            items.delete(tx, 6)
        });
        assert_eq!(both, Err(Abort::Overflow));
        Ok(())
    });
    let wanted = [(0, 0), (1, 0), (2, 20), (3, 30), (4, 40), (5, 25), (6, 60)];
    assert_eq!(scene.counts()[..7], wanted, "{}", P::NAME);
    assert_eq!(scene.counts().len(), 10);
}

protocol_tests!(all: a_failure_within_a_part_is_undone_with_the_part);
fn a_failure_within_a_part_is_undone_with_the_part<P: Protocol>() {
    let mut scene = scene::<P>();
    let items = scene.items.clone();
    run(&mut scene.session, |tx| {
        // The part continues after its update has failed, and still fails.
        let swallowed = tx.attempt(|tx| {
            items.update(tx, 1, Item::COUNT.sub(11).at_least(0))?;
            assert_eq!(items.get(tx, 1, Item::COUNT), Err(Abort::Guard));
            Ok(())
        });
        assert_eq!(swallowed, Err(Abort::Guard));
        fail(tx, |tx| {
            items.update(tx, 1, Item::COUNT.sub(11).at_least(0))?;
            assert_eq!(items.get(tx, 1, Item::COUNT), Err(Abort::Guard));
            Ok(())
        })?;
        assert_eq!(items.get(tx, 1, Item::COUNT), Ok(Some(10)));
        items.update(tx, 1, Item::COUNT.sub(10).at_least(0))
    });
    assert_eq!(scene.counts()[1], (1, 0), "{}", P::NAME);
}

protocol_tests!(all: a_failure_before_a_part_fails_the_transaction);
fn a_failure_before_a_part_fails_the_transaction<P: Protocol>() {
    let mut scene = scene::<P>();
    let items = scene.items.clone();
    let ends = scene.session.run(|tx| {
        items.update(tx, 1, Item::COUNT.sub(11).at_least(0))?;
        fail(tx, |tx| {
            items.update(tx, 2, Item::SMALL.add(250))?;
            assert_eq!(items.get(tx, 2, Item::SMALL), Err(Abort::Overflow));
            assert_eq!(items.get(tx, 1, Item::COUNT), Err(Abort::Guard));
            Ok(())
        })?;
        assert_eq!(items.get(tx, 2, Item::SMALL), Ok(Some(7)));
        items.update(tx, 3, Item::COUNT.set(1))
    });
    assert_eq!(ends, Err(Abort::Guard), "{}", P::NAME);
    let before = (0..10).map(|id| (id, 10 * id as i64)).collect::<Vec<_>>();
    assert_eq!(scene.counts(), before, "{}", P::NAME);
}

protocol_tests!(all: a_part_that_panics_is_undone);
fn a_part_that_panics_is_undone<P: Protocol>() {
    let mut scene = scene::<P>();
    let items = scene.items.clone();
    let quietly = |part: &mut dyn FnMut() -> Result<(), Abort>| {
        catch_unwind(AssertUnwindSafe(part)).expect_err("it panics")
    };
    run(&mut scene.session, |tx| {
        items.update(tx, 1, Item::COUNT.set(13))?;
        // The part panics, first in its closure and then in an updater.
        let panic = quietly(&mut || {
            tx.attempt(|tx| {
                items.delete(tx, 2)?;
                std::panic::resume_unwind(Box::new("enough"))
            })
        });
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"enough"));
        quietly(&mut || {
            tx.attempt(|tx| {
                items.delete(tx, 3)?;
                items.update_with(tx, 1, OfCount(halve))
            })
        });
        assert_eq!(items.read(tx, 1, Item::COUNT)?, 13);
        // An undone updater is not called.
        fail(tx, |tx| items.update_with(tx, 1, OfCount(halve)))
    });
    assert_eq!(scene.counts()[1..4], [(1, 13), (2, 20), (3, 30)], "{}", P::NAME);
    // A panic that is not caught ends the transaction.
    let ended = catch_unwind(AssertUnwindSafe(|| {
        scene.session.run(|tx| tx.attempt(|tx| items.update_with(tx, 1, OfCount(halve))))
    }));
    assert!(ended.is_err(), "{}", P::NAME);
    assert_eq!(scene.counts()[1], (1, 13), "{}", P::NAME);
}

protocol_tests!(all: an_update_that_panics_is_undone_with_its_part);
fn an_update_that_panics_is_undone_with_its_part<P: Protocol>() {
    let mut scene = scene::<P>();
    let items = scene.items.clone();
    let ended = scene.session.run(|tx| {
        items.update(tx, 1, Item::COUNT.sub(11).at_least(0))?;
        items.update(tx, 2, Item::COUNT.set(13))?;
        fail(tx, |tx| items.update_with(tx, 2, OfCount(halve)))?;
        // The update that failed before the part does not hide the panic.
        let part = || tx.attempt(|tx| items.update_with(tx, 2, OfCount(halve)));
        assert!(catch_unwind(AssertUnwindSafe(part)).is_err(), "{}", P::NAME);
        fail(tx, |tx| items.update_with(tx, 3, OfCount(halve)))
    });
    assert_eq!(ended, Err(Abort::Guard), "{}", P::NAME);
    assert_eq!(scene.counts()[1..3], [(1, 10), (2, 20)], "{}", P::NAME);
}

protocol_tests!(all: parts_of_large_transactions_are_undone);
fn parts_of_large_transactions_are_undone<P: Protocol>() {
    let mut scene = scene::<P>();
    let items = scene.items.clone();
    // The numbers of writes before, in and after the part: around the size at which a write set is
    // indexed.
    for sizes in [(0, 200, 1), (31, 1, 50), (32, 33, 0), (33, 200, 100), (64, 64, 64), (150, 9, 9)]
    {
        let (before, within, after) = sizes;
        let key = |number: u64| 1_000 + number;
        // The collector may take a record of a deleted row away meanwhile, which is a conflict.
        let ended = scene.session.run(|tx| {
            for number in 0..before {
                items.insert(tx, Item::new(key(number), 1))?;
            }
            for _ in 0..3 {
                fail(tx, |tx| {
                    for number in 0..before + within {
                        items.put(tx, Item::new(key(number), 2))?;
                    }
                    items.delete(tx, &key(0))?;
                    assert_eq!(items.read(tx, &key(before + within - 1), Item::COUNT)?, 2);
                    Ok(())
                })?;
            }
            for number in before..before + after {
                items.insert(tx, Item::new(key(number), 3))?;
            }
            for number in 0..before + within {
                let count = if number < before { Some(1) } else { None };
                let count =
                    if (before..before + after).contains(&number) { Some(3) } else { count };
                assert_eq!(items.get(tx, &key(number), Item::COUNT)?, count, "{sizes:?} {number}");
            }
            Ok(())
        });
        assert_eq!(ended, Ok(()), "{}: {sizes:?}", P::NAME);
        let counts = scene.counts();
        assert_eq!(counts.len() as u64, 10 + before + after, "{}: {sizes:?}", P::NAME);
        let deleted = scene
            .session
            .run(|tx| (0..before + after).try_for_each(|number| items.delete(tx, &key(number))));
        assert_eq!(deleted, Ok(()), "{}: {sizes:?}", P::NAME);
    }
    assert_eq!(scene.counts().len(), 10);
}

protocol_tests!(overlapping: a_part_of_blind_writes_observes_nothing);
fn a_part_of_blind_writes_observes_nothing<P: Protocol>() {
    let mut scene = scene::<P>();
    let (items, mut other) = (scene.items.clone(), scene.db.session().unwrap());
    let added = scene.session.with(ONCE()).run(|tx| {
        tx.attempt(|tx| items.update(tx, 1, Item::COUNT.wrapping_add(1)))?;
        // Under policies that lock rows before they are written, the update fails.
        let _ = other.with(ONCE()).run(|tx| items.update(tx, 1, Item::COUNT.wrapping_add(1)));
        Ok(())
    });
    assert_eq!(added, Ok(()), "{}", P::NAME);
}

protocol_tests!(overlapping: reads_of_an_undone_part_stay_observed);
fn reads_of_an_undone_part_stay_observed<P: Protocol>() {
    let mut scene = scene::<P>();
    let (items, mut other) = (scene.items.clone(), scene.db.session().unwrap());
    let mut changed = Ok(());
    let ended = scene.session.with(ONCE()).run(|tx| {
        let read = tx.attempt(|tx| match items.read(tx, 1, Item::COUNT)? {
            10 => Err::<(), _>(Abort::Indexed),
            other => panic!("{other}"),
        });
        assert_eq!(read, Err(Abort::Indexed));
        changed = other.with(ONCE()).run(|tx| items.update(tx, 1, Item::COUNT.set(0)));
        items.update(tx, 2, Item::COUNT.set(0))?;
        items.read(tx, 1, Item::COUNT).map(drop)
    });
    assert!((changed == Ok(())) == (ended == CONFLICT), "{}: {changed:?} {ended:?}", P::NAME);
}

protocol_tests!(overlapping: assumptions_of_undone_writes_are_observed);
/// A part inserts a row, whose key must have been free, and is undone. Then another transaction
/// inserts that row, and changes a row that the first transaction has read before: it comes after
/// the first, or the first has to run again.
fn assumptions_of_undone_writes_are_observed<P: Protocol>() {
    let acts: [Act<P>; 3] = [
        |items, tx| items.insert(tx, Item::new(50, 1)),
        |items, tx| items.update(tx, 5, Item::OTHER.set(1)),
        |items, tx| items.delete(tx, 5),
    ];
    let undo = |items: &Table<Item, P>, tx: &Tx<'_, P>, exists: bool| match exists {
        true => items.delete(tx, 5),
        false => items.insert(tx, Item::new(50, 2)),
    };
    for (place, act) in acts.into_iter().enumerate() {
        let mut scene = scene::<P>();
        let (items, mut other) = (scene.items.clone(), scene.db.session().unwrap());
        let mut changed = Ok(());
        let ended = scene.session.with(ONCE()).run(|tx| {
            let mut has_worked = false;
            fail(tx, |tx| {
                has_worked = act(&items, tx).is_ok();
                Ok(())
            })?;
            assert!(has_worked);
            changed = other.with(ONCE()).run(|tx| {
                undo(&items, tx, place > 0)?;
                items.update(tx, 2, Item::COUNT.set(0))
            });
            // The other transaction comes first, and then the part would have failed.
            let seen = items.read(tx, 2, Item::COUNT)?;
            items.update(tx, 3, Item::COUNT.set(seen))
        });
        let counts = scene.counts();
        let is_before = counts[3] != (3, 0);
        let is_either = ended == CONFLICT || changed == CONFLICT || is_before;
        assert!(is_either, "{}: act {place}, {changed:?} {ended:?} {counts:?}", P::NAME);
    }
}

protocol_tests!(overlapping: a_conflict_in_a_part_dooms_the_attempt);
fn a_conflict_in_a_part_dooms_the_attempt<P: Protocol>() {
    let mut scene = scene::<P>();
    let (items, mut other) = (scene.items.clone(), scene.db.session().unwrap());
    let mut changed = Ok(());
    let result = scene.session.run(|tx| {
        let first = tx.attempt_number() == 1;
        let seen = items.read(tx, 1, Item::COUNT)?;
        let part = tx.attempt(|tx| {
            if first {
                changed = other.with(ONCE()).run(|tx| items.update(tx, 1, Item::COUNT.add(1)));
                tx.validate()?;
            }
            items.update(tx, 1, Item::COUNT.set(seen + 10))
        });
        if first && changed.is_ok() {
            assert!(part.is_err_and(|abort| abort.is_conflict()), "{part:?}");
            assert!(items.get(tx, 2, Item::COUNT).is_err_and(|abort| abort.is_conflict()));
            return Ok(()); // which does not count
        }
        part
    });
    // Under a policy that locks reads, the other transaction has failed.
    let count = if changed.is_ok() { 21 } else { 20 };
    assert_eq!((result, scene.counts()[1]), (Ok(()), (1, count)), "{}: {changed:?}", P::NAME);
}

protocol_tests!(all: index_entries_of_a_failed_part_are_undone);
fn index_entries_of_a_failed_part_are_undone<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let filed = db.table::<Filed>("filed").unwrap();
    let (by_code, by_colour) = (filed.index(Filed::BY_CODE), filed.index(Filed::BY_COLOUR));
    let mut session = db.session().unwrap();
    let row = |number| Filed::from(Parcel::new(1, number));
    run(&mut session, |tx| filed.insert_many(tx, (0..4).map(row)));
    run(&mut session, |tx| {
        filed.modify(tx, &(1, 3), Filed::CODE, |code| *code = 33)?;
        fail(tx, |tx| {
            filed.modify(tx, &(1, 1), (Filed::CODE, Filed::COLOUR), |both| *both = (11, 9))?;
            filed.delete(tx, &(1, 2))?;
            filed.modify(tx, &(1, 3), Filed::CODE, |code| *code = 333)?;
            filed.insert(tx, row(5))?;
            assert_eq!(by_code.get(tx, 11, Filed::NUMBER)?, Some(1));
            assert_eq!(by_code.get(tx, 1_002, ())?, None);
            Ok(())
        })?;
        assert_eq!(by_code.get(tx, 11, ())?, None);
        assert_eq!(by_code.get(tx, 1_001, Filed::NUMBER)?, Some(1));
        assert_eq!(by_code.get(tx, 1_002, Filed::NUMBER)?, Some(2));
        assert_eq!((by_code.get(tx, 33, ())?, by_code.get(tx, 333, ())?), (Some(()), None));
        assert_eq!(by_colour.rows(tx, 9, ()).count(), Ok(0));
        assert_eq!(by_colour.rows(tx, 1, ()).count(), Ok(4));
        // The keys are free again.
        filed.insert(tx, Filed { code: 11, ..row(7) })
    });
    super::entries::assert_entries_match_rows(&mut session, &filed);
}

/// A change of items in the part with this number.
type ActInPart<P> = fn(&Table<Item, P>, &Tx<'_, P>, u64) -> Result<(), Abort>;

/// Returns the number of operations that a transaction of `count` parts visits. Each part makes
/// `change`; those for which `is_undone` is `true` fail.
fn visits_in_parts<P: Protocol>(
    count: u64,
    is_undone: fn(u64) -> bool,
    change: ActInPart<P>,
) -> u64 {
    let mut scene = scene::<P>();
    let before = VISITS.get();
    run(&mut scene.session, |tx| {
        (0..count).try_for_each(|number| match is_undone(number) {
            true => fail(tx, |tx| change(&scene.items, tx, number)),
            false => tx.attempt(|tx| change(&scene.items, tx, number)),
        })
    });
    VISITS.get() - before
}

protocol_tests!(all: the_cost_of_a_part_depends_on_its_own_operations_only);
fn the_cost_of_a_part_depends_on_its_own_operations_only<P: Protocol>() {
    let changes: [ActInPart<P>; 3] = [
        |items, tx, _| items.update(tx, 1, Item::COUNT.add(1)),
        |items, tx, number| items.update(tx, 1, Item::COUNT.set(number as i64)),
        |items, tx, _| items.modify(tx, 1, Item::COUNT, |count| *count += 1),
    ];
    let kept: [fn(u64) -> bool; 3] = [|_| false, |_| true, |number| number % 2 == 0];
    for (kind, change) in changes.into_iter().enumerate() {
        for (which, is_undone) in kept.into_iter().enumerate() {
            let visits = |count| visits_in_parts::<P>(count, is_undone, change);
            let (few, many) = (visits(200), visits(800));
            assert!(many <= 4 * few + 100, "{} {kind} {which}: {few}, {many}", P::NAME);
        }
    }
}

#[test]
fn parts_that_move_unique_keys_are_undone_in_any_order() {
    let mut scene = scene::<crate::Occ>();
    let filed = scene.db.table::<Filed>("filed").unwrap();
    let row = |number| Filed::from(Parcel::new(1, number));
    run(&mut scene.session, |tx| filed.insert_many(tx, (0..4).map(row)));
    let code = |tx: &Tx<'_>, number: u16, to: u32| {
        filed.modify(tx, (1, number), Filed::CODE, |code| *code = to)
    };
    let first = row(0).code;
    run(&mut scene.session, |tx| {
        // Row 0 waits for the code of row 1.
        code(tx, 0, row(1).code)?;
        // A part that ends this wait is undone, so that row 0 waits again.
        fail(tx, |tx| code(tx, 1, 77))?;
        // If the wait ends and begins again within a part, no further row waits after the part.
        tx.attempt(|tx| {
            code(tx, 0, 78)?;
            code(tx, 0, row(1).code)
        })?;
        // A part is refused if another row begins to wait in it.
        assert_eq!(tx.attempt(|tx| code(tx, 2, row(3).code)), Err(Abort::NotUnique));
        code(tx, 1, first)
    });
    let codes: Vec<u32> = run(&mut scene.session, |tx| {
        (0..4).map(|number| filed.read(tx, (1, number), Filed::CODE)).collect()
    });
    assert_eq!(codes, [row(1).code, first, row(2).code, row(3).code]);
    super::entries::assert_entries_match_rows(&mut scene.session, &filed);
}
