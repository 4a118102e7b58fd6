//! Versions that are read and counted while a commit links a new one.

use super::super::rows::Item;
use super::{attempt, database, explore, explore_as_it_is, race};
use crate::Whole;
use crate::engine::Protocol;
use crate::protocols::{Mvcc, Mvto};
use crate::sync::thread;

/// Two rows change together while a reader reads one after the other. The reader does not validate
/// afterwards that both reads were at one moment.
#[test]
fn loom_two_rows_of_one_time_in_versions() {
    explore(3, || {
        let (db, table) = database::<Mvcc>(2);
        race(
            &db,
            &table,
            move |table, tx| {
                table.update(tx, 0, Item::COUNT.set(1))?;
                table.update(tx, 1, Item::COUNT.set(1))
            },
            move |table, tx| {
                let counts = [table.read(tx, 0, Item::COUNT)?, table.read(tx, 1, Item::COUNT)?];
                assert!(counts[0] == counts[1], "{counts:?}");
                Ok(())
            },
        );
    });
}

/// A row is replaced twice while an attempt that began before reads it: the attempt moves on to a
/// complete version.
#[test]
fn loom_read_against_two_installs_in_versions() {
    explore(3, || {
        let (db, table) = database::<Mvcc>(1);
        let (mut mine, mut other) = (db.session().unwrap(), db.session().unwrap());
        let inner = table.clone();
        let with = |count: u8| Item {
            id: 0,
            count: count.into(),
            small: count,
            flag: true,
            other: count.into(),
        };
        let reader = thread::spawn(move || {
            attempt(&mut other, |tx| {
                let row = inner.read(tx, 0, Whole)?;
                assert!(row == Item::new(0, 0) || row == with(1) || row == with(2), "{row:?}");
                Ok(())
            });
            drop(other);
        });
        for count in 1..=2 {
            attempt(&mut mine, |tx| table.put(tx, with(count)));
        }
        reader.join().unwrap();
    });
}

/// A row that has been written since a snapshot was opened is written again, while the snapshot
/// reads its old version.
#[test]
fn loom_looking_back_against_install_in_versions() {
    explore_as_it_is(3, || {
        let (db, table) = database::<Mvcc>(1);
        let (mut here, mut there, inner) =
            (db.session().unwrap(), db.session().unwrap(), table.clone());
        let snapshot = db.snapshot();
        assert!(attempt(&mut here, |tx| table.update(tx, 0, Item::OTHER.set(1))));
        let reader = thread::spawn(move || {
            let seen = snapshot.run_in(&mut there, |tx| inner.get(tx, 0, Whole));
            assert_eq!(seen, Ok(Some(Item::new(0, 0))));
            drop((there, snapshot));
        });
        assert!(attempt(&mut here, |tx| table.update(
            tx,
            &0,
            (Item::COUNT.set(2), Item::OTHER.set(2))
        )));
        reader.join().unwrap();
    });
}

/// A row is deleted while a reader with an older view reads it. The reader sees the whole row.
#[test]
fn loom_looking_back_against_delete_in_versions() {
    explore_as_it_is(3, || {
        let (db, table) = database::<Mvcc>(1);
        let (mut here, mut there, inner) =
            (db.session().unwrap(), db.session().unwrap(), table.clone());
        let snapshot = db.snapshot();
        let reader = thread::spawn(move || {
            let seen = snapshot.run_in(&mut there, |tx| inner.get(tx, 0, Whole));
            assert_eq!(seen, Ok(Some(Item::new(0, 0))));
            drop((there, snapshot));
        });
        assert!(attempt(&mut here, |tx| table.delete(tx, 0)));
        reader.join().unwrap();
    });
}

/// Counts the versions of a row while one is being linked: all versions are counted, or all except
/// the new one.
fn counting_against_install<P: Protocol>() {
    let (db, table) = database::<P>(1);
    let (mut here, mut there, inner) =
        (db.session().unwrap(), db.session().unwrap(), table.clone());
    let mut write =
        |count| assert!(attempt(&mut here, |tx| table.update(tx, 0, Item::COUNT.set(count))));
    write(1);
    let counting = thread::spawn(move || {
        let versions = inner.versions_of(&mut there, &0).unwrap();
        drop(there);
        versions
    });
    write(2);
    let versions = counting.join().unwrap();
    assert!(matches!(versions, Some(2 | 3)), "{versions:?}");
    assert_eq!(table.versions_of(&mut here, &0), Ok(Some(3)));
}

scenes! {
    /// Without the Acquire of the cell's word, the header of the newest version might not be
    /// visible, and the chain would seem to end there.
    loom_counting_against_install_in_versions =
        explore_as_it_is(3, counting_against_install::<Mvcc>);
    loom_counting_against_install_by_timestamps =
        explore_as_it_is(3, counting_against_install::<Mvto>);
}
