//! Tests of reads for update: which transactions have to wait for the holder of a row, which do
//! not, and that nothing stays locked.

use super::rows::Item;
use super::threads::spawn;
use super::transactions::{CONFLICT, ONCE, run};
use super::two_sessions::{Scene, read_then_write, scene_of};
use super::waiting::receive;
use crate::engine::Protocol;
use crate::experiments::Factor;
use crate::protocols::{Mvto, Occ, TicToc};
use crate::record::Tid;
use crate::report::Conflict;
use crate::sync::{Ordering, Point, with_hook};
use crate::{Abort, Database, RunOptions, Session, Table, Tx, Whole};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc;

fn scene<P: Protocol>(splitting: bool, sorted_locks: bool) -> Scene<P> {
    let builder = Database::<P>::builder().timestamp_splitting(splitting);
    scene_of(builder.factors(sorted_locks.then_some(Factor::SortedLocks)))
}

/// Returns the keys whose records have a locked cell.
fn locked<P: Protocol>(table: &Table<Item, P>) -> Vec<u64> {
    let core = table.core();
    let mut keys = Vec::new();
    core.index.for_each(&mut |record| {
        let mut cells = core.layout.units().map(|unit| core.layout.at(record, unit));
        if cells
            .any(|at| Tid(at.cell_word(0).load(Ordering::Relaxed)).has(Tid::LOCK | Tid::INSTALL))
        {
            keys.push(record.key_words(1).as_slice()[0]);
        }
    });
    keys.sort_unstable();
    keys
}

/// Runs `body` in one attempt. The attempt must end in a conflict whose cause is `cause`.
fn conflicts<P: Protocol>(
    session: &mut Session<P>,
    cause: Abort,
    body: impl FnMut(&Tx<'_, P>) -> Result<(), Abort>,
) {
    assert_eq!(session.with(ONCE()).run(body), CONFLICT);
    assert_eq!(session.last_conflict().unwrap().cause, cause);
}

/// Calls `act` while a transaction of another thread holds a row.
fn while_held<P: Protocol>(db: &Database<P>, table: &Table<Item, P>, key: u64, act: impl FnOnce()) {
    let (held, done) = (mpsc::channel(), mpsc::channel());
    std::thread::scope(|scope| {
        spawn(scope, move || {
            let result = db.run(|tx| {
                table.read_for_update(tx, &key, Item::COUNT)?;
                held.0.send(()).unwrap();
                receive("the end of the hold", &done.1);
                Ok(())
            });
            assert_eq!(result, Ok(()));
        });
        receive("a hold", &held.1);
        act();
        done.0.send(()).unwrap();
    });
}

fn a_held_row_keeps_writers_out_and_lets_readers_pass_under<P: Protocol>() {
    for (splitting, sorted) in [(true, false), (true, true), (false, false), (false, true)] {
        for writes in [true, false] {
            let Scene { table, mut first, mut second, .. } = scene::<P>(splitting, sorted);
            let result = first.with(ONCE()).run(|tx| {
                assert_eq!(table.read_for_update(tx, 0, Item::COUNT)?, 0);
                assert_eq!(locked(&table), [0]);
                // An attempt fails if it writes the held row, reads it for update, replaces it or
                // deletes it.
                conflicts(&mut second, Abort::Locked, |tx| {
                    table.read_for_update(tx, 0, Item::COUNT).map(drop)
                });
                conflicts(&mut second, Abort::Locked, |tx| {
                    table.read_for_update(tx, 0, Whole).map(drop)
                });
                conflicts(&mut second, Abort::Locked, |tx| table.update(tx, 0, Item::COUNT.add(1)));
                conflicts(&mut second, Abort::Locked, |tx| {
                    table.modify(tx, 0, Item::COUNT, |count| *count += 1)
                });
                conflicts(&mut second, Abort::Locked, |tx| table.put(tx, Item::new(0, 5)));
                conflicts(&mut second, Abort::Locked, |tx| table.delete(tx, 0));
                // An attempt that only reads the held row passes, whatever other rows it writes.
                run(&mut second, |tx| {
                    assert_eq!(table.read(tx, 0, Whole)?, Item::new(0, 0));
                    Ok(())
                });
                run(&mut second, |tx| {
                    table.read(tx, 0, Item::COUNT)?;
                    table.update(tx, 1, Item::COUNT.add(1))
                });
                assert_eq!(
                    second.with(ONCE()).run(|tx| table.insert(tx, Item::new(0, 1))),
                    Err(Abort::Duplicate)
                );
                // A write of another group does not conflict if the table's rows have several
                // units.
                let mut other = |tx: &Tx<'_, P>| table.update(tx, 0, Item::OTHER.add(1));
                if splitting {
                    run(&mut second, &mut other);
                } else {
                    conflicts(&mut second, Abort::Locked, &mut other);
                }
                if writes { table.update(tx, 0, Item::COUNT.add(1)) } else { Ok(()) }
            });
            assert_eq!(result, Ok(()));
            assert_eq!(locked(&table), [0; 0]);
            run(&mut second, |tx| {
                assert_eq!(table.read_for_update(tx, 0, Item::COUNT)?, i64::from(writes));
                table.update(tx, 0, Item::COUNT.add(1))
            });
        }
    }
}

#[test]
fn a_held_row_keeps_writers_out_and_lets_readers_pass() {
    a_held_row_keeps_writers_out_and_lets_readers_pass_under::<Occ>();
    a_held_row_keeps_writers_out_and_lets_readers_pass_under::<TicToc>();
    a_held_row_keeps_writers_out_and_lets_readers_pass_under::<Mvto>();
}

fn a_reader_of_a_held_row_commits_before_the_holder_and_fails_after_under<P: Protocol>() {
    let Scene { table, mut first, mut second, .. } = scene::<P>(true, false);
    // The reader begins while the row is held. The reader ends while the row is held, or when the
    // row is free again.
    for ends_first in [true, false] {
        let reader = second.with(ONCE()).run(|tx| {
            let before = table.read(tx, 0, Item::COUNT)?;
            run(&mut first, |tx| {
                table.read_for_update(tx, 0, Item::COUNT)?;
                if ends_first { Ok(()) } else { table.update(tx, 0, Item::COUNT.set(before + 1)) }
            });
            table.update(tx, 1, Item::COUNT.add(1))
        });
        assert_eq!(reader, if ends_first { Ok(()) } else { CONFLICT });
    }
}

#[test]
fn a_reader_of_a_held_row_commits_before_the_holder_and_fails_after() {
    a_reader_of_a_held_row_commits_before_the_holder_and_fails_after_under::<Occ>();
    a_reader_of_a_held_row_commits_before_the_holder_and_fails_after_under::<TicToc>();
    a_reader_of_a_held_row_commits_before_the_holder_and_fails_after_under::<Mvto>();
}

fn a_read_whose_row_is_locked_meanwhile_is_valid_under<P: Protocol>() {
    let Scene { table, mut first, mut second, .. } = scene::<P>(true, false);
    let (inner, entered) = (table.clone(), Rc::new(Cell::new(0)));
    let seen = entered.clone();
    // After the reader has copied the words, and before it loads the cell again, another session
    // takes the lock and releases it.
    let read = with_hook(
        move |point| {
            if point == Point::Copied {
                seen.set(seen.get() + 1);
                run(&mut second, |tx| inner.read_for_update(tx, 0, Item::COUNT).map(drop));
            }
        },
        || first.with(ONCE()).run(|tx| table.read(tx, 0, Item::COUNT)),
    );
    assert_eq!((read, entered.get()), (Ok(0), 1));
}

#[test]
fn a_read_whose_row_is_locked_meanwhile_is_valid() {
    a_read_whose_row_is_locked_meanwhile_is_valid_under::<Occ>();
    a_read_whose_row_is_locked_meanwhile_is_valid_under::<TicToc>();
    a_read_whose_row_is_locked_meanwhile_is_valid_under::<Mvto>();
}

/// Lets each of two transactions read the row that the other writes. The other transaction begins
/// after the holder has validated.
fn a_holder_that_commits_stops_readers_under<P: Protocol>() {
    for sorted in [false, true] {
        let Scene { db, table, mut first, mut second } = scene::<P>(true, sorted);
        let (inner_table, result) = (table.clone(), Rc::new(Cell::new(Ok(()))));
        let inner_result = result.clone();
        let outer = with_hook(
            move |point| {
                if point == Point::Validated {
                    inner_result
                        .set(second.with(ONCE()).run(|tx| read_then_write(&inner_table, tx, 0, 2)));
                }
            },
            || {
                first.with(ONCE()).run(|tx| {
                    table.read_for_update(tx, 0, Item::COUNT)?;
                    read_then_write(&table, tx, 2, 0)
                })
            },
        );
        assert_eq!((outer, result.get()), (Ok(()), CONFLICT));
        assert_eq!(db.run(|tx| table.read(tx, 2, Item::COUNT)), Ok(0));
    }
}

#[test]
fn a_holder_that_commits_stops_readers() {
    a_holder_that_commits_stops_readers_under::<Occ>();
    a_holder_that_commits_stops_readers_under::<TicToc>();
    a_holder_that_commits_stops_readers_under::<Mvto>();
}

/// Asserts that a commit also validates a read that its transaction made before it took the lock.
fn a_later_lock_does_not_make_an_earlier_stale_read_valid_under<P: Protocol>() {
    let Scene { table, mut first, mut second, .. } = scene::<P>(true, false);
    let result = first.with(ONCE()).run(|tx| {
        let before = table.read(tx, 0, Item::COUNT)?;
        run(&mut second, |tx| table.update(tx, 0, Item::COUNT.add(10)));
        assert_eq!(table.read_for_update(tx, 0, Item::COUNT)?, 10);
        table.update(tx, 0, Item::COUNT.set(before + 1))
    });
    assert_eq!(result, CONFLICT);
    assert_eq!(locked(&table), [0; 0]);
}

#[test]
fn a_later_lock_does_not_make_an_earlier_stale_read_valid() {
    a_later_lock_does_not_make_an_earlier_stale_read_valid_under::<Occ>();
    a_later_lock_does_not_make_an_earlier_stale_read_valid_under::<TicToc>();
}

/// An updater that panics.
#[derive(Debug, Clone, Copy)]
struct Panics;

impl crate::schema::Updater<Item> for Panics {
    type Target = crate::Column<Item, i64>;

    fn target(&self) -> Self::Target {
        Item::COUNT
    }

    fn apply(&self, _: &mut i64) -> Result<(), crate::schema::Refused> {
        panic!("deliberate");
    }
}

/// The parts of the scene that the ends of an attempt use.
struct Parts<'a, P: Protocol> {
    db: &'a Database<P>,
    table: &'a Table<Item, P>,
}

/// A way in which a closure ends.
type End<P> = fn(&Parts<'_, P>, &Tx<'_, P>) -> Result<(), Abort>;

/// Returns ways in which a closure ends, each with its name and its result. Before the end, the
/// attempt has read rows 0 and 1 for update, updated row 0, and read row 3.
fn ends<P: Protocol>() -> [(&'static str, End<P>, Result<(), Abort>); 15] {
    [
        ("commit", |_, _| Ok(()), Ok(())),
        ("commit of both", |scene, tx| scene.table.update(tx, 1, Item::COUNT.add(1)), Ok(())),
        (
            "commit of others first",
            |scene, tx| scene.table.update(tx, 2, Item::COUNT.add(1)),
            Ok(()),
        ),
        ("error", |_, _| Err(Abort::NotFound), Err(Abort::NotFound)),
        ("panic", |_, _| panic!("deliberate"), CONFLICT),
        (
            "a read has changed",
            |scene, _| scene.db.run(|tx| scene.table.update(tx, 3, Item::COUNT.add(1))),
            CONFLICT,
        ),
        (
            "an error after a read has changed",
            |scene, _| {
                scene.db.run(|tx| scene.table.update(tx, 3, Item::COUNT.add(1)))?;
                Err(Abort::NotFound)
            },
            // The attempt has written nothing. So it may be serialized before the change, if its
            // reads are from one moment.
            if P::STRICT && !P::OPAQUE_BY_LOOKS { CONFLICT } else { Err(Abort::NotFound) },
        ),
        (
            "guard",
            |scene, tx| scene.table.update(tx, 1, Item::COUNT.sub(1).at_least(0)),
            Err(Abort::Guard),
        ),
        (
            "guard that was seen",
            |scene, tx| {
                scene.table.update(tx, 1, Item::COUNT.sub(1).at_least(0))?;
                assert_eq!(scene.table.read(tx, 1, Item::COUNT), Err(Abort::Guard));
                Ok(())
            },
            Err(Abort::Guard),
        ),
        ("panic of an updater", |scene, tx| scene.table.update_with(tx, 1, Panics), CONFLICT),
        (
            "doomed, and ignored",
            |scene, tx| {
                let mut other = scene.db.session().unwrap();
                let _ = other.with(ONCE()).run(|inner| {
                    scene.table.read_for_update(inner, &2, Item::COUNT)?;
                    assert_eq!(scene.table.read_for_update(tx, 2, Item::COUNT), Err(Abort::Locked));
                    Ok(())
                });
                Ok(())
            },
            CONFLICT,
        ),
        (
            "locked out in phase 1, with a held row before and after",
            |scene, tx| {
                scene.table.update(tx, 2, Item::COUNT.add(1))?;
                scene.table.update(tx, 1, Item::COUNT.add(1))?;
                scene.table.delete(tx, 0)?;
                scene.db.run(|tx| scene.table.delete(tx, 2))
            },
            CONFLICT,
        ),
        (
            "yielded at commit",
            |scene, _| {
                scene.db.inner.engine.token.try_take(999);
                Ok(())
            },
            CONFLICT,
        ),
        (
            "yielded at a read for update",
            |scene, tx| {
                scene.db.inner.engine.token.try_take(999);
                assert_eq!(scene.table.read_for_update(tx, 2, Item::COUNT), Err(Abort::Yielded));
                // The attempt may still read the rows that it holds.
                Ok(())
            },
            CONFLICT,
        ),
        ("delete", |scene, tx| scene.table.delete(tx, 1), Ok(())),
    ]
}

fn every_end_of_an_attempt_releases_its_held_rows_under<P: Protocol>() {
    for (name, end, expected) in ends::<P>() {
        for (splitting, sorted) in [(true, false), (true, true), (false, false)] {
            let Scene { db, table, mut first, mut second } = scene::<P>(splitting, sorted);
            let result = catch_unwind(AssertUnwindSafe(|| {
                first.with(ONCE()).run(|tx| {
                    table.read(tx, 3, Item::COUNT)?;
                    table.read_for_update(tx, 0, Whole)?;
                    table.read_for_update(tx, 1, Item::COUNT)?;
                    table.update(tx, 0, Item::COUNT.add(1))?;
                    assert_eq!(locked(&table), [0, 1], "{name}");
                    end(&Parts { db: &db, table: &table }, tx)
                })
            }));
            match result {
                Ok(result) => assert_eq!(result, expected, "{name}"),
                Err(_) => assert!(name.starts_with("panic"), "{name}"),
            }
            assert_eq!(locked(&table), [0; 0], "{name}");
            db.inner.engine.token.release(999);
            run(&mut second, |tx| {
                table.put(tx, Item::new(0, 3))?;
                table.put(tx, Item::new(1, 3))
            });
            run(&mut first, |tx| table.read_for_update(tx, 1, Whole).map(drop));
        }
    }
}

#[test]
fn every_end_of_an_attempt_releases_its_held_rows() {
    every_end_of_an_attempt_releases_its_held_rows_under::<Occ>();
    every_end_of_an_attempt_releases_its_held_rows_under::<TicToc>();
}

fn an_absent_row_is_observed_and_not_locked_under<P: Protocol>() {
    let Scene { table, mut first, mut second, .. } = scene::<P>(true, false);
    run(&mut first, |tx| table.delete(tx, 1));
    // One key has a record, and the other has none.
    for key in [1, 70] {
        let result = first.with(ONCE()).run(|tx| {
            assert_eq!(table.get_for_update(tx, &key, Item::COUNT)?, None);
            assert_eq!(locked(&table), [0; 0]);
            run(&mut second, |tx| {
                table.update(tx, 0, Item::COUNT.add(1))?;
                table.insert(tx, Item::new(key, 1))
            });
            table.update(tx, 0, Item::COUNT.add(1))
        });
        assert_eq!(result, CONFLICT);
    }
}

#[test]
fn an_absent_row_is_observed_and_not_locked() {
    an_absent_row_is_observed_and_not_locked_under::<Occ>();
    an_absent_row_is_observed_and_not_locked_under::<TicToc>();
    an_absent_row_is_observed_and_not_locked_under::<Mvto>();
}

/// Lets the garbage collector examine a queued record that holds a row again and is held by a read
/// for update.
fn a_held_row_in_a_burial_queue_is_not_buried_under<P: Protocol>() {
    let Scene { db, table, mut first, mut second } = scene::<P>(true, false);
    run(&mut second, |tx| table.delete(tx, 0));
    run(&mut second, |tx| table.insert(tx, Item::new(0, 5)));
    assert_eq!(db.memory().garbage, 1);
    let pass = |second: &mut Session<P>| {
        for _ in 0..4 {
            db.inner.engine.epochs.pass();
            // This transaction collects garbage.
            run(second, |tx| table.update(tx, 1, Item::COUNT.add(1)));
        }
    };
    for delete in [false, true] {
        run(&mut first, |tx| {
            assert_eq!(table.read_for_update(tx, 0, Whole)?.count, 5);
            pass(&mut second);
            assert_eq!(db.memory().garbage, 1, "it could not be looked at");
            if delete { table.delete(tx, 0) } else { Ok(()) }
        });
        if !delete {
            // After the release, the record leaves the queue. The delete queues it again.
            pass(&mut second);
            assert_eq!(db.memory().garbage, 0);
            run(&mut second, |tx| table.delete(tx, 0));
            run(&mut second, |tx| table.insert(tx, Item::new(0, 5)));
        }
    }
    pass(&mut second);
    pass(&mut first);
    assert_eq!(db.memory().garbage, 0);
    let mut records = 0;
    table.core().index.for_each(&mut |_| records += 1);
    assert_eq!(records, 3);
}

#[test]
fn a_held_row_in_a_burial_queue_is_not_buried() {
    a_held_row_in_a_burial_queue_is_not_buried_under::<Occ>();
    a_held_row_in_a_burial_queue_is_not_buried_under::<TicToc>();
}

/// Asserts that the holder of the token commits, though other transactions hold the rows that it
/// wants, one after another.
fn holders_of_rows_yield_to_the_holder_of_the_token_under<P: Protocol>() {
    let Scene { db, table, mut first, mut second } = scene::<P>(true, false);
    let id = first.number();
    let outer = second.with(ONCE()).run(|tx| {
        table.read_for_update(tx, 0, Item::COUNT)?;
        // The first session takes the token, as a session does that has failed too often because of
        // this transaction.
        db.inner.engine.token.try_take(id);
        conflicts(&mut first, Abort::Locked, |tx| table.update(tx, 0, Item::COUNT.add(1)));
        table.update(tx, 0, Item::COUNT.add(10))
    });
    assert_eq!(outer, CONFLICT);
    assert_eq!(second.last_conflict().unwrap().cause, Abort::Yielded);
    run(&mut first, |tx| table.update(tx, 0, Item::COUNT.add(1)));
    db.inner.engine.token.release(id);
    run(&mut second, |tx| {
        assert_eq!(table.read_for_update(tx, 0, Item::COUNT)?, 1);
        Ok(())
    });
}

#[test]
fn holders_of_rows_yield_to_the_holder_of_the_token() {
    holders_of_rows_yield_to_the_holder_of_the_token_under::<Occ>();
    holders_of_rows_yield_to_the_holder_of_the_token_under::<TicToc>();
    holders_of_rows_yield_to_the_holder_of_the_token_under::<Mvto>();
}

protocol_tests!(overlapping: an_attempt_first_locks_the_row_on_which_the_last_one_failed);
fn an_attempt_first_locks_the_row_on_which_the_last_one_failed<P: Protocol>() {
    let Scene { db, table, mut first, .. } = scene::<P>(true, false);
    let delete = |_: &Conflict| db.run(|tx| table.delete(tx, 2)).unwrap();
    let mut attempts = 0;
    let result = first.with(RunOptions::new().on_conflict(&delete)).run(|tx| {
        attempts += 1;
        if attempts == 2 {
            assert_eq!(
                locked(&table),
                [0, 1],
                "what the attempt before held and waited for, and is there"
            );
            return Ok(());
        }
        table.read_for_update(tx, 2, Item::COUNT)?;
        table.read_for_update(tx, 0, Item::COUNT)?;
        while_held(&db, &table, 1, || {
            assert_eq!(table.read_for_update(tx, 1, Item::COUNT), Err(Abort::Locked));
        });
        Ok(())
    });
    assert_eq!((result, attempts), (Ok(()), 2));
    assert_eq!(locked(&table), [0; 0]);
    // The next transaction of the session begins without locks.
    run(&mut first, |_| {
        assert_eq!(locked(&table), [0; 0]);
        Ok(())
    });
}

protocol_tests!(overlapping: a_nested_transaction_passes_a_lock_taken_ahead_by_the_third_attempt);
fn a_nested_transaction_passes_a_lock_taken_ahead_by_the_third_attempt<P: Protocol>() {
    let Scene { db, table, mut first, mut second } = scene::<P>(true, false);
    let mut attempts = Vec::new();
    let result = first.run(|tx| {
        // In its second attempt, this transaction holds row 0 from the beginning, before its
        // closure has read the row.
        let nested = second.run(|inner| {
            if attempts.len() == 1 {
                table.read_for_update(inner, &1, Item::COUNT)?;
            }
            table.update(inner, &0, Item::COUNT.add(1))
        });
        attempts.push(nested);
        if attempts.len() == 2 {
            return Ok(());
        }
        table.read_for_update(tx, 0, Item::COUNT)?;
        if attempts.len() == 1 {
            while_held(&db, &table, 1, || {
                assert_eq!(table.read_for_update(tx, 1, Item::COUNT), Err(Abort::Locked));
            });
        }
        Ok(())
    });
    assert_eq!(result, Ok(()));
    assert_eq!(
        attempts,
        [Ok(()), Err(Abort::Nested), Ok(())],
        "the third attempt locks nothing ahead"
    );
    assert_eq!(locked(&table), [0; 0]);
}

protocol_tests!(overlapping: a_nested_wait_passes_a_lock_taken_ahead_by_the_third_attempt);
fn a_nested_wait_passes_a_lock_taken_ahead_by_the_third_attempt<P: Protocol>() {
    let Scene { db, table, mut first, mut second } = scene::<P>(true, false);
    let mut waits = Vec::new();
    let result = first.run(|tx| {
        // In its second attempt, this transaction holds row 0 from the beginning.
        let nested = second
            .with(RunOptions::new().attempts_max(1))
            .run(|inner| inner.check(table.read(inner, 1, Item::COUNT)? == 7));
        waits.push(nested);
        if waits.len() == 1 {
            while_held(&db, &table, 0, || {
                assert_eq!(table.read_for_update(tx, 0, Item::COUNT), Err(Abort::Locked));
            });
        }
        Ok(())
    });
    assert_eq!(result, Ok(()));
    let sleeps = Err(Abort::AttemptsExhausted);
    assert_eq!(waits, [sleeps, Err(Abort::Nested), sleeps], "the third attempt locks nothing");
}

protocol_tests!(overlapping: a_lock_taken_ahead_concerns_one_database);
fn a_lock_taken_ahead_concerns_one_database<P: Protocol>() {
    let Scene { db, table, mut first, mut second } = scene::<P>(true, false);
    // The sessions of the other database have the same numbers.
    let other = scene::<P>(true, false);
    let (mut other_first, mut attempts, mut others) = (other.first, 0, None);
    let result = first.run(|tx| {
        attempts += 1;
        if attempts == 2 {
            let refused = second.run(|inner| table.update(inner, &0, Item::COUNT.add(1)));
            assert_eq!(refused, Err(Abort::Nested));
            let mut other_attempts = 0;
            others = Some(other_first.with(RunOptions::new().attempts_max(2)).run(|tx| {
                other_attempts += 1;
                if other_attempts == 2 {
                    assert_eq!(locked(&other.table), [1]);
                    return Ok(());
                }
                while_held(&other.db, &other.table, 1, || {
                    assert_eq!(other.table.read_for_update(tx, 1, Item::COUNT), Err(Abort::Locked));
                });
                Ok(())
            }));
        } else if attempts == 1 {
            while_held(&db, &table, 0, || {
                assert_eq!(table.read_for_update(tx, 0, Item::COUNT), Err(Abort::Locked));
            });
        }
        Ok(())
    });
    assert_eq!((result, attempts), (Ok(()), 3));
    assert_eq!(others, Some(Ok(())), "it has refused nothing");
}

/// A thread that waits for a commit must sleep in the queue in which the commit wakes sleepers.
#[test]
fn a_read_for_update_waits_for_the_pending_version_not_the_lock() {
    let Scene { db, table, mut first, mut second } = scene::<Mvto>(false, false);
    let core = table.core();
    let mut cell = 0;
    core.index.for_each(&mut |record| {
        if record.key_words(1).as_slice() == [0] {
            cell = core.layout.first_of(record).address();
        }
    });
    let (linked, go) = (mpsc::channel(), mpsc::channel());
    std::thread::scope(|scope| {
        let table = &table;
        spawn(scope, move || {
            let stop = move |point| {
                if point == Point::Locked {
                    linked.0.send(()).unwrap();
                    receive("the end of the wait", &go.1);
                }
            };
            with_hook(stop, || run(&mut first, |tx| table.update(tx, 0, Item::COUNT.set(1))));
        });
        receive("a pending version", &linked.1);
        spawn(scope, move || {
            let read = second.run(|tx| table.read_for_update(tx, 0, Item::COUNT));
            assert_eq!(read, Ok(1));
        });
        let mut places = Vec::new();
        super::waiting::eventually("a sleeper", || {
            places = db.inner.engine.parking.waited_for();
            !places.is_empty()
        });
        go.0.send(()).unwrap();
        assert!(!places.contains(&cell), "no lock is going to be released there");
    });
}

/// Some waits last until no earlier commit is in progress. A commit that has failed must not
/// prolong such a wait.
#[test]
fn a_commit_that_has_failed_on_a_lock_is_over_before_it_sleeps() {
    let Scene { db, table, mut first, .. } = scene::<Mvto>(false, false);
    let (other, met) = (db.clone(), Rc::new(Cell::new(false)));
    let is_met = met.clone();
    let look_on = move |point| {
        if point == Point::GivenUp {
            is_met.set(true);
            with_hook(
                |point| assert_ne!(point, Point::Awaiting, "it goes on"),
                || drop(other.snapshot()),
            );
        }
    };
    while_held(&db, &table, 0, || {
        with_hook(look_on, || {
            conflicts(&mut first, Abort::Locked, |tx| {
                table.update(tx, 1, Item::COUNT.add(1))?;
                table.update(tx, 0, Item::COUNT.add(1))
            });
        });
    });
    assert!(met.get());
}

/// An insert waits for the lock of a row that was inserted meanwhile. When the insert is handed the
/// lock, it fails. The insert must keep the extensions of the row's timestamp that readers have
/// made until then.
#[test]
fn an_insert_releases_a_useless_lock_with_the_extensions_of_readers() {
    let Scene { db, table, mut first, mut second } = scene::<TicToc>(false, false);
    for _ in 0..9 {
        run(&mut first, |tx| table.update(tx, 1, Item::COUNT.add(1)));
    }
    let rts_of = |table: &Table<Item, TicToc>, key: u64| {
        let core = table.core();
        let mut rts = 0;
        core.index.for_each(&mut |record| {
            if record.key_words(1).as_slice() == [key] {
                rts = Tid(core.layout.first_of(record).cell_word(0).load(Ordering::Relaxed))
                    .version();
            }
        });
        rts
    };
    // Each round hands the lock to the waiter, unless the waiter was not scheduled in time. So the
    // test repeats rounds.
    let mut read = 0;
    let mut keys = 10..10_000;
    while read == 0 {
        let key = keys.next().expect("a waiter is handed its lock sooner");
        let (extended, rows, mut reader) =
            (Rc::new(Cell::new(0)), table.clone(), db.session().unwrap());
        let extended_by_reader = extended.clone();
        let (begin, held) = (mpsc::channel(), mpsc::channel());
        let (db, table, second) = (&db, &table, &mut second);
        std::thread::scope(|scope| {
            spawn(scope, move || {
                receive("the row", &begin.1);
                let result = db.run(|tx| {
                    table.read_for_update(tx, &key, Item::COUNT)?;
                    held.0.send(()).unwrap();
                    super::waiting::eventually("a sleeper", || {
                        db.inner.engine.parking.has_sleepers()
                    });
                    // The pause is longer than the time after which a waiter is handed its lock.
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    Ok(())
                });
                assert_eq!(result, Ok(()));
            });
            let read_late = move |point| {
                if point == Point::HandedOver {
                    run(&mut reader, |tx| {
                        rows.read(tx, &key, Item::COUNT)?;
                        rows.update(tx, 1, Item::COUNT.add(1))
                    });
                    extended_by_reader.set(rts_of(&rows, key));
                }
            };
            let result = with_hook(read_late, || {
                first.with(ONCE()).run(|tx| {
                    table.insert(tx, Item::new(key, 0))?;
                    run(second, |tx| table.insert(tx, Item::new(key, 0)));
                    begin.0.send(()).unwrap();
                    receive("a hold", &held.1);
                    Ok(())
                })
            });
            assert_eq!(result, CONFLICT);
        });
        read = extended.get();
        assert!(rts_of(table, key) >= read, "what was read at {read} may be replaced before that");
    }
    assert_eq!(locked(&table), [0; 0]);
}
