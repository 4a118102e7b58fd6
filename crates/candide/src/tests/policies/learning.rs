//! Tests of the policies that learn from conflicts which rows to lock.

use super::super::interleaving::acting;
use super::super::rows::Item;
use super::super::transactions::{CONFLICT, ONCE, run};
use super::super::two_sessions::read_then_write;
use super::{Scene, Stuck, assert_free, base, cell, scene};
use crate::locks::{FLAGS, Lock, LockWord, Mode, RASK};
use crate::policy::{MoccOptions, Policies, Policy};
use crate::protocols::Occ;
use crate::report::LockStats;
use crate::sync::{Ordering, Point};
use crate::{Database, Table, TableOptions};
use std::cell::Cell;

/// Returns the policy `mocc`, under which rows are hot from this temperature on.
pub(super) fn mocc(threshold: u8) -> Policies {
    Policies::of(Policy::Mocc).mocc(MoccOptions::new().threshold(threshold))
}

/// Returns the policy with queue locks.
pub(super) fn in_queues(threshold: u8) -> Policies {
    let options = MoccOptions::new().threshold(threshold).queue_locks(true);
    Policies::of(Policy::Mocc).mocc(options)
}

/// One of the two functions: the kind of locks.
pub(super) type Kind = fn(u8) -> Policies;
pub(super) const KINDS: [Kind; 2] = [mocc, in_queues];

/// Returns how many sessions hold the lock of a row for reading, and whether one holds it, or waits
/// for it, for writing.
pub(super) fn locked(table: &Table<Item>, key: u64) -> (u64, bool) {
    let at = cell(table, key);
    if at.cell_words() == 2 {
        let word = word(table, key);
        return (word.readers(), word.is_written());
    }
    let [tail, readers] = [1, 2].map(|word| at.cell_word(word).load(Ordering::Relaxed));
    (readers, readers == 0 && tail != 0)
}

pub(super) fn flags(table: &Table<Item>, key: u64) -> u64 {
    cell(table, key).cell_word(0).load(Ordering::Relaxed) & FLAGS
}

fn word(table: &Table<Item>, key: u64) -> LockWord {
    Lock::of(&cell(table, key)).word()
}

/// Returns keys 0..8 in the order of the addresses of their cells.
pub(super) fn in_order(table: &Table<Item>) -> [u64; 8] {
    let mut keys = [0, 1, 2, 3, 4, 5, 6, 7];
    keys.sort_unstable_by_key(|&key| cell(table, key).address());
    keys
}

/// Runs an attempt that fails because row 0 changes after it was read.
fn fail(scene: &mut Scene) {
    let Scene { table, sessions: [session, other, _], .. } = scene;
    let ended = session.with(ONCE()).run(|tx| {
        table.read(tx, 0, Item::COUNT)?;
        run(other, |tx| table.update(tx, 0, Item::COUNT.add(1)));
        table.update(tx, 1, Item::COUNT.add(1))
    });
    assert_eq!(ended, CONFLICT);
}

/// Fails until row 0 is hot. Returns the number of failures.
pub(super) fn heat(scene: &mut Scene) -> u32 {
    let mut failures = 0;
    while flags(&scene.table, 0) & RASK == 0 {
        failures += 1;
        assert!(failures < 2_000, "row 0 never becomes hot");
        fail(scene);
    }
    failures
}

#[test]
fn a_row_is_heated_by_failed_reads_and_cooled_by_useless_locks() {
    for (threshold, kind) in
        [1, 3, 5].into_iter().flat_map(|threshold| KINDS.map(|kind| (threshold, kind)))
    {
        let mut scene = scene(kind(threshold));
        let failures = heat(&mut scene);
        assert!(failures >= u32::from(threshold), "{failures} failures for {threshold}");
        assert_eq!(flags(&scene.table, 0), FLAGS);
        assert_eq!(flags(&scene.table, 1), 0, "no read of row 1 has failed");
        let Scene { db, table, sessions: [session, ..] } = &mut scene;
        assert_eq!(db.stats().locks.heated, 1);
        let mut reads = 0;
        while flags(table, 0) != 0 {
            reads += 1;
            assert!(reads < 5_000, "row 0 never cools");
            // Nodes of queue locks become reusable as epochs pass.
            db.inner.engine.epochs.pass();
            run(session, |tx| {
                table.read(tx, 0, Item::COUNT)?;
                assert_eq!(locked(table, 0), (1, false));
                Ok(())
            });
        }
        let locks = db.stats().locks;
        assert_eq!((locks.heated, locks.cooled, locks.taken), (1, 1, reads));
        assert_free(table, "at the end");
    }
}

#[test]
fn beyond_the_highest_temperature_no_row_is_hot_and_at_zero_all_are() {
    let mut never = scene(mocc(32));
    (0..200).for_each(|_| fail(&mut never));
    let locks = never.db.stats().locks;
    assert_eq!((flags(&never.table, 0), locks.heated, locks.taken), (0, 0, 0));
    let always = scene(mocc(0));
    assert!((0..8).all(|key| flags(&always.table, key) == FLAGS));
}

#[test]
fn a_transaction_without_conflicts_looks_at_no_temperature_and_takes_no_lock() {
    for policy in [Policy::Mocc, Policy::Hybrid] {
        let Scene { db, table, sessions: [mut session, ..] } = scene(policy);
        run(&mut session, |tx| {
            table.read(tx, 0, Item::COUNT)?;
            table.update(tx, 0, Item::COUNT.add(1))?;
            table.iter(tx, Item::COUNT).for_each(drop)
        });
        assert!(base(&db).locks.temperatures.is_unused(), "{policy}");
        assert_eq!(db.stats().locks, LockStats::default(), "{policy}");
    }
}

/// Runs a transaction whose first attempt fails. Before the closure of the second attempt runs, its
/// locks are there.
#[test]
fn the_next_attempt_locks_the_rows_of_the_conflict() {
    let queues = MoccOptions::new().queue_locks(true);
    let of = |policy, options| Policies::of(policy).mocc(options);
    for (policy, locks_all) in [
        (Policy::Mocc.into(), false),
        (Policy::Hybrid.into(), true),
        (of(Policy::Mocc, queues), false),
        (of(Policy::Hybrid, queues), true),
    ] {
        let Scene { db, table, sessions: [mut session, mut other, _] } = scene(policy);
        let policy = table.policy();
        let ended = session.run(|tx| {
            if tx.attempt_number() == 2 {
                assert_eq!(locked(&table, 0), (1, false), "{policy}: the read that has failed");
                assert_eq!(locked(&table, 1), (0, true), "{policy}: the write");
                let readers = u64::from(locks_all);
                assert_eq!(locked(&table, 2), (readers, false), "{policy}: another read");
            }
            table.read(tx, 0, Item::COUNT)?;
            table.read(tx, 2, Item::COUNT)?;
            table.update(tx, 1, Item::COUNT.add(1))?;
            if tx.attempt_number() == 1 {
                run(&mut other, |tx| table.update(tx, 0, Item::COUNT.add(1)));
            }
            Ok(())
        });
        assert_eq!(ended, Ok(()));
        let locks = db.stats().locks;
        assert_eq!(locks.retrospective, if locks_all { 3 } else { 2 }, "{policy}: {locks:?}");
        assert_eq!(locks.taken, locks.retrospective, "{policy}");
        assert_free(&table, policy.name());
        assert!((0..8).all(|key| flags(&table, key) == 0), "{policy}: writers need not ask");
    }
}

#[test]
fn buried_rows_are_left_out_of_the_list_of_locks() {
    for policy in [Policy::Mocc, Policy::Hybrid] {
        for is_reaped in [false, true] {
            let Scene { db, table, sessions: [mut session, mut other, _] } = scene(policy);
            let ended = session.run(|tx| {
                table.get(tx, 0, Item::COUNT)?;
                if tx.attempt_number() == 1 {
                    run(&mut other, |tx| table.delete(tx, 0));
                    if is_reaped {
                        (0..4).for_each(|_| db.inner.engine.epochs.pass());
                        run(&mut other, |tx| table.update(tx, 3, Item::COUNT.add(1)));
                    }
                }
                table.update(tx, 1, Item::COUNT.add(1))
            });
            assert_eq!(ended, Ok(()), "{policy}, {is_reaped}");
            let locks = db.stats().locks;
            assert!((1..=2).contains(&locks.retrospective), "{policy}, {is_reaped}: {locks:?}");
            assert_free(&table, policy.name());
        }
    }
}

#[test]
fn the_list_of_locks_ends_with_its_transaction() {
    let Scene { db, table, sessions: [mut session, mut other, _] } = scene(Policy::Mocc);
    let mut conflict_once = |session: &mut crate::Session<Occ>, give_up: bool| {
        let options = if give_up { ONCE() } else { crate::RunOptions::new() };
        session.with(options).run(|tx| {
            table.read(tx, 0, Item::COUNT)?;
            table.update(tx, 1, Item::COUNT.add(1))?;
            if tx.attempt_number() == 1 {
                run(&mut other, |tx| table.update(tx, 0, Item::COUNT.add(1)));
            }
            Ok(())
        })
    };
    assert_eq!(conflict_once(&mut session, true), CONFLICT);
    assert_eq!(conflict_once(&mut session, false), Ok(()));
    assert_eq!(db.stats().locks.retrospective, 2, "only those of the second transaction");
    run(&mut session, |tx| table.update(tx, 1, Item::COUNT.add(1)));
    assert_eq!(db.stats().locks.retrospective, 2);
}

#[test]
fn locks_out_of_order_are_released_before_an_attempt_waits() {
    for kind in KINDS {
        let scene = scene(kind(0));
        let (db, table) = (&scene.db, &scene.table);
        let keys = in_order(table);
        let mut session = db.session().unwrap();
        let stuck = Stuck::on(&scene, keys[3], Mode::Write);
        for (held, restored) in [(keys[5], 1), (keys[2], 0)] {
            let before = db.stats().locks;
            run(&mut session, |tx| {
                table.read(tx, &held, Item::COUNT)?;
                assert_eq!(locked(table, held), (1, false));
                table.read(tx, &keys[3], Item::COUNT)?;
                assert_eq!(locked(table, held), (1 - restored, false), "row {held}");
                Ok(())
            });
            let locks = db.stats().locks.since(before);
            // An attempt that holds locks does not sleep, and leaves a request in a queue.
            let has_queue = cell(table, held).cell_words() > 2;
            let waited = if has_queue { restored } else { 1 };
            let counts = (locks.restored, locks.waited, locks.forgone);
            assert_eq!(counts, (restored, waited, 1), "{locks:?}");
        }
        drop(stuck);
        assert_free(table, "at the end");
    }
}

#[test]
fn an_attempt_with_many_locks_out_of_order_continues_without_the_lock() {
    let scene = scene(mocc(0));
    let Scene { db, table, .. } = &scene;
    run(&mut db.session().unwrap(), |tx| {
        (100..130).try_for_each(|id| table.insert(tx, Item::new(id, 0)))
    });
    let mut keys: Vec<u64> = (100..130).collect();
    keys.sort_unstable_by_key(|&key| cell(table, key).address());
    let stuck = Stuck::on(&scene, keys[0], Mode::Write);
    run(&mut db.session().unwrap(), |tx| {
        keys[1..].iter().try_for_each(|key| table.read(tx, key, Item::COUNT).map(drop))?;
        table.read(tx, &keys[0], Item::COUNT)?;
        assert!(keys[1..].iter().all(|&key| locked(table, key) == (1, false)), "kept");
        Ok(())
    });
    let locks = db.stats().locks;
    assert_eq!((locks.restored, locks.forgone, locks.taken), (0, 1, 29), "{locks:?}");
    drop(stuck);
    assert_free(table, "at the end");
}

/// At a queue lock, the request stays in the queue, and the lock may be granted later.
#[test]
fn a_request_that_is_not_granted_at_once_stays_queued() {
    for is_released in [false, true] {
        let scene = scene(in_queues(0));
        let Scene { db, table, .. } = &scene;
        let mut session = db.session().unwrap();
        run(&mut session, |tx| (100..130).try_for_each(|id| table.insert(tx, Item::new(id, 0))));
        let mut keys: Vec<u64> = (100..130).collect();
        keys.sort_unstable_by_key(|&key| cell(table, key).address());
        let before = db.stats().locks;
        let mut stuck = Some(Stuck::on(&scene, keys[0], Mode::Write));
        run(&mut session, |tx| {
            keys[1..].iter().try_for_each(|key| table.read(tx, key, Item::COUNT).map(drop))?;
            table.read(tx, &keys[0], Item::COUNT)?;
            stuck.take_if(|_| is_released);
            assert_eq!(locked(table, keys[0]), if is_released { (1, false) } else { (0, true) });
            table.read(tx, &keys[0], Item::COUNT)?;
            Ok(())
        });
        let locks = db.stats().locks.since(before);
        let taken = 29 + u64::from(is_released);
        assert_eq!((locks.taken, locks.forgone, locks.waited), (taken, 1, 0), "{locks:?}");
        drop(stuck);
        assert_free(table, "at the end");
    }
}

#[test]
fn a_commit_locks_its_writes_in_order_and_fails_without_one_of_them() {
    KINDS.into_iter().for_each(commit_writes_in_order);
}

fn commit_writes_in_order(kind: Kind) {
    let scene = scene(kind(0));
    let (db, table) = (&scene.db, &scene.table);
    let keys = in_order(table);
    let mut session = db.session().unwrap();
    let write_both = |session: &mut crate::Session<Occ>, is_free: bool| {
        session.with(ONCE()).run(|tx| {
            table.read(tx, &keys[5], Item::COUNT)?;
            table.update(tx, &keys[5], Item::COUNT.add(1))?;
            assert_eq!(locked(table, keys[5]), (0, true), "it was read");
            table.update(tx, &keys[3], Item::COUNT.add(1))?;
            assert_eq!(locked(table, keys[3]), (0, !is_free), "it was not");
            Ok(())
        })
    };
    let stuck = Stuck::on(&scene, keys[3], Mode::Write);
    assert_eq!(write_both(&mut session, false), CONFLICT);
    let locks = db.stats().locks;
    assert_eq!((locks.restored, locks.waited, locks.died), (1, 1, 1), "{locks:?}");
    drop(stuck);
    assert_free(table, "after a conflict");
    assert_eq!(write_both(&mut session, true), Ok(()));
    assert_free(table, "after a commit");
}

/// A row that transactions read and then write is locked for writing by the read.
#[test]
fn reads_note_whether_their_rows_are_written() {
    KINDS.into_iter().for_each(read_and_write_by_turns);
}

fn read_and_write_by_turns(kind: Kind) {
    let Scene { table, sessions: [mut session, ..], .. } = scene(kind(0));
    let read = |session: &mut crate::Session<Occ>, writes: bool| {
        run(session, |tx| {
            table.read(tx, 0, Item::COUNT)?;
            let (readers, is_written) = locked(&table, 0);
            assert_eq!(readers, u64::from(!is_written));
            if writes {
                table.update(tx, 0, Item::COUNT.add(1))?;
                assert_eq!(locked(&table, 0), (0, true));
            }
            Ok(is_written)
        })
    };
    let writes = [true, true, true, false, false, true, true];
    let seen = writes.map(|writes| read(&mut session, writes));
    assert_eq!(seen, [false, true, true, true, false, false, true]);
    assert_free(&table, "at the end");
}

#[test]
fn an_attempt_whose_row_changed_during_a_wait_for_its_lock_aborts() {
    KINDS.into_iter().for_each(wait_in_vain);
}

fn wait_in_vain(kind: Kind) {
    let scene = scene(kind(0));
    let (db, table) = (&scene.db, &scene.table);
    let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
    let goes_on = Cell::new(false);
    let ended = session.with(ONCE()).run(|tx| {
        table.read(tx, 0, Item::COUNT)?;
        // The transaction of the same thread does without the lock.
        run(&mut other, |tx| table.update(tx, 0, Item::COUNT.add(1)));
        let _stuck = Stuck::on(&scene, 0, Mode::Read);
        table.update(tx, 0, Item::COUNT.add(1))?;
        goes_on.set(true);
        Ok(())
    });
    assert_eq!((ended, goes_on.get()), (CONFLICT, false));
    assert_free(table, "at the end");
}

#[test]
fn the_rows_of_a_page_become_hot_together() {
    for is_ordered in [false, true] {
        let options = MoccOptions::new().per_page(true).threshold(2);
        let policies = Policies::of(Policy::Mocc).mocc(options);
        let db = Database::<Occ>::builder().policy(policies).timestamp_splitting(false);
        let db = db.build().unwrap();
        let options = TableOptions::default().capacity(8);
        let ordered = if is_ordered { options.ordered() } else { options };
        let table = db.table_with::<Item>("rows", ordered).unwrap();
        let sessions = [(); 3].map(|()| db.session().unwrap());
        let mut scene = Scene { db, table, sessions };
        run(&mut scene.sessions[0], |tx| {
            (0..2_000).try_for_each(|id| scene.table.insert(tx, Item::new(id, 0)))
        });
        heat(&mut scene);
        let hot = (0..2_000).filter(|&key| flags(&scene.table, key) == FLAGS).count();
        // A bucket may have one record alone.
        let least = if is_ordered { 2 } else { 1 };
        assert!((least..100).contains(&hot), "{hot} rows");
        assert_eq!(scene.db.stats().locks.heated, hot as u64);
    }
}

/// Two transactions each read the row that the other one writes. Both have their reads locked
/// before either commits; without the look at INSTALL both would validate.
#[test]
fn a_hot_write_skew_is_seen_at_validation() {
    let unreliable = mocc(0).mocc(MoccOptions::new().threshold(0).unreliable());
    for policies in [mocc(0), in_queues(0), unreliable] {
        for _ in 0..50 {
            let Scene { table, sessions: [mut outer, mut inner, _], .. } = scene(policies.clone());
            let (rows, ended) = (table.clone(), std::rc::Rc::new(Cell::new(None)));
            let noted = ended.clone();
            let second = move || {
                noted.set(Some(inner.with(ONCE()).run(|tx| read_then_write(&rows, tx, 1, 0))));
            };
            let first = acting(Point::Validated, second, || {
                outer.with(ONCE()).run(|tx| read_then_write(&table, tx, 0, 1))
            });
            assert_eq!((first, ended.get()), (Ok(()), Some(CONFLICT)));
            assert_free(&table, "at the end");
        }
    }
}

/// A record that dies while an attempt waits for its lock is given back.
#[test]
fn inserts_and_deletes_of_hot_rows_leave_no_lock() {
    KINDS.into_iter().for_each(insert_and_delete);
}

fn insert_and_delete(kind: Kind) {
    let Scene { db, table, sessions: [mut session, ..] } = scene(kind(0));
    for _ in 0..20 {
        run(&mut session, |tx| {
            table.read(tx, 0, Item::COUNT)?;
            table.delete(tx, 0)?;
            table.insert(tx, Item::new(50, 0))
        });
        db.inner.engine.epochs.pass();
        run(&mut session, |tx| {
            table.insert(tx, Item::new(0, 0))?;
            table.read(tx, 50, Item::COUNT)?;
            table.delete(tx, 50)
        });
        assert_free(&table, "after a round");
    }
}

/// The flags of a row that has become cold stay set while another session holds its lock (LK4).
#[test]
fn a_row_that_others_have_locked_stays_hot() {
    for kind in KINDS {
        let mut scene = scene(kind(1));
        heat(&mut scene);
        let stuck = Stuck::on(&scene, 0, Mode::Read);
        let mut session = scene.db.session().unwrap();
        let mut read = || {
            scene.db.inner.engine.epochs.pass();
            run(&mut session, |tx| {
                scene.table.read(tx, 0, Item::COUNT)?;
                assert!((1..=2).contains(&locked(&scene.table, 0).0));
                Ok(())
            });
        };
        (0..400).for_each(|_| read());
        assert_eq!(flags(&scene.table, 0), FLAGS);
        drop(stuck);
        read();
        assert_eq!(flags(&scene.table, 0), 0);
        assert_free(&scene.table, "at the end");
    }
}

#[test]
fn a_wait_for_the_lock_of_a_hot_row_raises_its_temperature() {
    for kind in KINDS {
        let mut scene = scene(kind(1));
        heat(&mut scene);
        let stuck = Stuck::on(&scene, 0, Mode::Write);
        let temperatures = &base(&scene.db).locks.temperatures;
        let temperature = || temperatures.of(cell(&scene.table, 0).address());
        let before = temperature();
        let mut session = scene.db.session().unwrap();
        for _ in 0..20 {
            let read = session.with(ONCE()).run(|tx| scene.table.read(tx, 0, Item::COUNT));
            assert!(read.is_ok(), "the attempt continues without the lock");
        }
        assert!(temperature() > before);
        drop(stuck);
        assert_free(&scene.table, "at the end");
    }
}

/// The lock's holder may be stuck in its closure.
#[test]
fn a_transaction_commits_although_a_lock_is_never_released() {
    for kind in KINDS {
        let scene = scene(kind(0));
        let stuck = Stuck::on(&scene, 0, Mode::Write);
        let options = crate::RunOptions::new().attempts_max(64);
        let ended = scene.db.session().unwrap().with(options).run(|tx| {
            let count = scene.table.read(tx, 0, Item::COUNT)?;
            scene.table.update(tx, 0, Item::COUNT.set(count + 1))
        });
        assert_eq!(ended, Ok(()));
        drop(stuck);
        assert_free(&scene.table, "at the end");
    }
}

/// The inner transaction ends before the outer one can continue.
#[test]
fn a_nested_transaction_writes_a_row_that_the_outer_one_has_locked() {
    for kind in KINDS {
        let Scene { table, sessions: [mut outer, mut inner, _], .. } = scene(kind(0));
        let ended = outer.with(ONCE()).run(|tx| {
            let count = table.read(tx, 0, Item::COUNT)?;
            table.update(tx, 0, Item::COUNT.set(count + 1))?;
            assert_eq!(locked(&table, 0), (0, true));
            let ended = inner.with(ONCE()).run(|tx| {
                let count = table.read(tx, 0, Item::COUNT)?;
                table.update(tx, 0, Item::COUNT.set(count + 1))
            });
            assert_eq!(ended, Ok(()));
            Ok(())
        });
        assert_eq!(ended, CONFLICT, "row 0 has changed");
        assert_free(&table, "at the end");
    }
}
