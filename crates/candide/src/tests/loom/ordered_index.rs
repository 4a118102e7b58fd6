//! Scans of an ordered table, and its unique index, beside inserts and deletes.

use super::{explore, explore_as_it_is, race};
use crate::protocols::Occ;
use crate::{Abort, Database, Record, Table};

/// A small row of an ordered table with a unique index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate, ordered)]
struct Ticket {
    #[key]
    id: u64,
    #[unique(ordered)]
    seat: u64,
    price: i64,
}

/// Makes an ordered table of tickets. Ticket `id` has seat `id` and price zero. A table with an
/// index takes more than the stack that loom gives a thread.
fn tickets(
    ids: impl Iterator<Item = u64> + Clone + Send + 'static,
) -> (Database<Occ>, Table<Ticket, Occ>) {
    let builder = loom::thread::Builder::new().stack_size(1 << 18);
    builder.spawn(move || make_tickets(ids)).unwrap().join().unwrap()
}

fn make_tickets(ids: impl Iterator<Item = u64> + Clone) -> (Database<Occ>, Table<Ticket, Occ>) {
    let db = Database::<Occ>::builder().timestamp_splitting(false).build().unwrap();
    let table = db.table::<Ticket>("tickets").unwrap();
    let mut session = db.session().unwrap();
    session
        .run(|tx| table.insert_many(tx, ids.clone().map(|id| Ticket { id, seat: id, price: 0 })))
        .unwrap();
    (db, table)
}

/// Returns all tickets, in order.
fn all_tickets(db: &Database<Occ>, table: &Table<Ticket, Occ>) -> Vec<(u64, i64)> {
    let mut session = db.session().unwrap();
    session.run(|tx| table.scan(tx, .., Ticket::PRICE).collect::<Result<Vec<_>, Abort>>()).unwrap()
}

/// One transaction sums a range and writes the sum to another row. The other transaction reads that
/// sum and inserts into the range. Neither transaction can come before the other, so one of them
/// fails.
#[test]
fn loom_scan_against_insert() {
    explore(4, || {
        let (db, table) = tickets([1, 9].into_iter());
        let (first, second) = race(
            &db,
            &table,
            move |table, tx| {
                let rows = table.scan(tx, 1..5, ()).collect::<Result<Vec<_>, _>>()?.len();
                table.update(tx, 9, Ticket::PRICE.set(rows as i64))
            },
            move |table, tx| {
                let price = table.read(tx, 9, Ticket::PRICE)?;
                table.insert(tx, Ticket { id: 3, seat: 3, price })
            },
        );
        let rows = all_tickets(&db, &table);
        match (first, second) {
            // Either the scan of one row came first, and then the insert that has read the sum; or
            // the insert came first.
            (true, true) => {
                assert!(rows[1..] == [(3, 1), (9, 1)] || rows[1..] == [(3, 0), (9, 2)], "{rows:?}")
            }
            (true, false) => assert_eq!(rows[1..], [(9, 1)]),
            (false, true) => assert_eq!(rows[1..], [(3, 0), (9, 0)]),
            (false, false) => assert_eq!(rows[1..], [(9, 0)]),
        }
    });
}

/// One transaction sums a range backwards and writes the sum to another row. The other transaction
/// reads that sum and deletes from the range.
#[test]
fn loom_scan_against_delete() {
    explore(4, || {
        let (db, table) = tickets([1, 3, 9].into_iter());
        let (first, second) = race(
            &db,
            &table,
            move |table, tx| {
                let rows = table.scan_rev(tx, ..5, ()).collect::<Result<Vec<_>, _>>()?.len();
                table.update(tx, 9, Ticket::PRICE.set(rows as i64))
            },
            move |table, tx| {
                let price = table.read(tx, 9, Ticket::PRICE)?;
                table.delete(tx, 3)?;
                table.update(tx, 1, Ticket::PRICE.set(price))
            },
        );
        let rows = all_tickets(&db, &table);
        match (first, second) {
            (true, true) => {
                assert!(rows == [(1, 2), (9, 2)] || rows == [(1, 0), (9, 1)], "{rows:?}")
            }
            (true, false) => assert_eq!(rows, [(1, 0), (3, 0), (9, 2)]),
            (false, true) => assert_eq!(rows, [(1, 0), (9, 0)]),
            (false, false) => assert_eq!(rows, [(1, 0), (3, 0), (9, 0)]),
        }
    });
}

/// Two rows are inserted for one seat. Exactly one insert commits, and the index has an entry for
/// that row.
#[test]
fn loom_two_inserts_of_one_unique_key() {
    explore_as_it_is(2, || {
        let (db, table) = tickets([].into_iter());
        let insert = |table: &Table<Ticket, Occ>, tx: &crate::Tx<'_, Occ>, id| {
            match tx.attempt(|tx| table.insert(tx, Ticket { id, seat: 7, price: 0 })) {
                // The other insert was faster. In this test, the refusal counts as a conflict.
                Err(Abort::NotUnique) => Ok(()),
                result => result,
            }
        };
        race(
            &db,
            &table,
            move |table, tx| insert(table, tx, 1),
            move |table, tx| insert(table, tx, 2),
        );
        let rows = all_tickets(&db, &table);
        assert!(rows.len() <= 1, "{rows:?}");
        let mut session = db.session().unwrap();
        let by_seat = table.index(Ticket::BY_SEAT);
        let found = session.run(|tx| by_seat.get(tx, 7, Ticket::ID)).unwrap();
        assert_eq!(found, rows.first().map(|row| row.0));
    });
}
