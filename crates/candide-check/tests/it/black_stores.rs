//! What a serial store leaves is always accepted, what a broken one leaves is refused, and both in
//! seconds.

use crate::growth::{TIMES, assert_in_proportion};
use crate::store::{Load, Operation, Store, run};
use candide_check::black::{
    ListOp, Options, Outcome, RegisterOp, Transaction, check_lists, check_registers,
};
use candide_check::{Anomaly, Verdict};
use fastrand::Rng;

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
            assert_eq!(
                check_lists(&lists(Store::Serial, 5_000, seed), options),
                Ok(()),
                "seed {seed}"
            );
            assert_eq!(
                check_registers(&registers(Store::Serial, 5_000, seed), options),
                Verdict::Serializable,
                "seed {seed}"
            );
        }
    }
}

/// A history of one key only, and one without reads.
#[test]
fn a_serial_store_is_accepted_under_odd_loads() {
    for (keys, writes_per_key, sessions) in [(1, 400, 3), (1_000, 3, 40), (2, 1, 5)] {
        let load = Load {
            sessions,
            transactions: 2_000,
            operations: 4,
            keys,
            writes_per_key,
            mishaps: true,
        };
        let history: Vec<Transaction<ListOp>> = run(Store::Serial, &load, &mut Rng::with_seed(1));
        assert_eq!(check_lists(&history, STRICT), Ok(()));
        let history: Vec<Transaction<RegisterOp>> =
            run(Store::Serial, &load, &mut Rng::with_seed(1));
        assert_eq!(check_registers(&history, STRICT), Verdict::Serializable);
    }
}

fn of_lists(history: &[Transaction<ListOp>], options: Options) -> Verdict {
    check_lists(history, options).into()
}

fn refused<O: Operation>(
    store: Store,
    check: fn(&[Transaction<O>], Options) -> Verdict,
    options: Options,
    expected: &[Anomaly],
) {
    for seed in 0..20 {
        let history: Vec<Transaction<O>> = run(store, &load(2_000), &mut Rng::with_seed(seed));
        let Verdict::Violated(violation) = check(&history, options) else {
            panic!("a broken store")
        };
        assert!(expected.contains(&violation.anomaly), "{store:?}, seed {seed}: {violation}");
    }
}

#[test]
fn lost_updates_are_refused() {
    // A lost append leaves reads of which neither is the beginning of the other.
    refused(Store::LostUpdates, of_lists, PLAIN, &[Anomaly::IncompatibleOrder]);
    refused(
        Store::LostUpdates,
        check_registers,
        PLAIN,
        &[Anomaly::LostUpdate, Anomaly::ReadSkew, Anomaly::WriteSkew],
    );
}

#[test]
fn dirty_reads_are_refused() {
    refused(Store::DirtyReads, of_lists, PLAIN, &[Anomaly::AbortedRead]);
    refused(Store::DirtyReads, check_registers, PLAIN, &[Anomaly::AbortedRead]);
}

#[test]
fn stale_snapshots_are_refused() {
    let skew = [Anomaly::WriteSkew, Anomaly::AntiDependencyCycle];
    refused(Store::Snapshots, of_lists, PLAIN, &skew);
    // The order of values that were written without reading first is known from real time alone.
    refused(Store::Snapshots, check_registers, STRICT, &skew);
}

#[test]
fn stale_reads_are_refused_if_real_time_counts() {
    for seed in 0..20 {
        assert_eq!(check_lists(&lists(Store::StaleReads, 2_000, seed), PLAIN), Ok(()));
        assert_eq!(
            check_registers(&registers(Store::StaleReads, 2_000, seed), PLAIN),
            Verdict::Serializable
        );
    }
    let real_time = Options { sessions: false, real_time: true };
    refused(Store::StaleReads, of_lists, real_time, &[Anomaly::RealTime]);
    refused(Store::StaleReads, check_registers, real_time, &[Anomaly::RealTime]);
    let sessions = Options { sessions: true, real_time: false };
    refused(Store::StaleReads, of_lists, sessions, &[Anomaly::SessionOrder]);
    refused(Store::StaleReads, check_registers, sessions, &[Anomaly::SessionOrder]);
}

/// Prints how long a million operations take, or a third of them unless `CANDIDE_FULL` is set.
#[test]
fn checking_time_is_proportional_to_the_number_of_operations() {
    let count = if std::env::var_os("CANDIDE_FULL").is_none() { 100_000 } else { 300_000 };
    let of = |count| (lists(Store::Serial, count, 1), lists(Store::Snapshots, count / 3, 1));
    let of_registers =
        |count| (registers(Store::Serial, count, 1), registers(Store::Snapshots, count / 3, 1));
    let ((few, few_bad), (good, bad)) = (of(count / TIMES), of(count));
    let operations: usize = good.iter().map(|transaction| transaction.operations.len()).sum();
    assert!(3 * operations >= 10 * count);
    let committed =
        good.iter().filter(|transaction| transaction.outcome == Outcome::Committed).count();
    println!("{operations} operations in {committed} committed transactions of {count}");
    assert_in_proportion("lists, accepted", &few, &good, |lists| {
        assert!(check_lists(lists, STRICT).is_ok())
    });
    // So few as the fewer ones may happen to be right.
    assert_in_proportion("lists, refused", &few_bad, &bad, |lists| drop(check_lists(lists, PLAIN)));
    assert!(check_lists(&bad, PLAIN).is_err());
    let ((few, few_bad), (good, bad)) = (of_registers(count / TIMES), of_registers(count));
    let accepted =
        |registers: &Vec<_>| assert_eq!(check_registers(registers, STRICT), Verdict::Serializable);
    assert_in_proportion("registers, accepted", &few, &good, accepted);
    assert_in_proportion("registers, refused", &few_bad, &bad, |registers| {
        drop(check_registers(registers, PLAIN))
    });
    assert!(matches!(check_registers(&bad, PLAIN), Verdict::Violated(_)));
}

#[test]
fn a_long_fork_is_found_in_time_in_proportion() {
    let length = 50_000;
    assert_in_proportion(
        "a long fork",
        &long_fork(length / TIMES as u64),
        &long_fork(length),
        |history| {
            let Verdict::Violated(violation) = check_registers(history, PLAIN) else {
                panic!("a long fork")
            };
            assert_eq!(violation.anomaly, Anomaly::AntiDependencyCycle);
        },
    );
}

/// Makes a history of two registers, each written by a long chain of transactions of its own, and
/// two readers that disagree on which chain came first. There is one cycle, with two
/// anti-dependencies, as long as both chains; and from every single anti-dependency a long way
/// leads forwards and never back, which once made the search for it quadratic.
fn long_fork(length: u64) -> Vec<Transaction<RegisterOp>> {
    let mut history = Vec::new();
    let mut commit = |operations| {
        let (session, outcome) = (history.len() as u64, Outcome::Committed);
        history.push(Transaction { session, invoked: 0, completed: 1, outcome, operations });
    };
    let read = |key, value| RegisterOp::Read { key, value: Some(value) };
    for key in [1, 2] {
        for value in 1..=length {
            let before = RegisterOp::Read { key, value: (value > 1).then_some(value - 1) };
            commit(vec![before, RegisterOp::Write { key, value }]);
            commit(vec![read(key, value)]);
        }
    }
    commit(vec![read(1, length), read(2, 1)]);
    commit(vec![read(2, length), read(1, 1)]);
    history
}
