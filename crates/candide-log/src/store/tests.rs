//! How long the log is locked, counted in operations of a simulated disk.

use super::{LogWriter, Shared, Store, StoreOptions};
use crate::disk::{Disk, DiskFile, LockError};
use crate::format::commit::{ChangeKind, CommitWriter, RecordBuffer};
use crate::schema::TableState;
use crate::{Rows, TableSchema};
use candide_log::disk::Disk as _;
use candide_log_testing::SimDisk;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::sync::{Arc, Mutex, Weak};

/// The largest number of zeros that are written at once.
const STEP: u64 = 1 << 20;

/// An operation that is about to be done to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// A sync of a file.
    Sync,
    /// A sync of the directory.
    SyncNames,
    /// A write of only zeros, with their number.
    Zeros(u64),
    Other,
}

type SimFile = Box<dyn candide_log::disk::DiskFile>;
type Hook = Box<dyn FnMut(Event, &Shared) + Send>;

/// A disk that calls a hook before each operation. The hook's own operations do not call it.
///
/// The simulated disk implements the traits of `candide_log`, of which this crate with its tests is
/// another instance.
#[derive(Clone, Default)]
struct Watched {
    disk: SimDisk,
    shared: Arc<Mutex<Weak<Shared>>>,
    hook: Arc<Mutex<Option<Hook>>>,
}

impl Debug for Watched {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

impl Watched {
    fn watch(&self, hook: impl FnMut(Event, &Shared) + Send + 'static) {
        *self.hook.lock().unwrap() = Some(Box::new(hook));
    }

    fn note(&self, event: Event) {
        let shared = self.shared.lock().unwrap().upgrade();
        let hook = self.hook.lock().unwrap().take();
        let (Some(shared), Some(mut hook)) = (shared, hook) else { return };
        hook(event, &shared);
        *self.hook.lock().unwrap() = Some(hook);
    }

    fn file(&self, file: io::Result<SimFile>) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(WatchedFile { file: file?, disk: self.clone() }))
    }
}

#[derive(Debug)]
struct WatchedFile {
    file: SimFile,
    disk: Watched,
}

impl DiskFile for WatchedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        self.disk.note(Event::Other);
        self.file.read_at(offset, to)
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let is_zeros = parts.iter().all(|part| part.iter().all(|byte| *byte == 0));
        self.disk.note(if is_zeros { Event::Zeros(bytes) } else { Event::Other });
        self.file.write_at(offset, parts)
    }

    fn check(&self) -> io::Result<()> {
        self.file.check()
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.note(Event::Sync);
        self.file.sync()
    }
}

impl Disk for Watched {
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.note(Event::Other);
        self.file(self.disk.create(name))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.note(Event::Other);
        self.file(self.disk.open(name))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.note(Event::Other);
        self.file(self.disk.open_to_read(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.note(Event::Other);
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.note(Event::Other);
        self.disk.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.note(Event::SyncNames);
        self.disk.sync_directory()
    }

    fn lock(&self) -> Result<Box<dyn Send + Sync + Debug>, LockError> {
        self.disk.lock().map_err(|error| LockError::Io(io::Error::other(error)))
    }
}

/// Returns the schema of a table with wide rows.
fn table(name: &str) -> TableSchema {
    TableSchema {
        number: 0,
        name: name.to_string(),
        row_type: "Row".to_string(),
        schema: 1,
        key_words: 1,
        key_widths: vec![64],
        groups: vec![("all".to_string(), 60_000)],
        ordered: false,
        splitting: None,
        policy: None,
        indexes: Vec::new(),
        fields: Vec::new(),
        state: TableState::InUse,
    }
}

/// A database on a watched disk, whose commit records have a fixed number of bytes.
struct Database {
    disk: Watched,
    store: Store,
    log: LogWriter,
    record_bytes: u64,
    commits: u64,
}

impl Database {
    fn open(disk: Watched, segment_bytes: u64, record_bytes: u64) -> Database {
        let options = StoreOptions { segment_bytes, ..StoreOptions::default() };
        let opened = Store::open(Arc::new(disk.clone()), &options, &Rows::new(), &|_| {});
        let (store, log, _) = opened.unwrap();
        *disk.shared.lock().unwrap() = Arc::downgrade(&store.shared);
        Database { disk, store, log, record_bytes, commits: 0 }
    }

    /// Makes a database with a table.
    fn new(segment_bytes: u64, record_bytes: u64) -> Database {
        let database = Database::open(Watched::default(), segment_bytes, record_bytes);
        let table = table("rows");
        database.store.add_table(table).unwrap();
        database
    }

    /// Makes a commit durable, as the thread of a log does.
    fn commit(&mut self) {
        self.write();
        self.log.sync().unwrap();
    }

    fn write(&mut self) {
        self.commits += 1;
        let mut buffer = RecordBuffer::new();
        let mut record = CommitWriter::begin(&mut buffer);
        let words = vec![self.commits; (self.record_bytes / 8) as usize];
        for (key, words) in (0..).zip(words.chunks(60_000)) {
            record.entry(ChangeKind::Put, 1, 0, words.len() as u16, Some(&[key]));
            record.push_all(words);
        }
        record.finish(self.commits, self.commits);
        self.log.write(&[buffer.words()], self.commits).unwrap();
    }
}

/// Watches that each time that the log is locked, at most one step of zeros is written and made
/// durable, or the three syncs of a change of segments are done.
fn watch_locks(disk: &Watched) {
    let (mut syncs, mut zeros) = (0, 0);
    disk.watch(move |event, shared| {
        if shared.log.try_lock().is_ok() {
            (syncs, zeros) = (0, 0);
            return;
        }
        match event {
            Event::Sync | Event::SyncNames => syncs += 1,
            Event::Zeros(bytes) => zeros += bytes,
            Event::Other => {}
        }
        let is_step = zeros <= STEP && syncs <= 1;
        let is_change = zeros == 0 && syncs <= 3;
        assert!(is_step || is_change, "{syncs} syncs and {zeros} zeros while the log is locked");
    });
}

/// The bytes of segments and of commits; several commits fit into the first segments, or none.
const SIZES: [(u64, u64); 6] = [
    (16 << 10, 100),
    (64 << 10, 3_000),
    (64 << 10, 100_000),
    (4 << 20, 40_000),
    (16 << 20, 300_000),
    (16 << 20, 3_000_000),
];

#[test]
fn no_checkpoint_keeps_the_log_locked_while_a_segment_is_made() {
    for (segment_bytes, record_bytes) in SIZES {
        for prepares in [false, true] {
            let mut database = Database::new(segment_bytes, record_bytes);
            for _ in 0..30 {
                database.commit();
                if prepares {
                    database.log.prepare().unwrap();
                }
            }
            watch_locks(&database.disk);
            assert!(database.store.checkpoint().unwrap().is_new);
        }
    }
}

#[test]
fn no_commit_keeps_the_log_locked_while_a_segment_is_made() {
    for (segment_bytes, record_bytes) in SIZES {
        let mut database = Database::new(segment_bytes, record_bytes);
        for number in 0..60 {
            // The disk is not changed between one lock and the next.
            watch_locks(&database.disk);
            database.write();
            watch_locks(&database.disk);
            database.log.sync().unwrap();
            watch_locks(&database.disk);
            // In some rounds a file is ready, in others only a part of a file.
            if number % 20 < 10 {
                database.log.prepare().unwrap();
            }
        }
    }
}

/// Lets a commit arrive at the n-th operation of the first checkpoint after an opening, and counts
/// the syncs for which it waits: the syncs under locks that it needs, and its own. `None` if the
/// checkpoint has fewer operations.
fn syncs_of_a_commit(
    n: usize,
    commits_before: u64,
    segment_bytes: u64,
    record_bytes: u64,
) -> Option<u64> {
    let mut database = Database::new(segment_bytes, record_bytes);
    for _ in 0..commits_before {
        database.commit();
    }
    let Database { disk, store, log, .. } = database;
    drop((store, log));
    let mut database = Database::open(disk.clone(), segment_bytes, record_bytes);
    for _ in 0..commits_before {
        database.commit();
    }
    let (store, disk) = (Store { shared: Arc::clone(&database.store.shared) }, disk);
    let waited = Arc::new(Mutex::new(None));
    let (mut operation, mut syncs) = (0, 0);
    let mut arriving = Some(database);
    let result = Arc::clone(&waited);
    disk.watch(move |event, shared| {
        operation += 1;
        if operation <= n || arriving.is_none() {
            return;
        }
        let is_locked = shared.log.try_lock().is_err()
            || shared.manifest.try_lock().is_err()
            // Only one thread makes names durable.
            || event == Event::SyncNames;
        if is_locked {
            syncs += u64::from(matches!(event, Event::Sync | Event::SyncNames));
            return;
        }
        let mut database = arriving.take().unwrap();
        let count = |disk: &SimDisk| {
            disk.operations().iter().filter(|operation| operation.contains("sync")).count() as u64
        };
        let before = count(&database.disk.disk);
        database.commit();
        syncs += count(&database.disk.disk) - before;
        *result.lock().unwrap() = Some(syncs);
    });
    store.checkpoint().unwrap();
    let waited = waited.lock().unwrap().take();
    *disk.hook.lock().unwrap() = None;
    waited
}

#[test]
fn a_commit_during_the_first_checkpoint_waits_for_at_most_six_syncs() {
    let sizes = [(16 << 10, 100), (64 << 10, 3_000), (4 << 20, 40_000), (16 << 20, 700_000)];
    for (segment_bytes, record_bytes) in sizes {
        // The segment in use has room for another block, or not.
        for commits_before in 1..=4 {
            for n in 0.. {
                let waited = syncs_of_a_commit(n, commits_before, segment_bytes, record_bytes);
                let Some(syncs) = waited else {
                    assert!(n > 10, "the checkpoint has {n} operations");
                    break;
                };
                assert!(syncs <= 6, "{syncs} syncs after operation {n}, {commits_before} before");
            }
        }
    }
}

#[test]
fn tables_that_a_checkpoint_could_not_describe_are_refused() {
    let disk = Watched::default();
    let database = Database::open(disk.clone(), 64 << 10, 100);
    let long =
        |number: usize| TableSchema { row_type: "x".repeat(60_000), ..table(&number.to_string()) };
    let mut added = 0;
    let refused = loop {
        match database.store.add_table(long(added)) {
            Ok(_) => added += 1,
            Err(error) => break error.to_string(),
        }
    };
    // 17 tables of a little more than 60,000 bytes each have more than a mebibyte.
    let what = "at byte 0: the tables would have 1080864 bytes; 1048576 are the most";
    assert!(refused.ends_with(what), "{refused}");
    assert_eq!(added, 17);
    // There is room for 27,755 bytes more.
    let mut changes = (1..).map(|number| {
        database.store.change_table(number, |table| table.row_type = "x".repeat(65_000))
    });
    assert_eq!(changes.position(|changed| changed.is_err()), Some(5));
    // What is there can be described by an opening, and dropped.
    drop(database);
    let database = Database::open(disk, 64 << 10, 100);
    assert_eq!(database.store.tables().len(), added);
    database.store.drop_table(1).unwrap();
    database.store.checkpoint().unwrap();
    database.store.add_table(long(added)).unwrap();
}
