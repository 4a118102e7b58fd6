//! Tests of the ends of attempts and waits.

use crate::common::{Item, builder, receive};
use candide::protocols::Exclusion;
use candide::{Abort, Database, RunOptions, Serial};
use std::sync::{Barrier, mpsc};
use std::time::{Duration, Instant};

#[test]
fn limits_on_attempts_and_time_end_a_transaction() {
    let db = Database::new();
    let table = db.table::<Item>("rows").unwrap();
    db.run(|tx| table.insert(tx, Item::new(1, 0))).unwrap();
    let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
    let mut hopeless = |options: RunOptions<'_>| {
        session.with(options).run(|tx| {
            // The deadline passes before other transactions yield.
            std::thread::sleep(Duration::from_millis(1));
            table.read(tx, 1, Item::COUNT)?;
            other.run(|tx| table.update(tx, 1, Item::COUNT.add(1)))?;
            table.update(tx, 1, Item::COUNT.add(1))
        })
    };
    assert_eq!(hopeless(RunOptions::new().attempts_max(3)), Err(Abort::AttemptsExhausted));
    assert_eq!(
        hopeless(RunOptions::new().deadline(Instant::now() + Duration::from_millis(5))),
        Err(Abort::DeadlinePassed)
    );
    let conflict = session.last_conflict().unwrap();
    assert_eq!(
        (conflict.cause, conflict.table.as_deref(), conflict.group),
        (Abort::ReadChanged, Some("rows"), Some("hot"))
    );
    assert_eq!(conflict.key, Some(vec![1]));
    let stats = session.stats();
    assert_eq!((stats.commits, stats.user_errors), (0, 0));
    assert!(stats.total_aborts() >= 4 && stats.retries >= 2);
}

#[test]
fn a_nested_transaction_that_would_wait_for_its_own_thread_is_refused() {
    let db = builder::<Serial>().policy(Exclusion::GlobalLock).build().unwrap();
    let (mut outer, mut inner) = (db.session().unwrap(), db.session().unwrap());
    let result: Result<(), Abort> = outer.run(|_| inner.run(|_| Ok(())));
    assert_eq!(result, Err(Abort::Nested));
    outer.run(|_| Ok(())).unwrap();
}

#[test]
fn nested_transactions_that_would_wait_for_one_another_are_refused() {
    let database = || builder::<Serial>().policy(Exclusion::GlobalLock).build().unwrap();
    let (one, two) = (database(), database());
    let (both, ended) = (Barrier::new(2), mpsc::channel());
    std::thread::scope(|scope| {
        for (outer, inner) in [(&one, &two), (&two, &one)] {
            let (both, send) = (&both, ended.0.clone());
            scope.spawn(move || {
                let mut met = false;
                let result = outer.run(|_| {
                    if !std::mem::replace(&mut met, true) {
                        both.wait();
                    }
                    inner.run(|_| Ok(()))
                });
                send.send(result).unwrap();
            });
        }
        let results = [(); 2].map(|()| receive("a thread", &ended.1));
        assert!(results.contains(&Err(Abort::Nested)), "one of the two: {results:?}");
        assert!(results.contains(&Ok(())), "and not the other: {results:?}");
    });
}

#[test]
fn a_deadline_ends_a_wait_for_the_exclusive_token() {
    let db = builder::<Serial>().policy(Exclusion::GlobalLock).build().unwrap();
    let ended = mpsc::channel();
    std::thread::scope(|scope| {
        let (db, send) = (&db, &ended.0);
        let refused = db.run(|_| {
            let send = send.clone();
            scope.spawn(move || {
                let options = RunOptions::new().deadline(Instant::now());
                send.send(db.with(options).run(|_| Ok(()))).unwrap();
            });
            Ok(receive("the deadline", &ended.1))
        });
        assert_eq!(refused, Ok(Err(Abort::DeadlinePassed)));
        // One attempt is made even after the deadline.
        assert_eq!(db.with(RunOptions::new().deadline(Instant::now())).run(|_| Ok(())), Ok(()));
    });
}
