//! YCSB with narrow columns, with three timestamps to a row, and on a few rows: their checks hold
//! after honest runs, and fail after dishonest ones.

use candide::{Database, Occ, Protocol, Whole};
use candide_workloads::ycsb::{
    Access, Contention, Joint, Layout, Mode, Narrow, UserRow, Value, Values, Verify, WideInThirds,
    Writes, Ycsb, YcsbTables,
};
use candide_workloads::{Loaded, Worker};

use crate::common::{
    Remains, assert_failed, assert_holds, assert_refused, assert_same_remains, check, database,
    honest, load, run, run_unaccounted, sorted,
};

/// More than cores, on machines where it matters.
const THREADS: usize = 4;

fn narrow(contention: Contention, verify: Verify) -> Ycsb<Narrow> {
    Ycsb { rows: 103, transactions: 200, verify, ..Ycsb::granularity(contention) }
}

fn hot(modifications: usize, verify: Verify) -> Ycsb<Joint> {
    Ycsb { transactions: 200, verify, ..Ycsb::hot(modifications) }
}

#[test]
fn narrow_rows_are_consistent_under_every_protocol_and_option() {
    let kinds = [Contention::High, Contention::Medium, Contention::ReadOnly];
    let verifications = [Verify::Counts, Verify::Values, Verify::Increment, Verify::Tag];
    let workloads: Vec<_> = kinds
        .iter()
        .flat_map(|&contention| verifications.map(|verify| narrow(contention, verify)))
        .collect();
    for workload in workloads {
        assert_holds(&workload, THREADS, 200, |_, _| {});
    }
}

#[test]
fn rows_with_three_timestamps_are_consistent_under_every_protocol_and_option() {
    assert_eq!(WideInThirds::GROUPS.len(), 3);
    for verify in [Verify::Increment, Verify::Tag] {
        let workload =
            Ycsb { rows: 103, transactions: 200, verify, ..Ycsb::published(Mode::A) }.in_thirds();
        assert_eq!(workload.name, "ycsb-a");
        assert_holds(&workload, THREADS, 200, |_, _| {});
    }
}

#[test]
fn hot_rows_are_consistent_under_every_protocol_and_option() {
    let mut workloads: Vec<_> =
        [0, 1, 5, 10].map(|modifications| hot(modifications, Verify::Increment)).into();
    workloads.push(hot(10, Verify::Tag));
    workloads.push(Ycsb { ordered: true, ..hot(5, Verify::Tag) });
    workloads.push(Ycsb { access: Access::Modify, ..hot(5, Verify::Increment) });
    workloads.push(Ycsb { for_update: true, ..hot(5, Verify::Increment) });
    for workload in workloads {
        assert_holds(&workload, THREADS, 200, |_, _| {});
    }
}

#[test]
fn a_hot_transaction_writes_its_number_of_hot_rows() {
    for modifications in [0, 1, 3, 10] {
        let db = database(true, true);
        let tables = load(&db, &hot(modifications, Verify::Increment), 2);
        let committed = run(&db, &tables, 2, 300);
        assert_eq!(committed, 600);
        let mut increments = 0;
        let count = |row: &UserRow<Joint>| {
            increments += row.columns.iter().map(|column| head(column.bytes())).sum::<u64>();
        };
        tables.table.for_each_quiescent(count).expect("nothing runs");
        assert_eq!(increments, (committed * modifications) as u64);

        let mut worker = tables.worker(db.session().expect("a session"), 0);
        let kind = worker.step().expect("no surprises").kind;
        assert_eq!(kind, usize::from(modifications > 0), "the first kind only reads");
    }
}

fn head(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes or more"))
}

/// Transactions before any damage is done.
const STEPS: usize = 300;

fn row_of<L: Layout>(db: &Database<Occ>, tables: &YcsbTables<Occ, L>, key: u64) -> UserRow<L> {
    let mut session = db.session().expect("a session");
    session.run(|tx| tables.table.read(tx, &key, Whole)).unwrap()
}

/// Every check that a layout has notices the damage that it is there for.
fn damage_is_noticed<L: Layout>(workload: impl Fn(Verify) -> Ycsb<L>) {
    let (db, tables) = honest(&workload(Verify::Increment), STEPS);
    let before = row_of(&db, &tables, 0);
    run(&db, &tables, 1, 200);
    db.run(|tx| tables.table.put(tx, before)).unwrap();
    assert_failed(&check(&db, &tables), "the counters add up to");

    let (db, tables) = honest(&workload(Verify::Tag), STEPS);
    run_unaccounted(&db, &tables, 50);
    assert_failed(&check(&db, &tables), "that no committed transaction left");

    let (db, tables) = honest(&workload(Verify::Values), STEPS);
    let mut row = row_of(&db, &tables, 7);
    let column =
        |index| if index == 3 { L::Value::from_fn(|_| 0) } else { row.columns.as_ref()[index] };
    row.columns = L::Values::from_fn(column);
    db.run(|tx| tables.table.put(tx, row)).unwrap();
    assert_failed(&check(&db, &tables), "the first is column 3 of row 7");

    let (db, tables) = honest(&workload(Verify::Counts), STEPS);
    db.run(|tx| tables.table.delete(tx, 7)).unwrap();
    assert_failed(&check(&db, &tables), "rows where");
}

#[test]
fn damage_to_narrow_and_hot_rows_is_noticed() {
    damage_is_noticed(|verify| narrow(Contention::High, verify));
    damage_is_noticed(|verify| hot(5, verify));
}

impl<L: Layout> Remains<Ycsb<L>> for Vec<UserRow<L>> {
    fn of<P: Protocol>(loaded: &YcsbTables<P, L>) -> Self {
        sorted(&loaded.table, |row| row.key)
    }
}

#[test]
fn one_thread_leaves_ycsb_variants_in_one_state_under_every_protocol() {
    assert_same_remains::<_, Vec<_>>(&narrow(Contention::High, Verify::Values), 500);
    assert_same_remains::<_, Vec<_>>(&hot(5, Verify::Increment), 500);
}

#[test]
fn knobs_out_of_range_are_refused_with_the_range() {
    let refused = [
        (Ycsb { writes: Writes::First(11), ..hot(0, Verify::Counts) }, "from 0 to 10"),
        (Ycsb { rows: 9, ..hot(0, Verify::Counts) }, "rows must be from 10"),
        (
            Ycsb { read_only: -0.5, ..hot(0, Verify::Counts) },
            "read-only transactions must be from 0 to 1",
        ),
    ];
    assert_refused(refused);
}
