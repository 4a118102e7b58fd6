//! Tests of observations of ranges in tables whose rows are locked by policy.

use super::super::rows::Item;
use super::super::transactions::{CONFLICT, ONCE, run};
use super::super::two_sessions::once;
use super::learning::{flags, mocc};
use super::{Stuck, scene};
use crate::Abort;
use crate::locks::{Mode, RASK};
use crate::policy::Policy;
use crate::sync::{Duration, Instant, thread};
use std::sync::Barrier;

/// A thread takes one from a number that is large enough, and waits to do so until another
/// transaction, which has locked the row, has taken one.
#[test]
fn a_writer_that_has_waited_goes_on_if_its_range_may_still_hold() {
    let mut scene = scene(Policy::Swiss);
    let [holder, waiter, _] = &mut scene.sessions;
    let (db, table) = (&scene.db, &scene.table);
    run(holder, |tx| table.update(tx, 0, Item::COUNT.set(i64::MAX)));
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut round = || {
        let (is_locked, waited) = (Barrier::new(2), db.stats().locks.waited);
        let has_waited = || db.stats().locks.waited > waited;
        let ended = std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                is_locked.wait();
                once(waiter, |tx| {
                    assert!(table.is_within(tx, 0, Item::COUNT, 1..)?);
                    table.update(tx, 0, Item::COUNT.sub(1))
                })
            });
            run(holder, |tx| {
                table.update(tx, 0, Item::COUNT.sub(1))?;
                is_locked.wait();
                while !has_waited() && !waits.is_finished() {
                    assert!(Instant::now() < deadline, "the other writer never waits");
                    thread::yield_now();
                }
                Ok(())
            });
            waits.join().unwrap()
        });
        // The wait is of a few rounds, and may be in vain.
        assert!(matches!(ended, Ok(()) | Err(Abort::Locked)), "{ended:?}");
        ended.is_ok() && has_waited()
    };
    while !round() {
        assert!(Instant::now() < deadline, "every wait is in vain");
    }
}

#[test]
fn a_commit_waits_for_the_lock_of_a_row_of_which_it_has_observed_a_range() {
    for (by_range, waited) in [(true, 1), (false, 0)] {
        let scene = scene(Policy::DeferredTwoPhase);
        let mut session = scene.db.session().unwrap();
        let stuck = Stuck::on(&scene, 0, Mode::Write);
        let ended = session.with(ONCE()).run(|tx| {
            match by_range {
                true => drop(scene.table.is_within(tx, 0, Item::COUNT, ..1)?),
                false => drop(scene.table.read(tx, 0, Item::COUNT)?),
            }
            scene.table.update(tx, 0, Item::COUNT.add(1))
        });
        assert_eq!(ended, CONFLICT);
        assert_eq!(scene.db.stats().locks.waited, waited, "by range: {by_range}");
        drop(stuck);
    }
}

#[test]
fn a_number_that_changes_within_its_range_does_not_become_hot() {
    let scene = scene(mocc(1));
    let (db, table) = (&scene.db, &scene.table);
    let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
    let mut attempts = 0;
    while flags(table, 1) & RASK == 0 {
        attempts += 1;
        assert!(attempts < 2_000, "row 1 never becomes hot");
        let ended = session.with(ONCE()).run(|tx| {
            assert!(table.is_within(tx, 0, Item::COUNT, 0..)?);
            table.read(tx, 1, Item::COUNT)?;
            run(&mut other, |tx| {
                table.update(tx, 0, Item::COUNT.add(1))?;
                table.update(tx, 1, Item::COUNT.add(1))
            });
            table.update(tx, 2, Item::COUNT.add(1))
        });
        assert_eq!(ended, CONFLICT);
    }
    assert_eq!(flags(table, 0), 0);
    // A number that has left its range has failed.
    let mut attempts = 0;
    while flags(table, 3) & RASK == 0 {
        attempts += 1;
        assert!(attempts < 2_000, "row 3 never becomes hot");
        let least = attempts - 1;
        let ended = session.with(ONCE()).run(|tx| {
            assert!(table.is_within(tx, 3, Item::COUNT, ..=least)?);
            run(&mut other, |tx| table.update(tx, 3, Item::COUNT.add(1)));
            table.update(tx, 2, Item::COUNT.add(1))
        });
        assert_eq!(ended, CONFLICT);
    }
}
