//! One history for each anomaly, and the name that the checker has for it.

use crate::common::{no_row, row, transaction};
use candide_check::{
    Access, Anomaly, Checker, Event, Forgotten, Kind, Options, Scan, Transaction, Verdict,
    Violation,
};
use std::ops::Bound;

const X: u64 = 1;
const Y: u64 = 2;

/// Inserts X and Y in version 1, before all else.
fn load() -> Transaction {
    transaction(0, (1, 2), &[], &[row(X, 1), row(Y, 1)])
}

/// All keys.
fn everything() -> Scan {
    Scan { table: 0, from: Bound::Unbounded, to: Bound::Unbounded }
}

fn verdict(transactions: &[Transaction], options: Options) -> Verdict {
    let mut checker = Checker::new(options);
    transactions
        .iter()
        .for_each(|transaction| checker.feed(&Event::Transaction(transaction.clone())));
    checker.finish().verdict
}

fn violation(transactions: &[Transaction], options: Options) -> Violation {
    match verdict(transactions, options) {
        Verdict::Violated(violation) => *violation,
        other => panic!("{other:?}"),
    }
}

fn named(transactions: &[Transaction]) -> Anomaly {
    let violation = violation(transactions, Options::default());
    println!("{violation}");
    violation.anomaly
}

#[test]
fn dirty_write() {
    let one = transaction(1, (10, 20), &[], &[row(X, 2), row(Y, 3)]);
    let two = transaction(2, (11, 21), &[], &[row(X, 3), row(Y, 2)]);
    assert_eq!(named(&[load(), one, two]), Anomaly::DirtyWrite);
}

#[test]
fn aborted_read() {
    let mut aborted = transaction(1, (10, 20), &[row(X, 1)], &[]);
    aborted.committed = false;
    let reader = transaction(2, (11, 21), &[row(X, 2)], &[]);
    assert_eq!(named(&[load(), aborted, reader]), Anomaly::AbortedRead);
}

#[test]
fn circular_information() {
    let one = transaction(1, (10, 20), &[row(Y, 2)], &[row(X, 2)]);
    let two = transaction(2, (11, 21), &[row(X, 2)], &[row(Y, 2)]);
    assert_eq!(named(&[load(), one, two]), Anomaly::CircularInformation);
    let prophet = transaction(1, (10, 20), &[row(X, 2)], &[row(X, 2)]);
    assert_eq!(named(&[load(), prophet]), Anomaly::CircularInformation);
}

#[test]
fn lost_update() {
    let one = transaction(1, (10, 20), &[row(X, 1)], &[row(X, 2)]);
    let two = transaction(2, (11, 21), &[row(X, 1)], &[row(X, 3)]);
    assert_eq!(named(&[load(), one, two]), Anomaly::LostUpdate);
}

#[test]
fn read_skew() {
    let writer = transaction(1, (10, 20), &[], &[row(X, 2), row(Y, 2)]);
    let reader = transaction(2, (11, 21), &[row(X, 1), row(Y, 2)], &[]);
    assert_eq!(named(&[load(), writer, reader]), Anomaly::ReadSkew);
}

#[test]
fn write_skew() {
    let one = transaction(1, (10, 20), &[row(X, 1), row(Y, 1)], &[row(X, 2)]);
    let two = transaction(2, (11, 21), &[row(X, 1), row(Y, 1)], &[row(Y, 2)]);
    assert_eq!(named(&[load(), one, two]), Anomaly::WriteSkew);
}

#[test]
fn anti_dependency_cycle() {
    // Two readers saw two writes in different orders.
    let writers =
        [(1, X), (2, Y)].map(|(session, key)| transaction(session, (10, 20), &[], &[row(key, 2)]));
    let readers = [(3, 2, 1), (4, 1, 2)].map(|(session, x, y)| {
        transaction(session, (11, 21 + session), &[row(X, x), row(Y, y)], &[])
    });
    assert_eq!(named(&[&[load()], &writers[..], &readers].concat()), Anomaly::AntiDependencyCycle);
}

#[test]
fn phantom() {
    // Each goes through the range, meets X and Y only, and inserts a key of its own.
    let all = [(1, 10), (2, 20)].map(|(session, key)| {
        let mut scanner =
            transaction(session, (10, 20 + session), &[row(X, 1), row(Y, 1)], &[row(key, 2)]);
        scanner.scans.push(everything());
        scanner
    });
    assert_eq!(named(&[&[load()], &all[..]].concat()), Anomaly::Phantom);
}

#[test]
fn a_scan_without_an_existing_row_is_a_phantom() {
    let witness = transaction(1, (10, 20), &[row(X, 1)], &[row(X, 2)]);
    let mut scanner = transaction(2, (30, 40), &[row(X, 2)], &[]);
    scanner.scans.push(everything());
    assert_eq!(
        named(&[load(), witness.clone(), scanner.clone()]),
        Anomaly::Phantom,
        "Y was there before X changed"
    );
    scanner.reads.push(row(Y, 1));
    assert_eq!(verdict(&[load(), witness, scanner], Options::default()), Verdict::Serializable);
}

#[test]
fn a_read_is_checked_against_a_forgotten_delete() {
    let delete = transaction(1, (10, 20), &[row(X, 1)], &[no_row(X, 2)]);
    let reader = transaction(2, (30, 40), &[no_row(X, 0), row(Y, 1)], &[]);
    let history = [load(), delete, reader];
    let check = |at: Option<u64>| {
        let mut checker = Checker::new(Options::default());
        history
            .iter()
            .for_each(|transaction| checker.feed(&Event::Transaction(transaction.clone())));
        let forgotten =
            |at| Event::Forgotten(Forgotten { table: 0, key: [X].into(), version: 2, at });
        at.into_iter().for_each(|at| checker.feed(&forgotten(at)));
        checker.finish().verdict
    };
    assert_eq!(check(Some(25)), Verdict::Serializable);
    for at in [None, Some(45)] {
        let Verdict::Violated(violation) = check(at) else {
            panic!("the key had a version until {at:?}")
        };
        assert_eq!(violation.anomaly, Anomaly::ReadSkew, "it saw Y as loaded, but not X");
    }
}

/// A look-back has not seen the delete of a row that was inserted and deleted after its time.
#[test]
fn a_read_as_of_the_past_does_not_see_a_row_deleted_since() {
    let insert = transaction(1, (10, 11), &[], &[row(7, 5), row(X, 5)]);
    let delete = transaction(2, (12, 13), &[row(7, 5)], &[no_row(7, 9)]);
    let forgotten = Event::Forgotten(Forgotten { table: 0, key: [7].into(), version: 9, at: 20 });
    let verdict = |as_of, reads: &[Access]| {
        // By a snapshot of the time before the insert, long after the delete.
        let mut reader = transaction(3, (5, 30), reads, &[]);
        (reader.as_of, reader.scans) = (as_of, vec![everything()]);
        let mut checker = Checker::new(Options { strict: true, ..Options::default() });
        for transaction in [load(), insert.clone(), delete.clone(), reader] {
            checker.feed(&Event::Transaction(transaction));
        }
        checker.feed(&forgotten);
        checker.finish().verdict
    };
    let before = [row(X, 1), row(Y, 1)];
    assert_eq!(verdict(Some(3), &before), Verdict::Serializable);
    assert!(
        matches!(verdict(None, &before), Verdict::Violated(_)),
        "it has seen the delete, and X before that"
    );
    let after = [row(X, 5), row(Y, 1)];
    assert_eq!(verdict(Some(9), &after), Verdict::Serializable);
    assert!(
        matches!(verdict(Some(5), &after), Verdict::Violated(_)),
        "it has seen the insert, and no row"
    );
}

#[test]
fn real_time() {
    let writer = transaction(1, (10, 20), &[], &[row(X, 2)]);
    let reader = transaction(2, (30, 40), &[row(X, 1)], &[]);
    let history = [load(), writer, reader];
    assert_eq!(
        verdict(&history, Options::default()),
        Verdict::Serializable,
        "it can have come before"
    );
    let strict = Options { strict: true, ..Options::default() };
    let violation = violation(&history, strict);
    assert_eq!(violation.anomaly, Anomaly::RealTime);
    let text = violation.to_string();
    assert!(text.contains("read version 1 of table 0 key (1) group 0 and"), "{text}");
    assert!(text.contains("session 2 at 30..40") && text.contains("had ended"), "{text}");
}

#[test]
fn two_writers_of_one_version_are_reported() {
    let writers = [1, 2].map(|session| transaction(session, (10, 20 + session), &[], &[row(X, 2)]));
    assert_eq!(named(&[&[load()], &writers[..]].concat()), Anomaly::TwoWriters);
}

#[test]
fn a_version_read_as_both_row_and_absence_is_wrong_presence() {
    for (session, reads) in [(1, [no_row(X, 1)]), (2, [Access { version: None, ..row(9, 1) }])] {
        let reader = transaction(session, (10, 20), &reads, &[]);
        assert_eq!(named(&[load(), reader]), Anomaly::WrongPresence);
    }
    // The reader ends before the writer.
    let reader = transaction(1, (10, 20), &[no_row(X, 2)], &[]);
    let writer = transaction(2, (11, 30), &[], &[row(X, 2)]);
    assert_eq!(named(&[load(), reader, writer]), Anomaly::WrongPresence);
}

#[test]
fn reads_of_aborted_attempts_are_judged_with_the_option() {
    let writer = transaction(1, (10, 20), &[], &[row(X, 2), row(Y, 2)]);
    let mut reader = transaction(2, (11, 21), &[row(X, 1), row(Y, 2)], &[]);
    reader.committed = false;
    let history = [load(), writer, reader];
    assert_eq!(verdict(&history, Options::default()), Verdict::Serializable);
    let violation = violation(&history, Options { opaque: true, ..Options::default() });
    assert_eq!(violation.anomaly, Anomaly::ReadSkew);
    assert!(violation.to_string().contains("(aborted)"));
}

#[test]
fn the_worst_of_several_anomalies_is_reported() {
    // A write skew of two, and a circle of information of three.
    let skew = [(1, X), (2, Y)].map(|(session, key)| {
        transaction(session, (10, 20 + session), &[row(X, 1), row(Y, 1)], &[row(key, 2)])
    });
    let circle = [3, 4, 5].map(|number| {
        let next = 3 + (number - 2) % 3;
        transaction(number, (10, 20 + number), &[row(next, 1)], &[row(number, 1)])
    });
    let history = [&[load()], &skew[..], &circle].concat();
    let violation = violation(&history, Options::default());
    assert_eq!(violation.anomaly, Anomaly::CircularInformation);
    let candide_check::Evidence::Cycle(cycle) = violation.evidence else { panic!("it is a cycle") };
    assert!(cycle.len() == 3 && cycle.iter().all(|step| step.kind == Kind::Wr));
}

/// Returns the transaction, looking back to a time.
fn as_of(time: u64, transaction: Transaction) -> Transaction {
    Transaction { as_of: Some(time), ..transaction }
}

#[test]
fn reads_as_of_the_past_see_the_version_of_their_time() {
    let later = transaction(1, (10, 11), &[], &[row(X, 5)]);
    let at = |time, read: Access| as_of(time, transaction(2, (20, 21), &[read], &[]));
    for (time, version) in [(1, 1), (4, 1), (5, 5), (u64::MAX, 5)] {
        let history = [load(), later.clone(), at(time, row(X, version))];
        assert_eq!(
            verdict(&history, Options::default()),
            Verdict::Serializable,
            "{version} as of {time}"
        );
    }
    // Too young, too old, and not there at all.
    for (time, read) in
        [(3, row(X, 5)), (7, row(X, 1)), (5, row(X, 1)), (u64::MAX, row(X, 1)), (3, no_row(X, 0))]
    {
        let reader = at(time, read);
        assert_eq!(
            named(&[load(), later.clone(), reader.clone()]),
            Anomaly::WrongMoment,
            "{reader:?}"
        );
        // In either order.
        let early = Transaction { begun: 3, ended: 4, ..reader };
        assert_eq!(
            named(&[load(), later.clone(), early.clone()]),
            Anomaly::WrongMoment,
            "{early:?}"
        );
    }
    // A range in which a row was that was not met.
    let mut blind = at(3, row(Y, 1));
    blind.scans.push(everything());
    assert_eq!(named(&[load(), later.clone(), blind]), Anomaly::WrongMoment);
    let report =
        violation(&[load(), later.clone(), at(7, row(X, 1))], Options::default()).to_string();
    let expected =
        "snapshot violation: A transaction that read as of a moment did not see the versions of that moment.
  T1: session 2 at 20..21
  T2: session 1 at 10..11
  T1 looked back to 7 and saw version 1 of table 0 key (1) group 0, at the time of version 5; T2 wrote that
";
    assert_eq!(report, expected);
    let report = violation(&[load(), later, at(3, row(X, 5))], Options::default()).to_string();
    assert!(report.ends_with(
        "T1 looked back to 3 and saw version 5 of table 0 key (1) group 0, which is later\n"
    ));
}
