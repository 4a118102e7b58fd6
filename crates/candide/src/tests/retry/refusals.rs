//! Waits that cannot end, and limits of waits.

use super::super::properties;
use super::super::rows::Item;
use super::super::threads::spawn;
use super::super::waiting::eventually;
use super::{LOST_AFTER, Scene};
use crate::engine::{Protocol, Versioned};
use crate::report::Conflict;
use crate::sync::{AtomicU64, Duration, Instant, Ordering};
use crate::{Abort, CloseError, Database, RunOptions};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc::channel;

protocol_tests!(all: retry_without_reads_is_refused);
fn retry_without_reads_is_refused<P: Protocol>() {
    let mut session = Scene::<P>::new().session;
    let ended = session.run(|tx| tx.retry::<()>());
    assert_eq!(ended, Err(Abort::NothingToAwait), "{}", P::NAME);
    let ended = session.run(|tx| tx.check(false));
    assert_eq!(ended, Err(Abort::NothingToAwait), "{}", P::NAME);
    let far = RunOptions::new().deadline(Instant::now() + LOST_AFTER);
    let ended = session.with(far).run(|tx| tx.retry::<()>());
    assert_eq!(ended, Err(Abort::NothingToAwait), "{}", P::NAME);
    assert_eq!(session.run(|tx| tx.check(true)), Ok(()), "{}", P::NAME);
}

protocol_tests!(all: retry_in_a_read_only_transaction_is_refused);
fn retry_in_a_read_only_transaction_is_refused<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let (session, items) = (&mut scene.session, &scene.items);
    let ended = session.read_view(|tx| tx.check(items.read(tx, 1, Item::COUNT)? == 1));
    assert_eq!(ended, Err(Abort::NothingToAwait), "{}", P::NAME);
    let ended = session
        .with(RunOptions::new().read_only())
        .run(|tx| tx.check(items.read(tx, 1, Item::COUNT)? == 1));
    assert_eq!(ended, Err(Abort::NothingToAwait), "{}", P::NAME);
    // An alternative can be chosen nevertheless.
    let ended = session.with(RunOptions::new().read_only()).run(|tx| {
        tx.or_else(
            |tx| tx.check(items.read(tx, 1, Item::COUNT)? == 1).map(|()| 1),
            |tx| items.read(tx, 2, Item::COUNT),
        )
    });
    assert_eq!(ended, Ok(0), "{}", P::NAME);
}

#[test]
fn retry_in_a_snapshot_is_refused() {
    fn in_a_snapshot<P: Versioned>() {
        let scene = Scene::<P>::new();
        let snapshot = scene.db.snapshot();
        let items = &scene.items;
        let ended = snapshot.run(|tx| tx.check(items.read(tx, 1, Item::COUNT)? == 1));
        assert_eq!(ended, Err(Abort::NothingToAwait), "{}", P::NAME);
    }
    in_a_snapshot::<crate::Mvcc>();
    in_a_snapshot::<crate::Mvto>();
}

protocol_tests!(all: retry_of_the_only_session_is_refused);
fn retry_of_the_only_session_is_refused<P: Protocol>() {
    if !properties::<P>().one_session {
        return;
    }
    let mut scene = Scene::<P>::new();
    let (session, items) = (&mut scene.session, &scene.items);
    let ended = session.run(|tx| tx.check(items.read(tx, 1, Item::COUNT)? == 1));
    assert_eq!(ended, Err(Abort::NothingToAwait), "{}", P::NAME);
}

protocol_tests!(concurrent: limits_on_attempts_and_time_end_a_retry);
fn limits_on_attempts_and_time_end_a_retry<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let (session, items) = (&mut scene.session, &scene.items);
    let mut wait = |options: RunOptions<'_>| {
        session.with(options).run(|tx| tx.check(items.read(tx, 1, Item::COUNT)? == 1))
    };
    let passed = RunOptions::new().deadline(Instant::now());
    assert_eq!(wait(passed), Err(Abort::DeadlinePassed), "{}", P::NAME);
    let soon = RunOptions::new().deadline(Instant::now() + Duration::from_millis(5));
    assert_eq!(wait(soon), Err(Abort::DeadlinePassed), "{}", P::NAME);
    let once = RunOptions::new().attempts_max(1);
    assert_eq!(wait(once), Err(Abort::AttemptsExhausted), "{}", P::NAME);
    assert_eq!(scene.sleepers(), 0, "{}", P::NAME);
}

protocol_tests!(overlapping: waits_for_a_lock_are_not_counted);
/// The holder of the row keeps the other session from watching the row, until that session has run
/// more often than it is allowed to wait for changes.
fn waits_for_a_lock_are_not_counted<P: Protocol>() {
    let scene = Scene::<P>::new();
    let (db, items) = (&scene.db, &scene.items);
    let [mut holder, mut other] = [(); 2].map(|()| db.session().unwrap());
    let runs = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let (begin, begun) = channel();
        let (table, runs) = (items.clone(), &runs);
        let waiter = spawn(scope, move || {
            begun.recv().unwrap();
            let conflicts = Cell::new(0);
            let count = |_: &Conflict| conflicts.set(conflicts.get() + 1);
            let options = RunOptions::new().deadline(Instant::now() + LOST_AFTER).attempts_max(3);
            let ended = other.with(options.on_conflict(&count)).run(|tx| {
                runs.fetch_add(1, Ordering::Relaxed);
                assert_eq!(u64::from(tx.attempt_number()), runs.load(Ordering::Relaxed));
                tx.check(table.read(tx, 1, Item::COUNT)? == 1)
            });
            (ended, conflicts.get())
        });
        let is_first = Cell::new(true);
        let changed = holder.run(|tx| {
            items.read_for_update(tx, 1, Item::COUNT)?;
            if is_first.take() {
                begin.send(()).unwrap();
                // A reader that locks waits for this transaction, and under `mvto` a watcher needs
                // no lock of the row.
                let waits = || {
                    runs.load(Ordering::Relaxed) > 5
                        || P::NAME == "mvto" && db.inner.engine.watchers.count() > 0
                        || db.inner.engine.parking.entered() > 5
                        || waiter.is_finished()
                };
                eventually("the other session waits", waits);
            }
            items.update(tx, 1, Item::COUNT.set(1))
        });
        assert_eq!(changed, Ok(()), "{}", P::NAME);
        let (ended, conflicts) = waiter.join().unwrap();
        let runs = runs.load(Ordering::Relaxed);
        // Conflicts of a reader that locks are counted.
        let is_right = ended == Ok(()) || conflicts > 0 && ended == Err(Abort::AttemptsExhausted);
        assert!(is_right, "{}: {ended:?} after {runs} runs, {conflicts} conflicts", P::NAME);
    });
}

protocol_tests!(concurrent: an_error_takes_precedence_over_a_retry);
fn an_error_takes_precedence_over_a_retry<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let (session, items) = (&mut scene.session, &scene.items);
    let ended = session.run(|tx| {
        items.update(tx, 1, Item::COUNT.sub(1).at_least(0))?;
        tx.check(items.read(tx, 2, Item::COUNT)? == 1)
    });
    assert_eq!(ended, Err(Abort::Guard), "{}", P::NAME);
}

protocol_tests!(concurrent: a_panic_takes_precedence_over_a_retry);
fn a_panic_takes_precedence_over_a_retry<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let (session, items) = (&mut scene.session, &scene.items);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        session.run(|tx| {
            items.update(tx, 1, Item::COUNT.add(1))?;
            let Err(abort) = tx.retry::<()>() else { return Ok(()) };
            panic!("{abort}")
        })
    }));
    assert!(panicked.is_err(), "{}", P::NAME);
    let count = session.run(|tx| items.read(tx, 1, Item::COUNT));
    assert_eq!(count, Ok(0), "{}", P::NAME);
}

protocol_tests!(concurrent: effects_of_attempts_that_retry_are_dropped);
/// The calls of `on_commit` may wait, too: they are outside of the transaction.
fn effects_of_attempts_that_retry_are_dropped<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let (session, items) = (&mut scene.session, &scene.items);
    let (made, ran) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let ended = session.with(RunOptions::new().attempts_max(1)).run(|tx| {
        let (made, ran) = (made.clone(), ran.clone());
        made.set(made.get() + 1);
        tx.on_commit(move || ran.set(ran.get() + 1));
        tx.check(items.read(tx, 1, Item::COUNT)? == 1)
    });
    assert_eq!(ended, Err(Abort::AttemptsExhausted), "{}", P::NAME);
    assert_eq!((made.get(), ran.get(), Rc::strong_count(&ran)), (1, 0, 1), "{}", P::NAME);
    let (db, table, answer) = (scene.db.clone(), items.clone(), ran.clone());
    let ended = session.run(|tx| {
        let (db, table, answer) = (db.clone(), table.clone(), answer.clone());
        tx.on_commit(move || {
            let soon = RunOptions::new().deadline(Instant::now() + Duration::from_millis(5));
            let ended = db.with(soon).run(|tx| tx.check(table.read(tx, 1, Item::COUNT)? == 1));
            answer.set(if ended == Err(Abort::DeadlinePassed) { 7 } else { 8 });
        });
        Ok(())
    });
    assert_eq!((ended, ran.get()), (Ok(()), 7), "{}", P::NAME);
}

protocol_tests!(concurrent: a_conflict_before_a_retry_is_not_reported_as_the_last);
fn a_conflict_before_a_retry_is_not_reported_as_the_last<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let (result, _) = scene.wake(
        |tables, tx| {
            assert!(tx.last_conflict().is_none(), "{}", P::NAME);
            tables.await_count(tx, 1, 1)
        },
        &[&|tables, tx| tables.items.update(tx, 1, Item::COUNT.set(1))],
    );
    assert_eq!(result, Ok(()), "{}", P::NAME);
}

protocol_tests!(concurrent: closing_a_database_with_a_sleeping_session_is_refused);
fn closing_a_database_with_a_sleeping_session_is_refused<P: Protocol>() {
    let scene = Scene::<P>::new();
    let (db, items) = (scene.db.clone(), scene.items.clone());
    let mut other = db.session().unwrap();
    std::thread::scope(|scope| {
        let (table, deadline) = (items.clone(), Instant::now() + LOST_AFTER);
        let waiter = spawn(scope, move || {
            other
                .with(RunOptions::new().deadline(deadline))
                .run(|tx| tx.check(table.read(tx, 1, Item::COUNT)? == 1))
        });
        eventually("the session sleeps", || db.inner.engine.watchers.count() == 1);
        let Scene { db: last, session, sorted, items: table, .. } = scene;
        drop((session, sorted, table));
        let Err(CloseError::InUse { database, .. }) = last.close() else {
            panic!("{}: closed", P::NAME)
        };
        let woken: Database<P> = database;
        woken.run(|tx| items.update(tx, 1, Item::COUNT.set(1))).unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(()), "{}", P::NAME);
    });
}

protocol_tests!(concurrent: a_sleeping_session_outlives_the_databases_other_handles);
fn a_sleeping_session_outlives_the_databases_other_handles<P: Protocol>() {
    let Scene { db, items, sorted, mut session } = Scene::<P>::new();
    let mut other = db.session().unwrap();
    let (table, deadline) = (items.clone(), Instant::now() + LOST_AFTER);
    let waiter = std::thread::spawn(move || {
        other
            .with(RunOptions::new().deadline(deadline))
            .run(|tx| tx.check(table.read(tx, 1, Item::COUNT)? == 1))
    });
    let memory = std::sync::Arc::downgrade(&db.inner);
    let asleep = || memory.upgrade().unwrap().engine.watchers.asleep();
    eventually("the session sleeps", || asleep().len() == 1);
    drop((db, sorted));
    let asleep = asleep();
    session.run(|tx| items.update(tx, 1, Item::COUNT.set(1))).unwrap();
    assert!(asleep.are_woken(), "{}", P::NAME);
    drop((session, items));
    assert_eq!(waiter.join().unwrap(), Ok(()), "{}", P::NAME);
}
