//! Every anomaly that clients can see is found and called by its name.

use candide_check::black::ListOp::{self, Append, Read};
use candide_check::black::RegisterOp::{self, Read as Get, Write};
use candide_check::black::{Options, Outcome, Transaction, check_lists, check_registers};
use candide_check::{Anomaly, Evidence, Verdict, edn};

const PLAIN: Options = Options { sessions: false, real_time: false };
const SESSIONS: Options = Options { sessions: true, real_time: false };
const REAL_TIME: Options = Options { sessions: false, real_time: true };

/// Transactions of sessions of their own, all at the same time.
fn together<O: Clone>(transactions: &[&[O]]) -> Vec<Transaction<O>> {
    (0..)
        .zip(transactions)
        .map(|(session, operations)| Transaction {
            session,
            invoked: 0,
            completed: 100,
            outcome: Outcome::Committed,
            operations: operations.to_vec(),
        })
        .collect()
}

/// Transactions one after another.
fn in_turn<O: Clone>(transactions: &[(u64, &[O])]) -> Vec<Transaction<O>> {
    (1..)
        .zip(transactions)
        .map(|(turn, (session, operations))| Transaction {
            session: *session,
            invoked: 10 * turn,
            completed: 10 * turn + 5,
            outcome: Outcome::Committed,
            operations: operations.to_vec(),
        })
        .collect()
}

fn append(key: u64, value: u64) -> ListOp {
    Append { key, value }
}

fn read(key: u64, values: &[u64]) -> ListOp {
    Read { key, values: values.to_vec() }
}

fn write(key: u64, value: u64) -> RegisterOp {
    Write { key, value }
}

fn get(key: u64, value: impl Into<Option<u64>>) -> RegisterOp {
    Get { key, value: value.into() }
}

#[track_caller]
fn lists(
    history: &[Transaction<ListOp>],
    options: Options,
    expected: Anomaly,
    transactions: usize,
) {
    let violation = check_lists(history, options).expect_err("a bad history");
    assert_eq!(violation.anomaly, expected, "{violation}");
    assert_eq!(size(&violation.evidence), transactions, "{violation}");
}

#[track_caller]
fn registers(
    history: &[Transaction<RegisterOp>],
    options: Options,
    expected: Anomaly,
    transactions: usize,
) {
    let Verdict::Violated(violation) = check_registers(history, options) else {
        panic!("a bad history")
    };
    assert_eq!(violation.anomaly, expected, "{violation}");
    assert_eq!(size(&violation.evidence), transactions, "{violation}");
}

fn size(evidence: &Evidence) -> usize {
    match evidence {
        Evidence::Cycle(steps) => steps.len(),
        Evidence::Version { parties, .. } | Evidence::Observation { parties, .. } => parties.len(),
    }
}

#[test]
fn good_lists_are_accepted() {
    let history = in_turn(&[
        (0, &[append(1, 1), append(1, 2), read(1, &[1, 2])]),
        (1, &[read(1, &[1, 2]), append(1, 3), read(1, &[1, 2, 3]), append(2, 1)]),
        (0, &[read(2, &[1]), append(1, 4), read(1, &[1, 2, 3, 4]), read(1, &[1, 2, 3, 4])]),
        (2, &[append(1, 5)]),
        (2, &[append(3, 1), read(4, &[])]),
    ]);
    assert_eq!(check_lists(&history, Options { sessions: true, real_time: true }), Ok(()));
    assert_eq!(check_lists(&[], Options { sessions: true, real_time: true }), Ok(()));
}

#[test]
fn g0() {
    let history = together(&[
        &[append(1, 1), append(2, 1)],
        &[append(1, 2), append(2, 2)],
        &[read(1, &[1, 2]), read(2, &[2, 1])],
    ]);
    lists(&history, PLAIN, Anomaly::DirtyWrite, 2);
    // Appends of two transactions to one list, mixed.
    let history =
        together(&[&[append(1, 1), append(1, 3)], &[append(1, 2)], &[read(1, &[1, 2, 3])]]);
    lists(&history, PLAIN, Anomaly::DirtyWrite, 2);
    // No transaction read what the last one appended, so it comes later in both lists.
    let history = together(&[
        &[append(1, 1), append(2, 9)],
        &[append(2, 1), append(1, 9)],
        &[read(1, &[1]), read(2, &[1])],
    ]);
    lists(&history, PLAIN, Anomaly::DirtyWrite, 2);
}

#[test]
fn g1a() {
    let mut history = together(&[&[append(1, 1)], &[read(1, &[1])]]);
    history[0].outcome = Outcome::Aborted;
    lists(&history, PLAIN, Anomaly::AbortedRead, 2);
    let mut history = together(&[&[write(1, 1)], &[get(1, 1)]]);
    history[0].outcome = Outcome::Aborted;
    registers(&history, PLAIN, Anomaly::AbortedRead, 2);
}

#[test]
fn g1b() {
    let history = together(&[&[append(1, 1), append(1, 2)], &[read(1, &[1])]]);
    lists(&history, PLAIN, Anomaly::IntermediateRead, 2);
    let history = together(&[&[append(1, 1), append(1, 2)], &[append(1, 3), read(1, &[1, 3])]]);
    lists(&history, PLAIN, Anomaly::IntermediateRead, 2);
    let history = together(&[&[write(1, 1), write(1, 2)], &[get(1, 1)]]);
    registers(&history, PLAIN, Anomaly::IntermediateRead, 2);
}

#[test]
fn g1c() {
    let history = together(&[&[append(1, 1), read(2, &[1])], &[append(2, 1), read(1, &[1])]]);
    lists(&history, PLAIN, Anomaly::CircularInformation, 2);
    let history = together(&[&[write(1, 1), get(2, 1)], &[write(2, 1), get(1, 1)]]);
    registers(&history, PLAIN, Anomaly::CircularInformation, 2);
}

#[test]
fn g_single() {
    let history = together(&[&[append(1, 1), append(2, 1)], &[read(1, &[1]), read(2, &[])]]);
    lists(&history, PLAIN, Anomaly::ReadSkew, 2);
    let history = together(&[&[write(1, 1), write(2, 1)], &[get(1, 1), get(2, None)]]);
    registers(&history, PLAIN, Anomaly::ReadSkew, 2);
}

#[test]
fn lost_update() {
    let history = together(&[
        &[read(1, &[]), append(1, 1)],
        &[read(1, &[]), append(1, 2)],
        &[read(1, &[1, 2])],
    ]);
    lists(&history, PLAIN, Anomaly::LostUpdate, 2);
    // Without a transaction that reads both.
    lists(&history[..2], PLAIN, Anomaly::LostUpdate, 2);
    let history = together(&[&[write(1, 9)], &[get(1, 9), write(1, 1)], &[get(1, 9), write(1, 2)]]);
    registers(&history, PLAIN, Anomaly::LostUpdate, 2);
    let history = together(&[&[get(1, None), write(1, 1)], &[get(1, None), write(1, 2)]]);
    registers(&history, PLAIN, Anomaly::LostUpdate, 2);
}

#[test]
fn write_skew() {
    let history = together(&[&[read(1, &[]), append(2, 1)], &[read(2, &[]), append(1, 1)]]);
    lists(&history, PLAIN, Anomaly::WriteSkew, 2);
    let history = together(&[&[get(1, None), write(2, 1)], &[get(2, None), write(1, 1)]]);
    registers(&history, PLAIN, Anomaly::WriteSkew, 2);
}

#[test]
fn g2_item() {
    let history = together(&[
        &[read(1, &[]), append(2, 1)],
        &[read(2, &[]), append(3, 1)],
        &[read(3, &[]), append(1, 1)],
    ]);
    lists(&history, PLAIN, Anomaly::AntiDependencyCycle, 3);
    let history = together(&[
        &[get(1, None), write(2, 1)],
        &[get(2, None), write(3, 1)],
        &[get(3, None), write(1, 1)],
    ]);
    registers(&history, PLAIN, Anomaly::AntiDependencyCycle, 3);
}

#[test]
fn a_read_that_contradicts_its_own_transaction_is_an_internal_anomaly() {
    for operations in [
        &[append(1, 1), read(1, &[])][..],
        &[read(1, &[]), append(1, 1), read(1, &[])],
        &[read(1, &[]), read(1, &[9])],
        &[read(1, &[9]), read(1, &[])],
        &[append(1, 1), read(1, &[1, 9])],
        &[append(1, 1), append(1, 2), read(1, &[2, 1])],
        &[read(1, &[1]), append(1, 1)],
    ] {
        let history = together(&[operations, &[append(1, 9)]]);
        lists(&history, PLAIN, Anomaly::Internal, 1);
    }
    for operations in [
        &[write(1, 1), get(1, None)][..],
        &[write(1, 1), get(1, 9)],
        &[get(1, None), get(1, 9)],
        &[get(1, 9), get(1, None)],
        &[get(1, 1), write(1, 1)],
        &[write(1, 1), get(1, 1), get(1, 9)],
    ] {
        let history = together(&[operations, &[write(1, 9)]]);
        registers(&history, PLAIN, Anomaly::Internal, 1);
    }
}

#[test]
fn a_read_of_a_value_that_no_transaction_wrote_is_refused() {
    lists(&together(&[&[read(1, &[7])], &[append(2, 7)]]), PLAIN, Anomaly::UnknownValue, 1);
    registers(&together(&[&[get(1, 7)], &[write(2, 7)]]), PLAIN, Anomaly::UnknownValue, 1);
}

#[test]
fn a_list_read_with_an_element_twice_is_reported() {
    let history = together(&[&[append(1, 1)], &[append(1, 2)], &[read(1, &[1, 2, 1])]]);
    lists(&history, PLAIN, Anomaly::DuplicateElement, 1);
    // Not in the longest read.
    let history = together(&[
        &[append(1, 1)],
        &[append(1, 2)],
        &[append(1, 3)],
        &[read(1, &[1, 2, 3])],
        &[read(1, &[1, 1])],
    ]);
    lists(&history, PLAIN, Anomaly::DuplicateElement, 1);
}

#[test]
fn lost_appends() {
    let history = together(&[&[append(1, 1), append(1, 2)], &[read(1, &[2])]]);
    lists(&history, PLAIN, Anomaly::LostAppend, 2);
    // Acknowledged before any read, and in none.
    let history = in_turn(&[(0, &[append(1, 1)]), (1, &[append(1, 2)]), (2, &[read(1, &[2])])]);
    lists(&history, REAL_TIME, Anomaly::LostAppend, 3);
    assert_eq!(check_lists(&history, PLAIN), Ok(()), "it may have come later");
}

#[test]
fn incompatible_orders() {
    let appends = [&[append(1, 1)][..], &[append(1, 2)], &[append(1, 3)]];
    for reads in
        [[&[1, 2][..], &[2, 1][..]], [&[1, 2, 3], &[2]], [&[1], &[2]], [&[1, 3, 2], &[1, 2]]]
    {
        let reads = reads.map(|values| [read(1, values)]);
        let history = together(&[appends[0], appends[1], appends[2], &reads[0], &reads[1]]);
        lists(&history, PLAIN, Anomaly::IncompatibleOrder, 2);
    }
    // Against the order in which a transaction appended.
    let history = together(&[&[append(1, 1), append(1, 2)], &[read(1, &[2, 1])]]);
    lists(&history, PLAIN, Anomaly::IncompatibleOrder, 2);
}

#[test]
fn session_order() {
    let history = in_turn(&[(7, &[append(1, 1)]), (7, &[read(1, &[])]), (8, &[read(1, &[1])])]);
    assert_eq!(check_lists(&history, PLAIN), Ok(()));
    lists(&history, SESSIONS, Anomaly::SessionOrder, 2);
    let history = in_turn(&[(7, &[write(1, 1)]), (7, &[get(1, None)]), (8, &[get(1, 1)])]);
    assert_eq!(check_registers(&history, PLAIN), Verdict::Serializable);
    registers(&history, SESSIONS, Anomaly::SessionOrder, 2);
    // What a session wrote later is a later value.
    let history = in_turn(&[
        (7, &[write(1, 1), write(2, 1)]),
        (7, &[write(1, 2), write(2, 2)]),
        (8, &[get(1, 2), get(2, 1)]),
    ]);
    registers(&history, SESSIONS, Anomaly::ReadSkew, 2);
    // Without sessions, both writers come before the reader, so each before the other one.
    registers(&history, PLAIN, Anomaly::DirtyWrite, 2);
}

/// A session whose transactions overlap still orders those that do not.
#[test]
fn without_the_option_order_within_sessions_is_not_judged() {
    let mut history = in_turn(&[(7, &[write(1, 1)]), (7, &[write(2, 1)]), (7, &[get(1, None)])]);
    (history[1].invoked, history[1].completed) = (12, 100);
    assert_eq!(check_registers(&history, PLAIN), Verdict::Serializable);
    registers(&history, SESSIONS, Anomaly::SessionOrder, 2);
}

#[test]
fn real_time() {
    let history = in_turn(&[(7, &[append(1, 1)]), (8, &[read(1, &[])]), (9, &[read(1, &[1])])]);
    assert_eq!(check_lists(&history, SESSIONS), Ok(()));
    lists(&history, REAL_TIME, Anomaly::RealTime, 2);
    let history = in_turn(&[(7, &[write(1, 1)]), (8, &[get(1, None)]), (9, &[get(1, 1)])]);
    assert_eq!(check_registers(&history, SESSIONS), Verdict::Serializable);
    registers(&history, REAL_TIME, Anomaly::RealTime, 2);
    // What was written after another write had completed is a later value.
    let history = in_turn(&[(7, &[write(1, 1)]), (8, &[write(1, 2)]), (9, &[get(1, 1)])]);
    assert_eq!(check_registers(&history, SESSIONS), Verdict::Serializable);
    registers(&history, REAL_TIME, Anomaly::RealTime, 2);
    // Others in between do not hide it.
    let unrelated = |key| [append(key, 1)];
    let between: Vec<[ListOp; 1]> = (10..30).map(unrelated).collect();
    let mut turns: Vec<(u64, &[ListOp])> = vec![];
    let (first, stale, fresh) = ([append(1, 1)], [read(1, &[])], [read(1, &[1])]);
    turns.push((0, &first));
    turns.extend(between.iter().map(|operations| (1, &operations[..])));
    turns.extend([(2, &stale[..]), (3, &fresh[..])]);
    lists(&in_turn(&turns), REAL_TIME, Anomaly::RealTime, 2);
}

/// The smallest of several cycles is shown, with what was read and written.
#[test]
fn a_report_names_the_operations() {
    let history = together(&[
        &[read(5, &[]), append(6, 10)],
        &[read(6, &[]), append(7, 10)],
        &[read(7, &[]), append(5, 10), append(8, 10)],
        &[read(8, &[]), append(6, 20), append(7, 20)],
    ]);
    lists(&history, PLAIN, Anomaly::WriteSkew, 2);
    let violation = check_lists(&history, PLAIN).expect_err("a bad history").to_string();
    assert_eq!(
        violation,
        "write skew: Two transactions each read a version that the other one replaced.
  T1: session 2 at 0..100
  T2: session 3 at 0..100
  T1 comes before T2: T1 read value none of key 7 and T2 wrote value 20 after it (rw)
  T2 comes before T1: T2 read value none of key 8 and T1 wrote value 10 after it (rw)
"
    );
    let history =
        together(&[&[append(1, 1)], &[append(1, 2)], &[read(1, &[1, 2])], &[read(1, &[2])]]);
    let violation = check_lists(&history, PLAIN).expect_err("a bad history").to_string();
    assert_eq!(
        violation,
        "incompatible order: A list was read in two orders that contradict each other.
  T1: session 3 at 0..100
  T2: session 2 at 0..100
  T1 read [2] of key 1, and T2 read [1 2]: neither is the beginning of the other
"
    );
}

#[test]
fn transactions_of_unknown_outcome_count_if_their_writes_were_read() {
    let unknown = |mut history: Vec<Transaction<ListOp>>| {
        history[0].outcome = Outcome::Unknown;
        history
    };
    // It may have come to nothing.
    let history =
        unknown(in_turn(&[(0, &[append(1, 1), append(2, 1)]), (1, &[read(1, &[]), read(2, &[])])]));
    assert_eq!(check_lists(&history, Options { sessions: true, real_time: true }), Ok(()));
    // It may have come after the first read.
    let history =
        unknown(in_turn(&[(0, &[append(1, 1)]), (1, &[read(1, &[])]), (2, &[read(1, &[1])])]));
    assert_eq!(check_lists(&history, Options { sessions: true, real_time: true }), Ok(()));
    // It came to something, all of it.
    let history = unknown(in_turn(&[
        (0, &[append(1, 1), append(2, 1)]),
        (1, &[read(1, &[1]), read(2, &[])]),
    ]));
    lists(&history, PLAIN, Anomaly::ReadSkew, 2);
    // It did not take effect before it was invoked.
    let mut history = unknown(in_turn(&[(0, &[append(1, 1)]), (1, &[read(1, &[1])])]));
    (history[0].invoked, history[0].completed) = (50, 55);
    lists(&history, REAL_TIME, Anomaly::RealTime, 2);

    let mut history = in_turn(&[(0, &[write(1, 1), write(2, 1)]), (1, &[get(1, 1), get(2, None)])]);
    history[0].outcome = Outcome::Unknown;
    registers(&history, PLAIN, Anomaly::ReadSkew, 2);
    // What an uncommitted transaction was told does not matter.
    let mut history = in_turn(&[(0, &[get(1, 7), get(1, 8)])]);
    history[0].outcome = Outcome::Aborted;
    assert_eq!(check_registers(&history, PLAIN), Verdict::Serializable);
}

#[test]
fn histories_with_repeated_values_are_unusable() {
    lists(&together(&[&[append(1, 1)], &[append(1, 1)]]), PLAIN, Anomaly::RepeatedValue, 2);
    lists(&together(&[&[append(1, 1), append(1, 1)]]), PLAIN, Anomaly::RepeatedValue, 2);
    registers(&together(&[&[write(1, 1)], &[write(1, 1)]]), PLAIN, Anomaly::RepeatedValue, 2);
    assert_eq!(check_lists(&together(&[&[append(1, 1)], &[append(2, 1)]]), PLAIN), Ok(()));
}

/// Several readers and several transactions that were never read from: the report names the two
/// that matter.
#[test]
fn the_report_names_the_unread_appends_of_the_cycle() {
    let history = together(&[
        &[append(1, 4)],
        &[read(1, &[]), append(2, 1)],
        &[append(1, 5)],
        &[read(2, &[]), append(1, 1)],
        &[append(2, 6)],
        &[read(3, &[]), append(1, 6)],
    ]);
    lists(&history, PLAIN, Anomaly::WriteSkew, 2);
    let violation = check_lists(&history, PLAIN).expect_err("a bad history").to_string();
    assert!(
        violation.contains("read value none of key 1 and T2 wrote value 1 after it (rw)"),
        "{violation}"
    );
    assert!(
        violation.contains("read value none of key 2 and T1 wrote value 1 after it (rw)"),
        "{violation}"
    );
    // Likewise for the writers of a register.
    let history = together(&[
        &[write(1, 4)],
        &[get(1, None), write(2, 1)],
        &[write(1, 5)],
        &[get(2, None), write(1, 1)],
        &[write(2, 6)],
    ]);
    registers(&history, PLAIN, Anomaly::WriteSkew, 2);
}

/// A cycle of two anti-dependencies that are not neighbours.
#[test]
fn a_history_file_of_jepsen_is_checked() {
    let file = "
        {:index 0, :time 3, :type :invoke, :process 0, :f :txn, :value [[:append 40 1]]}
        {:index 1, :time 4, :type :invoke, :process 1, :f :txn, :value [[:r 40 nil] [:append 50 1]]}
        {:index 2, :time 5, :type :ok, :process 0, :f :txn, :value [[:append 40 1]]}
        {:index 3, :time 6, :type :invoke, :process 0, :f :txn, :value [[:r 50 nil] [:append 40 2]]}
        {:index 4, :time 7, :type :ok, :process 1, :f :txn, :value [[:r 40 []] [:append 50 1]]}
        {:index 5, :time 8, :type :ok, :process 0, :f :txn, :value [[:r 50 nil] [:append 40 2]]}
        {:index 6, :time 9, :type :invoke, :process 1, :f :txn, :value [[:r 40 nil]]}
        {:index 7, :time 9, :type :invoke, :process 2, :f :txn, :value [[:append 50 2]]}
        {:index 8, :time 9, :type :ok, :process 1, :f :txn, :value [[:r 40 [1 2]]]}
        {:index 9, :time 10, :type :info, :process 2, :f :txn}";
    let history = edn::read::<ListOp>(file.as_bytes()).expect("a history");
    // 1 read 40 before 0 appended 1, 0 appended 2 after that, and read 50 before 1 appended to it.
    lists(&history, PLAIN, Anomaly::AntiDependencyCycle, 3);
    assert_eq!(check_lists(&history[..2], REAL_TIME), Ok(()));
}
