//! Schedules of chains, under the policy `pipelined`: threads are stopped at exact points of their
//! commits.

mod beside;
mod frozen;
mod held;
mod keyed;
mod killed;
mod tame;
mod unobserved;

use super::{assert_free, cell, scene};
use crate::policy::Policy;
use crate::protocols::Occ;
use crate::record::Tid;
use crate::sync::{Ordering, Point, steps, with_hook};
use crate::tests::hostile::{Watchdog, end_process};
use crate::tests::rows::Item;
use crate::tests::transactions::ONCE;
use crate::tests::waiting::{eventually, receive};
use crate::{Abort, Database, Error, Table, TableOptions, Tx};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

impl Scene {
    /// Returns the number of sessions that sleep, except those that sleep at `places`.
    fn asleep_beside(&self, places: &[u64]) -> usize {
        let asleep = self.db.inner.engine.parking.waited_for();
        asleep.iter().filter(|place| !places.contains(place)).count()
    }

    fn sleeps_at(&self, place: u64) -> bool {
        self.db.inner.engine.parking.waited_for().contains(&place)
    }

    fn taken_over(&self) -> u64 {
        self.db.stats().locks.taken_over
    }
}

/// A transaction on a thread of its own, which stops at a point.
struct Stopped<'s> {
    thread: ScopedJoinHandle<'s, (Result<(), Abort>, u64)>,
    reached: Receiver<()>,
    go: Sender<()>,
}

impl Stopped<'_> {
    /// Waits until the transaction has stopped.
    fn reached(self) -> Self {
        receive("the point", &self.reached);
        self
    }

    /// Lets the transaction go on. Returns its result, and the number of its conflicts.
    fn finish(self) -> (Result<(), Abort>, u64) {
        drop(self.go);
        self.thread.join().unwrap()
    }

    fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

/// A database with rows 0..8.
struct Scene {
    db: Database<Occ>,
    table: Table<Item, Occ>,
}

/// Spawns a transaction that stops when it passes `point` for the first time.
fn spawn<'s>(
    scope: &'s Scope<'s, '_>,
    scene: &'s Scene,
    point: Point,
    body: impl Fn(&Table<Item, Occ>, &Tx<'_, Occ>) -> Result<(), Abort> + Send + 's,
) -> Stopped<'s> {
    let ((say, reached), (go, stopped)) = (channel(), channel::<()>());
    let mut is_first = true;
    let hook = move |passed| {
        if passed == point && std::mem::take(&mut is_first) {
            say.send(()).unwrap();
            let _ = stopped.recv();
        }
    };
    let thread = scope.spawn(move || {
        let mut session = scene.db.session().unwrap();
        let result = with_hook(hook, || session.run(|tx| body(&scene.table, tx)));
        (result, session.stats().total_aborts())
    });
    Stopped { thread, reached, go }
}

/// Spawns a transaction that does not stop.
fn spawn_free<'s>(
    scope: &'s Scope<'s, '_>,
    scene: &'s Scene,
    body: impl Fn(&Table<Item, Occ>, &Tx<'_, Occ>) -> Result<(), Abort> + Send + 's,
) -> Stopped<'s> {
    spawn(scope, scene, Point::Excluded, body)
}

fn add(
    key: u64,
    count: i64,
) -> impl Fn(&Table<Item, Occ>, &Tx<'_, Occ>) -> Result<(), Abort> + Send {
    move |table, tx| table.update(tx, key, Item::COUNT.add(count))
}

fn count(scene: &Scene, key: u64) -> Option<i64> {
    scene.db.run(|tx| scene.table.get(tx, key, Item::COUNT)).unwrap()
}

fn version(scene: &Scene, key: u64) -> Tid {
    Tid(cell(&scene.table, key).cell_word(0).load(Ordering::Relaxed))
}

/// Waits until `count` transactions have taken a lock over.
fn await_taken_over(scene: &Scene, count: u64) {
    eventually("a lock taken over", || scene.db.stats().locks.taken_over >= count);
}

fn pipelined() -> Scene {
    let super::Scene { db, table, .. } = scene(Policy::Pipelined);
    Scene { db, table }
}

#[test]
fn a_successor_changes_the_row_before_its_predecessor_is_over() {
    let scene = pipelined();
    let before = version(&scene, 0);
    std::thread::scope(|scope| {
        let first = spawn(scope, &scene, Point::Executed, add(0, 1)).reached();
        let second = add(0, 10);
        let second = spawn(scope, &scene, Point::Executed, second).reached();
        // Hand-over: the first one must leave the cell to the second one.
        assert_eq!(first.finish(), (Ok(()), 0));
        let between = version(&scene, 0);
        assert!(between.version() > before.version(), "the version of the first one is left");
        assert!(between.has(Tid::INSTALL), "the chain goes on");
        assert_eq!(second.finish(), (Ok(()), 0));
        assert!(version(&scene, 0).version() > between.version());
    });
    assert_eq!(count(&scene, 0), Some(11));
    assert_free(&scene.table, "after the chain");
}

#[test]
fn a_successor_is_not_over_before_its_predecessor() {
    let scene = pipelined();
    std::thread::scope(|scope| {
        let first = add(0, 1);
        let first = spawn(scope, &scene, Point::Closing, first).reached();
        let body = add(0, 10);
        let second = spawn_free(scope, &scene, body);
        await_taken_over(&scene, 1);
        let reader = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| {
            assert_eq!(table.read(tx, 0, Item::COUNT)?, 11);
            Ok(())
        };
        let reader = spawn_free(scope, &scene, reader);
        let waits = || scene.asleep_beside(&[cell(&scene.table, 0).address()]) > 0;
        eventually("the successor waits", || second.is_finished() || waits());
        assert!(!second.is_finished() && !reader.is_finished());
        assert_eq!(first.finish(), (Ok(()), 0));
        assert_eq!(second.finish(), (Ok(()), 0));
        assert_eq!(reader.finish().0, Ok(()));
    });
    assert_free(&scene.table, "after the chain");
}

/// The middle one of three members fails: its successor goes on as if it had never run, and the
/// version is above that of the first one.
#[test]
fn a_member_that_fails_in_the_middle_has_no_effect() {
    let scene = pipelined();
    std::thread::scope(|scope| {
        let first = spawn(scope, &scene, Point::Executed, add(0, 1)).reached();
        let guarded = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| {
            table.update(tx, 1, Item::COUNT.add(5))?;
            table.update(tx, 0, Item::COUNT.sub(100).at_least(0))
        };
        let second = spawn_free(scope, &scene, guarded);
        await_taken_over(&scene, 1);
        let third = add(0, 10);
        let third = spawn_free(scope, &scene, third);
        await_taken_over(&scene, 2);
        assert_eq!(first.finish(), (Ok(()), 0));
        assert_eq!(second.finish(), (Err(Abort::Guard), 0));
        assert_eq!(third.finish(), (Ok(()), 0));
    });
    assert_eq!([0, 1].map(|key| count(&scene, key)), [Some(11), Some(0)]);
    assert_free(&scene.table, "after the chain");
}

/// The last member fails: it publishes the version of its predecessor, with the words.
#[test]
fn a_member_that_fails_publishes_what_its_predecessor_has_left() {
    let scene = pipelined();
    std::thread::scope(|scope| {
        let first = spawn(scope, &scene, Point::Executed, add(0, 1)).reached();
        let guarded = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| {
            table.update(tx, 0, Item::COUNT.sub(100).at_least(0))
        };
        let second = spawn(scope, &scene, Point::Closing, guarded);
        await_taken_over(&scene, 1);
        assert_eq!(first.finish(), (Ok(()), 0));
        let second = second.reached();
        let left = version(&scene, 0);
        assert_eq!(second.finish(), (Err(Abort::Guard), 0));
        assert_eq!(version(&scene, 0), left.unlocked());
    });
    assert_eq!(count(&scene, 0), Some(1));
    assert_free(&scene.table, "after the chain");
}

/// A step panics after another one was evaluated: nothing of the transaction stays.
#[test]
fn a_member_whose_step_panics_has_no_effect() {
    let scene = pipelined();
    std::thread::scope(|scope| {
        let first = spawn(scope, &scene, Point::Executed, add(0, 1)).reached();
        let scene = &scene;
        let panicking = scope.spawn(move || {
            let mut session = scene.db.session().unwrap();
            let run = || {
                session.run_deferred(|tx| {
                    scene.table.update(tx, 0, Item::COUNT.add(5))?;
                    scene.table.defer(tx, 1, Item::COUNT, (), |_, ()| -> () {
                        std::panic::resume_unwind(Box::new(7_u8))
                    })
                })
            };
            catch_unwind(AssertUnwindSafe(run)).is_err()
        });
        await_taken_over(scene, 1);
        assert_eq!(first.finish(), (Ok(()), 0));
        assert!(panicking.join().unwrap());
    });
    assert_eq!([0, 1].map(|key| count(&scene, key)), [Some(1), Some(0)]);
    assert_free(&scene.table, "after the panic");
}

/// A transaction that has read a row takes the row over from one that has executed, and from one
/// that fails.
#[test]
fn a_wild_member_fails_exactly_if_what_it_read_was_replaced() {
    for replaces in [true, false] {
        let scene = pipelined();
        std::thread::scope(|scope| {
            let wild = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| {
                let count = table.read(tx, 0, Item::COUNT)?;
                table.update(tx, 0, Item::COUNT.set(count + 10))
            };
            let wild = spawn(scope, &scene, Point::Unlocked, wild).reached();
            let tame = move |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| {
                table.update(tx, 0, Item::COUNT.add(1).at_least(if replaces { 0 } else { 9 }))
            };
            let point = if replaces { Point::Executed } else { Point::Validated };
            let tame = spawn(scope, &scene, point, tame).reached();
            let beside = std::thread::scope(|inner| {
                let watch = inner.spawn(|| await_taken_over(&scene, 1));
                drop(wild.go);
                watch.join().unwrap();
                wild.thread
            });
            let ended = tame.finish();
            assert_eq!(ended, (if replaces { Ok(()) } else { Err(Abort::Guard) }, 0));
            assert_eq!(beside.join().unwrap(), (Ok(()), u64::from(replaces)));
        });
        assert_eq!(count(&scene, 0), Some(if replaces { 11 } else { 10 }));
        assert_free(&scene.table, "after the wild one");
    }
}

/// T2 follows T1 in row 0, and T3 follows T2 in row 1 and T1 in row 2. T3 must not get row 2 before
/// T1 does.
#[test]
fn a_gate_keeps_three_transactions_in_one_order() {
    let scene = pipelined();
    let mut keys: Vec<u64> = (0..3).collect();
    keys.sort_unstable_by_key(|&key| cell(&scene.table, key).address());
    let (first, second, third) = (keys[0], keys[1], keys[2]);
    let watchdog = Watchdog::new();
    std::thread::scope(|scope| {
        let set = |keys: [u64; 2], digit: i64| {
            move |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| {
                keys.into_iter().try_for_each(move |key| {
                    let step = move |count: &mut i64, ()| *count = *count * 10 + digit;
                    table.defer(tx, key, Item::COUNT, (), step).map(drop)
                })
            }
        };
        let [one, two, three] = [([first, third], 1), ([first, second], 2), ([second, third], 3)]
            .map(|(keys, digit)| {
                let body = set(keys, digit);
                move |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| body(table, tx)
            });
        let one = spawn(scope, &scene, Point::Relaxed, one).reached();
        let two = spawn_free(scope, &scene, two);
        await_taken_over(&scene, 1);
        let three = spawn_free(scope, &scene, three);
        await_taken_over(&scene, 2);
        // The second one waits for the first one, and the third one at the gate of its last row.
        eventually("two wait", || scene.asleep_beside(&[]) == 2);
        if cell(&scene.table, third).cell_word(1).load(Ordering::Relaxed) != 0 {
            // They would wait for one another.
            end_process("the third one has locked what the first one locks before it");
        }
        watchdog.step("the gate opens".to_string());
        assert_eq!(one.finish(), (Ok(()), 0));
        assert_eq!(two.finish(), (Ok(()), 0));
        assert_eq!(three.finish(), (Ok(()), 0));
    });
    let counts = [first, second, third].map(|key| count(&scene, key).unwrap());
    let orders = [[12, 23, 13], [12, 32, 31], [12, 32, 13]];
    assert!(orders.contains(&counts), "no order of the three explains {counts:?}");
    assert_free(&scene.table, "after the three");
}

/// The session of a predecessor runs its next transaction before the successor has looked.
#[test]
fn a_later_transaction_of_the_same_session_is_no_predecessor() {
    let scene = pipelined();
    std::thread::scope(|scope| {
        let (say, reached) = channel();
        let (go, stopped) = channel::<()>();
        let (go_again, stopped_again) = channel::<()>();
        let scene = &scene;
        let session = scope.spawn(move || {
            let mut session = scene.db.session().unwrap();
            let mut passed = 0;
            let hook = move |point| {
                if point == Point::Executed {
                    passed += 1;
                    say.send(passed).unwrap();
                    let _ = if passed == 1 { stopped.recv() } else { stopped_again.recv() };
                }
            };
            with_hook(hook, || {
                for key in [0, 1] {
                    session.run(|tx| scene.table.update(tx, key, Item::COUNT.add(1))).unwrap();
                }
            });
        });
        assert_eq!(receive("the first transaction", &reached), 1);
        let second = add(0, 10);
        let second = spawn(scope, scene, Point::Executed, second).reached();
        drop(go);
        assert_eq!(receive("the next transaction", &reached), 2);
        assert_eq!(second.finish(), (Ok(()), 0));
        drop(go_again);
        session.join().unwrap();
    });
    assert_eq!([0, 1].map(|key| count(&scene, key)), [Some(11), Some(1)]);
    assert_free(&scene.table, "after both");
}

/// Whether the row exists is judged by what the predecessor has done.
#[test]
fn existence_follows_the_chain() {
    let scene = pipelined();
    std::thread::scope(|scope| {
        let delete = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| table.delete(tx, 0);
        let delete = spawn(scope, &scene, Point::Locked, delete).reached();
        // The update is staged while the row is there.
        let update = add(0, 1);
        let update = spawn_free(scope, &scene, update);
        await_taken_over(&scene, 1);
        assert_eq!(delete.finish().0, Ok(()));
        let (ended, conflicts) = update.finish();
        assert_eq!(ended, Err(Abort::NotFound));
        assert!(conflicts > 0);
    });
    assert_eq!(count(&scene, 0), None);
    std::thread::scope(|scope| {
        let insert = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| table.insert(tx, Item::new(0, 3));
        let insert = spawn(scope, &scene, Point::Executed, insert).reached();
        let body = add(0, 4);
        let update = spawn_free(scope, &scene, body);
        await_taken_over(&scene, 2);
        assert_eq!(insert.finish().0, Ok(()));
        assert_eq!(update.finish(), (Ok(()), 0));
    });
    assert_eq!(count(&scene, 0), Some(7));
    assert_free(&scene.table, "after the insert");
}

#[test]
fn a_thousand_updates_staged_in_a_chain_meet_no_conflict() {
    let scene = pipelined();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = scene.db.session().unwrap();
                for _ in 0..250 {
                    session.with(ONCE()).run(|tx| add(0, 1)(&scene.table, tx)).unwrap();
                }
            });
        }
    });
    assert_eq!(count(&scene, 0), Some(1000));
    assert_eq!(scene.db.stats().total_aborts(), 0, "{:?}", scene.db.stats());
    assert_free(&scene.table, "after a thousand");
}

/// Each of four threads moves numbers between rows, in an order of its own, by steps that use one
/// another's results.
#[test]
fn transfers_of_steps_meet_no_conflict() {
    let scene = pipelined();
    std::thread::scope(|scope| {
        for number in 0..4_u64 {
            let scene = &scene;
            scope.spawn(move || {
                let mut session = scene.db.session().unwrap();
                for round in 0..250 {
                    let (from, to) = ((number + round) % 3, (number + 2 * round + 1) % 3);
                    let moved = session.with(ONCE()).run_deferred(|tx| {
                        let taken = scene.table.defer(tx, from, Item::COUNT, (), |count, ()| {
                            *count -= 1;
                            1
                        })?;
                        scene.table.defer(tx, to, Item::COUNT, &taken, |count, taken| {
                            *count += *taken;
                        })
                    });
                    moved.unwrap();
                }
            });
        }
    });
    assert_eq!((0..3).map(|key| count(&scene, key).unwrap()).sum::<i64>(), 0);
    assert_eq!(scene.db.stats().total_aborts(), 0, "{:?}", scene.db.stats());
    assert_free(&scene.table, "after the transfers");
}

#[test]
fn rows_are_locked_by_the_ranks_of_their_tables() {
    let scene = pipelined();
    let options = TableOptions::default().policy(Policy::Pipelined).timestamp_splitting(false);
    let other = scene.db.table_with::<Item>("other", options).unwrap();
    scene.db.run(|tx| other.insert(tx, Item::new(0, 0))).unwrap();
    let is_locked =
        |table: &Table<Item, Occ>| cell(table, 0).cell_word(1).load(Ordering::Relaxed) != 0;
    for first in [true, false] {
        let ranks = if first { [1, 2] } else { [2, 1] };
        std::thread::scope(|scope| {
            scene.table.set_rank(ranks[0]).unwrap();
            other.set_rank(ranks[1]).unwrap();
            let other = &other;
            let both = spawn(scope, &scene, Point::Relaxed, move |table, tx| {
                table.update(tx, 0, Item::COUNT.add(1))?;
                other.update(tx, 0, Item::COUNT.add(1))
            });
            let both = both.reached();
            assert_eq!([is_locked(&scene.table), is_locked(other)], [first, !first]);
            let refused = other.set_rank(7);
            assert!(matches!(refused, Err(Error::NotQuiescent)), "{refused:?}");
            assert_eq!(other.rank(), ranks[1]);
            assert_eq!(both.finish(), (Ok(()), 0));
        });
    }
    assert_free(&other, "after both");
}

/// A transaction takes rows over from a session that commits one transaction after another.
#[test]
fn predecessors_that_are_over_are_looked_at_once() {
    const ROWS: u64 = 120;
    let scene = &pipelined();
    let fill =
        |tx: &Tx<'_, Occ>| (8..ROWS).try_for_each(|key| scene.table.insert(tx, Item::new(key, 0)));
    scene.db.run(fill).unwrap();
    let mut keys: Vec<u64> = (0..ROWS).collect();
    keys.sort_unstable_by_key(|&key| cell(&scene.table, key).address());
    let keys = &keys;
    let ((say, reached), (go, stopped)) = (channel(), channel::<()>());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut session = scene.db.session().unwrap();
            let hook = move |point| {
                if point == Point::Executed {
                    say.send(()).unwrap();
                    let _ = stopped.recv();
                }
            };
            with_hook(hook, || {
                for &key in &keys[1..] {
                    session.run(|tx| add(key, 1)(&scene.table, tx)).unwrap();
                }
            });
        });
        let mut relaxed = 0;
        let hook = move |point| {
            if point == Point::Relaxed {
                if relaxed > 0 {
                    go.send(()).unwrap();
                }
                relaxed += 1;
                if relaxed < ROWS {
                    receive("the next predecessor", &reached);
                }
            }
        };
        let mut session = scene.db.session().unwrap();
        let before = steps();
        let run =
            || session.run(|tx| keys.iter().try_for_each(|&key| add(key, 1)(&scene.table, tx)));
        with_hook(hook, run).unwrap();
        let taken = steps() - before;
        assert!(taken < 20 * ROWS, "{taken} steps");
    });
    assert_eq!(scene.taken_over(), ROWS - 1);
    assert_free(&scene.table, "after all");
}

/// A member that has locked everything, and has no predecessor, keeps no successor from a gate.
#[test]
fn the_head_of_a_chain_opens_all_gates_once_it_has_locked_everything() {
    let scene = pipelined();
    let ranked = |key: u64| cell(&scene.table, key).address();
    let (low, high) = if ranked(0) < ranked(1) { (0, 1) } else { (1, 0) };
    std::thread::scope(|scope| {
        let first = spawn(scope, &scene, Point::Executed, add(low, 1)).reached();
        let second = spawn_free(scope, &scene, move |table, tx| {
            table.update(tx, low, Item::COUNT.add(10))?;
            table.update(tx, high, Item::COUNT.add(10))
        });
        await_taken_over(&scene, 1);
        let is_locked = || cell(&scene.table, high).cell_word(1).load(Ordering::Relaxed) != 0;
        let until = Instant::now() + Duration::from_secs(20);
        while !is_locked() && Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(is_locked(), "the gate opens before the first one is over");
        assert_eq!(first.finish(), (Ok(()), 0));
        assert_eq!(second.finish(), (Ok(()), 0));
    });
    assert_free(&scene.table, "after both");
}
