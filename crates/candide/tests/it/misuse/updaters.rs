//! Tests of updaters that refuse, and of updaters that are wrong.

use crate::common::{Item, Seat, database_with, ok, scene, seat};
use candide::schema::{Refused, Updater};
use candide::{Abort, Column, IndexOptions, Protocol};
use std::panic::{AssertUnwindSafe, catch_unwind};

protocol_tests!(all: a_refused_update_has_no_partial_effect);
fn a_refused_update_has_no_partial_effect<P: Protocol>() {
    let (db, table) = scene::<P>();
    ok(db.run(|tx| table.insert(tx, seat(1, 5, 0))));
    table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
    ok(db.run(|tx| {
        let refused = table.update(tx, &(1, 5), (Seat::PRICE.add(1), Seat::OWNER.set(7)));
        assert_eq!(refused, Err(Abort::Indexed));
        Ok(())
    }));
    assert_eq!(ok(db.run(|tx| table.read(tx, &(1, 5), Seat::PRICE))), 0);
}

/// An updater that adds a number, and refuses to go beyond ten, though it declares that it never
/// fails.
#[derive(Debug, Clone, Copy)]
struct Bold(i64);

impl Updater<Item> for Bold {
    type Target = Column<Item, i64>;
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        Item::COUNT
    }

    fn apply(&self, count: &mut i64) -> Result<(), Refused> {
        *count += self.0;
        if *count > 10 { Err(Refused) } else { Ok(()) }
    }
}

protocol_tests!(all: an_updater_declared_total_that_fails_is_refused);
fn an_updater_declared_total_that_fails_is_refused<P: Protocol>() {
    let (db, table) = database_with::<Item, P>("items");
    let count = || db.run(|tx| table.read(tx, 1, Item::COUNT));
    assert_eq!(db.run(|tx| table.insert(tx, Item::new(1, 0))), Ok(()));
    assert_eq!(db.run(|tx| table.update_with(tx, 1, Bold(7))), Ok(()));
    let bold = || catch_unwind(AssertUnwindSafe(|| db.run(|tx| table.update_with(tx, 1, Bold(7)))));
    let looks = || {
        catch_unwind(AssertUnwindSafe(|| {
            db.run(|tx| {
                table.update_with(tx, 1, Bold(7))?;
                table.read(tx, 1, Item::COUNT).map(drop)
            })
        }))
    };
    let refusals = match P::NAME {
        // The failure of a deferred update is found only after the transaction has returned.
        "mvto" => {
            assert!(matches!(bold(), Ok(Ok(()))));
            vec![looks()]
        }
        _ => vec![bold(), looks()],
    };
    for refused in refusals {
        let panic = refused.expect_err("it said it never would");
        assert!(
            panic.downcast_ref::<&str>().is_some_and(|message| message.contains("declared total"))
        );
        assert_eq!(count(), Ok(7));
    }
}
