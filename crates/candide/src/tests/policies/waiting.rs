//! Tests of attempts that do not get a lock. Locks of sessions that do nothing are set by hand, so
//! that the answers do not depend on time.

use super::super::rows::Item;
use super::super::transactions::{CONFLICT, ONCE, run};
use super::{Scene, Stuck, assert_free, base, cell, locking, scene};
use crate::locks::{Lock, Mode, class_of};
use crate::policy::Policy;
use crate::stats::LockStats;
use crate::sync::{Duration, Instant, with_patience};
use crate::{Abort, Occ, RunOptions, Session, Table, Tx};
use std::cell::Cell;
use std::sync::Barrier;

/// Returns the counts of a session for one attempt that updates row 0, which must fail unless
/// `passes`.
fn update(scene: &Scene, passes: bool) -> LockStats {
    let (table, mut session) = (&scene.table, scene.db.session().unwrap());
    let before = scene.db.stats().locks;
    let ended = session.with(ONCE()).run(|tx| table.update(tx, 0, Item::COUNT.add(1)));
    assert_eq!(ended, if passes { Ok(()) } else { CONFLICT }, "{}", table.policy());
    scene.db.stats().locks.since(before)
}

#[test]
fn locks_of_policies_are_counted_in_statistics() {
    for policy in locking() {
        let scene = scene(policy);
        let none = LockStats::default();
        assert_eq!(update(&scene, true), LockStats { taken: 1, ..none }, "{policy}");
        let stuck = Stuck::on(&scene, 0, Mode::Write);
        let waits = !matches!(policy, Policy::BlindDie | Policy::WaitDie);
        let died = LockStats { waited: u64::from(waits), died: 1, ..none };
        assert_eq!(update(&scene, false), died, "{policy}");
        drop(stuck);
        assert_free(&scene.table, policy.name());
    }
}

#[test]
fn a_reader_at_a_write_lock_waits_aborts_or_reads_without_lock() {
    for policy in locking() {
        let scene = scene(policy);
        let _stuck = Stuck::on(&scene, 0, Mode::Write);
        let mut session = scene.db.session().unwrap();
        let ended = session.with(ONCE()).run(|tx| scene.table.read(tx, 0, Item::COUNT).map(drop));
        let locks = scene.db.stats().locks;
        let (passes, forgone) = match policy {
            Policy::Swiss | Policy::Adaptive | Policy::DeferredTwoPhase | Policy::Pipelined => {
                (true, 0)
            }
            Policy::Pessimistic => (true, 1),
            _ => (false, 0),
        };
        assert_eq!(ended, if passes { Ok(()) } else { CONFLICT }, "{policy}");
        assert_eq!((locks.forgone, locks.died), (forgone, u64::from(!passes)), "{policy}");
    }
}

/// Two attempts that kept their locks for reading while they wait to write would wait for one
/// another.
#[test]
fn an_attempt_gives_up_its_lock_for_reading_before_it_waits_to_write() {
    for policy in [Policy::NoWait, Policy::BlindDie, Policy::WaitDie] {
        let scene = scene(policy);
        let _stuck = Stuck::on(&scene, 0, Mode::Read);
        let (table, mut session) = (&scene.table, scene.db.session().unwrap());
        let readers = || Lock::of(&cell(table, 0)).word().readers();
        let counted = Cell::new((0, 0));
        let ended = session.with(ONCE()).run(|tx| {
            table.read(tx, 0, Item::COUNT)?;
            let before = readers();
            let ended = table.update(tx, 0, Item::COUNT.add(1));
            counted.set((before, readers()));
            ended
        });
        assert_eq!((ended, counted.get()), (CONFLICT, (2, 1)), "{policy}");
    }
}

#[test]
fn the_only_reader_becomes_the_writer() {
    let reads_ask = |policy: &Policy| {
        !matches!(
            policy,
            Policy::Swiss | Policy::Adaptive | Policy::DeferredTwoPhase | Policy::Pipelined
        )
    };
    for policy in locking().filter(reads_ask) {
        let scene = scene(policy);
        let (table, mut session) = (&scene.table, scene.db.session().unwrap());
        run(&mut session, |tx| {
            let word = || Lock::of(&cell(table, 0)).word();
            table.read(tx, 0, Item::COUNT)?;
            assert_eq!((word().readers(), word().is_written()), (1, false), "{policy}");
            table.update(tx, 0, Item::COUNT.add(1))?;
            // The policy locks the write set at the commit.
            let is_late = policy == Policy::Pessimistic;
            assert_eq!(word().is_written(), !is_late, "{policy}");
            Ok(())
        });
        assert_eq!(scene.db.stats().locks.taken, 2, "{policy}");
        assert_free(table, policy.name());
    }
}

#[test]
fn a_writer_that_stops_waiting_leaves_the_lock_unchanged() {
    for policy in locking() {
        let scene = scene(policy);
        let _stuck = Stuck::on(&scene, 0, Mode::Read);
        let word = || Lock::of(&cell(&scene.table, 0)).word();
        let before = word();
        update(&scene, false);
        assert_eq!(word(), before, "{policy}");
    }
}

/// The holder of a row waits for the session that requests the row.
#[test]
fn a_deadlock_is_found_before_the_wait() {
    let scene = scene(Policy::Dreadlock);
    let stuck = Stuck::on(&scene, 0, Mode::Write);
    let (table, mut session) = (&scene.table, scene.db.session().unwrap());
    let ended = session.with(ONCE()).run(|tx| {
        table.update(tx, 1, Item::COUNT.add(1))?;
        let me = Lock::of(&cell(table, 1)).word().owner();
        base(&scene.db).locks.desks.desk(stuck.desk).set_waits_for(class_of(me));
        table.update(tx, 0, Item::COUNT.add(1))
    });
    let locks = scene.db.stats().locks;
    assert_eq!(ended, CONFLICT);
    assert_eq!((locks.waited, locks.died), (0, 1), "{locks:?}");
}

#[test]
fn attempts_of_one_transaction_share_an_age() {
    // Under `pipelined`, a read for update takes no lock by policy.
    for policy in locking().filter(|policy| *policy != Policy::Pipelined) {
        let Scene { db, table, sessions: [mut session, mut other, _] } = scene(policy);
        let engine = &db.inner.engine;
        let mut ages = [Vec::new(), Vec::new()];
        for ages in &mut ages {
            engine.epochs.pass();
            let ended = session.run(|tx| {
                let count = table.read(tx, 7, Item::COUNT)?;
                table.read_for_update(tx, 0, Item::COUNT)?;
                let word = Lock::of(&cell(&table, 0)).word();
                assert!(word.is_written(), "{policy}");
                ages.push(base(&db).locks.desks.desk(word.owner()).age());
                if ages.len() < 4 {
                    engine.epochs.pass();
                    run(&mut other, |tx| table.update(tx, 7, Item::COUNT.set(count + 1)));
                }
                table.update(tx, 1, Item::COUNT.add(1))
            });
            assert_eq!(ended, Ok(()), "{policy}");
            assert_eq!(ages.len(), 4, "{policy}: attempts");
            assert!(ages.iter().all(|age| *age == ages[0] && *age > 0), "{policy}: {ages:?}");
        }
        assert!(ages[1][0] > ages[0][0], "{policy}: a later transaction is younger, {ages:?}");
    }
}

#[test]
fn an_older_transaction_waits_and_a_younger_one_aborts() {
    let scene = scene(Policy::WaitDie);
    let stuck = Stuck::on(&scene, 0, Mode::Write);
    let desk = base(&scene.db).locks.desks.desk(stuck.desk);
    for (age, waited) in [(1, 0), (u64::MAX, 1)] {
        desk.end();
        desk.begin(age, 0, 0);
        let locks = update(&scene, false);
        assert_eq!((locks.waited, locks.died), (waited, 1), "{age}");
    }
}

/// The inner transaction would wait for the outer one, which continues only after the inner one.
#[test]
fn a_nested_transaction_on_rows_locked_by_the_outer_one_takes_no_locks() {
    for (outer_policy, inner_policy) in
        locking().flat_map(|outer| locking().map(move |inner| (outer, inner)))
    {
        let Scene { db, table, sessions: [mut outer, mut inner, _] } = scene(outer_policy);
        let attempts = Cell::new(0);
        let ended = outer.with(ONCE()).run(|tx| {
            table.read(tx, 0, Item::COUNT)?;
            table.update(tx, 1, Item::COUNT.add(1))?;
            table.set_policy(inner_policy).unwrap();
            let ended = inner.run(|tx| {
                attempts.set(attempts.get() + 1);
                table.read(tx, 1, Item::COUNT)?;
                table.update(tx, 0, Item::COUNT.add(1))?;
                table.read(tx, 2, Item::COUNT)?;
                table.update(tx, 2, Item::COUNT.add(1))
            });
            assert_eq!(ended, Ok(()), "{inner_policy} in {outer_policy}");
            Ok(())
        });
        let when = format!("{inner_policy} in {outer_policy}");
        assert_eq!(ended, CONFLICT, "{when}: row 0 has changed");
        assert_eq!(attempts.get(), 1, "{when}");
        assert_eq!(db.stats().locks.waited, 0, "{when}");
        assert_free(&table, &when);
    }
}

/// The largest number of attempts that a transaction may take in a test where a few transactions
/// meet.
const ATTEMPTS_MAX: u32 = 64;

/// Runs `body` on a thread for each session, many times. The first attempts of the threads meet
/// after their first steps. Each transaction must commit within [`ATTEMPTS_MAX`] attempts.
fn meet<const N: usize>(
    policies: impl Iterator<Item = crate::policy::Policies>,
    first: impl Fn(&Table<Item>, &crate::Tx<'_>, u64) -> Result<(), Abort> + Sync,
    second: impl Fn(&Table<Item>, &crate::Tx<'_>, u64) -> Result<(), Abort> + Sync,
    rounds: u64,
) {
    for policies in policies {
        let name = policies.name();
        let Scene { db, table, sessions: _ } = scene(policies);
        let mut sessions: [Session<_>; N] = std::array::from_fn(|_| db.session().unwrap());
        for round in 0..rounds {
            let met = Barrier::new(N);
            std::thread::scope(|scope| {
                for (number, session) in (0..).zip(&mut sessions) {
                    let (table, met, first, second) = (&table, &met, &first, &second);
                    scope.spawn(move || {
                        let options = RunOptions::new().attempts_max(ATTEMPTS_MAX);
                        let ended = session.with(options).run(|tx| {
                            let begun = first(table, tx, number);
                            if tx.attempt_number() == 1 {
                                met.wait();
                            }
                            begun?;
                            second(table, tx, number)
                        });
                        assert_eq!(ended, Ok(()), "{name}");
                    });
                }
            });
            let mut sum = 0;
            table.for_each_quiescent(|row| sum += row.count).unwrap();
            assert_eq!(sum, N as i64 * (round as i64 + 1), "{name}");
            assert_free(&table, name);
        }
        let locks = db.stats().locks;
        // A lock is requested by each attempt at most three times.
        let waits_max = rounds * N as u64 * u64::from(ATTEMPTS_MAX);
        assert!(locks.waited < waits_max, "{name}: {locks:?}");
    }
}

#[test]
fn transactions_that_read_and_then_write_one_row_all_end() {
    meet::<2>(
        Policy::ALL.into_iter().filter(|policy| policy.locks()).map(Into::into),
        |table, tx, _| table.read(tx, 0, Item::COUNT).map(drop),
        |table, tx, _| table.update(tx, 0, Item::COUNT.add(1)),
        20,
    );
}

#[test]
fn transactions_that_lock_three_rows_in_a_circle_all_end() {
    meet::<3>(
        locking().map(Into::into),
        |table, tx, number| table.update(tx, &number, Item::COUNT.add(1)),
        |table, tx, number| {
            table.read(tx, &((number + 1) % 3), Item::COUNT)?;
            table.update(tx, &((number + 1) % 3), Item::OTHER.add(1))
        },
        20,
    );
}

#[test]
fn a_commit_that_has_read_nothing_waits_long_under_deferred_2pl() {
    let scene = scene(Policy::DeferredTwoPhase);
    let _stuck = Stuck::on(&scene, 1, Mode::Write);
    let (table, mut session) = (&scene.table, scene.db.session().unwrap());
    let begun = Instant::now();
    let ended = session.with(ONCE()).run(|tx| {
        table.update(tx, 0, Item::COUNT.add(1))?;
        table.update(tx, 1, Item::COUNT.add(1))
    });
    assert_eq!(ended, CONFLICT);
    assert!(begun.elapsed() >= Duration::from_millis(90));
}

/// Each thread moves numbers between two rows, in an order of its own. No wait for a lock is in
/// vain; an attempt may still find that a row which it is to change is being written.
#[test]
fn commits_of_steps_get_their_locks_under_deferred_2pl() {
    let scene = scene(Policy::DeferredTwoPhase);
    let (db, table) = (&scene.db, &scene.table);
    std::thread::scope(|scope| {
        for number in 0..4 {
            scope.spawn(move || {
                let mut session = db.session().unwrap();
                let rows = if number % 2 == 0 { [0, 1] } else { [1, 0] };
                let move_one = |tx: &Tx<'_, Occ>| {
                    let taken = table.defer(tx, rows[0], Item::COUNT, (), |count, ()| {
                        *count -= 1;
                        1
                    })?;
                    table
                        .defer(tx, rows[1], Item::COUNT, &taken, |count, taken| *count += taken)?;
                    Ok(())
                };
                with_patience(|| {
                    (0..300).for_each(|_| assert_eq!(session.run(move_one), Ok(())));
                });
            });
        }
    });
    let counts = [0, 1].map(|id| db.run(|tx| table.read(tx, id, Item::COUNT)).unwrap());
    assert_eq!(counts, [0, 0]);
    let locks = db.stats().locks;
    assert_eq!((locks.died, locks.killed, locks.forgone), (0, 0, 0), "{locks:?}");
    assert!(locks.taken >= 2 * 4 * 300, "{locks:?}");
}
