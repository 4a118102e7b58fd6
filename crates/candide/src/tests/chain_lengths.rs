//! Tests of the reported number of versions of a row.

use super::interleaving::acting;
use super::properties;
use super::rows::Item;
use super::threads::spawn;
use super::transactions::{CONFLICT, ONCE, run};
use super::waiting::eventually;
use crate::engine::{Protocol, Versioned, Versions};
use crate::protocols::{Mvto, Occ, Recorded, Serial};
use crate::sync::{AtomicBool, Ordering, Point};
use crate::{Abort, Database, Session, Table, TableOptions, Tx};

type Items<P> = Table<Item, P>;

fn versions<P: Protocol>(items: &Items<P>, session: &mut Session<P>, id: u64) -> Option<usize> {
    items.versions_of(session, &id).unwrap_or_else(|abort| panic!("{}: {abort}", P::NAME))
}

fn add<P: Protocol>(tx: &Tx<'_, P>, items: &Items<P>) -> Result<(), Abort> {
    items.update(tx, 1, Item::COUNT.wrapping_add(1))
}

protocol_tests!(all: a_row_has_a_version_and_an_absent_row_has_none);
fn a_row_has_a_version_and_an_absent_row_has_none<P: Protocol>() {
    let ordered = TableOptions::default().ordered();
    for options in [TableOptions::default(), ordered, ordered.contention_aware_keys(false)] {
        row_and_absence::<P>(options);
    }
}

#[test]
fn a_recorded_row_has_a_version_and_an_absent_row_has_none() {
    a_row_has_a_version_and_an_absent_row_has_none::<Recorded<Occ>>();
    a_row_has_a_version_and_an_absent_row_has_none::<Recorded<Mvto>>();
    a_row_has_a_version_and_an_absent_row_has_none::<Recorded<Serial>>();
}

fn row_and_absence<P: Protocol>(options: TableOptions) {
    let db = Database::<P>::builder().manual_epochs(10).build().unwrap();
    let items = db.table_with::<Item>("items", options).unwrap();
    let mut session = db.session().unwrap();
    assert_eq!(versions(&items, &mut session, 1), None, "no transaction has searched it");
    assert_eq!(run(&mut session, |tx| items.get(tx, 1, ())), None);
    assert_eq!(versions(&items, &mut session, 1), None);
    run(&mut session, |tx| items.insert(tx, Item::new(1, 10)));
    assert_eq!(
        (versions(&items, &mut session, 1), versions(&items, &mut session, 2)),
        (Some(1), None)
    );
    run(&mut session, |tx| items.delete(tx, 1));
    assert_eq!(versions(&items, &mut session, 1), None, "the remains of the row");
    run(&mut session, |tx| items.insert(tx, Item::new(1, 11)));
    assert!(versions(&items, &mut session, 1).is_some_and(|versions| versions >= 1));
    let refused: Result<(), Abort> = session.run(|tx| {
        items.insert(tx, Item::new(2, 0))?;
        Err(Abort::Guard)
    });
    assert_eq!(
        (refused, versions(&items, &mut session, 2)),
        (Err(Abort::Guard), None),
        "it never was"
    );
    let stats = session.stats();
    versions(&items, &mut session, 1);
    assert_eq!(session.stats(), stats, "it is no transaction");
    assert_eq!(db.health().oldest_pin, None, "no garbage is kept");
}

protocol_tests!(concurrent: chain_lengths_are_refused_for_other_databases_and_within_transactions);
fn chain_lengths_are_refused_for_other_databases_and_within_transactions<P: Protocol>() {
    let [db, other] = [(); 2].map(|()| Database::<P>::builder().build().unwrap());
    let items = db.table::<Item>("items").unwrap();
    let (mut session, mut inner) = (db.session().unwrap(), db.session().unwrap());
    let mut foreign = other.session().unwrap();
    run(&mut session, |tx| items.insert(tx, Item::new(1, 0)));
    assert_eq!(items.versions_of(&mut foreign, &1), Err(Abort::ForeignTable));
    // The call is made inside a transaction of the same database, by another session. Uncommitted
    // versions are not counted.
    let nested = session.run(|tx| {
        items.delete(tx, 1)?;
        items.insert(tx, Item::new(2, 0))?;
        Ok([1, 2].map(|id| items.versions_of(&mut inner, &id)))
    });
    let waits_for_itself = properties::<P>().name == "global-lock";
    let wanted = if waits_for_itself { [Err(Abort::Nested); 2] } else { [Ok(Some(1)), Ok(None)] };
    assert_eq!(nested, Ok(wanted), "{}", P::NAME);
    assert_eq!(
        [1, 2].map(|id| versions(&items, &mut inner, id).is_some()),
        [false, true],
        "{}",
        P::NAME
    );
    // A transaction of another database does not interfere.
    let elsewhere = foreign.run(|_| items.versions_of(&mut session, &2));
    assert_eq!(elsewhere, Ok(Some(1)));
}

/// Makes a database with row 1, and a session. Explicit calls move the database's epochs.
fn by_hand<P: Versioned>(splitting: bool) -> (Database<P>, Items<P>, Session<P>) {
    let db =
        Database::<P>::builder().timestamp_splitting(splitting).manual_epochs(10).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| items.insert(tx, Item::new(1, 0)));
    (db, items, session)
}

/// Collects all garbage that can be freed.
fn collect<P: Versioned>(db: &Database<P>, session: &mut Session<P>) {
    for _ in 0..3 {
        db.inner.engine.epochs.pass();
        run(session, |_| Ok(()));
    }
}

protocol_tests!(versioned: a_snapshot_keeps_the_versions_that_it_sees);
fn a_snapshot_keeps_the_versions_that_it_sees<P: Versioned>() {
    let (db, items, mut session) = by_hand::<P>(true);
    let snapshot = db.snapshot();
    for updates in 1..=3 {
        run(&mut session, |tx| add(tx, &items));
        assert_eq!(versions(&items, &mut session, 1), Some(1 + updates), "{}", P::NAME);
    }
    collect(&db, &mut session);
    assert_eq!(
        versions(&items, &mut session, 1),
        Some(2),
        "{}: the newest, and that of the snapshot",
        P::NAME
    );
    run(&mut session, |tx| items.delete(tx, 1));
    assert_eq!(
        versions(&items, &mut session, 1),
        None,
        "{}: it is there for the snapshot alone",
        P::NAME
    );
    assert_eq!(snapshot.run(|tx| items.read(tx, 1, Item::COUNT)), Ok(0));
    run(&mut session, |tx| items.insert(tx, Item::new(1, 5)));
    collect(&db, &mut session);
    assert_eq!(versions(&items, &mut session, 1), Some(2), "{}", P::NAME);
    drop(snapshot);
    collect(&db, &mut session);
    assert_eq!(versions(&items, &mut session, 1), Some(1), "{}: all others are collected", P::NAME);
}

protocol_tests!(versioned: of_several_column_groups_the_longest_chain_counts);
fn of_several_column_groups_the_longest_chain_counts<P: Versioned>() {
    for splitting in [true, false] {
        let (_db, items, mut session) = by_hand::<P>(splitting);
        for _ in 0..3 {
            run(&mut session, |tx| items.update(tx, 1, Item::OTHER.wrapping_add(1)));
        }
        assert_eq!(versions(&items, &mut session, 1), Some(4), "{}", P::NAME);
        for _ in 0..2 {
            run(&mut session, |tx| add(tx, &items));
        }
        let wanted = if splitting { 4 } else { 6 };
        assert_eq!(
            versions(&items, &mut session, 1),
            Some(wanted),
            "{}, splitting {splitting}",
            P::NAME
        );
        for _ in 0..4 {
            run(&mut session, |tx| add(tx, &items));
        }
        let wanted = if splitting { 7 } else { 10 };
        assert_eq!(
            versions(&items, &mut session, 1),
            Some(wanted),
            "{}, splitting {splitting}",
            P::NAME
        );
    }
}

protocol_tests!(all: protocols_without_versions_have_one);
fn protocols_without_versions_have_one<P: Protocol>() {
    if P::Versions::WORDS > 0 {
        return;
    }
    let db = Database::<P>::builder().build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| items.insert(tx, Item::new(1, 0)));
    for _ in 0..5 {
        run(&mut session, |tx| add(tx, &items));
        assert_eq!(versions(&items, &mut session, 1), Some(1), "{}", P::NAME);
    }
}

#[test]
fn a_pending_version_is_counted_but_shows_no_row_before_its_commit() {
    let (db, items, mut session) = by_hand::<Mvto>(true);
    let (mut other, rows) = (db.session().unwrap(), items.clone());
    let amid = move || {
        assert_eq!(versions(&rows, &mut other, 1), Some(2), "a lock that a reader may meet");
        assert_eq!(versions(&rows, &mut other, 2), None, "it is not inserted yet");
    };
    acting(Point::Validated, amid, || {
        run(&mut session, |tx| {
            add(tx, &items)?;
            items.insert(tx, Item::new(2, 0))
        });
    });
    assert_eq!([1, 2].map(|id| versions(&items, &mut session, id)), [Some(2), Some(1)]);
    // A failed commit removes the version that it has linked.
    let amid = {
        let (mut other, rows) = (db.session().unwrap(), items.clone());
        move || run(&mut other, |tx| rows.update(tx, 1, Item::COUNT.sub(1)))
    };
    let lost = acting(Point::Unlocked, amid, || {
        session.with(ONCE()).run(|tx| items.modify(tx, 1, Item::COUNT, |_| ()))
    });
    assert_eq!((lost, versions(&items, &mut session, 1)), (CONFLICT, Some(3)));
}

protocol_tests!(versioned: counting_versions_does_not_wait_for_a_writer);
fn counting_versions_does_not_wait_for_a_writer<P: Versioned>() {
    const ROUNDS: u64 = 2_000;
    let db = Database::<P>::builder().build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| items.insert(tx, Item::new(1, 0)));
    let is_over = AtomicBool::new(false);
    let longest = std::thread::scope(|scope| {
        let looking = spawn(scope, || {
            let mut session = db.session().unwrap();
            let mut longest = 0;
            while !is_over.load(Ordering::Relaxed) {
                longest =
                    versions(&items, &mut session, 1).expect("it is always there").max(longest);
                // In this call, the session begins and ends a pin.
                let _ = versions(&items, &mut session, 2);
            }
            longest
        });
        let writers: Vec<_> = (0..2)
            .map(|thread| {
                let (db, items) = (&db, &items);
                spawn(scope, move || {
                    let mut session = db.session().unwrap();
                    for round in 0..ROUNDS {
                        let done = session.run(|tx| {
                            add(tx, items)?;
                            match (thread, round % 2) {
                                (0, 0) => items.insert(tx, Item::new(2, 0)),
                                (0, _) => items.delete(tx, 2),
                                _ => items.modify(tx, 1, Item::OTHER, |other| *other += 1),
                            }
                        });
                        done.unwrap();
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        looking.join().unwrap()
    });
    assert!(longest >= 1);
    // The advancer collects the sessions' garbage.
    eventually("one version is left", || versions(&items, &mut session, 1) == Some(1));
}
