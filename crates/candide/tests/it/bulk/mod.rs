//! Tests of many rows at once: reads into buffers, loading, clearing, exporting, importing, and
//! iteration without transactions.

mod bytes;
mod loading;
mod raw_iteration;
mod streams;
#[cfg(feature = "text")]
mod text;

use crate::common::{Item, database_with};
use candide::{Database, LoadOptions, Protocol, Table};

/// Builds a database with a table of `rows` items.
fn filled<P: Protocol>(rows: u64) -> (Database<P>, Table<Item, P>) {
    let (db, table) = database_with::<Item, P>("items");
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
