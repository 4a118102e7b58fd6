//! Tests of rows that are written all the time. The chains of such rows stay short, whichever
//! session wrote the rows first, and whatever transactions read them meanwhile.

use crate::engine::{Absence, Due, SharedQueue, VERSIONS_AT_ONCE};
use crate::epoch::Collect;
use crate::gc::tests::parked_records::looks;
use crate::index::Found;
use crate::protocols::{Mvcc, Mvto};
use crate::sync::{Ordering, Point, with_hook};
use crate::tests::interleaving::acting;
use crate::tests::rows::Item;
use crate::tests::snapshots::{Chained, add, by_hand, collect, count, ok, versions};
use crate::{Abort, Session};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

protocol_tests!(versioned: versions_of_a_constantly_written_row_are_collected_by_its_writers);
fn versions_of_a_constantly_written_row_are_collected_by_its_writers<P: Chained>() {
    let (db, items, mut first) = by_hand::<P>();
    let mut second = db.session().unwrap();
    for _ in 0..8 {
        add(&mut first, &items, 1);
        db.inner.engine.epochs.pass();
    }
    // The session whose queue got the row first does nothing from here on.
    for _ in 0..500 {
        add(&mut second, &items, 1);
        db.inner.engine.epochs.pass();
        let versions = versions(&db, &items, 1);
        assert!(versions <= 8, "{versions} versions");
    }
    // In the end the second session does nothing, either, so the advancer has to collect.
    for _ in 0..20 {
        db.inner.engine.epochs.pass();
        db.inner.collect(db.inner.engine.epochs.now().saturating_sub(8));
    }
    assert_eq!((versions(&db, &items, 1), db.memory().garbage, db.health().garbage), (1, 0, 0));
    assert_eq!(count(&db.snapshot(), &items, 1), Some(508));
}

/// A reader may have reached a version before that version left its chain. The reader may continue
/// from there as long as it is pinned.
#[test]
fn an_inline_version_is_unchanged_until_no_reader_can_see_it() {
    let (db, items, mut session) = by_hand::<Mvto>();
    let epochs = &db.inner.engine.epochs;
    let core = items.core();
    let Found::Record(record) = core.index.find(&[1]) else { panic!("it was inserted") };
    let at = core.layout.first_of(record);
    let first = at.newest_linked(at.chain_word()).expect("it was inserted");
    let was = first.stamp();
    let reader = epochs.register();
    epochs.pin_for_memory(&reader).unwrap();
    // The second addition finds another version above the first one, so it makes a whole row.
    let add_twice = |session: &mut Session<Mvto>| (0..2).for_each(|_| add(session, &items, 1));
    for _ in 0..25 {
        add_twice(&mut session);
        collect(&db, &mut session);
        assert_eq!(versions(&db, &items, 1), 1);
    }
    assert_eq!(first.stamp(), was);
    assert_eq!(count(&db.snapshot(), &items, 1), Some(50));
    // When the reader has ended, the room is used again.
    epochs.unpin(&reader);
    collect(&db, &mut session);
    add_twice(&mut session);
    collect(&db, &mut session);
    assert!(first.stamp().ts() > was.ts());
    assert_eq!(count(&db.snapshot(), &items, 1), Some(52));
}

/// A walk through a chain, which has no latch, is interrupted by the collection of the version that
/// is next on its way.
#[test]
fn a_pinned_walk_through_a_chain_reaches_a_version_that_was_collected_meanwhile() {
    let (db, items, mut session) = by_hand::<Mvto>();
    let engine = &db.inner.engine;
    let core = items.core();
    let Found::Record(record) = core.index.find(&[1]) else { panic!("it was inserted") };
    let put = |session: &mut Session<Mvto>, count| {
        ok(session.run(|tx| items.put(tx, Item::new(1, count))));
    };
    put(&mut session, 1);
    // The version in the record leaves the chain.
    collect(&db, &mut session);
    (2..7).for_each(|count| put(&mut session, count));
    // The walk is pinned after the oldest version was replaced, and so does not see it.
    engine.epochs.pass();
    let mut counts = Vec::new();
    ok(db.run(|_| {
        Mvto::each_row(&engine.clock, core.layout.first_of(record), &mut |payload| {
            if counts == [6, 5, 4, 3] {
                collect(&db, &mut session);
                assert_eq!(versions(&db, &items, 1), 5);
            }
            counts.push(payload[0].load(Ordering::Relaxed));
        });
        Ok(())
    }));
    assert_eq!(counts, [6, 5, 4, 3, 2, 1]);
}

protocol_tests!(versioned: a_long_snapshot_keeps_only_the_versions_that_it_sees);
fn a_long_snapshot_keeps_only_the_versions_that_it_sees<P: Chained>() {
    let (db, items, mut writer) = by_hand::<P>();
    let epochs = &db.inner.engine.epochs;
    let (mut reader, busy) = (db.session().unwrap(), epochs.register());
    // The row is in the queue of the reader's session, which will collect nothing for a long time.
    add(&mut reader, &items, 1);
    let snapshot = db.snapshot();
    ok(snapshot.run_in(&mut reader, |tx| {
        assert_eq!(items.read(tx, 1, Item::COUNT)?, 1);
        for round in 0..2_000 {
            add(&mut writer, &items, 1);
            if round % 10 == 5 {
                // A row that the report does not see is inserted and deleted.
                ok(writer.run(|tx| items.insert(tx, Item::new(100, 0))));
            } else if round % 10 == 0 {
                ok(writer.run(|tx| items.delete_if_present(tx, 100).map(drop)));
            }
            epochs.pass();
            db.inner.collect(epochs.now().saturating_sub(8));
            let versions = versions(&db, &items, 1);
            assert!(versions <= 16, "{versions} versions");
        }
        let garbage = db.memory().garbage;
        assert!(garbage > 1_900, "{garbage} pieces, though a reader may still see all of them");
        assert_eq!(items.get(tx, 100, Item::COUNT)?, None);
        assert_eq!(items.read(tx, 1, Item::COUNT)?, 1);
        // Another session begins a long transaction. All garbage that need not wait is collected
        // here.
        epochs.pin(&busy);
        (0..4).for_each(|_| collect(&db, &mut writer));
        Ok(())
    }));
    // The garbage that waited for the report does not wait for this long transaction.
    let before = db.memory().garbage;
    epochs.pass();
    for _ in 0..20 {
        ok(writer.run(|_| Ok(())));
    }
    let garbage = db.memory().garbage;
    assert!(before > 1_900 && garbage < 100, "{before} pieces, and then {garbage}");
    epochs.unpin(&busy);
    epochs.unregister(&busy);
    ok(writer.run(|tx| items.delete_if_present(tx, 100).map(drop)));
    drop(snapshot);
    collect(&db, &mut writer);
    collect(&db, &mut reader);
    assert_eq!(
        (versions(&db, &items, 1), versions(&db, &items, 100), db.memory().garbage),
        (1, 0, 0)
    );
}

protocol_tests!(versioned: a_long_read_only_transaction_keeps_no_more_versions_than_a_snapshot);
fn a_long_read_only_transaction_keeps_no_more_versions_than_a_snapshot<P: Chained>() {
    let (db, items, mut writer) = by_hand::<P>();
    let epochs = &db.inner.engine.epochs;
    let mut reader = db.session().unwrap();
    ok(writer.run(|tx| items.insert(tx, Item::new(100, 3))));
    for ends in [true, false] {
        let before = count(&db.snapshot(), &items, 1);
        let ended = reader.read_view(|tx| {
            assert_eq!(items.get(tx, 1, Item::COUNT)?, before);
            // A younger snapshot is opened, so that the reader's view is not the last one of the
            // list.
            add(&mut writer, &items, 1);
            let younger = db.snapshot();
            let mut longest = 0;
            for round in 0..400 {
                add(&mut writer, &items, 1);
                if round == 300 {
                    ok(writer.run(|tx| items.delete(tx, 100)));
                }
                assert_eq!(items.get(tx, 1, Item::COUNT)?, before);
                epochs.pass();
                // The row may be in the queue of the reader's session.
                db.inner.collect(epochs.now().saturating_sub(8));
                if round > 200 {
                    longest = versions(&db, &items, 1).max(longest);
                }
            }
            assert!(longest <= 16, "{longest} versions");
            assert_eq!(
                (count(&younger, &items, 1), items.get(tx, 100, Item::COUNT)?),
                (before.map(|n| n + 1), Some(3))
            );
            assert!(db.health().oldest_snapshot.is_some_and(|oldest| oldest.age_ms >= 400));
            assert_eq!(items.delete(tx, 1), Err(Abort::ReadOnly));
            if ends { Ok(()) } else { Err(Abort::NotFound) }
        });
        assert_eq!(ended, if ends { Ok(()) } else { Err(Abort::NotFound) });
        assert_eq!(db.health().oldest_snapshot, None);
        ok(writer.run(|tx| items.put(tx, Item::new(100, 3))));
    }
    // After a panic, the reader's view is not registered any more, either.
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        reader.read_view(|tx| {
            for _ in 0..200 {
                items.get(tx, 1, Item::COUNT)?;
                epochs.pass();
            }
            assert!(db.health().oldest_snapshot.is_some());
            resume_unwind(Box::new("on purpose")) as Result<(), Abort>
        })
    }));
    assert!(unwound.is_err());
    assert_eq!(db.health().oldest_snapshot, None);
    for _ in 0..40 {
        epochs.pass();
        db.inner.collect(epochs.now().saturating_sub(8));
    }
    assert_eq!((versions(&db, &items, 1), db.memory().garbage), (1, 0));
}

protocol_tests!(versioned: short_read_only_transactions_write_no_shared_memory);
fn short_read_only_transactions_write_no_shared_memory<P: Chained>() {
    let (db, items, mut session) = by_hand::<P>();
    let mut read = |passes: u64| {
        ok(session.read_view(|tx| {
            (0..passes).for_each(|_| db.inner.engine.epochs.pass());
            for _ in 0..1_000 {
                items.get(tx, 1, Item::COUNT)?;
            }
            Ok(db.health().oldest_snapshot.map(|oldest| oldest.age_ms))
        }))
    };
    assert_eq!((read(0), read(7), read(8)), (None, None, Some(8)));
}

protocol_tests!(versioned: garbage_kept_for_snapshots_does_not_delay_garbage_of_hot_rows);
fn garbage_kept_for_snapshots_does_not_delay_garbage_of_hot_rows<P: Chained>() {
    const COLD: u64 = 2_000;
    let (db, items, mut first) = by_hand::<P>();
    let mut second = db.session().unwrap();
    ok(first.run(|tx| (4..COLD).try_for_each(|id| items.insert(tx, Item::new(id, 0)))));
    // Two old versions of each row are kept.
    let mut open = Vec::new();
    for _ in 0..2 {
        open.push(db.snapshot());
        (0..COLD).for_each(|id| add(&mut first, &items, id));
        (0..20).for_each(|_| collect(&db, &mut first));
    }
    for round in 0..300 {
        add(if round < 50 { &mut first } else { &mut second }, &items, 1);
        db.inner.engine.epochs.pass();
        let versions = versions(&db, &items, 1);
        assert!(round < 100 || versions <= 10, "{versions} versions in round {round}");
    }
    assert!((2..COLD).all(|id| versions(&db, &items, id) == 3));
}

protocol_tests!(versioned: a_long_chain_is_collected_in_bounded_steps);
fn a_long_chain_is_collected_in_bounded_steps<P: Chained>() {
    const LONG: usize = 5_000;
    let (db, items, mut writer) = by_hand::<P>();
    let epochs = &db.inner.engine.epochs;
    // A session is in a long transaction. Besides, there are twice as many snapshots as versions
    // are removed at once, and each snapshot sees another version.
    let busy = epochs.register();
    let open: Vec<_> = (0..2 * VERSIONS_AT_ONCE)
        .map(|_| {
            add(&mut writer, &items, 1);
            db.snapshot()
        })
        .collect();
    epochs.pin(&busy);
    for _ in 0..LONG {
        add(&mut writer, &items, 1);
        epochs.pass();
    }
    let left = versions(&db, &items, 1);
    assert!(left > LONG, "{left} versions");
    epochs.unpin(&busy);
    epochs.unregister(&busy);
    let (seen, steps, there) = (Rc::new(RefCell::new(Vec::new())), items.clone(), db.clone());
    let hook = {
        let seen = seen.clone();
        move |point| {
            // Between two of these points at most [`VERSIONS_AT_ONCE`] versions are removed.
            if matches!(point, Point::Collecting | Point::Pruning) {
                seen.borrow_mut().push(versions(&there, &steps, 1));
            }
        }
    };
    with_hook(hook, || (0..4).for_each(|_| collect(&db, &mut writer)));
    let seen = seen.take();
    assert!(seen.windows(2).all(|pair| pair[0] - pair[1] <= VERSIONS_AT_ONCE), "{seen:?}");
    assert_eq!(versions(&db, &items, 1), open.len() + 1);
    drop(open);
    (0..4).for_each(|_| collect(&db, &mut writer));
    assert_eq!((versions(&db, &items, 1), db.memory().garbage), (1, 0));
}

protocol_tests!(versioned: the_longest_of_many_chains_is_collected);
/// Among many hot rows, one is written far more often than the others. Within an epoch, more
/// versions are added to its chain than are removed at once. The chain is collected nevertheless.
fn the_longest_of_many_chains_is_collected<P: Chained>() {
    const HOT: u64 = 40;
    const TIMES: usize = 2 * VERSIONS_AT_ONCE;
    let (db, items, mut writer) = by_hand::<P>();
    ok(writer.run(|tx| (4..HOT).try_for_each(|id| items.insert(tx, Item::new(id, 0)))));
    for round in 0..30 {
        (0..HOT).filter(|&id| id != 1).for_each(|id| add(&mut writer, &items, id));
        (0..TIMES).for_each(|_| add(&mut writer, &items, 1));
        db.inner.engine.epochs.pass();
        let versions = versions(&db, &items, 1);
        assert!(versions <= 6 * TIMES, "{versions} versions after {round} rounds");
    }
}

/// If a collection meets a row that is being written, it leaves the row to the next collection, and
/// not to a later epoch.
#[test]
fn garbage_of_a_row_under_a_writer_is_still_due() {
    let (db, items, mut first) = by_hand::<Mvto>();
    let mut second = db.session().unwrap();
    let _old = db.snapshot();
    for _ in 0..6 {
        add(&mut first, &items, 1);
        db.inner.engine.epochs.pass();
    }
    (0..3).for_each(|_| db.inner.engine.epochs.pass());
    let there = db.clone();
    let look = move || {
        let looks = looks(|| ok(second.run(|_| Ok(()))));
        let mut due = Vec::new();
        there.inner.engine.shared_garbage.take(there.inner.engine.epochs.horizon(), 2, &mut due);
        assert_eq!((looks, due.len()), (1, 1));
        there.inner.engine.shared_garbage.put_first(&mut due);
    };
    acting(Point::Linking, look, || add(&mut first, &items, 1));
}

#[test]
fn unfinished_garbage_comes_before_garbage_that_is_not_due() {
    let (_db, items, _) = by_hand::<Mvto>();
    let Found::Record(record) = items.core().index.find(&[1]) else { panic!("it was inserted") };
    let at = items.core().layout.first_of(record);
    let due = |queued| Due { at, queued, time: 0, note: 0, is_parked: false };
    let hot = SharedQueue::default();
    hot.put(&mut vec![due(8), due(10)]);
    hot.put_first(&mut vec![due(5), due(9)]);
    let mut taken = Vec::new();
    hot.take(10, 8, &mut taken);
    assert_eq!(
        (taken.iter().map(|due| due.queued).collect::<Vec<_>>(), hot.len()),
        (vec![5, 9, 8], 1)
    );
}

/// The garbage stays bounded, even if each transaction changes more rows than one collection
/// examines.
#[test]
fn garbage_set_aside_by_large_transactions_is_bounded() {
    const ROWS: u64 = 9_000;
    let (db, items, mut session) = by_hand::<Mvcc>();
    ok(session.run(|tx| (4..ROWS).try_for_each(|id| items.insert(tx, Item::new(id, 0)))));
    for round in 0..10 {
        ok(session
            .run(|tx| (0..ROWS).try_for_each(|id| items.update(tx, &id, Item::COUNT.add(1)))));
        db.inner.engine.epochs.pass();
        let garbage = db.memory().garbage;
        assert!(garbage <= 4 * ROWS as usize, "{garbage} after {round} transactions");
    }
}

/// A snapshot is opened after a collector has listed the open snapshots. Other sessions write a hot
/// row and examine its entry. The version that the snapshot sees stays.
#[test]
fn a_snapshot_opened_during_a_collection_keeps_its_versions() {
    a_snapshot_opened_during_a_collection_keeps_its_versions_under::<Mvcc>(false);
    a_snapshot_opened_during_a_collection_keeps_its_versions_under::<Mvto>(true);
}

fn a_snapshot_opened_during_a_collection_keeps_its_versions_under<P: Chained>(shares_hot: bool) {
    const ROWS: u64 = 60;
    let (db, items, mut writer) = by_hand::<P>();
    let mut collector = db.session().unwrap();
    ok(writer.run(|tx| (4..ROWS).try_for_each(|id| items.insert(tx, Item::new(id, 0)))));
    let write_hot = |writer: &mut Session<P>| {
        for _ in 0..6 {
            add(writer, &items, 1);
            db.inner.engine.epochs.pass();
        }
    };
    // The number of rows exceeds the number examined under one pin.
    (4..ROWS).for_each(|id| add(&mut collector, &items, id));
    // This snapshot also keeps a version. Otherwise only the version of the later snapshot would
    // remain, and that version would be parked.
    let _old = db.snapshot();
    write_hot(&mut writer);
    assert_eq!(!db.inner.engine.shared_garbage.is_empty(), shares_hot, "the row is for all");
    let seen = Rc::new(RefCell::new(None));
    let hook = {
        let (db, items, seen) = (db.clone(), items.clone(), seen.clone());
        let mut is_first = true;
        move |point| {
            if point == Point::Collecting && std::mem::take(&mut is_first) {
                *seen.borrow_mut() = Some(db.snapshot());
                // The writer examines the row's entry after this addition, and so sees the new
                // version.
                add(&mut writer, &items, 1);
            }
            db.inner.engine.epochs.pass();
        }
    };
    db.inner.engine.epochs.pass();
    db.inner.engine.epochs.pass();
    with_hook(hook, || ok(collector.run(|_| Ok(()))));
    let snapshot = seen.take().expect("it has collected");
    assert_eq!((count(&snapshot, &items, 1), count(&db.snapshot(), &items, 1)), (Some(6), Some(7)));
}
