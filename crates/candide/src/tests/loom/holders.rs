//! Reads for update, whose transactions hold rows before they commit.

use super::super::rows::Item;
use super::{count, database, explore, race};
use crate::engine::Protocol;
use crate::protocols::{Mvto, Occ, TicToc};

/// Runs write skew with a holder. The first transaction holds row one, reads row two, and writes
/// row one. The second transaction reads row one and writes row two. Without INSTALL before the
/// holder's fence, both would see the old row.
fn held_write_skew<P: Protocol>() {
    let (db, table) = database::<P>(2);
    race(
        &db,
        &table,
        move |table, tx| {
            table.read_for_update(tx, 0, Item::COUNT)?;
            let one = table.read(tx, 1, Item::COUNT)?;
            table.update(tx, 0, Item::COUNT.set(one + 1))
        },
        move |table, tx| {
            let zero = table.read(tx, 0, Item::COUNT)?;
            table.update(tx, 1, Item::COUNT.set(zero + 1))
        },
    );
    let rows = count(&db, &table, [0, 1]);
    assert_ne!(rows, [1, 1], "both committed after reading what the other replaced");
}

scenes! {
    loom_held_write_skew = explore(4, held_write_skew::<Occ>);
    loom_held_write_skew_by_timestamps = explore(2, held_write_skew::<Mvto>);
    loom_held_write_skew_in_timestamp_order = explore(4, held_write_skew::<TicToc>);
}

/// Runs a read for update, followed by a write, against a blind update of the same row. The writes
/// of both transactions take effect.
fn held_against_a_blind_update<P: Protocol>() {
    let (db, table) = database::<P>(1);
    let (first, second) = race(
        &db,
        &table,
        move |table, tx| {
            let count = table.read_for_update(tx, 0, Item::COUNT)?;
            table.update(tx, 0, Item::COUNT.set(count + 1))
        },
        move |table, tx| table.update(tx, 0, Item::COUNT.add(10)),
    );
    assert_eq!(count(&db, &table, [0]), [i64::from(first) + 10 * i64::from(second)]);
}

scenes! {
    loom_held_against_a_blind_update = explore(4, held_against_a_blind_update::<Occ>);
    loom_held_against_a_blind_update_in_timestamp_order =
        explore(4, held_against_a_blind_update::<TicToc>);
}

/// Lets two sessions hold one row, one after the other. One session releases the row without
/// writing it, and writes another row. The second holder sees the first holder's write.
fn two_holders_of_one_row<P: Protocol>() {
    let (db, table) = database::<P>(2);
    let (first, second) = race(
        &db,
        &table,
        move |table, tx| {
            let count = table.read_for_update(tx, 0, Item::COUNT)?;
            table.update(tx, 0, Item::COUNT.set(count + 1))
        },
        move |table, tx| {
            let count = table.read_for_update(tx, 0, Item::COUNT)?;
            table.update(tx, 1, Item::COUNT.set(count + 10))
        },
    );
    let rows = count(&db, &table, [0, 1]);
    match (first, second) {
        (true, true) => assert!(rows == [1, 10] || rows == [1, 11], "{rows:?}"),
        (first, second) => assert_eq!(rows, [i64::from(first), 10 * i64::from(second)]),
    }
}

scenes! {
    loom_two_holders_of_one_row = explore(4, two_holders_of_one_row::<Occ>);
    loom_two_holders_of_one_row_in_timestamp_order = explore(4, two_holders_of_one_row::<TicToc>);
}
