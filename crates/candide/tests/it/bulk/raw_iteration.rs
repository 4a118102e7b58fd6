//! Tests of iteration and exports outside of transactions.

use crate::common::{Coat, Item, Parcel, builder, database_with, ok, receive};
use candide::{Abort, Database, Error, Occ, Protocol, StreamError, TableOptions};
use std::thread;

// Tests of iteration outside of transactions.

protocol_tests!(overlapping: raw_iteration_is_complete_while_the_table_is_restructured);
/// An iteration whose callback changes the table.
fn raw_iteration_is_complete_while_the_table_is_restructured<P: Protocol>() {
    for ordered in [false, true] {
        let db = builder::<P>().seed(5).build().unwrap();
        let options =
            if ordered { TableOptions::default().ordered() } else { TableOptions::default() };
        let table = db.table_with::<Coat>("coats", options).unwrap();
        let mut session = db.session().unwrap();
        let row = |id| Coat { id, owner: 1, price: 2 };
        ok(session.run(|tx| (0..14).try_for_each(|id| table.insert(tx, row(id)))));
        let (mut seen, mut next) = (Vec::new(), 100);
        let counted = table.for_each_quiescent(|row| {
            if row.id < 100 {
                seen.push(*row);
            }
            if next < 1_500 {
                // The refused transaction leaves no row, but it has changed the structure of the
                // table.
                let refused = session.run(|tx| {
                    (next..next + 100)
                        .try_for_each(|id| table.insert(tx, Coat { id, owner: 1, price: 2 }))?;
                    Err::<(), _>(Abort::NotFound)
                });
                assert_eq!(refused, Err(Abort::NotFound));
                next += 100;
            }
        });
        assert_eq!(counted, Ok(14));
        seen.sort_unstable_by_key(|row| row.id);
        assert_eq!(seen, (0..14).map(row).collect::<Vec<_>>());
    }
}

/// A writer that calls a function during the export that writes to it.
struct Disturbing<F>(Vec<u8>, F);

impl<F: FnMut()> std::io::Write for Disturbing<F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        (self.1)();
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_export_has_every_row_once_or_is_refused() {
    let db = builder::<Occ>().seed(5).build().unwrap();
    let table = db.table::<Coat>("coats").unwrap();
    ok(db
        .run(|tx| (0..3_000).try_for_each(|id| table.insert(tx, Coat { id, owner: 1, price: 2 }))));
    let mut session = db.session().unwrap();
    let mut writes = 0;
    let mut to = Disturbing(Vec::new(), || {
        writes += 1;
        if writes % 500 == 0 && writes < 20_000 {
            let refused = session.run(|tx| {
                let ids = 10_000 * writes..10_000 * writes + 1_000;
                ids.into_iter()
                    .try_for_each(|id| table.insert(tx, Coat { id, owner: 1, price: 2 }))?;
                Err::<(), _>(Abort::NotFound)
            });
            assert_eq!(refused, Err(Abort::NotFound));
        }
    });
    match table.export(&mut to) {
        Ok(count) => {
            assert_eq!(count, 3_000);
            let copy = Database::new();
            let copied = copy.table::<Coat>("coats").unwrap();
            assert_eq!(copied.import(&mut &to.0[..]).unwrap(), 3_000);
        }
        Err(StreamError::Refused(Error::NotQuiescent)) => {}
        Err(other) => panic!("{other:?}"),
    }
    drop(to);
    assert_eq!(table.export(&mut Vec::new()).unwrap(), 3_000, "undisturbed");
}

protocol_tests!(all: raw_iteration_is_complete_beside_the_advancer);
fn raw_iteration_is_complete_beside_the_advancer<P: Protocol>() {
    let (db, table) = database_with::<Item, P>("rows");
    for round in 0..200 {
        db.run(|tx| (0..50).try_for_each(|key| table.put(tx, Item::new(key, round)))).unwrap();
        db.run(|tx| (10..50).try_for_each(|key| table.delete(tx, &key))).unwrap();
        assert_eq!(table.for_each_quiescent(|row| assert_eq!(row.count, round)), Ok(10));
    }
}

#[test]
fn raw_iteration_within_raw_iteration_is_refused() {
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let db = Database::new();
        let parcels = db.table::<Parcel>("parcels").unwrap();
        assert_eq!(db.run(|tx| parcels.insert(tx, Parcel::new(1, 7))), Ok(()));
        let mut inner = None;
        let outer =
            parcels.for_each_quiescent(|_| inner = Some(parcels.for_each_quiescent(|_| ())));
        sender.send((outer.ok(), matches!(inner, Some(Err(Error::NotQuiescent))))).unwrap();
    });
    assert_eq!(receive("the outer iteration ends", &receiver), (Some(1), true));
}
