//! Tests of the events and spans of the feature `tracing`: their contents, and that no row is held
//! and no session pinned when they are emitted.

#![cfg(feature = "tracing")]

use candide::{Abort, Database, Record, RunOptions};
use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record as Values};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

#[derive(Record, Debug, Clone, Copy)]
struct Account {
    #[key]
    id: u64,
    #[group(balance)]
    cents: i64,
}

/// A subscriber. It passes each event, as one line, to the function that this thread has put into
/// [`LISTENER`], and what happens to spans as lines of level `TRACE`.
struct Listening;

impl Listening {
    /// Passes a line to the listener of this thread.
    fn pass(level: Level, line: String) {
        // The listener is taken out of its slot, so that the listener itself may cause events.
        let Some(mut listener) = LISTENER.with(|slot| slot.borrow_mut().take()) else { return };
        listener(level, line);
        LISTENER.with(|slot| *slot.borrow_mut() = Some(listener));
    }
}

type Listener = Box<dyn FnMut(Level, String)>;

thread_local! {
    static LISTENER: RefCell<Option<Listener>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Listening {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // Whether an event is wanted differs between threads.
        Interest::sometimes()
    }
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("candide::")
            && LISTENER.with(|listener| listener.borrow().is_some())
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let (target, level) = (span.metadata().target(), span.metadata().level());
        let mut line = Line(format!("new {level} {target}"));
        span.record(&mut line);
        Listening::pass(Level::TRACE, line.0);
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &Values<'_>) {
        let mut line = Line("record".to_string());
        values.record(&mut line);
        Listening::pass(Level::TRACE, line.0);
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().target().to_string());
        event.record(&mut line);
        Listening::pass(*event.metadata().level(), line.0);
    }
    fn enter(&self, _: &Id) {
        Listening::pass(Level::TRACE, "enter".to_string());
    }
    fn exit(&self, _: &Id) {
        Listening::pass(Level::TRACE, "exit".to_string());
    }
    fn try_close(&self, _: Id) -> bool {
        Listening::pass(Level::TRACE, "close".to_string());
        true
    }
}

/// Runs `body`. Meanwhile `listener` gets the events of this thread.
fn listening<T>(listener: impl FnMut(Level, String) + 'static, body: impl FnOnce() -> T) -> T {
    static SUBSCRIBED: Once = Once::new();
    SUBSCRIBED
        .call_once(|| tracing::subscriber::set_global_default(Listening).expect("the only one"));
    LISTENER.with(|slot| *slot.borrow_mut() = Some(Box::new(listener)));
    let result = body();
    LISTENER.with(|slot| slot.borrow_mut().take());
    result
}

thread_local! {
    static HEARD: RefCell<Vec<(Level, String)>> = const { RefCell::new(Vec::new()) };
}

fn hear(level: Level, line: String) {
    HEARD.with(|heard| heard.borrow_mut().push((level, line)));
}

#[test]
fn conflicts_and_the_token_are_traced_without_holding_locks() {
    let db = Database::new();
    let table = db.table::<Account>("accounts").unwrap();
    db.run(|tx| table.insert(tx, Account { id: 7, cents: 0 })).unwrap();
    let mut session = db.session().unwrap();
    let number = session.number();
    let listener = {
        let (db, table) = (db.clone(), table.clone());
        move |level, line| {
            // The row was locked and the session was pinned. Now both are free for other
            // transactions.
            assert_eq!(db.health().oldest_pin, None);
            let once = RunOptions::new().attempts_max(1);
            let token = level == Level::WARN;
            let looked = db.with(once).run(|tx| match token {
                // Writers yield to the token.
                true => table.read(tx, 7, Account::CENTS),
                false => table.read_for_update(tx, 7, Account::CENTS),
            });
            assert_eq!(looked.map(drop), Ok(()));
            hear(level, line);
        }
    };
    let result = listening(listener, || {
        session.with(RunOptions::new().named("add").attempts_max(34)).run(|tx| {
            table.read(tx, 7, Account::CENTS)?;
            if tx.attempt_number() <= 32 {
                db.run(|tx| table.update(tx, 7, Account::CENTS.add(1)))?;
            }
            table.read_for_update(tx, 7, Account::CENTS)?;
            table.update(tx, 7, Account::CENTS.add(1))
        })
    });
    assert_eq!(result, Ok(()));
    let heard = HEARD.take();
    let conflicts = heard.iter().filter(|(level, _)| *level == Level::DEBUG).map(|(_, line)| line);
    for (attempt, line) in (1..).zip(conflicts) {
        let cause = r#"candide::conflict message=add: read_changed on accounts.balance, key id: 7 cause="read_changed""#;
        let place = r#" transaction="add" table="accounts" group="balance" key="7""#;
        assert_eq!(*line, format!("{cause}{place} attempt={attempt}"));
    }
    let warnings: Vec<_> = heard.iter().filter(|(level, _)| *level == Level::WARN).collect();
    let message = "others give way to a transaction that has met 32 conflicts";
    let counts = format!("session={number} conflicts=32");
    let line = format!(r#"candide::token message={message} {counts} transaction="add""#);
    assert_eq!(warnings, [&(Level::WARN, line)]);
    let spans: Vec<_> = heard.iter().filter(|(level, _)| *level == Level::TRACE).collect();
    assert_eq!(heard.len() - spans.len(), 33);
}

/// Runs `body` and returns what it has caused, as lines.
fn heard_of<T>(body: impl FnOnce() -> T) -> Vec<String> {
    listening(hear, body);
    HEARD.take().into_iter().map(|(_, line)| line).collect()
}

#[test]
fn a_transaction_with_a_name_is_a_span_with_attempts_and_outcome() {
    let db = Database::new();
    let table = db.table::<Account>("accounts").unwrap();
    db.run(|tx| table.insert(tx, Account { id: 7, cents: 5 })).unwrap();
    let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
    let number = session.number();
    let pay = RunOptions::new().named("pay");
    let opened = [
        format!(r#"new DEBUG candide::transaction transaction="pay" session={number}"#),
        "enter".to_string(),
    ];
    let closed = |attempts: u32, outcome: &str| {
        let recorded =
            [format!("record attempts={attempts}"), format!("record outcome={outcome:?}")];
        recorded.into_iter().chain(["exit".to_string(), "close".to_string()])
    };
    let conflict = |attempt: u32| {
        let cause = r#"candide::conflict message=pay: read_changed on accounts.balance, key id: 7 cause="read_changed""#;
        let place = r#" transaction="pay" table="accounts" group="balance" key="7""#;
        format!("{cause}{place} attempt={attempt}")
    };
    let ended = |reason: Abort, attempts: u32| {
        let fields = format!(r#"transaction="pay" attempts={attempts}"#);
        format!("candide::abort message=pay: {reason} reason={:?} {fields}", reason.name())
    };
    let mut set = |tx: &candide::Tx<'_>, conflicts: u32| {
        let cents = table.read(tx, 7, Account::CENTS)?;
        if tx.attempt_number() <= conflicts {
            other.run(|tx| table.update(tx, 7, Account::CENTS.add(1)))?;
        }
        table.update(tx, 7, Account::CENTS.set(cents))
    };

    let lines = heard_of(|| session.with(pay).run(|tx| set(tx, 1)));
    let expected = opened.iter().cloned().chain([conflict(1)]).chain(closed(2, "commit"));
    assert_eq!(lines, expected.collect::<Vec<_>>());

    let lines = heard_of(|| session.with(pay.attempts_max(2)).run(|tx| set(tx, 9)));
    let exhausted = [conflict(1), conflict(2), ended(Abort::AttemptsExhausted, 2)];
    let expected = opened.iter().cloned().chain(exhausted);
    assert_eq!(lines, expected.chain(closed(2, "attempts_exhausted")).collect::<Vec<_>>());

    let take = Account::CENTS.sub(1_000).at_least(0);
    let lines = heard_of(|| session.with(pay).run(|tx| table.update(tx, 7, take)));
    let expected = opened.iter().cloned().chain([ended(Abort::Guard, 1)]);
    assert_eq!(lines, expected.chain(closed(1, "guard")).collect::<Vec<_>>());

    // A conflict before does not become the reason of the closure's own error.
    let lines = heard_of(|| {
        session.with(pay).run(|tx| {
            set(tx, 1)?;
            Err::<(), _>(Abort::NotFound)
        })
    });
    let expected = opened.iter().cloned().chain([conflict(1)]).chain(closed(2, "error"));
    assert_eq!(lines, expected.collect::<Vec<_>>());

    let lines = heard_of(|| {
        let pay = AssertUnwindSafe(|| {
            session.with(pay).run(|_| -> Result<(), Abort> { panic!("deliberate") })
        });
        assert!(catch_unwind(pay).is_err());
    });
    assert_eq!(lines, opened.iter().cloned().chain(closed(1, "panic")).collect::<Vec<_>>());

    assert_eq!(heard_of(|| session.run(|_| Ok(()))), [""; 0], "without a name there is no span");
}

#[test]
fn a_panic_of_a_subscriber_undoes_the_transaction() {
    let db = Database::new();
    let table = db.table::<Account>("accounts").unwrap();
    db.run(|tx| table.insert(tx, Account { id: 7, cents: 0 })).unwrap();
    let mut session = db.session().unwrap();
    let caught = listening(
        |_, line| panic!("deliberate: {line}"),
        || {
            catch_unwind(AssertUnwindSafe(|| {
                session.run(|tx| {
                    table.read(tx, 7, Account::CENTS)?;
                    db.run(|tx| table.update(tx, 7, Account::CENTS.add(1)))?;
                    table.update(tx, 7, Account::CENTS.add(1))
                })
            }))
        },
    );
    assert!(caught.is_err());
    assert_eq!(db.health().oldest_pin, None);
    assert_eq!(session.run(|tx| table.read_for_update(tx, 7, Account::CENTS)), Ok(1));
}

#[test]
fn an_attempt_without_a_subscriber_emits_no_event() {
    let db = Database::new();
    let table = db.table::<Account>("accounts").unwrap();
    let once = RunOptions::new().attempts_max(1);
    let result = db.session().unwrap().with(once).run(|tx| {
        table.get(tx, 1, Account::CENTS)?;
        db.run(|tx| table.insert(tx, Account { id: 1, cents: 0 }))?;
        table.put(tx, Account { id: 2, cents: 0 })
    });
    assert_eq!(result, Err(Abort::AttemptsExhausted));
    assert!(HEARD.take().is_empty());
}
