//! Tests of calls that a step must not make, with what it has captured.

use super::super::rows::Item;
use super::super::waiting::receive;
use super::{Scene, multiply};
use crate::engine::{Protocol, Versioned};
use crate::{Abort, Database, Error, Level, LogOptions, Pending, Session, Table};
use candide_log_testing::SimDisk;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

/// Runs transactions in a session in every way, and returns the results. All of them want an item
/// that no other transaction has touched.
fn uses<P: Protocol>(
    session: &RefCell<Session<P>>,
    items: &Table<Item, P>,
) -> Vec<Result<i64, Abort>> {
    let session = &mut *session.borrow_mut();
    vec![
        session.run(|tx| items.read(tx, 2, Item::COUNT)),
        session.read_view(|tx| items.read(tx, 2, Item::COUNT)),
        session.run(|tx| items.update(tx, 2, Item::COUNT.add(1)).map(|()| 20)),
        items.get_now(session, 2, Item::COUNT).map(Option::unwrap),
        session.run(|_| Ok(20)),
    ]
}

protocol_tests!(concurrent: a_session_that_a_step_has_captured_is_refused);
fn a_session_that_a_step_has_captured_is_refused<P: Protocol>() {
    let (mut scene, of_others) = (Scene::<P>::new(), Scene::<P>::new());
    let (db, table) = (scene.db.clone(), scene.items.clone());
    let (db_of_others, others) = (of_others.db.clone(), of_others.items.clone());
    let own = Rc::new(RefCell::new(db.session().unwrap()));
    let other = Rc::new(RefCell::new(db_of_others.session().unwrap()));
    for asks_before in [false, true] {
        let (own, other) = (own.clone(), other.clone());
        let results = db.run_deferred(|tx| {
            let (own, other) = (own.clone(), other.clone());
            let (owns, others) = (table.clone(), others.clone());
            let results = table.defer(tx, 1, Item::COUNT, (), move |count, ()| {
                *count += 1;
                (uses(&own, &owns), uses(&other, &others))
            })?;
            if asks_before {
                results.now(tx)?;
            }
            Ok(results)
        });
        let refused = vec![Err(Abort::Nested); 5];
        assert_eq!(results, Ok((refused.clone(), refused)), "{}: {asks_before}", P::NAME);
    }
    assert_eq!([1, 2].map(|id| scene.count(id)), [Some(12), Some(20)], "{}", P::NAME);
    // Afterwards everything is as it was.
    assert_eq!(uses(&own, &table)[0], Ok(20), "{}", P::NAME);
    assert_eq!(uses(&other, &others)[0], Ok(20), "{}", P::NAME);
}

protocol_tests!(versioned: a_step_that_opens_a_snapshot_panics);
fn a_step_that_opens_a_snapshot_panics<P: Versioned>() {
    let mut scene = Scene::<P>::new();
    let (db, table) = (Rc::new(scene.db.clone()), scene.items.clone());
    let session = Rc::new(db.session().unwrap());
    for of_session in [false, true] {
        let (db, session) = (db.clone(), session.clone());
        let ended = catch_unwind(AssertUnwindSafe(|| {
            db.run(|tx| {
                let (db, session) = (db.clone(), session.clone());
                multiply(&table, tx, 2, 2)?;
                let open = move || if of_session { session.snapshot() } else { db.snapshot() };
                table.defer(tx, 1, Item::COUNT, (), move |_, ()| drop(open())).map(drop)
            })
        }));
        let panic = ended.expect_err("the step panics");
        let text = panic.downcast_ref::<&str>().expect("it has a text");
        assert!(text.contains("before the transaction"), "{}: {text}", P::NAME);
    }
    assert_eq!([1, 2].map(|id| scene.count(id)), [Some(10), Some(20)], "{}", P::NAME);
}

/// The results of calls that wait for the log.
type Waits = (Result<(), Error>, Result<(), Error>, Option<Result<(), Abort>>, Result<(), Abort>);

/// Makes each call that waits for the log.
fn wait_for_log<P: Protocol>(db: &Database<P>, pending: [Pending<()>; 2]) -> Waits {
    let [polled, waited] = pending;
    let ready = match pin!(polled).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    };
    (db.sync(), db.checkpoint().map(drop), ready, waited.wait())
}

protocol_tests!(all: a_step_does_not_wait_for_the_log);
/// The logger may wait for the transaction of the step, so it cannot make anything durable.
fn a_step_does_not_wait_for_the_log<P: Protocol>() {
    // The logger begins no round by itself.
    let options = LogOptions::new()
        .segment_bytes(64 << 10)
        .flush_every(Duration::from_secs(3600))
        .acknowledge(Level::Memory);
    let db = Database::<P>::builder().open_on(Arc::new(SimDisk::new()), options).unwrap();
    let table = db.table::<Item>("items").unwrap();
    db.run(|tx| table.insert_many(tx, (0..3).map(|id| Item::new(id, 5)))).unwrap();
    let (sender, receiver) = channel();
    let runner = thread::spawn({
        let (db, table) = (db.clone(), table.clone());
        move || {
            let mut pending =
                Some([1, 2].map(|id| db.run_logged(|tx| table.update(tx, id, Item::COUNT.add(1)))));
            let results = db.run_deferred(|tx| {
                let (db, mut pending) = (db.clone(), pending.take());
                table.defer(tx, 0, Item::COUNT, (), move |count, ()| {
                    *count += 1;
                    pending.take().map(|pending| wait_for_log(&db, pending))
                })
            });
            sender.send(results).unwrap();
        }
    });
    let nested = || Err(Error::Transaction(Abort::Nested));
    let refused = (nested(), nested(), Some(Err(Abort::Nested)), Err(Abort::Nested));
    assert_eq!(receive("the step ends", &receiver), Ok(Some(refused)), "{}", P::NAME);
    runner.join().unwrap();
    db.sync().unwrap();
    let counts = db.run(|tx| Ok([0, 1, 2].map(|id| table.read(tx, id, Item::COUNT))));
    assert_eq!(counts, Ok([Ok(6); 3]), "{}", P::NAME);
}
