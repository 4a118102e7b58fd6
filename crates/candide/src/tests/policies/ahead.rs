//! Tests of the locks that an attempt takes before its closure runs, and for which of them it
//! sleeps.

use super::super::rows::Item;
use super::super::transactions::run;
use super::super::waiting::eventually;
use super::learning::{KINDS, in_order, locked};
use super::{Scene, Stuck, assert_free, cell, scene};
use crate::RunOptions;
use crate::locks::Mode;
use crate::policy::{MoccOptions, Policies, Policy};
use crate::record::Tid;
use crate::report::Conflict;
use crate::sync::{Ordering, with_patience};
use std::cell::Cell;

/// Runs a transaction whose first attempt fails. Before the second attempt begins, a session
/// without a thread has locked the TID word of row 0 by `flags`. Returns the findings of the second
/// attempt's closure: how often the session has slept ahead, and whether it holds the lock of row 0
/// by policy. If `ends`, the session without a thread releases the word once an attempt sleeps for
/// it.
fn lock_ahead_beside(scene: &mut Scene, flags: u64, ends: bool) -> (u64, bool) {
    let Scene { db, table, sessions: [session, other, _] } = scene;
    let (table, parking) = (&*table, &db.inner.engine.parking);
    let release = || {
        let at = cell(table, 0);
        at.cell_word(0).fetch_and(!flags, Ordering::Release);
        parking.wake(at.address());
    };
    let (before, found) = (Cell::new(0), Cell::new((0, false)));
    std::thread::scope(|scope| {
        let tell = |_: &Conflict| {
            cell(table, 0).cell_word(0).fetch_or(flags, Ordering::Relaxed);
            before.set(parking.entered());
            if ends {
                scope.spawn(|| {
                    let place = cell(table, 0).address();
                    eventually("the sleep", || parking.waited_for().contains(&place));
                    release();
                });
            }
        };
        let options = RunOptions::new().on_conflict(&tell);
        // Without a limit for the sleep, since the thread that releases the word may be late.
        let ended = with_patience(|| {
            session.with(options).run(|tx| {
                if tx.attempt_number() == 2 {
                    found.set((parking.entered() - before.get(), locked(table, 0) != (0, false)));
                    if !ends {
                        release();
                    }
                }
                table.read(tx, 0, Item::COUNT)?;
                if tx.attempt_number() == 1 {
                    run(other, |tx| table.update(tx, 0, Item::COUNT.add(1)));
                }
                table.update(tx, 1, Item::COUNT.add(1))
            })
        });
        assert_eq!(ended, Ok(()));
    });
    assert_free(table, "at the end");
    found.get()
}

/// A commit never sleeps for a lock, so it ends (WA3). The attempt of a read for update may be
/// waiting for the very attempt that locks ahead (WA1).
#[test]
fn an_attempt_sleeps_ahead_for_a_commit_and_not_for_a_read_for_update() {
    for policy in [Policy::Mocc, Policy::Hybrid] {
        let mut by_commit = scene(policy);
        let found = lock_ahead_beside(&mut by_commit, Tid::LOCK | Tid::INSTALL, true);
        assert_eq!(found, (1, true), "{policy}");
        let mut by_read = scene(policy);
        let found = lock_ahead_beside(&mut by_read, Tid::LOCK, false);
        assert_eq!(found, (0, false), "{policy}");
    }
}

#[test]
fn a_long_list_of_locks_keeps_hot_and_failed_rows() {
    for kind in KINDS {
        let Scene { db, table, sessions: [mut session, mut other, _] } = scene(kind(5));
        run(&mut session, |tx| (100..500).try_for_each(|id| table.insert(tx, Item::new(id, 0))));
        let ended = session.run(|tx| {
            if tx.attempt_number() == 2 {
                assert_eq!(locked(&table, 0), (1, false), "the read that has failed");
                assert_eq!(locked(&table, 1), (0, false), "one of many writes");
            }
            table.read(tx, 0, Item::COUNT)?;
            let mut keys = (1..8).chain(100..500);
            keys.try_for_each(|key| table.update(tx, &key, Item::COUNT.add(1)))?;
            if tx.attempt_number() == 1 {
                run(&mut other, |tx| table.update(tx, 0, Item::COUNT.add(1)));
            }
            Ok(())
        });
        assert_eq!(ended, Ok(()));
        assert_eq!(db.stats().locks.retrospective, 1);
        assert_free(&table, "at the end");
    }
}

/// The policies `mocc`, under which all rows are hot, with the paper's waiting.
fn as_in_the_paper() -> impl Iterator<Item = Policies> {
    [false, true].into_iter().map(|queues| {
        let options = MoccOptions::new().threshold(0).paper_waiting(true).queue_locks(queues);
        Policies::of(Policy::Mocc).mocc(options)
    })
}

/// In the order of locks, the attempt holds a lock for reading before the awaited lock, and a lock
/// for writing behind it.
#[test]
fn with_waiting_of_the_paper_an_attempt_sleeps_holding_locks_in_order() {
    for policies in as_in_the_paper() {
        let scene = scene(policies);
        let (db, table) = (&scene.db, &scene.table);
        let keys = in_order(table);
        let stuck = Stuck::on(&scene, keys[3], Mode::Write);
        run(&mut db.session().unwrap(), |tx| {
            table.read(tx, &keys[1], Item::COUNT)?;
            table.read(tx, &keys[5], Item::COUNT)?;
            table.update(tx, &keys[5], Item::COUNT.add(1))?;
            assert_eq!(locked(table, keys[5]), (0, true));
            let before = db.inner.engine.parking.entered();
            table.read(tx, &keys[3], Item::COUNT)?;
            let has_queue = cell(table, keys[3]).cell_words() > 2;
            let slept = db.inner.engine.parking.entered() - before;
            assert!(slept == 1 || has_queue, "asleep {slept} times");
            assert_eq!([1, 5].map(|place| locked(table, keys[place])), [(1, false), (0, false)]);
            Ok(())
        });
        assert_eq!(db.stats().locks.waited, 1, "for one lock");
        drop(stuck);
        assert_free(table, "at the end");
    }
}

/// A read for update of a row in another table sleeps only if its attempt has no lock by policy, so
/// an attempt that holds such a row must not sleep for a lock by policy.
#[test]
fn with_waiting_of_the_paper_an_attempt_with_a_held_row_does_not_sleep() {
    for policies in as_in_the_paper() {
        let scene = scene(policies);
        let (db, table) = (&scene.db, &scene.table);
        let options = crate::TableOptions::default().policy(Policy::Optimistic);
        let cold = db.table_with::<Item>("cold", options).unwrap();
        run(&mut db.session().unwrap(), |tx| cold.insert(tx, Item::new(0, 0)));
        let stuck = Stuck::on(&scene, 0, Mode::Write);
        let before = db.inner.engine.parking.entered();
        run(&mut db.session().unwrap(), |tx| {
            cold.read_for_update(tx, 0, Item::COUNT)?;
            table.read(tx, 0, Item::COUNT).map(drop)
        });
        assert_eq!(db.inner.engine.parking.entered(), before);
        drop(stuck);
        assert_free(table, "at the end");
    }
}
