//! Values that open snapshots see.

use super::{Ledger, Values, scene, settle};
use crate::tests::snapshots::Chained;
use crate::tests::waiting::eventually;
use crate::{Abort, Snapshot};

/// Checks that snapshots still see the values that they saw when they were opened.
fn check<P: Chained>(
    values: &Values<P>,
    ledger: &Ledger,
    snapshots: &[(Snapshot<P>, Option<usize>)],
) {
    let seen = snapshots.iter().filter_map(|(_, seen)| *seen);
    assert!(seen.into_iter().all(|seen| ledger.is_alive(seen)), "a snapshot sees what is gone");
    for (snapshot, seen) in snapshots {
        let now = snapshot.run(|tx| Ok(values.get(tx, 1)?.map(|value| value.number())));
        assert_eq!(now, Ok(*seen));
    }
}

protocol_tests!(versioned: a_snapshot_keeps_the_values_that_it_sees_and_no_others);
fn a_snapshot_keeps_the_values_that_it_sees_and_no_others<P: Chained>() {
    let (db, values, ledger) = scene::<P>();
    let mut snapshots = Vec::new();
    db.run(|tx| values.insert(tx, 1, ledger.probe())).unwrap();
    for round in 0..6usize {
        let seen = db.run(|tx| Ok(values.get(tx, 1)?.map(|value| value.number()))).unwrap();
        snapshots.push((db.snapshot(), seen));
        // Of the next values, snapshots see only the last one.
        for _ in 0..4 {
            db.run(|tx| values.put(tx, 1, ledger.probe())).unwrap();
            match round % 2 {
                0 => db.run(|tx| values.set(tx, 1, ledger.probe())).unwrap(),
                _ => db.run(|tx| values.delete(tx, 1)).unwrap(),
            }
        }
        eventually("the drop of what no snapshot sees", || {
            check(&values, &ledger, &snapshots);
            db.run(|_| Ok(())).unwrap();
            let newest = db.run(|tx| Ok(values.get(tx, 1)?.map(|value| value.number()))).unwrap();
            let mut seen: Vec<usize> =
                snapshots.iter().filter_map(|(_, seen)| *seen).chain(newest).collect();
            seen.sort_unstable();
            seen.dedup();
            ledger.alive().into_iter().collect::<Vec<_>>() == seen
        });
    }
    // Closed in an order of their own.
    for place in [3, 0, 2, 2, 0, 0] {
        let (snapshot, _) = snapshots.remove(place);
        drop(snapshot);
        check(&values, &ledger, &snapshots);
        db.run(|_| Ok(())).unwrap();
    }
    settle(&db, &values, &ledger);
}

protocol_tests!(versioned: a_read_view_keeps_its_values_while_others_write);
/// The reader is older than the commits, and is not a snapshot before it has read much.
fn a_read_view_keeps_its_values_while_others_write<P: Chained>() {
    let (db, values, ledger) = scene::<P>();
    let mut writer = db.session().unwrap();
    db.run(|tx| (0..100).try_for_each(|key| values.insert(tx, key, ledger.probe()))).unwrap();
    db.read_view(|tx| {
        let first = values.read(tx, 0)?;
        let mut scan = values.scan(tx, ..);
        for round in 0..20 {
            writer.run(|tx| {
                (0..100).try_for_each(|key| match (key + round) % 3 {
                    0 => values.put(tx, key, ledger.probe()),
                    1 => values.delete_if_present(tx, key).map(drop),
                    _ => values.insert_if_absent(tx, key, ledger.probe()).map(drop),
                })
            })?;
            for expected in 5 * round..5 * round + 5 {
                let (key, value) = scan.next().unwrap()?;
                assert_eq!((key, value.number()), (expected, expected as usize));
            }
        }
        assert_eq!(first.number(), 0);
        Ok(())
    })
    .unwrap();
    drop(writer);
    settle(&db, &values, &ledger);
}

protocol_tests!(versioned: a_database_with_garbage_of_snapshots_drops_all_values);
fn a_database_with_garbage_of_snapshots_drops_all_values<P: Chained>() {
    let (db, values, ledger) = scene::<P>();
    db.run(|tx| (0..20).try_for_each(|key| values.insert(tx, key, ledger.probe()))).unwrap();
    let first = db.snapshot();
    db.run(|tx| (0..20).try_for_each(|key| values.set(tx, key, ledger.probe()))).unwrap();
    let second = db.snapshot();
    for _ in 0..10 {
        db.run(|tx| (0..20).try_for_each(|key| values.set(tx, key, ledger.probe()))).unwrap();
        db.run(|tx| (0..9).try_for_each(|key| values.delete_if_present(tx, key).map(drop)))
            .unwrap();
        db.run(|tx| (0..9).try_for_each(|key| values.put(tx, key, ledger.probe()))).unwrap();
        std::thread::yield_now();
    }
    db.run(|tx| (0..9).try_for_each(|key| values.delete(tx, key))).unwrap();
    drop(db);
    let sum = |tx: &crate::Tx<'_, P>| -> Result<usize, Abort> {
        values.iter(tx).map(|row| Ok(row?.1.number())).sum()
    };
    assert_eq!(first.run(|tx| sum(tx)), Ok((0..20).sum()));
    assert_eq!(second.run(|tx| sum(tx)), Ok((20..40).sum()));
    drop((values, first));
    assert!(ledger.alive().len() >= 20, "the second snapshot keeps the database");
    drop(second);
    assert_eq!(ledger.alive().len(), 0);
}
