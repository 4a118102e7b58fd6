//! Tests of the counts of commits and of failed attempts.

use crate::common::{Item, builder};
use candide::{Abort, Column, Occ, Refused, RunOptions, Session, Stats, Tx, Updater};
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
    let ended = session.run_with(RunOptions::new().attempts_max(2), body);
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
fn attempts_are_counted_by_what_they_ended_in() {
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
        items.read(tx, &1, Item::OTHER)?;
        db.run(|tx| items.update(tx, &1, Item::OTHER.add(1)))?;
        items.update(tx, &2, Item::COUNT.add(1))
    };
    let phantom: Body<'_> = &|tx| {
        let absent = 100 + db.stats().commits;
        items.get(tx, &absent, ())?;
        db.run(|tx| items.insert(tx, Item::new(absent, 0)))?;
        items.update(tx, &2, Item::COUNT.add(1))
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
        causes(session, expected, &|tx| items.update(tx, &1, Item::COUNT.add(1)))
    };
    let mut holder = db.session().unwrap();
    unwrap(holder.run(|tx| {
        items.read_for_update(tx, &1, Item::COUNT)?;
        let other = || locked(&mut session, Abort::AttemptsExhausted);
        let stats = std::thread::scope(|scope| scope.spawn(other).join().unwrap());
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
    let guard: Body<'_> = &|tx| items.update(tx, &1, Item::COUNT.sub(1).at_least(0));
    let overflow: Body<'_> = &|tx| items.update(tx, &1, Item::OTHER.sub(1_000));
    for (cause, body) in [(Abort::Guard, guard), (Abort::Overflow, overflow)] {
        let stats = causes(&mut session, cause, body);
        assert_eq!(counts(&stats), [(cause.name(), 1)]);
        assert_eq!(
            (stats.total_aborts(), stats.retries, stats.commits, stats.user_errors),
            (0, 0, 0, 0)
        );
    }
    let duplicate: Body<'_> = &|tx| items.insert(tx, Item::new(1, 0));
    let absent: Body<'_> = &|tx| items.read(tx, &9_999, ());
    let elsewhere: Body<'_> = &|tx| foreign.read(tx, &1, ());
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
fn counts_of_a_session_that_ends_are_neither_lost_nor_doubled() {
    const ROUNDS: u64 = 2_000;
    let db = builder::<Occ>().build().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
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
    #[derive(Clone, Copy)]
    struct Boom;

    impl Updater<Item> for Boom {
        type Target = Column<Item, i64>;

        fn target(&self) -> Self::Target {
            Item::COUNT
        }

        fn apply(&self, _: &mut i64) -> Result<(), Refused> {
            std::panic::resume_unwind(Box::new("on purpose"))
        }
    }

    let db = builder::<Occ>().build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    unwrap(session.run(|tx| items.insert(tx, Item::new(1, 0))));
    let ended =
        catch_unwind(AssertUnwindSafe(|| session.run(|tx| items.update_with(tx, &1, Boom))));
    assert!(ended.is_err());
    assert_eq!((session.stats().commits, session.stats().user_errors), (1, 1));
}
