//! Measures how long transactions that wait for one another in a circle take, under each policy.
//!
//! * upgraders: two transactions have read a row, and both update it.
//! * three-cycle: three transactions have each updated a row, and each updates the next one's.
//!
//! The threads meet at a barrier between their two operations, in their first attempts. The time is
//! that from the last arrival at the barrier to the end of the last transaction.
//!
//! ```text
//! cargo run --release -p candide-measure --bin circles [ROUNDS]
//! ```

use candide::{Database, Occ, Policy, Record, Table};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

#[derive(Record, Clone, Copy)]
struct Counter {
    #[key]
    id: u64,
    count: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = match std::env::args().nth(1) {
        Some(rounds) => rounds.parse().map_err(|_| "expected a number of rounds")?,
        None => 2_000,
    };
    println!("scene        policy         p50 µs   p99 µs   max µs  attempts a transaction");
    for policy in Policy::ALL {
        for threads in [2, 3] {
            let Times { mut micros, attempts } = play(policy, threads, rounds)?;
            micros.sort_unstable_by(f64::total_cmp);
            let at = |share: f64| micros[((micros.len() - 1) as f64 * share) as usize];
            println!(
                "{:12} {policy:14} {:6.1} {:8.1} {:8.1}  {:.2}",
                if threads == 2 { "upgraders" } else { "three-cycle" },
                at(0.5),
                at(0.99),
                at(1.0),
                attempts as f64 / (rounds * threads) as f64
            );
        }
    }
    Ok(())
}

/// The times of the rounds, and the number of all attempts.
struct Times {
    micros: Vec<f64>,
    attempts: u64,
}

/// Plays a scene: two upgraders, or a circle of three.
fn play(policy: Policy, threads: usize, rounds: usize) -> Result<Times, candide::Error> {
    let db = Database::<Occ>::builder().policy(policy).build()?;
    let counters: Table<Counter, Occ> = db.table("counters")?;
    db.run(|tx| (0..3).try_for_each(|id| counters.insert(tx, Counter { id, count: 0 })))
        .expect("there is room for three rows");
    let (barrier, attempts) = (&Barrier::new(threads), &AtomicU64::new(0));
    let (db, counters) = (&db, &counters);
    let ends: Vec<Vec<(Instant, Instant)>> = std::thread::scope(|scope| {
        let work = move |thread: u64| {
            let mut session = db.session().expect("sessions are not limited");
            let mut times = Vec::with_capacity(rounds);
            for _ in 0..rounds {
                barrier.wait();
                let mut met = Instant::now();
                let run = session.run(|tx| {
                    attempts.fetch_add(1, Ordering::Relaxed);
                    let next = if threads == 2 {
                        counters.read(tx, 0, Counter::COUNT)?;
                        0
                    } else {
                        counters.update(tx, &thread, Counter::COUNT.add(1))?;
                        (thread + 1) % 3
                    };
                    if tx.attempt_number() == 1 {
                        barrier.wait();
                        met = Instant::now();
                    }
                    counters.update(tx, &next, Counter::COUNT.add(1))
                });
                assert_eq!(run, Ok(()), "a conflict is retried");
                times.push((met, Instant::now()));
            }
            times
        };
        let threads: Vec<_> =
            (0..threads as u64).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    let micros = (0..rounds).map(|round| {
        let met = ends.iter().map(|times| times[round].0).max().expect("there are threads");
        let end = ends.iter().map(|times| times[round].1).max().expect("there are threads");
        end.duration_since(met).as_secs_f64() * 1e6
    });
    Ok(Times { micros: micros.collect(), attempts: attempts.load(Ordering::Relaxed) })
}
