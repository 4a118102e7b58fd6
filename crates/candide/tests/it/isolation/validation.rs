//! Tests of transactions that run inside others and change or read the rows that those read or
//! change.

use crate::common::{CONFLICT, FEW_TIMES, Item, ONCE, database_with};
use candide::schema::{Refused, Updater};
use candide::{Abort, Column, Database, Occ, Protocol, Session, Table, Tx, Whole};
use std::cell::{Cell, RefCell};

/// A database with rows 0..4, and two sessions.
struct Scene<P: Protocol> {
    db: Database<P>,
    table: Table<Item, P>,
    first: Session<P>,
    second: Session<P>,
}

fn scene<P: Protocol>() -> Scene<P> {
    let (db, table) = database_with::<Item, P>("rows");
    db.run(|tx| (0..4).try_for_each(|id| table.insert(tx, Item::new(id, 0)))).unwrap();
    let (first, second) = (db.session().unwrap(), db.session().unwrap());
    Scene { db, table, first, second }
}

#[test]
fn own_inserts_keep_absent_reads_valid_and_inserts_of_others_do_not() {
    let Scene { table, mut first, mut second, .. } = scene::<Occ>();
    // The transaction's own inserts do not invalidate its reads of absent keys, neither of the same
    // key nor of another key in the same bucket.
    first
        .with(ONCE())
        .run(|tx| {
            for key in 100..130 {
                assert_eq!(table.get(tx, &key, Item::COUNT)?, None);
            }
            (100..130).try_for_each(|key| table.insert(tx, Item::new(key, 1)))
        })
        .unwrap();
    // But a commit by another session that inserts such a key invalidates the read, even if the
    // first transaction has linked the key's record.
    let overwritten = first.with(ONCE()).run(|tx| {
        assert_eq!(table.get(tx, 200, Item::COUNT)?, None);
        table.put(tx, Item::new(200, 1))?;
        second.run(|tx| table.insert(tx, Item::new(200, 7)))
    });
    assert_eq!(overwritten, CONFLICT);
    assert_eq!(second.run(|tx| table.read(tx, 200, Item::COUNT)), Ok(7));
}

#[test]
fn an_uncommitted_record_is_an_absence_that_is_observed() {
    let Scene { table, mut first, mut second, db } = scene::<Occ>();
    // Transaction A inserts key k, so k's record is linked. Transaction B finds k absent and writes
    // row z. A has read the old z, so A must not commit as well.
    let mut inner = Ok(());
    let outer = first.with(ONCE()).run(|tx| {
        table.insert(tx, Item::new(50, 1))?;
        let z = table.read(tx, 0, Item::COUNT)?;
        inner = second.with(ONCE()).run(|tx| {
            assert_eq!(table.get(tx, 50, Item::COUNT)?, None);
            table.update(tx, 0, Item::COUNT.set(z + 1))
        });
        Ok(())
    });
    assert!(outer == CONFLICT || inner == CONFLICT, "{outer:?} {inner:?}");
    // The other way round: a transaction that found k absent commits only if k is not inserted.
    let outer = first.with(ONCE()).run(|tx| {
        assert_eq!(table.get(tx, 60, Item::COUNT)?, None);
        db.run(|tx| table.insert(tx, Item::new(60, 1)))?;
        table.update(tx, 1, Item::COUNT.add(1))
    });
    assert_eq!(outer, CONFLICT);
    // The same holds for the record of a deleted row.
    db.run(|tx| table.insert(tx, Item::new(70, 1))).unwrap();
    db.run(|tx| table.delete(tx, 70)).unwrap();
    let outer = first.with(ONCE()).run(|tx| {
        assert_eq!(table.get(tx, 70, Item::COUNT)?, None);
        db.run(|tx| table.insert(tx, Item::new(70, 1)))?;
        table.update(tx, 1, Item::COUNT.add(1))
    });
    assert_eq!(outer, CONFLICT);
}

#[test]
fn a_delete_is_seen_by_readers_of_every_group() {
    for change in [
        |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| table.delete(tx, 0),
        |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| table.put(tx, Item::new(0, 9)),
    ] {
        let Scene { table, mut first, mut second, .. } = scene::<Occ>();
        let outer = first.with(ONCE()).run(|tx| {
            table.read(tx, 0, Item::OTHER)?;
            second.run(|tx| change(&table, tx))?;
            table.update(tx, 1, Item::COUNT.add(1))
        });
        assert_eq!(outer, CONFLICT);
    }
    // But an update of another group does not conflict.
    let Scene { table, mut first, mut second, .. } = scene::<Occ>();
    first
        .with(ONCE())
        .run(|tx| {
            table.read(tx, 0, Item::OTHER)?;
            second.run(|tx| table.update(tx, 0, Item::COUNT.add(1)))?;
            table.update(tx, 1, Item::COUNT.add(1))
        })
        .unwrap();
}

#[test]
fn existence_of_an_updated_row_is_validated_at_commit() {
    // A blind update observes nothing, but its row must exist when the update commits. An insert's
    // row must not exist when the insert commits.
    let Scene { table, mut first, mut second, .. } = scene::<Occ>();
    let outer = first.with(ONCE()).run(|tx| {
        table.update(tx, 0, Item::COUNT.add(1))?;
        second.run(|tx| table.delete(tx, 0))
    });
    assert_eq!(outer, CONFLICT);
    assert_eq!(first.run(|tx| table.update(tx, 0, Item::COUNT.add(1))), Err(Abort::NotFound));
    let outer = first.with(ONCE()).run(|tx| {
        table.insert(tx, Item::new(0, 5))?;
        second.run(|tx| table.insert(tx, Item::new(0, 6)))
    });
    assert_eq!(outer, CONFLICT);
    assert_eq!(first.run(|tx| table.insert(tx, Item::new(0, 5))), Err(Abort::Duplicate));
}

#[test]
fn results_shown_to_the_caller_are_validated() {
    let Scene { table, mut first, mut second, .. } = scene::<Occ>();
    // If an error, a panic or a missing row rests on two reads from different times, it never
    // reaches the caller.
    for kind in 0..3 {
        let attempts = Cell::new(0);
        let result = first.run(|tx| {
            attempts.set(tx.attempt_number());
            let zero = table.read(tx, 0, Item::COUNT)?;
            if tx.attempt_number() == 1 {
                second.run(|tx| {
                    table.update(tx, 0, Item::COUNT.add(1))?;
                    table.update(tx, 1, Item::COUNT.add(1))
                })?;
            }
            let one = table.get(tx, 1, Item::COUNT);
            if one != Ok(Some(zero)) {
                match kind {
                    0 => return Err(Abort::NotFound),
                    1 => panic!("never seen"),
                    _ => return Err(Abort::Duplicate),
                }
            }
            Ok(())
        });
        assert_eq!((result, attempts.get()), (Ok(()), 2));
    }
    // An error also depends on the row that an update found.
    let attempts = Cell::new(0);
    let result: Result<(), Abort> = first.run(|tx| {
        attempts.set(tx.attempt_number());
        let there = table.update_if_present(tx, 2, Item::COUNT.add(1))?;
        if tx.attempt_number() == 1 {
            second.run(|tx| table.delete(tx, 2))?;
        }
        Err(if there { Abort::Duplicate } else { Abort::NotFound })
    });
    assert_eq!((result, attempts.get()), (Err(Abort::NotFound), 2));
    // If a guard has failed before the error, the guard's failure is returned.
    let result: Result<(), Abort> = first.run(|tx| {
        table.update(tx, 3, Item::COUNT.sub(100).at_least(0))?;
        Err(Abort::NotFound)
    });
    assert_eq!(result, Err(Abort::Guard));
}

protocol_tests!(overlapping: a_loop_on_inconsistent_values_ends);
fn a_loop_on_inconsistent_values_ends<P: Protocol>() {
    let Scene { table, mut first, mut second, .. } = scene::<P>();
    // The first attempt would see different values of rows 0 and 1 for ever. The periodic
    // revalidation of the read set ends the attempt.
    first
        .run(|tx| {
            let zero = table.read(tx, 0, Item::COUNT)?;
            if tx.attempt_number() == 1 {
                second.run(|tx| {
                    table.update(tx, 0, Item::COUNT.add(1))?;
                    table.update(tx, 1, Item::COUNT.add(1))
                })?;
            }
            while table.read(tx, 1, Item::COUNT)? != zero {}
            Ok(())
        })
        .unwrap();
}

/// An updater that panics on demand.
#[derive(Debug, Clone, Copy)]
struct Panics(bool);

impl Updater<Item> for Panics {
    type Target = Column<Item, i64>;

    fn target(&self) -> Self::Target {
        Item::COUNT
    }

    fn apply(&self, count: &mut i64) -> Result<(), Refused> {
        assert!(!self.0, "deliberate");
        *count += 1;
        Ok(())
    }
}

protocol_tests!(concurrent: a_panic_undoes_the_transaction);
fn a_panic_undoes_the_transaction<P: Protocol>() {
    let Scene { table, mut first, mut second, .. } = scene::<P>();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        first.run(|tx| {
            table.update(tx, 0, Item::COUNT.add(5))?;
            table.insert(tx, Item::new(77, 1))?;
            table.update_with(tx, 1, Panics(true))?;
            table.delete(tx, 2)
        })
    }));
    assert!(caught.is_err());
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        first.run(|tx| table.modify(tx, 0, Item::COUNT, |_| -> () { panic!("deliberate") }))
    }));
    assert!(caught.is_err());
    // No row is locked, no row has changed, and both sessions can continue.
    for session in [&mut second, &mut first] {
        session
            .with(FEW_TIMES())
            .run(|tx| {
                for key in 0..4 {
                    assert_eq!(table.read(tx, &key, Whole)?, Item::new(key, 0));
                }
                assert_eq!(table.get(tx, 77, Whole)?, None);
                table.update_with(tx, 3, Panics(false))?;
                table.update(tx, 3, Item::COUNT.sub(1))
            })
            .unwrap();
    }
}

#[test]
fn blind_updates_do_not_conflict_and_none_is_lost() {
    // An update is evaluated on the row as it is when the commit has locked it, not as it was when
    // the update was made.
    let Scene { table, mut first, mut second, .. } = scene::<Occ>();
    let (inner_table, other) = (table.clone(), RefCell::new(Some(())));
    first
        .with(ONCE())
        .run(|tx| {
            table.update(tx, 0, Item::COUNT.add(1))?;
            if other.take().is_some() {
                second.run(|tx| inner_table.update(tx, 0, Item::COUNT.add(10)))?;
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(first.run(|tx| table.read(tx, 0, Item::COUNT)), Ok(11));
}
