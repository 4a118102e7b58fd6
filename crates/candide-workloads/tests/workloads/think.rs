//! Work between the operations of a transaction: it takes its time, and changes nothing else.

use std::time::{Duration, Instant};

use candide_workloads::two_tables::{LongScan, Shifting};
use candide_workloads::ycsb::{Joint, Verify, Ycsb};
use candide_workloads::{Loaded, Think, Worker, Workload};

use crate::common::{assert_holds, database, load};

/// More than cores, on machines where it matters.
const THREADS: usize = 4;

/// The time of the work after each operation.
const TIME: Duration = Duration::from_micros(20);

fn think() -> Think {
    Think::new(TIME).expect("in range")
}

fn hot() -> Ycsb<Joint> {
    Ycsb { transactions: 100, verify: Verify::Increment, think: think(), ..Ycsb::hot(5) }
}

fn long_scan() -> LongScan {
    LongScan { rows: 100, scan: 10, transactions: 100, think: think(), ..LongScan::published() }
}

fn shifting() -> Shifting {
    Shifting { rows: 100, transactions: 100, think: think(), ..Shifting::published() }
}

/// Asserts that each transaction takes at least the time of the work after `operations` operations,
/// in both of the first two phases.
fn assert_takes_time(workload: &impl Workload, operations: u32) {
    let db = database(true, true);
    let loaded = load(&db, workload, 1);
    let mut worker = loaded.worker(db.session().expect("a session"), 0);
    for phase in 0..2 {
        loaded.enter_phase(phase);
        for _ in 0..20 {
            let begun = Instant::now();
            worker.step().expect("no surprises");
            let took = begun.elapsed();
            assert!(took >= operations * TIME, "{}: {took:?}", workload.name());
        }
    }
}

#[test]
fn a_transaction_takes_no_less_than_the_work_after_all_its_operations() {
    assert_takes_time(&hot(), 10);
    assert_takes_time(&long_scan(), 3);
    // The row of the small table, and twenty of the large one.
    assert_takes_time(&shifting(), 21);
}

#[test]
fn workloads_with_work_between_operations_are_consistent_under_every_protocol() {
    assert_holds(&hot(), THREADS, 50, |committed, all| assert_eq!(committed, all));
    assert_holds(&long_scan(), THREADS, 50, |committed, all| assert_eq!(committed, all));
    assert_holds(&shifting(), THREADS, 50, |committed, all| assert_eq!(committed, all));
}

fn tells(workload: &impl Workload) -> bool {
    workload.differences().iter().any(|difference| difference.contains("--think"))
}

#[test]
fn work_between_operations_is_listed_as_a_difference() {
    assert!(tells(&hot()) && tells(&long_scan()) && tells(&shifting()));
    assert!(!tells(&Ycsb::hot(5)) && !tells(&LongScan::published()));
    assert!(!tells(&Shifting::published()));
}
