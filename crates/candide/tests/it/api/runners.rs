//! Tests of the ways to run a transaction.

use crate::common::{Item, builder, database_with, ok};
use candide::{Abort, Database, Mvcc, Protocol, RunOptions, Table, Tx, Versioned};
use std::time::Instant;

/// An error type of a program.
#[derive(Debug, PartialEq)]
enum Own {
    Refused(i64),
    Engine(Abort),
}

impl From<Abort> for Own {
    fn from(abort: Abort) -> Own {
        Own::Engine(abort)
    }
}

fn scene<P: Protocol>() -> (Database<P>, Table<Item, P>) {
    let (db, items) = database_with::<Item, P>("items");
    ok(db.run(|tx| items.insert(tx, Item::new(1, 5))));
    (db, items)
}

protocol_tests!(all: every_way_to_run_a_transaction_gives_its_value_or_its_own_error);
fn every_way_to_run_a_transaction_gives_its_value_or_its_own_error<P: Protocol>() {
    let (db, items) = scene::<P>();
    let count = |tx: &Tx<'_, P>| items.read(tx, 1, Item::COUNT);
    let own = |tx: &Tx<'_, P>| Err::<(), _>(Own::Refused(count(tx)?));
    let missing = |tx: &Tx<'_, P>| Ok::<_, Own>(items.read(tx, 2, Item::COUNT)?);
    let (refused, not_found) = (Err(Own::Refused(5)), Err(Own::Engine(Abort::NotFound)));
    let options = RunOptions::new().attempts_max(3);

    assert_eq!(db.run(count), Ok(5));
    assert_eq!((db.try_run(own), db.try_run(missing)), (refused, not_found));
    assert_eq!(db.read_view(count), Ok(5));
    assert_eq!(db.run_logged(count).wait(), Ok(5));
    assert_eq!(db.try_run_logged(own).wait(), Err(Own::Refused(5)));
    let runner = db.with(options);
    let copy = runner;
    assert_eq!((runner.run(count), copy.run(count)), (Ok(5), Ok(5)));
    assert_eq!(runner.try_run(own), Err(Own::Refused(5)));
    assert_eq!(runner.run_logged(count).wait(), Ok(5));
    assert_eq!(runner.try_run_logged(missing).wait(), Err(Own::Engine(Abort::NotFound)));

    let mut session = db.session().unwrap();
    assert_eq!(session.run(count), Ok(5));
    assert_eq!(session.try_run(own), Err(Own::Refused(5)));
    assert_eq!(session.read_view(count), Ok(5));
    assert_eq!(session.run_logged(count).wait(), Ok(5));
    assert_eq!(session.try_run_logged(own).wait(), Err(Own::Refused(5)));
    let mut runner = session.with(options);
    assert_eq!((runner.run(count), runner.try_run(own)), (Ok(5), Err(Own::Refused(5))));
    assert_eq!(runner.run_logged(count).wait(), Ok(5));
    assert_eq!(runner.try_run_logged(own).wait(), Err(Own::Refused(5)));
}

protocol_tests!(all: the_options_of_a_runner_apply_to_each_of_its_transactions);
fn the_options_of_a_runner_apply_to_each_of_its_transactions<P: Protocol>() {
    let (db, items) = scene::<P>();
    let update = |tx: &Tx<'_, P>| items.update(tx, 1, Item::COUNT.add(1));
    let reading = RunOptions::new().read_only();
    let runner = db.with(reading);
    for _ in 0..2 {
        assert_eq!(runner.run(update), Err(Abort::ReadOnly));
        assert_eq!(runner.run_logged(update).wait(), Err(Abort::ReadOnly));
    }
    let own = |tx: &Tx<'_, P>| Ok::<_, Own>(update(tx)?);
    assert_eq!(runner.try_run(own), Err(Own::Engine(Abort::ReadOnly)));
    assert_eq!(db.read_view(update), Err(Abort::ReadOnly));
    let mut session = db.session().unwrap();
    let mut runner = session.with(reading);
    for _ in 0..2 {
        assert_eq!(runner.run(update), Err(Abort::ReadOnly));
        assert_eq!(runner.run_logged(update).wait(), Err(Abort::ReadOnly));
    }
    assert_eq!(session.read_view(update), Err(Abort::ReadOnly));
    assert_eq!(session.run(update), Ok(()), "options apply to nothing else");
    assert_eq!(session.run(|tx| items.read(tx, 1, Item::COUNT)), Ok(6));
}

#[test]
fn a_callback_may_borrow_from_the_calling_function() {
    let (db, items) = scene::<Mvcc>();
    let mut other = db.session().unwrap();
    let conflicts = std::cell::Cell::new(0);
    let past = RunOptions::new().deadline(Instant::now());
    let ended = db.with(past.on_conflict(&|_| conflicts.set(conflicts.get() + 1))).run(|tx| {
        items.read(tx, 1, Item::COUNT)?;
        ok(other.run(|tx| items.update(tx, 1, Item::COUNT.add(1))));
        items.update(tx, 1, Item::COUNT.add(1))
    });
    assert_eq!((ended, conflicts.get()), (Err(Abort::DeadlinePassed), 1));
}

protocol_tests!(versioned: a_snapshot_is_read_in_any_session_of_its_database);
fn a_snapshot_is_read_in_any_session_of_its_database<P: Versioned>() {
    let (db, items) = scene::<P>();
    let (snapshot, mut session) = (db.snapshot(), db.session().unwrap());
    ok(session.run(|tx| items.update(tx, 1, Item::COUNT.set(9))));
    let count = |tx: &Tx<'_, P>| items.read(tx, 1, Item::COUNT);
    let own = |tx: &Tx<'_, P>| Err::<(), _>(Own::Refused(count(tx)?));
    assert_eq!((snapshot.run(count), snapshot.try_run(own)), (Ok(5), Err(Own::Refused(5))));
    assert_eq!(snapshot.run_in(&mut session, count), Ok(5));
    assert_eq!(snapshot.try_run_in(&mut session, own), Err(Own::Refused(5)));
    // Within a transaction of this thread, another session can read the snapshot.
    let both = db.run(|tx| Ok((count(tx)?, snapshot.run_in(&mut session, count)?)));
    assert_eq!(both, Ok((9, 5)));
    let foreign = builder::<P>().build().unwrap();
    let mut stranger = foreign.session().unwrap();
    assert_eq!(snapshot.run_in(&mut stranger, count), Err(Abort::ForeignTable));
    assert_eq!(snapshot.try_run_in(&mut stranger, own), Err(Own::Engine(Abort::ForeignTable)));
}

protocol_tests!(all: a_database_with_the_defaults_is_made_for_any_protocol);
fn a_database_with_the_defaults_is_made_for_any_protocol<P: Protocol>() {
    let db = Database::<P>::default();
    let items = db.table::<Item>("items").unwrap();
    assert_eq!(db.run(|tx| items.insert(tx, Item::new(1, 0))), Ok(()));
    assert_eq!(db.properties().name, P::properties(&P::Policy::default()).name);
}
