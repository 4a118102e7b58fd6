//! Snapshots that a primary makes of its checkpoints, and what becomes of the log before them.

use crate::rows::{Rows, counts, read};
use crate::{Item, insert, open, quickly, replicated, uuid};
use candide::{
    Abort, Database, Level, LogOptions, Mvcc, Occ, OpenError, Record, RunOptions, Table,
};
use candide_log::sum::{row_hash, table_sum};
use candide_log_testing::SimDisk;
use candide_reach::object::{Kind, Object};
use candide_reach::sim::{Direction, SimPlace};
use candide_reach::{Place, Replicate, ReplicateOptions, Standby, StandbyOptions, tools};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Options with which everything that is covered is deleted at once.
pub fn briefly() -> ReplicateOptions {
    quickly().keep(Duration::ZERO)
}

/// Opens a database without its place.
pub fn open_alone(disk: &SimDisk) -> (Database, Table<Item>) {
    let db = Database::<Occ>::builder().open_on(Arc::new(disk.clone()), LogOptions::new());
    let db = db.unwrap();
    let items = db.table::<Item>("items").unwrap();
    (db, items)
}

fn object(place: &SimPlace, name: &str) -> Object {
    Object::decode(place.read(name).unwrap().unwrap()).unwrap()
}

pub fn names(place: &SimPlace, prefix: &str) -> Vec<String> {
    place.names().into_iter().filter(|name| name.starts_with(prefix)).collect()
}

/// Returns the last floor, which is one of generation 1.
fn floor(place: &SimPlace) -> Object {
    object(place, names(place, "floor/000000000001/").last().unwrap())
}

/// Follows a place by a new database.
pub fn follow(place: &SimPlace) -> Standby {
    let replica =
        Database::<Mvcc>::builder().follow_on(Arc::new(SimDisk::new()), LogOptions::new());
    Standby::of(Arc::new(place.clone()), replica.unwrap(), StandbyOptions::new()).unwrap()
}

#[test]
fn a_checkpoint_is_sent_as_a_snapshot_and_the_log_before_it_is_deleted() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, briefly()).unwrap();
    let database = uuid(&db);
    let mut most = 0;
    for round in 1..=6u64 {
        for id in 0..10 {
            db.run(|tx| items.insert(tx, Item { id: 10 * round + id, count: 7 })).unwrap();
        }
        db.run(|tx| items.update(tx, 10, Item::COUNT.add(1))).unwrap();
        assert!(db.checkpoint().unwrap().is_new);
        let (rows, _) = read(&place, database);
        assert_eq!((rows.rows.len() as u64, rows.snapshots), (10 * round, 1));
        assert_eq!(rows.rows[&(1, 10)][0], 7 + round);
        let hashes = rows.rows.iter().map(|((_, key), words)| row_hash(&[*key], words));
        let sum = table_sum("items", hashes.fold(0, u64::wrapping_add));
        let floor = floor(&place);
        assert_eq!((floor.header.kind, floor.header.place), (Kind::Floor, round));
        assert_eq!(floor.payload(), sum.to_le_bytes());
        assert_eq!(names(&place, "snapshot/").len(), 1, "{:?}", place.names());
        // Heartbeats may have come since.
        let covered = format!("log/000000000001/{:012}", floor.header.before.place);
        assert!(names(&place, "log/").iter().all(|name| *name > covered), "{:?}", place.names());
        if round == 2 {
            most = place.names().len();
        }
    }
    assert!(place.names().len() <= most + 20, "{:?}", place.names());
    let verified = tools::verify(Arc::new(place.clone()), Default::default()).unwrap();
    assert_eq!(verified.faults, []);
    // The next opening compares what is there.
    drop((db, items));
    let (db, items) = open(&disk, &place, briefly()).unwrap();
    insert(&db, &items, 1000).unwrap();
    assert_eq!(counts(&place, database).len(), 61);
}

#[test]
fn a_snapshot_of_several_parts_is_announced_behind_the_last() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let log = LogOptions::new().replicate_with(place.handle(1), briefly()).segment_bytes(64 << 10);
    let db = Database::<Occ>::builder().open_on(Arc::new(disk.clone()), log).unwrap();
    let items = db.table::<Item>("items").unwrap();
    for first in (0..12_000).step_by(1000) {
        let put = |id| Item { id, count: 1 };
        db.run(|tx| (first..first + 1000).try_for_each(|id| items.put(tx, put(id)))).unwrap();
    }
    db.checkpoint().unwrap();
    let parts = names(&place, "snapshot/").len();
    assert!(parts > 2, "{parts}");
    assert_eq!(floor(&place).header.part as usize, parts);
    assert_eq!(counts(&place, uuid(&db)).len(), 12_000);
}

#[test]
fn a_snapshot_is_kept_until_there_has_been_a_newer_one_for_some_time() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, quickly().keep(Duration::from_secs(3600))).unwrap();
    for id in 0..3 {
        insert(&db, &items, id).unwrap();
        db.checkpoint().unwrap();
        assert_eq!(names(&place, "snapshot/").len() as u64, id + 1);
    }
    assert_eq!(names(&place, "log/")[0], "log/000000000001/000000000001");
    assert_eq!(counts(&place, uuid(&db)).len(), 3);
}

#[derive(Record, Clone)]
struct Note {
    #[key]
    id: u64,
    text: String,
    bytes: Option<Vec<u8>>,
}

impl Note {
    /// Returns a note with a value that has room in a word, or a block of its own, or with none.
    fn new(id: u64) -> Note {
        let length = [0, 3, 300][id as usize % 3];
        let bytes = (!id.is_multiple_of(4)).then(|| vec![id as u8; length]);
        Note { id, text: "note ".repeat(length), bytes }
    }
}

#[test]
fn standbys_follow_through_snapshots_and_compare_their_sums() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, briefly()).unwrap();
    insert(&db, &items, 0).unwrap();
    let old = follow(&place);
    let others = db.table::<Item>("others").unwrap();
    let notes = db.table::<Note>("notes").unwrap();
    for round in 1..=4u64 {
        for id in 0..20 {
            let note = Note { id, ..Note::new(id + round) };
            db.run(|tx| notes.put(tx, note.clone())).unwrap();
            db.run(|tx| items.put(tx, Item { id: (13 * round + id) % 50, count: 1 })).unwrap();
            db.run(|tx| items.delete_if_present(tx, (7 * round + id) % 50).map(drop)).unwrap();
        }
        db.run(|tx| others.insert(tx, Item { id: round, count: 1 })).unwrap();
        if round == 3 {
            drop(db.table::<Item>("dropped").unwrap());
            db.drop_table("dropped").unwrap();
        }
        db.checkpoint().unwrap();
        assert_eq!(floor(&place).header.place, round);
        assert_eq!(floor(&place).payload().len(), 8, "there is a sum");
        let pending = db.run_logged(|tx| items.put(tx, Item { id: 99, count: round as i64 }));
        let position = pending.position().unwrap();
        pending.wait_for(Level::Replicated).unwrap();
        let new = follow(&place);
        for standby in [&old, &new] {
            let long = Duration::from_secs(120);
            standby.wait_for(position, long).unwrap();
            assert_eq!((standby.failure(), standby.trouble()), (None, None));
            let there = standby.database().table::<Item>("items").unwrap();
            let count = standby.database().read_view(|tx| there.iter(tx, ()).count()).unwrap();
            assert_eq!(count, db.run(|tx| items.iter(tx, ()).count()).unwrap());
        }
    }
    let verified = tools::verify(Arc::new(place.clone()), Default::default()).unwrap();
    assert_eq!(verified.faults, []);
}

#[test]
fn a_directory_with_a_checkpoint_begins_to_replicate_with_it() {
    for rows_behind in [0, 3] {
        let (place, disk) = (SimPlace::new(1), SimDisk::default());
        let (db, items) = open_alone(&disk);
        for id in 0..5 {
            db.run(|tx| items.insert(tx, Item { id, count: 1 })).unwrap();
        }
        db.checkpoint().unwrap();
        for id in 100..100 + rows_behind {
            db.run(|tx| items.insert(tx, Item { id, count: 1 })).unwrap();
        }
        drop((db, items));
        let mut sent = 5 + rows_behind;
        for round in 0..3 {
            let (db, items) = open(&disk, &place, briefly()).unwrap();
            // What was recovered is in the place before anything is acknowledged.
            db.with(replicated()).run(|_| Ok(())).unwrap();
            assert_eq!(counts(&place, uuid(&db)).len() as u64, sent);
            let first = object(&place, "log/000000000001/000000000001");
            assert_eq!(first.header.kind, Kind::Restart);
            insert(&db, &items, 1000 + round).unwrap();
            sent += 1;
            let (rows, _) = read(&place, uuid(&db));
            assert_eq!((rows.rows.len() as u64, rows.snapshots), (sent, 1));
            let standby = follow(&place);
            let position = db.run_logged(|tx| items.update(tx, 0, Item::COUNT.add(1))).position();
            let position = position.unwrap();
            let long = Duration::from_secs(120);
            standby.wait_for(position, long).unwrap();
        }
        // A snapshot covers the restart, too.
        let (db, items) = open(&disk, &place, briefly()).unwrap();
        insert(&db, &items, 2000).unwrap();
        db.checkpoint().unwrap();
        assert_eq!(names(&place, "log/000000000001/").len(), 1, "only the end stays");
        assert_eq!(counts(&place, uuid(&db)).len() as u64, sent + 1);
    }
}

#[test]
fn checkpoints_of_a_database_that_was_opened_without_its_place_are_sent() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, briefly()).unwrap();
    let database = uuid(&db);
    insert(&db, &items, 0).unwrap();
    drop((db, items));
    for round in 1..=3u64 {
        let (db, items) = open_alone(&disk);
        db.run(|tx| items.insert(tx, Item { id: 10 * round, count: 0 })).unwrap();
        db.checkpoint().unwrap();
        db.run(|tx| items.insert(tx, Item { id: 10 * round + 1, count: 0 })).unwrap();
        drop((db, items));
        let old = read(&place, database).1;
        let (db, items) = open(&disk, &place, briefly()).unwrap();
        insert(&db, &items, 10 * round + 2).unwrap();
        assert_eq!(counts(&place, database).len() as u64, 1 + 3 * round);
        // A reader that was at the end of the former log goes on, too.
        let mut rows = Rows::default();
        let patience = candide_reach::Patience::default();
        let mut follower =
            candide_reach::Follower::new(Arc::new(place.clone()), database, old, patience);
        while follower.step(&mut rows).unwrap() != candide_reach::Progress::Nothing {}
        assert_eq!((rows.rows.len() as u64, rows.snapshots), (1 + 3 * round, 1));
    }
}

#[test]
fn commits_of_a_checkpoint_that_another_leader_lacks_are_not_dropped() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, quickly()).unwrap();
    let database = uuid(&db);
    insert(&db, &items, 1).unwrap();
    drop((db, items));
    let (db, items) = open_alone(&disk);
    db.run(|tx| items.insert(tx, Item { id: 2, count: 0 })).unwrap();
    db.checkpoint().unwrap();
    drop((db, items));
    let _next = crate::claim_elsewhere(&place, database);
    for options in [quickly(), quickly().take_over()] {
        let names = place.names();
        let refused = open(&disk, &place, options).unwrap_err();
        assert!(matches!(refused, OpenError::Diverged { .. }), "{refused}");
        assert_eq!(place.names(), names);
    }
}

#[test]
fn a_place_that_lags_too_much_gets_a_snapshot_and_checkpoints_do_not_wait() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, briefly().replicate_backlog(2000)).unwrap();
    let database = uuid(&db);
    insert(&db, &items, 0).unwrap();
    let standby = follow(&place);
    let primary = place.handle(1);
    for round in 0..2 {
        primary.cut(Direction::Requests, true);
        let soon = || RunOptions::new().deadline(Instant::now() + Duration::from_millis(50));
        let mut id = 1000 * (round + 1);
        let refused = loop {
            match db.with(soon()).run(|tx| items.insert(tx, Item { id, count: 0 })) {
                Ok(()) => id += 1,
                Err(refused) => break refused,
            }
        };
        assert_eq!(refused, Abort::DeadlinePassed);
        assert!(db.checkpoint().unwrap().is_new);
        assert!(!db.checkpoint().unwrap().is_new, "it contains all");
        primary.cut(Direction::Requests, false);
        let pending = db.run_logged(|tx| items.insert(tx, Item { id: round, count: 0 }));
        let _ = pending.wait_for(Level::Replicated);
        let pending = db.run_logged(|tx| items.update(tx, 0, Item::COUNT.add(1)));
        let position = pending.position().unwrap();
        pending.wait_for(Level::Replicated).unwrap();
        let here = db.run(|tx| items.iter(tx, ()).count()).unwrap();
        assert_eq!(counts(&place, database).len(), here);
        let long = Duration::from_secs(120);
        standby.wait_for(position, long).unwrap();
        let restarts = |name: &String| object(&place, name).header.kind == Kind::Restart;
        assert!(names(&place, "log/").iter().any(restarts), "the place got the log");
        // The next checkpoint is an ordinary one.
        insert(&db, &items, 500 + round).unwrap();
        db.checkpoint().unwrap();
        assert!(!names(&place, "log/").iter().any(restarts));
        assert_eq!(floor(&place).payload().len(), 8);
    }
    drop((db, items));
    let (db, items) = open(&disk, &place, briefly()).unwrap();
    insert(&db, &items, 5000).unwrap();
    let here = db.run(|tx| items.iter(tx, ()).count()).unwrap();
    assert_eq!(counts(&place, database).len(), here);
}

#[test]
fn a_leader_whose_floors_are_sealed_deletes_nothing() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) =
        open(&disk, &place, briefly().replicate_every(Duration::from_secs(60))).unwrap();
    let database = uuid(&db);
    insert(&db, &items, 1).unwrap();
    insert(&db, &items, 2).unwrap();
    // Another process has sealed the floors, and not ended the log yet.
    let header = candide_reach::object::Header {
        number: 2,
        ..candide_reach::object::Header::new(Kind::Seal, database, 1, 1)
    };
    place.create("floor/000000000001/000000000001", &header.encode(&[], &[])).unwrap();
    let before = names(&place, "log/");
    db.checkpoint().unwrap();
    assert!(names(&place, "log/").starts_with(&before), "{:?}", place.names());
    assert_eq!(names(&place, "floor/").len(), 1);
    assert_eq!(insert(&db, &items, 3), Err(Abort::LogFailed));
    assert!(db.log_failure().unwrap().to_string().contains("generation 2"));
}
