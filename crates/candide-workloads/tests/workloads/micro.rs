//! The micro-benchmarks: their checks hold after honest runs, and fail after dishonest ones.

use candide::{Abort, Database, Occ, Whole};
use candide_workloads::Workload;
use candide_workloads::micro::{
    Array, Balance, Beside, Holding, Number, Predicate, PredicateTables, Ranges, RangesTables,
};
use candide_workloads::stamp::Form;
use candide_workloads::ycsb::{Joint, Layout, Single, UserRow, Value, Values, Verify, Word, Ycsb};

use crate::common::{assert_failed, assert_holds, check, database, load, run, run_unaccounted};

/// More than cores, on machines where it matters.
const THREADS: usize = 4;

fn small<L: Layout>(published: Ycsb<L>, verify: Verify) -> Ycsb<L> {
    Ycsb { rows: published.rows.min(200), transactions: 200, verify, ..published }
}

fn ranges() -> Ranges {
    Ranges { rows: 300, read_only: 0.5, transactions: 200, ..Ranges::published() }
}

/// Balances of which some are filled up soon.
fn predicate() -> Predicate {
    Predicate { rows: 3, theta: 1.5, transactions: 200, ..Predicate::published() }
}

fn holds_everywhere(workload: &impl Workload) {
    assert_holds(workload, THREADS, 500, |_, _| {});
}

#[test]
fn key_value_presets_are_consistent_under_every_protocol_and_option() {
    for verify in [Verify::Increment, Verify::Tag] {
        for preset in [Ycsb::<Word>::index(), Ycsb::counter(), Ycsb::cc_bench()] {
            holds_everywhere(&small(preset, verify));
        }
        for preset in [Ycsb::<Single>::cicada(), Ycsb::silo()] {
            holds_everywhere(&small(preset, verify));
        }
        holds_everywhere(&small(Ycsb::<Joint>::dbx1000(), verify));
    }
}

#[test]
fn range_scans_are_consistent_under_every_protocol_and_option() {
    holds_everywhere(&ranges());
}

#[test]
fn predicate_reads_are_consistent_under_every_protocol_and_option() {
    holds_everywhere(&predicate());
    holds_everywhere(&Predicate { read_only: 0.5, ..predicate() });
}

#[test]
fn increments_of_an_array_are_consistent_under_every_protocol_and_option() {
    for form in [Form::Eager, Form::Deferred] {
        holds_everywhere(&Array { elements: 2_000, increments: 20, form });
    }
}

#[test]
fn damage_to_an_array_is_noticed() {
    let db = database(true, true);
    let knobs = Array { elements: 2_000, increments: 5, form: Form::Deferred };
    let loaded = load(&db, &knobs, 1);
    run(&db, &loaded, 1, 100);
    assert_eq!(check(&db, &loaded).failed, Vec::<String>::new());
    must(db.run(|tx| loaded.table.update(tx, 7, Number::VALUE.add(1))));
    assert_failed(&check(&db, &loaded), "numbers add up to 501");
    must(db.run(|tx| loaded.table.delete(tx, 7)));
    assert_failed(&check(&db, &loaded), "1999 numbers add up to");
}

#[test]
fn transfers_beside_reads_of_all_rows_are_consistent_under_every_protocol_and_option() {
    holds_everywhere(&Beside { rows: 100, readers: 2 });
    // The last thread writes.
    holds_everywhere(&Beside { rows: 100, readers: THREADS });
}

#[test]
fn damage_beside_reads_of_all_rows_is_noticed() {
    let db = database(true, true);
    let loaded = load(&db, &Beside { rows: 100, readers: 1 }, 1);
    run(&db, &loaded, 2, 100);
    assert_eq!(check(&db, &loaded).failed, Vec::<String>::new());
    must(db.run(|tx| loaded.table.update(tx, 7, Holding::BALANCE.add(1))));
    assert_failed(&check(&db, &loaded), "100 balances add up to 100001, and 100 to 100000");
    run(&db, &loaded, 2, 100);
    assert_failed(&check(&db, &loaded), "reads of all rows did not give 100 that add up to 100000");
}

fn must(outcome: Result<(), Abort>) {
    outcome.unwrap_or_else(|abort| panic!("{abort}"));
}

fn a_lost_word_is_noticed<L: Layout>(workload: &Ycsb<L>) {
    let db = database(true, true);
    let tables = load(&db, workload, 1);
    let first = UserRow {
        key: 0,
        columns: L::Values::from_fn(|_| {
            L::Value::from_fn(|index| if index < 8 { 0 } else { b'x' })
        }),
    };
    run(&db, &tables, 1, 500);
    assert_eq!(check(&db, &tables).failed, Vec::<String>::new());
    must(db.run(|tx| tables.table.put(tx, first)));
    assert_failed(&check(&db, &tables), "the counters add up to");
}

#[test]
fn damage_to_words_and_rows_is_noticed() {
    a_lost_word_is_noticed(&small(Ycsb::counter(), Verify::Increment));
    a_lost_word_is_noticed(&small(Ycsb::index(), Verify::Increment));
    a_lost_word_is_noticed(&small(Ycsb::cicada(), Verify::Increment));
}

fn ranged() -> (Database<Occ>, RangesTables<Occ>) {
    let db = database(true, true);
    let loaded = load(&db, &ranges(), 1);
    run(&db, &loaded, 1, 100);
    (db, loaded)
}

#[test]
fn damage_to_scanned_tables_is_noticed() {
    let (db, loaded) = ranged();
    run_unaccounted(&db, &loaded, 10);
    assert_failed(&check(&db, &loaded), "the counters add up to");

    // Scans begin at the first key more often than anywhere else.
    let db = database(true, true);
    let loaded = load(&db, &Ranges { read_only: 1.0, ..ranges() }, 1);
    run(&db, &loaded, 1, 100);
    assert_eq!(check(&db, &loaded).failed, Vec::<String>::new());
    must(db.run(|tx| {
        loaded.rows.table.modify(tx, 1, Whole, |row| row.columns = [Value::from_fn(|_| 0); 10])
    }));
    must(db.run(|tx| loaded.rows.table.delete(tx, 2)));
    run(&db, &loaded, 1, 100);
    let consistency = check(&db, &loaded);
    assert_failed(&consistency, "scans did not give");
    assert_failed(&consistency, "299 rows where 300 were loaded");
    assert_failed(
        &consistency,
        "columns hold values that no committed transaction left, the first is column 0 of row 1",
    );
}

fn looked() -> (Database<Occ>, PredicateTables<Occ>) {
    let db = database(true, true);
    let loaded = load(&db, &predicate(), 1);
    run(&db, &loaded, 1, 100);
    (db, loaded)
}

#[test]
fn damage_to_balances_is_noticed() {
    let (db, loaded) = looked();
    run_unaccounted(&db, &loaded, 1);
    assert_failed(
        &check(&db, &loaded),
        "the balances add up to 2899, and by the committed transactions to 2900",
    );

    let (db, loaded) = looked();
    let move_all = |tx: &candide::Tx<'_, Occ>| {
        loaded.table.update(tx, 0, Balance::AMOUNT.sub(1500))?;
        loaded.table.update(tx, 1, Balance::AMOUNT.add(1500))
    };
    must(db.run(move_all));
    assert_failed(&check(&db, &loaded), "2 balances are not from 10 to 1010");
    must(db.run(|tx| loaded.table.delete(tx, 2)));
    assert_failed(&check(&db, &loaded), "2 rows where 3 were loaded");
}

#[test]
fn balances_are_refilled_before_they_are_too_small() {
    let db = database(true, true);
    let loaded = load(&db, &Predicate { rows: 1, ..predicate() }, 1);
    let amount = || db.run(|tx| loaded.table.read(tx, 0, Balance::AMOUNT)).unwrap();
    run(&db, &loaded, 1, 990);
    assert_eq!(amount(), 10);
    run(&db, &loaded, 1, 1);
    assert_eq!(amount(), 1010);
    assert_eq!(check(&db, &loaded).failed, Vec::<String>::new());
}

#[test]
fn knobs_out_of_range_are_refused_with_the_range() {
    let message = Ranges { scan: 301, ..ranges() }.validate().expect_err("too long");
    assert!(message.contains("rows to scan must be from 1 to 300, not 301"), "{message}");
    let message = Predicate { read_only: 2.0, ..predicate() }.validate().expect_err("too much");
    assert!(message.contains("must be from 0 to 1, not 2"), "{message}");
    assert_eq!(Ranges::published().validate(), Ok(()));
    assert_eq!(Predicate::published().validate(), Ok(()));
}
