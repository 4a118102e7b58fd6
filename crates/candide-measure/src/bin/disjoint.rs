//! Measures the cost of sharing a database if the threads share no rows. Two threads work on
//! disjoint keys of one database. They are compared with two processes that run at the same time.
//! Each process has its own database of the same size and uses one half of the rows.
//!
//! ```text
//! cargo run --release -p candide-measure --bin disjoint
//! ```
//!
//! The two kinds of measurement alternate, so that changes of the machine's speed affect both.
//! Medians are compared.

use candide::{Abort, Database, Record, Session, Table};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The number of rows of each thread.
const ROWS: u64 = 100_000;
/// The duration of a measurement.
const DURATION: Duration = Duration::from_secs(1);
/// The number of measurements of each kind.
const ROUNDS: usize = 15;

#[derive(Record, Clone, Copy)]
struct Counter {
    #[key]
    key: u64,
    count: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        None => compare(),
        // This process is a child of `compare`, and measures one database with `threads` threads.
        Some(threads) => {
            println!("{}", measure(threads.parse()?)?);
            Ok(())
        }
    }
}

fn compare() -> Result<(), Box<dyn std::error::Error>> {
    let start = |threads: &str| {
        Command::new(std::env::current_exe()?).arg(threads).stdout(Stdio::piped()).spawn()
    };
    let rate = |child: std::process::Child| -> Result<f64, Box<dyn std::error::Error>> {
        Ok(String::from_utf8(child.wait_with_output()?.stdout)?.trim().parse()?)
    };
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let together = rate(start("2")?)?;
        let children = [start("1")?, start("1")?];
        let apart: f64 = children.into_iter().map(rate).sum::<Result<f64, _>>()?;
        println!(
            "two threads {together:.0}/s, two processes {apart:.0}/s, ratio {:.3}",
            together / apart
        );
        ratios.push(together / apart);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    println!(
        "median ratio {:.3} (from {:.3} to {:.3})",
        ratios[ROUNDS / 2],
        ratios[0],
        ratios[ROUNDS - 1]
    );
    Ok(())
}

/// Returns the transactions per second of all threads together.
fn measure(threads: u64) -> Result<f64, Box<dyn std::error::Error>> {
    let db = Database::new();
    let table = db.table::<Counter>("counters")?;
    for first in (0..2 * ROWS).step_by(100) {
        db.run(|tx| {
            (first..first + 100).try_for_each(|key| table.insert(tx, Counter { key, count: 0 }))
        })?;
    }
    let sessions = (0..threads).map(|_| db.session()).collect::<Result<Vec<_>, _>>()?;
    let rates = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..)
            .zip(sessions)
            .map(|(thread, session)| {
                let table = &table;
                scope.spawn(move || repeat(session, table, thread))
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no worker panics"))
            .collect::<Result<Vec<f64>, _>>()
    })?;
    Ok(rates.iter().sum())
}

/// Runs transactions of two reads and two updates on the thread's own rows. Returns the
/// transactions per second.
fn repeat(
    mut session: Session<candide::Occ>,
    table: &Table<Counter, candide::Occ>,
    thread: u64,
) -> Result<f64, Abort> {
    let mut random = fastrand::Rng::with_seed(thread + 1);
    let mut transactions = 0u64;
    let begun = Instant::now();
    while begun.elapsed() < DURATION {
        for _ in 0..100 {
            let keys: [u64; 4] = std::array::from_fn(|_| thread * ROWS + random.u64(..ROWS));
            session.run(|tx| {
                let sum = table.read(tx, &keys[0], Counter::COUNT)?
                    + table.read(tx, &keys[1], Counter::COUNT)?;
                table.update(tx, &keys[2], Counter::COUNT.add(1 + sum % 2))?;
                table.update(tx, &keys[3], Counter::COUNT.add(1))
            })?;
            transactions += 1;
        }
    }
    Ok(transactions as f64 / begun.elapsed().as_secs_f64())
}
