//! The rate of acknowledgements by a place on the same disk, against that of the local log alone.
//!
//! The figures are printed, and mean something in an optimized build on a quiet machine:
//! `CANDIDE_RATE_SECONDS=5 cargo test --release -p candide-reach --test rate -- --nocapture`.

#![cfg(feature = "engine")]

use candide::{Database, Level, LogOptions, Occ, Record, RunOptions};
use candide_reach::{Directory, Place, Replicate};
use std::env;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Record, Clone, Copy)]
struct Item {
    #[key]
    id: u64,
    count: u64,
}

/// Runs transactions that wait for a level, on some threads. Returns how many there are each
/// second, and in all.
fn rate(db: &Database<Occ>, level: Level, threads: u64, time: Duration) -> (f64, u64) {
    let items = db.table::<Item>("items").unwrap();
    for id in 0..threads {
        db.run(|tx| items.put(tx, Item { id, count: 0 })).unwrap();
    }
    let (is_over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let begun = Instant::now();
    thread::scope(|scope| {
        for id in 0..threads {
            let (items, is_over, done) = (&items, &is_over, &done);
            scope.spawn(move || {
                let mut session = db.session().unwrap();
                let options = RunOptions::new().acknowledge(level);
                while !is_over.load(Ordering::Relaxed) {
                    let update =
                        session.with(options).run(|tx| items.update(tx, id, Item::COUNT.add(1)));
                    update.unwrap();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        thread::sleep(time);
        is_over.store(true, Ordering::Relaxed);
    });
    let done = done.into_inner();
    (done as f64 / begun.elapsed().as_secs_f64(), done)
}

/// Prints the rates of a database with and without a place, measured in turns.
fn compare(all: &Path, threads: u64, time: Duration) {
    const ROUNDS: u32 = 3;
    let place = Directory::new(all.join("place")).unwrap();
    let there = place.another().unwrap();
    let log = LogOptions::new().replicate(place);
    let copied = Database::<Occ>::builder().open(all.join("copied"), log).unwrap();
    let alone = Database::<Occ>::builder().open(all.join("alone"), LogOptions::new()).unwrap();
    let (mut durable, mut replicated, mut count) = (0.0, 0.0, 0);
    for _ in 0..ROUNDS {
        durable += rate(&alone, Level::Durable, threads, time / ROUNDS).0;
        let (rate, done) = rate(&copied, Level::Replicated, threads, time / ROUNDS);
        (replicated, count) = (replicated + rate, count + done);
    }
    let (mut objects, mut after) = (0_u32, String::new());
    while let Some(last) = there.list("log/", &after).unwrap().last() {
        after.clone_from(last);
        objects = last.rsplit('/').next().unwrap().parse().unwrap();
    }
    println!(
        "{threads} threads: {:.0} transactions a second are durable, {:.0} replicated, {:.2} times \
         as many, {:.1} with an object",
        durable / f64::from(ROUNDS),
        replicated / f64::from(ROUNDS),
        replicated / durable,
        count as f64 / f64::from(objects),
    );
    assert!(count > 0);
}

#[test]
fn threads_share_the_syncs_of_a_place() {
    let seconds = env::var("CANDIDE_RATE_SECONDS").map_or(0.2, |text| text.parse().unwrap());
    for threads in [1, 8, 64] {
        let all = env::temp_dir().join(format!("candide-rate-{}", std::process::id()));
        fs::create_dir_all(&all).unwrap();
        compare(&all, threads, Duration::from_secs_f64(seconds));
        fs::remove_dir_all(&all).unwrap();
    }
}
