//! Tests of changes of a table's policy.

use super::super::interleaving::acting;
use super::super::rows::Item;
use super::super::transactions::run;
use super::super::waiting::eventually;
use super::{Scene, assert_free, cell, locking, scene, with_locks};
use crate::locks::{FLAGS, Lock, RASK, WASK, flags_of};
use crate::policy::{MoccOptions, Policy};
use crate::protocols::{Mvcc, TicToc};
use crate::sync::size::share;
use crate::sync::{AtomicBool, Ordering, Point, Random};
use crate::{Database, Error, Protocol, Table, TableOptions};
use std::cell::Cell;
use std::rc::Rc;

fn flags<P: Protocol>(table: &Table<Item, P>, key: u64) -> u64 {
    cell(table, key).cell_word(0).load(Ordering::Relaxed) & FLAGS
}

#[test]
fn a_table_without_room_keeps_its_policy() {
    let Scene { table, sessions: [mut session, ..], .. } = scene(Policy::Optimistic);
    for policy in with_locks() {
        let error = table.set_policy(policy).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "table \"rows\" was made without room for the locks of {policy}; \
                 use occ, or make the table with a policy that locks"
            )
        );
        assert!(matches!(error, Error::PolicyWithoutRoom { wanted, .. } if wanted == policy));
        assert_eq!((table.policy(), flags(&table, 0)), (Policy::Optimistic, 0), "{policy}");
        let updated = session.run(|tx| table.update(tx, 0, Item::COUNT.add(1)));
        assert_eq!(updated, Ok(()), "{policy}");
    }
    assert_eq!(table.set_policy(Policy::Optimistic), Ok(()));
}

fn a_protocol_without_policies_refuses_all_of_them_under<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let options = TableOptions::default().policy(Policy::WaitDie);
    let table = db.table_with::<Item>("rows", options);
    let table = table.or_else(|_| db.table::<Item>("rows")).unwrap();
    for policy in Policy::ALL {
        let error = table.set_policy(policy).unwrap_err();
        let text =
            format!("table \"rows\" cannot have a policy: protocol {} has none; use occ", P::NAME);
        assert_eq!(error.to_string(), text);
        assert!(matches!(error, Error::NoPolicies { .. }));
        assert_eq!(table.policy(), Policy::Optimistic);
    }
}

#[test]
fn a_protocol_without_policies_refuses_all_of_them() {
    a_protocol_without_policies_refuses_all_of_them_under::<TicToc>();
    a_protocol_without_policies_refuses_all_of_them_under::<Mvcc>();
}

#[test]
fn new_rows_get_the_flags_of_their_table() {
    let Scene { table, sessions: [mut session, ..], .. } = scene(Policy::NoWait);
    for (policy, key) in Policy::ALL.into_iter().zip(100..) {
        table.set_policy(policy).unwrap();
        assert_eq!(table.policy(), policy);
        session.run(|tx| table.insert(tx, Item::new(key, 0))).unwrap();
        for key in (0..8).chain(100..=key) {
            assert_eq!(
                flags(&table, key),
                flags_of(policy, MoccOptions::new()),
                "row {key} under {policy}"
            );
        }
        assert_free(&table, policy.name());
    }
}

/// Between its look at the flags and the release of its lock, a writer relies on them (LK3).
#[test]
fn flags_are_not_set_while_a_commit_has_locked_the_row() {
    for policy in locking() {
        let Scene { table, sessions: [mut session, ..], .. } = scene(policy);
        table.set_policy(Policy::Optimistic).unwrap();
        let (rows, seen) = (table.clone(), Rc::new(Cell::new((0, 0))));
        let noted = seen.clone();
        let change = move || {
            rows.set_policy(policy).unwrap();
            noted.set((flags(&rows, 0), flags(&rows, 1)));
        };
        acting(Point::Locked, change, || {
            run(&mut session, |tx| table.update(tx, 0, Item::COUNT.add(1)));
        });
        assert_eq!(seen.get(), (0, flags_of(policy, MoccOptions::new())), "{policy}");
        assert_free(&table, policy.name());
        table.set_policy(policy).unwrap();
        assert_eq!(flags(&table, 0), flags_of(policy, MoccOptions::new()), "{policy}");
    }
}

/// A writer waits for a lock, and the lock's holder clears the flags (LK4). The writer then
/// continues without the lock (LK5).
#[test]
fn a_lock_that_is_granted_too_late_is_released() {
    let Scene { db, table, sessions: [mut session, ..] } = scene(Policy::Dreadlock);
    let (at, parking) = (cell(&table, 0), &db.inner.engine.parking);
    let lock = Lock::of(&at);
    lock.take_to_write(0).unwrap();
    let second = std::thread::scope(|scope| {
        let (waiter, table) = (&mut session, &table);
        let waiter = scope.spawn(move || {
            let mut second = None;
            let updated = waiter.run(|tx| {
                table.update(tx, 0, Item::COUNT.add(1))?;
                second = Some(Lock::of(&cell(table, 0)).word().is_written());
                Ok(())
            });
            assert_eq!(updated, Ok(()));
            second
        });
        eventually("the wait", || !parking.waited_for().is_empty());
        at.cell_word(0).fetch_and(!(RASK | WASK), Ordering::Relaxed);
        lock.pass_on(None);
        parking.wake(at.address() + 8);
        waiter.join().unwrap()
    });
    assert_eq!(second, Some(false), "the row is written without its policy");
    assert_free(&table, "at the end");
}

#[test]
fn policies_change_under_transactions() {
    const THREADS: u64 = 6;
    const ROWS: u64 = 8;
    let Scene { db, table, .. } = scene(Policy::NoWait);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let transfer = |thread: u64| {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                let (mut session, mut random) = (db.session().unwrap(), Random::seeded(thread));
                for round in 0..share(1_500u64) {
                    let (from, to) = (random.below(ROWS), random.below(ROWS));
                    let moved = session.run(|tx| match round % 3 {
                        0 => {
                            let sum = (0..ROWS)
                                .try_fold(0, |sum, id| Ok(sum + table.read(tx, &id, Item::COUNT)?));
                            sum.map(|sum| assert_eq!(sum, 0))
                        }
                        1 => {
                            let count = table.read(tx, &from, Item::COUNT)?;
                            table.update(tx, &from, Item::COUNT.set(count - 1))?;
                            table.modify(tx, &to, Item::COUNT, |count| *count += 1)
                        }
                        _ => {
                            table.read_for_update(tx, &from, Item::COUNT)?;
                            table.update(tx, &from, Item::COUNT.sub(1))?;
                            table.update(tx, &to, Item::COUNT.add(1))
                        }
                    });
                    assert_eq!(moved, Ok(()));
                }
            })
        };
        let workers: Vec<_> = (0..THREADS).map(transfer).collect();
        let (table, done) = (&table, &done);
        scope.spawn(move || {
            let mut random = Random::seeded(99);
            while !done.load(Ordering::Relaxed) {
                let policy = Policy::ALL[random.below(Policy::ALL.len() as u64) as usize];
                table.set_policy(policy).unwrap();
                std::thread::yield_now();
            }
        });
        let ended: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        done.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.unwrap());
    });
    for policy in Policy::ALL {
        table.set_policy(policy).unwrap();
        let mut sum = 0;
        table.for_each_quiescent(|row| sum += row.count).unwrap();
        assert_eq!(sum, 0);
        assert_free(&table, policy.name());
        (0..ROWS).for_each(|key| {
            assert_eq!(flags(&table, key), flags_of(policy, MoccOptions::new()), "{policy}")
        });
    }
}
