//! YCSB on strings of any length: its checks hold after honest runs, and fail after dishonest ones.

use candide::{Database, Occ, Whole};
use candide_workloads::ycsb::{Mode, StringsRow, StringsTables, Verify, Ycsb, YcsbStrings};

use crate::common::{
    assert_failed, assert_holds, assert_refused, check, honest, run_unaccounted, sorted,
};

fn knobs(verify: Verify) -> Ycsb {
    Ycsb { rows: 103, transactions: 200, verify, ..Ycsb::published(Mode::A) }
}

fn strings(verify: Verify) -> YcsbStrings {
    YcsbStrings::new(knobs(verify))
}

/// Transactions before any damage is done.
const STEPS: usize = 300;

#[test]
fn strings_are_consistent_under_every_protocol_and_option() {
    for verify in [Verify::Values, Verify::Tag] {
        assert_holds(&strings(verify), 2, 400, |_, _| {});
    }
}

#[test]
fn strings_get_the_bytes_of_columns_of_fixed_length() {
    for verify in [Verify::Values, Verify::Tag] {
        let (_fixed_db, fixed) = honest(&knobs(verify), STEPS);
        let (_db, tables) = honest(&strings(verify), STEPS);
        let fixed = sorted(&fixed.table, |row| row.key);
        let rows = sorted(&tables.table, |row| row.key);
        assert_eq!(rows.len(), 103);
        for (row, fixed) in rows.iter().zip(fixed) {
            let [first, second, last] = [0, 1, 9].map(|column| fixed.columns[column]);
            let StringsRow { key, c0, c1, c9, .. } = row;
            assert_eq!((*key, c0.as_bytes(), c1.as_bytes(), c9.as_bytes()), {
                (fixed.key, &first[..], &second[..], &last[..])
            });
        }
    }
}

fn change(
    db: &Database<Occ>,
    tables: &StringsTables<Occ>,
    key: u64,
    change: impl Fn(&mut StringsRow),
) {
    db.run(|tx| tables.table.modify(tx, key, Whole, &change)).expect("there is such a row");
}

#[test]
fn damage_to_strings_is_noticed() {
    let (db, tables) = honest(&strings(Verify::Tag), STEPS);
    run_unaccounted(&db, &tables, 50);
    assert_failed(&check(&db, &tables), "that no committed transaction left");

    let (db, tables) = honest(&strings(Verify::Tag), STEPS);
    change(&db, &tables, 7, |row| row.c4.replace_range(99.., "?"));
    assert_failed(&check(&db, &tables), "the first is column 4 of row 7");

    let (db, tables) = honest(&strings(Verify::Values), STEPS);
    change(&db, &tables, 7, |row| row.c3 = "-".repeat(100));
    assert_failed(&check(&db, &tables), "the first is column 3 of row 7");

    let (db, tables) = honest(&strings(Verify::Counts), STEPS);
    db.run(|tx| tables.table.delete(tx, 7)).expect("there is such a row");
    assert_failed(&check(&db, &tables), "rows where");
}

#[test]
fn strings_have_no_counters() {
    assert_refused([(strings(Verify::Increment), "a string has no counter")]);
}
