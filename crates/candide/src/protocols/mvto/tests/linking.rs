//! Interleavings meant to break multi-version timestamp ordering.

use crate::engine::Protocol;
use crate::protocols::Mvto;
use crate::sync::{Point, with_hook};
use crate::tests::interleaving::acting;
use crate::tests::rows::Item;
use crate::tests::transactions::{ONCE, run};
use crate::timestamps::by_the_clock;
use crate::{Abort, Database, RunOptions, Session, Table};
use std::cell::RefCell;
use std::sync::mpsc::channel;
use std::time::Duration;

type Items = Table<Item, Mvto>;

/// A database with rows 1 and 2, whose counts are 10, and two sessions.
struct Scene {
    items: Items,
    first: Session<Mvto>,
    second: Session<Mvto>,
}

fn scene() -> Scene {
    let db = Database::<Mvto>::builder().manual_epochs(10).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let (mut first, second) = (db.session().unwrap(), db.session().unwrap());
    run(&mut first, |tx| items.insert_many(tx, [Item::new(1, 10), Item::new(2, 10)]));
    Scene { items, first, second }
}

/// A row is updated with a guard and deleted in one transaction: the guard is evaluated on the row,
/// which first has to be made from deltas.
#[test]
fn a_guard_before_a_delete_is_evaluated_on_the_row() {
    for (count, outcome) in [(3, Err(Abort::Guard)), (5, Ok(()))] {
        let Scene { items, mut first, .. } = scene();
        run(&mut first, |tx| items.update(tx, 1, Item::COUNT.set(count)));
        let deleted = first.with(ONCE()).run(|tx| {
            items.update(tx, 1, Item::COUNT.sub(5).at_least(0))?;
            items.delete(tx, 1)
        });
        assert_eq!(deleted, outcome, "{count}");
    }
}

/// A commit has drawn its timestamp but linked nothing yet. A transaction whose time is not before
/// this timestamp sees one row from before the commit and the other from after it, and reads again
/// while the two differ. The attempt must end in a conflict, while it runs or at its end.
#[test]
fn a_read_only_transaction_fails_on_rows_of_different_times() {
    for looks_max in [1, 10_000] {
        let Scene { items, mut first, mut second } = scene();
        let rows = items.clone();
        let ((drawn, has_drawn), (go, may_go), (done, is_done)) = (channel(), channel(), channel());
        let writer = std::thread::spawn(move || {
            let until_told = move || {
                drawn.send(()).unwrap();
                may_go.recv().unwrap();
            };
            acting(Point::Unlocked, until_told, || {
                run(&mut second, |tx| {
                    [1, 2].iter().try_for_each(|id| rows.update(tx, id, Item::COUNT.add(1)))
                });
            });
            done.send(()).unwrap();
        });
        has_drawn.recv().unwrap();
        let mut looks = 0;
        let read = first.with(ONCE()).run(|tx| {
            let before = items.read(tx, 1, Item::COUNT)?;
            go.send(()).unwrap();
            is_done.recv().unwrap();
            while looks < looks_max && items.read(tx, 2, Item::COUNT)? != before {
                looks += 1;
            }
            Ok(())
        });
        writer.join().unwrap();
        assert_eq!(read, Err(Abort::AttemptsExhausted), "{looks_max}");
        assert!(looks_max == 1 || looks < looks_max, "the closure's loop ends before its bound");
    }
}

/// In each attempt of a writer, once the writer has drawn its timestamp, a reader reads the version
/// that is to be replaced. After enough failed attempts, the writer takes the token, and so commits
/// nevertheless.
#[test]
fn a_writer_of_constantly_read_rows_commits() {
    let Scene { items, mut first, mut second } = scene();
    let rows = items.clone();
    let read_each_time = move |point| {
        if point == Point::Unlocked {
            // With timestamps from the clock, a reader that begins in the tick of the writer's
            // timestamp reads at an earlier time.
            std::thread::sleep(Duration::from_micros(1));
            let read = second.with(ONCE()).run(|tx| rows.read(tx, 1, Item::COUNT));
            assert!(matches!(read, Ok(10) | Err(Abort::AttemptsExhausted)), "{read:?}");
        }
    };
    let mut attempts = 0;
    let written = with_hook(read_each_time, || {
        first.with(RunOptions::new().attempts_max(100)).run(|tx| {
            attempts = tx.attempt_number();
            items.update(tx, 1, Item::COUNT.set(1))
        })
    });
    assert_eq!(written, Ok(()));
    assert!(attempts > 32, "{attempts}: no reader has read");
}

/// A read-only transaction does not find a key, and the key is inserted later. The insert does not
/// affect the transaction.
#[test]
fn a_read_only_transaction_is_unaffected_by_later_commits() {
    let Scene { items, mut first, mut second } = scene();
    let rows = RefCell::new(Vec::new());
    run(&mut first, |tx| {
        let counts = || {
            items.iter(tx, ()).map(|row| row.map(|(id, ())| id)).collect::<Result<Vec<_>, Abort>>()
        };
        let found = (items.get(tx, 3, ())?, counts()?);
        run(&mut second, |tx| items.insert(tx, Item::new(3, 10)));
        assert_eq!((items.get(tx, 3, ())?, counts()?), found);
        *rows.borrow_mut() = found.1;
        Ok(())
    });
    let mut rows = rows.take();
    rows.sort_unstable();
    assert_eq!(rows, [1, 2]);
    // But if the transaction writes, its reads have to be valid at its timestamp.
    let refused = first.with(ONCE()).run(|tx| {
        let fourth = items.get(tx, 4, ())?;
        run(&mut second, |tx| items.insert(tx, Item::new(4, 10)));
        items.update(tx, 1, Item::COUNT.set(if fourth.is_some() { 1 } else { 0 }))
    });
    assert_eq!(refused, Err(Abort::AttemptsExhausted));
}

/// A read for update precedes a write. So it fails if the attempt could see only a replaced
/// version. The read must not lock the row and return that version.
#[test]
fn a_holder_of_a_row_is_not_shown_an_old_version_of_it() {
    let Scene { items, mut first, mut second } = scene();
    let refused = first.with(ONCE()).run(|tx| {
        items.read(tx, 1, Item::COUNT)?;
        run(&mut second, |tx| {
            [1, 2].iter().try_for_each(|id| items.update(tx, id, Item::COUNT.set(5)))
        });
        let held = items.read_for_update(tx, 2, Item::COUNT);
        assert!(held.is_err(), "{held:?}");
        held.map(drop)
    });
    assert_eq!(refused, Err(Abort::AttemptsExhausted));
}

protocol_tests!(overlapping: a_reaped_record_proves_no_absence_at_later_timestamps);
/// A transaction finds the record of a deleted row. Then the record is reaped, and its key is
/// inserted anew. The transaction's time moves on. The absence that the dead record shows is not
/// valid at the new time.
fn a_reaped_record_proves_no_absence_at_later_timestamps<P: Protocol>() {
    for looks_before in [false, true] {
        read_buried_rows::<P>(looks_before);
    }
}

/// Reads the deleted row by its old record: before the key is inserted again, if `looks_before`;
/// otherwise after the other row has been read.
fn read_buried_rows<P: Protocol>(looks_before: bool) {
    let db = Database::<P>::builder().manual_epochs(10).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    run(&mut first, |tx| items.insert_many(tx, [Item::new(1, 10), Item::new(2, 10)]));
    run(&mut second, |tx| items.delete(tx, 2));
    // The record can be reaped, but has not been reaped yet.
    (0..3).for_each(|_| db.inner.engine.epochs.pass());
    let linked = items.len_estimate();
    let seen = first.with(ONCE()).run(|tx| {
        let gone = items.find(tx, 2)?;
        db.inner.engine.epochs.pass();
        run(&mut second, |_| Ok(()));
        assert_eq!(items.len_estimate(), linked - 1, "it is reaped");
        let before = if looks_before { Some(gone.get(Item::COUNT)?) } else { None };
        run(&mut second, |tx| items.insert(tx, Item::new(2, 20)));
        run(&mut second, |tx| items.update(tx, 1, Item::COUNT.set(20)));
        let count = items.read(tx, 1, Item::COUNT)?;
        Ok((count, before.map_or_else(|| gone.get(Item::COUNT), Ok)?))
    });
    let is_one_moment =
        matches!(seen, Err(Abort::AttemptsExhausted) | Ok((10, None) | (20, Some(20))));
    assert!(is_one_moment, "{} {looks_before}: {seen:?}", P::NAME);
}

/// Runs the tests of this file with timestamps from the system's clock.
#[test]
fn attacks_on_linking_fail_with_timestamps_of_the_clock() {
    let all: [fn(); 5] = [
        a_guard_before_a_delete_is_evaluated_on_the_row,
        a_read_only_transaction_fails_on_rows_of_different_times,
        a_writer_of_constantly_read_rows_commits,
        a_read_only_transaction_is_unaffected_by_later_commits,
        a_holder_of_a_row_is_not_shown_an_old_version_of_it,
    ];
    by_the_clock(|| all.iter().for_each(|test| test()));
}
