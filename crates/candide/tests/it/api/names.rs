//! Tests of transactions with names.

use crate::common::{Item, builder, database_with, ok, spawn};
use candide::report::NamedStats;
use candide::{Abort, Occ, Protocol, RunOptions};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// Returns name, commits, retries and errors of each name.
fn counts(stats: Vec<NamedStats>) -> Vec<(&'static str, u64, u64, u64)> {
    stats.iter().map(|stats| (stats.name, stats.commits, stats.retries, stats.errors)).collect()
}

const PAY: RunOptions<'static> = RunOptions::new().named("pay");

protocol_tests!(all: transactions_are_counted_by_name_in_present_and_past_sessions);
fn transactions_are_counted_by_name_in_present_and_past_sessions<P: Protocol>() {
    let (db, items) = database_with::<Item, P>("items");
    assert_eq!(db.named_stats(), []);
    ok(db.run(|tx| items.insert(tx, Item::new(1, 0))));
    assert_eq!(db.named_stats(), [], "a transaction without a name is not counted");
    let add = Item::COUNT.add(1).at_most(2);
    for _ in 0..2 {
        ok(db.with(PAY).run(|tx| items.update(tx, 1, add)));
    }
    assert_eq!(db.with(PAY).run(|tx| items.update(tx, 1, add)), Err(Abort::Guard));
    let refused = db.with(PAY).try_run(|_| Err::<(), Box<dyn std::error::Error>>("no".into()));
    assert!(refused.is_err());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        db.with(PAY).run(|_| -> Result<(), Abort> { panic!("deliberate") })
    }));
    assert!(panicked.is_err());
    ok(db.with(PAY.named("look").read_only()).run(|tx| items.read(tx, 1, Item::COUNT)));
    let pending = db.with(RunOptions::new().named("log")).run_logged(|_| Ok(()));
    assert_eq!(pending.wait(), Ok(()));
    let expected = [("log", 1, 0, 0), ("look", 1, 0, 0), ("pay", 2, 0, 3)];
    assert_eq!(counts(db.named_stats()), expected);
    // Another thread's session ends with the thread, and its counts stay.
    thread::scope(|scope| {
        spawn(scope, || {
            let mut session = db.session().unwrap();
            (0..3).for_each(|_| ok(session.with(PAY).run(|_| Ok(()))));
        });
    });
    assert_eq!(counts(db.named_stats())[2], ("pay", 5, 0, 3));
    drop(items);
    let other = builder::<P>().build().unwrap();
    assert_eq!(other.named_stats(), [], "each database has names of its own");
}

#[test]
fn conflicts_are_counted_by_transaction_name() {
    let (db, items) = database_with::<Item, Occ>("items");
    ok(db.run(|tx| items.insert(tx, Item::new(1, 0))));
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let told = std::cell::RefCell::new(Vec::new());
    let tell = |conflict: &candide::report::Conflict| told.borrow_mut().push(conflict.to_string());
    ok(first.with(PAY.on_conflict(&tell)).run(|tx| {
        let before = tx.last_conflict().map(|conflict| conflict.transaction);
        assert_eq!(before, (tx.attempt_number() > 1).then_some(Some("pay")));
        let count = items.read(tx, 1, Item::COUNT)?;
        if tx.attempt_number() < 3 {
            ok(second.run(|tx| items.update(tx, 1, Item::COUNT.add(1))));
        }
        items.update(tx, 1, Item::COUNT.set(count))
    }));
    assert_eq!(counts(db.named_stats()), [("pay", 1, 2, 0)]);
    let line = "pay: read_changed on items.hot, key id: 1";
    assert_eq!(told.into_inner(), [line, line]);
    assert_eq!(first.last_conflict().map(|conflict| conflict.to_string()).as_deref(), Some(line));
    // A later transaction without a name, in the same session.
    let ended = first.with(RunOptions::new().attempts_max(1)).run(|tx| {
        items.read(tx, 1, Item::COUNT)?;
        ok(second.run(|tx| items.update(tx, 1, Item::COUNT.add(1))));
        items.update(tx, 1, Item::COUNT.add(1))
    });
    assert_eq!(ended, Err(Abort::AttemptsExhausted));
    assert_eq!(first.last_conflict().and_then(|conflict| conflict.transaction), None);
    // The last conflict of a transaction that is given up is no retry.
    let ended = first.with(PAY.attempts_max(2)).run(|tx| {
        items.read(tx, 1, Item::COUNT)?;
        ok(second.run(|tx| items.update(tx, 1, Item::COUNT.add(1))));
        items.update(tx, 1, Item::COUNT.add(1))
    });
    assert_eq!(ended, Err(Abort::AttemptsExhausted));
    assert_eq!(counts(db.named_stats()), [("pay", 1, 3, 1)]);
}

#[test]
fn an_effect_that_panics_does_not_undo_the_count_of_the_commit() {
    let db = builder::<Occ>().build().unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        db.with(PAY).run(|tx| {
            tx.on_commit(|| panic!("deliberate"));
            Ok(())
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(counts(db.named_stats()), [("pay", 1, 0, 0)]);
}
