//! Tests of long waits under `deferred-2pl`.

use super::super::rows::Item;
use super::super::transactions::{CONFLICT, ONCE};
use super::{Scene, Stuck, cell, scene};
use crate::locks::{Mode, long_patience};
use crate::policy::{MoccOptions, Policies, Policy};
use crate::sync::{Duration, Instant, Patience};
use crate::{Abort, Occ, RunOptions, Session, Table};
use std::cell::RefCell;

/// Returns the number of failures that count against locks, after one attempt that updates these
/// rows and does not get the lock of one of them.
fn failures(session: &mut Session<Occ>, rows: &[(&Table<Item>, u64)]) -> u32 {
    let ended = session.with(ONCE()).run(|tx| {
        rows.iter().try_for_each(|(table, id)| table.update(tx, *id, Item::COUNT.add(1)))
    });
    assert_eq!(ended, CONFLICT);
    session.state_for_tests().worker.local.wanted.failures_for_tests()
}

#[test]
fn long_waits_are_no_failures() {
    let scene = scene(Policy::DeferredTwoPhase);
    let _stuck = Stuck::on(&scene, 1, Mode::Write);
    let mut session = scene.db.session().unwrap();
    assert_eq!(failures(&mut session, &[(&scene.table, 0), (&scene.table, 1)]), 0);
}

#[test]
fn an_attempt_that_holds_a_lock_of_another_policy_is_not_patient() {
    let policies = Policies::of(Policy::DeferredTwoPhase)
        .with("hot", Policy::Mocc)
        .mocc(MoccOptions::new().threshold(0));
    let Scene { db, table, sessions } = scene(policies);
    let [hot, behind] = ["hot", "behind"].map(|name| {
        let table = db.table::<Item>(name).unwrap();
        db.run(|tx| table.insert(tx, Item::new(0, 0))).unwrap();
        table
    });
    // Locks are taken in the order of addresses. Tables that are made one after another have
    // ascending or descending ones.
    let after = [&table, &behind]
        .into_iter()
        .find(|after| cell(after, 0).address() > cell(&hot, 0).address())
        .expect("one has a greater address")
        .clone();
    let scene = Scene { db, table: after, sessions };
    let _stuck = Stuck::on(&scene, 0, Mode::Write);
    let mut session = scene.db.session().unwrap();
    assert!(failures(&mut session, &[(&hot, 0), (&scene.table, 0)]) > 0);
}

#[test]
fn a_long_wait_ends_at_the_deadline() {
    let (now, hour) = (Instant::now(), Duration::from_secs(3600));
    let second = Patience::Lasting(Duration::from_secs(1));
    assert_eq!(long_patience(Some(None)), second);
    assert_eq!(long_patience(Some(Some(now + hour))), second);
    assert_eq!(long_patience(Some(Some(now))), Patience::Lasting(Duration::ZERO));
    assert_eq!(long_patience(None), Patience::Lasting(Duration::from_millis(100)));
}

#[test]
fn later_attempts_know_the_deadline_of_their_transaction() {
    let scene = scene(Policy::DeferredTwoPhase);
    let stuck = Stuck::on(&scene, 1, Mode::Write);
    let mut session = scene.db.session().unwrap();
    let deadline = Instant::now() + Duration::from_millis(150);
    let known = RefCell::new(Vec::new());
    let update = |tx: &crate::Tx<'_>| {
        known.borrow_mut().push(tx.state.borrow().worker.local.wanted.deadline());
        scene.table.update(tx, 1, Item::COUNT.add(1))
    };
    let options = || RunOptions::new().attempts_max(2).deadline(deadline);
    let ended = session.with(options()).run(update);
    assert!(matches!(ended, Err(Abort::DeadlinePassed | Abort::AttemptsExhausted)), "{ended:?}");
    let known_then = known.take();
    let later = |told: &Option<_>| *told == Some(Some(deadline));
    assert!(known_then[0].is_none() && known_then[1..].iter().all(later), "{known_then:?}");
    drop(stuck);
    assert_eq!(session.run(update), Ok(()));
    assert_eq!(known.take(), [None], "the next transaction does not");
}
