//! The workloads over two tables: their checks hold after honest runs, and fail after dishonest
//! ones.

use std::time::Duration;

use candide::{Abort, Protocol, Whole};
use candide_workloads::two_tables::{LongScan, Shifting};
use candide_workloads::ycsb::{Joint, UserRow, Value};
use candide_workloads::{Loaded, Workload};

use crate::common::{
    UnderEach, assert_failed, assert_holds, assert_refused, check, database, database_of, honest,
    load, run, run_unaccounted, switches, threads_of, under_each,
};

/// More than cores, on machines where it matters.
const THREADS: usize = 4;

fn long_scan() -> LongScan {
    LongScan { rows: 500, scan: 100, transactions: 100, ..LongScan::published() }
}

/// The counters of the small table's row.
fn counted(row: &UserRow<Joint>) -> u64 {
    row.columns.iter().map(Value::head).sum()
}

struct LongScansCount;

impl UnderEach for LongScansCount {
    fn run<P: Protocol>(&self, policy: &P::Policy) {
        let threads = threads_of::<P>(policy, THREADS);
        let db = database_of::<P>(policy.clone(), true, true);
        let loaded = load(&db, &long_scan(), threads);
        run(&db, &loaded, threads, 100);
        let mut found = Vec::new();
        loaded
            .tables
            .small
            .table
            .for_each_quiescent(|row| found.push(counted(row)))
            .expect("nothing runs");
        assert_eq!(found, [threads as u64 * 100], "{}", db.properties().name);
    }
}

#[test]
fn long_scans_are_consistent_under_every_protocol_and_option() {
    for for_update in [false, true] {
        let scans = LongScan { for_update, ..long_scan() };
        assert_holds(&scans, THREADS, 100, |committed, all| assert_eq!(committed, all));
    }
    under_each(&LongScansCount);
}

fn must(outcome: Result<(), Abort>) {
    outcome.unwrap_or_else(|abort| panic!("{abort}"));
}

#[test]
fn scans_without_a_write_and_writes_that_were_lost_are_noticed() {
    let (db, loaded) = honest(&long_scan(), 100);
    run_unaccounted(&db, &loaded, 1);
    assert_failed(
        &check(&db, &loaded),
        "small table: read by transactions: the counters add up to 101",
    );

    let (db, loaded) = honest(&long_scan(), 100);
    let small = &loaded.tables.small.table;
    let before = db.run(|tx| small.read(tx, 0, Whole)).unwrap();
    run(&db, &loaded, 1, 10);
    must(db.run(|tx| small.put(tx, before)));
    assert_failed(&check(&db, &loaded), "the counters add up to 100, committed were 110");
}

#[test]
fn damage_to_the_large_table_is_noticed() {
    let (db, loaded) = honest(&long_scan(), 100);
    let large = &loaded.tables.large.table;
    must(db.run(|tx| large.modify(tx, 7, Whole, |row| row.columns[3] = Value::from_fn(|_| 1))));
    assert_failed(&check(&db, &loaded), "large table: read by raw iteration: 1 columns hold");
}

#[test]
fn a_scan_that_misses_a_row_is_noticed() {
    let (db, loaded) = honest(&LongScan { scan: 500, ..long_scan() }, 100);
    let large = &loaded.tables.large.table;
    must(db.run(|tx| large.delete(tx, 7)));
    run(&db, &loaded, 1, 3);
    let consistency = check(&db, &loaded);
    assert_failed(&consistency, "3 scans did not give 500 rows");
    assert_failed(
        &consistency,
        "large table: read by transactions: 499 rows where 500 were loaded",
    );
}

#[test]
fn knobs_out_of_range_are_refused_with_the_range() {
    let refused = [
        (LongScan { rows: 0, ..long_scan() }, "rows must be from 1"),
        (LongScan { scan: 501, ..long_scan() }, "rows to scan must be from 1 to 500, not 501"),
        (LongScan { transactions: 0, ..long_scan() }, "at least one"),
    ];
    assert_refused(refused);
    assert_eq!(LongScan::published().validate(), Ok(()));
}

fn shifting() -> Shifting {
    Shifting { rows: 100, transactions: 200, ..Shifting::published() }
}

struct ShiftsHold;

impl UnderEach for ShiftsHold {
    fn run<P: Protocol>(&self, policy: &P::Policy) {
        let threads = threads_of::<P>(policy, THREADS);
        for (updates, splitting) in switches::<P>("shifting", policy) {
            let db = database_of::<P>(policy.clone(), updates, splitting);
            let loaded = load(&db, &shifting(), threads);
            let mut modified = 0;
            for phase in 0..4 {
                loaded.enter_phase(phase);
                let committed = run(&db, &loaded, threads, 100);
                assert_eq!(committed, threads * 100);
                modified += committed * (phase % 2);
            }
            let consistency = check(&db, &loaded);
            assert_eq!(
                consistency.failed,
                Vec::<String>::new(),
                "{}, {updates}, {splitting}",
                db.properties().name
            );
            let mut found = Vec::new();
            loaded
                .tables
                .small
                .table
                .for_each_quiescent(|row| found.push(counted(row)))
                .expect("nothing runs");
            assert_eq!(
                found,
                [modified as u64],
                "one more for each transaction of every other phase"
            );
        }
    }
}

#[test]
fn shifting_is_consistent_under_every_protocol_and_option() {
    under_each(&ShiftsHold);
}

#[test]
fn damage_to_the_rows_of_shifting_is_noticed() {
    let db = database(true, true);
    let loaded = load(&db, &shifting(), 1);
    loaded.enter_phase(1);
    run(&db, &loaded, 1, 10);
    run_unaccounted(&db, &loaded, 1);
    assert_failed(
        &check(&db, &loaded),
        "small table: read by raw iteration: the counters add up to 11",
    );

    let large = &loaded.tables.large.table;
    must(db.run(|tx| {
        large.modify(tx, 7, Whole, |row| row.columns = [Value::from_fn(|index| index as u8); 10])
    }));
    run(&db, &loaded, 1, 200);
    let consistency = check(&db, &loaded);
    assert_failed(&consistency, "large table: read by transactions: 10 columns hold");
    assert_failed(&consistency, "reads saw a mix of two writes");
}

#[test]
fn phases_and_reads_out_of_range_are_refused_with_the_range() {
    let refused = [
        (Shifting { reads: 65, ..shifting() }, "from 1 to 64"),
        (Shifting { rows: 19, ..shifting() }, "rows must be from 20"),
        (Shifting { slice: Duration::ZERO, ..shifting() }, "longer than zero"),
        (
            Shifting { slice: Duration::from_secs(1), ..shifting() },
            "no longer than the phase of 100ms",
        ),
    ];
    assert_refused(refused);
    assert_eq!(Shifting::published().validate(), Ok(()));
}
