//! Interleavings that were thought up against multi-version timestamp ordering.

use super::rows::Item;
use crate::protocol::Mvto;
use crate::{Abort, Database, RunOptions, Session, Table, Tx};

type Items = Table<Item, Mvto>;

/// One attempt, so that a conflict shows.
const ONCE: fn() -> RunOptions<'static> = || RunOptions::new().attempts_max(1);

/// A database with rows 1 and 2, which count 10, and two sessions.
struct Scene {
    items: Items,
    first: Session<Mvto>,
    second: Session<Mvto>,
}

fn scene() -> Scene {
    let db = Database::<Mvto>::builder().manual_epochs(10).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let (mut first, second) = (db.session().unwrap(), db.session().unwrap());
    passes(&mut first, |tx| items.insert_many(tx, [Item::new(1, 10), Item::new(2, 10)]));
    Scene { items, first, second }
}

fn passes(session: &mut Session<Mvto>, body: impl FnMut(&Tx<'_, Mvto>) -> Result<(), Abort>) {
    assert_eq!(session.run_with(ONCE(), body), Ok(()));
}

/// A row is updated with a guard and deleted in one transaction: the guard is about the row, which is to be made of deltas first.
#[test]
fn a_guard_on_a_row_that_goes_is_asked_of_the_row() {
    for (count, outcome) in [(3, Err(Abort::Guard)), (5, Ok(()))] {
        let Scene { items, mut first, .. } = scene();
        passes(&mut first, |tx| items.update(tx, &1, Item::COUNT.set(count)));
        let deleted = first.run_with(ONCE(), |tx| {
            items.update(tx, &1, Item::COUNT.sub(5).at_least(0))?;
            items.delete(tx, &1)
        });
        assert_eq!(deleted, outcome, "{count}");
    }
}
