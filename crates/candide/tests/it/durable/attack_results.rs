//! Results that rest on what is not durable yet, and must not be shown before it is.

use super::{contents, crashed, insert, open_items, options};
use crate::common::{Item, OfCount, builder, spawn};
use candide::schema::Refused;
use candide::{Abort, Database, Protocol, Table};
use candide_log_testing::SimDisk;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Opens a database whose logger begins no round unless it is asked to, with one item that is
/// committed by another thread and not durable.
fn open_with_pending_item<P: Protocol>(disk: &SimDisk) -> (Database<P>, Table<Item, P>) {
    let options = options().flush_every(Duration::from_secs(3600));
    let db = builder::<P>().open_on(Arc::new(disk.clone()), options).unwrap();
    let items = db.table::<Item>("items").unwrap();
    std::thread::scope(|scope| {
        spawn(scope, || {
            let pending = db.run_logged(|tx| items.insert(tx, Item::new(1, 5)));
            assert_eq!(pending.peek(), Ok(&()));
        });
    });
    assert_eq!(rows_after_crash::<P>(disk), 0);
    (db, items)
}

/// Returns the number of rows that a crash at this moment leaves.
fn rows_after_crash<P: Protocol>(disk: &SimDisk) -> usize {
    contents(&open_items::<P>(&crashed(disk)).1).len()
}

protocol_tests!(all: raw_iteration_shows_only_durable_rows);

fn raw_iteration_shows_only_durable_rows<P: Protocol>() {
    let disk = SimDisk::new();
    let (_db, items) = open_with_pending_item::<P>(&disk);
    let mut shown = 0;
    let rows = items.for_each_quiescent(|_| {
        assert_eq!(rows_after_crash::<P>(&disk), 1);
        shown += 1;
    });
    assert_eq!((rows.unwrap(), shown), (1, 1));
}

protocol_tests!(all: an_export_contains_only_durable_rows);

fn an_export_contains_only_durable_rows<P: Protocol>() {
    let disk = SimDisk::new();
    let (_db, items) = open_with_pending_item::<P>(&disk);
    assert_eq!(items.export(&mut Vec::new()).unwrap(), 1);
    assert_eq!(rows_after_crash::<P>(&disk), 1);
}

/// Panics.
fn panics(count: &mut i64) -> Result<(), Refused> {
    panic!("the count is {count}")
}

protocol_tests!(all: the_panic_of_an_updater_waits_for_the_rows_that_it_saw);

fn the_panic_of_an_updater_waits_for_the_rows_that_it_saw<P: Protocol>() {
    for ends_in_an_error in [false, true] {
        let disk = SimDisk::new();
        let (db, items) = open_with_pending_item::<P>(&disk);
        let ended = catch_unwind(AssertUnwindSafe(|| {
            db.run(|tx| {
                items.update_with(tx, 1, OfCount(panics))?;
                if ends_in_an_error { Err(Abort::Duplicate) } else { Ok(()) }
            })
        }));
        assert!(ended.is_err(), "{ended:?}");
        assert_eq!(rows_after_crash::<P>(&disk), 1);
        insert(&db, &items, 2, 5).unwrap();
    }
}

protocol_tests!(all: an_error_waits_for_the_assumptions_of_its_writes);

fn an_error_waits_for_the_assumptions_of_its_writes<P: Protocol>() {
    type Case<P> = fn(&Table<Item, P>, &candide::Tx<'_, P>) -> Result<(), Abort>;
    let cases: [(Case<P>, Abort); 4] = [
        // Without the row, these two would end in `NotFound`.
        (
            |items, tx| items.update(tx, 1, Item::COUNT.add(1)).and(Err(Abort::Indexed)),
            Abort::Indexed,
        ),
        (|items, tx| items.delete(tx, 1).and(Err(Abort::Indexed)), Abort::Indexed),
        (|items, tx| items.insert(tx, Item::new(1, 1)), Abort::Duplicate),
        (|items, tx| items.update(tx, 1, Item::COUNT.add(-9).at_least(0)), Abort::Guard),
    ];
    for (body, expected) in cases {
        let disk = SimDisk::new();
        let (db, items) = open_with_pending_item::<P>(&disk);
        assert_eq!(db.run(|tx| body(&items, tx)), Err(expected));
        assert_eq!(rows_after_crash::<P>(&disk), 1, "{expected:?}");
    }
}
