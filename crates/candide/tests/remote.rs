//! The seam to a copy of the log elsewhere: when a remote is called, and what its replies do.

#![forbid(unsafe_code)]

use candide::remote::{CheckpointParts, Feed, PartRows, Remote, Replies, Run, Unopened};
use candide::{Abort, Database, Error, Level, LogOptions, OpenError, Record, RunOptions, Table};
use candide_log_testing::SimDisk;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Item {
    #[key]
    id: u64,
    count: i64,
}

/// A remote that has only what the test takes over.
#[derive(Debug, Default)]
struct Counting {
    calls: Mutex<Vec<&'static str>>,
    begun: Mutex<Option<(Feed, Arc<dyn Replies>)>>,
    /// The cut and the bytes that are durable here.
    durable: Mutex<(u64, u64)>,
    wanted: Mutex<(u64, u64)>,
    appends: AtomicU64,
    released: AtomicU64,
}

impl Counting {
    fn note(&self, call: &'static str) {
        self.calls.lock().unwrap().push(call);
    }

    /// Takes over all that is durable, by one append.
    fn take(&self) -> Run {
        let append = self.begin();
        let (cut, _) = *self.durable.lock().unwrap();
        let mut begun = self.begun.lock().unwrap();
        let (feed, replies) = begun.as_mut().unwrap();
        let mut all = feed.read(usize::MAX).unwrap();
        while feed.place() < feed.end() {
            let run = feed.read(usize::MAX).unwrap();
            all.tables.extend(run.tables);
            all.records.extend(run.records);
            all.last = run.last.or(all.last);
        }
        let replies = replies.clone();
        drop(begun);
        replies.reach(cut, append);
        all
    }

    /// Begins an append.
    fn begin(&self) -> u64 {
        self.appends.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn replies(&self) -> Arc<dyn Replies> {
        self.begun.lock().unwrap().as_ref().unwrap().1.clone()
    }

    fn wanted(&self) -> (u64, u64) {
        *self.wanted.lock().unwrap()
    }
}

impl Remote for Counting {
    fn open(&self, unopened: &Unopened<'_>) -> Result<(), OpenError> {
        self.note(if unopened.uuid().is_some() { "open" } else { "open new" });
        Ok(())
    }

    fn begin(&self, feed: Feed, replies: Arc<dyn Replies>) -> Result<(), OpenError> {
        self.note("begin");
        feed.tables();
        *self.begun.lock().unwrap() = Some((feed, replies));
        Ok(())
    }

    fn durable(&self, cut: u64, bytes: u64) {
        let mut durable = self.durable.lock().unwrap();
        *durable = (durable.0.max(cut), durable.1 + bytes);
    }

    fn want(&self, cut: u64, append: u64) {
        let mut wanted = self.wanted.lock().unwrap();
        *wanted = (wanted.0.max(cut), wanted.1.max(append));
    }

    fn appends(&self) -> u64 {
        self.appends.load(Ordering::SeqCst)
    }

    fn generation(&self) -> u64 {
        7
    }

    fn database(&self, own: [u8; 16]) -> [u8; 16] {
        own
    }

    fn checkpoint_failure(&self) -> Option<String> {
        None
    }

    fn release(&self, last: u64) -> u64 {
        self.note("release");
        last.min(self.released.load(Ordering::SeqCst))
    }

    fn checkpointed(&self, parts: &CheckpointParts<'_>) {
        let mut rows = PartRows::default();
        (0..parts.count()).for_each(|part| drop(parts.read(part, &mut rows).unwrap()));
        assert!(rows.sums.len() <= 1);
        self.note("checkpointed");
    }

    fn copies(&self) -> bool {
        true
    }

    fn close(&self) {
        self.note("close");
        self.begun.lock().unwrap().take();
    }
}

struct Scene {
    disk: SimDisk,
    remote: Arc<Counting>,
    db: Database,
    items: Table<Item>,
}

fn scene() -> Scene {
    let (disk, remote) = (SimDisk::default(), Arc::<Counting>::default());
    let options = LogOptions::new().remote(remote.clone());
    let db = Database::<candide::Occ>::builder().open_on(Arc::new(disk.clone()), options).unwrap();
    let items = db.table::<Item>("items").unwrap();
    Scene { disk, remote, db, items }
}

fn replicated() -> RunOptions<'static> {
    RunOptions::new().acknowledge(Level::Replicated)
}

/// Waits until something is so.
fn eventually(is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !is_so() {
        assert!(Instant::now() < end, "it does not become so");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_level_is_refused_without_a_remote_and_nothing_runs() {
    let options = || LogOptions::new().acknowledge(Level::Replicated);
    let open = |options| {
        Database::<candide::Occ>::builder().open_on(Arc::new(SimDisk::default()), options)
    };
    assert!(matches!(open(options()), Err(OpenError::Target(error))
        if error.downcast_ref() == Some(&Error::NotReplicated)));
    for db in [open(LogOptions::new()).unwrap(), Database::new()] {
        let items = db.table::<Item>("items").unwrap();
        let insert = |id| db.with(replicated()).run(|tx| items.insert(tx, Item { id, count: 0 }));
        assert_eq!(insert(1), Err(Abort::NotReplicated));
        let mut session = db.session().unwrap();
        let insert_in = |session: &mut candide::Session, id| {
            session.with(replicated()).run(|tx| items.insert(tx, Item { id, count: 0 }))
        };
        assert_eq!(insert_in(&mut session, 2), Err(Abort::NotReplicated));
        assert_eq!(session.set_acknowledge(Level::Replicated), Err(Error::NotReplicated));
        assert_eq!(db.run(|tx| items.iter(tx, ()).count()), Ok(0));
        let pending = db.run_logged(|tx| items.insert(tx, Item { id: 3, count: 0 }));
        assert_eq!(pending.position(), None);
        assert!(!pending.is_at(Level::Replicated));
        assert_eq!(pending.wait_for(Level::Replicated), Err(Abort::NotReplicated));
    }
}

#[test]
fn a_protocol_whose_commits_cannot_be_read_in_order_has_no_remote() {
    let options = LogOptions::new().remote(Arc::<Counting>::default());
    let disk = Arc::new(SimDisk::default());
    let refused = Database::<candide::TicToc>::builder().open_on(disk.clone(), options);
    assert!(refused.unwrap_err().to_string().contains("tictoc"));
    assert_eq!(disk.position(), 0);
}

#[test]
fn a_remote_is_called_from_the_opening_to_the_close_and_gets_all_records() {
    let Scene { disk, remote, db, items } = scene();
    db.run(|tx| items.insert(tx, Item { id: 1, count: 5 })).unwrap();
    let run = remote.take();
    assert_eq!(run.tables.iter().map(|table| &*table.name).collect::<Vec<_>>(), ["items"]);
    let first = run.records.len();
    assert!(first > 0 && run.last.is_some_and(|(generation, _)| generation == 1));
    db.table::<Item>("others").unwrap();
    db.run(|tx| items.update(tx, 1, Item::COUNT.add(1))).unwrap();
    let run = remote.take();
    assert_eq!(run.tables[0].name, "others");
    let bytes = 8 * (first + run.records.len()) as u64;
    // A transaction may return before the remote is told that it is durable.
    eventually(|| remote.durable.lock().unwrap().1 == bytes);
    assert_eq!(remote.take(), Run::default());
    drop((db, items));
    assert_eq!(*remote.calls.lock().unwrap(), ["open new", "begin", "close"]);
    let options = LogOptions::new().remote(remote.clone());
    let db = Database::<candide::Occ>::builder().open_on(Arc::new(disk), options).unwrap();
    assert_eq!(remote.calls.lock().unwrap()[3..], ["open", "begin"]);
    // The feed begins with the log, and so with the generation before.
    db.table::<Item>("items").unwrap();
    let run = remote.take();
    assert_eq!((8 * run.records.len() as u64, run.last.map(|last| last.0)), (bytes, Some(1)));
}

#[test]
fn a_commit_is_replicated_when_the_remote_has_it() {
    let Scene { remote, db, items, .. } = scene();
    let pending = db.run_logged(|tx| items.insert(tx, Item { id: 1, count: 5 }));
    let position = pending.position().unwrap();
    assert_eq!(position.generation, 7);
    // This append begins before the commit is durable, and has nothing of it.
    remote.replies().reach(position.stamp - 1, remote.begin());
    db.sync().unwrap();
    assert!(pending.is_at(Level::Durable) && !pending.is_at(Level::Replicated));
    assert_eq!(remote.wanted(), (0, 0), "a remote for which no thread waits");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| pending.wait_for(Level::Replicated));
        eventually(|| remote.wanted() == (position.stamp, 0));
        remote.take();
        assert_eq!(waiting.join().unwrap(), Ok(()));
    });
}

/// A read, and an outcome, are acknowledged by an append that began after they had ended.
#[test]
fn a_transaction_without_writes_waits_for_an_append_that_began_after_it() {
    let Scene { remote, db, items, .. } = scene();
    db.run(|tx| items.insert(tx, Item { id: 1, count: 5 })).unwrap();
    remote.take();
    type End = fn(&Table<Item>, &candide::Tx<'_>) -> Result<(), Abort>;
    let ends: [End; 3] = [
        |items, tx| items.get(tx, 1, Item::COUNT).map(drop),
        |items, tx| items.insert(tx, Item { id: 1, count: 5 }),
        |items, tx| items.update(tx, 1, Item::COUNT.sub(9).at_least(0)),
    ];
    for end in ends {
        let begun_before = remote.begin();
        let (sender, ended) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| sender.send(db.with(replicated()).run(|tx| end(&items, tx))));
            eventually(|| remote.wanted().1 == begun_before + 1);
            let (cut, _) = *remote.durable.lock().unwrap();
            remote.replies().reach(cut, begun_before);
            assert!(ended.recv_timeout(Duration::from_millis(50)).is_err(), "it has not waited");
            remote.take();
            let ended = ended.recv_timeout(Duration::from_secs(120)).unwrap();
            assert!(matches!(ended, Ok(()) | Err(Abort::Duplicate | Abort::Guard)), "{ended:?}");
        });
        // The result that is waited for later, too.
        let pending = db.run_logged(|tx| end(&items, tx));
        db.sync().unwrap();
        assert!(!pending.is_at(Level::Replicated));
        remote.take();
        assert!(pending.is_at(Level::Replicated));
    }
}

#[test]
fn writes_wait_while_a_remote_is_behind_and_reads_go_on() {
    let Scene { remote, db, items, .. } = scene();
    db.run(|tx| items.insert(tx, Item { id: 1, count: 5 })).unwrap();
    remote.replies().set_behind(true);
    let soon = RunOptions::new().deadline(Instant::now() + Duration::from_millis(20));
    let refused = db.with(soon).run(|tx| items.update(tx, 1, Item::COUNT.add(1)));
    assert_eq!(refused, Err(Abort::DeadlinePassed));
    assert_eq!(db.run(|tx| items.read(tx, 1, Item::COUNT)), Ok(5));
    let (sender, ended) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| sender.send(db.run(|tx| items.update(tx, 1, Item::COUNT.add(1)))));
        assert!(ended.recv_timeout(Duration::from_millis(50)).is_err(), "it has not waited");
        remote.replies().set_behind(false);
        assert_eq!(ended.recv_timeout(Duration::from_secs(120)), Ok(Ok(())));
    });
    assert_eq!(db.run(|tx| items.read(tx, 1, Item::COUNT)), Ok(6));
}

#[test]
fn a_remote_ends_the_log() {
    let Scene { remote, db, items, .. } = scene();
    db.run(|tx| items.insert(tx, Item { id: 1, count: 5 })).unwrap();
    remote.take();
    let pending = db.run_logged(|tx| items.get(tx, 1, Item::COUNT));
    remote.replies().set_behind(true);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| pending.wait_for(Level::Replicated));
        let behind = scope.spawn(|| db.run(|tx| items.update(tx, 1, Item::COUNT.add(1))));
        eventually(|| remote.wanted().1 > 0);
        remote.replies().fail(io::Error::other("another process leads"));
        assert_eq!(waiting.join().unwrap(), Err(Abort::LogFailed));
        assert_eq!(behind.join().unwrap(), Err(Abort::LogFailed));
    });
    assert_eq!(db.log_failure().unwrap().to_string(), "another process leads");
    assert!(!remote.replies().can_write());
    let update = || db.run(|tx| items.update(tx, 1, Item::COUNT.add(1)));
    assert_eq!(update(), Err(Abort::LogFailed));
    let memory = RunOptions::new().acknowledge(Level::Memory);
    assert_eq!(db.with(memory).run(|tx| items.read(tx, 1, Item::COUNT)), Ok(5));
    assert!(db.with(replicated()).run(|tx| items.read(tx, 1, Item::COUNT)).is_err());
}

#[test]
fn a_checkpoint_contains_only_segments_that_the_remote_has() {
    let Scene { disk, remote, db, items } = scene();
    db.run(|tx| items.insert(tx, Item { id: 1, count: 5 })).unwrap();
    assert!(!db.checkpoint().unwrap().is_new);
    db.run(|tx| items.insert(tx, Item { id: 2, count: 5 })).unwrap();
    remote.released.store(1, Ordering::SeqCst);
    assert_eq!(db.checkpoint().unwrap().rows, 1);
    // The feed is still at the first segment, whose blocks it has read.
    drop((db, items));
    let db = Database::<candide::Occ>::builder().open_on(Arc::new(disk), LogOptions::new());
    let db = db.unwrap();
    let items = db.table::<Item>("items").unwrap();
    assert_eq!(db.run(|tx| items.iter(tx, ()).count()), Ok(2));
}
