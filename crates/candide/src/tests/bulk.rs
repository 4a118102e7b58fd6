//! Tests of the guarantees and refusals of loading, clearing, exporting and importing many rows.

use super::rows::Item;
use crate::engine::Protocol;
use crate::protocols::{Occ, Serial, under_a_lock};
use crate::schema::RowMeta;
use crate::{Abort, Database, Error, LoadOptions, RunOptions, StreamError, Table, Tx};

fn filled<P: Protocol>(rows: u64) -> (Database<P>, Table<Item, P>) {
    let db = Database::<P>::builder().build().unwrap();
    let table = db.table::<Item>("items").unwrap();
    table.load((0..rows).map(|id| Item::new(id, id as i64)), LoadOptions::new()).unwrap();
    (db, table)
}

/// Returns all rows, in the order of their ids.
fn rows<P: Protocol>(table: &Table<Item, P>) -> Vec<Item> {
    let mut rows = Vec::new();
    table.for_each_quiescent(|row| rows.push(*row)).unwrap();
    rows.sort_unstable_by_key(|row| row.id);
    rows
}

#[test]
fn loading_inside_a_transaction_that_all_others_wait_for_is_refused() {
    let (db, table) = under_a_lock(|| filled::<Serial>(0));
    let mut session = db.session().unwrap();
    let rows = || (0..10).map(|id| Item::new(id, 0));
    let nested = Error::Load { rows: 0, cause: Abort::Nested };
    for _ in 0..2 {
        let load = |_: &Tx<'_, _>| Ok(table.load(rows(), LoadOptions::new()));
        assert_eq!(db.run(load), Ok(Err(nested.clone())));
        assert_eq!(session.run(load), Ok(Err(nested.clone())));
    }
    assert_eq!(table.load(rows(), LoadOptions::new()), Ok(10));
}

#[test]
fn an_import_that_is_refused_says_how_many_rows_there_are() {
    let (_source, from) = filled::<Occ>(2_500);
    let mut stream = Vec::new();
    from.export(&mut stream).unwrap();
    let (db, table) = filled::<Occ>(0);
    // The position of the last row of the stream. Behind the row are the checksum of its piece (one
    // word) and the end (three words).
    let last = stream.len() - 4 * 8 - 8 * (1 + crate::schema::image_words(Item::GROUPS));
    let id = u64::from_le_bytes(stream[last..last + 8].try_into().unwrap());
    assert_eq!(db.run(|tx| table.insert(tx, Item::new(id, 0))), Ok(()));
    let refused = table.import(&mut stream.as_slice());
    // Each piece is imported in one transaction. Two pieces have been imported. The third contains
    // the refused row.
    let wanted = 2 * 1_024;
    let Err(StreamError::Refused(Error::Load { rows, cause: Abort::Duplicate })) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((rows, self::rows(&table).len()), (wanted, wanted + 1));
}

#[test]
fn rows_deleted_while_a_table_grows_are_absent_in_batch_lookups() {
    // The number of rows of a step. The number is so small that no step moves a whole array of a
    // table of this size.
    const STEP: u64 = 20;
    const FIRST: u64 = 2_000;
    let db = Database::<Occ>::builder().manual_epochs(1).build().unwrap();
    let table = db.table::<Item>("items").unwrap();
    table.load((0..FIRST).map(|id| Item::new(id, id as i64)), LoadOptions::new()).unwrap();
    let [mut session, mut other] = [(); 2].map(|()| db.session().unwrap());
    for step in 0..200 {
        let first = FIRST + step * STEP;
        // Some of these inserts find that the table has to grow, and move a part of the table to
        // the new array.
        let rows = (first..first + STEP).map(|id| Item::new(id, 0));
        session.run(|tx| table.insert_many(tx, rows.clone())).unwrap();
        let keys = std::array::from_fn::<_, 8, _>(|number| step + 200 * number as u64);
        session.run(|tx| keys.iter().try_for_each(|key| table.delete(tx, key))).unwrap();
        // After some epochs the records are unlinked, but not freed, since a session might still
        // read them.
        (0..3).for_each(|_| db.inner.engine.epochs.pass());
        let found = other.run(|_| {
            session.run(|_| Ok(()))?;
            session.with(RunOptions::new().attempts_max(4)).run(|tx| {
                let found = table.find_many(tx, &keys)?;
                found.iter().map(|row| row.get(Item::COUNT)).collect::<Result<Vec<_>, Abort>>()
            })
        });
        assert_eq!(found, Ok(vec![None; 8]), "deleted with {first} rows");
    }
}
