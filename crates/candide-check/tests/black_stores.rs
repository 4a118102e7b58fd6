//! What a serial store leaves is always accepted, what a broken one leaves is refused, and both in seconds.

mod store;

use candide_check::black::{ListOp, Options, Outcome, RegisterOp, Transaction, check_lists, check_registers};
use candide_check::{Anomaly, Violation};
use fastrand::Rng;
use std::time::Instant;
use store::{Load, Operation, Store, run};

const PLAIN: Options = Options { sessions: false, real_time: false };
const STRICT: Options = Options { sessions: true, real_time: true };

fn load(transactions: usize) -> Load {
    Load { sessions: 16, transactions, operations: 6, keys: 10, writes_per_key: 50, mishaps: true }
}

fn lists(store: Store, transactions: usize, seed: u64) -> Vec<Transaction<ListOp>> {
    run(store, &load(transactions), &mut Rng::with_seed(seed))
}

fn registers(store: Store, transactions: usize, seed: u64) -> Vec<Transaction<RegisterOp>> {
    run(store, &load(transactions), &mut Rng::with_seed(seed))
}

#[test]
fn a_serial_store_is_accepted() {
    for seed in 0..20 {
        for options in [PLAIN, STRICT] {
            assert_eq!(check_lists(&lists(Store::Serial, 5_000, seed), options), Ok(()), "seed {seed}");
            assert_eq!(check_registers(&registers(Store::Serial, 5_000, seed), options), Ok(()), "seed {seed}");
        }
    }
}

/// A history that is all one key, and one that nobody reads.
#[test]
fn a_serial_store_is_accepted_under_odd_loads() {
    for (keys, writes_per_key, sessions) in [(1, 400, 3), (1_000, 3, 40), (2, 1, 5)] {
        let load = Load { sessions, transactions: 2_000, operations: 4, keys, writes_per_key, mishaps: true };
        let history: Vec<Transaction<ListOp>> = run(Store::Serial, &load, &mut Rng::with_seed(1));
        assert_eq!(check_lists(&history, STRICT), Ok(()));
        let history: Vec<Transaction<RegisterOp>> = run(Store::Serial, &load, &mut Rng::with_seed(1));
        assert_eq!(check_registers(&history, STRICT), Ok(()));
    }
}

fn refused<O: Operation>(
    store: Store,
    check: fn(&[Transaction<O>], Options) -> Result<(), Violation>,
    options: Options,
    expected: &[Anomaly],
) {
    for seed in 0..20 {
        let history: Vec<Transaction<O>> = run(store, &load(2_000), &mut Rng::with_seed(seed));
        let violation = check(&history, options).expect_err("a broken store");
        assert!(expected.contains(&violation.anomaly), "{store:?}, seed {seed}: {violation}");
    }
}

#[test]
fn lost_updates_are_refused() {
    // A lost append leaves reads of which neither is the beginning of the other.
    refused(Store::LostUpdates, check_lists, PLAIN, &[Anomaly::IncompatibleOrder]);
    refused(Store::LostUpdates, check_registers, PLAIN, &[Anomaly::LostUpdate, Anomaly::ReadSkew, Anomaly::WriteSkew]);
}

#[test]
fn dirty_reads_are_refused() {
    refused(Store::DirtyReads, check_lists, PLAIN, &[Anomaly::AbortedRead]);
    refused(Store::DirtyReads, check_registers, PLAIN, &[Anomaly::AbortedRead]);
}

#[test]
fn stale_snapshots_are_refused() {
    let skew = [Anomaly::WriteSkew, Anomaly::AntiDependencyCycle];
    refused(Store::Snapshots, check_lists, PLAIN, &skew);
    // The order of values that were written without reading first is known from real time alone.
    refused(Store::Snapshots, check_registers, STRICT, &skew);
}

#[test]
fn stale_reads_are_refused_if_real_time_counts() {
    for seed in 0..20 {
        assert_eq!(check_lists(&lists(Store::StaleReads, 2_000, seed), PLAIN), Ok(()));
        assert_eq!(check_registers(&registers(Store::StaleReads, 2_000, seed), PLAIN), Ok(()));
    }
    let real_time = Options { sessions: false, real_time: true };
    refused(Store::StaleReads, check_lists, real_time, &[Anomaly::RealTime]);
    refused(Store::StaleReads, check_registers, real_time, &[Anomaly::RealTime]);
    let sessions = Options { sessions: true, real_time: false };
    refused(Store::StaleReads, check_lists, sessions, &[Anomaly::SessionOrder]);
    refused(Store::StaleReads, check_registers, sessions, &[Anomaly::SessionOrder]);
}

/// Prints how long a million operations take; the limit is what a quadratic algorithm would not keep on any machine.
#[test]
fn a_million_operations_take_seconds() {
    let count = 300_000;
    let (good, bad) = (lists(Store::Serial, count, 1), lists(Store::Snapshots, count / 3, 1));
    let (good_registers, bad_registers) =
        (registers(Store::Serial, count, 1), registers(Store::Snapshots, count / 3, 1));
    let operations: usize = good.iter().map(|transaction| transaction.operations.len()).sum();
    assert!(operations >= 1_000_000);
    let committed = good.iter().filter(|transaction| transaction.outcome == Outcome::Committed).count();
    println!("{operations} operations in {committed} committed transactions of {count}");
    let timed = |what: &str, check: &dyn Fn() -> bool| {
        let begun = Instant::now();
        assert!(check(), "{what}");
        let took = begun.elapsed();
        println!("{what}: {took:.2?}");
        assert!(took.as_secs() < 120, "{what} took {took:?}");
    };
    timed("lists, accepted", &|| check_lists(&good, STRICT).is_ok());
    timed("lists, refused", &|| check_lists(&bad, PLAIN).is_err());
    timed("registers, accepted", &|| check_registers(&good_registers, STRICT).is_ok());
    timed("registers, refused", &|| check_registers(&bad_registers, PLAIN).is_err());
}
