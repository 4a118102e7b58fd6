//! Sessions beside chains: readers, transactions that hold rows, waits for changes, the token.

use super::*;
use crate::locks::Lock;
use crate::objects::{Boxed, TBox, TQueue};
use crate::sync::{AtomicBool, with_patience};
use std::sync::Mutex;

/// Four threads never leave the row free by themselves. A reader gets through all the same, and so
/// does a read for update.
#[test]
fn a_chain_ends_when_another_wants_the_row() {
    let scene = pipelined();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = scene.db.session().unwrap();
                while !done.load(Ordering::Relaxed) {
                    session.run(|tx| add(0, 1)(&scene.table, tx)).unwrap();
                }
            });
        }
        let mut session = scene.db.session().unwrap();
        for _ in 0..50 {
            session.run(|tx| scene.table.read(tx, 0, Item::COUNT)).unwrap();
            session.run(|tx| scene.table.read_for_update(tx, 0, Item::COUNT)).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// A reader sleeps until the chain ends. The next writer waits for that end, too.
#[test]
fn a_chain_whose_end_is_wanted_takes_no_further_member() {
    let scene = pipelined();
    let place = cell(&scene.table, 0).address();
    std::thread::scope(|scope| {
        let first = spawn(scope, &scene, Point::Executed, add(0, 1)).reached();
        let reader = scope.spawn(|| {
            let mut session = scene.db.session().unwrap();
            let read = || session.run(|tx| scene.table.read(tx, 0, Item::COUNT));
            with_patience(read).unwrap()
        });
        eventually("the reader sleeps", || scene.sleeps_at(place));
        let second = spawn_free(scope, &scene, add(0, 10));
        let waits = || scene.sleeps_at(place + 8);
        eventually("the writer waits", || waits() || scene.taken_over() > 0);
        assert_eq!(scene.taken_over(), 0);
        assert_eq!(first.finish(), (Ok(()), 0));
        let read = reader.join().unwrap();
        assert!([1, 11].contains(&read), "{read}");
        assert_eq!(second.finish(), (Ok(()), 0));
    });
    assert_free(&scene.table, "after the reader");
}

/// A transaction that holds a row by a read for update joins no chain, since a member of the chain
/// may be waiting for that row.
#[test]
fn a_transaction_that_holds_a_row_takes_no_lock_over() {
    let scene = pipelined();
    std::thread::scope(|scope| {
        let first = spawn(scope, &scene, Point::Executed, add(0, 1)).reached();
        let holder = spawn_free(scope, &scene, |table, tx| {
            table.read_for_update(tx, 1, Item::COUNT)?;
            table.update(tx, 0, Item::COUNT.add(10))
        });
        let has_failed = || scene.db.stats().total_aborts() > 0;
        eventually("the holder gives up", || has_failed() || scene.taken_over() > 0);
        assert_eq!(scene.taken_over(), 0);
        assert_eq!(first.finish(), (Ok(()), 0));
        assert_eq!(holder.finish().0, Ok(()));
    });
    assert_eq!(count(&scene, 0), Some(11));
    assert_free(&scene.table, "after the holder");
}

/// Two sessions want the end of a chain. One of them gives up.
#[test]
fn a_wish_that_is_given_up_is_expressed_again_by_another_session() {
    let scene = pipelined();
    let place = cell(&scene.table, 0).address();
    std::thread::scope(|scope| {
        let first = spawn(scope, &scene, Point::Executed, add(0, 1)).reached();
        let holder = scope.spawn(|| {
            let mut session = scene.db.session().unwrap();
            let hold = || session.run(|tx| scene.table.read_for_update(tx, 0, Item::COUNT));
            with_patience(hold).unwrap()
        });
        eventually("the holder sleeps", || scene.sleeps_at(place));
        let mut reader = scene.db.session().unwrap();
        let read = reader.with(ONCE()).run(|tx| scene.table.read(tx, 0, Item::COUNT));
        assert_eq!(read, Err(Abort::AttemptsExhausted));
        // The reader's wish is no longer in the row's word.
        let (row, until) = (cell(&scene.table, 0), Instant::now() + Duration::from_secs(20));
        let is_wanted = || Lock::of(&row).word().is_wanted();
        while !is_wanted() && Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(is_wanted(), "the holder does not express its wish again");
        let second = spawn_free(scope, &scene, add(0, 10));
        let waits = || scene.sleeps_at(place + 8);
        eventually("the writer waits", || waits() || scene.taken_over() > 0);
        assert_eq!(scene.taken_over(), 0);
        assert_eq!(first.finish(), (Ok(()), 0));
        let held = holder.join().unwrap();
        assert!([1, 11].contains(&held), "{held}");
        assert_eq!(second.finish().0, Ok(()));
    });
    assert_eq!(count(&scene, 0), Some(11));
    assert_free(&scene.table, "after the holder");
}

/// A transaction that waits for a change of a row sleeps until the chain of the row has ended, and
/// the chain ends for it.
#[test]
fn a_retry_wants_the_end_of_the_chain_of_its_row() {
    let scene = &pipelined();
    let place = cell(&scene.table, 0).address();
    let ((say, reached), (go, stopped)) = (channel(), channel::<()>());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            let mut session = scene.db.session().unwrap();
            let mut is_first = true;
            let run = || {
                session.run(|tx| {
                    let count = scene.table.read(tx, 0, Item::COUNT)?;
                    if std::mem::take(&mut is_first) {
                        say.send(()).unwrap();
                        let _ = stopped.recv();
                    }
                    if count == 0 { tx.retry() } else { Ok(count) }
                })
            };
            with_patience(run).unwrap()
        });
        receive("the read", &reached);
        let first = spawn(scope, scene, Point::Executed, add(0, 1)).reached();
        drop(go);
        eventually("the waiter sleeps", || scene.sleeps_at(place));
        let second = spawn_free(scope, scene, add(0, 10));
        let waits = || scene.sleeps_at(place + 8);
        eventually("the writer waits", || waits() || scene.taken_over() > 0);
        assert_eq!(scene.taken_over(), 0);
        assert_eq!(first.finish(), (Ok(()), 0));
        let read = waiter.join().unwrap();
        assert!([1, 11].contains(&read), "{read}");
        assert_eq!(second.finish().0, Ok(()));
    });
    assert_free(&scene.table, "after the waiter");
}

#[test]
fn commits_that_are_not_tame_are_counted_by_their_reasons() {
    let scene = pipelined();
    let builder = Database::<Occ>::builder().policy(Policy::Pipelined).manual_epochs(1);
    let objects = builder.build().unwrap();
    let boxed = TBox::<Boxed<u64>, Occ>::new(&objects, Boxed(1)).unwrap();
    let queue = TQueue::<u64, Occ>::new(&objects).unwrap();
    let counts = |db: &Database<Occ>, run: &dyn Fn() -> Result<(), Abort>| {
        let before = db.stats().locks;
        run().unwrap();
        let locks = db.stats().locks.since(before);
        let wild = [locks.wild_reads, locks.wild_keys, locks.wild_others];
        (wild, [locks.unchained_holds, locks.unchained_late, locks.unchained_others])
    };
    let on_rows = |before: &dyn Fn(&Tx<'_, Occ>) -> Result<(), Abort>| {
        let run = |tx: &Tx<'_, Occ>| {
            before(tx)?;
            scene.table.update(tx, 0, Item::COUNT.add(1))
        };
        counts(&scene.db, &|| scene.db.run(run))
    };
    let table = &scene.table;
    assert_eq!(on_rows(&|_| Ok(())), ([0, 0, 0], [0, 0, 0]));
    assert_eq!(on_rows(&|tx| table.read(tx, 1, Item::COUNT).map(drop)), ([1, 0, 0], [0, 0, 0]));
    assert_eq!(on_rows(&|tx| table.get(tx, 99, Item::COUNT).map(drop)), ([0, 1, 0], [0, 0, 0]));
    let hold = |tx: &Tx<'_, Occ>| table.read_for_update(tx, 1, Item::COUNT).map(drop);
    assert_eq!(on_rows(&hold), ([0, 0, 0], [1, 0, 0]));
    let set = || objects.run(|tx| boxed.set(tx, 2));
    assert_eq!(counts(&objects, &set), ([0, 0, 1], [0, 0, 0]));
    let push = || objects.run(|tx| queue.push(tx, 3));
    assert_eq!(counts(&objects, &push), ([0, 0, 0], [0, 1, 0]));
}

/// A transaction on a thread of its own, whose closure stops once between its two operations, in
/// its first attempt.
struct Halfway<'s> {
    thread: ScopedJoinHandle<'s, Result<(), Abort>>,
    reached: Receiver<()>,
    go: Sender<()>,
}

fn halfway<'s>(
    scope: &'s Scope<'s, '_>,
    scene: &'s Scene,
    first: impl Fn(&Table<Item, Occ>, &Tx<'_, Occ>) -> Result<(), Abort> + Send + 's,
    second: impl Fn(&Table<Item, Occ>, &Tx<'_, Occ>) -> Result<(), Abort> + Send + 's,
) -> Halfway<'s> {
    let ((say, reached), (go, stopped)) = (channel(), channel::<()>());
    let thread = scope.spawn(move || {
        let mut session = scene.db.session().unwrap();
        let run = || {
            session.run(|tx| {
                first(&scene.table, tx)?;
                if tx.attempt_number() == 1 {
                    say.send(()).unwrap();
                    let _ = stopped.recv();
                }
                second(&scene.table, tx)
            })
        };
        with_patience(run)
    });
    Halfway { thread, reached, go }
}

/// Row 6 exists exactly if row 7 has the count 1. A commit in a chain changes both, while another
/// transaction asks for row 6 and then reads row 7.
#[test]
fn what_a_closure_learns_of_a_row_in_a_chain_goes_with_what_it_reads() {
    let scene = pipelined();
    scene.db.run(|tx| scene.table.update(tx, 7, Item::COUNT.set(1))).unwrap();
    let (seen, was_there) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let place = cell(&scene.table, 6).address();
    std::thread::scope(|scope| {
        let ends = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| {
            table.delete(tx, 6)?;
            table.update(tx, 7, Item::COUNT.set(0))
        };
        let ends = spawn(scope, &scene, Point::Evaluated, ends).reached();
        let asks = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| {
            was_there.store(table.delete_if_present(tx, 6)?, Ordering::Relaxed);
            Ok(())
        };
        let reads = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| {
            let flag = table.read(tx, 7, Item::COUNT)?;
            seen.lock().unwrap().push((was_there.load(Ordering::Relaxed), flag));
            Ok(())
        };
        let other = halfway(scope, &scene, asks, reads);
        let mut has_come = false;
        eventually("the answer, or a wait for it", || {
            has_come = has_come || other.reached.try_recv().is_ok();
            has_come || scene.sleeps_at(place)
        });
        assert_eq!(ends.finish(), (Ok(()), 0));
        if !has_come {
            receive("the answer", &other.reached);
        }
        drop(other.go);
        assert_eq!(other.thread.join().unwrap(), Ok(()));
    });
    let seen = seen.into_inner().unwrap();
    assert!(!seen.contains(&(true, 0)), "a view of two moments: {seen:?}");
}

/// The update observes nothing, so a commit to its row does not disturb the reads of the closure.
#[test]
fn a_staged_update_of_a_row_in_a_chain_disturbs_no_read() {
    let scene = pipelined();
    scene.db.inner.engine.epochs.pass();
    let reads = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let reads_another = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| {
            let read = table.read(tx, 5, Item::COUNT);
            reads.lock().unwrap().push(read);
            read.map(drop)
        };
        let other = halfway(scope, &scene, add(0, 10), reads_another);
        receive("the staged update", &other.reached);
        let first = spawn(scope, &scene, Point::Executed, add(0, 1)).reached();
        scene.db.run(|tx| scene.table.update(tx, 5, Item::COUNT.add(1))).unwrap();
        drop(other.go);
        eventually("the read", || !reads.lock().unwrap().is_empty());
        assert_eq!(first.finish(), (Ok(()), 0));
        assert_eq!(other.thread.join().unwrap(), Ok(()));
    });
    assert_eq!(reads.into_inner().unwrap(), [Ok(1)]);
    assert_eq!(count(&scene, 0), Some(11));
}

/// That a permanent row is there, which is all that the closure has learned, stays true.
#[test]
fn an_error_of_a_closure_waits_for_no_chain() {
    let scene = super::frozen::frozen();
    std::thread::scope(|scope| {
        let first = spawn(scope, &scene, Point::Executed, add(0, 1)).reached();
        let mut session = scene.db.session().unwrap();
        let ended = session.with(ONCE()).run(|tx| {
            scene.table.update(tx, 0, Item::COUNT.set(5))?;
            Err::<(), _>(Abort::Duplicate)
        });
        assert_eq!(ended, Err(Abort::Duplicate));
        assert_eq!(first.finish(), (Ok(()), 0));
    });
    assert_eq!(count(&scene, 0), Some(1));
}

#[test]
fn an_insert_waits_for_the_token_and_goes_on() {
    let scene = pipelined();
    let engine = &scene.db.inner.engine;
    engine.token.try_take(999);
    std::thread::scope(|scope| {
        let insert = scope.spawn(|| {
            let mut session = scene.db.session().unwrap();
            let insert = |tx: &Tx<'_, Occ>| scene.table.insert(tx, Item::new(20, 3));
            with_patience(|| session.with(ONCE()).run(insert))
        });
        let waits = || scene.sleeps_at(engine.token.address());
        eventually("the insert waits", || waits() || insert.is_finished());
        engine.token.release(999);
        assert_eq!(insert.join().unwrap(), Ok(()));
    });
    assert_eq!(count(&scene, 20), Some(3));
}

/// Readers and writers of other rows meet no conflict, wherever the thread is held. Nothing is lost
/// when it goes on.
#[test]
fn a_thread_that_is_held_in_a_pipeline_delays_only_users_of_its_rows() {
    use Point::{Closing, Evaluated, Executed, InOrder, Locked, Relaxed};
    for point in [Locked, Relaxed, Evaluated, Executed, InOrder, Closing] {
        let scene = pipelined();
        std::thread::scope(|scope| {
            let held = spawn(scope, &scene, point, add(0, 1)).reached();
            let mut session = scene.db.session().unwrap();
            for key in 1..8 {
                let table = &scene.table;
                let tame = |tx: &Tx<'_, Occ>| table.update(tx, key, Item::COUNT.add(1));
                assert_eq!(session.with(ONCE()).run(tame), Ok(()), "{point:?}");
                let wild = |tx: &Tx<'_, Occ>| {
                    let count = table.read(tx, key, Item::COUNT)?;
                    table.update(tx, key, Item::COUNT.set(count + 1))
                };
                assert_eq!(session.with(ONCE()).run(wild), Ok(()), "{point:?}");
            }
            let read = |tx: &Tx<'_, Occ>| scene.table.read(tx, 0, Item::COUNT);
            let read = session.with(ONCE()).run(read);
            assert_eq!(read, Err(Abort::AttemptsExhausted), "{point:?}");
            let successor = spawn_free(scope, &scene, add(0, 10));
            eventually("the successor waits", || scene.asleep_beside(&[]) == 1);
            assert!(!successor.is_finished(), "{point:?}");
            assert_eq!(held.finish(), (Ok(()), 0), "{point:?}");
            assert_eq!(successor.finish(), (Ok(()), 0), "{point:?}");
        });
        let counts = [0, 1, 7].map(|key| count(&scene, key));
        assert_eq!(counts, [Some(11), Some(2), Some(2)], "{point:?}");
        assert_free(&scene.table, "after the thread that was held");
    }
}
