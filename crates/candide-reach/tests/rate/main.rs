//! The rate of acknowledgements by a place on the same disk, against that of the local log alone.
//!
//! The figures are printed, and mean something in an optimized build on a quiet machine:
//! `CANDIDE_RATE_SECONDS=5 cargo test --release -p candide-reach --test rate -- --nocapture`.

#![cfg(feature = "engine")]

use candide::{Database, Level, LogOptions, Occ, Record, RunOptions};
use candide_reach::{Created, Directory, Place, PlaceError, Replicate, ReplicateOptions};
use std::env;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Record, Clone, Copy)]
struct Item {
    #[key]
    id: u64,
    count: u64,
}

/// A directory that counts the objects of the log: all, those under way, and the most at a time.
#[derive(Debug, Clone)]
struct Counted {
    directory: Arc<dyn Place>,
    counts: Arc<[AtomicUsize; 3]>,
}

impl Counted {
    fn new(path: &Path) -> Counted {
        Counted { directory: Arc::new(Directory::new(path).unwrap()), counts: Arc::default() }
    }
}

impl Place for Counted {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, PlaceError> {
        if !name.starts_with("log/") {
            return self.directory.create(name, bytes);
        }
        let [all, under_way, most] = &*self.counts;
        most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let created = self.directory.create(name, bytes);
        under_way.fetch_sub(1, Ordering::SeqCst);
        all.fetch_add(1, Ordering::SeqCst);
        created
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, PlaceError> {
        self.directory.read(name)
    }

    fn list(&self, prefix: &str, after: &str) -> Result<Vec<String>, PlaceError> {
        self.directory.list(prefix, after)
    }

    fn delete(&self, name: &str) -> Result<(), PlaceError> {
        self.directory.delete(name)
    }

    fn another(&self) -> Result<Arc<dyn Place>, PlaceError> {
        self.directory.another()
    }

    fn path(&self) -> Option<&Path> {
        self.directory.path()
    }
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
fn compare(all: &Path, threads: u64, under_way: usize, time: Duration) {
    const ROUNDS: u32 = 3;
    let place = Counted::new(&all.join("place"));
    let options = ReplicateOptions::new().objects_under_way(under_way);
    let log = LogOptions::new().replicate_with(place.clone(), options);
    let copied = Database::<Occ>::builder().open(all.join("copied"), log).unwrap();
    let alone = Database::<Occ>::builder().open(all.join("alone"), LogOptions::new()).unwrap();
    let (mut durable, mut replicated, mut count) = (0.0, 0.0, 0);
    for _ in 0..ROUNDS {
        durable += rate(&alone, Level::Durable, threads, time / ROUNDS).0;
        let (rate, done) = rate(&copied, Level::Replicated, threads, time / ROUNDS);
        (replicated, count) = (replicated + rate, count + done);
    }
    let [objects, _, most] = [0, 1, 2].map(|at| place.counts[at].load(Ordering::SeqCst));
    println!(
        "{threads} threads, {under_way} objects under way: {:.0} transactions a second are \
         durable, {:.0} replicated, {:.2} times as many, {:.1} with an object",
        durable / f64::from(ROUNDS),
        replicated / f64::from(ROUNDS),
        replicated / durable,
        count as f64 / objects as f64,
    );
    assert!(most <= under_way, "{most} objects were under way");
    // What waits while an object is under way shares the next one.
    assert!(threads < 64 || count > objects as u64, "{count} transactions, {objects} objects");
}

#[test]
fn threads_share_the_syncs_of_a_place() {
    let seconds = env::var("CANDIDE_RATE_SECONDS").map_or(0.1, |text| text.parse().unwrap());
    for threads in [1, 8, 64] {
        for under_way in [1, 2, 4, 8] {
            let all = env::temp_dir().join(format!("candide-rate-{}", std::process::id()));
            fs::create_dir_all(&all).unwrap();
            compare(&all, threads, under_way, Duration::from_secs_f64(seconds));
            fs::remove_dir_all(&all).unwrap();
        }
    }
}
