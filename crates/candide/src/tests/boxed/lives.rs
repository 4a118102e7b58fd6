//! Values that commits install, replace and delete.

use super::{scene, settle};
use crate::engine::Protocol;
use crate::{Abort, Tx};

protocol_tests!(all: a_value_is_dropped_once_when_it_is_replaced_or_deleted);
protocol_tests!(
    erased: a_value_is_dropped_once_under_a_protocol_chosen_at_run_time =
        a_value_is_dropped_once_when_it_is_replaced_or_deleted()
);
fn a_value_is_dropped_once_when_it_is_replaced_or_deleted<P: Protocol>() {
    let (db, values, ledger) = scene::<P>();
    db.run(|tx| (0..8).try_for_each(|key| values.insert(tx, key, ledger.probe()))).unwrap();
    settle(&db, &values, &ledger);
    db.run(|tx| values.set(tx, 0, ledger.probe())).unwrap();
    db.run(|tx| values.put(tx, 1, ledger.probe())).unwrap();
    db.run(|tx| values.put(tx, 8, ledger.probe())).unwrap();
    let old = db.run(|tx| Ok(values.replace(tx, 2, ledger.probe())?.number())).unwrap();
    assert_eq!(old, 2);
    db.run(|tx| {
        values.replace_with(tx, 3, |old| {
            assert_eq!(old.number(), 3);
            ledger.probe()
        })
    })
    .unwrap();
    db.run(|tx| values.delete(tx, 4)).unwrap();
    assert_eq!(db.run(|tx| values.delete_if_present(tx, 4)), Ok(false));
    settle(&db, &values, &ledger);
    assert_eq!(ledger.alive().len(), 8);
    // Back and forth: the record of the deleted row is used again, or another one is made.
    for _ in 0..20 {
        db.run(|tx| values.insert(tx, 4, ledger.probe())).unwrap();
        db.run(|tx| values.delete(tx, 4)).unwrap();
        db.run(|tx| values.put(tx, 4, ledger.probe())).unwrap();
        db.run(|tx| values.delete(tx, 4)).unwrap();
    }
    settle(&db, &values, &ledger);
    assert_eq!(ledger.alive().len(), 8);
}

protocol_tests!(all: an_attempt_that_writes_a_unit_repeatedly_installs_its_last_value);
fn an_attempt_that_writes_a_unit_repeatedly_installs_its_last_value<P: Protocol>() {
    let (db, values, ledger) = scene::<P>();
    db.run(|tx| (0..6).try_for_each(|key| values.insert(tx, key, ledger.probe()))).unwrap();
    let last = db.run(|tx| {
        values.set(tx, 0, ledger.probe())?;
        values.set(tx, 0, ledger.probe())?;
        values.delete(tx, 1)?;
        values.insert(tx, 1, ledger.probe())?;
        values.set(tx, 2, ledger.probe())?;
        values.delete(tx, 2)?;
        values.insert(tx, 9, ledger.probe())?;
        values.set(tx, 9, ledger.probe())?;
        values.insert(tx, 10, ledger.probe())?;
        values.delete(tx, 10)?;
        values.insert(tx, 11, ledger.probe())?;
        values.delete(tx, 11)?;
        values.insert(tx, 11, ledger.probe())?;
        // The scans see the rows as they are when the scans are made, so what follows is kept apart
        // from what came before.
        let mut before = values.iter(tx);
        values.delete(tx, 3)?;
        values.insert(tx, 3, ledger.probe())?;
        values.set(tx, 4, ledger.probe())?;
        let _between = values.iter(tx);
        values.set(tx, 4, ledger.probe())?;
        values.delete(tx, 5)?;
        let _last = values.iter(tx);
        values.put(tx, 5, ledger.probe())?;
        let seen: Result<Vec<(u64, usize)>, Abort> =
            before.by_ref().map(|row| row.map(|(key, value)| (key, value.number()))).collect();
        let seen = seen?;
        assert_eq!(seen.iter().map(|row| row.0).collect::<Vec<_>>(), [0, 1, 3, 4, 5, 9, 11]);
        assert_eq!(seen[2..5], [(3, 3), (4, 4), (5, 5)]);
        Ok(values.read(tx, 5)?.number())
    });
    assert_eq!(last, Ok(ledger.made() - 1));
    settle(&db, &values, &ledger);
    assert_eq!(ledger.alive().len(), 7);
    settle(&db, &values, &ledger);
}

protocol_tests!(overlapping: a_tombstone_has_no_value);
/// A pinned transaction keeps the records of the deleted rows where they are. So the inserts find
/// them, with the words of the values that the deletes have replaced.
fn a_tombstone_has_no_value<P: Protocol>() {
    let (db, values, ledger) = scene::<P>();
    let mut other = db.session().unwrap();
    db.run(|tx| (0..9).try_for_each(|key| values.insert(tx, key, ledger.probe()))).unwrap();
    db.run(|_| {
        let mut write = |body: &mut dyn FnMut(&Tx<'_, P>) -> Result<(), Abort>| {
            assert_eq!(other.run(body), Ok(()));
        };
        write(&mut |tx| (0..9).try_for_each(|key| values.delete(tx, key)));
        write(&mut |tx| (0..3).try_for_each(|key| values.insert(tx, key, ledger.probe())));
        write(&mut |tx| (3..6).try_for_each(|key| values.put(tx, key, ledger.probe())));
        write(&mut |tx| (0..6).try_for_each(|key| values.delete(tx, key)));
        write(&mut |tx| (0..9).try_for_each(|key| values.put(tx, key, ledger.probe())));
        Ok(())
    })
    .unwrap();
    drop(other);
    settle(&db, &values, &ledger);
    assert_eq!(ledger.alive().len(), 9);
}

protocol_tests!(all: values_that_no_commit_installs_are_dropped_at_the_end_of_the_transaction);
fn values_that_no_commit_installs_are_dropped_at_the_end_of_the_transaction<P: Protocol>() {
    let (db, values, ledger) = scene::<P>();
    db.run(|tx| values.insert(tx, 1, ledger.probe())).unwrap();
    let alive = || ledger.alive().into_iter().collect::<Vec<_>>();
    let refused = db.run(|tx| values.insert(tx, 1, ledger.probe()));
    assert_eq!((refused, alive()), (Err(Abort::Duplicate), vec![0]));
    assert_eq!(db.run(|tx| values.insert_if_absent(tx, 1, ledger.probe())), Ok(false));
    assert_eq!(alive(), [0]);
    let refused = db.run(|tx| values.set(tx, 2, ledger.probe()));
    assert_eq!((refused, alive()), (Err(Abort::NotFound), vec![0]));
    let ended = db.run(|tx| {
        values.set(tx, 1, ledger.probe())?;
        values.insert(tx, 2, ledger.probe())?;
        values.delete(tx, 1)?;
        Err::<(), _>(Abort::Guard)
    });
    assert_eq!((ended, alive()), (Err(Abort::Guard), vec![0]));
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        db.run(|tx| -> Result<(), Abort> {
            values.set(tx, 1, ledger.probe())?;
            std::panic::resume_unwind(Box::new("a panic"))
        })
    }));
    assert_eq!((panics.is_err(), alive()), (true, vec![0]));
    assert_eq!(db.read_view(|tx| values.put(tx, 3, ledger.probe())), Err(Abort::ReadOnly));
    assert_eq!(alive(), [0]);
    settle(&db, &values, &ledger);
}

protocol_tests!(all: each_of_many_inserted_and_deleted_values_is_dropped_once);
/// The values of many commits wait for an epoch to pass, some of them for one another.
fn each_of_many_inserted_and_deleted_values_is_dropped_once<P: Protocol>() {
    let (db, values, ledger) = scene::<P>();
    let mut session = db.session().unwrap();
    for round in 0..300u64 {
        session
            .run(|tx| {
                (0..4).try_for_each(|key| match (round + key) % 3 {
                    0 => values.put(tx, key, ledger.probe()),
                    1 => values.delete_if_present(tx, key).map(drop),
                    _ => values.insert_if_absent(tx, key, ledger.probe()).map(drop),
                })
            })
            .unwrap();
    }
    drop(session);
    settle(&db, &values, &ledger);
}
