//! Changes that wake a session, and those that do not.

use super::super::indexed_rows::{Filed, Parcel};
use super::super::rows::Item;
use super::super::threads::spawn;
use super::super::waiting::eventually;
use super::{LOST_AFTER, Line, Scene};
use crate::engine::Protocol;
use crate::epoch::Collect;
use crate::protocols::Mvto;
use crate::sync::{Instant, Point, with_hook};
use crate::{Abort, Database, RunOptions};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::mpsc::channel;

protocol_tests!(concurrent: a_change_of_a_watched_row_wakes_the_sleeper);
fn a_change_of_a_watched_row_wakes_the_sleeper<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let (result, runs) = scene.wake(
        |tables, tx| {
            tables.await_count(tx, 1, 2)?;
            tables.items.update(tx, 1, Item::COUNT.add(10))
        },
        &[&|tables, tx| tables.items.update(tx, 1, Item::COUNT.set(1)), &|tables, tx| {
            tables.items.modify(tx, 1, Item::COUNT, |count| *count += 1)
        }],
    );
    assert_eq!(result, Ok(()), "{}", P::NAME);
    assert!(runs >= 3, "{}: {runs} runs", P::NAME);
    assert_eq!(scene.sleepers(), 0, "{}", P::NAME);
    let count = scene.session.run(|tx| scene.items.read(tx, 1, Item::COUNT));
    assert_eq!(count, Ok(12), "{}", P::NAME);
    assert_eq!(scene.session.stats().aborts[Abort::Retry as usize], 0, "{}", P::NAME);
    let retries = scene.db.stats().aborts[Abort::Retry as usize];
    assert_eq!(retries, runs - 1, "{}", P::NAME);
}

protocol_tests!(concurrent: a_delete_of_a_watched_row_wakes_the_sleeper);
fn a_delete_of_a_watched_row_wakes_the_sleeper<P: Protocol>() {
    let (result, _) = Scene::<P>::new().wake(
        |tables, tx| tx.check(tables.items.get(tx, 1, Item::OTHER)?.is_none()),
        &[&|tables, tx| tables.items.delete(tx, 1)],
    );
    assert_eq!(result, Ok(()), "{}", P::NAME);
}

protocol_tests!(concurrent: an_insert_of_a_missed_key_wakes_the_sleeper);
fn an_insert_of_a_missed_key_wakes_the_sleeper<P: Protocol>() {
    let (result, _) = Scene::<P>::new().wake(
        |tables, tx| tables.items.get(tx, 9, Item::COUNT)?.map_or_else(|| tx.retry(), Ok),
        &[&|tables, tx| tables.items.insert(tx, Item::new(9, 90))],
    );
    assert_eq!(result, Ok(90), "{}", P::NAME);
    let (result, _) = Scene::<P>::new().wake(
        |tables, tx| tables.sorted.get(tx, 9, Line::COUNT)?.map_or_else(|| tx.retry(), Ok),
        &[&|tables, tx| tables.sorted.insert(tx, Line { id: 9, count: 90 })],
    );
    assert_eq!(result, Ok(90), "{}, sorted", P::NAME);
}

protocol_tests!(concurrent: an_insert_into_a_scanned_range_wakes_the_sleeper);
fn an_insert_into_a_scanned_range_wakes_the_sleeper<P: Protocol>() {
    let (result, _) = Scene::<P>::new().wake(
        |tables, tx| {
            let found = tables.sorted.scan(tx, 10..20, Line::COUNT).next();
            found.map_or_else(|| tx.retry(), |row| row.map(|(id, _)| id))
        },
        &[&|tables, tx| (9..60).try_for_each(|id| tables.sorted.insert(tx, Line { id, count: 0 }))],
    );
    assert_eq!(result, Ok(10), "{}", P::NAME);
}

protocol_tests!(concurrent: a_reinsert_of_a_deleted_row_wakes_the_sleeper);
/// The record of a deleted row is still linked, or is unlinked while the session sleeps.
fn a_reinsert_of_a_deleted_row_wakes_the_sleeper<P: Protocol>() {
    for is_reaped in [false, true] {
        let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
        let items = db.table::<Item>("items").unwrap();
        let mut session = db.session().unwrap();
        session.run(|tx| items.insert(tx, Item::new(1, 0))).unwrap();
        session.run(|tx| items.delete(tx, 1)).unwrap();
        let mut other = db.session().unwrap();
        std::thread::scope(|scope| {
            let (table, deadline) = (items.clone(), Instant::now() + LOST_AFTER);
            let waiter = spawn(scope, move || {
                other
                    .with(RunOptions::new().deadline(deadline))
                    .run(|tx| table.get(tx, 1, Item::COUNT)?.map_or_else(|| tx.retry(), Ok))
            });
            eventually("the session sleeps", || db.inner.engine.watchers.count() == 1);
            if is_reaped {
                for _ in 0..10 {
                    db.inner.engine.epochs.pass();
                    db.inner.collect(db.inner.engine.epochs.now());
                }
                assert_eq!(items.len_estimate(), 0, "{}", P::NAME);
            }
            session.run(|tx| items.insert(tx, Item::new(1, 10))).unwrap();
            assert_eq!(waiter.join().unwrap(), Ok(10), "{}, reaped: {is_reaped}", P::NAME);
        });
    }
}

protocol_tests!(concurrent: assumptions_of_writes_are_watched);
fn assumptions_of_writes_are_watched<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let (result, _) = scene.wake(
        |tables, tx| {
            tables.items.update(tx, 1, Item::COUNT.add(1))?;
            tables.await_count(tx, 2, 1)
        },
        &[&|tables, tx| tables.items.delete(tx, 1)],
    );
    assert_eq!(result, Err(Abort::NotFound), "{}", P::NAME);
    let (result, _) = scene.wake(
        |tables, tx| {
            tables.items.insert(tx, Item::new(7, 0))?;
            tables.await_count(tx, 2, 1)
        },
        &[&|tables, tx| tables.items.insert(tx, Item::new(7, 0))],
    );
    assert_eq!(result, Err(Abort::Duplicate), "{}", P::NAME);
}

protocol_tests!(concurrent: observations_of_an_undone_part_are_watched);
fn observations_of_an_undone_part_are_watched<P: Protocol>() {
    let (result, _) = Scene::<P>::new().wake(
        |tables, tx| {
            let part = tx.attempt(|tx| match tables.items.read(tx, 1, Item::COUNT)? {
                0 => Err(Abort::Indexed),
                count => Ok(count),
            });
            part.or_else(|_| tx.retry())
        },
        &[&|tables, tx| tables.items.update(tx, 1, Item::COUNT.set(5))],
    );
    assert_eq!(result, Ok(5), "{}", P::NAME);
}

protocol_tests!(concurrent: writes_of_attempts_that_retry_have_no_effect);
fn writes_of_attempts_that_retry_have_no_effect<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let (result, runs) = scene.wake(
        |tables, tx| {
            tables.items.update(tx, 0, Item::COUNT.add(1))?;
            tables.items.put(tx, Item::new(8, 80))?;
            tables.items.delete(tx, 3)?;
            let count = tables.items.read(tx, 1, Item::COUNT)?;
            // The closure continues, which does not change that the attempt waits.
            let _ = tx.check(count > 0);
            tables.items.update(tx, 2, Item::COUNT.add(1))?;
            Ok(count)
        },
        &[&|tables, tx| {
            let counts = [0, 2].map(|id| tables.items.read(tx, id, Item::COUNT));
            assert_eq!(counts, [Ok(0), Ok(0)], "{}", P::NAME);
            assert_eq!(tables.items.get(tx, 8, Item::COUNT), Ok(None), "{}", P::NAME);
            assert_eq!(tables.items.get(tx, 3, Item::COUNT), Ok(Some(0)), "{}", P::NAME);
            tables.items.update(tx, 1, Item::COUNT.set(5))
        }],
    );
    assert_eq!(result, Ok(5), "{}: {runs} runs", P::NAME);
    let counts = scene
        .session
        .run(|tx| Ok([0, 1, 2, 3, 8].map(|id| scene.items.get(tx, id, Item::COUNT).unwrap())));
    assert_eq!(counts, Ok([Some(1), Some(5), Some(1), None, Some(80)]), "{}", P::NAME);
}

protocol_tests!(concurrent: a_failed_commit_and_a_lock_keep_the_watch_flag);
/// Another session locks the watched row and does not change it. The next change wakes.
fn a_failed_commit_and_a_lock_keep_the_watch_flag<P: Protocol>() {
    let scene = Scene::<P>::new();
    let (db, items) = (scene.db.clone(), scene.items.clone());
    let mut other = db.session().unwrap();
    let mut session = db.session().unwrap();
    std::thread::scope(|scope| {
        let (table, deadline) = (items.clone(), Instant::now() + LOST_AFTER);
        let waiter = spawn(scope, move || {
            other
                .with(RunOptions::new().deadline(deadline))
                .run(|tx| tx.check(table.read(tx, 1, Item::COUNT)? == 1))
        });
        let asleep = || db.inner.engine.watchers.count() == 1;
        eventually("the session sleeps", asleep);
        let failed = session.run(|tx| items.update(tx, 1, Item::COUNT.sub(1).at_least(0)));
        assert_eq!(failed, Err(Abort::Guard), "{}", P::NAME);
        eventually("the session sleeps again", asleep);
        session.run(|tx| items.read_for_update(tx, 1, Item::COUNT)).unwrap();
        eventually("the session sleeps again", asleep);
        session.run(|tx| items.update(tx, 1, Item::COUNT.add(1))).unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(()), "{}", P::NAME);
    });
}

protocol_tests!(concurrent: a_change_after_the_watch_flags_and_before_the_sleep_wakes_the_sleeper);
fn a_change_after_the_watch_flags_and_before_the_sleep_wakes_the_sleeper<P: Protocol>() {
    // Under a global lock nothing changes before the session has left the lock.
    let is_exclusive = super::super::properties::<P>().applies_at_once;
    let scene = Scene::<P>::new();
    let mut other = scene.db.session().unwrap();
    let (mut session, items) = (scene.session, scene.items.clone());
    let (db, mut is_left, mut sleeps) = (scene.db.clone(), true, false);
    let hook = move |point| {
        let there = if is_exclusive { Point::Unpinned } else { Point::Watching };
        if point == there && std::mem::take(&mut is_left) {
            session.run(|tx| items.update(tx, 1, Item::COUNT.set(1))).unwrap();
            session.run(|tx| items.insert(tx, Item::new(9, 0))).unwrap();
            sleeps = true;
        }
        // The session is about to sleep, if it has not been woken.
        if point == Point::Unpinned && std::mem::take(&mut sleeps) {
            assert!(db.inner.engine.watchers.asleep().are_woken(), "{}: not woken", P::NAME);
        }
    };
    let options = RunOptions::new().deadline(Instant::now() + LOST_AFTER);
    let woken = with_hook(hook, || {
        other.with(options).run(|tx| tx.check(scene.items.read(tx, 1, Item::COUNT)? == 1))
    });
    assert_eq!(woken, Ok(()), "{}", P::NAME);
}

protocol_tests!(overlapping: a_locked_row_is_awaited_rather_than_watched);
/// The holder of the row stops until the other session waits, and only then changes the row.
fn a_locked_row_is_awaited_rather_than_watched<P: Protocol>() {
    let scene = Scene::<P>::new();
    let (watchers, parking) = (&scene.db.inner.engine.watchers, &scene.db.inner.engine.parking);
    let [mut holder, mut other] = [(); 2].map(|()| scene.db.session().unwrap());
    let (begin, begun) = channel();
    let (table, deadline) = (scene.items.clone(), Instant::now() + LOST_AFTER);
    // Not joined if the wake-up is lost.
    let waiter = std::thread::spawn(move || {
        begun.recv().unwrap();
        other
            .with(RunOptions::new().deadline(deadline))
            .run(|tx| tx.check(table.read(tx, 1, Item::COUNT)? == 1))
    });
    let (is_first, asleep) = (Cell::new(true), RefCell::new(None));
    let changed = holder.run(|tx| {
        scene.items.read_for_update(tx, 1, Item::COUNT)?;
        if is_first.take() {
            begin.send(()).unwrap();
            let waits = || watchers.asleep().len() > 0 || parking.entered() > 0;
            eventually("the other session waits", waits);
            *asleep.borrow_mut() = Some(watchers.asleep());
        }
        scene.items.update(tx, 1, Item::COUNT.set(1))
    });
    assert_eq!(changed, Ok(()), "{}", P::NAME);
    assert!(asleep.take().unwrap().are_woken(), "{}: the change has woken no session", P::NAME);
    assert_eq!(waiter.join().unwrap(), Ok(()), "{}", P::NAME);
}

protocol_tests!(concurrent: a_sleeping_session_does_not_delay_reclamation);
fn a_sleeping_session_does_not_delay_reclamation<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    session.run(|tx| (0..50).try_for_each(|id| items.insert(tx, Item::new(id, 0)))).unwrap();
    let mut other = db.session().unwrap();
    std::thread::scope(|scope| {
        let (table, deadline) = (items.clone(), Instant::now() + LOST_AFTER);
        let waiter = spawn(scope, move || {
            other
                .with(RunOptions::new().deadline(deadline))
                .run(|tx| tx.check(table.read_for_update(tx, 1, Item::COUNT)? == 1))
        });
        eventually("the session sleeps", || db.inner.engine.watchers.count() == 1);
        session.run(|tx| (10..50).try_for_each(|id| items.delete(tx, id))).unwrap();
        for _ in 0..40 {
            db.inner.engine.epochs.pass();
            db.inner.collect(db.inner.engine.epochs.now());
        }
        assert_eq!((db.memory().garbage, items.len_estimate()), (0, 10), "{}", P::NAME);
        session.run(|tx| items.update(tx, 1, Item::COUNT.set(1))).unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(()), "{}", P::NAME);
    });
}

protocol_tests!(concurrent: a_new_entry_in_a_watched_index_wakes_the_sleeper);
fn a_new_entry_in_a_watched_index_wakes_the_sleeper<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let filed = db.table::<Filed>("filed").unwrap();
    let mut session = db.session().unwrap();
    let row = |number, colour| Filed { colour, ..Parcel::new(1, number).into() };
    session.run(|tx| filed.insert_many(tx, (0..3).map(|number| row(number, 0)))).unwrap();
    let mut other = db.session().unwrap();
    std::thread::scope(|scope| {
        let (table, deadline) = (filed.clone(), Instant::now() + LOST_AFTER);
        let waiter = spawn(scope, move || {
            other.with(RunOptions::new().deadline(deadline)).run(|tx| {
                let by_colour = table.index(Filed::BY_COLOUR);
                by_colour.rows(tx, 1, ()).next().unwrap_or_else(|| tx.retry())
            })
        });
        eventually("the session sleeps", || db.inner.engine.watchers.count() == 1);
        session.run(|tx| filed.modify(tx, (1, 2), Filed::COLOUR, |colour| *colour = 1)).unwrap();
        assert_eq!(waiter.join().unwrap().map(|(key, ())| key), Ok((1, 2)), "{}", P::NAME);
    });
}

/// A commit whose version is pending has found the flag first. Another one links its version above
/// the pending one, and commits.
#[test]
fn a_commit_above_a_pending_version_wakes() {
    let Scene { db, items, session, .. } = Scene::<Mvto>::new();
    let [mut pending, mut other] = [(); 2].map(|()| db.session().unwrap());
    let (table, deadline) = (items.clone(), Instant::now() + LOST_AFTER);
    let waiter = std::thread::spawn(move || {
        other
            .with(RunOptions::new().deadline(deadline))
            .run(|tx| tx.check(table.read(tx, 1, Item::COUNT)? == 1))
    });
    eventually("the session sleeps", || db.inner.engine.watchers.asleep().len() == 1);
    let asleep = db.inner.engine.watchers.asleep();
    let woken = Rc::new(Cell::new(None));
    let (table, answer) = (items.clone(), woken.clone());
    let mut at_hand = Some((session, waiter));
    let hook = move |point| {
        if point == Point::Locked
            && let Some((mut session, waiter)) = at_hand.take()
        {
            session.run(|tx| table.put(tx, Item::new(1, 1))).unwrap();
            assert!(asleep.are_woken(), "the commit has woken no session");
            answer.set(Some(waiter.join().unwrap()));
        }
    };
    let committed = with_hook(hook, || pending.run(|tx| items.put(tx, Item::new(1, 2))));
    assert_eq!((committed, woken.get()), (Ok(()), Some(Ok(()))));
}
