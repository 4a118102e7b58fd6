//! Values that belong to a running attempt.

use super::{scene, settle, table};
use crate::engine::Protocol;
use crate::tests::rows::Item;
use crate::{Abort, Database};

protocol_tests!(all: a_reference_stays_valid_after_the_attempt_writes_its_row);
fn a_reference_stays_valid_after_the_attempt_writes_its_row<P: Protocol>() {
    let (db, values, ledger) = scene::<P>();
    db.run(|tx| values.insert(tx, 1, ledger.probe())).unwrap();
    db.run(|tx| {
        let first = values.read(tx, 1)?;
        values.set(tx, 1, ledger.probe())?;
        let second = values.read(tx, 1)?;
        values.set(tx, 1, ledger.probe())?;
        let third = values.read(tx, 1)?;
        values.delete(tx, 1)?;
        assert!(values.get(tx, 1)?.is_none());
        values.put(tx, 1, ledger.probe())?;
        let fourth = values.get_for_update(tx, 1)?.unwrap();
        assert_eq!(ledger.alive().len(), 4);
        let numbers = [first, second, third, fourth].map(super::Probe::number);
        assert!(numbers.is_sorted() && numbers[0] == 0);
        Ok(())
    })
    .unwrap();
    settle(&db, &values, &ledger);
}

protocol_tests!(all: a_reference_outlives_the_part_that_staged_its_value);
fn a_reference_outlives_the_part_that_staged_its_value<P: Protocol>() {
    let (db, values, ledger) = scene::<P>();
    db.run(|tx| values.insert(tx, 1, ledger.probe())).unwrap();
    db.run(|tx| {
        let mut kept = Vec::new();
        for _ in 0..3 {
            let undone = tx.attempt(|_| {
                values.set(tx, 1, ledger.probe())?;
                values.insert(tx, 2, ledger.probe())?;
                kept.extend([values.read(tx, 1)?, values.read(tx, 2)?]);
                values.delete(tx, 1)?;
                Err::<(), _>(Abort::Guard)
            });
            assert_eq!(undone, Err(Abort::Guard));
            assert!(values.get(tx, 2)?.is_none());
        }
        assert_eq!(ledger.alive().len(), 7);
        let numbers: Vec<usize> = kept.iter().map(|value| value.number()).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        assert_eq!(values.read(tx, 1)?.number(), 0);
        // A part that stands, after one that does not.
        tx.attempt(|_| values.insert(tx, 2, ledger.probe()))?;
        let _ = tx.attempt(|_| values.delete(tx, 2).and(Err::<(), _>(Abort::Guard)));
        Ok(())
    })
    .unwrap();
    settle(&db, &values, &ledger);
    assert_eq!(ledger.alive().len(), 2);
}

protocol_tests!(all: undone_parts_replace_no_value);
fn undone_parts_replace_no_value<P: Protocol>() {
    let (db, values, ledger) = scene::<P>();
    db.run(|tx| (0..4).try_for_each(|key| values.insert(tx, key, ledger.probe()))).unwrap();
    db.run(|tx| {
        let _scan = values.iter(tx);
        let undone = tx.attempt(|_| {
            (0..3).try_for_each(|key| values.set(tx, key, ledger.probe()))?;
            values.delete(tx, 3)?;
            values.insert(tx, 4, ledger.probe())?;
            Err::<(), _>(Abort::Guard)
        });
        assert_eq!(undone, Err(Abort::Guard));
        values.set(tx, 0, ledger.probe())?;
        values.insert(tx, 4, ledger.probe())
    })
    .unwrap();
    settle(&db, &values, &ledger);
    assert_eq!(ledger.alive().len(), 5);
}

protocol_tests!(all: an_update_that_fails_at_the_commit_leaves_all_values);
fn an_update_that_fails_at_the_commit_leaves_all_values<P: Protocol>() {
    let (db, values, ledger) = scene::<P>();
    let items = db.table::<Item>("items").unwrap();
    db.run(|tx| items.insert(tx, Item::new(1, 5)).and(values.insert(tx, 1, ledger.probe())))
        .unwrap();
    for below in [true, false] {
        let ended = db.run(|tx| {
            if below {
                items.update(tx, 1, Item::COUNT.sub(9).at_least(0))?;
            }
            values.set(tx, 1, ledger.probe())?;
            values.insert(tx, 2, ledger.probe())?;
            items.update(tx, 1, Item::COUNT.sub(9).at_least(0))
        });
        assert_eq!(ended, Err(Abort::Guard));
        assert_eq!(ledger.alive().into_iter().collect::<Vec<_>>(), [0]);
    }
    // Of several values and updates, all succeed.
    db.run(|tx| {
        values.set(tx, 1, ledger.probe())?;
        items.update(tx, 1, Item::COUNT.sub(4).at_least(0))
    })
    .unwrap();
    settle(&db, &values, &ledger);
    assert_eq!(ledger.alive().len(), 1);
}

protocol_tests!(overlapping: an_attempt_that_meets_a_conflict_drops_its_values);
/// The values of the failed attempts are dropped when the transaction has ended. Their drops run
/// transactions, for which the session must be free.
fn an_attempt_that_meets_a_conflict_drops_its_values<P: Protocol>() {
    let db = std::sync::Arc::new(Database::<P>::builder().build().unwrap());
    let (values, ledger) = (table(&db), super::Ledger::default());
    let items = db.table::<Item>("items").unwrap();
    db.run(|tx| items.insert(tx, Item::new(1, 0)).and(items.insert(tx, Item::new(2, 0)))).unwrap();
    db.run(|tx| values.insert(tx, 1, ledger.probe())).unwrap();
    let mut other = db.session().unwrap();
    let (mut attempts, made) = (0, ledger.made());
    db.run(|tx| {
        attempts += 1;
        let read = items.read(tx, 1, Item::COUNT)?;
        let db = std::sync::Arc::downgrade(&db);
        values.put(
            tx,
            1,
            ledger.probe_with(move || {
                let Some(db) = db.upgrade() else { return };
                let items = db.table::<Item>("items").unwrap();
                db.run(|tx| items.update(tx, 2, Item::COUNT.add(1))).unwrap();
            }),
        )?;
        if attempts <= 3 {
            other.run(|tx| items.update(tx, 1, Item::COUNT.add(1))).unwrap();
        }
        items.update(tx, 1, Item::COUNT.set(read + 1))
    })
    .unwrap();
    assert!(attempts > 3, "the reads of the first attempts are old");
    let count = db.run(|tx| items.read(tx, 2, Item::COUNT)).unwrap();
    assert_eq!(count, attempts - 1, "a transaction runs for each value of a failed attempt");
    assert_eq!(ledger.made() - made, attempts as usize);
    drop(other);
    settle(&db, &values, &ledger);
}
