//! Waits of a transaction in the closure of another transaction of the same thread. The outer one
//! cannot go on before the inner one ends. So the inner one is refused if the outer one holds a
//! lock that a change may need.

use super::super::rows::Item;
use super::Scene;
use crate::engine::Protocol;
use crate::policy::{Policies, Policy};
use crate::protocols::{Exclusion, Occ, Serial};
use crate::{Abort, Database, RunOptions, Session, Table};

/// Runs a transaction that waits for a change of row 2, if it is allowed to. Returns the error in
/// which its only attempt ends.
fn wait<P: Protocol>(session: &mut Session<P>, items: &Table<Item, P>) -> Abort {
    let once = RunOptions::new().attempts_max(1);
    let ended = session.with(once).run(|tx| tx.check(items.read(tx, 2, Item::COUNT)? == 1));
    ended.expect_err("the count is zero")
}

fn filled<P: Protocol>(db: Database<P>) -> (Database<P>, Table<Item, P>) {
    let items = db.table::<Item>("items").unwrap();
    db.run(|tx| items.insert_many(tx, (0..4).map(|id| Item::new(id, 0)))).unwrap();
    (db, items)
}

protocol_tests!(concurrent: retry_within_a_transaction_that_holds_a_row_is_refused);
fn retry_within_a_transaction_that_holds_a_row_is_refused<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let (session, items) = (&mut scene.session, &scene.items);
    let mut inner = scene.db.session().unwrap();
    for row in [1, 2] {
        let ended = session.run(|tx| {
            items.read_for_update(tx, &row, Item::COUNT)?;
            let ended = inner.run(|tx| tx.check(items.read(tx, 2, Item::COUNT)? == 1));
            assert_eq!(ended, Err(Abort::Nested), "{}, row {row}", P::NAME);
            Ok(())
        });
        assert_eq!(ended, Ok(()), "{}", P::NAME);
    }
}

protocol_tests!(overlapping: a_row_that_is_held_in_another_database_refuses_a_wait);
/// The sessions of the two databases have the same numbers.
fn a_row_that_is_held_in_another_database_refuses_a_wait<P: Protocol>() {
    let (mut scene, other) = (Scene::<P>::new(), Scene::<P>::new());
    let mut inner = other.session;
    let ended = scene.session.run(|tx| {
        scene.items.read_for_update(tx, 1, Item::COUNT)?;
        Ok(wait(&mut inner, &other.items))
    });
    assert_eq!(ended, Ok(Abort::Nested), "{}", P::NAME);
    assert_eq!(wait(&mut inner, &other.items), Abort::AttemptsExhausted, "{}", P::NAME);
}

/// The outer transaction has written row 1, so under most policies it has locked that row.
#[test]
fn a_session_beside_locks_by_policy_is_refused() {
    let mut refused = Vec::new();
    for policy in Policy::ALL {
        let build = || Database::<Occ>::builder().policy(Policies::from(policy)).build().unwrap();
        let ((db, items), (other_db, other_items)) = (filled(build()), filled(build()));
        let mut sessions = [&db, &db, &other_db].map(|db| db.session().unwrap());
        let [session, inner, other] = &mut sessions;
        let ended = session.run(|tx| {
            items.update(tx, 1, Item::COUNT.add(1))?;
            items.read(tx, 3, Item::COUNT)?;
            Ok([wait(inner, &items), wait(other, &other_items)])
        });
        let [here, there] = ended.unwrap();
        assert_eq!(here, there, "{}: locks count in all databases", policy.name());
        if here == Abort::Nested {
            refused.push(policy);
        }
        // Nothing is held any more.
        assert_eq!(wait(inner, &items), Abort::AttemptsExhausted, "{}", policy.name());
    }
    for policy in [Policy::Pessimistic, Policy::NoWait, Policy::WaitDie] {
        assert!(refused.contains(&policy), "{}: {refused:?}", policy.name());
    }
    assert!(!refused.contains(&Policy::Optimistic), "{refused:?}");
}

#[test]
fn a_session_beside_a_global_lock_is_refused() {
    let build = || Database::<Serial>::builder().policy(Exclusion::GlobalLock).build().unwrap();
    let ((locked, _), (other, other_items)) = (filled(build()), filled(build()));
    let optimistic = Scene::<Occ>::new();
    let mut inner = [other.session().unwrap()];
    let mut optimistic_inner = optimistic.session;
    let ended = locked.run(|_| {
        let refused = wait(&mut inner[0], &other_items);
        Ok([refused, wait(&mut optimistic_inner, &optimistic.items)])
    });
    assert_eq!(ended, Ok([Abort::Nested; 2]));
    assert_eq!(wait(&mut inner[0], &other_items), Abort::AttemptsExhausted);
    // A transaction that holds nothing refuses no wait.
    let ended = optimistic_inner.run(|tx| {
        optimistic.items.read(tx, 1, Item::COUNT)?;
        Ok(wait(&mut inner[0], &other_items))
    });
    assert_eq!(ended, Ok(Abort::AttemptsExhausted));
}
