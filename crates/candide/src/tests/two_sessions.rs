//! A table and two sessions whose transactions interleave.

use super::rows::Item;
use super::transactions::ONCE;
use crate::engine::Protocol;
use crate::{Abort, Builder, Database, Session, Table, Tx};

/// A database in epoch 1 with rows 0..4 of count zero, and two sessions that have not committed.
pub(super) struct Scene<P: Protocol> {
    pub(super) db: Database<P>,
    pub(super) table: Table<Item, P>,
    pub(super) first: Session<P>,
    pub(super) second: Session<P>,
}

pub(super) fn scene<P: Protocol>() -> Scene<P> {
    scene_of(Database::builder())
}

/// Returns the scene with a database of these options.
pub(super) fn scene_of<P: Protocol>(builder: Builder<P>) -> Scene<P> {
    let db = builder.manual_epochs(1).build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    db.run(|tx| (0..4).try_for_each(|id| table.insert(tx, Item::new(id, 0)))).unwrap();
    let (first, second) = (db.session().unwrap(), db.session().unwrap());
    Scene { db, table, first, second }
}

/// Runs one attempt of a transaction. If it meets a conflict, returns the conflict's cause as the
/// error.
pub(super) fn once<T, P: Protocol>(
    session: &mut Session<P>,
    body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
) -> Result<T, Abort> {
    let ended = session.with(ONCE()).run(body);
    ended.map_err(|abort| session.last_conflict().map_or(abort, |conflict| conflict.cause))
}

/// Reads the count of row `from`, and sets the count of row `to` to one more.
pub(super) fn read_then_write<P: Protocol>(
    table: &Table<Item, P>,
    tx: &Tx<'_, P>,
    from: u64,
    to: u64,
) -> Result<(), Abort> {
    let count = table.read(tx, from, Item::COUNT)?;
    table.update(tx, to, Item::COUNT.set(count + 1))
}
