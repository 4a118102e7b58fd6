//! Permanent rows and frozen columns.

use super::*;
use crate::Whole;

/// A database with rows 0..8 in a permanent table of two groups, of which `other` is frozen.
pub(super) fn frozen() -> Scene {
    let scene = split(TableOptions::default().permanent());
    scene.table.freeze(Item::OTHER).unwrap();
    scene
}

/// A database with rows 0..8 in a table of two groups.
pub(super) fn split(options: TableOptions) -> Scene {
    let builder = Database::<Occ>::builder().policy(Policy::Pipelined).timestamp_splitting(true);
    let db = builder.manual_epochs(1).build().unwrap();
    let table = db.table_with::<Item>("rows", options).unwrap();
    db.run(|tx| (0..8).try_for_each(|id| table.insert(tx, Item::new(id, 0)))).unwrap();
    Scene { db, table }
}

fn wild(scene: &Scene) -> u64 {
    let locks = scene.db.stats().locks;
    locks.wild_reads + locks.wild_keys + locks.wild_others
}

/// Reads the frozen group of row 1, and adds it to row 0.
fn add_frozen(table: &Table<Item, Occ>, tx: &Tx<'_, Occ>) -> Result<(), Abort> {
    let other = table.read(tx, 1, Item::OTHER)?;
    table.update(tx, 0, Item::COUNT.add(other as i64))
}

#[test]
fn permanent_rows_are_not_deleted() {
    let scene = frozen();
    let table = &scene.table;
    let refused = scene.db.run(|tx| {
        assert_eq!(table.delete(tx, 0), Err(Abort::Permanent));
        assert_eq!(table.delete_if_present(tx, 0), Err(Abort::Permanent));
        assert_eq!(table.delete(tx, 99), Err(Abort::NotFound));
        table.insert(tx, Item::new(8, 1))?;
        assert_eq!(table.delete(tx, 8), Err(Abort::Permanent));
        table.update(tx, 8, Item::COUNT.add(1))
    });
    assert_eq!(refused, Ok(()));
    assert_eq!([0, 8].map(|key| count(&scene, key)), [Some(0), Some(2)]);
    let same = scene.db.table_with::<Item>("rows", TableOptions::default().permanent());
    assert!(same.is_ok());
    scene.db.table::<Item>("other").unwrap();
    let other = scene.db.table_with::<Item>("other", TableOptions::default().permanent());
    assert!(matches!(other, Err(Error::TableOption { .. })), "{other:?}");
    let other = scene.db.table::<Item>("other").unwrap().freeze(Item::OTHER);
    assert!(matches!(other, Err(Error::TableOption { .. })), "{other:?}");
    assert_free(&scene.table, "after the refusals");
}

#[test]
fn frozen_columns_are_not_written() {
    let scene = frozen();
    let table = &scene.table;
    let refused = scene.db.run(|tx| {
        let frozen = Err(Abort::Frozen);
        assert_eq!(table.update(tx, 0, Item::OTHER.set(1)), frozen);
        assert_eq!(table.update(tx, 0, (Item::COUNT.add(1), Item::OTHER.add(1))), frozen);
        assert_eq!(table.modify(tx, 0, Item::OTHER, |other| *other = 1), frozen);
        assert_eq!(table.modify(tx, 0, Whole, |item| item.count = 1), frozen);
        assert_eq!(table.put(tx, Item::new(0, 1)), frozen);
        assert_eq!(table.put(tx, Item::new(9, 1)), frozen);
        let step = table.defer(tx, 0, Item::OTHER, (), |other, ()| *other = 1);
        assert_eq!(step.map(drop), frozen);
        let row = Item::new(7, 1);
        assert_eq!(table.upsert(tx, row, Item::OTHER.set(1)), Err(Abort::Frozen));
        table.insert(tx, Item { other: 5, ..Item::new(8, 1) })?;
        table.update(tx, 8, Item::COUNT.add(1))
    });
    assert_eq!(refused, Ok(()));
    let rows = [0, 8].map(|key| scene.db.run(|tx| table.read(tx, key, Whole)).unwrap());
    assert_eq!(rows, [Item::new(0, 0), Item { other: 5, ..Item::new(8, 2) }]);
    assert_eq!(count(&scene, 9), None);
    let options = || TableOptions::default().frozen();
    let partly = scene.db.table_with::<Item>("rows", options());
    assert!(matches!(partly, Err(Error::TableOption { .. })), "one group is frozen: {partly:?}");
    let whole = scene.db.table_with::<Item>("whole", options()).unwrap();
    assert!(scene.db.table_with::<Item>("whole", options()).is_ok());
    let refused = scene.db.run(|tx| {
        whole.insert(tx, Item::new(0, 3))?;
        assert_eq!(whole.update(tx, 0, Item::COUNT.add(1)), Err(Abort::Frozen));
        whole.read(tx, 0, Item::COUNT)
    });
    assert_eq!(refused, Ok(3));
}

#[test]
fn a_read_of_frozen_columns_leaves_a_transaction_tame() {
    let scene = frozen();
    let before = wild(&scene);
    scene.db.run(|tx| add_frozen(&scene.table, tx)).unwrap();
    assert_eq!(wild(&scene), before);
    // The table that is frozen from the beginning, and a row that was inserted since.
    let options = TableOptions::default().frozen();
    let whole = scene.db.table_with::<Item>("whole", options).unwrap();
    scene.db.run(|tx| whole.insert(tx, Item::new(0, 3))).unwrap();
    let read = |tx: &Tx<'_, Occ>| {
        let count = whole.read(tx, 0, Item::COUNT)?;
        scene.table.update(tx, 0, Item::COUNT.add(count))
    };
    scene.db.run(read).unwrap();
    assert_eq!(wild(&scene), before);
    scene.table.thaw(Item::OTHER).unwrap();
    scene.db.run(|tx| add_frozen(&scene.table, tx)).unwrap();
    assert_eq!(wild(&scene), before + 1);
    assert_eq!(count(&scene, 0), Some(203));
    scene.db.run(|tx| scene.table.update(tx, 1, Item::OTHER.set(1))).unwrap();
    let read = scene.db.run(|tx| scene.table.read(tx, 1, Item::OTHER));
    assert_eq!(read, Ok(1));
    assert_free(&scene.table, "after the reads");
}

/// A transaction reads x, then a frozen row that was inserted together with a change of x.
#[test]
fn a_frozen_row_belongs_to_the_moment_of_the_other_reads() {
    let scene = frozen();
    let (mut session, mut other) = (scene.db.session().unwrap(), scene.db.session().unwrap());
    let table = &scene.table;
    let seen = session.run(|tx| {
        let x = table.read(tx, 0, Item::COUNT)?;
        if tx.attempt_number() == 1 {
            let write = |tx: &Tx<'_, Occ>| {
                table.update(tx, 0, Item::COUNT.set(1))?;
                table.insert(tx, Item::new(8, 0))
            };
            other.run(write).unwrap();
        }
        let row = table.get(tx, 8, Item::OTHER)?;
        Ok((x, row.is_some(), tx.attempt_number()))
    });
    assert_eq!(seen, Ok((1, true, 2)));
}

/// A row is read only when the commit that inserts it has its version.
#[test]
fn a_frozen_row_is_not_read_before_its_insert_has_committed() {
    let scene = frozen();
    let table = &scene.table;
    std::thread::scope(|scope| {
        let insert = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| table.insert(tx, Item::new(8, 0));
        let insert = spawn(scope, &scene, Point::Executed, insert).reached();
        let mut session = scene.db.session().unwrap();
        let read = session.with(ONCE()).run(|tx| table.get(tx, 8, Item::OTHER));
        assert_eq!(read, Err(Abort::AttemptsExhausted));
        assert_eq!(insert.finish(), (Ok(()), 0));
        assert_eq!(session.run(|tx| table.get(tx, 8, Item::OTHER)), Ok(Some(100)));
    });
}

/// A later table of the same row type has the number of a dropped one.
#[test]
fn a_handle_of_a_dropped_table_freezes_and_thaws_no_other_table() {
    let options = || TableOptions::default().permanent();
    let builder = Database::<Occ>::builder().policy(Policy::Pipelined).timestamp_splitting(true);
    let db = builder.build().unwrap();
    let former = db.table_with::<Item>("rows", options()).unwrap();
    db.drop_table("rows").unwrap();
    let mut again = None;
    eventually("a table has the number of the dropped one", || {
        let table = db.table_with::<Item>("rows", options()).unwrap();
        if table.core().number != former.core().number {
            db.drop_table("rows").unwrap();
            return false;
        }
        again = Some(table);
        true
    });
    let scene = Scene { db, table: again.unwrap() };
    scene.db.run(|tx| (0..2).try_for_each(|id| scene.table.insert(tx, Item::new(id, 0)))).unwrap();
    scene.table.freeze(Item::OTHER).unwrap();
    assert!(matches!(former.freeze(Item::COUNT), Err(Error::Transaction(Abort::TableDropped))));
    let before = wild(&scene);
    let add_count = |tx: &Tx<'_, Occ>| {
        let count = scene.table.read(tx, 1, Item::COUNT)?;
        scene.table.update(tx, 0, Item::COUNT.add(count))
    };
    scene.db.run(add_count).unwrap();
    assert_eq!(wild(&scene), before + 1, "the columns are not frozen in this table");
    assert!(matches!(former.thaw(Item::OTHER), Err(Error::Transaction(Abort::TableDropped))));
    scene.db.run(|tx| add_frozen(&scene.table, tx)).unwrap();
    assert_eq!(wild(&scene), before + 1, "the other ones are frozen still");
}

/// Columns can be changed again only when no transaction runs that has read them unobserved.
#[test]
fn columns_are_thawed_when_their_readers_have_ended() {
    let scene = frozen();
    std::thread::scope(|scope| {
        let reader = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| add_frozen(table, tx);
        let reader = spawn(scope, &scene, Point::Unlocked, reader).reached();
        let (say, waits) = channel();
        let thaw = scope.spawn({
            let say = say.clone();
            let table = &scene.table;
            move || {
                let hook = move |point| {
                    if point == Point::Awaiting {
                        let _ = say.send(());
                    }
                };
                with_hook(hook, || table.thaw(Item::OTHER))
            }
        });
        eventually("the thaw waits", || thaw.is_finished() || waits.try_recv().is_ok());
        assert!(!thaw.is_finished(), "a transaction has read the columns");
        let mut session = scene.db.session().unwrap();
        let change = session.run(|tx| scene.table.update(tx, 1, Item::OTHER.set(1)));
        assert_eq!(change, Err(Abort::Frozen));
        assert_eq!(reader.finish(), (Ok(()), 0));
        assert!(thaw.join().unwrap().is_ok());
        let change = session.run(|tx| scene.table.update(tx, 1, Item::OTHER.set(1)));
        assert_eq!(change, Ok(()));
    });
    assert_eq!(count(&scene, 0), Some(100));
}

/// Columns are frozen when no transaction runs that may change them.
#[test]
fn columns_are_frozen_when_their_writers_have_ended() {
    let scene = frozen();
    std::thread::scope(|scope| {
        let writer = spawn(scope, &scene, Point::Unlocked, add(0, 1)).reached();
        let (say, waits) = channel();
        let freeze = scope.spawn({
            let table = &scene.table;
            move || {
                let hook = move |point| {
                    if point == Point::Awaiting {
                        let _ = say.send(());
                    }
                };
                with_hook(hook, || table.freeze(Item::COUNT))
            }
        });
        eventually("the freeze waits", || freeze.is_finished() || waits.try_recv().is_ok());
        assert!(!freeze.is_finished(), "a transaction has staged a change");
        assert_eq!(writer.finish(), (Ok(()), 0));
        assert!(freeze.join().unwrap().is_ok());
    });
    let change = scene.db.run(|tx| scene.table.update(tx, 0, Item::COUNT.add(1)));
    assert_eq!(change, Err(Abort::Frozen));
    assert_eq!(count(&scene, 0), Some(1));
}

/// A range of a frozen number is true for ever. It loosens no other observation.
#[test]
fn a_range_of_a_frozen_number_loosens_no_other_read() {
    let scene = frozen();
    let (mut session, mut other) = (scene.db.session().unwrap(), scene.db.session().unwrap());
    let table = &scene.table;
    let alone = session.run(|tx| table.is_within(tx, 1, Item::OTHER, 50..=200));
    assert_eq!(alone, Ok(true));
    let counted = session.run(|tx| {
        let count = table.read(tx, 0, Item::COUNT)?;
        assert!(table.is_within(tx, 1, Item::OTHER, 50..=200)?);
        if tx.attempt_number() == 1 {
            other.run(|tx| table.update(tx, 0, Item::COUNT.set(60))).unwrap();
        }
        table.update(tx, 0, Item::COUNT.set(count + 1))
    });
    assert_eq!(counted, Ok(()));
    assert_eq!(count(&scene, 0), Some(61), "an update is lost");
}

/// A session that has read a frozen column, and waits, runs again when the column is thawed.
#[test]
fn a_thaw_wakes_the_sessions_that_wait() {
    let scene = frozen();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut session = scene.db.session().unwrap();
            session.run(|tx| {
                let other = scene.table.read(tx, 1, Item::OTHER)?;
                scene.table.read(tx, 0, Item::COUNT)?;
                if other == 100 { tx.retry() } else { Ok(other) }
            })
        });
        let watchers = &scene.db.inner.engine.watchers;
        eventually("it sleeps", || waiter.is_finished() || watchers.count() == 1);
        scene.table.thaw(Item::OTHER).unwrap();
        scene.db.run(|tx| scene.table.update(tx, 1, Item::OTHER.set(1))).unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(1));
    });
}

/// More threads than cores run tame transactions on a few rows of a permanent table: each attempt
/// ends in a commit or in an outcome.
#[test]
fn tame_transactions_on_permanent_rows_meet_no_conflict() {
    const ROUNDS: u64 = 100;
    let threads = 2 * std::thread::available_parallelism().map_or(2, usize::from) as u64 + 3;
    let scene = frozen();
    let before = scene.db.stats();
    let ends: Vec<(u64, u64, i64)> = std::thread::scope(|scope| {
        let run = |number: u64| {
            let scene = &scene;
            move || {
                let mut session = scene.db.session().unwrap();
                let (mut commits, mut outcomes, mut sum) = (0, 0, 0);
                for round in 0..ROUNDS {
                    let (from, to) = ((number + round) % 3, (number + 2 * round + 1) % 3);
                    let ended = session.run_deferred(|tx| {
                        let most = scene.table.read(tx, from, Item::OTHER)? as i64;
                        let step = move |count: &mut i64, ()| {
                            *count += most;
                            *count
                        };
                        let now = scene.table.defer(tx, from, Item::COUNT, (), step)?;
                        scene.table.update(tx, to, Item::SMALL.set(round as u8))?;
                        // One in eight fails.
                        tx.require(&now.map(move |now| now / most % 8 != 0))
                    });
                    match ended {
                        Ok(()) => (commits, sum) = (commits + 1, sum + 100),
                        Err(Abort::Guard) => {
                            outcomes += 1;
                            let skip = |tx: &Tx<'_, Occ>| {
                                scene.table.update(tx, from, Item::COUNT.add(100))
                            };
                            session.run(skip).unwrap();
                            (commits, sum) = (commits + 1, sum + 100);
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
                (commits, outcomes, sum)
            }
        };
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(run(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let stats = scene.db.stats();
    let commits: u64 = ends.iter().map(|end| end.0).sum();
    assert!(ends.iter().map(|end| end.1).sum::<u64>() > 0, "some end in an outcome");
    assert_eq!(stats.total_aborts() - before.total_aborts(), 0, "{stats:?}");
    assert_eq!(stats.commits - before.commits, commits);
    assert_eq!(wild(&scene), 0);
    let sum: i64 = (0..3).map(|key| count(&scene, key).unwrap()).sum();
    assert_eq!(sum, ends.iter().map(|end| end.2).sum::<i64>());
    assert_free(&scene.table, "after all");
}
