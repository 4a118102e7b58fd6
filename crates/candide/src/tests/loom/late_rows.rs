//! Rows whose keys their commits compute, beside transactions that look for these keys.

use super::super::late_rows::{find_and_write, read_and_append, scene};
use super::{count, explore, race};
use crate::engine::Protocol;
use crate::protocols::{Mvcc, Occ, TicToc};

/// A transaction looks for the key of a late row, between the link and the end of the row's commit
/// or before.
fn late_link<P: Protocol>() {
    let (db, table) = scene::<P>();
    let (found, appended) = race(
        &db,
        &table,
        |table, tx| find_and_write(table, tx),
        |table, tx| read_and_append(table, tx),
    );
    if found && appended {
        let rows = count(&db, &table, [0, 9]);
        assert!(rows == [5, 0] || rows == [1, 1], "{rows:?}");
    }
}

/// Two transactions append to one sequence.
fn two_late_links<P: Protocol>() {
    let (db, table) = scene::<P>();
    let (first, second) = race(
        &db,
        &table,
        |table, tx| read_and_append(table, tx),
        |table, tx| read_and_append(table, tx),
    );
    let appended = i64::from(first) + i64::from(second);
    assert_eq!(count(&db, &table, [1]), [9 + appended]);
    for id in 9..9 + appended as u64 {
        assert_eq!(count(&db, &table, [id]), [0]);
    }
}

scenes! {
    loom_late_link = explore(3, late_link::<Occ>);
    loom_late_link_in_timestamp_order = explore(3, late_link::<TicToc>);
    loom_late_link_in_versions = explore(3, late_link::<Mvcc>);
    loom_two_late_links = explore(3, two_late_links::<Occ>);
    loom_two_late_links_in_timestamp_order = explore(3, two_late_links::<TicToc>);
    loom_two_late_links_in_versions = explore(3, two_late_links::<Mvcc>);
}
