//! Tests of rows that only snapshots see. Records that only snapshots see are moved out of the main
//! index. Snapshots find each of them once, in the order of keys.

use crate::epoch::Collect;
use crate::index::Found;
use crate::protocols::Mvcc;
use crate::sync::size::Sample;
use crate::sync::{Point, Random, with_hook};
use crate::tests::indexed_rows::Parcel;
use crate::tests::interleaving::acting;
use crate::tests::snapshots::{collect, ok};
use crate::{
    Abort, Database, Index, IndexOptions, Ordered, Prefix, Session, Snapshot, Table, Tx, Whole,
};
use std::collections::BTreeMap;
use std::rc::Rc;

type Key = (u8, u16);
type Rows = BTreeMap<Key, Parcel>;

/// A database whose epochs are moved by hand, with a table in key order and an index of the table.
struct Store {
    db: Database<Mvcc>,
    parcels: Table<Parcel, Mvcc>,
    by_place: Index<Parcel, (u8, i8), Ordered, Mvcc>,
}

impl Store {
    fn new(splitting: bool) -> Store {
        let db = Database::<Mvcc>::builder()
            .manual_epochs(10)
            .timestamp_splitting(splitting)
            .build()
            .unwrap();
        let parcels = db.table::<Parcel>("parcels").unwrap();
        let by_place = parcels
            .create_index("by_place", (Parcel::SHELF, Parcel::OWNER), IndexOptions::ordered())
            .unwrap();
        Store { db, parcels, by_place }
    }

    fn session(&self) -> Session<Mvcc> {
        self.db.session().unwrap()
    }

    /// Returns whether a record of this key is in the table's index.
    fn is_linked(&self, (district, number): Key) -> bool {
        let core = self.parcels.core();
        self.parcels.in_words(&(district, number), |words| {
            matches!(core.index.find(words), Found::Record(_))
        })
    }

    fn attic_is_empty(&self) -> bool {
        let is_empty = |core: &crate::engine::TableCore| {
            core.deleted_index().is_some_and(|deleted_index| deleted_index.is_empty())
        };
        is_empty(self.parcels.core()) && is_empty(self.by_place.entries_for_tests())
    }

    /// Asserts that all ways of reading the table return these rows.
    fn assert_rows(
        &self,
        tx: &Tx<'_, Mvcc>,
        rows: &Rows,
        random: &mut Random,
    ) -> Result<(), Abort> {
        let Store { parcels, by_place, .. } = self;
        let any = |random: &mut Random| (random.below(2) as u8, random.below(KEYS) as u16);
        for _ in 0..3 {
            let key = any(random);
            assert_eq!(parcels.get(tx, &key, Whole)?, rows.get(&key).copied(), "{key:?}");
            let keys: [Key; 4] = std::array::from_fn(|_| any(random));
            for (key, row) in keys.iter().zip(parcels.find_many(tx, &keys)?) {
                assert_eq!(row.get(Parcel::NOTE)?, rows.get(key).map(|row| row.note), "{key:?}");
            }
            let (from, to) = (any(random), any(random));
            let most = random.below(2 * KEYS) as usize;
            let range = if from <= to { from..to } else { to..from };
            let expected = || rows.range(range.clone()).map(|(key, row)| (*key, row.weight));
            let forward = parcels
                .scan(tx, range.clone(), Parcel::WEIGHT)
                .take(most)
                .collect::<Result<Vec<_>, _>>()?;
            assert_eq!(forward, expected().take(most).collect::<Vec<_>>(), "{range:?}");
            let back = parcels
                .scan_rev(tx, range.clone(), Parcel::WEIGHT)
                .take(most)
                .collect::<Result<Vec<_>, _>>()?;
            assert_eq!(
                back,
                expected().rev().take(most).collect::<Vec<_>>(),
                "{range:?}, in reverse"
            );
        }
        let in_order = parcels.iter(tx, Whole).collect::<Result<Vec<_>, _>>()?;
        assert_eq!(in_order, rows.iter().map(|(key, row)| (*key, *row)).collect::<Vec<_>>());
        let mut by_owner: Vec<_> =
            rows.iter().map(|(key, row)| ((row.shelf, row.owner), *key)).collect();
        by_owner.sort_unstable();
        let found =
            by_place.scan(tx, .., ()).map(|row| Ok(row?.0)).collect::<Result<Vec<_>, Abort>>()?;
        assert_eq!(found, by_owner.into_iter().map(|(_, key)| key).collect::<Vec<_>>());
        Ok(())
    }

    fn assert_seen(&self, snapshot: &Snapshot<Mvcc>, rows: &Rows, random: &mut Random) {
        ok(snapshot.run(|tx| self.assert_rows(tx, rows, random)));
        let mut seen = Vec::new();
        ok(snapshot.for_each(&self.parcels, .., Whole, |_, row| seen.push(row)).map(drop));
        assert!(seen.iter().eq(rows.values()));
    }
}

/// The number of rows of a district.
const KEYS: u64 = 40;

#[test]
fn a_row_that_only_a_snapshot_sees_leaves_the_index_of_other_readers() {
    let (store, mut random) = (Store::new(true), Random::seeded(1));
    let (db, parcels, mut session) = (&store.db, &store.parcels, store.session());
    let all: Rows = (0..2)
        .flat_map(|of| (0..KEYS as u16).map(move |n| ((of, n), Parcel::new(of, n))))
        .collect();
    ok(session.run(|tx| all.values().try_for_each(|&row| parcels.insert(tx, row))));
    let snapshot = db.snapshot();
    let mut now = all.clone();
    for number in 0..30 {
        ok(session.run(|tx| parcels.delete(tx, &(0, number))));
        now.remove(&(0, number));
    }
    collect(db, &mut session);
    assert!((0..30).all(|number| !store.is_linked((0, number))));
    assert!(!store.attic_is_empty());
    store.assert_seen(&snapshot, &all, &mut random);
    ok(session.run(|tx| store.assert_rows(tx, &now, &mut random)));

    // Ten of the rows are inserted again with other values, and deleted again. A younger snapshot
    // sees the new values.
    for number in 0..10 {
        let row = Parcel { weight: 7, owner: 3, ..Parcel::new(0, number) };
        ok(session.run(|tx| parcels.insert(tx, row)));
        now.insert((0, number), row);
    }
    let (younger, then) = (db.snapshot(), now.clone());
    for number in 0..10 {
        ok(session.run(|tx| parcels.delete(tx, &(0, number))));
        now.remove(&(0, number));
    }
    collect(db, &mut session);
    assert!((0..10).all(|number| store.is_linked((0, number))), "there is room for one of a key");
    store.assert_seen(&snapshot, &all, &mut random);
    store.assert_seen(&younger, &then, &mut random);
    ok(session.run(|tx| store.assert_rows(tx, &now, &mut random)));

    drop(snapshot);
    collect(db, &mut session);
    store.assert_seen(&younger, &then, &mut random);
    drop(younger);
    collect(db, &mut session);
    assert!(store.attic_is_empty() && (0..30).all(|number| !store.is_linked((0, number))));
    assert_eq!(db.memory().garbage, 0);
    ok(session.run(|tx| store.assert_rows(tx, &now, &mut random)));
}

#[test]
fn snapshots_do_not_change_while_rows_come_and_go() {
    let mut sample = Sample::one_in(6);
    for seed in (0..60).filter(|_| sample.has_next()) {
        let (store, mut random) = (Store::new(seed % 2 == 0), Random::seeded(seed));
        let mut sessions: Vec<_> = (0..2).map(|_| store.session()).collect();
        let (mut rows, mut open) = (Rows::new(), Vec::<(Snapshot<Mvcc>, Rows)>::new());
        let mut was_stowed = false;
        for step in 0..200 {
            let session = &mut sessions[random.below(2) as usize];
            let parcels = &store.parcels;
            let key = (random.below(2) as u8, random.below(KEYS) as u16);
            let row = Parcel { weight: step, owner: (step % 5) as i8, ..Parcel::new(key.0, key.1) };
            match random.below(16) {
                0..=4 => {
                    ok(session.run(|tx| parcels.put(tx, row)));
                    rows.insert(key, row);
                }
                5 => {
                    // Deletes all keys of a district, so that whole leaves and layers are removed.
                    ok(session.run(|tx| {
                        (0..KEYS as u16).try_for_each(|number| {
                            parcels.delete_if_present(tx, &(key.0, number)).map(drop)
                        })
                    }));
                    rows.retain(|&(district, _), _| district != key.0);
                }
                6..=9 => {
                    ok(session.run(|tx| parcels.delete_if_present(tx, &key)));
                    rows.remove(&key);
                }
                10 if open.len() < 4 => open.push((store.db.snapshot(), rows.clone())),
                10 | 11 if !open.is_empty() => {
                    open.remove(random.below(open.len() as u64) as usize);
                }
                12 => collect(&store.db, session),
                _ => {
                    store.db.inner.engine.epochs.pass();
                    ok(session.run(|_| Ok(())));
                }
            }
            was_stowed |= !store.attic_is_empty();
            ok(sessions[0].run(|tx| store.assert_rows(tx, &rows, &mut random)));
            open.iter().for_each(|(snapshot, rows)| store.assert_seen(snapshot, rows, &mut random));
        }
        assert!(was_stowed, "seed {seed}");
        open.clear();
        for _ in 0..3 {
            sessions.iter_mut().for_each(|session| collect(&store.db, session));
        }
        assert_eq!((store.db.memory().garbage, store.attic_is_empty()), (0, true), "seed {seed}");
    }
}

/// Makes a table with one deleted row, a snapshot that sees the row, and the session that will move
/// the row's record to the index of deleted records.
fn about_to_be_stowed() -> (Rc<Store>, Rc<Snapshot<Mvcc>>, Session<Mvcc>) {
    let store = Store::new(true);
    let mut session = store.session();
    ok(session.run(|tx| store.parcels.insert(tx, Parcel::new(0, 1))));
    let snapshot = store.db.snapshot();
    ok(session.run(|tx| store.parcels.delete(tx, &(0, 1))));
    (Rc::new(store), Rc::new(snapshot), session)
}

#[test]
fn a_row_is_seen_exactly_once_during_its_move_to_the_deleted_index() {
    let (store, snapshot, mut session) = about_to_be_stowed();
    let (there, then, mut random) = (store.clone(), snapshot.clone(), Random::seeded(1));
    let rows = Rows::from([((0, 1), Parcel::new(0, 1))]);
    let seen = rows.clone();
    let hook = move |point| {
        if point == Point::MovingToDeletedIndex {
            there.assert_seen(&then, &seen, &mut random);
            ok(there.session().run(|tx| there.assert_rows(tx, &Rows::new(), &mut random)));
        }
    };
    with_hook(hook, || collect(&store.db, &mut session));
    assert!(!store.is_linked((0, 1)) && !store.attic_is_empty());
    store.assert_seen(&snapshot, &rows, &mut Random::seeded(2));
}

#[test]
fn a_row_inserted_during_its_move_to_the_deleted_index_stays() {
    let (store, snapshot, mut session) = about_to_be_stowed();
    let there = store.clone();
    let again = Parcel { weight: 5, ..Parcel::new(0, 1) };
    // The collection has begun with the row's record, but not yet with the record of the row's
    // index entry.
    let comes = move || ok(there.session().run(|tx| there.parcels.insert(tx, again)));
    acting(Point::MovingToDeletedIndex, comes, || collect(&store.db, &mut session));
    let mut random = Random::seeded(3);
    assert!(store.is_linked((0, 1)) && store.attic_is_empty());
    ok(session.run(|tx| store.assert_rows(tx, &Rows::from([((0, 1), again)]), &mut random)));
    store.assert_seen(&snapshot, &Rows::from([((0, 1), Parcel::new(0, 1))]), &mut random);
    drop(snapshot);
    collect(&store.db, &mut session);
    // Collects the garbage of the session that has ended.
    store.db.inner.collect(store.db.inner.engine.epochs.now());
    assert_eq!(store.db.memory().garbage, 0);
    ok(session.run(|tx| store.assert_rows(tx, &Rows::from([((0, 1), again)]), &mut random)));
}

/// The versions of a row in the index of deleted records are collected like those of other rows.
#[test]
fn the_chain_of_a_row_in_the_deleted_index_is_thinned() {
    let store = Store::new(false);
    let (parcels, mut session, mut random) = (&store.parcels, store.session(), Random::seeded(4));
    let mut open = Vec::new();
    for weight in 0..4 {
        let row = Parcel { weight, ..Parcel::new(0, 1) };
        ok(session.run(|tx| parcels.put(tx, row)));
        open.push((store.db.snapshot(), Rows::from([((0, 1), row)])));
    }
    ok(session.run(|tx| parcels.delete(tx, &(0, 1))));
    collect(&store.db, &mut session);
    assert!(!store.is_linked((0, 1)));
    // The garbage comes from the row, which was written four times, and from its index entry, which
    // was made once.
    for (left, closes) in [(6, 2), (5, 1), (4, 1)] {
        assert_eq!(store.db.memory().garbage, left + 1);
        drop(open.remove(closes));
        collect(&store.db, &mut session);
        open.iter().for_each(|(snapshot, rows)| store.assert_seen(snapshot, rows, &mut random));
    }
    open.clear();
    collect(&store.db, &mut session);
    assert_eq!((store.db.memory().garbage, store.attic_is_empty()), (0, true));
}

/// Rows kept for a snapshot do not slow down scans of a queue from its beginning, such as those of
/// TPC-C's deliveries.
#[test]
fn the_first_row_of_a_queue_is_found_at_once() {
    const ROWS: u16 = 1_000;
    let (store, mut random) = (Store::new(true), Random::seeded(5));
    let (parcels, mut session) = (&store.parcels, store.session());
    let all: Rows = (0..ROWS).map(|number| ((0, number), Parcel::new(0, number))).collect();
    ok(session.run(|tx| all.values().try_for_each(|&row| parcels.insert(tx, row))));
    let snapshot = store.db.snapshot();
    let records = || {
        let mut records = 0;
        parcels.core().index.for_each(&mut |_| records += 1);
        records
    };
    for number in 0..900 {
        let first = |tx: &Tx<'_, Mvcc>| parcels.scan(tx, Prefix((0,)), ()).next().transpose();
        assert_eq!(ok(session.run(|tx| Ok(first(tx)?.map(|(key, ())| key)))), Some((0, number)));
        ok(session.run(|tx| parcels.delete(tx, &(0, number))));
        store.db.inner.engine.epochs.pass();
    }
    collect(&store.db, &mut session);
    assert_eq!(records(), 100);
    // Some of the deleted rows are inserted again.
    let again = (0..900)
        .step_by(37)
        .map(|number| ((0, number), Parcel { weight: 3, ..Parcel::new(0, number) }));
    let mut now: Rows = all.range((0, 900)..).map(|(&key, &row)| (key, row)).chain(again).collect();
    ok(session.run(|tx| now.range(..(0, 900)).try_for_each(|(_, &row)| parcels.insert(tx, row))));
    for most in [1, 31, 32, 33, 64, 500] {
        for from in [0, 5, 37, 600, 890] {
            let seen = |tx: &Tx<'_, Mvcc>| {
                let forward = parcels.scan(tx, (0, from).., Parcel::WEIGHT).take(most);
                let back = parcels.scan_rev(tx, ..(0, from), Parcel::WEIGHT).take(most);
                Ok((forward.collect::<Result<Vec<_>, _>>()?, back.collect::<Result<Vec<_>, _>>()?))
            };
            let (forward, back) = ok(snapshot.run(seen));
            assert!(
                forward
                    .into_iter()
                    .eq(all.range((0, from)..).take(most).map(|(key, row)| (*key, row.weight)))
            );
            assert!(
                back.into_iter().eq(all
                    .range(..(0, from))
                    .rev()
                    .take(most)
                    .map(|(key, row)| (*key, row.weight)))
            );
        }
    }
    store.assert_seen(&snapshot, &all, &mut random);
    ok(session.read_view(|tx| store.assert_rows(tx, &now, &mut random)));
    // All rows are deleted.
    ok(session.run(|tx| now.keys().try_for_each(|key| parcels.delete(tx, key))));
    now.clear();
    collect(&store.db, &mut session);
    store.assert_seen(&snapshot, &all, &mut random);
    ok(session.run(|tx| store.assert_rows(tx, &now, &mut random)));
}
