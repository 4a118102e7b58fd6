//! Tests of deltas that are merged into the rows below them, and of rows that return to their
//! records.

use super::deltas::{Items, Scene, chain, scene};
use crate::access::{Intent, WriteSet};
use crate::epoch::Collect;
use crate::index::Found;
use crate::protocols::Mvto;
use crate::record::CellAt;
use crate::schema::{Code, Key, Op};
use crate::sync::{AtomicU64, Ordering, Point};
use crate::tests::interleaving::acting;
use crate::tests::rows::Item;
use crate::tests::snapshots::collect;
use crate::tests::transactions::{CONFLICT, ONCE, run};
use crate::{Abort, Session, Tx};
use std::sync::mpsc::channel;

fn cell(items: &Items) -> CellAt {
    let core = items.core();
    let Found::Record(record) = core.index.find(1u64.words().as_ref()) else { panic!("no record") };
    core.layout.first_of(record)
}

fn is_in_record(items: &Items) -> bool {
    let at = cell(items);
    at.block_of_linked(at.newest_linked(at.chain_word()).expect("it was inserted")).is_none()
}

fn update(session: &mut Session<Mvto>, items: &Items, how: usize) {
    run(session, |tx| match how {
        0 => items.update(tx, 1, Item::COUNT.wrapping_add(1)),
        1 => items.update(tx, 1, Item::COUNT.add(1)),
        _ => items.modify(tx, 1, Item::COUNT, |count| *count += 1),
    });
}

#[test]
fn a_rarely_updated_row_stays_inline() {
    let Scene { db, items, mut first, .. } = scene();
    for how in (0..3).cycle().take(30) {
        update(&mut first, &items, how);
        assert_eq!(chain(&items), [true, false], "{how}");
        collect(&db, &mut first);
        assert_eq!((chain(&items), is_in_record(&items)), (vec![false], true), "{how}");
    }
    assert_eq!(run(&mut first, |tx| items.read(tx, 1, Item::COUNT)), 40);
}

#[test]
fn a_row_returns_inline_into_its_record() {
    for how in 0..3 {
        let Scene { db, items, mut first, .. } = scene();
        // A delta that is read in between becomes a row in its place.
        update(&mut first, &items, how);
        assert_eq!(run(&mut first, |tx| items.read(tx, 1, Item::COUNT)), 11);
        collect(&db, &mut first);
        assert!(!is_in_record(&items), "{how}");
        collect(&db, &mut first);
        update(&mut first, &items, how);
        collect(&db, &mut first);
        assert_eq!((chain(&items), is_in_record(&items)), (vec![false], true), "{how}");
        assert_eq!(run(&mut first, |tx| items.read(tx, 1, Item::COUNT)), 12);
    }
}

#[test]
fn a_snapshot_keeps_a_delta_from_being_merged() {
    let Scene { db, items, mut first, .. } = scene();
    let snapshot = db.snapshot();
    let read = |tx: &Tx<'_, Mvto>| items.read(tx, 1, Item::COUNT);
    for how in 0..3 {
        update(&mut first, &items, how);
        collect(&db, &mut first);
        assert_eq!(snapshot.run(read), Ok(10), "{how}");
    }
    drop(snapshot);
    collect(&db, &mut first);
    assert_eq!((chain(&items), db.run(read)), (vec![false], Ok(13)));
}

/// A transaction queues the row and fails. Another one has drawn an earlier timestamp, and links
/// its delta when a third transaction has begun and has read the row below. The delta is committed
/// later than the entry was queued, so the reader may still be copying that row.
#[test]
fn merging_a_delta_does_not_change_the_row_of_an_earlier_reader() {
    let Scene { db, items, mut first, mut second } = scene();
    run(&mut first, |tx| items.insert(tx, Item::new(2, 0)));
    collect(&db, &mut first);
    let mut reader = db.session().unwrap();
    let rows = items.clone();
    let ((drawn, has_drawn), (go, may_go)) = (channel(), channel());
    let late = std::thread::spawn(move || {
        let wait = move || {
            drawn.send(()).unwrap();
            may_go.recv().unwrap();
        };
        acting(Point::Unlocked, wait, || update(&mut second, &rows, 0));
    });
    has_drawn.recv().unwrap();
    let refused = first.with(ONCE()).run(|tx| {
        items.update(tx, 1, Item::COUNT.wrapping_add(100))?;
        items.update(tx, 2, Item::COUNT.sub(1).at_least(0))
    });
    assert_eq!(refused, Err(Abort::Guard));
    let epochs = &db.inner.engine.epochs;
    epochs.pass();
    let mut late = Some(late);
    let read = reader.with(ONCE()).run(|tx| {
        let at = cell(&items);
        let seen = at.newest_linked(at.chain_word()).expect("it was inserted");
        let was = seen.stamp();
        assert_eq!(items.read(tx, 1, Item::COUNT)?, 10);
        go.send(()).unwrap();
        late.take().expect("the transaction runs once").join().unwrap();
        assert_eq!(chain(&items), [true, false]);
        for _ in 0..4 {
            epochs.pass();
            db.inner.collect(epochs.now());
        }
        assert_eq!(chain(&items), [false], "the entry is due");
        assert_eq!(seen.stamp(), was);
        Ok(())
    });
    assert_eq!(read, CONFLICT);
    assert_eq!(run(&mut first, |tx| items.read(tx, 1, Item::COUNT)), 11);
}

/// The room in the record may be another commit's, so it does not stand in for a missing row.
#[test]
fn an_update_that_replaces_a_unit_is_evaluated_without_its_old_words() {
    let Scene { items, .. } = scene();
    let at = cell(&items);
    let mut writes = WriteSet::default();
    let words = at.payload_words();
    let whole = writes.push_operands((0..words).map(|word| word as u64));
    let put = Op { operand: whole, ..Op::set_words(0, words as u16) };
    writes.stage(at, Intent::Put, put);
    let operand = writes.push_operands([7, 0, 0].into_iter());
    writes.stage(at, Intent::Update, Op { code: Code::Max, operand, ..Op::set_words(0, 1) });
    assert!(writes.items()[0].needs_image);
    assert!(writes.evaluate(|_| panic!("the old words do not matter"), |_| 0).is_ok());
    let payload: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(u64::MAX)).collect();
    writes.install(0, &payload);
    let stored = payload.iter().map(|word| word.load(Ordering::Relaxed));
    assert!(stored.eq([7].into_iter().chain(1..words as u64)));
}
