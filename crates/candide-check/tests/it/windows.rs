//! A history that is fed in windows gets the verdict that it gets as a whole, with memory for some
//! windows only.

use crate::common::{Random, Shape, history, no_row, told, transaction};
use crate::growth::{TIMES, assert_in_proportion};
use candide_check::{
    Access, Anomaly, Checker, Event, Evidence, Forgotten, Options, Scan, Summary, Transaction,
    Verdict, Windows,
};
use std::ops::Bound;

/// Feeds in windows of random length and random order, some lines earlier than they are due.
fn in_windows(
    random: &mut Random,
    mut events: Vec<Event>,
    options: Options,
    windows: u64,
) -> Summary {
    events.sort_by_key(Event::due);
    let last = events.last().map_or(0, Event::due);
    let mut checker = Checker::new(options);
    let mut watermark = 0;
    while !events.is_empty() {
        watermark += 1 + random.below(2 * last / windows + 1);
        let due_now = events.partition_point(|event| event.due() < watermark);
        let early = random.below(4).min((events.len() - due_now) as u64) as usize;
        let mut window: Vec<Event> = events.drain(..due_now).collect();
        for _ in 0..early {
            window.push(events.remove(random.below(events.len() as u64) as usize));
        }
        random.shuffle(&mut window);
        window.iter().for_each(|event| checker.feed(event));
        checker.advance(watermark);
    }
    checker.finish()
}

fn as_a_whole(events: &[Event], options: Options) -> Verdict {
    let mut checker = Checker::new(options);
    events.iter().for_each(|event| checker.feed(event));
    checker.finish().verdict
}

fn random_shape(random: &mut Random) -> Shape {
    let wrong = [0, 1, 5, 20][random.below(4) as usize];
    let (keys, overlap) = (3 + random.below(10), 1 + random.below(6));
    Shape {
        transactions: 20 + random.below(150),
        keys,
        overlap,
        wrong,
        shifted: wrong.min(3),
        ..Shape::SMALL
    }
}

fn same(one: &Verdict, other: &Verdict) -> bool {
    matches!(
        (one, other),
        (Verdict::Serializable, Verdict::Serializable)
            | (Verdict::Violated(_), Verdict::Violated(_))
    )
}

#[test]
fn strict_verdicts_do_not_depend_on_windows() {
    let mut random = Random(2);
    let (mut good, mut bad, mut inconclusive) = (0, 0, 0);
    for number in 0..2_000 {
        let shape = random_shape(&mut random);
        let events = history(&mut random, shape);
        let options = Options {
            strict: true,
            opaque: random.percent(30),
            horizon: random.below(2) * random.below(5000),
        };
        let whole = as_a_whole(&events, Options { horizon: u64::MAX, ..options });
        let windows = 1 + random.below(40);
        let windowed = in_windows(&mut random, events.clone(), options, windows).verdict;
        // Of look-backs that missed a dropped key only the latest time is kept.
        let unsure = matches!(&windowed, Verdict::Inconclusive(why) if why.starts_with("the readers that had looked back"));
        assert!(
            same(&whole, &windowed) || unsure && whole != Verdict::Serializable,
            "history {number}: {whole:?}, windowed {windowed:?}\n{}",
            told(&events)
        );
        inconclusive += u32::from(unsure);
        if whole == Verdict::Serializable { good += 1 } else { bad += 1 }
    }
    assert!(
        good > 500 && bad > 500 && inconclusive < 20,
        "{good} good, {bad} bad, {inconclusive} inconclusive"
    );
}

#[test]
fn other_verdicts_do_not_depend_on_windows_unless_they_say_so() {
    let mut random = Random(3);
    let (mut good, mut bad, mut inconclusive, mut spanning) = (0, 0, 0, 0);
    for number in 0..3_000 {
        let shape = random_shape(&mut random);
        let events = history(&mut random, shape);
        let horizon = [0, 500, 5_000, 50_000, u64::MAX][random.below(5) as usize];
        let options = Options { strict: false, opaque: random.percent(30), horizon };
        let whole = as_a_whole(&events, Options { horizon: u64::MAX, ..options });
        let windows = 1 + random.below(40);
        let windowed = in_windows(&mut random, events.clone(), options, windows).verdict;
        match &windowed {
            Verdict::Inconclusive(why) => {
                assert_ne!(horizon, u64::MAX);
                assert!(why.contains("horizon"), "{why}");
                inconclusive += 1;
                continue;
            }
            Verdict::Serializable => good += 1,
            Verdict::Violated(violation) => {
                bad += 1;
                if let Evidence::Cycle(cycle) = &violation.evidence {
                    let first =
                        cycle.iter().map(|step| step.from.ended).min().expect("a cycle has steps");
                    let last =
                        cycle.iter().map(|step| step.from.begun).max().expect("a cycle has steps");
                    spanning += u32::from(windows > 20 && last > first);
                }
            }
        }
        assert!(
            same(&whole, &windowed),
            "history {number}: {whole:?}, windowed {windowed:?}\n{}",
            told(&events)
        );
    }
    println!("{good} good, {bad} bad, {inconclusive} inconclusive, {spanning} across time");
    assert!(good > 500 && bad > 500 && inconclusive > 100 && spanning > 50);
}

#[test]
fn peeling_within_a_window_does_not_change_verdicts() {
    let mut random = Random(4);
    let (mut good, mut bad) = (0, 0);
    for number in 0..40 {
        let wrong = number % 2;
        let shape = Shape { transactions: 2_000, wrong, shifted: 0, ..random_shape(&mut random) };
        let events = history(&mut random, shape);
        for (strict, horizon) in [(true, 0), (false, 1_000_000)] {
            let whole = as_a_whole(&events, Options { strict, opaque: false, horizon: u64::MAX });
            let peeled = as_a_whole(&events, Options { strict, opaque: false, horizon });
            let unsure = !strict && matches!(peeled, Verdict::Inconclusive(_));
            assert!(
                same(&whole, &peeled) || unsure,
                "history {number}, strict {strict}: {whole:?}, peeled {peeled:?}"
            );
            assert!(wrong > 0 || !unsure, "history {number}: {peeled:?}");
            if whole == Verdict::Serializable { good += 1 } else { bad += 1 }
        }
    }
    assert!(good >= 20 && bad >= 20, "{good} good, {bad} bad");
}

fn access(key: u64, version: u64, present: bool) -> Access {
    Access { present, ..no_row(key, version) }
}

/// A transaction that runs alone, at this time.
fn alone(time: u64, reads: Vec<Access>, writes: Vec<Access>) -> Transaction {
    transaction(0, (10 * time, 10 * time + 5), &reads, &writes)
}

/// A queue: each transaction puts in a key and takes out the one of a hundred transactions ago;
/// some go through the front before.
fn queue(length: u64, mut each: impl FnMut(Event)) {
    for time in 1..=length {
        let mut transaction = alone(time, Vec::new(), vec![access(time, time, true)]);
        let front = time.saturating_sub(100);
        if front > 0 {
            transaction.reads.push(access(front, front, true));
            if time % 8 == 0 {
                let (from, to) = (Bound::Unbounded, Bound::Included([front].into()));
                transaction.scans.push(Scan { table: 0, from, to });
            }
            transaction.writes.push(access(front, time, false));
        }
        each(Event::Transaction(transaction));
        if front > 0 {
            each(Event::Forgotten(Forgotten {
                table: 0,
                key: [front].into(),
                version: time,
                at: 10 * time + 6,
            }));
        }
    }
}

const QUEUE: u64 = 80_000;

fn checker_after_queue(options: Options) -> Checker {
    let mut checker = Checker::new(options);
    let mut lines = 0;
    queue(QUEUE, |event| {
        checker.feed(&event);
        lines += 1;
        if lines % 1_000 == 0 {
            checker.advance(event.due());
            assert!(checker.live() < 3_000, "{} live after {lines} lines", checker.live());
            assert!(checker.units() < 3_000, "{} units after {lines} lines", checker.units());
        }
    });
    checker
}

#[test]
fn memory_of_the_checker_is_bounded() {
    for options in [(true, 0), (false, 0), (false, 2_000)].map(|(strict, horizon)| Options {
        strict,
        opaque: true,
        horizon,
    }) {
        let summary = checker_after_queue(options).finish();
        assert_eq!(summary.verdict, Verdict::Serializable);
        assert_eq!(summary.transactions, QUEUE);
    }
}

#[test]
fn a_forgotten_transaction_is_never_judged_serializable() {
    // A read of a deleted row, a write below its delete, and a scan that misses a row, each long
    // after; the first two for a key that is remembered and for one that is not.
    let (recent, old) = (QUEUE - 1_000, 1_000);
    let mut cases = Vec::new();
    for key in [recent, old] {
        cases.push(alone(QUEUE + 1, vec![access(key, key, true)], vec![]));
        cases.push(alone(QUEUE + 1, vec![], vec![access(key, key + 1, true)]));
    }
    let mut blind = alone(QUEUE + 1, vec![], vec![]);
    blind.scans.push(Scan {
        table: 0,
        from: Bound::Included([QUEUE - 10].into()),
        to: Bound::Unbounded,
    });
    cases.push(blind);
    for strict in [true, false] {
        for (number, case) in cases.iter().enumerate() {
            let mut checker = checker_after_queue(Options { strict, opaque: false, horizon: 0 });
            checker.advance(10 * QUEUE + 9);
            checker.feed(&Event::Transaction(case.clone()));
            let verdict = checker.finish().verdict;
            match verdict {
                Verdict::Violated(violation) => assert!(strict, "case {number}: {violation}"),
                Verdict::Inconclusive(_) => {
                    assert!(!strict || [2, 3].contains(&number), "case {number}")
                }
                Verdict::Serializable => panic!("case {number}, strict {strict}"),
            }
        }
    }
}

/// One key comes and goes, and the next reader misses it; each time is three transactions.
fn coming_and_going(times: u64) -> Vec<Event> {
    let mut events = Vec::new();
    for number in 1..=times {
        let (time, version) = (3 * number, 2 * number);
        events.push(Event::Transaction(alone(time, vec![], vec![access(7, version, true)])));
        events.push(Event::Transaction(alone(
            time + 1,
            vec![],
            vec![access(7, version + 1, false)],
        )));
        let key = [7].into();
        events.push(Event::Forgotten(Forgotten {
            table: 0,
            key,
            version: version + 1,
            at: 10 * time + 16,
        }));
        events.push(Event::Transaction(alone(time + 2, vec![access(7, 0, false)], vec![])));
    }
    events
}

#[test]
fn lookups_of_a_key_that_was_often_forgotten_stay_fast() {
    // Those that are fed as a whole, in any order: each look at all of them would take a minute and
    // more in all.
    let times = 60_000;
    let (mut small, mut large) = (coming_and_going(times / TIMES as u64), coming_and_going(times));
    for what in ["in order", "in any order"] {
        assert_in_proportion(what, &small, &large, |events| {
            assert_eq!(as_a_whole(events, Options::default()), Verdict::Serializable, "{what}");
        });
        Random(5).shuffle(&mut small);
        Random(5).shuffle(&mut large);
    }
}

#[test]
fn unordered_lines_are_kept_for_a_bounded_number_of_windows() {
    let mut events = coming_and_going(60_000);
    // As threads hand them over: a part of each in turn.
    events.chunks_mut(6_000).for_each(|part| Random(6).shuffle(part));
    let mut windows = Windows::default();
    events.iter().for_each(|event| windows.note(event));
    let watermarks = windows.watermarks();
    assert_eq!(watermarks.len(), events.len().div_ceil(Windows::LINES));
    assert_eq!(watermarks.last(), Some(&u64::MAX));
    for options in [(true, 0), (false, 1_000)].map(|(strict, horizon)| Options {
        strict,
        opaque: false,
        horizon,
    }) {
        let mut checker = Checker::new(options);
        let mut live_max = 0;
        for (window, watermark) in events.chunks(Windows::LINES).zip(&watermarks) {
            window.iter().for_each(|event| checker.feed(event));
            checker.advance(*watermark);
            live_max = checker.live().max(live_max);
        }
        assert!(live_max < Windows::LINES, "{live_max} were held");
        assert_eq!(checker.finish().verdict, Verdict::Serializable);
    }
}

/// All keys.
fn everything() -> Scan {
    Scan { table: 0, from: Bound::Unbounded, to: Bound::Unbounded }
}

/// Returns the transaction moved to another table.
fn moved(table: u16, mut event: Event) -> Event {
    match &mut event {
        Event::Transaction(transaction) => {
            transaction
                .reads
                .iter_mut()
                .chain(&mut transaction.writes)
                .for_each(|access| access.table = table);
            transaction.scans.iter_mut().for_each(|scan| scan.table = table);
        }
        Event::Forgotten(forgotten) => forgotten.table = table,
    }
    event
}

/// A transaction goes through all keys, or reads one, and writes key 0. Another one, which comes
/// when that has ended, inserts the key and still reads key 0 as it was: each would have to come
/// before the other one.
fn insert_behind(
    scan: bool,
    before: &[Event],
    version: u64,
    times: (u64, u64),
    horizon: u64,
) -> Verdict {
    let verdict = insert_behind_in(0, scan, before, version, times, horizon);
    // In the last table that there can be it is the same.
    let last = insert_behind_in(u16::MAX, scan, before, version, times, horizon);
    assert!(same(&verdict, &last), "{verdict:?}, in the last table {last:?}");
    verdict
}

fn insert_behind_in(
    table: u16,
    scan: bool,
    before: &[Event],
    version: u64,
    times: (u64, u64),
    horizon: u64,
) -> Verdict {
    let mut checker = Checker::new(Options { strict: false, opaque: false, horizon });
    let in_table = |transaction| moved(table, Event::Transaction(transaction));
    checker.feed(&in_table(alone(1, vec![], vec![access(0, 1, true)])));
    before.iter().for_each(|event| checker.feed(&moved(table, event.clone())));
    let mut reader = alone(times.0, vec![access(0, 1, true)], vec![access(0, times.0, true)]);
    if scan {
        reader.scans.push(everything());
    } else {
        reader.reads.push(access(7, 0, false));
    }
    checker.feed(&in_table(reader));
    checker.advance(10 * times.1);
    assert_eq!(
        checker.units(),
        if scan { 1 } else { 2 },
        "a key without a row is held only for its readers"
    );
    checker.feed(&in_table(alone(
        times.1,
        vec![access(0, 1, true)],
        vec![access(7, version, true)],
    )));
    checker.finish().verdict
}

fn assert_is(verdict: &Verdict, anomaly: Anomaly) {
    assert!(
        matches!(verdict, Verdict::Violated(violation) if violation.anomaly == anomaly),
        "{verdict:?}"
    );
}

#[test]
fn readers_of_absent_keys_are_overtaken_by_later_windows() {
    assert_is(&insert_behind(true, &[], 3, (2, 3), u64::MAX), Anomaly::Phantom);
    assert_is(&insert_behind(false, &[], 3, (2, 3), u64::MAX), Anomaly::WriteSkew);
    // The key was there, and can be dropped while the reader is held.
    let before = [
        Event::Transaction(alone(2, vec![], vec![access(7, 2, true)])),
        Event::Transaction(alone(3, vec![], vec![access(7, 3, false)])),
        Event::Forgotten(Forgotten { table: 0, key: [7].into(), version: 3, at: 40 }),
    ];
    assert_is(&insert_behind(true, &before, 60, (50, 60), 200), Anomaly::Phantom);
    assert_is(&insert_behind(false, &before, 60, (50, 60), 200), Anomaly::WriteSkew);
}

#[test]
#[should_panic(expected = "fed after the watermark 100")]
fn late_lines_are_refused() {
    let mut checker = Checker::new(Options::default());
    checker.advance(100);
    checker.feed(&Event::Transaction(alone(9, vec![], vec![])));
}
