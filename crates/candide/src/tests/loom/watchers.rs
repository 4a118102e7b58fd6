//! Sessions that sleep until something changes. A lost wake-up is a deadlock.

use super::super::rows::Item;
use super::{database, explore_as_it_is};
use crate::engine::Protocol;
use crate::protocols::{Mvcc, Mvto, Occ, TicToc};
use crate::sync::thread;

/// A session waits until another one has changed a row.
fn watch_against_install<P: Protocol>() {
    let (db, table) = database::<P>(1);
    let (mut mine, mut other, inner) =
        (db.session().unwrap(), db.session().unwrap(), table.clone());
    let waiter = thread::spawn(move || {
        let woken = other.run(|tx| tx.check(inner.read(tx, 0, Item::COUNT)? == 1));
        assert_eq!(woken, Ok(()));
        drop(other);
    });
    mine.run(|tx| table.update(tx, 0, Item::COUNT.set(1))).unwrap();
    waiter.join().unwrap();
}

/// A change of a row wakes the session that sleeps until then.
#[test]
fn loom_watch_against_install() {
    explore_as_it_is(2, watch_against_install::<Occ>);
}

#[test]
fn loom_watch_against_install_under_tictoc() {
    explore_as_it_is(2, watch_against_install::<TicToc>);
}

#[test]
fn loom_watch_against_install_under_mvcc() {
    explore_as_it_is(2, watch_against_install::<Mvcc>);
}

#[test]
fn loom_watch_against_install_under_mvto() {
    explore_as_it_is(2, watch_against_install::<Mvto>);
}

/// A session waits until another one has inserted a row whose key has no record.
fn watch_against_insert<P: Protocol>() {
    let (db, table) = database::<P>(0);
    let (mut mine, mut other, inner) =
        (db.session().unwrap(), db.session().unwrap(), table.clone());
    let waiter = thread::spawn(move || {
        let woken = other.run(|tx| tx.check(inner.contains(tx, 0)?));
        assert_eq!(woken, Ok(()));
        drop(other);
    });
    mine.run(|tx| table.insert(tx, Item::new(0, 0))).unwrap();
    waiter.join().unwrap();
}

/// An insert wakes the session that sleeps until then.
#[test]
fn loom_watch_against_insert() {
    explore_as_it_is(2, watch_against_insert::<Occ>);
}

#[test]
fn loom_watch_against_insert_by_timestamps() {
    explore_as_it_is(2, watch_against_insert::<Mvto>);
}
