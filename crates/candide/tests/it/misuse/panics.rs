//! Tests of panics in a program's own code.

use crate::common::{Item, OfCount, Parcel, database_with};
use candide::schema::Refused;
use candide::{Abort, Database, LoadOptions, Protocol};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// An error type. Its conversion from the engine's error panics.
#[derive(Debug)]
struct Bomb;

impl From<Abort> for Bomb {
    fn from(abort: Abort) -> Bomb {
        panic!("deliberate: {abort}");
    }
}

protocol_tests!(all: a_panic_in_a_conversion_or_updater_leaves_later_transactions_unaffected);
fn a_panic_in_a_conversion_or_updater_leaves_later_transactions_unaffected<P: Protocol>() {
    // The conversion of an outcome is the user's code, and may panic. The attempt has ended by
    // then.
    let (db, table) = database_with::<Item, P>("rows");
    db.run(|tx| table.insert(tx, Item::new(1, 0))).unwrap();
    let caught = catch_unwind(AssertUnwindSafe(|| {
        db.try_run(|tx| table.update(tx, 1, Item::COUNT.sub(500).at_least(0)).map_err(|_| Bomb))
            .is_ok()
    }));
    assert!(caught.is_err());
    assert_eq!(db.run(|tx| table.update(tx, 1, Item::COUNT.add(1))), Ok(()));
    assert_eq!(db.run(|tx| table.read(tx, 1, Item::COUNT)), Ok(1));
    // A panic of an updater ends the transaction, even if the closure catches the panic.
    let caught = catch_unwind(AssertUnwindSafe(|| {
        db.run(|tx| {
            let _ = catch_unwind(AssertUnwindSafe(|| table.update_with(tx, 1, OfCount(boom))));
            table.update(tx, 1, Item::OTHER.add(1))
        })
    }));
    assert!(caught.is_err());
    assert_eq!(db.run(|tx| table.read(tx, 1, Item::OTHER)), Ok(100));
}

/// Always panics.
fn boom(_: &mut i64) -> Result<(), Refused> {
    panic!("deliberate");
}

#[test]
fn a_load_does_not_call_an_iterator_after_its_panic() {
    let db = Database::new();
    let parcels = db.table::<Parcel>("parcels").unwrap();
    let asked = AtomicUsize::new(0);
    let rows = (1..=5_000).map(|number| {
        asked.fetch_add(1, Ordering::SeqCst);
        assert!(number != 600, "deliberate");
        Parcel::new((number / 1_000) as u8, number as u16)
    });
    let options = LoadOptions::new().workers(std::num::NonZeroUsize::new(3).unwrap());
    let loaded =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| parcels.load(rows, options)));
    assert!(loaded.is_err());
    assert_eq!(asked.load(Ordering::SeqCst), 600);
}
