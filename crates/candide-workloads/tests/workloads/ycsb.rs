//! YCSB's checks hold after honest runs, and fail after dishonest ones.

use candide::{Bytes, Database, Occ, Whole};
use candide_workloads::Workload;
use candide_workloads::ycsb::{Mode, UserRow, Verify, Writes, Ycsb, YcsbTables};

use crate::common::{
    assert_failed, assert_holds, assert_refused, assert_same_remains, check, database, honest,
    load, run, run_unaccounted,
};

const VERIFICATIONS: [Verify; 4] = [Verify::Counts, Verify::Values, Verify::Increment, Verify::Tag];

/// Contended enough that two threads conflict all the time.
fn knobs(verify: Verify) -> Ycsb {
    Ycsb { rows: 203, transactions: 500, verify, ..Ycsb::published(Mode::A) }
}

#[test]
fn ycsb_is_consistent_under_every_protocol_and_option() {
    for verify in VERIFICATIONS {
        assert_holds(&knobs(verify), 2, 1_000, |_, _| {});
    }
}

#[test]
fn transactions_of_every_mode_run() {
    for operations in [1, 2, 3, 15, 16, 17, 39, 64] {
        for (sorted, distinct) in [(true, true), (false, true), (true, false), (false, false)] {
            let db = database(true, true);
            let knobs = Ycsb { operations, sorted, distinct, ..knobs(Verify::Tag) };
            let tables = load(&db, &knobs, 2);
            run(&db, &tables, 2, 100);
            assert_eq!(check(&db, &tables).failed, Vec::<String>::new(), "{knobs:?}");
        }
    }
}

/// Transactions before any damage is done.
const STEPS: usize = 1_000;

/// The row that is written most.
fn hottest(db: &Database<Occ>, tables: &YcsbTables<Occ>) -> UserRow {
    let mut session = db.session().expect("a session");
    session.run(|tx| tables.table.read(tx, 0, Whole)).unwrap()
}

fn put(db: &Database<Occ>, tables: &YcsbTables<Occ>, row: UserRow) {
    let mut session = db.session().expect("a session");
    session.run(|tx| tables.table.put(tx, row)).unwrap();
}

#[test]
fn ycsb_check_finds_unaccounted_commits() {
    let (db, tables) = honest(&knobs(Verify::Increment), STEPS);
    run_unaccounted(&db, &tables, 100);
    assert_failed(&check(&db, &tables), "the counters add up to");

    let (db, tables) = honest(&knobs(Verify::Tag), STEPS);
    run_unaccounted(&db, &tables, 100);
    assert_failed(&check(&db, &tables), "that no committed transaction left");
}

#[test]
fn a_lost_update_is_noticed() {
    let (db, tables) = honest(&knobs(Verify::Increment), STEPS);
    let before = hottest(&db, &tables);
    run(&db, &tables, 1, 100);
    put(&db, &tables, before);
    assert_failed(&check(&db, &tables), "the counters add up to");
}

#[test]
fn a_write_that_outlives_a_later_one_is_noticed() {
    let (db, tables) = honest(&knobs(Verify::Tag), STEPS);
    let before = hottest(&db, &tables);
    run(&db, &tables, 1, 100);
    put(&db, &tables, before);
    assert_failed(&check(&db, &tables), "that no committed transaction left");
}

#[test]
fn a_column_of_two_halves_is_noticed_by_the_check_and_by_readers() {
    let (db, tables) = honest(&knobs(Verify::Tag), STEPS);
    let mut row = hottest(&db, &tables);
    let halves = [row.columns[0], row.columns[1]];
    row.columns[0] = Bytes::from_fn(|index| halves[usize::from(index >= 50)].as_bytes()[index]);
    put(&db, &tables, row);
    assert_failed(&check(&db, &tables), "the first is column 0 of row 0");

    row.columns = [row.columns[0]; 10];
    put(&db, &tables, row);
    run(&db, &tables, 1, 100);
    assert_failed(&check(&db, &tables), "reads saw a mix of two writes");
}

#[test]
fn damage_to_values_and_missing_rows_are_noticed() {
    let (db, tables) = honest(&knobs(Verify::Values), STEPS);
    let mut row = hottest(&db, &tables);
    row.columns[3] = Bytes::from_fn(|_| 0);
    put(&db, &tables, row);
    assert_failed(&check(&db, &tables), "the first is column 3 of row 0");

    for verify in VERIFICATIONS {
        let (db, tables) = honest(&knobs(verify), STEPS);
        let mut session = db.session().expect("a session");
        session.run(|tx| tables.table.delete(tx, 7)).unwrap();
        drop(session);
        assert_failed(&check(&db, &tables), "202 rows where 203 were loaded");
    }
}

#[test]
fn one_thread_leaves_ycsb_in_the_same_state_under_every_protocol_and_option() {
    assert_same_remains::<_, Vec<_>>(&knobs(Verify::Values), 1_000);
}

#[test]
fn knobs_out_of_range_are_refused_with_the_range() {
    let valid = knobs(Verify::Values);
    let refused = [
        (Ycsb { operations: 0, ..valid.clone() }, "from 1 to 64"),
        (Ycsb { operations: 65, ..valid.clone() }, "from 1 to 64"),
        (Ycsb { rows: 15, ..valid.clone() }, "rows must be from 16"),
        (Ycsb { writes: Writes::Probability(1.5), ..valid.clone() }, "from 0 to 1"),
        (Ycsb { theta: f64::NAN, ..valid.clone() }, "from 0 (uniform) to 2"),
        (Ycsb { transactions: 0, ..valid.clone() }, "at least one"),
    ];
    assert_refused(refused);
    assert_eq!(valid.validate(), Ok(()));
}
