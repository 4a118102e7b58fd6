//! Tests of deferred updates, or deltas: the order in which deltas are applied, the versions that
//! may be linked below them, and the bound on the number of deltas.

use crate::index::Found;
use crate::protocols::{DELTAS_MAX, Mvto};
use crate::sync::Point;
use crate::tests::interleaving::acting;
use crate::tests::rows::Item;
use crate::tests::transactions::{CONFLICT, ONCE, run};
use crate::tests::waiting::eventually;
use crate::timestamps::by_the_clock;
use crate::{Abort, Database, Key, Record, Session, Table, Tx, Whole};
use std::cell::RefCell;
use std::rc::Rc;

pub(crate) type Items = Table<Item, Mvto>;

/// A database with row 1, whose count is 10, and two sessions.
pub(crate) struct Scene {
    pub(crate) db: Database<Mvto>,
    pub(crate) items: Items,
    pub(crate) first: Session<Mvto>,
    pub(crate) second: Session<Mvto>,
}

pub(crate) fn scene() -> Scene {
    let db = Database::<Mvto>::builder().manual_epochs(10).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let (mut first, second) = (db.session().unwrap(), db.session().unwrap());
    run(&mut first, |tx| items.insert(tx, Item::new(1, 10)));
    Scene { db, items, first, second }
}

/// Returns, for each version of the unit that contains `group`, whether the version is a delta. The
/// newest version comes first.
pub(crate) fn chain_of<R: Record>(table: &Table<R, Mvto>, key: R::Key, group: u8) -> Vec<bool> {
    let core = table.core();
    let words = key.words();
    let found = match core.layout.packing::<R::Key>() {
        Some(packing) => core.index.find(packing.pack(words.as_ref()).as_slice()),
        None => core.index.find(words.as_ref()),
    };
    let Found::Record(record) = found else { panic!("no record") };
    let at = core.layout.at(record, core.layout.unit_of(group));
    let newest = at.newest_linked(at.chain_word()).expect("it was inserted");
    newest.and_older().map(|version| version.stamp().is_delta()).collect()
}

/// Returns, for each version of row 1's count, whether the version is a delta.
pub(crate) fn chain(items: &Items) -> Vec<bool> {
    chain_of(items, 1, 0)
}

/// Waits until the advancer has collected all versions of row 1's groups except the newest one of
/// each.
pub(crate) fn await_one_version(db: &Database<Mvto>, items: &Items) {
    let mut session = db.session().unwrap();
    let mut versions =
        || items.versions_of(&mut session, &1).unwrap_or_else(|abort| panic!("{abort}"));
    eventually("one version is left", || versions() == Some(1));
}

fn count(db: &Database<Mvto>, items: &Items) -> i64 {
    db.run(|tx| items.read(tx, 1, Item::COUNT)).unwrap()
}

fn double_up(tx: &Tx<'_, Mvto>, items: &Items) -> Result<(), Abort> {
    items.update(tx, 1, (Item::COUNT.set(100), Item::SMALL.wrapping_add(250)))
}

fn add(tx: &Tx<'_, Mvto>, items: &Items, summand: i64) -> Result<(), Abort> {
    items.update(tx, 1, Item::COUNT.wrapping_add(summand))
}

#[test]
fn updates_are_deferred_until_the_row_is_read() {
    let Scene { db, items, mut first, .. } = scene();
    assert_eq!(chain(&items), [false]);
    for _ in 0..3 {
        run(&mut first, |tx| add(tx, &items, 1));
    }
    assert_eq!(chain(&items), [true, true, true, false]);
    assert_eq!(count(&db, &items), 13);
    assert_eq!(chain(&items), [false, true, true, false], "only what was read has become a row");
    // An update that may fail reads the row below, and does not become a delta.
    run(&mut first, |tx| items.update(tx, 1, (Item::COUNT.set(5), Item::SMALL.set(1))));
    assert_eq!(chain(&items)[..2], [true, false]);
    run(&mut first, |tx| items.update(tx, 1, Item::COUNT.add(1)));
    assert_eq!(chain(&items)[..2], [false, false]);
    // An update that takes more words than a version has room for does not become a delta either.
    run(&mut first, |tx| {
        items.update(tx, 1, (Item::COUNT.max(6), Item::SMALL.set(1), Item::FLAG.set(true)))
    });
    assert_eq!(chain(&items)[..2], [false, false]);
    let row = db.run(|tx| items.read(tx, 1, Whole));
    assert_eq!(row, Ok(Item { count: 6, small: 1, flag: true, ..Item::new(1, 0) }));
}

#[test]
fn updates_of_one_row_apply_in_the_order_of_their_timestamps_however_they_are_linked() {
    for (point, linked_late) in
        [(Point::Unlocked, true), (Point::Locked, false), (Point::Validated, false)]
    {
        let Scene { db, items, mut first, mut second } = scene();
        // The first session has drawn its timestamp. The second session draws a later one, and
        // commits before the first one does.
        let rows = items.clone();
        acting(
            point,
            move || run(&mut second, |tx| add(tx, &rows, 5)),
            || run(&mut first, |tx| double_up(tx, &items)),
        );
        assert_eq!(chain(&items), [true, true, false], "{linked_late}");
        let row = db.run(|tx| items.read(tx, 1, Whole));
        assert_eq!(row, Ok(Item { count: 105, small: 1, ..Item::new(1, 0) }), "{point:?}");
    }
}

#[test]
fn no_version_is_linked_below_one_that_was_read() {
    for reader in 0..3 {
        let Scene { db, items, mut first, mut second } = scene();
        let (rows, other) = (items.clone(), db.clone());
        let seen = Rc::new(RefCell::new(0));
        let sees = seen.clone();
        let meanwhile = move || {
            run(&mut second, |tx| add(tx, &rows, 5));
            // The count is read by a transaction, in a snapshot, or by a transaction that writes a
            // value computed from the count.
            let read = |tx: &Tx<'_, Mvto>| rows.read(tx, 1, Item::COUNT);
            let counted = match reader {
                0 => second.with(ONCE()).run(read),
                1 => return run(&mut second, |tx| rows.update(tx, 1, Item::COUNT.add(1))),
                _ => other
                    .with(ONCE())
                    .run(|tx| rows.modify(tx, 1, Item::COUNT, |count| *count += 1).map(|()| 15)),
            };
            *sees.borrow_mut() = counted.unwrap();
        };
        let refused = acting(Point::Unlocked, meanwhile, || {
            first.with(ONCE()).run(|tx| double_up(tx, &items))
        });
        assert_eq!(refused, CONFLICT, "{reader}");
        assert_eq!(first.last_conflict().unwrap().cause, Abort::ReadChanged);
        assert!(reader == 1 || *seen.borrow() == 15);
        assert_eq!(count(&db, &items), if reader == 0 { 15 } else { 16 });
    }
}

#[test]
fn a_reader_waits_for_versions_that_are_pending_below() {
    let Scene { db, items, mut first, mut second } = scene();
    let (rows, other) = (items.clone(), db.clone());
    let meanwhile = move || {
        run(&mut second, |tx| add(tx, &rows, 5));
        let read = other.with(ONCE()).run(|tx| rows.read(tx, 1, Item::COUNT).map(drop));
        assert_eq!(read, CONFLICT, "the outcome of the first version is unknown");
        assert_eq!(chain(&rows), [true, true, false]);
    };
    acting(Point::Validated, meanwhile, || run(&mut first, |tx| add(tx, &items, 1)));
    assert_eq!(count(&db, &items), 16);
}

/// With many threads, each commit would sleep until the commit before it has ended.
#[test]
fn a_commit_that_needs_the_row_waits_for_one_pending_version_and_not_for_two() {
    let Scene { db, items, mut first, mut second } = scene();
    let (rows, others) = (items.clone(), db.clone());
    // An addition that may overflow needs the row. Returns how often the session has slept.
    let add_checked = move |attempts_max: u32| {
        let parking = &others.inner.engine.parking;
        let (mut third, before) = (others.session().unwrap(), parking.entered());
        let options = crate::RunOptions::new().attempts_max(attempts_max);
        let ended = third.with(options).run(|tx| rows.update(tx, 1, Item::COUNT.add(1)));
        assert_eq!((ended, third.last_conflict().unwrap().cause), (CONFLICT, Abort::Locked));
        parking.entered() - before
    };
    let rows = items.clone();
    let meanwhile = move || {
        assert_eq!(add_checked(1), 1, "one version is pending");
        acting(
            Point::Locked,
            move || {
                assert_eq!(add_checked(1), 0, "two versions are pending");
                assert_eq!(add_checked(3), 1, "after the second conflict");
            },
            || run(&mut second, |tx| add(tx, &rows, 5)),
        );
    };
    acting(Point::Locked, meanwhile, || run(&mut first, |tx| add(tx, &items, 1)));
    assert_eq!(count(&db, &items), 16);
}

#[test]
fn a_failed_update_leaves_the_deltas_above_it_unchanged() {
    let Scene { db, items, mut first, mut second } = scene();
    run(&mut first, |tx| items.insert(tx, Item::new(2, 0)));
    let rows = items.clone();
    // The first transaction has another update, which is refused when it is evaluated. By then the
    // transaction's delta has been linked.
    let refused = acting(
        Point::Validated,
        move || run(&mut second, |tx| add(tx, &rows, 5)),
        || {
            first.with(ONCE()).run(|tx| {
                double_up(tx, &items)?;
                items.update(tx, 2, Item::COUNT.sub(1).at_least(0))
            })
        },
    );
    assert_eq!(refused, Err(Abort::Guard));
    assert_eq!(chain(&items), [true, false]);
    assert_eq!(count(&db, &items), 15);
}

#[test]
fn a_row_is_not_deleted_below_a_delta_that_rests_on_it() {
    let Scene { db, items, mut first, mut second } = scene();
    let rows = items.clone();
    let delete = |tx: &Tx<'_, Mvto>| items.delete(tx, 1);
    let refused = acting(
        Point::Unlocked,
        move || run(&mut second, |tx| add(tx, &rows, 5)),
        || first.with(ONCE()).run(delete),
    );
    assert_eq!(refused, CONFLICT);
    assert_eq!(count(&db, &items), 15);
    // If the delete commits first, the update starts over, and finds no row.
    let (mut second, rows) = (db.session().unwrap(), items.clone());
    let attempts = RefCell::new(0);
    let missing = acting(
        Point::Unlocked,
        move || run(&mut second, |tx| rows.delete(tx, 1)),
        || {
            first.run(|tx| {
                *attempts.borrow_mut() = tx.attempt_number();
                add(tx, &items, 5)
            })
        },
    );
    assert_eq!((missing, *attempts.borrow()), (Err(Abort::NotFound), 2));
}

/// An update fails if a delete that has found no update is about to remove the row.
#[test]
fn an_update_does_not_rest_on_a_row_that_is_being_deleted() {
    let Scene { items, mut first, mut second, .. } = scene();
    let rows = items.clone();
    let meanwhile = move || assert_eq!(second.with(ONCE()).run(|tx| add(tx, &rows, 5)), CONFLICT);
    acting(Point::Validated, meanwhile, || run(&mut first, |tx| items.delete(tx, 1)));
    assert_eq!(run(&mut first, |tx| items.get(tx, 1, Item::COUNT)), None);
}

#[test]
fn the_number_of_deltas_of_a_row_is_bounded() {
    let Scene { db, items, mut first, .. } = scene();
    for round in 1..=100 {
        run(&mut first, |tx| add(tx, &items, 1));
        let deltas = chain(&items).into_iter().take_while(|&is_delta| is_delta).count();
        assert!(deltas <= DELTAS_MAX, "{deltas} after {round}");
    }
    assert!(chain(&items).len() > 100, "nothing has been collected");
    for _ in 0..3 {
        db.inner.engine.epochs.pass();
        run(&mut first, |_| Ok(()));
    }
    assert_eq!(chain(&items), [false], "it was collected, and so made a row");
    assert_eq!(count(&db, &items), 110);
    assert_eq!(db.memory().garbage, 0);
}

/// A pending version may become a delta when deltas already lie on it.
#[test]
fn the_number_of_deltas_on_a_pending_version_is_bounded() {
    let Scene { db, items, mut first, mut second } = scene();
    let rows = items.clone();
    let meanwhile = move || {
        let attempts = (0..DELTAS_MAX).map(|_| second.with(ONCE()).run(|tx| add(tx, &rows, 1)));
        // The last update would have to wait for the row below.
        assert_eq!(attempts.filter(|outcome| *outcome == CONFLICT).count(), 1);
    };
    acting(Point::Validated, meanwhile, || {
        run(&mut first, |tx| items.update(tx, 1, Item::COUNT.add(1)))
    });
    assert_eq!(chain(&items), [vec![true; DELTAS_MAX], vec![false]].concat());
    assert_eq!(count(&db, &items), 10 + DELTAS_MAX as i64);
}

#[test]
fn snapshots_between_deltas_see_the_deltas_below_them() {
    let Scene { db, items, mut first, .. } = scene();
    let mut snapshots = Vec::new();
    for round in 0..20 {
        run(&mut first, |tx| add(tx, &items, 1));
        if round % 3 == 0 {
            snapshots.push((db.snapshot(), 11 + round));
        }
    }
    let look = |snapshot: &crate::Snapshot<Mvto>| snapshot.run(|tx| items.read(tx, 1, Item::COUNT));
    for collected in [false, true] {
        for (snapshot, wanted) in snapshots.iter().rev().step_by(2) {
            assert_eq!(look(snapshot), Ok(*wanted), "{collected}");
        }
        for _ in 0..3 {
            db.inner.engine.epochs.pass();
            run(&mut first, |_| Ok(()));
        }
    }
    for (snapshot, wanted) in &snapshots {
        assert_eq!(look(snapshot), Ok(*wanted));
    }
    assert_eq!(chain(&items).len(), snapshots.len() + 1, "what the snapshots see, and the newest");
    drop(snapshots);
    for _ in 0..3 {
        db.inner.engine.epochs.pass();
        run(&mut first, |_| Ok(()));
    }
    assert_eq!(chain(&items), [false]);
    assert_eq!(count(&db, &items), 30);
}

#[test]
fn counters_of_many_threads_lose_no_update_and_never_abort() {
    const THREADS: i64 = 4;
    const ROUNDS: i64 = 5_000;
    let db = Database::<Mvto>::builder().build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    db.run(|tx| items.insert(tx, Item::new(1, 0))).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut session = db.session().unwrap();
                for round in 0..ROUNDS {
                    session.run(|tx| add(tx, &items, 1)).unwrap();
                    if round % 1_000 == 0 {
                        let seen = session.run(|tx| items.read(tx, 1, Item::COUNT));
                        assert!(seen.unwrap() > round);
                    }
                }
            });
        }
    });
    assert_eq!(count(&db, &items), THREADS * ROUNDS);
    // The advancer collects the sessions' garbage.
    await_one_version(&db, &items);
}

/// Runs the tests of this file with timestamps from the system's clock.
#[test]
fn deferred_updates_work_with_timestamps_of_the_clock() {
    let all: [fn(); 11] = [
        updates_are_deferred_until_the_row_is_read,
        updates_of_one_row_apply_in_the_order_of_their_timestamps_however_they_are_linked,
        no_version_is_linked_below_one_that_was_read,
        a_reader_waits_for_versions_that_are_pending_below,
        a_failed_update_leaves_the_deltas_above_it_unchanged,
        a_row_is_not_deleted_below_a_delta_that_rests_on_it,
        an_update_does_not_rest_on_a_row_that_is_being_deleted,
        the_number_of_deltas_of_a_row_is_bounded,
        the_number_of_deltas_on_a_pending_version_is_bounded,
        snapshots_between_deltas_see_the_deltas_below_them,
        counters_of_many_threads_lose_no_update_and_never_abort,
    ];
    by_the_clock(|| all.iter().for_each(|test| test()));
}
