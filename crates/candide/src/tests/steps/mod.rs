//! Tests of steps where they meet the rest of the engine: other operations on their rows, reads,
//! failures, histories, and the log.

mod costs;
mod drops;
mod endings;
mod failures;
mod in_step;
mod operations;
mod recorded;
mod unreadable;

use super::properties;
use super::rows::Item;
use crate::engine::Protocol;
use crate::{Abort, Database, Later, Session, Table, Tx, Whole};

/// A database with the items 0 to 3, whose counts are 0, 10, 20 and 30.
struct Scene<P: Protocol> {
    items: Table<Item, P>,
    session: Session<P>,
    db: Database<P>,
}

impl<P: Protocol> Scene<P> {
    fn new() -> Scene<P> {
        let db = Database::<P>::builder().build().unwrap();
        let items = db.table::<Item>("items").unwrap();
        let mut session = db.session().unwrap();
        let rows = (0..4).map(|id| Item::new(id, id as i64 * 10));
        session.run(|tx| items.insert_many(tx, rows.clone())).unwrap();
        Scene { items, session, db }
    }

    /// Runs a transaction, and returns its result.
    fn run<T>(
        &mut self,
        mut body: impl FnMut(&Table<Item, P>, &Tx<'_, P>) -> Result<T, Abort>,
    ) -> Result<T, Abort> {
        let Scene { items, session, .. } = self;
        session.run(|tx| body(items, tx))
    }

    /// Returns an item, outside of the transactions that are tested.
    fn item(&mut self, id: u64) -> Option<Item> {
        self.run(|items, tx| items.get(tx, id, Whole)).unwrap()
    }

    fn count(&mut self, id: u64) -> Option<i64> {
        self.item(id).map(|item| item.count)
    }
}

/// Defers a step that multiplies the count of an item, and returns the product.
fn multiply<P: Protocol>(
    items: &Table<Item, P>,
    tx: &Tx<'_, P>,
    id: u64,
    by: i64,
) -> Result<Later<i64>, Abort> {
    items.defer(tx, id, Item::COUNT, (), move |count, ()| {
        *count *= by;
        *count
    })
}
