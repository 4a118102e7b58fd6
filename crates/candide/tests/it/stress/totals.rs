//! Tests of sums, mutual exclusion and keys, with more threads than cores.

use crate::common::{Item, Random, builder, database_with, spawn};
use candide::{Abort, Protocol, TableOptions, Whole};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const THREADS: u64 = 8;

/// Runs `body` on [`THREADS`] threads at once.
fn on_threads(body: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let body = &body;
            spawn(scope, move || body(thread));
        }
    });
}

protocol_tests!(concurrent: transfers_conserve_money_and_never_overdraw);
fn transfers_conserve_money_and_never_overdraw<P: Protocol>() {
    const ACCOUNTS: u64 = 10;
    for splitting in [true, false] {
        let db = builder::<P>().timestamp_splitting(splitting).build().unwrap();
        let table = db.table::<Item>("accounts").unwrap();
        db.run(|tx| (0..ACCOUNTS).try_for_each(|id| table.insert(tx, Item::new(id, 100)))).unwrap();
        on_threads(|thread| {
            let mut session = db.session().unwrap();
            let mut random = Random::seeded(thread);
            for round in 0..600 {
                let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
                let amount = 1 + random.below(30) as i64;
                if round % 5 == 0 {
                    let sum = session.run(|tx| {
                        let mut sum = 0;
                        for id in 0..ACCOUNTS {
                            let count = table.read(tx, &id, Item::COUNT)?;
                            assert!(count >= 0);
                            sum += count;
                        }
                        Ok(sum)
                    });
                    assert_eq!(sum, Ok(100 * ACCOUNTS as i64));
                } else if round % 5 == 1 {
                    // This transaction reads the amounts and writes them back.
                    let moved = session.run(|tx| {
                        if table.read(tx, &from, Item::COUNT)? >= amount {
                            table.modify(tx, &from, Item::COUNT, |count| *count -= amount)?;
                            table.modify(tx, &to, Item::COUNT, |count| *count += amount)?;
                        }
                        Ok(())
                    });
                    assert_eq!(moved, Ok(()));
                } else {
                    let moved = session.run(|tx| {
                        table.update(tx, &from, Item::COUNT.sub(amount).at_least(0))?;
                        table.update(tx, &to, Item::COUNT.add(amount))?;
                        Ok(())
                    });
                    assert!(matches!(moved, Ok(()) | Err(Abort::Guard)), "{moved:?}");
                }
            }
        });
        let mut sum = 0;
        table.for_each_quiescent(|row| sum += row.count).unwrap();
        assert_eq!(sum, 100 * ACCOUNTS as i64);
    }
}

protocol_tests!(concurrent: no_increment_is_lost);
fn no_increment_is_lost<P: Protocol>() {
    let (db, table) = database_with::<Item, P>("counters");
    db.run(|tx| (0..4).try_for_each(|id| table.insert(tx, Item::new(id, 0)))).unwrap();
    on_threads(|thread| {
        let mut session = db.session().unwrap();
        for round in 0..500u64 {
            let keys = [round % 4, (round + thread) % 4];
            session
                .run(|tx| {
                    let rows = table.find_many(tx, &keys)?;
                    rows[0].update(Item::COUNT.add(1))?;
                    rows[1].modify(Item::COUNT, |count| *count += 1)?;
                    // The update is of the other group of the same rows. The transactions above do
                    // not use that group.
                    rows[0].update((Item::OTHER.add(1), Item::SMALL.set(3)))?;
                    Ok(())
                })
                .unwrap();
        }
    });
    let (mut counts, mut others) = (0, 0);
    table
        .for_each_quiescent(|row| {
            counts += row.count;
            others += row.other - 100;
            assert_eq!(row.small, 3);
        })
        .unwrap();
    assert_eq!((counts as u64, others), (2 * 500 * THREADS, 500 * THREADS));
}

protocol_tests!(concurrent: a_row_that_moves_between_tables_is_always_in_exactly_one);
fn a_row_that_moves_between_tables_is_always_in_exactly_one<P: Protocol>() {
    const KEYS: u64 = 64;
    let db = builder::<P>().build().unwrap();
    // A row is always in exactly one of the two tables.
    let tables = [db.table::<Item>("left").unwrap(), db.table::<Item>("right").unwrap()];
    db.run(|tx| (0..KEYS).try_for_each(|id| tables[0].insert(tx, Item::new(id, 0)))).unwrap();
    on_threads(|thread| {
        let mut session = db.session().unwrap();
        let mut random = Random::seeded(thread);
        for _ in 0..1_500 {
            let key = random.below(KEYS);
            if random.below(3) == 0 {
                let found = session.run(|tx| {
                    Ok((tables[0].get(tx, &key, Whole)?, tables[1].get(tx, &key, Item::OTHER)?))
                });
                let (left, right) = found.unwrap();
                assert_eq!(
                    usize::from(left.is_some()) + usize::from(right.is_some()),
                    1,
                    "key {key}"
                );
            } else {
                session
                    .run(|tx| {
                        let side = usize::from(tables[0].get(tx, &key, Item::COUNT)?.is_none());
                        let count = tables[side].read(tx, &key, Item::COUNT)?;
                        tables[side].delete(tx, &key)?;
                        tables[1 - side].insert(tx, Item::new(key, count + 1))
                    })
                    .unwrap();
            }
        }
    });
    let mut seen = vec![0; KEYS as usize];
    for table in &tables {
        table.for_each_quiescent(|row| seen[row.id as usize] += 1).unwrap();
    }
    assert!(seen.iter().all(|&count| count == 1), "{seen:?}");
}

protocol_tests!(concurrent: a_growing_index_loses_and_repeats_no_row);
fn a_growing_index_loses_and_repeats_no_row<P: Protocol>() {
    const PER_THREAD: u64 = 4_000;
    let db = builder::<P>().build().unwrap();
    let table = db.table_with::<Item>("growing", TableOptions::default()).unwrap();
    let inserted: Vec<AtomicU64> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    on_threads(|thread| {
        let mut session = db.session().unwrap();
        let mut random = Random::seeded(thread);
        for number in 0..PER_THREAD {
            let key = number * THREADS + thread;
            session.run(|tx| table.insert(tx, Item::new(key, key as i64))).unwrap();
            inserted[thread as usize].store(number + 1, Ordering::Release);
            // Rows inserted by another thread are found while the index grows.
            let other = random.below(THREADS);
            let there = inserted[other as usize].load(Ordering::Acquire);
            if there > 0 {
                let key = random.below(there) * THREADS + other;
                assert_eq!(session.run(|tx| table.read(tx, &key, Item::COUNT)), Ok(key as i64));
            }
            let missing = key + PER_THREAD * THREADS;
            assert_eq!(session.run(|tx| table.get(tx, &missing, Item::COUNT)), Ok(None::<i64>));
        }
    });
    let mut count = 0;
    let rows =
        table.for_each_quiescent(|row| count += u64::from(row.count as u64 == row.id)).unwrap();
    assert_eq!((rows as u64, count), (PER_THREAD * THREADS, PER_THREAD * THREADS));
}

protocol_tests!(concurrent: each_key_is_inserted_by_exactly_one_thread);
fn each_key_is_inserted_by_exactly_one_thread<P: Protocol>() {
    let (db, table) = database_with::<Item, P>("unique");
    let wins = AtomicU64::new(0);
    let all_here = Barrier::new(THREADS as usize);
    on_threads(|thread| {
        let mut session = db.session().unwrap();
        for key in 0..300 {
            all_here.wait();
            match session.run(|tx| table.insert(tx, Item::new(key, thread as i64))) {
                Ok(()) => {
                    wins.fetch_add(1, Ordering::Relaxed);
                }
                Err(abort) => assert_eq!(abort, Abort::Duplicate),
            }
        }
    });
    assert_eq!(wins.into_inner(), 300);
}

protocol_tests!(concurrent: a_long_transaction_commits_among_short_ones);
fn a_long_transaction_commits_among_short_ones<P: Protocol>() {
    const ROWS: u64 = 2_000;
    let (db, table) = database_with::<Item, P>("rows");
    for id in 0..ROWS {
        db.run(|tx| table.insert(tx, Item::new(id, 0))).unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (db, table, done) = (&db, &table, &done);
            spawn(scope, move || {
                let mut session = db.session().unwrap();
                let mut random = Random::seeded(thread);
                while !done.load(Ordering::Relaxed) {
                    let key = random.below(ROWS);
                    session
                        .run(|tx| table.modify(tx, &key, Item::COUNT, |count| *count += 1))
                        .unwrap();
                }
            });
        }
        let mut session = db.session().unwrap();
        for _ in 0..3 {
            let mut attempts = 0;
            session
                .run(|tx| {
                    attempts = tx.attempt_number();
                    let mut sum = 0;
                    for key in 0..ROWS {
                        sum += table.read(tx, &key, Item::COUNT)?;
                    }
                    table.update(tx, 0, Item::OTHER.set(sum as u64))
                })
                .unwrap();
            // After 32 attempts the transaction asks for the token. It may need a few more
            // attempts, for commits in progress and if it gets the token late.
            assert!(attempts < 200, "{attempts} attempts");
        }
        done.store(true, Ordering::Relaxed);
    });
}
