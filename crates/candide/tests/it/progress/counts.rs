//! Tests of the counts of commits and of failed attempts.

use crate::common::{Item, OfCount, builder, database_with, run, spawn};
use candide::report::Stats;
use candide::schema::Refused;
use candide::{Abort, Occ, Protocol, RunOptions, Serial, Session, Tx, Whole};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

fn unwrap<T>(result: Result<T, Abort>) -> T {
    result.unwrap_or_else(|abort| panic!("{abort}"))
}

/// Runs a transaction that ends in an abort, and returns the counts of the causes.
fn causes(
    session: &mut Session<Occ>,
    expected: Abort,
    body: &dyn Fn(&Tx<'_, Occ>) -> Result<(), Abort>,
) -> Stats {
    let before = session.stats();
    let ended = session.with(RunOptions::new().attempts_max(2)).run(body);
    assert_eq!(ended, Err(expected));
    let mut after = session.stats();
    after.aborts.iter_mut().zip(before.aborts).for_each(|(count, before)| *count -= before);
    Stats {
        commits: after.commits - before.commits,
        user_errors: after.user_errors - before.user_errors,
        retries: after.retries - before.retries,
        ..after
    }
}

#[test]
fn attempts_are_counted_by_their_outcome() {
    let db = builder::<Occ>().build().unwrap();
    let (items, foreign) = (db.table::<Item>("items").unwrap(), builder::<Occ>().build().unwrap());
    let foreign = foreign.table::<Item>("items").unwrap();
    unwrap(db.run(|tx| (1..=2).try_for_each(|id| items.insert(tx, Item::new(id, 0)))));
    let mut session = db.session().unwrap();
    let counts =
        |stats: &Stats| stats.abort_reasons().filter(|(_, count)| *count > 0).collect::<Vec<_>>();

    // Two attempts end in conflicts, and the third attempt is refused.
    type Body<'a> = &'a dyn Fn(&Tx<'_, Occ>) -> Result<(), Abort>;
    let read_changed: Body<'_> = &|tx| {
        items.read(tx, 1, Item::OTHER)?;
        db.run(|tx| items.update(tx, 1, Item::OTHER.add(1)))?;
        items.update(tx, 2, Item::COUNT.add(1))
    };
    let phantom: Body<'_> = &|tx| {
        let absent = 100 + db.stats().commits;
        items.get(tx, &absent, ())?;
        db.run(|tx| items.insert(tx, Item::new(absent, 0)))?;
        items.update(tx, 2, Item::COUNT.add(1))
    };
    for (cause, body) in [(Abort::ReadChanged, read_changed), (Abort::Phantom, phantom)] {
        let stats = causes(&mut session, Abort::AttemptsExhausted, body);
        assert_eq!(counts(&stats), [(cause.name(), 2), (Abort::AttemptsExhausted.name(), 1)]);
        assert_eq!(
            (stats.total_aborts(), stats.retries, stats.commits, stats.user_errors),
            (2, 1, 0, 0)
        );
    }
    let locked = |session: &mut Session<Occ>, expected| {
        causes(session, expected, &|tx| items.update(tx, 1, Item::COUNT.add(1)))
    };
    let mut holder = db.session().unwrap();
    unwrap(holder.run(|tx| {
        items.read_for_update(tx, 1, Item::COUNT)?;
        let other = || locked(&mut session, Abort::AttemptsExhausted);
        let stats = std::thread::scope(|scope| spawn(scope, other).join().unwrap());
        assert_eq!(
            counts(&stats),
            [(Abort::Locked.name(), 2), (Abort::AttemptsExhausted.name(), 1)]
        );
        // On the holder's thread, the transaction would wait for itself.
        let stats = locked(&mut session, Abort::Nested);
        assert_eq!(counts(&stats), [(Abort::Locked.name(), 1), (Abort::Nested.name(), 1)]);
        Ok(())
    }));

    // The engine finds the outcomes of updates, and counts them by cause. Any other abort that a
    // closure returns counts as the closure's own error.
    let guard: Body<'_> = &|tx| items.update(tx, 1, Item::COUNT.sub(1).at_least(0));
    let overflow: Body<'_> = &|tx| items.update(tx, 1, Item::OTHER.sub(1_000));
    for (cause, body) in [(Abort::Guard, guard), (Abort::Overflow, overflow)] {
        let stats = causes(&mut session, cause, body);
        assert_eq!(counts(&stats), [(cause.name(), 1)]);
        assert_eq!(
            (stats.total_aborts(), stats.retries, stats.commits, stats.user_errors),
            (0, 0, 0, 0)
        );
    }
    let duplicate: Body<'_> = &|tx| items.insert(tx, Item::new(1, 0));
    let absent: Body<'_> = &|tx| items.read(tx, 9_999, ());
    let elsewhere: Body<'_> = &|tx| foreign.read(tx, 1, ());
    for (cause, body) in
        [(Abort::Duplicate, duplicate), (Abort::NotFound, absent), (Abort::ForeignTable, elsewhere)]
    {
        let stats = causes(&mut session, cause, body);
        assert_eq!(counts(&stats), []);
        assert_eq!(
            (stats.total_aborts(), stats.retries, stats.commits, stats.user_errors),
            (0, 0, 0, 1)
        );
    }
}

#[test]
fn counts_of_an_ended_session_are_added_once() {
    const ROUNDS: u64 = 2_000;
    let db = builder::<Occ>().build().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        spawn(scope, || {
            for _ in 0..ROUNDS {
                let mut session = db.session().unwrap();
                unwrap(session.run(|_| Ok(())));
            }
            done.store(true, Ordering::Release);
        });
        let mut last = 0;
        while !done.load(Ordering::Acquire) {
            let commits = db.stats().commits;
            assert!(last <= commits && commits <= ROUNDS, "{commits} after {last}");
            last = commits;
        }
    });
    assert_eq!(db.stats().commits, ROUNDS);
}

#[test]
fn the_panic_of_an_updater_is_counted() {
    fn boom(_: &mut i64) -> Result<(), Refused> {
        std::panic::resume_unwind(Box::new("on purpose"))
    }

    let (db, items) = database_with::<Item, Occ>("items");
    let mut session = db.session().unwrap();
    unwrap(session.run(|tx| items.insert(tx, Item::new(1, 0))));
    let ended = catch_unwind(AssertUnwindSafe(|| {
        session.run(|tx| items.update_with(tx, 1, OfCount(boom)))
    }));
    assert!(ended.is_err());
    assert_eq!((session.stats().commits, session.stats().user_errors), (1, 1));
}

protocol_tests!(all: sets_are_counted_when_their_transactions_commit);
fn sets_are_counted_when_their_transactions_commit<P: Protocol>() {
    let has_sets = P::NAME != Serial::NAME;
    for (splitting, blind) in [(true, true), (true, false), (false, true), (false, false)] {
        let builder = builder::<P>().timestamp_splitting(splitting).commit_time_updates(blind);
        let db = builder.build().unwrap();
        let items = db.table::<Item>("items").unwrap();
        let mut session = db.session().unwrap();
        let units = if splitting { 2 } else { 1 };
        let mut before = session.stats();
        let mut added = |session: &Session<P>, expected: (u64, u64), what: &str| {
            let after = session.stats();
            let counted = (after.read_set - before.read_set, after.write_set - before.write_set);
            before = after;
            let expected = if has_sets { expected } else { (0, 0) };
            assert_eq!(counted, expected, "{} {splitting} {blind}: {what}", P::NAME);
        };

        run(&mut session, |tx| (1..=4).try_for_each(|id| items.put(tx, Item::new(id, 0))));
        added(&session, (0, 4 * units), "puts");
        run(&mut session, |tx| {
            items.read(tx, 1, Item::COUNT)?;
            items.read(tx, 2, Whole)?;
            items.get(tx, 9, ()).map(drop)
        });
        added(&session, (1 + units + 1, 0), "two rows and an absent one");
        run(&mut session, |tx| items.update(tx, 3, Item::COUNT.add(1)));
        added(&session, (if blind { 0 } else { 1 }, 1), "an update");
        run(&mut session, |tx| items.modify(tx, 3, Item::COUNT, |count| *count += 1));
        added(&session, (if blind { 1 } else { 2 }, 1), "a modification");
        assert_eq!(items.get_now(&mut session, &4, Item::COUNT), Ok(Some(0)));
        added(&session, (1, 0), "a read by itself");

        let refused = session.run(|tx| {
            items.modify(tx, 3, Item::COUNT, |count| *count += 1)?;
            Err::<(), _>(Abort::Duplicate)
        });
        assert_eq!(refused, Err(Abort::Duplicate));
        added(&session, (0, 0), "an error of the closure");
    }
}

protocol_tests!(overlapping: sets_of_failed_attempts_are_not_counted);
fn sets_of_failed_attempts_are_not_counted<P: Protocol>() {
    let (db, items) = database_with::<Item, P>("items");
    let [mut session, mut other] = [(); 2].map(|()| db.session().unwrap());
    run(&mut other, |tx| items.insert(tx, Item::new(1, 0)));
    unwrap(session.run(|tx| {
        let count = items.read(tx, 1, Item::COUNT)?;
        if tx.attempt_number() == 1 {
            other.run(|tx| items.update(tx, 1, Item::COUNT.add(1)))?;
        }
        items.update(tx, 1, Item::COUNT.set(count + 10))
    }));
    let stats = session.stats();
    assert_eq!((stats.commits, stats.retries), (1, 1), "{}", P::NAME);
    assert_eq!((stats.read_set, stats.write_set), (1, 1), "{}", P::NAME);
}
