//! Tests of rows that transactions lock when they read them.

use crate::common::{FEW_TIMES, Item, builder, database_with, eventually_with, spawn};
use candide::experiments::Factor;
use candide::{Abort, Protocol, Tx, Whole};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

protocol_tests!(all: a_read_for_update_sees_what_a_read_sees);
fn a_read_for_update_sees_what_a_read_sees<P: Protocol>() {
    for (splitting, sorted) in [(true, false), (false, true)] {
        let builder = builder::<P>()
            .timestamp_splitting(splitting)
            .factors(sorted.then_some(Factor::SortedLocks));
        let db = builder.build().unwrap();
        let table = db.table::<Item>("rows").unwrap();
        let rows = |tx: &Tx<'_, P>| (0..4).try_for_each(|id| table.put(tx, Item::new(id, 0)));
        db.run(|tx| rows(tx)).unwrap();
        let run = |body: &mut dyn FnMut(&Tx<'_, P>) -> Result<(), Abort>| {
            db.with(FEW_TIMES()).run(body).unwrap()
        };
        let count = |key: u64| db.run(|tx| table.get(tx, &key, Item::COUNT)).unwrap();
        // The row is read for update twice, and in parts.
        run(&mut |tx| {
            assert_eq!(table.read_for_update(tx, 0, Item::COUNT)?, 0);
            assert_eq!(table.read_for_update(tx, 0, Whole)?, Item::new(0, 0));
            assert_eq!(table.find(tx, 0)?.get_for_update(Item::COUNT)?, Some(0));
            table.modify(tx, 0, Item::COUNT, |count| *count += 1)?;
            assert_eq!(table.read_for_update(tx, 0, Item::COUNT)?, 1);
            table.update(tx, 0, Item::OTHER.add(1))
        });
        assert_eq!(count(0), Some(1));
        // The row is read for update after the transaction's own updates of a part or of the whole
        // row, and before and after its own delete.
        run(&mut |tx| {
            table.update(tx, 0, Item::COUNT.add(1))?;
            assert_eq!(table.read_for_update(tx, 0, Item::COUNT)?, 2);
            table.update(tx, 1, Item::OTHER.set(7))?;
            assert_eq!(table.read_for_update(tx, 1, Whole)?, Item { other: 7, ..Item::new(1, 0) });
            table.read_for_update(tx, 2, Item::OTHER)?;
            table.delete(tx, 2)?;
            assert_eq!(table.get_for_update(tx, 2, Whole)?, None);
            assert_eq!(table.read_for_update(tx, 2, Item::COUNT), Err(Abort::NotFound));
            table.put(tx, Item::new(3, 4))?;
            assert_eq!(table.read_for_update(tx, 3, Item::COUNT)?, 4);
            Ok(())
        });
        assert_eq!([count(0), count(1), count(2), count(3)], [Some(2), Some(0), None, Some(4)]);
        // The row is deleted and inserted again. It is read for update before the delete, and
        // between the two.
        run(&mut |tx| {
            table.read_for_update(tx, 3, Item::COUNT)?;
            table.delete(tx, 3)?;
            assert_eq!(table.get_for_update(tx, 3, Item::COUNT)?, None);
            table.insert(tx, Item::new(3, 5))?;
            assert_eq!(table.read_for_update(tx, 3, Item::COUNT)?, 5);
            Ok(())
        });
        assert_eq!(count(3), Some(5));
        // A key without a record, whose row the transaction itself inserts; and a key with the
        // record of a deleted row.
        run(&mut |tx| {
            assert_eq!(table.get_for_update(tx, 50, Item::COUNT)?, None);
            let row = table.find(tx, 50)?;
            assert_eq!(row.read_for_update(Item::COUNT), Err(Abort::NotFound));
            table.insert(tx, Item::new(50, 1))?;
            assert_eq!(row.read_for_update(Whole)?, Item::new(50, 1));
            table.update(tx, 50, Item::COUNT.add(1))?;
            assert_eq!(table.read_for_update(tx, 50, Item::COUNT)?, 2);
            assert_eq!(table.get_for_update(tx, 2, Item::COUNT)?, None);
            table.insert(tx, Item::new(2, 9))
        });
        assert_eq!([count(50), count(2)], [Some(2), Some(9)]);
        // The transaction inserts and deletes the row. So the row never existed for other
        // transactions.
        run(&mut |tx| {
            table.insert(tx, Item::new(60, 1))?;
            assert_eq!(table.read_for_update(tx, 60, Item::COUNT)?, 1);
            table.delete(tx, 60)?;
            assert_eq!(table.get_for_update(tx, 60, Item::COUNT)?, None);
            Ok(())
        });
        assert_eq!(count(60), None);
    }
}

protocol_tests!(concurrent: rows_locked_in_opposite_orders_do_not_deadlock);
fn rows_locked_in_opposite_orders_do_not_deadlock<P: Protocol>() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 200;
    let (db, table) = database_with::<Item, P>("rows");
    db.run(|tx| (0..3).try_for_each(|id| table.insert(tx, Item::new(id, 0)))).unwrap();
    let rounds = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (db, table, rounds) = (db.clone(), table.clone(), rounds.clone());
            std::thread::spawn(move || {
                let mut session = db.session().unwrap();
                // The threads lock pairs of rows in opposite orders, and three rows in a circle.
                let keys = [[0, 1], [1, 0], [1, 2], [2, 0]][thread as usize];
                for _ in 0..ROUNDS {
                    session
                        .run(|tx| {
                            let one = table.read_for_update(tx, &keys[0], Item::COUNT)?;
                            std::thread::yield_now();
                            let two = table.read_for_update(tx, &keys[1], Item::COUNT)?;
                            table.update(tx, &keys[0], Item::COUNT.set(one + 1))?;
                            table.update(tx, &keys[1], Item::COUNT.set(two + 1))
                        })
                        .unwrap();
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let over = || rounds.load(Ordering::Relaxed);
    eventually_with("all rounds are over", over, || over() == THREADS * ROUNDS);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let mut sum = 0;
    table.for_each_quiescent(|row| sum += row.count as u64).unwrap();
    assert_eq!(sum, 2 * THREADS * ROUNDS);
    eprintln!("{}: {} attempts met conflicts", P::NAME, db.stats().total_aborts());
}

protocol_tests!(concurrent: no_increment_of_a_locked_counter_is_lost);
fn no_increment_of_a_locked_counter_is_lost<P: Protocol>() {
    const THREADS: u64 = 6;
    const ROUNDS: u64 = 400;
    let mut aborts = [0, 0];
    for (locking, aborts) in [false, true].into_iter().zip(&mut aborts) {
        let (db, table) = database_with::<Item, P>("rows");
        db.run(|tx| table.insert(tx, Item::new(0, 0))).unwrap();
        let others = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (db, table, others) = (&db, &table, &others);
                spawn(scope, move || {
                    let mut session = db.session().unwrap();
                    for round in 0..ROUNDS {
                        // Some transactions write without reading.
                        let blind = (round + thread) % 8 == 0;
                        session
                            .run(|tx| {
                                if blind {
                                    return table.update(tx, 0, Item::COUNT.add(1));
                                }
                                let row = table.find(tx, 0)?;
                                let count = match locking {
                                    true => row.read_for_update(Item::COUNT)?,
                                    false => row.read(Item::COUNT)?,
                                };
                                // The transaction computes. Sometimes this takes so long that the
                                // thread loses the processor.
                                if round % 4 == 0 {
                                    std::thread::yield_now();
                                }
                                row.update(Item::COUNT.set(count + 1))
                            })
                            .unwrap();
                        if round % 16 == 0 {
                            session.run(|tx| table.read(tx, 0, Whole)).unwrap();
                            others.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let count = db.run(|tx| table.read(tx, 0, Item::COUNT));
        assert_eq!(count, Ok((THREADS * ROUNDS) as i64));
        *aborts = db.stats().total_aborts();
    }
    let [plain, locking] = aborts;
    eprintln!(
        "{}: {plain} attempts met conflicts by plain reads, {locking} by reads for update",
        P::NAME
    );
}
