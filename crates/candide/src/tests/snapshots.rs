//! Tests of snapshots: the rows that they see, and the memory that they keep and free.

use super::indexed_rows::Parcel;
use super::random_transactions::{Judge, Mix};
use super::rows::Item;
use super::threads::spawn;
use crate::engine::Versioned;
use crate::index::Found;
use crate::protocols::{Mvcc, Mvto, Recorded};
use crate::record::CellAt;
use crate::report::OldestSnapshot;
use crate::sync::{Duration, Random};
use crate::{Abort, Database, IndexOptions, Session, Snapshot, Table, Whole};
use candide_check::Options;

pub(crate) type Items<P> = Table<Item, P>;

/// A protocol whose version chains can be counted.
pub(crate) trait Chained: Versioned {
    /// Returns the number of versions of a unit.
    fn versions(clock: &Self::Clock, at: CellAt) -> usize;
}

impl Chained for Mvcc {
    fn versions(clock: &Self::Clock, at: CellAt) -> usize {
        clock.count_versions(at)
    }
}

impl Chained for Mvto {
    fn versions(_clock: &Self::Clock, at: CellAt) -> usize {
        at.newest_linked(at.chain_word()).map_or(0, |newest| newest.and_older().count())
    }
}

/// Makes a database with rows 0..4. Explicit calls move its epochs.
pub(crate) fn by_hand<P: Chained>() -> (Database<P>, Items<P>, Session<P>) {
    let db = Database::<P>::builder().manual_epochs(10).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    ok(session.run(|tx| (0..4).try_for_each(|id| items.insert(tx, Item::new(id, 0)))));
    (db, items, session)
}

protocol_tests!(versioned: histories_with_snapshots_are_strictly_serializable);
/// Some threads change all rows. Other threads read, each in its own snapshot, which it keeps for a
/// while. All reads in a snapshot must be from one moment.
fn histories_with_snapshots_are_strictly_serializable<P: Chained>() {
    let mix = Mix::new(Database::<Recorded<P>>::builder().build().unwrap(), 8);
    let options = Options { strict: true, opaque: P::OPAQUE, horizon: 1 << 20 };
    let mut judge = Judge::new(options, "snapshots".to_string());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..6)
            .map(|thread| {
                let mix = &mix;
                spawn(scope, move || {
                    let (mut session, mut random) =
                        (mix.db.session().unwrap(), Random::seeded(thread));
                    for _ in 0..300 {
                        if thread % 2 == 0 {
                            (0..10).for_each(|_| mix.step(&mut session, &mut random, 5));
                        } else {
                            let snapshot = mix.db.snapshot();
                            (0..4).for_each(|_| {
                                mix.read_view(&mut session, &snapshot, &mut random, 6)
                            });
                        }
                    }
                })
            })
            .collect();
        while !workers.iter().all(|worker| worker.is_finished()) {
            judge.hear(&mix.db.take_history());
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    judge.hear(&mix.db.take_history());
    assert!(judge.judge() >= 3 * 300 * 14);
}

pub(crate) fn ok<T>(result: Result<T, Abort>) -> T {
    result.unwrap_or_else(|abort| panic!("{abort}"))
}

pub(crate) fn add<P: Chained>(session: &mut Session<P>, items: &Items<P>, id: u64) {
    ok(session.run(|tx| items.update(tx, &id, Item::COUNT.add(1))));
}

/// Collects all garbage that can be freed.
pub(crate) fn collect<P: Chained>(db: &Database<P>, session: &mut Session<P>) {
    for _ in 0..6 {
        db.inner.engine.epochs.pass();
        ok(session.run(|_| Ok(())));
    }
}

/// Returns the number of versions of a row's first group.
pub(crate) fn versions<P: Chained>(db: &Database<P>, items: &Items<P>, id: u64) -> usize {
    let core = items.core();
    let Found::Record(record) = core.index.find(&[id]) else { return 0 };
    P::versions(&db.inner.engine.clock, core.layout.first_of(record))
}

pub(crate) fn count<P: Chained>(snapshot: &Snapshot<P>, items: &Items<P>, id: u64) -> Option<i64> {
    ok(snapshot.run(|tx| items.get(tx, &id, Item::COUNT)))
}

#[test]
fn a_snapshot_keeps_only_the_versions_that_it_sees() {
    a_snapshot_keeps_only_the_versions_that_it_sees_under::<Mvcc>();
}

#[test]
fn a_snapshot_keeps_only_the_versions_that_it_sees_in_chains() {
    a_snapshot_keeps_only_the_versions_that_it_sees_under::<Mvto>();
}

/// Any thread may use a snapshot, for any length of time.
#[test]
fn snapshots_go_from_thread_to_thread() {
    fn is_free<T: Send + Sync + 'static>(_: &T) {}
    let (db, items, mut session) = by_hand::<Mvcc>();
    let snapshot = db.snapshot();
    is_free(&snapshot);
    is_free(&by_hand::<Mvto>().0.snapshot());
    add(&mut session, &items, 1);
    let seen = std::thread::spawn(move || count(&snapshot, &items, 1)).join();
    assert_eq!(seen.ok(), Some(Some(0)));
}

fn a_snapshot_keeps_only_the_versions_that_it_sees_under<P: Chained>() {
    let (db, items, mut session) = by_hand::<P>();
    let mut open = Vec::new();
    for round in 0..4 {
        open.push((db.snapshot(), round * 50));
        for _ in 0..50 {
            add(&mut session, &items, 1);
        }
        collect(&db, &mut session);
        // The row has a version for each snapshot, and the newest version.
        assert_eq!(versions(&db, &items, 1), open.len() + 1);
        for (snapshot, seen) in &open {
            assert_eq!(count(snapshot, &items, 1), Some(*seen));
        }
    }
    // The snapshots are closed in mixed order.
    for (left, place) in [(3, 1), (2, 2), (1, 0), (0, 0)] {
        drop(open.remove(place));
        collect(&db, &mut session);
        assert_eq!(versions(&db, &items, 1), left + 1);
        for (snapshot, seen) in &open {
            assert_eq!(count(snapshot, &items, 1), Some(*seen));
        }
    }
    assert_eq!(db.memory().garbage, 0);
}

protocol_tests!(versioned: memory_is_flat_while_a_snapshot_is_kept);
fn memory_is_flat_while_a_snapshot_is_kept<P: Chained>() {
    let (db, items, mut session) = by_hand::<P>();
    let snapshot = db.snapshot();
    let mut round = || {
        for number in 0..2_000 {
            add(&mut session, &items, number % 4);
            if number % 50 == 0 {
                db.inner.engine.epochs.pass();
            }
        }
        db.memory().reserved_bytes
    };
    let settled = (0..3).map(|_| round()).last().expect("three rounds");
    for _ in 0..10 {
        assert_eq!(round(), settled);
    }
    assert!((0..4).all(|id| count(&snapshot, &items, id) == Some(0)));
    drop(snapshot);
    collect(&db, &mut session);
    assert_eq!(
        ((0..4).map(|id| versions(&db, &items, id)).sum::<usize>(), db.memory().garbage),
        (4, 0)
    );
}

protocol_tests!(versioned: a_snapshot_shows_deleted_rows_and_hides_younger_ones);
fn a_snapshot_shows_deleted_rows_and_hides_younger_ones<P: Chained>() {
    let (db, items, mut session) = by_hand::<P>();
    let before = session.snapshot();
    ok(session.run(|tx| items.delete(tx, 1)));
    ok(session.run(|tx| items.insert(tx, Item::new(9, 9))));
    let between = session.snapshot();
    collect(&db, &mut session);
    ok(session.run(|tx| items.insert(tx, Item::new(1, 5))));
    ok(session.run(|tx| items.delete(tx, 9)));
    collect(&db, &mut session);
    let rows = |snapshot: &Snapshot<P>| {
        let mut rows =
            ok(snapshot.run(|tx| items.iter(tx, Item::COUNT).collect::<Result<Vec<_>, _>>()));
        rows.sort_unstable();
        rows
    };
    assert_eq!(rows(&before), [(0, 0), (1, 0), (2, 0), (3, 0)]);
    assert_eq!(rows(&between), [(0, 0), (2, 0), (3, 0), (9, 9)]);
    assert_eq!(rows(&db.snapshot()), [(0, 0), (1, 5), (2, 0), (3, 0)]);
    drop(before);
    collect(&db, &mut session);
    assert_eq!(rows(&between), [(0, 0), (2, 0), (3, 0), (9, 9)]);
    assert_eq!((versions(&db, &items, 9), count(&between, &items, 9)), (2, Some(9)));
    drop(between);
    collect(&db, &mut session);
    // The key of row 9 no longer has a record.
    assert_eq!(
        (versions(&db, &items, 9), versions(&db, &items, 1), db.memory().garbage),
        (0, 1, 0)
    );
}

protocol_tests!(versioned: ranges_and_indexes_of_a_snapshot_are_of_one_moment);
fn ranges_and_indexes_of_a_snapshot_are_of_one_moment<P: Chained>() {
    let db = Database::<P>::builder().manual_epochs(10).build().unwrap();
    let parcels = db.table::<Parcel>("parcels").unwrap();
    let mut session = db.session().unwrap();
    let by_code =
        parcels.create_index("by_code", Parcel::CODE, IndexOptions::hashed().unique()).unwrap();
    ok(session
        .run(|tx| (0..1_000).try_for_each(|number| parcels.insert(tx, Parcel::new(1, number)))));
    let rows = ok(session.run(|tx| parcels.scan(tx, .., Whole).collect::<Result<Vec<_>, _>>()));
    let snapshot = db.snapshot();
    let too_young =
        parcels.create_index("by_colour", Parcel::COLOUR, IndexOptions::hashed()).unwrap();
    for number in 0..1_000 {
        ok(session.run(|tx| match number % 3 {
            0 => parcels.delete(tx, &(1, number)),
            1 => parcels.modify(tx, &(1, number), Parcel::CODE, |code| *code += 1 << 20),
            _ => parcels
                .insert(tx, Parcel { code: 1 << 21 | u32::from(number), ..Parcel::new(0, number) }),
        }));
        if number % 100 == 0 {
            db.inner.engine.epochs.pass();
        }
    }
    collect(&db, &mut session);
    let mut seen = Vec::new();
    let counted = snapshot.for_each(&parcels, .., Whole, |key, row| {
        // The callback can use the database.
        assert!(db.run(|tx| parcels.get(tx, &(0, 2), ())).is_ok_and(|found| found.is_some()));
        seen.push((key, row));
    });
    assert_eq!((counted, seen == rows), (Ok(1_000), true));
    let some = snapshot
        .for_each(&parcels, (1, 100)..(1, 700), (), |key, ()| assert!((100..700).contains(&key.1)));
    assert_eq!(some, Ok(600));
    let mut back = Vec::new();
    let counted = snapshot.for_each_rev(&parcels, .., Whole, |key, row| back.push((key, row)));
    assert_eq!((counted, back.iter().rev().eq(&rows)), (Ok(1_000), true));
    let some = snapshot.for_each_rev(&parcels, (1, 100)..(1, 700), (), |key, ()| {
        assert!((100..700).contains(&key.1))
    });
    assert_eq!(some, Ok(600));
    ok(snapshot.run(|tx| {
        let back: Vec<_> = parcels.scan_rev(tx, .., Whole).collect::<Result<_, _>>()?;
        assert!(back.iter().rev().eq(&rows));
        for (_, row) in rows.iter().step_by(7) {
            assert_eq!(by_code.get(tx, &row.code, Whole)?, Some(*row));
        }
        assert_eq!(by_code.get(tx, &(rows[1].1.code + (1 << 20)), ())?, None);
        assert_eq!(too_young.get(tx, 0, ()), Err(Abort::NoIndex));
        Ok(())
    }));
    // A transaction that reads current rows finds them by this index.
    let colour = rows[1].1.colour;
    let by_present =
        |tx: &crate::Tx<'_, P>| too_young.rows(tx, &colour, ()).collect::<Result<Vec<_>, _>>();
    let found = ok(db.read_view(by_present));
    assert!(!found.is_empty() && found == ok(db.run(by_present)));
}

protocol_tests!(versioned: snapshots_of_indexes_and_hashed_tables_are_read_in_parts);
fn snapshots_of_indexes_and_hashed_tables_are_read_in_parts<P: Chained>() {
    let db = Database::<P>::builder().manual_epochs(10).build().unwrap();
    let (parcels, items) =
        (db.table::<Parcel>("parcels").unwrap(), db.table::<Item>("items").unwrap());
    let mut session = db.session().unwrap();
    let by_shelf =
        parcels.create_index("by_shelf", Parcel::SHELF, IndexOptions::ordered()).unwrap();
    let by_code =
        parcels.create_index("by_code", Parcel::CODE, IndexOptions::ordered().unique()).unwrap();
    // There are 600 rows on two shelves, so a part ends between rows of the same shelf.
    ok(session.run(|tx| {
        (0..600).try_for_each(|number| {
            parcels.insert(tx, Parcel { shelf: (number % 2) as u8, ..Parcel::new(1, number) })
        })
    }));
    ok(session.run(|tx| (0..600).try_for_each(|id| items.insert(tx, Item::new(id, 1)))));
    let shelves = ok(session.run(|tx| by_shelf.scan(tx, .., Whole).collect::<Result<Vec<_>, _>>()));
    let codes =
        ok(session.run(|tx| by_code.scan(tx, 10..500, Whole).collect::<Result<Vec<_>, _>>()));
    let snapshot = db.snapshot();
    let too_young =
        parcels.create_index("by_colour", Parcel::COLOUR, IndexOptions::ordered()).unwrap();
    for number in 0..600 {
        ok(session.run(|tx| match number % 3 {
            0 => parcels.delete(tx, &(1, number)),
            1 => parcels.modify(tx, &(1, number), Parcel::SHELF, |shelf| *shelf = 1 - *shelf),
            _ => parcels.modify(tx, &(1, number), Parcel::CODE, |code| *code += 1 << 20),
        }));
        ok(session.run(|tx| match number % 3 {
            0 => items.delete(tx, u64::from(number)),
            1 => items.update(tx, u64::from(number), Item::COUNT.add(1)),
            _ => items.insert(tx, Item::new(u64::from(number) + 1_000, 1)),
        }));
    }
    collect(&db, &mut session);
    let mut seen = Vec::new();
    let counted = snapshot.for_each_by(&by_shelf, .., Whole, |key, row| {
        // The callback can use the database.
        assert!(db.run(|tx| parcels.get(tx, &(1, 1), ())).is_ok_and(|found| found.is_some()));
        seen.push((key, row));
    });
    assert_eq!((counted, seen == shelves), (Ok(600), true));
    seen.clear();
    let counted = snapshot.for_each_by_rev(&by_shelf, .., Whole, |key, row| seen.push((key, row)));
    assert_eq!((counted, seen.iter().rev().eq(&shelves)), (Ok(600), true));
    seen.clear();
    let counted = snapshot.for_each_by(&by_code, 10..500, Whole, |key, row| seen.push((key, row)));
    assert_eq!((counted, seen == codes), (Ok(codes.len()), true));
    seen.clear();
    let counted =
        snapshot.for_each_by_rev(&by_code, 10..500, Whole, |key, row| seen.push((key, row)));
    assert_eq!((counted, seen.iter().rev().eq(&codes)), (Ok(codes.len()), true));
    let refused =
        snapshot.for_each_by(&too_young, .., (), |_, ()| panic!("it is younger than the snapshot"));
    assert_eq!(refused, Err(Abort::NoIndex));
    let mut ids = Vec::new();
    let counted = snapshot.for_each_unordered(&items, Item::COUNT, |id, count| {
        assert!(db.run(|tx| items.get(tx, 1, ())).is_ok_and(|found| found.is_some()));
        assert_eq!(count, 1);
        ids.push(id);
    });
    ids.sort_unstable();
    assert_eq!((counted, ids.into_iter().eq(0..600)), (Ok(600), true));
}

/// While `each` works on the rows of a part, the reading session is not pinned. So a long iteration
/// does not hold back epochs.
#[test]
fn no_epoch_is_pinned_between_two_parts_of_a_snapshot() {
    let (db, items, mut session) = by_hand::<Mvcc>();
    let snapshot = db.snapshot();
    let counted = snapshot.for_each_unordered(&items, (), |_, ()| {
        let epochs = &db.inner.engine.epochs;
        let before = epochs.bound();
        (0..3).for_each(|_| epochs.pass());
        assert!(epochs.bound() >= before + 3, "{before}, {}", epochs.bound());
    });
    assert_eq!(counted, Ok(4));
    add(&mut session, &items, 1);
}

protocol_tests!(versioned: a_read_only_transaction_writes_nothing);
fn a_read_only_transaction_writes_nothing<P: Chained>() {
    let (db, items, mut session) = by_hand::<P>();
    let snapshot = db.snapshot();
    let attempts = std::cell::Cell::new(0);
    let refused = |tx: &crate::Tx<'_, P>| {
        attempts.set(tx.attempt_number());
        assert_eq!(items.insert(tx, Item::new(9, 0)), Err(Abort::ReadOnly));
        assert_eq!(items.put(tx, Item::new(1, 7)), Err(Abort::ReadOnly));
        assert_eq!(items.update(tx, 1, Item::COUNT.add(1)), Err(Abort::ReadOnly));
        assert_eq!(items.modify(tx, 1, Item::COUNT, |count| *count += 1), Err(Abort::ReadOnly));
        assert_eq!(items.delete(tx, 1), Err(Abort::ReadOnly));
        assert_eq!(items.read_for_update(tx, 1, Item::COUNT), Err(Abort::ReadOnly));
        items.read(tx, 1, Item::COUNT)
    };
    assert_eq!((snapshot.run(refused), attempts.get()), (Ok(0), 1));
    assert_eq!((snapshot.run_in(&mut session, refused), attempts.get()), (Ok(0), 1));
    assert_eq!((session.read_view(refused), attempts.get()), (Ok(0), 1));
    assert!(matches!(items.core().index.find(&[9]), Found::Nothing { .. }));
    let other = Database::<P>::builder().build().unwrap();
    assert_eq!(other.snapshot().run_in(&mut session, |_| Ok(())), Err(Abort::ForeignTable));
    // Afterwards the session writes as before, even after a closure has panicked.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        snapshot.run_in(&mut session, |_| -> Result<(), Abort> { panic!("deliberate") })
    }));
    assert!(panicked.is_err());
    add(&mut session, &items, 1);
    assert_eq!(ok(session.read_view(|tx| items.read(tx, 1, Item::COUNT))), 1);
    assert_eq!(count(&snapshot, &items, 1), Some(0));
}

protocol_tests!(versioned: health_names_the_oldest_snapshot);
fn health_names_the_oldest_snapshot<P: Chained>() {
    let (db, items, mut session) = by_hand::<P>();
    assert_eq!(db.health().oldest_snapshot, None);
    let old = db.snapshot();
    (0..5).for_each(|_| db.inner.engine.epochs.pass());
    add(&mut session, &items, 1);
    let young = db.snapshot();
    assert!(old.timestamp() < young.timestamp());
    assert_eq!(
        db.health().oldest_snapshot,
        Some(OldestSnapshot { age_ms: 5, timestamp: old.timestamp() })
    );
    drop(old);
    assert_eq!(
        db.health().oldest_snapshot,
        Some(OldestSnapshot { age_ms: 0, timestamp: young.timestamp() })
    );
    drop(young);
    assert_eq!(db.health().oldest_snapshot, None);
}
