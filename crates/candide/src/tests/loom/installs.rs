//! Rows that are read while a commit installs them: all words are of one version.

use super::super::rows::Item;
use super::{attempt, database, explore, explore_as_it_is, race};
use crate::Whole;
use crate::engine::Protocol;
use crate::protocols::{Mvcc, Mvto, Occ, TicToc};
use crate::sync::thread;

/// Reads a row while another one replaces it.
fn read_against_install<P: Protocol>() {
    let (db, table) = database::<P>(1);
    let new = Item { id: 0, count: 1, small: 1, flag: true, other: 1 };
    race(
        &db,
        &table,
        move |table, tx| table.put(tx, new),
        move |table, tx| {
            let row = table.read(tx, 0, Whole)?;
            assert!(row == new || row == Item::new(0, 0), "{row:?}");
            Ok(())
        },
    );
}

scenes! {
    /// A reader sees all words of one version, though a version is being installed meanwhile.
    loom_read_against_install = explore(5, read_against_install::<Occ>);
    loom_read_against_install_in_timestamp_order = explore(4, read_against_install::<TicToc>);
    loom_read_against_install_in_versions = explore(3, read_against_install::<Mvcc>);
    loom_read_against_install_by_timestamps = explore(3, read_against_install::<Mvto>);
}

/// Reads columns one by one while their row is replaced.
fn columns_against_install<P: Protocol>() {
    let (db, table) = database::<P>(1);
    let old = Item::new(0, 0);
    race(
        &db,
        &table,
        move |table, tx| table.update(tx, 0, (Item::COUNT.set(1), Item::OTHER.set(1))),
        move |table, tx| {
            let columns = table.read(tx, 0, (Item::COUNT, Item::OTHER))?;
            assert!(columns == (1, 1) || columns == (old.count, old.other), "{columns:?}");
            Ok(())
        },
    );
}

scenes! {
    loom_columns_against_install = explore(4, columns_against_install::<Occ>);
    loom_columns_against_install_in_versions = explore(3, columns_against_install::<Mvcc>);
    loom_columns_against_install_by_timestamps = explore(3, columns_against_install::<Mvto>);
}

/// Changes columns of two rows, one row after the other, while a reader reads them by single reads
/// in the opposite order.
fn single_reads_against_installs<P: Protocol>() {
    let (db, table) = database::<P>(2);
    let old = Item::new(0, 0);
    let (mut here, mut there, inner) =
        (db.session().unwrap(), db.session().unwrap(), table.clone());
    let reader = thread::spawn(move || {
        let [second, first] = [1, 0].map(|id| {
            let columns =
                inner.get_now(&mut there, &id, (Item::COUNT, Item::OTHER)).unwrap().unwrap();
            assert!(columns == (1, 1) || columns == (old.count, old.other), "{columns:?}");
            columns.0
        });
        assert!(!P::STRICT || second <= first, "installs are seen in their order");
        drop(there);
    });
    let update = (Item::COUNT.set(1), Item::OTHER.set(1));
    (0..2).for_each(|id| assert!(attempt(&mut here, |tx| table.update(tx, &id, update))));
    reader.join().unwrap();
}

scenes! {
    loom_single_reads_against_installs = explore_as_it_is(3, single_reads_against_installs::<Occ>);
    loom_single_reads_against_installs_in_timestamp_order =
        explore_as_it_is(3, single_reads_against_installs::<TicToc>);
    loom_single_reads_against_installs_in_versions =
        explore_as_it_is(3, single_reads_against_installs::<Mvcc>);
}

/// Reads a held row while its holder installs: all words are of one version.
fn read_against_a_holder_that_installs<P: Protocol>() {
    let (db, table) = database::<P>(1);
    let new = Item { id: 0, count: 1, small: 1, flag: true, other: 1 };
    race(
        &db,
        &table,
        move |table, tx| {
            table.read_for_update(tx, 0, Item::COUNT)?;
            table.put(tx, new)
        },
        move |table, tx| {
            let row = table.read(tx, 0, Whole)?;
            assert!(row == new || row == Item::new(0, 0), "{row:?}");
            Ok(())
        },
    );
}

scenes! {
    loom_read_against_a_holder_that_installs =
        explore(4, read_against_a_holder_that_installs::<Occ>);
    loom_read_against_a_holder_that_installs_in_timestamp_order =
        explore(4, read_against_a_holder_that_installs::<TicToc>);
}
