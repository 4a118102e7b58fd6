//! Tests of undo records: a snapshot sees each row as it was, whichever parts of the row commits
//! change, and whatever is read concurrently.

use crate::epoch::Collect;
use crate::index::Found;
use crate::protocols::Mvcc;
use crate::sync::{Duration, Patience, Point, Random, Wait, Waited, Wish, with_hook};
use crate::tests::interleaving::acting;
use crate::tests::rows::Item;
use crate::tests::snapshots::{Chained, add, by_hand, collect, count, ok, versions};
use crate::tests::transactions::{CONFLICT, ONCE};
use crate::tests::waiting::receive;
use crate::{Abort, Database, Session, Snapshot, Table, Whole};
use candide_derive::Record;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::mpsc::channel;

/// A row with large columns, columns that share a word, and a column with a group of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate)]
struct Wide {
    #[key]
    id: u64,
    #[group(wide)]
    one: u64,
    #[group(wide)]
    few: [u64; 3],
    #[group(wide)]
    many: [u64; 16],
    #[group(wide)]
    narrow: u8,
    #[group(wide)]
    flag: bool,
    #[group(rest)]
    rest: [u64; 2],
}

impl Wide {
    fn new(id: u64, value: u64) -> Wide {
        Wide {
            id,
            one: value,
            few: [value; 3],
            many: [value; 16],
            narrow: value as u8,
            flag: false,
            rest: [value; 2],
        }
    }
}

protocol_tests!(versioned: snapshots_see_whole_rows_whichever_columns_change);
fn snapshots_see_whole_rows_whichever_columns_change<P: Chained>() {
    for seed in 0..100 {
        Walk::<P>::new(seed).run();
    }
}

/// A random walk that changes parts of rows, and makes and removes rows and snapshots.
struct Walk<P: Chained> {
    seed: u64,
    random: Random,
    db: Database<P>,
    rows: Table<Wide, P>,
    sessions: Vec<Session<P>>,
    model: BTreeMap<u64, Wide>,
    /// The open snapshots with their expected rows.
    open: Vec<(Snapshot<P>, BTreeMap<u64, Wide>)>,
}

impl<P: Chained> Walk<P> {
    const ROWS: u64 = 2;

    fn new(seed: u64) -> Walk<P> {
        let db = Database::<P>::builder()
            .manual_epochs(10)
            .timestamp_splitting(seed.is_multiple_of(2))
            .build()
            .unwrap();
        let rows = db.table::<Wide>("rows").unwrap();
        let sessions = (0..3).map(|_| db.session().unwrap()).collect();
        Walk {
            seed,
            random: Random::seeded(seed),
            db,
            rows,
            sessions,
            model: BTreeMap::new(),
            open: Vec::new(),
        }
    }

    fn run(&mut self) {
        for step in 0..150 {
            self.step(step);
            self.look();
        }
        self.open.clear();
        self.collect_all();
        assert_eq!(self.db.memory().garbage, 0, "seed {}", self.seed);
    }

    fn step(&mut self, step: u64) {
        let (id, who) = (self.random.below(Self::ROWS), self.random.below(3) as usize);
        match self.random.below(20) {
            0..=8 => self.update(id, who, step),
            9 | 10 => {
                ok(self.sessions[who].run(|tx| self.rows.put(tx, Wide::new(id, step))));
                self.model.insert(id, Wide::new(id, step));
            }
            11 => {
                let deleted = ok(self.sessions[who].run(|tx| self.rows.delete_if_present(tx, &id)));
                assert_eq!(deleted, self.model.remove(&id).is_some());
            }
            12 | 13 if self.open.len() < 5 => {
                self.open.push((self.db.snapshot(), self.model.clone()))
            }
            12..=14 if !self.open.is_empty() => {
                let place = self.random.below(self.open.len() as u64) as usize;
                self.open.remove(place);
            }
            15 => self.sessions[who] = self.db.session().unwrap(),
            16 => self.collect_all(),
            _ => {
                self.db.inner.engine.epochs.pass();
                ok(self.sessions[who].run(|_| Ok(())));
            }
        }
    }

    /// Changes one part of a row, or several, or one and then the whole row.
    fn update(&mut self, id: u64, who: usize, value: u64) {
        let Some(row) = self.model.get_mut(&id) else { return };
        let parts: Vec<_> = (0..1 + self.random.below(3)).map(|_| self.random.below(8)).collect();
        let place = self.random.below(16) as usize;
        let mut many = row.many;
        many[place] = value;
        let rows = &self.rows;
        ok(self.sessions[who].run(|tx| {
            for part in &parts {
                match part {
                    0 | 1 => rows.update(tx, &id, Wide::ONE.set(value))?,
                    2 => rows.update(tx, &id, Wide::FEW.set([value; 3]))?,
                    3 => rows.update(tx, &id, Wide::MANY.set(many))?,
                    4 => {
                        rows.update(tx, &id, (Wide::NARROW.set(value as u8), Wide::ONE.set(value)))?
                    }
                    5 => rows.update(tx, &id, Wide::FLAG.set(value.is_multiple_of(2)))?,
                    6 => rows.update(tx, &id, Wide::REST.set([value; 2]))?,
                    _ => rows.put(tx, Wide::new(id, value))?,
                }
            }
            Ok(())
        }));
        for part in parts {
            match part {
                0 | 1 => row.one = value,
                2 => row.few = [value; 3],
                3 => row.many = many,
                4 => (row.narrow, row.one) = (value as u8, value),
                5 => row.flag = value.is_multiple_of(2),
                6 => row.rest = [value; 2],
                _ => *row = Wide::new(id, value),
            }
        }
    }

    fn look(&mut self) {
        for id in 0..Self::ROWS {
            let now = ok(self.sessions[0].run(|tx| self.rows.get(tx, &id, Whole)));
            assert_eq!(now.as_ref(), self.model.get(&id), "seed {}", self.seed);
            for (snapshot, rows) in &self.open {
                let seen = ok(snapshot.run(|tx| self.rows.get(tx, &id, Whole)));
                assert_eq!(seen.as_ref(), rows.get(&id), "seed {}", self.seed);
            }
        }
    }

    /// Collects everything possible, and asserts that at most these versions of a unit remain: the
    /// newest one, and one for each snapshot.
    fn collect_all(&mut self) {
        for _ in 0..8 {
            self.sessions.iter_mut().for_each(|session| collect(&self.db, session));
            let inner = &self.db.inner;
            inner.collect(inner.engine.epochs.now());
        }
        let core = self.rows.core();
        for id in 0..Self::ROWS {
            let Found::Record(record) = core.index.find(&[id]) else { continue };
            for at in core.layout.cells(record) {
                let (found, open) = (P::versions(&self.db.inner.engine.clock, at), self.open.len());
                assert!(
                    found <= open + 1,
                    "seed {}: {found} versions, {open} snapshots",
                    self.seed
                );
            }
        }
    }
}

#[test]
fn readers_of_old_versions_see_no_unfinished_write() {
    let db = Database::<Mvcc>::builder().manual_epochs(10).build().unwrap();
    let rows = db.table::<Wide>("rows").unwrap();
    let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
    ok(session.run(|tx| rows.insert(tx, Wide::new(1, 0))));
    let snapshot = db.snapshot();
    ok(session.run(|tx| rows.update(tx, 1, Wide::ONE.set(1))));
    let written = rows.clone();
    let seen = acting(
        Point::LookingBack,
        move || ok(other.run(|tx| written.update(tx, 1, Wide::FEW.set([2; 3])))),
        || ok(snapshot.run(|tx| rows.get(tx, 1, Whole))),
    );
    assert_eq!(seen, Some(Wide::new(1, 0)));
}

/// While a chain is pruned, other sessions can read the row. A writer has to wait or start over.
#[test]
fn thinning_a_chain_stops_writers_and_no_readers() {
    let (db, items, mut session) = by_hand::<Mvcc>();
    let mut other = db.session().unwrap();
    let snapshot = Rc::new(db.snapshot());
    (0..5).for_each(|_| add(&mut session, &items, 1));
    db.inner.engine.epochs.pass();
    db.inner.engine.epochs.pass();
    let (there, rows) = (snapshot.clone(), items.clone());
    let meanwhile = move || {
        assert_eq!(count(&there, &rows, 1), Some(0));
        assert_eq!(other.with(ONCE()).run(|tx| rows.get(tx, 1, Item::COUNT)), Ok(Some(5)));
        assert_eq!(other.with(ONCE()).run(|tx| rows.update(tx, 1, Item::COUNT.add(1))), CONFLICT);
        assert_eq!(other.last_conflict().map(|conflict| conflict.cause), Some(Abort::Locked));
    };
    acting(Point::Pruning, meanwhile, || ok(session.run(|_| Ok(()))));
    assert_eq!((versions(&db, &items, 1), count(&snapshot, &items, 1)), (2, Some(0)));
    add(&mut session, &items, 1);
    assert_eq!(count(&db.snapshot(), &items, 1), Some(6));
}

#[test]
fn the_end_of_thinning_wakes_waiters_for_the_unit() {
    let (db, items, mut session) = by_hand::<Mvcc>();
    let _snapshot = db.snapshot();
    (0..5).for_each(|_| add(&mut session, &items, 1));
    db.inner.engine.epochs.pass();
    db.inner.engine.epochs.pass();
    let core = items.core();
    let mut cell = 0;
    core.index.for_each(&mut |record| {
        if record.key_words(1).as_slice() == [1] {
            cell = core.layout.first_of(record).address();
        }
    });
    let (begin, entered, done) = (channel(), channel(), channel());
    std::thread::scope(|scope| {
        let parking = &db.inner.engine.parking;
        scope.spawn(move || {
            receive("the pruning", &begin.1);
            let mut wait = Wait::new(parking, cell, Wish::Look, Patience::Endless);
            while parking.entered() == 0 {
                assert_eq!(wait.wait(), Waited::Again);
            }
            entered.0.send(()).unwrap();
            receive("the end of the pruning", &done.1);
            assert_eq!(parking.waited_for(), [0; 0], "it was not woken");
        });
        let meanwhile = move || {
            begin.0.send(()).unwrap();
            receive("a waiter", &entered.1);
        };
        acting(Point::Pruning, meanwhile, || ok(session.run(|_| Ok(()))));
        done.0.send(()).unwrap();
    });
}

/// One session prunes a chain and keeps the versions that an open snapshot needs. The snapshot
/// closes meanwhile. Another session has an entry of the same chain, and no open snapshot in its
/// list.
#[test]
fn a_version_on_the_path_of_a_reader_is_not_freed() {
    let (db, items, mut session) = by_hand::<Mvcc>();
    let mut other = db.session().unwrap();
    let snapshot = db.snapshot();
    add(&mut session, &items, 1);
    add(&mut session, &items, 1);
    add(&mut other, &items, 1);
    add(&mut session, &items, 1);
    db.inner.engine.epochs.pass();
    db.inner.engine.epochs.pass();
    let meanwhile = move || {
        drop(snapshot);
        let own = |other: &Session<Mvcc>| {
            other.core_for_tests().public.garbage(&other.inner().engine.epochs).len()
        };
        assert_eq!(own(&other), 1);
        ok(other.run(|_| Ok(())));
        assert_eq!(own(&other), 1, "it is retired, and not free yet");
    };
    acting(Point::Pruning, meanwhile, || ok(session.run(|_| Ok(()))));
    collect(&db, &mut session);
    (0..10).for_each(|_| db.inner.engine.epochs.pass());
    db.inner.collect(db.inner.engine.epochs.now());
    assert_eq!((versions(&db, &items, 1), count(&db.snapshot(), &items, 1)), (1, Some(4)));
}

/// An undo record of a few words stays for a snapshot. The undo records above it, which hold other
/// words, are collected.
#[test]
fn remaining_versions_take_over_the_words_of_removed_ones() {
    let db = Database::<Mvcc>::builder().manual_epochs(10).build().unwrap();
    let rows = db.table::<Wide>("rows").unwrap();
    let mut session = db.session().unwrap();
    ok(session.run(|tx| rows.insert(tx, Wide::new(1, 0))));
    let snapshot = db.snapshot();
    ok(session.run(|tx| rows.update(tx, 1, Wide::FEW.set([1; 3]))));
    ok(session.run(|tx| rows.update(tx, 1, Wide::ONE.set(2))));
    ok(session.run(|tx| rows.update(tx, 1, Wide::FLAG.set(true))));
    let newer = db.snapshot();
    ok(session.run(|tx| rows.update(tx, 1, Wide::MANY.set([4; 16]))));
    collect(&db, &mut session);
    let core = rows.core();
    let Found::Record(record) = core.index.find(&[1]) else { panic!("the row is there") };
    assert_eq!(db.inner.engine.clock.count_versions(core.layout.first_of(record)), 3);
    let seen = |snapshot: &Snapshot<Mvcc>| ok(snapshot.run(|tx| rows.get(tx, 1, Whole)));
    assert_eq!(seen(&snapshot), Some(Wide::new(1, 0)));
    assert_eq!(seen(&newer), Some(Wide { few: [1; 3], one: 2, flag: true, ..Wide::new(1, 0) }));
    drop((snapshot, newer));
    (0..2).for_each(|_| collect(&db, &mut session));
    assert_eq!(db.memory().garbage, 0);
}

protocol_tests!(versioned: versions_younger_than_a_snapshot_are_not_kept_for_it);
/// A snapshot is open. Rows and index entries that it has never seen leave nothing behind when they
/// are inserted and deleted again.
fn versions_younger_than_a_snapshot_are_not_kept_for_it<P: Chained>() {
    let (db, items, mut session) = by_hand::<P>();
    let snapshot = db.snapshot();
    for id in 10..60 {
        ok(session.run(|tx| items.insert(tx, Item::new(id, 1))));
        add(&mut session, &items, id);
        ok(session.run(|tx| items.delete(tx, &id)));
        if id % 5 == 0 {
            collect(&db, &mut session);
        }
    }
    // A row that the snapshot sees is deleted, too.
    ok(session.run(|tx| items.delete(tx, 1)));
    (0..3).for_each(|_| collect(&db, &mut session));
    let linked = (0..60).filter(|&id| matches!(items.core().index.find(&[id]), Found::Record(_)));
    assert_eq!(linked.collect::<Vec<_>>(), [0, 1, 2, 3], "{}", P::NAME);
    assert_eq!((count(&snapshot, &items, 1), count(&snapshot, &items, 10)), (Some(0), None));
    drop(snapshot);
    (0..3).for_each(|_| collect(&db, &mut session));
    assert_eq!((db.memory().garbage, versions(&db, &items, 1)), (0, 0));
}

/// A thread opens a table while a collection prunes a chain. The collection has no block ready for
/// the undo record that replaces another one.
#[test]
fn thinning_a_chain_does_not_wait_for_a_waiter_for_the_list_of_tables() {
    let db = Database::<Mvcc>::builder().manual_epochs(10).build().unwrap();
    let rows = db.table::<Wide>("rows").unwrap();
    let mut session = db.session().unwrap();
    ok(session.run(|tx| rows.insert(tx, Wide::new(1, 0))));
    let snapshot = db.snapshot();
    ok(session.run(|tx| rows.update(tx, 1, Wide::FEW.set([1; 3]))));
    ok(session.run(|tx| rows.update(tx, 1, Wide::ONE.set(2))));
    drop(session);
    (0..2).for_each(|_| db.inner.engine.epochs.pass());
    let there = db.clone();
    let ask = move || {
        let asking = std::thread::spawn(move || there.table::<Item>("items").unwrap());
        // If the other thread has to wait, it waits by now.
        std::thread::sleep(Duration::from_millis(50));
        assert!(!asking.is_finished());
    };
    acting(Point::Collecting, ask, || db.inner.collect(db.inner.engine.epochs.now()));
    assert_eq!(ok(snapshot.run(|tx| rows.get(tx, 1, Whole))), Some(Wide::new(1, 0)));
}

/// A row is written while a session prunes the row's chain. The session prunes by the time of the
/// row's previous write.
#[test]
fn a_version_replaced_while_its_chain_is_thinned_stays() {
    let (db, items, mut session) = by_hand::<Mvcc>();
    let (mut other, oldest) = (db.session().unwrap(), db.snapshot());
    (0..3).for_each(|_| add(&mut session, &items, 1));
    (0..2).for_each(|_| db.inner.engine.epochs.pass());
    let kept = Rc::new(Cell::new(None));
    let write = {
        let (db, items, kept) = (db.clone(), items.clone(), kept.clone());
        move || {
            kept.set(Some(db.snapshot()));
            add(&mut other, &items, 1);
        }
    };
    acting(Point::LookingBack, write, || ok(session.run(|_| Ok(()))));
    let kept = kept.take().expect("it was opened");
    let counts = [&oldest, &kept, &db.snapshot()].map(|snapshot| count(snapshot, &items, 1));
    assert_eq!(counts, [Some(0), Some(3), Some(4)]);
}

/// A transaction may change many words of a row any number of times. The transaction makes only one
/// undo record for the row.
#[test]
fn a_transaction_makes_one_undo_record_for_each_unit() {
    let db = Database::<Mvcc>::builder().manual_epochs(10).build().unwrap();
    let rows = db.table::<Wide>("rows").unwrap();
    let mut session = db.session().unwrap();
    ok(session.run(|tx| rows.insert(tx, Wide::new(1, 0))));
    let versions = || db.tables()[0].version_bytes;
    let mut updates = |count: u64| {
        ok(session.run(|tx| {
            rows.update(tx, 1, Wide::ONE.set(1))?;
            (0..count).try_for_each(|value| rows.update(tx, 1, Wide::MANY.set([value; 16])))
        }));
        versions()
    };
    let few = updates(1);
    assert_eq!(updates(20_000), few);
}

/// Many rows are inserted and deleted at once. Their records wait until their undo records have
/// been examined, but not for the snapshot.
#[test]
fn versions_of_a_burst_are_not_kept_for_a_snapshot() {
    const ROWS: std::ops::Range<u64> = 10..9_000;
    let (db, items, mut session) = by_hand::<Mvcc>();
    let snapshot = db.snapshot();
    ok(session.run(|tx| ROWS.into_iter().try_for_each(|id| items.insert(tx, Item::new(id, 1)))));
    ok(session.run(|tx| ROWS.into_iter().try_for_each(|id| items.delete(tx, &id))));
    (0..10).for_each(|_| collect(&db, &mut session));
    let linked =
        ROWS.filter(|&id| matches!(items.core().index.find(&[id]), Found::Record(_))).count();
    assert_eq!((linked, count(&snapshot, &items, 10)), (0, None));
    assert_eq!(db.memory().garbage, 0);
}

/// A chain is pruned in one walk, however much garbage has accumulated while nothing could be
/// collected.
#[test]
fn accumulated_versions_are_thinned_in_one_walk() {
    let (db, items, mut session) = by_hand::<Mvcc>();
    let snapshot = db.snapshot();
    (0..20_000).for_each(|_| add(&mut session, &items, 1));
    assert_eq!(versions(&db, &items, 1), 20_001);
    (0..2).for_each(|_| db.inner.engine.epochs.pass());
    ok(session.run(|_| Ok(())));
    assert_eq!((versions(&db, &items, 1), count(&snapshot, &items, 1)), (2, Some(0)));
    (0..10).for_each(|_| collect(&db, &mut session));
    assert_eq!(db.memory().garbage, 1);
}

/// The parts of a row change one after another. Three undo records keep the row for a snapshot,
/// whatever the number of changes.
#[test]
fn three_undo_records_keep_a_row_for_a_snapshot() {
    let db = Database::<Mvcc>::builder().manual_epochs(10).build().unwrap();
    let rows = db.table::<Wide>("rows").unwrap();
    let mut session = db.session().unwrap();
    ok(session.run(|tx| rows.insert(tx, Wide::new(1, 0))));
    let snapshot = db.snapshot();
    ok(session.run(|tx| rows.update(tx, 1, Wide::ONE.set(1))));
    (0..4).for_each(|_| collect(&db, &mut session));
    ok(session.run(|tx| rows.update(tx, 1, Wide::FEW.set([1; 3]))));
    (0..4).for_each(|_| collect(&db, &mut session));
    ok(session.run(|tx| rows.update(tx, 1, Wide::MANY.set([1; 16]))));
    (0..4).for_each(|_| collect(&db, &mut session));
    ok(session.run(|tx| rows.update(tx, 1, (Wide::NARROW.set(1), Wide::FLAG.set(true)))));
    (0..4).for_each(|_| collect(&db, &mut session));
    assert_eq!(db.memory().garbage, 3);
    assert_eq!(ok(snapshot.run(|tx| rows.get(tx, 1, Whole))), Some(Wide::new(1, 0)));
    drop(snapshot);
    (0..4).for_each(|_| collect(&db, &mut session));
    assert_eq!(db.memory().garbage, 0);
}

/// While rows are held for update, a collection searches the chain of each row once, however many
/// entries of the row are due.
#[test]
fn a_collection_walks_the_chain_of_a_held_row_once() {
    let (db, items, mut session) = by_hand::<Mvcc>();
    let (mut other, snapshot) = (db.session().unwrap(), db.snapshot());
    for _ in 0..50 {
        (1..=2).for_each(|id| add(&mut session, &items, id));
    }
    (0..2).for_each(|_| db.inner.engine.epochs.pass());
    let walks = Rc::new(Cell::new(0));
    let counted = walks.clone();
    let hook = move |point| counted.set(counted.get() + usize::from(point == Point::LookingBack));
    ok(other.run(|tx| {
        (1..=2).try_for_each(|id| items.read_for_update(tx, &id, Item::COUNT).map(drop))?;
        with_hook(hook.clone(), || ok(session.run(|_| Ok(()))));
        Ok(())
    }));
    assert_eq!(walks.get(), 2);
    collect(&db, &mut session);
    assert_eq!([1, 2].map(|id| versions(&db, &items, id)), [2, 2]);
    assert_eq!(count(&snapshot, &items, 1), Some(0));
}
