//! Tests of deferred operations: their results, their order, what they may not do, and what is
//! dropped when.

mod drops;
mod inserts;
mod long;
mod misuse;
mod now;
mod numbers;
mod parts;
mod results;

use crate::common::{Item, database_with, ok, properties};
use candide::{Abort, Database, Later, Protocol, Table, Tx};

/// Builds a database with the items 0 to 4, whose counts are 0, 10, 20 and so on.
fn items<P: Protocol>() -> (Database<P>, Table<Item, P>) {
    let (db, items) = database_with::<Item, P>("items");
    ok(db.run(|tx| items.insert_many(tx, (0..5).map(|id| Item::new(id, id as i64 * 10)))));
    (db, items)
}

/// Returns whether the protocol applies operations at once, and so runs steps at once.
fn runs_at_once<P: Protocol>() -> bool {
    matches!(properties::<P>().name, "serial" | "global-lock")
}

fn count<P: Protocol>(db: &Database<P>, items: &Table<Item, P>, id: u64) -> i64 {
    ok(db.run(|tx| items.read(tx, id, Item::COUNT)))
}

/// Defers the addition of `more` to the count of an item, and returns the sum.
fn add<P: Protocol>(
    tx: &Tx<'_, P>,
    items: &Table<Item, P>,
    id: u64,
    more: i64,
) -> Result<Later<i64>, Abort> {
    items.defer(tx, id, Item::COUNT, (), move |count, ()| {
        *count += more;
        *count
    })
}
