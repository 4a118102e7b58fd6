//! Tests of parked garbage: garbage that is kept only for an open snapshot. Parked garbage is not
//! examined until the snapshot closes, delays no other garbage, and is all freed in the end.

use crate::epoch::Collect;
use crate::index::Found;
use crate::protocols::{Mvcc, Mvto};
use crate::sync::{Point, Random, with_hook};
use crate::tests::rows::Item;
use crate::tests::snapshots::{Chained, Items, add, by_hand, collect, count, ok, versions};
use crate::tests::waiting::eventually;
use crate::{Abort, Database, Session, Snapshot};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Returns the number of times that this thread examines an entry of garbage while it runs `body`.
pub(crate) fn looks(body: impl FnOnce()) -> usize {
    let looks = Rc::new(Cell::new(0));
    let counted = looks.clone();
    let hook = move |point| counted.set(counted.get() + usize::from(point == Point::Collecting));
    with_hook(hook, body);
    looks.get()
}

fn record_is_linked<P: Chained>(items: &Items<P>, id: u64) -> bool {
    matches!(items.core().index.find(&[id]), Found::Record(_))
}

protocol_tests!(versioned: rows_that_a_snapshot_sees_are_not_buried_before_it_closes);
fn rows_that_a_snapshot_sees_are_not_buried_before_it_closes<P: Chained>() {
    /// `COLD` is the number of rows that are each written once while a snapshot is open; `HOT` is
    /// the number of writes of a hot row.
    const COLD: u64 = 2_000;
    const HOT: usize = 100;
    let (db, items, mut session) = by_hand::<P>();
    ok(session.run(|tx| (4..COLD).try_for_each(|id| items.insert(tx, Item::new(id, 0)))));
    let mut reserved = Vec::new();
    for round in 1..=4 {
        let snapshot = db.snapshot();
        // From here on the session's list of snapshots contains this snapshot.
        collect(&db, &mut session);
        add(&mut session, &items, 0);
        collect(&db, &mut session);
        let cold = looks(|| {
            (1..COLD).for_each(|id| add(&mut session, &items, id));
            (0..20).for_each(|_| collect(&db, &mut session));
        });
        assert!(cold <= 2 * COLD as usize, "{cold} looks at {COLD} rows");
        let hot = looks(|| {
            for _ in 0..HOT {
                add(&mut session, &items, 0);
                collect(&db, &mut session);
                assert_eq!(versions(&db, &items, 0), 2, "what is hot waits behind what is cold");
            }
        });
        assert!(hot <= 3 * HOT, "{hot} looks at {HOT} versions");
        let garbage = db.memory().garbage;
        assert!((COLD as usize..COLD as usize + 10).contains(&garbage), "{garbage} entries");
        assert!(
            (1..COLD).all(|id| versions(&db, &items, id) == 2
                && count(&snapshot, &items, id) == Some(round - 1))
        );
        drop(snapshot);
        // In every other round, a session continues writing.
        let last = looks(|| {
            for _ in 0..10 {
                if round % 2 == 0 {
                    add(&mut session, &items, 0);
                }
                collect(&db, &mut session);
            }
        });
        assert!(last <= COLD as usize + 30, "{last} looks at {COLD} rows");
        collect(&db, &mut session);
        assert_eq!(
            ((0..COLD).filter(|&id| versions(&db, &items, id) != 1).count(), db.memory().garbage),
            (0, 0)
        );
        reserved.push(db.memory().reserved_bytes);
    }
    // The first two rounds, with and without continued writes, determine how much memory is
    // reserved.
    assert!(reserved[2..].iter().all(|&bytes| bytes == reserved[1]), "{reserved:?}");
}

protocol_tests!(versioned: parked_records_of_an_ended_session_are_collected);
fn parked_records_of_an_ended_session_are_collected<P: Chained>() {
    // Epochs pass, and the advancer collects for idle and ended sessions.
    let db = Database::<P>::builder().build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let eventually = |what: &str, is_so: &dyn Fn() -> bool| {
        let (epochs, slot) = (&db.inner.engine.epochs, db.inner.engine.epochs.register());
        eventually(what, || {
            // The pin keeps the memory that `is_so` reads from being freed meanwhile.
            epochs.pin(&slot);
            let is_so = is_so();
            epochs.unpin(&slot);
            is_so
        });
        epochs.unregister(&slot);
    };
    for goes in [false, true] {
        let mut session = db.session().unwrap();
        ok(session.run(|tx| (0..1_000).try_for_each(|id| items.put(tx, Item::new(id, 0)))));
        let snapshot = db.snapshot();
        for id in 0..1_000 {
            add(&mut session, &items, id);
            if id % 4 == 0 {
                ok(session.run(|tx| items.delete(tx, &id)));
            }
        }
        eventually("only what the snapshot keeps is left", &|| {
            (0..1_000).all(|id| versions(&db, &items, id) == 2) && db.memory().garbage <= 2_000
        });
        let session = (!goes).then_some(session);
        drop(snapshot);
        eventually("nothing is left", &|| db.memory().garbage == 0);
        assert!((0..1_000).all(|id| versions(&db, &items, id) == usize::from(id % 4 != 0)));
        assert!((0..1_000).all(|id| record_is_linked(&items, id) == (id % 4 != 0)));
        drop(session);
    }
}

protocol_tests!(versioned: a_snapshot_keeps_only_its_own_version_of_a_deleted_row);
fn a_snapshot_keeps_only_its_own_version_of_a_deleted_row<P: Chained>() {
    let (db, items, mut session) = by_hand::<P>();
    let snapshot = db.snapshot();
    ok(session.run(|tx| items.update(tx, 1, Item::OTHER.set(5))));
    collect(&db, &mut session);
    ok(session.run(|tx| items.delete(tx, 1)));
    (0..3).for_each(|_| collect(&db, &mut session));
    let layout = &items.core().layout;
    let Found::Record(record) = items.core().index.find(&[1]) else {
        panic!("the snapshot sees it")
    };
    // The version of the deletion and the snapshot's version are left. The version that the update
    // installed in the second group is collected: no reader sees it.
    assert_eq!(
        layout.cells(record).map(|at| P::versions(&db.inner.engine.clock, at)).collect::<Vec<_>>(),
        [2; 2]
    );
    assert_eq!(ok(snapshot.run(|tx| items.get(tx, 1, Item::OTHER))), Some(100));
    drop(snapshot);
    (0..3).for_each(|_| collect(&db, &mut session));
    assert!(!record_is_linked(&items, 1) && db.memory().garbage == 0);
}

#[test]
fn a_record_with_a_parked_version_is_not_buried() {
    // Under `Mvcc`, the record is reaped, since a parked entry does not read the record again.
    a_record_with_a_parked_version_is_buried_only_if_unlinked::<Mvcc>(true);
    a_record_with_a_parked_version_is_buried_only_if_unlinked::<Mvto>(false);
}

fn a_record_with_a_parked_version_is_buried_only_if_unlinked<P: Chained>(is_reaped: bool) {
    let (db, items, mut session) = by_hand::<P>();
    let mut other = db.session().unwrap();
    let snapshot = db.snapshot();
    // `session` parks the second group's old version, and then does nothing for a while.
    ok(session.run(|tx| items.update(tx, 1, Item::OTHER.set(5))));
    collect(&db, &mut session);
    drop(snapshot);
    ok(other.run(|tx| items.delete(tx, 1)));
    (0..3).for_each(|_| collect(&db, &mut other));
    assert_eq!(record_is_linked(&items, 1), !is_reaped);
    (0..3).for_each(|_| collect(&db, &mut session));
    (0..3).for_each(|_| collect(&db, &mut other));
    assert!(!record_is_linked(&items, 1));
    assert_eq!(db.memory().garbage, 0);
}

/// One session inserts a row and another one deletes it, while an old snapshot is open. For a
/// while, a younger snapshot that sees the row is open, too. When the younger one has closed, the
/// deleting session examines the row first, while the writing session's undo record still waits.
#[test]
fn a_row_that_an_old_snapshot_has_never_seen_is_not_kept_for_it() {
    let (db, items, mut deleting) = by_hand::<Mvcc>();
    let (mut writing, old) = (db.session().unwrap(), db.snapshot());
    ok(writing.run(|tx| items.insert(tx, Item::new(10, 1))));
    add(&mut writing, &items, 10);
    let young = db.snapshot();
    add(&mut writing, &items, 10);
    ok(deleting.run(|tx| items.delete(tx, 10)));
    for _ in 0..3 {
        collect(&db, &mut writing);
        collect(&db, &mut deleting);
    }
    assert_eq!((count(&young, &items, 10), count(&old, &items, 10)), (Some(2), None));
    drop(young);
    (0..4).for_each(|_| collect(&db, &mut deleting));
    (0..4).for_each(|_| collect(&db, &mut writing));
    (0..4).for_each(|_| collect(&db, &mut deleting));
    assert_eq!((record_is_linked(&items, 10), db.memory().garbage), (false, 0));
    drop(old);
}

protocol_tests!(versioned: garbage_parked_by_one_session_and_queued_by_another_is_collected_once);
fn garbage_parked_by_one_session_and_queued_by_another_is_collected_once<P: Chained>() {
    let (db, items, mut session) = by_hand::<P>();
    let mut other = db.session().unwrap();
    let snapshot = db.snapshot();
    add(&mut session, &items, 1);
    collect(&db, &mut session);
    assert_eq!(db.memory().garbage, 1);
    // While `session` has parked the row, `other` removes the versions that `other` adds, and drops
    // its entry.
    for seen in 1..10 {
        add(&mut other, &items, 1);
        assert_eq!(
            (versions(&db, &items, 1), count(&db.snapshot(), &items, 1)),
            (3, Some(seen + 1))
        );
        collect(&db, &mut other);
        assert_eq!((versions(&db, &items, 1), db.memory().garbage), (2, 1));
    }
    // The snapshot closes while both sessions have an entry of the row.
    add(&mut other, &items, 1);
    drop(snapshot);
    collect(&db, &mut session);
    ok(other.run(|tx| items.delete(tx, 1)));
    collect(&db, &mut other);
    (0..2).for_each(|_| collect(&db, &mut other));
    assert_eq!((record_is_linked(&items, 1), db.memory().garbage), (false, 0));
}

protocol_tests!(versioned: the_number_of_versions_is_the_number_that_snapshots_see);
fn the_number_of_versions_is_the_number_that_snapshots_see<P: Chained>() {
    for seed in 0..150 {
        Walk::<P>::new(seed).run();
    }
}

/// A random walk that makes and removes rows, snapshots and sessions.
struct Walk<P: Chained> {
    seed: u64,
    random: Random,
    db: Database<P>,
    items: Items<P>,
    sessions: Vec<Session<P>>,
    rows: BTreeMap<u64, i64>,
    /// The open snapshots with their expected rows.
    open: Vec<(Snapshot<P>, BTreeMap<u64, i64>)>,
}

impl<P: Chained> Walk<P> {
    const ROWS: u64 = 3;

    fn new(seed: u64) -> Walk<P> {
        let db = Database::<P>::builder().manual_epochs(10).build().unwrap();
        let items = db.table::<Item>("items").unwrap();
        let sessions = (0..3).map(|_| db.session().unwrap()).collect();
        Walk {
            seed,
            random: Random::seeded(seed),
            db,
            items,
            sessions,
            rows: BTreeMap::new(),
            open: Vec::new(),
        }
    }

    fn run(&mut self) {
        for step in 0..120 {
            self.step(step);
        }
        self.open.clear();
        self.collect_all();
        let linked = (0..Self::ROWS).filter(|&id| record_is_linked(&self.items, id)).count();
        assert_eq!((linked, self.db.memory().garbage), (self.rows.len(), 0), "seed {}", self.seed);
    }

    fn step(&mut self, step: i64) {
        let (id, who) = (self.random.below(Self::ROWS), self.random.below(3) as usize);
        let (items, session) = (&self.items, &mut self.sessions[who]);
        match self.random.below(14) {
            0..=3 => {
                ok(session.run(|tx| items.put(tx, Item::new(id, step))));
                self.rows.insert(id, step);
            }
            4 | 5 => {
                let is_there =
                    ok(session.run(|tx| items.update_if_present(tx, &id, Item::OTHER.add(1))));
                assert_eq!(is_there, self.rows.contains_key(&id));
            }
            6 | 7 => {
                let deleted = session.run(|tx| items.delete(tx, &id));
                let expected = self.rows.remove(&id).map(|_| ()).ok_or(Abort::NotFound);
                assert_eq!(deleted, expected);
            }
            8 => self.db.inner.engine.epochs.pass(),
            9 if self.open.len() < 4 => self.open.push((self.db.snapshot(), self.rows.clone())),
            9 | 10 if !self.open.is_empty() => {
                let place = self.random.below(self.open.len() as u64) as usize;
                self.open.remove(place);
            }
            11 => self.sessions[who] = self.db.session().unwrap(),
            12 => self.collect_all(),
            _ => {
                self.db.inner.engine.epochs.pass();
                ok(session.run(|_| Ok(())));
            }
        }
        for (snapshot, rows) in &self.open {
            (0..Self::ROWS).for_each(|id| {
                assert_eq!(count(snapshot, &self.items, id), rows.get(&id).copied())
            });
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
        for id in 0..Self::ROWS {
            let found = versions(&self.db, &self.items, id);
            assert!(
                found <= self.open.len() + 1,
                "seed {}: {found} versions, {} snapshots",
                self.seed,
                self.open.len()
            );
        }
    }
}
