//! A transaction that holds a lock and has stopped keeps no commit from becoming durable, though
//! others wait for that lock.

use super::super::rows::Item;
use super::super::transactions::{CONFLICT, ONCE, run};
use super::disk::Logged;
use crate::engine::Protocol;
use crate::log::Round;
use crate::sync::{AtomicBool, Ordering, Point, with_hook};
use crate::tests::waiting::eventually;
use crate::{Database, Table};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

/// Makes a database with durable rows 1 and 2.
fn two_rows<P: Protocol>() -> (Logged<P>, Table<Item, P>) {
    let logged = Logged::new(Database::<P>::builder());
    let items = logged.db.table::<Item>("items").unwrap();
    let mut session = logged.db.session().unwrap();
    run(&mut session, |tx| (1..=2).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
    logged.settle();
    (logged, items)
}

protocol_tests!(overlapping: a_commit_that_fails_to_lock_gives_back_its_turn);
/// One thread plays three sessions. The first one holds row 1, the second one has committed a
/// change of row 2, and the third one fails to lock row 1. The logger comes at each point of that
/// failure.
fn a_commit_that_fails_to_lock_gives_back_its_turn<P: Protocol>() {
    let (logged, items) = two_rows::<P>();
    let [mut holder, mut second, mut third] = [0; 3].map(|_| logged.db.session().unwrap());
    let rounds = Rc::new(Cell::new(0));
    run(&mut holder, |tx| {
        items.get_for_update(tx, 1, Item::COUNT)?;
        run(&mut second, |tx| items.update(tx, 2, Item::COUNT.add(1)));
        let (log, cuts, made) = (logged.log.clone(), logged.cuts(), rounds.clone());
        let visit = move |point| {
            // `Mvto` takes its timestamp before it finds the lock. The commit gives up its turn,
            // and waits.
            if P::NAME == "mvto" && point != Point::GivenUp {
                return;
            }
            assert!(log.is_free(), "{}: a turn is taken at {point:?}", P::NAME);
            made.set(made.get() + u32::from(log.round(&cuts) == Round::Written));
        };
        let update = || third.with(ONCE()).run(|tx| items.update(tx, 1, Item::COUNT.add(1)));
        assert_eq!(with_hook(visit, update), CONFLICT, "{}", P::NAME);
        assert!(logged.log.is_free(), "{}: a turn is kept", P::NAME);
        logged.settle();
        assert!(logged.durable() >= second.rests_on(), "{}", P::NAME);
        Ok(())
    });
    let asks = matches!(logged.db.inner.engine.properties.name, "occ" | "tictoc" | "mvcc" | "mvto");
    assert!(rounds.get() == 1 || !asks, "{}: nothing was visited", P::NAME);
}

protocol_tests!(concurrent: a_round_is_written_while_commits_wait_for_a_lock);
fn a_round_is_written_while_commits_wait_for_a_lock<P: Protocol>() {
    let (logged, items) = two_rows::<P>();
    let [mut holder, mut second] = [0; 2].map(|_| logged.db.session().unwrap());
    run(&mut second, |tx| items.update(tx, 2, Item::COUNT.add(1)));
    let has_come = Arc::new(AtomicBool::new(false));
    let mut waiter = None;
    let held = holder.run(|tx| {
        items.get_for_update(tx, 1, Item::COUNT)?;
        if waiter.is_some() {
            return Ok(());
        }
        let (items, came) = (items.clone(), has_come.clone());
        let mut third = logged.db.session().unwrap();
        waiter = Some(thread::spawn(move || {
            let here = came.clone();
            let at_points = move |_| here.store(true, Ordering::Relaxed);
            with_hook(at_points, || {
                third.run(|tx| {
                    came.store(true, Ordering::Relaxed);
                    items.update(tx, 1, Item::COUNT.add(1))
                })
            })
        }));
        eventually("the other transaction", || has_come.load(Ordering::Relaxed));
        logged.settle();
        assert!(logged.durable() >= second.rests_on(), "{}", P::NAME);
        Ok(())
    });
    assert_eq!(held, Ok(()));
    assert_eq!(waiter.expect("it was begun").join().unwrap(), Ok(()));
    let count = run(&mut second, |tx| items.read(tx, 1, Item::COUNT));
    assert_eq!(count, 1, "{}", P::NAME);
}
