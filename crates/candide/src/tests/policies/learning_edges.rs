//! Tests of the policies that learn from conflicts, in rare cases: of waits, counts, and locks that
//! are left.

use super::super::rows::Item;
use super::super::transactions::{CONFLICT, ONCE, run};
use super::learning::{KINDS, Kind, flags, heat, in_order, in_queues, locked, mocc};
use super::{Scene, Stuck, assert_free, base, cell, scene};
use crate::locks::{FLAGS, Mode, queue, queue_mode};
use crate::policy::{MoccOptions, Policies, Policy};
use crate::protocols::Occ;
use crate::record::Tid;
use crate::sync::queue_lock::Supply;
use crate::sync::size::is_short;
use crate::sync::{AtomicU64, Ordering, Random, steps};
use crate::tests::histories::Deliberate;
use crate::tests::hostile::Watchdog;
use crate::{Abort, Database, Session, Table, TableOptions, Tx};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Returns the keys from 100 up to `100 + count`, of rows that it inserts, in the order of the
/// addresses of their cells.
fn insert_many(scene: &Scene, count: u64) -> Vec<u64> {
    let mut keys: Vec<u64> = (100..100 + count).collect();
    run(&mut scene.db.session().unwrap(), |tx| {
        keys.iter().try_for_each(|&key| scene.table.insert(tx, Item::new(key, 0)))
    });
    keys.sort_unstable_by_key(|&key| cell(&scene.table, key).address());
    keys
}

/// Other attempts wait behind the request, so the attempt that has made it must not sleep (WA1).
#[test]
fn an_attempt_with_a_request_in_a_queue_does_not_sleep_for_a_cell() {
    let scene = scene(in_queues(0));
    let db = &scene.db;
    let options = TableOptions::default().policy(Policy::Optimistic);
    let cold = db.table_with::<Item>("cold", options).unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| (0..2).try_for_each(|key| cold.insert(tx, Item::new(key, 0))));
    let mut keys = [0, 1];
    keys.sort_unstable_by_key(|&key| cell(&cold, key).address());
    let stuck = Stuck::on(&scene, 0, Mode::Write);
    let (at, slept) = (cell(&cold, keys[1]), Cell::new(0));
    let ended = session.with(ONCE()).run(|tx| {
        cold.read_for_update(tx, &keys[0], Item::COUNT)?;
        scene.table.read(tx, 0, Item::COUNT)?;
        let before = db.inner.engine.parking.entered();
        at.cell_word(0).fetch_or(Tid::LOCK, Ordering::Relaxed);
        let ended = cold.read_for_update(tx, &keys[1], Item::COUNT).map(drop);
        at.cell_word(0).fetch_and(!Tid::LOCK, Ordering::Relaxed);
        slept.set(db.inner.engine.parking.entered() - before);
        ended
    });
    assert_eq!((ended, slept.get()), (CONFLICT, 0));
    drop(stuck);
    assert_free(&scene.table, "at the end");
}

/// The lock's holder may wait for the outer transaction, which cannot continue.
#[test]
fn a_nested_transaction_does_not_sleep_for_a_lock() {
    for kind in KINDS {
        let scene = scene(kind(0));
        let (db, table) = (&scene.db, &scene.table);
        let [mut outer, mut inner] = [(); 2].map(|()| db.session().unwrap());
        let stuck = Stuck::on(&scene, 3, Mode::Write);
        let before = db.inner.engine.parking.entered();
        run(&mut outer, |tx| {
            table.read(tx, 5, Item::COUNT)?;
            run(&mut inner, |tx| table.read(tx, 3, Item::COUNT));
            Ok(())
        });
        assert_eq!(db.inner.engine.parking.entered() - before, 0);
        drop(stuck);
        assert_free(table, "at the end");
    }
}

#[test]
fn an_attempt_sleeps_without_success_for_a_row_at_most_once() {
    for kind in KINDS {
        let scene = scene(kind(0));
        let stuck = Stuck::on(&scene, 0, Mode::Write);
        let before = scene.db.inner.engine.parking.entered();
        run(&mut scene.db.session().unwrap(), |tx| {
            (0..3).try_for_each(|_| scene.table.read(tx, 0, Item::COUNT).map(drop))
        });
        assert_eq!(scene.db.inner.engine.parking.entered() - before, 1);
        drop(stuck);
        assert_free(&scene.table, "at the end");
    }
}

/// A transaction that its closure ends with an error is not read-only if it has staged writes.
#[test]
fn an_attempt_that_ends_in_an_error_counts_for_no_policy_as_read_only() {
    for kind in KINDS {
        let Scene { table, sessions: [mut session, ..], .. } = scene(kind(0));
        let mut change = |ended: Result<(), Abort>| {
            let was_written = Cell::new(false);
            let result = session.with(ONCE()).run(|tx| {
                table.read(tx, 0, Item::COUNT)?;
                was_written.set(locked(&table, 0) == (0, true));
                table.update(tx, 0, Item::COUNT.add(1))?;
                ended
            });
            assert_eq!(result, ended);
            was_written.get()
        };
        let refused = Err(Abort::NotFound);
        assert_eq!([Ok(()), refused, Ok(())].map(&mut change), [false, true, true]);
    }
}

/// A row that becomes hot also heats the rows of its index node that lie in other pages.
#[test]
fn the_rows_of_a_page_stay_hot_together() {
    let options = MoccOptions::new().per_page(true).threshold(2);
    let policies = Policies::of(Policy::Mocc).mocc(options);
    let db = Database::<Occ>::builder().policy(policies).timestamp_splitting(false);
    let db = db.build().unwrap();
    let table = db.table_with::<Item>("rows", TableOptions::default().ordered()).unwrap();
    let sessions = [(); 3].map(|()| db.session().unwrap());
    let mut scene = Scene { db, table, sessions };
    // Row 1 is the last one to be made.
    let keys = [0].into_iter().chain(1_000..2_000).chain([1]);
    for key in keys {
        run(&mut scene.sessions[0], |tx| scene.table.insert(tx, Item::new(key, 0)));
    }
    let [first, last] = [0, 1].map(|key| cell(&scene.table, key).address() >> 12);
    assert_ne!(first, last, "two pages of memory");
    heat(&mut scene);
    assert_eq!(flags(&scene.table, 1), FLAGS, "the row beside it");
    run(&mut scene.sessions[1], |tx| scene.table.read(tx, 1, Item::COUNT));
    assert_eq!(flags(&scene.table, 1), FLAGS, "after one lock");
}

#[test]
fn reads_of_a_row_in_one_attempt_raise_its_temperature_once() {
    let Scene { table, sessions: [mut session, mut other, _], .. } = scene(mocc(5));
    let ended = session.with(ONCE()).run(|tx| {
        (0..400).try_for_each(|_| table.read(tx, 0, Item::COUNT).map(drop))?;
        run(&mut other, |tx| table.update(tx, 0, Item::COUNT.add(1)));
        table.update(tx, 1, Item::COUNT.add(1))
    });
    assert_eq!((ended, flags(&table, 0)), (CONFLICT, 0));
}

/// A node comes back only after two epochs, but a node that was in no queue need not be given back.
#[test]
fn a_try_that_never_stood_in_a_queue_uses_up_no_node() {
    let scene = scene(in_queues(0));
    let (db, table) = (&scene.db, &scene.table);
    let keys = in_order(table);
    let mut session = db.session().unwrap();
    let many = insert_many(&scene, 20);
    let stuck = Stuck::on(&scene, keys[0], Mode::Write);
    run(&mut session, |tx| {
        many.iter().try_for_each(|key| table.read(tx, key, Item::COUNT).map(drop))?;
        (0..600).try_for_each(|_| table.read(tx, &keys[0], Item::COUNT).map(drop))?;
        table.read(tx, &keys[5], Item::COUNT)?;
        assert_eq!(locked(table, keys[5]), (1, false), "there is a node for a free lock");
        Ok(())
    });
    drop(stuck);
    assert_free(table, "at the end");
}

/// Under `pcc` a read takes a lock if the lock is free, and otherwise continues without the lock.
#[test]
fn a_policy_that_does_not_wait_leaves_no_request_in_a_queue() {
    let scene = scene(in_queues(0));
    let table = &scene.table;
    table.set_policy(Policy::Pessimistic).unwrap();
    let mut stuck = Some(Stuck::on(&scene, 0, Mode::Write));
    run(&mut scene.db.session().unwrap(), |tx| {
        table.read(tx, 0, Item::COUNT)?;
        drop(stuck.take());
        assert_eq!(locked(table, 0), (0, false), "no lock was taken later");
        Ok(())
    });
    assert_free(table, "at the end");
}

#[test]
fn a_row_read_during_a_change_of_the_policy_gets_the_new_flags_at_release() {
    KINDS.into_iter().for_each(change_while_read);
}

fn change_while_read(kind: Kind) {
    let Scene { table, sessions: [mut session, ..], .. } = scene(kind(0));
    run(&mut session, |tx| {
        table.read(tx, 0, Item::COUNT)?;
        table.set_policy(Policy::Optimistic).unwrap();
        Ok(())
    });
    assert_free(&table, "at the end");
    assert!((0..8).all(|key| flags(&table, key) == 0), "{:#x}", flags(&table, 0));
}

/// The work is proportional to the number of locks, not to its square.
#[test]
fn restoring_canonical_mode_looks_at_each_lock_a_few_times() {
    const COUNT: usize = 2_000;
    let scene = scene(mocc(0));
    let keys = insert_many(&scene, COUNT as u64);
    let stuck = Stuck::on(&scene, keys[COUNT / 2], Mode::Write);
    let taken = Cell::new(0);
    let ended = scene.db.session().unwrap().with(ONCE()).run(|tx| {
        let others = keys.iter().filter(|&&key| key != keys[COUNT / 2]);
        for key in others {
            scene.table.read(tx, key, Item::COUNT)?;
        }
        scene.table.update(tx, &keys[COUNT / 2], Item::COUNT.add(1))?;
        taken.set(steps());
        Ok(())
    });
    let looks = steps() - taken.get();
    assert_eq!((ended, scene.db.stats().locks.restored), (CONFLICT, 1));
    assert!(looks < 10 * COUNT as u64, "{looks} looks");
    drop(stuck);
    assert_free(&scene.table, "at the end");
}

/// The number of rows among which counts are moved. Rows below [`KEPT`] are never deleted.
const ROWS: u64 = 8;
const KEPT: u64 = 4;

/// Returns the sum of all counts, read one by one or by a scan.
fn sum(table: &Table<Item>, tx: &Tx<'_, Occ>, is_scan: bool) -> Result<i64, Abort> {
    if is_scan {
        return table.iter(tx, Item::COUNT).try_fold(0, |sum, row| Ok(sum + row?.1));
    }
    (0..ROWS).try_fold(0, |sum, key| Ok(sum + table.get(tx, &key, Item::COUNT)?.unwrap_or(0)))
}

/// Moves counts, checks their sum, deletes or inserts a row, fails, or panics, at random. All that
/// an attempt sees belongs to one moment, even if the attempt fails.
fn act(
    table: &Table<Item>,
    tx: &Tx<'_, Occ>,
    random: &mut Random,
    inner: Option<&mut Session<Occ>>,
) -> Result<(), Abort> {
    let (from, to) = (random.below(KEPT), random.below(KEPT));
    let row = KEPT + random.below(ROWS - KEPT);
    match random.below(9) {
        0 | 1 => assert_eq!(sum(table, tx, random.below(2) == 0)?, 0),
        2 => {
            table.update(tx, &from, Item::COUNT.sub(1))?;
            table.update(tx, &to, Item::COUNT.add(1))?;
        }
        3 => {
            let count = table.read_for_update(tx, &from, Item::COUNT)?;
            table.read(tx, &to, Item::OTHER)?;
            table.update(tx, &from, Item::COUNT.set(count + 1))?;
            table.modify(tx, &to, Item::COUNT, |count| *count -= 1)?;
        }
        4 | 5 => match table.get(tx, &row, Item::COUNT)? {
            Some(count) => {
                table.delete(tx, &row)?;
                table.update(tx, &to, Item::COUNT.add(count))?;
            }
            None => {
                table.insert(tx, Item::new(row, 1))?;
                table.update(tx, &from, Item::COUNT.sub(1))?;
            }
        },
        6 => {
            if let Some(inner) = inner {
                let mut seed = Random::seeded(random.next());
                let options = crate::RunOptions::new().attempts_max(3);
                let _any = inner.with(options).run(|tx| act(table, tx, &mut seed, None));
            }
            table.read(tx, &from, Item::COUNT)?;
            table.update(tx, &from, Item::OTHER.add(1))?;
        }
        7 => {
            table.update(tx, &from, Item::COUNT.sub(1))?;
            assert_eq!(sum(table, tx, true)?, -1);
            return Err(Abort::NotFound);
        }
        _ => {
            table.read_for_update(tx, &from, Item::COUNT)?;
            table.update(tx, &to, Item::COUNT.sub(1))?;
            resume_unwind(Box::new(Deliberate));
        }
    }
    Ok(())
}

/// Counts a thread out.
struct Leaves<'a>(&'a AtomicU64);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Sessions that come and go do everything that a transaction can do to a few rows, while the
/// table's policy changes.
fn come_and_go(policies: Policies, is_ordered: bool, possible: &[Policy]) {
    let db = Database::<Occ>::builder().policy(policies).build().unwrap();
    let options = TableOptions::default();
    let options = if is_ordered { options.ordered() } else { options };
    let table = db.table_with::<Item>("rows", options).unwrap();
    let mut first = db.session().unwrap();
    run(&mut first, |tx| (0..ROWS).try_for_each(|key| table.insert(tx, Item::new(key, 0))));
    let (sessions, rounds) = (if is_short() { 10 } else { 60 }, 25);
    let left = AtomicU64::new(6);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (db, table, left) = (&db, &table, &left);
            scope.spawn(move || {
                let _leaves = Leaves(left);
                let mut random = Random::seeded(thread);
                for _ in 0..sessions {
                    let [mut outer, mut inner] = [(); 2].map(|()| db.session().unwrap());
                    for _ in 0..rounds {
                        let ended = catch_unwind(AssertUnwindSafe(|| {
                            outer.run(|tx| act(table, tx, &mut random, Some(&mut inner)))
                        }));
                        match ended {
                            Ok(ended) => {
                                assert!(matches!(ended, Ok(()) | Err(Abort::NotFound)), "{ended:?}")
                            }
                            Err(panic) if panic.is::<Deliberate>() => {}
                            Err(panic) => resume_unwind(panic),
                        }
                    }
                }
            });
        }
        scope.spawn(|| {
            let mut random = Random::seeded(77);
            while left.load(Ordering::Relaxed) > 0 {
                let policy = possible[random.below(possible.len() as u64) as usize];
                table.set_policy(policy).unwrap();
                std::thread::sleep(crate::sync::Duration::from_millis(1));
            }
        });
    });
    // Records of deleted rows are still being collected, so an attempt may meet a conflict.
    assert_eq!(first.run(|tx| sum(&table, tx, true)), Ok(0));
    // The pin keeps their memory while the index is visited.
    let slot = db.inner.engine.epochs.register();
    let pinned = db.inner.engine.epochs.pinned(&slot);
    assert_free(&table, "at the end");
    drop(pinned);
    db.inner.engine.epochs.unregister(&slot);
    let desks = &base(&db).locks.desks;
    assert!(desks.in_classes(u64::from(u32::MAX)).all(|(_, desk)| !desk.is_in_attempt()));
    assert!(db.inner.engine.parking.waited_for().is_empty());
}

#[test]
fn sessions_come_and_go_while_the_policy_changes() {
    let watchdog = Watchdog::new();
    let learning = [Policy::Mocc, Policy::Hybrid];
    let in_order = [Policy::Optimistic, Policy::Pessimistic, Policy::Mocc, Policy::Hybrid];
    for kind in KINDS {
        for (threshold, is_ordered) in [(0, false), (1, true)] {
            watchdog.step(format!("{threshold}, {is_ordered}"));
            let policies = kind(threshold);
            let has_queues = policies.mocc_options().has_queue_locks();
            come_and_go(policies.clone(), is_ordered, &learning);
            let all: &[Policy] = if has_queues { &in_order } else { &Policy::ALL };
            come_and_go(policies, is_ordered, all);
        }
    }
}

/// A queue lock grants in the order of the requests, and an attempt that reads a row again has made
/// one request.
#[test]
fn an_attempt_that_asks_again_keeps_its_place_in_the_queue() {
    let scene = scene(in_queues(0));
    let (base, table) = (base(&scene.db), &scene.table);
    let key = in_order(table)[0];
    let many = insert_many(&scene, 20);
    let stuck = Stuck::on(&scene, key, Mode::Write);
    let (at, desk) = (cell(table, key), base.locks.desks.join(true).unwrap());
    let lock = queue(base, &at);
    let writer =
        Supply::new(desk).take(&base.locks.queue_nodes, base.engine.epochs.bound()).unwrap();
    let mut stuck = Some(stuck);
    let is_first = run(&mut scene.db.session().unwrap(), |tx| {
        many.iter().try_for_each(|key| table.read(tx, key, Item::COUNT).map(drop))?;
        table.read(tx, &key, Item::COUNT)?;
        assert!(!lock.request(writer, queue_mode(Mode::Write)), "it stands behind the reader");
        table.read(tx, &key, Item::COUNT)?;
        drop(stuck.take());
        Ok(!lock.poll(writer))
    });
    lock.release(writer);
    assert!(is_first, "the writer was granted the lock first");
}

/// The request was granted after the closure had last asked for the lock.
#[test]
fn a_commit_keeps_the_lock_that_its_request_was_granted_meanwhile() {
    let scene = scene(in_queues(0));
    let (db, table) = (&scene.db, &scene.table);
    let mut session = db.session().unwrap();
    let many = insert_many(&scene, 20);
    let change = |tx: &Tx<'_, Occ>| {
        let count = table.read(tx, &many[0], Item::COUNT)?;
        table.update(tx, &many[0], Item::COUNT.set(count + 1))
    };
    // From then on the read takes the lock for writing.
    run(&mut session, change);
    let mut stuck = Some(Stuck::on(&scene, many[0], Mode::Write));
    let before = db.stats().locks;
    let ended = session.with(ONCE()).run(|tx| {
        many[1..].iter().try_for_each(|key| table.read(tx, key, Item::COUNT).map(drop))?;
        change(tx)?;
        drop(stuck.take());
        Ok(())
    });
    assert_eq!((ended, db.stats().locks.since(before).died), (Ok(()), 0));
    assert_free(table, "at the end");
}

/// The nodes of all sessions come back only when the longest transaction has ended. Until then a
/// session whose nodes are used up continues without locks.
#[test]
fn a_session_without_nodes_goes_on_without_locks_until_a_long_transaction_has_ended() {
    let scene = scene(in_queues(0));
    let [mut long, mut short] = [(); 2].map(|()| scene.db.session().unwrap());
    let mut read_often = || {
        let before = scene.db.stats().locks;
        for _ in 0..1_100 {
            scene.db.inner.engine.epochs.pass();
            run(&mut short, |tx| scene.table.read(tx, 0, Item::COUNT));
        }
        let locks = scene.db.stats().locks.since(before);
        (locks.taken, locks.forgone)
    };
    assert_eq!(run(&mut long, |_| Ok(read_often())), (1_023, 77));
    assert_eq!(read_often(), (1_100, 0));
    assert_free(&scene.table, "at the end");
}
