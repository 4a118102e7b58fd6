//! Measures transactional objects beside what they are made of: maps beside a table of the same
//! shape, and one counter that all threads add to and read.
//!
//! ```text
//! cargo run --release -p candide-measure --bin objects -- [--millis 300] [--rounds 5] [--keys 100000]
//! ```
//!
//! The cases of a comparison run by turns. Printed are the medians of all rounds, in millions of
//! transactions a second, the share of the first case, and the least and greatest share in a round.
//! The numbers say little unless the machine is idle; the last line is the load.

use candide::objects::{Boxed, TCounter, TMap};
use candide::policy::Policy;
use candide::{Database, Protocol, Record, Table};
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Record, Clone, Copy)]
struct Entry {
    #[key]
    key: u64,
    number: u64,
}

/// A case: returns a worker of one thread, which runs one transaction by each call.
type Case<'a> = (&'a str, usize, Box<dyn Fn(u64) -> Box<dyn FnMut() + 'a> + Sync + 'a>);

struct Options {
    time: Duration,
    rounds: usize,
    keys: u64,
}

/// Runs a case once. Returns the transactions a second.
fn run((_, threads, worker): &Case<'_>, time: Duration) -> f64 {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..*threads as u64)
            .map(|number| {
                let is_over = &is_over;
                scope.spawn(move || {
                    let mut work = worker(number);
                    let begun = Instant::now();
                    let mut done = 0u64;
                    while !is_over.load(Ordering::Relaxed) {
                        (0..16).for_each(|_| work());
                        done += 16;
                    }
                    done as f64 / begun.elapsed().as_secs_f64()
                })
            })
            .collect();
        thread::sleep(time);
        is_over.store(true, Ordering::Relaxed);
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).sum()
    })
}

/// Compares the cases with the first one.
fn compare(title: &str, cases: &[Case<'_>], options: &Options) {
    println!("{title}");
    let mut rates = vec![Vec::new(); cases.len()];
    // A turn before the first round warms up.
    for round in 0..=options.rounds {
        for (case, rates) in cases.iter().zip(&mut rates) {
            let rate = run(case, options.time);
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    let median = |rates: &[f64]| {
        let mut rates = rates.to_vec();
        rates.sort_unstable_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    for ((name, ..), of_case) in cases.iter().zip(&rates) {
        let shares: Vec<f64> = of_case.iter().zip(&rates[0]).map(|(a, b)| a / b).collect();
        let (least, most) = shares
            .iter()
            .fold((f64::MAX, 0.0), |(least, most), &share| (share.min(least), share.max(most)));
        println!(
            "  {name:<30} {:>8.3} M/s  {:>5.2}  ({least:.2} to {most:.2})",
            median(of_case) / 1e6,
            median(&shares)
        );
    }
}

/// Compares maps with a table: transactions that read one number of 16, and write one of two.
fn maps(options: &Options) -> Result<(), Box<dyn Error>> {
    let db = Database::new();
    let table: Table<Entry> = db.table("entries")?;
    let map = TMap::<u64, u64>::new(&db)?;
    let boxed = TMap::<u64, Boxed<u64>>::new(&db)?;
    for key in 0..options.keys {
        db.run(|tx| {
            table.put(tx, Entry { key, number: key })?;
            map.put(tx, key, key)?;
            boxed.put(tx, key, key)
        })?;
    }
    let (db, table, map, boxed, keys) = (&db, &table, &map, &boxed, options.keys);
    let drawn = |number: u64| {
        let mut random = fastrand::Rng::with_seed(number);
        move || random.u64(..keys)
    };
    let reads: [Case<'_>; 3] = [
        (
            "table",
            1,
            Box::new(move |number| {
                let mut key = drawn(number);
                Box::new(move || {
                    let key = key();
                    db.run(|tx| table.read(tx, key, Entry::NUMBER)).expect("the row exists");
                })
            }),
        ),
        (
            "TMap<u64, u64>",
            1,
            Box::new(move |number| {
                let mut key = drawn(number);
                Box::new(move || {
                    let key = key();
                    assert!(db.run(|tx| map.get(tx, key)).expect("no conflict").is_some());
                })
            }),
        ),
        (
            "TMap<u64, Boxed<u64>>",
            1,
            Box::new(move |number| {
                let mut key = drawn(number);
                Box::new(move || {
                    let key = key();
                    let found = db.run(|tx| Ok(boxed.get(tx, key)?.copied()));
                    assert!(found.expect("no conflict").is_some());
                })
            }),
        ),
    ];
    compare("maps, one read", &reads, options);
    let writes: [Case<'_>; 3] = [
        (
            "table",
            1,
            Box::new(move |number| {
                let mut key = drawn(number);
                Box::new(move || {
                    let key = key();
                    db.run(|tx| table.put(tx, Entry { key, number: key })).expect("no conflict");
                })
            }),
        ),
        (
            "TMap<u64, u64>",
            1,
            Box::new(move |number| {
                let mut key = drawn(number);
                Box::new(move || {
                    let key = key();
                    db.run(|tx| map.put(tx, key, key)).expect("no conflict");
                })
            }),
        ),
        (
            "TMap<u64, Boxed<u64>>",
            1,
            Box::new(move |number| {
                let mut key = drawn(number);
                Box::new(move || {
                    let key = key();
                    db.run(|tx| boxed.put(tx, key, key)).expect("no conflict");
                })
            }),
        ),
    ];
    compare("maps, one put", &writes, options);
    Ok(())
}

/// Compares numbers of threads at one counter, to which each transaction adds, and whose number
/// before that it gets.
fn counter<P: Protocol>(
    name: &str,
    db: &Database<P>,
    options: &Options,
) -> Result<(), Box<dyn Error>> {
    let counter = &TCounter::new(db)?;
    let with = |threads: usize, name: &'static str| -> Case<'_> {
        (
            name,
            threads,
            Box::new(move |_| {
                Box::new(move || {
                    let before = db.run_deferred(|tx| counter.fetch_add(tx, 1));
                    assert!(before.is_ok());
                })
            }),
        )
    };
    let cases =
        [with(1, "1 thread"), with(2, "2 threads"), with(8, "8 threads"), with(64, "64 threads")];
    compare(&format!("one counter, {name}"), &cases, options);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options { time: Duration::from_millis(300), rounds: 5, keys: 100_000 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value: u64 = arguments.next().ok_or("each option has a value")?.parse()?;
        match argument.as_str() {
            "--millis" => options.time = Duration::from_millis(value.max(1)),
            "--rounds" => options.rounds = value.max(1) as usize,
            "--keys" => options.keys = value.max(1),
            unknown => return Err(format!("there is no option {unknown}").into()),
        }
    }
    maps(&options)?;
    counter("occ", &Database::new(), &options)?;
    let locked = Database::<candide::Occ>::builder().policy(Policy::DeferredTwoPhase).build()?;
    counter("deferred-2pl", &locked, &options)?;
    println!("load {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    Ok(())
}
