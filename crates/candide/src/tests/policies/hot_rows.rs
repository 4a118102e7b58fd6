//! Tests of many threads on few rows, and of a long transaction beside short ones.

use super::super::rows::Item;
use super::{Scene, assert_free, scene, with_locks};
use crate::policy::{MoccOptions, Policies, Policy};
use crate::sync::size::is_short;
use crate::sync::{AtomicBool, AtomicU64, Ordering, Random, with_patience};
use crate::tests::hostile::Watchdog;
use crate::{Database, LoadOptions, RunOptions, Table};

/// The number of hot rows.
const HOT: u64 = 4;

/// Lets threads move counts between few rows, in transactions that lock in all ways.
fn move_counts(policies: Policies, threads: u64, rounds: u64) {
    let name = policies.name();
    let Scene { db, table, .. } = scene(policies);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                let (mut session, mut random) = (db.session().unwrap(), Random::seeded(thread));
                for round in 0..rounds {
                    let (from, to) = (random.below(HOT), random.below(HOT));
                    let moved = session.run(|tx| {
                        let count = match (round + thread) % 3 {
                            0 => table.read(tx, &from, Item::COUNT)?,
                            1 => table.read_for_update(tx, &from, Item::COUNT)?,
                            _ => {
                                table.update(tx, &from, Item::COUNT.sub(1))?;
                                return table.update(tx, &to, Item::COUNT.add(1));
                            }
                        };
                        table.update(tx, &from, Item::COUNT.set(count - 1))?;
                        table.modify(tx, &to, Item::COUNT, |count| *count += 1)
                    });
                    assert_eq!(moved, Ok(()), "{name}");
                }
            });
        }
    });
    let mut sum = 0;
    table.for_each_quiescent(|row| sum += row.count).unwrap();
    assert_eq!(sum, 0, "{name}");
    assert_free(&table, name);
    assert_eq!(db.stats().commits, threads * rounds + 1, "{name}");
}

#[test]
fn many_threads_on_few_rows_lose_nothing_and_leave_no_lock() {
    let watchdog = Watchdog::new();
    let hot = [false, true].map(|queues| MoccOptions::new().threshold(0).queue_locks(queues));
    let in_queues = MoccOptions::new().queue_locks(true);
    let of = |(policy, options)| Policies::of(policy).mocc(options);
    let learning = [(Policy::Mocc, hot[0]), (Policy::Mocc, hot[1]), (Policy::Hybrid, in_queues)];
    for policies in with_locks().map(Policies::of).chain(learning.map(of)) {
        let crowds: &[(u64, u64)] = if is_short() { &[(16, 30)] } else { &[(16, 300), (64, 60)] };
        for &(threads, rounds) in crowds {
            watchdog.step(format!("{threads} threads under {policies:?}"));
            move_counts(policies.clone(), threads, rounds);
        }
    }
}

/// The number of rows that the long transaction uses: it reads every second row and updates the
/// others.
const LONG: u64 = 200;
const ATTEMPTS_MAX: u32 = 64;
const SHORT_THREADS: u64 = 4;

#[test]
fn a_long_transaction_commits_beside_many_short_ones() {
    let watchdog = Watchdog::new();
    for policy in [Policy::WaitDie, Policy::Swiss] {
        watchdog.step(policy.name());
        let db = Database::builder().policy(policy).build().unwrap();
        let table: Table<Item> = db.table("rows").unwrap();
        table.load((0..LONG).map(|id| Item::new(id, 0)), LoadOptions::new()).unwrap();
        let (done, updates) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..SHORT_THREADS {
                let (db, table, done, updates) = (&db, &table, &done, &updates);
                let work = move || {
                    let (mut session, mut random) = (db.session().unwrap(), Random::seeded(thread));
                    while !done.load(Ordering::Relaxed) {
                        let (one, other) = (random.below(LONG), random.below(LONG));
                        let updated = session.run(|tx| {
                            table.read(tx, &other, Item::COUNT)?;
                            table.update(tx, &one, Item::COUNT.add(1))
                        });
                        assert_eq!(updated, Ok(()), "{policy}");
                        updates.fetch_add(1, Ordering::Relaxed);
                    }
                };
                // The writers yield to the token without a limit, since the time depends on the
                // machine.
                scope.spawn(move || with_patience(work));
            }
            let mut session = db.session().unwrap();
            let mut ends = Vec::new();
            for _ in 0..if is_short() { 3 } else { 20 } {
                let options = RunOptions::new().attempts_max(ATTEMPTS_MAX);
                let before = updates.load(Ordering::Relaxed);
                let mut attempts = 0;
                let ended = session.with(options).run(|tx| {
                    attempts = tx.attempt_number();
                    for id in 0..LONG {
                        match id % 2 {
                            0 => table.read(tx, &id, Item::COUNT).map(drop)?,
                            _ => table.update(tx, &id, Item::OTHER.add(1))?,
                        }
                        // The other threads run, however few cores there are.
                        if id % 20 == 0 {
                            std::thread::yield_now();
                        }
                    }
                    Ok(())
                });
                ends.push((ended, attempts, updates.load(Ordering::Relaxed) - before));
            }
            done.store(true, Ordering::Relaxed);
            println!("{policy}: {ends:?}");
            for (ended, attempts, _) in ends {
                assert_eq!(ended, Ok(()), "{policy}, after {attempts} attempts");
            }
        });
        assert_free(&table, policy.name());
    }
}
