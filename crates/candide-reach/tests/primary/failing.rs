//! Threads of a primary that fail while others go on.

use crate::holding::Holding;
use crate::rows::counts;
use crate::{Item, eventually, insert, quickly, replicated, uuid};
use candide::{Abort, Database, LogOptions, Occ};
use candide_log::disk::{Disk, DiskFile, LockError};
use candide_log_testing::SimDisk;
use candide_reach::Replicate;
use candide_reach::sim::SimPlace;
use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// How a read fails.
#[derive(Debug, Clone, Copy)]
enum Failure {
    Error,
    Panic,
}

/// What a test asks of a disk.
#[derive(Debug, Default)]
struct Asked {
    /// How many more reads of a thread of the primary succeed, and how the next one fails.
    reads: Mutex<Option<(usize, Failure)>>,
    /// Whether that one has come. It waits until syncs of other threads wait, too.
    has_come: AtomicBool,
    may_fail: AtomicBool,
    stalls: AtomicBool,
}

/// A disk that fails once in a thread of the primary, or stalls the logger.
#[derive(Debug, Clone)]
struct Failing {
    disk: SimDisk,
    asked: Arc<Asked>,
}

#[derive(Debug)]
struct FailingFile {
    file: Box<dyn DiskFile>,
    asked: Arc<Asked>,
}

fn is_of_primary() -> bool {
    thread::current().name() == Some("candide-reach")
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::sleep(Duration::from_millis(1));
    }
}

impl Failing {
    fn file(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(FailingFile { file, asked: Arc::clone(&self.asked) })
    }
}

impl Disk for Failing {
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(self.disk.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(self.disk.open(name)?))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(self.disk.open_to_read(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.disk.sync_directory()
    }

    fn lock(&self) -> Result<Box<dyn Send + Sync + Debug>, LockError> {
        self.disk.lock()
    }
}

impl DiskFile for FailingFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        if is_of_primary() {
            let mut reads = self.asked.reads.lock().unwrap();
            match reads.take() {
                Some((0, failure)) => {
                    drop(reads);
                    self.asked.has_come.store(true, Ordering::SeqCst);
                    wait_until(|| self.asked.may_fail.load(Ordering::SeqCst));
                    match failure {
                        Failure::Error => return Err(io::Error::other("too many files are open")),
                        Failure::Panic => panic!("a read panics"),
                    }
                }
                left => *reads = left.map(|(left, failure)| (left - 1, failure)),
            }
        }
        self.file.read_at(offset, to)
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        self.file.write_at(offset, parts)
    }

    fn check(&self) -> io::Result<()> {
        self.file.check()
    }

    fn sync(&self) -> io::Result<()> {
        wait_until(|| is_of_primary() || !self.asked.stalls.load(Ordering::SeqCst));
        self.file.sync()
    }
}

/// The program's code, which takes its time in the thread that fails.
struct Slow {
    asked: Arc<Asked>,
    has_ended: AtomicBool,
}

impl Wake for Slow {
    fn wake(self: Arc<Self>) {
        self.asked.stalls.store(false, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(300));
        self.has_ended.store(true, Ordering::SeqCst);
    }
}

#[test]
fn nothing_comes_behind_what_a_thread_has_read_and_not_written() {
    for failure in [Failure::Error, Failure::Panic] {
        let (place, asked) = (SimPlace::new(1), Arc::<Asked>::default());
        let disk = Failing { disk: SimDisk::default(), asked: Arc::clone(&asked) };
        let options = quickly().replicate_every(Duration::from_secs(3600));
        let log = LogOptions::new().replicate_with(place.handle(1), options);
        let db = Database::<Occ>::builder().open_on(Arc::new(disk), log).unwrap();
        let items = db.table::<Item>("items").unwrap();
        insert(&db, &items, 0).unwrap();
        // Each row is in a block of its own.
        for id in 1..=3 {
            db.run(|tx| items.insert(tx, Item { id, count: 1 })).unwrap();
        }
        // The header of the segment, and a block, whose header is read first.
        *asked.reads.lock().unwrap() = Some((3, failure));
        let slow = Arc::new(Slow { asked: Arc::clone(&asked), has_ended: AtomicBool::new(false) });
        let read = thread::scope(|scope| {
            let read = scope.spawn(|| {
                let soon = replicated().deadline(Instant::now() + Duration::from_secs(60));
                db.with(soon).run(|tx| items.read(tx, 0, Item::COUNT))
            });
            eventually(|| asked.has_come.load(Ordering::SeqCst));
            // What is not durable wakes the task when the log fails.
            asked.stalls.store(true, Ordering::SeqCst);
            let mut pending = db.run_logged(|tx| items.insert(tx, Item { id: 4, count: 1 }));
            let waker = Waker::from(Arc::clone(&slow));
            assert!(Pin::new(&mut pending).poll(&mut Context::from_waker(&waker)).is_pending());
            asked.may_fail.store(true, Ordering::SeqCst);
            let read = read.join().unwrap();
            asked.stalls.store(false, Ordering::SeqCst);
            read
        });
        assert_eq!(read, Err(Abort::LogFailed), "{failure:?}");
        eventually(|| slow.has_ended.load(Ordering::SeqCst));
        let there = counts(&place, uuid(&db));
        assert_eq!(there.len(), 1, "{failure:?}: {there:?} without those before");
    }
}

/// A place is the program's code. If it panics, those that wait are told.
#[test]
fn a_place_that_panics_ends_the_log() {
    let place = SimPlace::new(1);
    let holding = Holding::new(&place);
    let log = LogOptions::new().replicate_with(holding.clone(), quickly());
    let db = Database::<Occ>::builder().open_on(Arc::new(SimDisk::default()), log).unwrap();
    let items = db.table::<Item>("items").unwrap();
    insert(&db, &items, 0).unwrap();
    holding.panic();
    let soon = Instant::now() + Duration::from_secs(60);
    let read = db.with(replicated().deadline(soon)).run(|tx| items.read(tx, 0, Item::COUNT));
    assert_eq!(read, Err(Abort::LogFailed));
    eventually(|| db.log_failure().is_some_and(|failure| failure.to_string().contains("panicked")));
}
