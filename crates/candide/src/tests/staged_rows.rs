//! Rows that a transaction puts or inserts where a row was deleted before. The transaction finds
//! its staged rows, however much garbage is collected meanwhile.

use super::indexed_rows::Parcel;
use super::random_transactions::{Judge, Mix};
use super::rows::{Item, Wide};
use super::threads::spawn;
use super::transactions::{ONCE, run};
use super::{interleaving, properties};
use crate::engine::{Properties, Protocol};
use crate::epoch::Collect;
use crate::protocols::Recorded;
use crate::sync::size::{share, stress};
use crate::sync::{AtomicBool, Duration, Ordering, Point, Random};
use crate::{
    Abort, Database, Hashed, Index, IndexOptions, Ordered, Session, Table, Tx, Versioned, Whole,
};
use candide_check::Options;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Barrier};

/// The key of the rows that come and go.
const KEY: (u8, u16) = (1, 5);

/// A database whose epochs are moved by explicit calls. The garbage of the database is collected by
/// `other`, the session that has deleted the rows.
struct Scene<P: Protocol> {
    db: Database<P>,
    items: Table<Item, P>,
    parcels: Table<Parcel, P>,
    by_code: Index<Parcel, u32, Hashed, P>,
    by_place: Index<Parcel, (u8, i8), Ordered, P>,
    other: RefCell<Session<P>>,
}

impl<P: Protocol> Scene<P> {
    fn new() -> Scene<P> {
        let db = Database::<P>::builder().manual_epochs(10).build().unwrap();
        let (items, parcels) = (db.table("items").unwrap(), db.table::<Parcel>("parcels").unwrap());
        let code = IndexOptions::hashed().unique();
        let by_code = parcels.create_index("by_code", Parcel::CODE, code).unwrap();
        let place = (Parcel::SHELF, Parcel::OWNER);
        let by_place = parcels.create_index("by_place", place, IndexOptions::ordered()).unwrap();
        let other = RefCell::new(db.session().unwrap());
        run(&mut other.borrow_mut(), |tx| {
            items.insert(tx, Item::new(1, 10))?;
            parcels.insert(tx, Parcel::new(1, 1))
        });
        Scene { db, items, parcels, by_code, by_place, other }
    }

    /// Inserts the rows with [`KEY`] and deletes them.
    fn leave_tombstones(&self) {
        let other = &mut self.other.borrow_mut();
        run(other, |tx| {
            self.items.insert(tx, Item::new(KEY.1.into(), 1))?;
            self.parcels.insert(tx, Parcel::new(KEY.0, KEY.1))
        });
        run(other, |tx| {
            self.items.delete(tx, u64::from(KEY.1))?;
            self.parcels.delete(tx, KEY)
        });
        // Attempts that begin now are pinned in a later epoch than the deletion.
        self.db.inner.engine.epochs.pass();
    }

    /// Lets two epochs pass, and collects garbage after each.
    fn collect(&self) {
        for _ in 0..2 {
            self.db.inner.engine.epochs.pass();
            run(&mut self.other.borrow_mut(), |_| Ok(()));
        }
    }

    /// Returns the number of records in the two tables and in the tables of the indexes.
    fn linked(&self) -> usize {
        let mut linked = 0;
        let tables = self.db.inner.engine.tables.read().unwrap();
        tables.iter().for_each(|table| table.index.for_each(&mut |_| linked += 1));
        linked
    }

    /// Collects garbage, also that of `mine`, until `wanted` records are linked: as many as there
    /// are rows and entries. Fails if the collection takes more than `rounds` calls of
    /// [`Scene::collect`].
    fn collect_all(&self, mine: &mut Session<P>, wanted: usize, rounds: usize) {
        let mut left = rounds;
        while self.linked() != wanted {
            assert!(left > 0, "{}: {} records are linked", P::NAME, self.linked());
            left -= 1;
            self.collect();
            run(mine, |_| Ok(()));
        }
    }

    /// Asserts that every lookup finds the item with [`KEY`].
    fn find_item(&self, tx: &Tx<'_, P>) -> Result<(), Abort> {
        let (items, key) = (&self.items, u64::from(KEY.1));
        let name = P::NAME;
        assert_eq!(items.get(tx, key, Item::COUNT)?, Some(7), "{name}: get");
        assert_eq!(items.read(tx, key, Whole)?, Item::new(key, 7), "{name}: read");
        assert!(items.contains(tx, key)?, "{name}: contains");
        assert_eq!(items.len(tx)?, 2, "{name}: count");
        assert_eq!(items.sum(tx, Item::COUNT)?, 17, "{name}: sum");
        let mut keys: Vec<u64> =
            items.iter(tx, ()).map(|row| Ok(row?.0)).collect::<Result<_, Abort>>()?;
        keys.sort_unstable();
        assert_eq!(keys, [1, key], "{name}: scan");
        assert!(!items.insert_if_absent(tx, Item::new(key, 8))?, "{name}: second insert");
        Ok(())
    }

    /// Asserts that every lookup finds the parcel with [`KEY`].
    fn find_parcel(&self, tx: &Tx<'_, P>) -> Result<(), Abort> {
        let Scene { parcels, by_code, by_place, .. } = self;
        let (row, name) = (Parcel::new(KEY.0, KEY.1), P::NAME);
        assert_eq!(parcels.get(tx, KEY, Whole)?, Some(row), "{name}: get");
        let keys = |rows: &mut dyn Iterator<Item = Result<((u8, u16), ()), Abort>>| {
            rows.map(|row| Ok(row?.0)).collect::<Result<Vec<_>, Abort>>()
        };
        assert_eq!(keys(&mut parcels.scan(tx, .., ()))?, [(1, 1), KEY], "{name}: scan");
        assert_eq!(keys(&mut parcels.scan_rev(tx, .., ()))?, [KEY, (1, 1)], "{name}: backwards");
        assert_eq!(parcels.sum(tx, Parcel::WEIGHT)?, 20, "{name}: sum");
        assert!(!parcels.insert_if_absent(tx, row)?, "{name}: second insert");
        assert_eq!(by_code.get(tx, row.code, Parcel::NUMBER)?, Some(KEY.1), "{name}: unique");
        assert_eq!(keys(&mut by_place.scan(tx, .., ()))?, [(1, 1), KEY], "{name}: index");
        assert_eq!(keys(&mut by_place.scan_rev(tx, .., ()))?, [KEY, (1, 1)], "{name}: index");
        let same_code = Parcel { code: row.code, ..Parcel::new(2, 2) };
        let refused = tx.attempt(|tx| parcels.insert(tx, same_code));
        assert_eq!(refused, Err(Abort::NotUnique), "{name}: unique check");
        Ok(())
    }
}

/// A way to write the rows with [`KEY`], which are absent.
type Write<P> = fn(&Scene<P>, &Tx<'_, P>) -> Result<(), Abort>;

/// Returns the ways to write the item.
fn item_writes<P: Protocol>() -> [Write<P>; 4] {
    [
        |scene, tx| scene.items.put(tx, Item::new(KEY.1.into(), 7)),
        |scene, tx| scene.items.insert(tx, Item::new(KEY.1.into(), 7)),
        |scene, tx| scene.items.insert_many(tx, [Item::new(KEY.1.into(), 7)]),
        |scene, tx| {
            let is_new = scene.items.upsert(tx, Item::new(KEY.1.into(), 7), Item::COUNT.set(1))?;
            assert!(is_new);
            Ok(())
        },
    ]
}

/// Returns the ways to write the parcel.
fn parcel_writes<P: Protocol>() -> [Write<P>; 3] {
    [
        |scene, tx| scene.parcels.put(tx, Parcel::new(KEY.0, KEY.1)),
        |scene, tx| scene.parcels.insert(tx, Parcel::new(KEY.0, KEY.1)),
        // The first row with the code changes its code.
        |scene, tx| {
            let row = Parcel::new(KEY.0, KEY.1);
            scene.parcels.put(tx, Parcel { code: 1, shelf: 0, ..row })?;
            scene.collect();
            scene.parcels.modify(tx, KEY, (Parcel::CODE, Parcel::SHELF), |both| {
                *both = (row.code, row.shelf);
            })
        },
    ]
}

/// The kind of the writes: a whole transaction, a part that is kept, or a part that is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    Kept,
    Undone,
}

/// Writes the row with [`KEY`], collects garbage, and looks for the row; in one transaction, which
/// must commit.
fn write_and_find<P: Protocol>(
    scene: &Scene<P>,
    mine: &mut Session<P>,
    part: Part,
    (write, find): (Write<P>, Write<P>),
) {
    let act = |tx: &Tx<'_, P>| {
        write(scene, tx)?;
        (0..3).for_each(|_| scene.collect());
        find(scene, tx)
    };
    run(mine, |tx| match part {
        Part::Whole => act(tx),
        Part::Kept => {
            tx.attempt(act)?;
            scene.collect();
            find(scene, tx)
        }
        Part::Undone => {
            assert_eq!(
                tx.attempt(|tx| act(tx).and(Err::<(), _>(Abort::Indexed))),
                Err(Abort::Indexed)
            );
            // A second part writes the same row again.
            scene.collect();
            assert_eq!(
                tx.attempt(|tx| act(tx).and(Err::<(), _>(Abort::Indexed))),
                Err(Abort::Indexed)
            );
            Ok(())
        }
    });
}

protocol_tests!(overlapping: a_row_that_was_staged_where_one_was_deleted_is_found);
fn a_row_that_was_staged_where_one_was_deleted_is_found<P: Protocol>() {
    let finds: [Write<P>; 2] = [Scene::find_item, Scene::find_parcel];
    let (items, parcels) =
        (item_writes::<P>().map(|w| (w, finds[0])), parcel_writes().map(|w| (w, finds[1])));
    for way in items.into_iter().chain(parcels) {
        for part in [Part::Whole, Part::Kept, Part::Undone] {
            let scene = Scene::<P>::new();
            let mut mine = scene.db.session().unwrap();
            scene.leave_tombstones();
            write_and_find(&scene, &mut mine, part, way);
            if part != Part::Undone {
                run(&mut mine, |tx| way.1(&scene, tx));
            }
        }
    }
}

protocol_tests!(overlapping: records_of_deleted_rows_are_reused_within_a_few_epochs);
fn records_of_deleted_rows_are_reused_within_a_few_epochs<P: Protocol>() {
    // Two rows, and the two entries of the second one, are there at the end.
    const ROWS: usize = 4;
    let scene = Scene::<P>::new();
    let mut mine = scene.db.session().unwrap();
    scene.leave_tombstones();
    assert_eq!(scene.linked(), 2 * ROWS);
    scene.collect_all(&mut mine, ROWS, 2);
    // Writes that are staged and undone keep the records only until their attempt has ended.
    scene.leave_tombstones();
    for _ in 0..3 {
        let act: Write<P> = |scene, tx| {
            scene.items.put(tx, Item::new(KEY.1.into(), 7))?;
            scene.parcels.put(tx, Parcel::new(KEY.0, KEY.1))
        };
        write_and_find(
            &scene,
            &mut mine,
            Part::Undone,
            (act, |scene, tx| {
                scene.find_item(tx)?;
                scene.find_parcel(tx)
            }),
        );
    }
    scene.collect_all(&mut mine, ROWS, 3);
    // A row that is deleted while its record is queued.
    scene.leave_tombstones();
    scene.leave_tombstones();
    scene.collect_all(&mut mine, ROWS, 3);
    // The memory of the records is freed, too.
    for _ in 0..2 {
        scene.collect();
        run(&mut mine, |_| Ok(()));
    }
    assert_eq!(scene.db.memory().garbage, 0, "{}", P::NAME);
}

protocol_tests!(overlapping: a_row_is_found_that_was_staged_while_a_delete_was_committing);
/// A delete takes its epoch or timestamp, and stops. Then an attempt begins, puts the row, and
/// continues beside the collector when the delete has ended. The record's entry is older than both.
fn a_row_is_found_that_was_staged_while_a_delete_was_committing<P: Protocol>() {
    for point in [Point::Unlocked, Point::Locked, Point::Validated, Point::Installing] {
        let scene = Scene::<P>::new();
        let (items, key) = (scene.items.clone(), u64::from(KEY.1));
        let (mut deleter, mut mine) = (scene.db.session().unwrap(), scene.db.session().unwrap());
        // The record of the row is queued, by the session that collects later.
        scene.leave_tombstones();
        run(&mut deleter, |tx| items.insert(tx, Item::new(key, 1)));
        let [stopped, goes_on, ended] = [(); 3].map(|()| Arc::new(Barrier::new(2)));
        let pause = {
            let (stopped, goes_on) = (stopped.clone(), goes_on.clone());
            move || {
                stopped.wait();
                goes_on.wait();
            }
        };
        std::thread::scope(|scope| {
            let (deleted_items, deleted) = (items.clone(), ended.clone());
            spawn(scope, move || {
                let delete = || deleter.with(ONCE()).run(|tx| deleted_items.delete(tx, key));
                assert_eq!(interleaving::acting(point, pause, delete), Ok(()));
                drop(deleter);
                deleted.wait();
            });
            stopped.wait();
            (0..2).for_each(|_| scene.db.inner.engine.epochs.pass());
            let staged = Cell::new(false);
            let look = |tx: &Tx<'_, P>| {
                items.put(tx, Item::new(key, 7))?;
                staged.set(true);
                goes_on.wait();
                ended.wait();
                (0..3).for_each(|_| scene.collect());
                scene.find_item(tx)?;
                Err::<(), _>(Abort::Indexed)
            };
            let looked = mine.with(ONCE()).run(|tx| tx.attempt(look));
            // Under a policy that locks, the attempt may have to wait for the delete, and fail.
            assert!(matches!(looked, Err(Abort::Indexed | Abort::AttemptsExhausted)), "{looked:?}");
            if !staged.get() {
                goes_on.wait();
                ended.wait();
            }
        });
    }
}

protocol_tests!(overlapping: a_row_is_found_that_was_staged_before_its_record_became_absent_again);
/// A commit that will leave a queued record absent stops. Then an attempt begins, puts the row, and
/// continues beside the collector when the commit has ended. The entry is older than the attempt,
/// and its time may be later than the commit's timestamp.
fn a_row_is_found_that_was_staged_before_its_record_became_absent_again<P: Protocol>() {
    let delete: Change<P> = |wide, _, _, tx| wide.delete(tx, KEY_OF_WIDE);
    let fail: Change<P> = |wide, items, _, tx| {
        wide.put(tx, wide_row(1))?;
        fail_at_commit(items, tx)
    };
    let fail_above_deletion: Change<P> = |wide, items, other, tx| {
        wide.put(tx, wide_row(1))?;
        // Another thread deletes the row, which has no hook. Under a policy that locks, the row
        // stays.
        std::thread::scope(|scope| {
            spawn(scope, || other.with(ONCE()).run(|tx| wide.delete(tx, KEY_OF_WIDE)).is_ok());
        });
        fail_at_commit(items, tx)
    };
    for point in [Point::Unlocked, Point::Locked, Point::Validated] {
        for meets in [Meets::Nothing, Meets::Collector, Meets::FailedPut] {
            // In a pipeline, the put would wait for the commit that has stopped.
            let waits = point != Point::Unlocked && meets == Meets::FailedPut;
            if waits && properties::<P>().name == "pipelined" {
                continue;
            }
            stage_beside(point, delete, Before::InsertedAgain, meets);
            stage_beside(point, delete, Before::Inserted, meets);
            stage_beside(point, fail, Before::Deleted, meets);
            stage_beside(point, fail_above_deletion, Before::Inserted, meets);
        }
    }
}

/// The operations of a transaction, which may use another session.
type Change<P> =
    fn(&Table<Wide, P>, &Table<Item, P>, &mut Session<P>, &Tx<'_, P>) -> Result<(), Abort>;

/// The state of the row before a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Inserted,
    Deleted,
    InsertedAgain,
}

/// The event at the record while a commit has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meets {
    Nothing,
    Collector,
    FailedPut,
}

const KEY_OF_WIDE: u64 = 5;

fn wide_row(first: u64) -> Wide {
    Wide { id: KEY_OF_WIDE, first, middle: [0; 20], last: 0 }
}

/// Makes the commit fail when it evaluates its operations, after it has locked all rows.
fn fail_at_commit<P: Protocol>(items: &Table<Item, P>, tx: &Tx<'_, P>) -> Result<(), Abort> {
    items.update(tx, 1, Item::COUNT.sub(1_000).at_least(0))
}

/// Runs `change` up to `point`, stages a row, completes the change, and looks for the row. The
/// record has one unit, so that no entry of another unit keeps it.
fn stage_beside<P: Protocol>(point: Point, change: Change<P>, before: Before, meets: Meets) {
    let scene = Scene::<P>::new();
    let wide: Table<Wide, P> = scene.db.table("wide").unwrap();
    let items = scene.items.clone();
    let [mut changing, mut its_other, mut mine] = [(); 3].map(|()| scene.db.session().unwrap());
    run(&mut scene.other.borrow_mut(), |tx| wide.insert(tx, wide_row(1)));
    if before != Before::Inserted {
        run(&mut scene.other.borrow_mut(), |tx| wide.delete(tx, KEY_OF_WIDE));
    }
    if before == Before::InsertedAgain {
        run(&mut changing, |tx| wide.insert(tx, wide_row(1)));
    }
    let epochs = &scene.db.inner.engine.epochs;
    epochs.pass();
    let [stopped, goes_on, ended] = [(); 3].map(|()| Arc::new(Barrier::new(2)));
    let pause = {
        let (stopped, goes_on) = (stopped.clone(), goes_on.clone());
        move || {
            stopped.wait();
            goes_on.wait();
        }
    };
    std::thread::scope(|scope| {
        let (its_wide, its_items, its_end) = (wide.clone(), items.clone(), ended.clone());
        spawn(scope, move || {
            let act = || {
                let mut run = changing.with(ONCE());
                let _ = run.run(|tx| change(&its_wide, &its_items, &mut its_other, tx));
            };
            interleaving::acting(point, pause, act);
            // In this order, the older entry comes first in the garbage of ended sessions.
            drop((its_other, changing));
            its_end.wait();
        });
        stopped.wait();
        match meets {
            Meets::Nothing => {}
            Meets::Collector => scene.collect(),
            Meets::FailedPut => {
                let put = |tx: &Tx<'_, P>| {
                    wide.put(tx, wide_row(2))?;
                    fail_at_commit(&items, tx)
                };
                assert!(scene.other.borrow_mut().with(ONCE()).run(put).is_err());
            }
        }
        (0..2).for_each(|_| epochs.pass());
        let staged = Cell::new(false);
        let look = |tx: &Tx<'_, P>| {
            wide.put(tx, wide_row(7))?;
            staged.set(true);
            goes_on.wait();
            ended.wait();
            for _ in 0..3 {
                scene.collect();
                Collect::collect(&**scene.db.inner, epochs.now());
            }
            let case = format!("{}: {point:?}, {before:?}, {meets:?}", P::NAME);
            assert_eq!(wide.get(tx, KEY_OF_WIDE, Wide::FIRST)?, Some(7), "{case}");
            assert_eq!(wide.len(tx)?, 1, "{case}");
            Err::<(), _>(Abort::Indexed)
        };
        let looked = mine.with(ONCE()).run(|tx| tx.attempt(look));
        // The attempt may have to wait for the commit, and fail.
        assert!(matches!(looked, Err(Abort::Indexed | Abort::AttemptsExhausted)), "{looked:?}");
        if !staged.get() {
            goes_on.wait();
            ended.wait();
        }
    });
}

protocol_tests!(overlapping: a_staged_row_is_found_beside_the_collector_of_ended_sessions);
fn a_staged_row_is_found_beside_the_collector_of_ended_sessions<P: Protocol>() {
    let finds: [Write<P>; 2] = [Scene::find_item, Scene::find_parcel];
    for way in [(item_writes::<P>()[0], finds[0]), (parcel_writes::<P>()[0], finds[1])] {
        let scene = Scene::<P>::new();
        let mut mine = scene.db.session().unwrap();
        scene.leave_tombstones();
        drop(scene.other.replace(scene.db.session().unwrap()));
        let epochs = &scene.db.inner.engine.epochs;
        let looked = mine.with(ONCE()).run(|tx| {
            tx.attempt(|tx| {
                way.0(&scene, tx)?;
                for _ in 0..6 {
                    epochs.pass();
                    Collect::collect(&**scene.db.inner, epochs.now());
                }
                way.1(&scene, tx)?;
                Err::<(), _>(Abort::Indexed)
            })
        });
        assert_eq!(looked, Err(Abort::Indexed), "{}", P::NAME);
    }
}

protocol_tests!(versioned: a_staged_row_is_found_while_a_snapshot_of_the_deleted_one_closes);
/// A snapshot sees the deleted rows. The snapshot closes while an attempt has staged the rows anew.
fn a_staged_row_is_found_while_a_snapshot_of_the_deleted_one_closes<P: Versioned>() {
    let finds: [Write<P>; 2] = [Scene::find_item, Scene::find_parcel];
    for (write, find) in [(item_writes::<P>()[0], finds[0]), (parcel_writes::<P>()[0], finds[1])] {
        // The record may have been parked, or moved to the index of deleted records, before or
        // after the row is staged.
        for (before, after) in [(0, 0), (0, 2), (2, 0), (2, 2)] {
            let scene = Scene::<P>::new();
            let mut mine = scene.db.session().unwrap();
            run(&mut scene.other.borrow_mut(), |tx| {
                scene.items.insert(tx, Item::new(KEY.1.into(), 1))?;
                scene.parcels.insert(tx, Parcel::new(KEY.0, KEY.1))
            });
            let snapshot = RefCell::new(Some(scene.db.snapshot()));
            scene.collect();
            run(&mut scene.other.borrow_mut(), |tx| {
                scene.items.delete(tx, u64::from(KEY.1))?;
                scene.parcels.delete(tx, KEY)
            });
            scene.db.inner.engine.epochs.pass();
            (0..before).for_each(|_| scene.collect());
            run(&mut mine, |tx| {
                let undone = tx.attempt(|tx| {
                    write(&scene, tx)?;
                    (0..after).for_each(|_| scene.collect());
                    find(&scene, tx)?;
                    drop(snapshot.take());
                    (0..4).for_each(|_| scene.collect());
                    find(&scene, tx)?;
                    Err::<(), _>(Abort::Indexed)
                });
                assert_eq!(undone, Err(Abort::Indexed), "{}", P::NAME);
                Ok(())
            });
            scene.collect_all(&mut mine, 4, 5);
        }
    }
}

protocol_tests!(overlapping: histories_with_fast_epochs_satisfy_the_guarantees_of_protocols);
/// Epochs pass fifty times as fast as usual, so that rows are collected early. Transactions
/// look for the rows that they have put, in parts and outside of parts.
fn histories_with_fast_epochs_satisfy_the_guarantees_of_protocols<P: Protocol>() {
    let Properties { name, strict, opaque, .. } = properties::<P>();
    let db = Database::<Recorded<P>>::builder().manual_epochs(10).build().unwrap();
    let mix = Mix::new(db, 3);
    let options = Options { strict, opaque, horizon: 1 << 20 };
    let mut judge = Judge::new(options, name.to_string());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let work = |thread| {
            let (mix, steps) = (&mix, share(1_000) * stress());
            let mut session = mix.db.session().unwrap();
            spawn(scope, move || {
                let mut random = Random::seeded(thread);
                (0..steps).for_each(|_| mix.step(&mut session, &mut random, 5));
            })
        };
        let workers: Vec<_> = (0..4).map(work).collect();
        spawn(scope, || {
            while !is_over.load(Ordering::Relaxed) {
                mix.db.inner.engine.epochs.pass();
                std::thread::sleep(Duration::from_micros(20));
            }
        });
        while !workers.iter().all(|worker| worker.is_finished()) {
            judge.hear(&mix.db.take_history());
            std::thread::sleep(Duration::from_millis(1));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    judge.hear(&mix.db.take_history());
    judge.judge();
}
