//! Tests of rows whose keys their commits compute.

#[cfg(not(any(loom, shuttle, sanitized)))]
mod commits;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod costs;

use super::rows::Item;
use crate::engine::Protocol;
use crate::schema::RowWriter;
use crate::{Abort, Database, Table, Tx};

/// Appends an item under the key that is the count of item 1.
pub(super) fn append<P: Protocol>(
    table: &Table<Item, P>,
    tx: &Tx<'_, P>,
    count: i64,
) -> Result<(), Abort> {
    let core = table.core();
    let mut image = vec![0; core.layout.unit_words().sum()];
    Item::COUNT.put(&mut RowWriter::new(&mut image), &count);
    let state = &mut *tx.state.borrow_mut();
    let record = state.record_for(tx.engine, core, &[1])?.record;
    state.append(tx.engine, core, core.layout.first_of(record), &image)
}

/// Returns a database with item 0, of count 0, and item 1, the base, of count 9.
pub(super) fn scene<P: Protocol>() -> (Database<P>, Table<Item, P>) {
    let db = Database::<P>::builder().timestamp_splitting(false).build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    let mut session = db.session().unwrap();
    session
        .run(|tx| {
            [0, 9]
                .into_iter()
                .zip(0..)
                .try_for_each(|(count, id)| table.insert(tx, Item::new(id, count)))
        })
        .unwrap();
    drop(session);
    (db, table)
}

/// Reads item 0, and appends an item with its count.
pub(super) fn read_and_append<P: Protocol>(
    table: &Table<Item, P>,
    tx: &Tx<'_, P>,
) -> Result<(), Abort> {
    let count = table.read(tx, 0, Item::COUNT)?;
    append(table, tx, count)
}

/// Looks for item 9, and writes into item 0 whether it is there.
pub(super) fn find_and_write<P: Protocol>(
    table: &Table<Item, P>,
    tx: &Tx<'_, P>,
) -> Result<(), Abort> {
    let is_there = table.get(tx, 9, ())?.is_some();
    table.update(tx, 0, Item::COUNT.set(if is_there { 5 } else { 1 }))
}
