//! Tests of the features `metrics` and `histograms`: the counts of a known sequence of
//! transactions, as the database returns them and as the page of an exporter shows them.

#![cfg(all(feature = "metrics", feature = "histograms"))]

use candide::protocols::Exclusion;
use candide::report::{Latency, NamedAborts};
use candide::{Abort, Database, Mvcc, Protocol, Record, RunOptions, Serial, Session, Table};
use metrics_exporter_prometheus::PrometheusBuilder;
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

#[path = "../examples/prometheus.rs"]
#[expect(dead_code, reason = "the example's `main` is not called")]
mod example;

#[derive(Record, Debug, Clone, Copy)]
struct Account {
    #[key]
    id: u64,
    cents: i64,
}

const PAY: RunOptions<'static> = RunOptions::new().named("pay");

/// An error of a program.
#[derive(Debug, PartialEq)]
enum Failure {
    Own,
    Abort(Abort),
}

impl From<Abort> for Failure {
    fn from(abort: Abort) -> Failure {
        Failure::Abort(abort)
    }
}

fn database<P: Protocol>() -> (Database<P>, Table<Account, P>) {
    let db = Database::<P>::default();
    let accounts = db.table::<Account>("accounts").unwrap();
    db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 50 })).unwrap();
    (db, accounts)
}

/// Doubles the cents of account 1. In each of the first `conflicts` attempts another transaction
/// changes them after they were read.
fn double<P: Protocol>(
    db: &Database<P>,
    (session, options): (&mut Session<P>, RunOptions<'_>),
    accounts: &Table<Account, P>,
    conflicts: u32,
) -> Result<(), Abort> {
    session.with(options).run(|tx| {
        let cents = accounts.read(tx, 1, Account::CENTS)?;
        if tx.attempt_number() <= conflicts {
            db.run(|tx| accounts.update(tx, 1, Account::CENTS.set(1)))?;
        }
        accounts.update(tx, 1, Account::CENTS.set(cents * 2))
    })
}

/// Runs seven transactions called "pay", and one called "look".
fn run_sequence<P: Protocol>(db: &Database<P>, accounts: &Table<Account, P>) {
    let mut session = db.session().unwrap();
    assert_eq!(double(db, (&mut session, PAY), accounts, 2), Ok(()));
    let exhausted = double(db, (&mut session, PAY.attempts_max(3)), accounts, 9);
    assert_eq!(exhausted, Err(Abort::AttemptsExhausted));
    assert_eq!(double(db, (&mut session, PAY), accounts, 0), Ok(()));
    let take = Account::CENTS.sub(1_000_000).at_least(0);
    let poor = session.with(PAY).run(|tx| accounts.update(tx, 1, take));
    assert_eq!(poor, Err(Abort::Guard));
    let own = session.with(PAY).try_run(|tx| match accounts.read(tx, 1, Account::CENTS) {
        Ok(_) => Err::<(), Failure>(Failure::Own),
        Err(abort) => Err(abort.into()),
    });
    assert_eq!(own, Err(Failure::Own));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        session.with(PAY).run(|_| -> Result<(), Abort> { panic!("deliberate") })
    }));
    assert!(panicked.is_err());
    let look = RunOptions::new().named("look").read_only();
    session.with(look).run(|tx| accounts.read(tx, 1, Account::CENTS).map(drop)).unwrap();
    // From another session, so that two are added up.
    db.with(PAY).run(|tx| accounts.update(tx, 1, Account::CENTS.add(1))).unwrap();
}

fn aborts_of<P: Protocol>(db: &Database<P>) -> Vec<(&'static str, Option<String>, Abort, u64)> {
    let of = |NamedAborts { name, table, reason, count, .. }| (name, table, reason, count);
    db.named_aborts().into_iter().map(of).collect()
}

fn check_sequence<P: Protocol>(conflict: Abort) {
    let (db, accounts) = database::<P>();
    run_sequence(&db, &accounts);
    let stats: Vec<_> = db.named_stats();
    let counts: Vec<_> =
        stats.iter().map(|of| (of.name, of.commits, of.retries, of.errors)).collect();
    assert_eq!(counts, [("look", 1, 0, 0), ("pay", 3, 4, 4)]);
    let table = Some("accounts".to_string());
    let expected = [
        ("pay", None, Abort::Guard, 1),
        ("pay", None, Abort::AttemptsExhausted, 1),
        ("pay", table, conflict, 5),
    ];
    assert_eq!(aborts_of(&db), expected, "{}", P::NAME);
    for NamedAborts { reason, count, .. } in db.named_aborts() {
        assert_eq!(db.stats().aborts[reason as usize], count, "only named ones have aborted");
    }
    let latencies = db.latencies();
    let counts: Vec<_> = latencies.iter().map(|of| (of.name(), of.count())).collect();
    assert_eq!(counts, [("look", 1), ("pay", 7)], "as many as have committed or ended in errors");
}

#[test]
fn counts_of_named_transactions_with_conflicts_are_exact() {
    check_sequence::<candide::Occ>(Abort::ReadChanged);
    check_sequence::<Mvcc>(Abort::ReadChanged);
}

#[test]
fn what_ended_sessions_have_counted_stays() {
    let (db, accounts) = database::<candide::Occ>();
    thread::scope(|scope| scope.spawn(|| run_sequence(&db, &accounts)).join().unwrap());
    let (aborts, latencies) = (aborts_of(&db), db.latencies());
    assert_eq!((aborts.len(), latencies[1].count()), (3, 7));
    run_sequence(&db, &accounts);
    let twice = |(name, table, reason, count): (_, _, _, u64)| (name, table, reason, 2 * count);
    assert_eq!(aborts_of(&db), aborts.into_iter().map(twice).collect::<Vec<_>>());
    assert_eq!(db.latencies()[1].count(), 14);
    assert!(db.latencies()[1].max() >= latencies[1].max());
}

#[test]
fn transactions_without_a_name_are_not_observed() {
    let (db, accounts) = database::<candide::Occ>();
    let mut session = db.session().unwrap();
    // The session forgets the name of the transaction before.
    assert_eq!(session.with(PAY).run(|_| Ok(())), Ok(()));
    double(&db, (&mut session, RunOptions::new()), &accounts, 1).unwrap();
    assert_eq!(db.stats().total_aborts(), 1);
    assert_eq!(aborts_of(&db), []);
    assert_eq!(db.latencies().iter().map(Latency::count).sum::<u64>(), 1);
}

#[test]
fn a_latency_is_the_time_from_call_to_return_with_its_unit() {
    let (db, accounts) = database::<candide::Occ>();
    let mut session = db.session().unwrap();
    let begun = Instant::now();
    session
        .with(PAY)
        .run(|tx| {
            thread::sleep(Duration::from_millis(20));
            if tx.attempt_number() == 1 {
                accounts.read(tx, 1, Account::CENTS)?;
                db.run(|tx| accounts.update(tx, 1, Account::CENTS.add(1)))?;
            }
            accounts.update(tx, 1, Account::CENTS.add(1))
        })
        .unwrap();
    let outside = begun.elapsed();
    let of_pay = &db.latencies()[0];
    assert_eq!((of_pay.name(), of_pay.count()), ("pay", 1));
    // Two attempts, each of which sleeps.
    assert!(of_pay.max() >= Duration::from_millis(40), "{:?}", of_pay.max());
    assert!(of_pay.max() <= outside.mul_f64(1.0 + 1.0 / 128.0), "{:?}", of_pay.max());
    assert_eq!((of_pay.p50(), of_pay.p99()), (of_pay.max(), of_pay.max()));
}

#[test]
fn a_refusal_before_the_first_attempt_is_counted() {
    let db = Database::<Serial>::builder().policy(Exclusion::GlobalLock).build().unwrap();
    let mut session = db.session().unwrap();
    let refused = db.run(|_| Ok(session.with(PAY).run(|_| Ok(()))));
    assert_eq!(refused, Ok(Err(Abort::Nested)));
    assert_eq!(aborts_of(&db), [("pay", None, Abort::Nested, 1)]);
    assert_eq!((db.named_stats()[0].errors, db.latencies()[0].count()), (1, 1));
}

#[test]
fn an_outcome_that_the_closure_returns_is_its_error_and_no_abort() {
    let (db, accounts) = database::<candide::Occ>();
    let returned = db.with(PAY).run(|tx| {
        accounts.read(tx, 1, Account::CENTS)?;
        Err::<(), _>(Abort::Guard)
    });
    assert_eq!(returned, Err(Abort::Guard));
    assert_eq!(aborts_of(&db), []);
    assert_eq!(db.named_stats()[0].errors, 1);
}

#[test]
fn empty_and_long_names_are_refused_with_a_message() {
    let message = |name: &'static str| {
        let panic = catch_unwind(|| RunOptions::new().named(name)).err()?;
        panic.downcast_ref::<&str>().map(ToString::to_string)
    };
    let long = |bytes: usize| &*Box::leak("n".repeat(bytes).into_boxed_str());
    assert_eq!(message(long(100)), None);
    let empty = message("").unwrap();
    assert!(empty.contains("leave `named` out"), "{empty}");
    let long = message(long(101)).unwrap();
    assert!(long.contains("100 bytes"), "{long}");
}

/// A value of a page: the metric's name and its labels.
type Place = (String, BTreeMap<String, String>);

/// Parses a page of the text format, version 0.0.4. Panics at what a server would refuse.
fn parse(page: &str) -> BTreeMap<Place, f64> {
    let (mut kinds, mut helped, mut values) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
    for line in page.lines().filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, text) = rest.split_once(' ').expect("a help has a text");
            assert!(!text.is_empty() && helped.insert(name.to_string()), "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type has a kind");
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            assert_eq!(kinds.insert(name.to_string(), kind.to_string()), None, "{line}");
        } else {
            let (place, value) = line.rsplit_once(' ').expect("a sample has a value");
            let (name, labels) = match place.split_once('{') {
                None => (place, BTreeMap::new()),
                Some((name, rest)) => (name, labels(rest.strip_suffix('}').expect("labels end"))),
            };
            let kind = kinds.get(name).unwrap_or_else(|| panic!("no type before {line}"));
            assert!(helped.contains(name), "no help for {name}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            let value: f64 = value.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
            let earlier = values.insert((name.to_string(), labels), value);
            assert_eq!(earlier, None, "twice: {line}");
        }
    }
    values
}

/// Parses labels, whose values here have no commas.
fn labels(text: &str) -> BTreeMap<String, String> {
    let one = |label: &str| {
        let (name, value) = label.split_once('=').expect("a label has a value");
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        (name.to_string(), value.expect("a value is in quotes").to_string())
    };
    text.split(',').map(one).collect()
}

fn place(name: &str, labels: &[(&str, &str)]) -> Place {
    let labels = labels.iter().map(|&(name, value)| (name.to_string(), value.to_string()));
    (name.to_string(), labels.collect())
}

#[test]
fn a_published_page_has_the_counts_of_the_database() {
    let (db, accounts) = database::<candide::Occ>();
    run_sequence(&db, &accounts);
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        db.publish_metrics("first");
        let before = parse(&exporter.render());
        db.publish_metrics("first");
        let counters = |page: &BTreeMap<Place, f64>| -> Vec<(Place, f64)> {
            // Epochs belong to the process, and other tests end some, too.
            let is_counter = |((name, _), _): &(&Place, &f64)| {
                name.ends_with("_total") && !name.contains("_epochs_")
            };
            page.iter().filter(is_counter).map(|(place, value)| (place.clone(), *value)).collect()
        };
        assert_eq!(counters(&parse(&exporter.render())), counters(&before), "counts are absolute");
        db.publish_metrics("");
    });
    let page = parse(&exporter.render());
    let stats = db.stats();
    for with_label in [true, false] {
        let value = |name: &str, labels: &[(&str, &str)]| {
            let database = with_label.then_some(("database", "first"));
            let labels: Vec<_> = database.into_iter().chain(labels.iter().copied()).collect();
            let place = place(name, &labels);
            *page.get(&place).unwrap_or_else(|| panic!("the page has no {place:?}"))
        };
        assert_eq!(value("candide_commits_total", &[]), stats.commits as f64);
        assert_eq!(value("candide_errors_total", &[]), stats.user_errors as f64);
        assert_eq!(value("candide_retries_total", &[]), 4.0);
        for (reason, count) in stats.abort_reasons() {
            assert_eq!(value("candide_aborts_total", &[("reason", reason)]), count as f64);
        }
        let pay = ("transaction", "pay");
        assert_eq!(value("candide_transactions_total", &[pay, ("outcome", "commit")]), 3.0);
        assert_eq!(value("candide_transactions_total", &[pay, ("outcome", "error")]), 4.0);
        assert_eq!(value("candide_transaction_retries_total", &[pay]), 4.0);
        let place = [pay, ("table", "accounts"), ("reason", "read_changed")];
        assert_eq!(value("candide_transaction_aborts_total", &place), 5.0);
        let place = [pay, ("table", ""), ("reason", "guard")];
        assert_eq!(value("candide_transaction_aborts_total", &place), 1.0);
        let of_pay = &db.latencies()[1];
        for (quantile, time) in [("0.5", of_pay.p50()), ("0.99", of_pay.p99()), ("1", of_pay.max())]
        {
            let seen = value("candide_transaction_seconds", &[pay, ("quantile", quantile)]);
            assert_eq!(seen, time.as_secs_f64(), "{quantile}");
        }
        let of_table = ("table", "accounts");
        assert_eq!(value("candide_table_rows", &[of_table]), 1.0);
        let record_bytes = value("candide_table_bytes", &[of_table, ("part", "records")]);
        assert_eq!(record_bytes, db.tables()[0].record_bytes as f64);
        assert_eq!(value("candide_sessions", &[]), db.health().sessions as f64);
        let reserved_bytes = db.memory().reserved_bytes as f64;
        assert_eq!(value("candide_memory_reserved_bytes", &[]), reserved_bytes);
    }
    let is_of_log = |((name, _), _): (&Place, &f64)| name.starts_with("candide_log");
    assert!(!page.iter().any(is_of_log), "a database in memory has no log");
}

#[test]
fn a_page_of_a_database_in_files_has_the_bytes_of_the_log() {
    let path = std::env::temp_dir().join(format!("candide-metrics-{}", std::process::id()));
    let db = Database::open(&path).unwrap();
    let accounts = db.table::<Account>("accounts").unwrap();
    db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 50 })).unwrap();
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || db.publish_metrics("files"));
    let page = parse(&recorder.handle().render());
    let of = |name| page[&place(name, &[("database", "files")])];
    let durability = db.durability().unwrap();
    assert!(durability.recorded_bytes > 0);
    assert_eq!(of("candide_log_recorded_bytes_total"), durability.recorded_bytes as f64);
    assert!(of("candide_log_bytes") > 0.0);
    assert_eq!((of("candide_log_full"), of("candide_log_failed")), (0.0, 0.0));
    assert_eq!(of("candide_checkpoint_failed"), 0.0);
    assert_eq!(of("candide_remote_checkpoint_failed"), 0.0);
    drop((db, accounts));
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn the_page_of_the_example_can_be_parsed() {
    let (db, accounts) = example::bank().unwrap();
    for number in 0..200 {
        let _ = example::pay(&db, &accounts, number % 8, number / 8 % 8);
    }
    assert_eq!(example::audit(&db, &accounts), Ok(8_000));
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = |path: &'static str| {
        let client = thread::spawn(move || example::ask(address, path));
        let (stream, _) = listener.accept().unwrap();
        metrics::with_local_recorder(&recorder, || example::answer(stream, &db, &exporter))
            .unwrap();
        client.join().unwrap().unwrap()
    };
    let answer = asked("/metrics");
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let page = parse(page);
    let of = |outcome| {
        let labels = [("database", "bank"), ("transaction", "pay"), ("outcome", outcome)];
        page[&place("candide_transactions_total", &labels)]
    };
    assert_eq!(of("commit") + of("error"), 200.0);
    assert!(asked("/").starts_with("HTTP/1.1 404 Not Found\r\n"));
}
