//! Databases whose logs are in places: what the place has, who leads, and what waits.

#![forbid(unsafe_code)]

mod alone;
mod bad_input;
mod crashes;
mod failing;
mod holding;
mod promoted;
mod refusing;
mod rows;
mod snapshots;
mod under_way;

use candide::{Abort, Database, Level, LogOptions, Occ, OpenError, Record, RunOptions, Table};
use candide_log_testing::SimDisk;
use candide_reach::sim::{Direction, Faults, SimPlace};
use candide_reach::{Claim, Directory, Leader, Patience, ReachError};
use candide_reach::{Place, Replicate, ReplicateOptions, random_number};
use rows::{Rows, counts, read};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Item {
    #[key]
    id: u64,
    count: i64,
}

const UNANSWERED: Faults = Faults { lost: 100, ..Faults::NONE };

fn quickly() -> ReplicateOptions {
    ReplicateOptions::new().replicate_every(Duration::from_millis(1))
}

fn open(
    disk: &SimDisk,
    place: &SimPlace,
    options: ReplicateOptions,
) -> Result<(Database, Table<Item>), OpenError> {
    let log = LogOptions::new().replicate_with(place.handle(1), options);
    let db = Database::<Occ>::builder().open_on(Arc::new(disk.clone()), log)?;
    let items = db.table::<Item>("items").unwrap();
    Ok((db, items))
}

fn replicated() -> RunOptions<'static> {
    RunOptions::new().acknowledge(Level::Replicated)
}

fn uuid(db: &Database) -> [u8; 16] {
    db.run_logged(|_| Ok(())).position().unwrap().database
}

fn insert(db: &Database, items: &Table<Item>, id: u64) -> Result<(), Abort> {
    db.with(replicated()).run(|tx| items.insert(tx, Item { id, count: id as i64 }))
}

/// Claims the place as another directory does. Returns the leader and the rows that it has read.
fn claim_with_rows(place: &SimPlace, database: [u8; 16]) -> (Leader, Rows) {
    let claim = Claim {
        database,
        number: random_number(),
        earlier: &[],
        against_others: true,
        position: None,
        patience: Patience::default(),
    };
    let mut rows = Rows::default();
    let leader = Leader::claim(Arc::new(place.clone()), &claim, &mut rows).unwrap();
    (leader, rows)
}

fn claim_elsewhere(place: &SimPlace, database: [u8; 16]) -> Leader {
    claim_with_rows(place, database).0
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
fn what_is_acknowledged_is_in_the_place() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, ReplicateOptions::new()).unwrap();
    let database = uuid(&db);
    for id in 1..=20 {
        insert(&db, &items, id).unwrap();
        let there = counts(&place, database);
        assert_eq!(there.len() as u64, id);
        assert_eq!(there[&id], id as i64);
    }
    let others = db.table::<Item>("others").unwrap();
    db.with(replicated()).run(|tx| others.insert(tx, Item { id: 99, count: 7 })).unwrap();
    let pending = db.run_logged(|tx| items.update(tx, 1, Item::COUNT.add(5)));
    let position = pending.position().unwrap();
    pending.wait_for(Level::Replicated).unwrap();
    let (rows, _) = read(&place, database);
    assert_eq!(rows.tables.values().collect::<Vec<_>>(), ["items", "others"]);
    assert_eq!((rows.rows[&(1, 1)][0], rows.rows[&(2, 99)][0]), (6, 7));
    assert!(rows.own == rows.generation && rows.cut >= position.stamp);
}

#[test]
fn threads_share_objects() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, ReplicateOptions::new()).unwrap();
    let database = uuid(&db);
    thread::scope(|scope| {
        for thread in 0..4 {
            let (db, items) = (&db, &items);
            scope.spawn(move || {
                for number in 0..25 {
                    insert(db, items, thread * 100 + number).unwrap();
                }
            });
        }
    });
    assert_eq!(counts(&place, database).len(), 100);
}

#[test]
fn a_reopened_primary_leads_again_and_sends_what_the_place_lacks() {
    let (place, mut disk) = (SimPlace::new(1), SimDisk::default());
    let mut database = [0; 16];
    for round in 0..5 {
        let (db, items) = open(&disk, &place, ReplicateOptions::new()).unwrap();
        database = uuid(&db);
        insert(&db, &items, 10 * round).unwrap();
        db.run(|tx| items.insert(tx, Item { id: 10 * round + 1, count: 0 })).unwrap();
        if round % 2 == 0 {
            drop((db, items));
        } else {
            // The process ends without a close: its directory is as it is now.
            disk = disk.at(disk.position());
            drop((db, items));
        }
        // Alone, the database goes on.
        let db = Database::<Occ>::builder().open_on(Arc::new(disk.clone()), LogOptions::new());
        let db = db.unwrap();
        let items = db.table::<Item>("items").unwrap();
        db.run(|tx| items.insert(tx, Item { id: 10 * round + 2, count: 0 })).unwrap();
    }
    let (db, items) = open(&disk, &place, ReplicateOptions::new()).unwrap();
    insert(&db, &items, 1000).unwrap();
    let here = db.run(|tx| items.iter(tx, Item::COUNT).count()).unwrap();
    assert_eq!((here, counts(&place, database).len()), (16, 16));
}

#[test]
fn an_acknowledgement_behind_a_recovered_tail_has_a_position_that_readers_reach() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, quickly()).unwrap();
    insert(&db, &items, 1).unwrap();
    place.handle(1).cut(Direction::Requests, true);
    db.run(|tx| items.insert(tx, Item { id: 2, count: 2 })).unwrap();
    let log = LogOptions::new().replicate_with(place.handle(2), quickly());
    let copy = Arc::new(disk.at(disk.position()));
    let db = Database::<Occ>::builder().open_on(copy, log).unwrap();
    let pending = db.run_logged(|_| Ok(()));
    let position = pending.position().unwrap();
    pending.wait_for(Level::Replicated).unwrap();
    let (rows, _) = read(&place, uuid(&db));
    assert_eq!(rows.rows.len(), 2);
    assert!(rows.own == rows.generation && rows.cut >= position.stamp, "{position:?}");
    place.handle(1).cut(Direction::Requests, false);
}

#[test]
fn a_killed_primary_finds_its_acknowledged_transactions_in_the_place() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, ReplicateOptions::new()).unwrap();
    let database = uuid(&db);
    let mut here = Vec::new();
    for id in 0..30 {
        insert(&db, &items, id).unwrap();
        here.push(disk.position());
    }
    drop((db, items));
    for (id, position) in (0..).zip(here).step_by(7) {
        // What was acknowledged up to then is in both.
        let killed = disk.at(position);
        let alone = Database::<Occ>::builder().open_on(Arc::new(killed), LogOptions::new());
        let alone = alone.unwrap();
        let items = alone.table::<Item>("items").unwrap();
        assert!(alone.run(|tx| items.iter(tx, ()).count()).unwrap() > id);
    }
    assert_eq!(counts(&place, database).len(), 30);
}

#[test]
fn a_fenced_primary_acknowledges_nothing_more() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, quickly()).unwrap();
    let database = uuid(&db);
    insert(&db, &items, 1).unwrap();
    let next = claim_elsewhere(&place, database);
    assert_eq!(next.generation(), 2);
    // A reader that would see what may have been overwritten elsewhere.
    let read = db.with(replicated()).run(|tx| items.read(tx, 1, Item::COUNT));
    assert_eq!(read, Err(Abort::LogFailed));
    assert_eq!(insert(&db, &items, 2), Err(Abort::LogFailed));
    let failure = db.log_failure().unwrap().to_string();
    assert!(failure.contains("generation 2"), "{failure}");
    let memory = RunOptions::new().acknowledge(Level::Memory);
    assert_eq!(db.with(memory).run(|tx| items.read(tx, 1, Item::COUNT)), Ok(1));
    assert_eq!(counts(&place, database), BTreeMap::from([(1, 1)]));
}

/// Without a transaction that waits, a primary notices by its heartbeat that it is fenced.
#[test]
fn an_idle_primary_is_fenced_by_its_heartbeat() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, ReplicateOptions::new()).unwrap();
    insert(&db, &items, 1).unwrap();
    let before = read(&place, uuid(&db)).0.blocks;
    eventually(|| read(&place, uuid(&db)).0.blocks > before + 1);
    let _next = claim_elsewhere(&place, uuid(&db));
    eventually(|| db.log_failure().is_some());
}

#[test]
fn a_restarted_primary_does_not_claim_against_another_one() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, ReplicateOptions::new()).unwrap();
    let database = uuid(&db);
    insert(&db, &items, 1).unwrap();
    drop((db, items));
    let copy = disk.at(disk.position());
    let next = claim_elsewhere(&place, database);
    let (names, files) = (place.names(), disk.operations().len());
    let Err(OpenError::Led { generation: 2, since, last_block: None }) =
        open(&disk, &place, ReplicateOptions::new())
    else {
        panic!("it opens, or not for this reason");
    };
    assert!(since > 0);
    assert_eq!((place.names(), disk.operations().len()), (names, files), "something was changed");
    // The other one goes on.
    let block = candide_reach::Block { cut: 9, stamp_generation: 9, ..Default::default() };
    next.send(&next.offer(&block).unwrap()).unwrap();
    // Unless an operator says so.
    let (db, items) = open(&copy, &place, ReplicateOptions::new().take_over()).unwrap();
    insert(&db, &items, 2).unwrap_or_else(|abort| panic!("{abort}: {:?}", db.log_failure()));
    assert!(matches!(
        next.send(&next.offer(&block).unwrap()),
        Err(ReachError::Superseded { by: 3, .. })
    ));
}

/// A read may miss what exists. A directory knows how many generations there have been at least.
#[test]
fn a_claim_that_cannot_be_read_yet_is_not_taken_for_none() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    for id in 1..=2 {
        let (db, items) = open(&disk, &place, ReplicateOptions::new()).unwrap();
        insert(&db, &items, id).unwrap();
    }
    let claim = "claim/000000000002";
    let bytes = place.read(claim).unwrap();
    place.damage(claim, None);
    match open(&disk, &place, ReplicateOptions::new()) {
        Err(OpenError::Remote(error)) => {
            let what = error.to_string();
            assert!(what.contains("claim/000000000002 cannot be read yet"), "{what}");
        }
        other => panic!("{other:?}"),
    }
    place.damage(claim, bytes);
    let (db, items) = open(&disk, &place, ReplicateOptions::new()).unwrap();
    insert(&db, &items, 3).unwrap();
}

#[test]
fn commits_that_are_only_here_are_neither_dropped_nor_merged() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, ReplicateOptions::new()).unwrap();
    let database = uuid(&db);
    insert(&db, &items, 1).unwrap();
    drop((db, items));
    let db = Database::<Occ>::builder().open_on(Arc::new(disk.clone()), LogOptions::new());
    let db = db.unwrap();
    let items = db.table::<Item>("items").unwrap();
    for id in 2..=4 {
        db.run(|tx| items.insert(tx, Item { id, count: 0 })).unwrap();
    }
    drop((db, items));
    let _next = claim_elsewhere(&place, database);
    for options in [ReplicateOptions::new(), ReplicateOptions::new().take_over()] {
        let names = place.names();
        let Err(OpenError::Diverged { what }) = open(&disk, &place, options) else {
            panic!("it opens, or not for this reason");
        };
        assert!(what.contains("3 transactions are only here"), "{what}");
        assert_eq!(place.names(), names);
    }
}

#[test]
fn of_two_copies_of_a_directory_the_second_is_told_that_the_first_leads() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, ReplicateOptions::new()).unwrap();
    insert(&db, &items, 1).unwrap();
    drop((db, items));
    let copy = disk.at(disk.position());
    let (db, items) = open(&copy, &place, ReplicateOptions::new()).unwrap();
    insert(&db, &items, 2).unwrap();
    let led = open(&disk, &place, ReplicateOptions::new());
    assert!(matches!(led, Err(OpenError::Led { generation: 2, .. })), "{led:?}");
    insert(&db, &items, 3).unwrap();
}

#[test]
fn a_place_that_cannot_be_used_is_an_error_with_the_way_out() {
    let disk = SimDisk::default();
    let refused = |disk: &SimDisk, place: &SimPlace| match open(disk, place, quickly()) {
        Err(OpenError::Remote(error)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let unconditional = SimPlace::new(1);
    unconditional.set_faults(Faults { unconditional: 100, ..Faults::default() });
    assert!(refused(&disk, &unconditional).contains("two creations of one name"));
    let (first, other) = (SimPlace::new(1), SimPlace::new(2));
    let (db, items) = open(&SimDisk::default(), &first, quickly()).unwrap();
    insert(&db, &items, 1).unwrap();
    // A new directory, and one of another database.
    assert!(refused(&SimDisk::default(), &first).contains("this directory is new"));
    let own = SimDisk::default();
    drop(open(&own, &other, quickly()).unwrap());
    assert!(refused(&own, &first).contains("another database"));
    // The log was in a place, and this one is empty.
    assert!(refused(&own, &SimPlace::new(3)).contains("the place is empty"));
    // The place is away.
    other.set_faults(UNANSWERED);
    let names = own.operations().len();
    assert!(refused(&own, &other).contains("not answered"));
    assert_eq!(own.operations().len(), names);
    let error = open(&own, &other, quickly()).unwrap_err().to_string();
    assert!(error.contains("open the database alone"), "{error}");
    other.set_faults(Faults::default());
    let (db, items) = open(&own, &other, quickly()).unwrap();
    insert(&db, &items, 1).unwrap();
}

#[test]
fn a_place_that_is_away_delays_only_those_that_wait_for_it() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, quickly().replicate_backlog(2000)).unwrap();
    insert(&db, &items, 0).unwrap();
    let primary = place.handle(1);
    primary.cut(Direction::Requests, true);
    // Up to the backlog, commits go on.
    let soon = || Instant::now() + Duration::from_millis(50);
    let update = || {
        db.with(RunOptions::new().deadline(soon()))
            .run(|tx| items.update(tx, 0, Item::COUNT.add(1)))
    };
    let waits = db.with(replicated().deadline(soon())).run(|tx| items.read(tx, 0, Item::COUNT));
    assert_eq!(waits, Err(Abort::OutcomeUnknown));
    let mut done = 0;
    let refused = loop {
        match update() {
            Ok(()) => done += 1,
            Err(refused) => break refused,
        }
        assert!(done < 1000, "there is no end of the backlog");
    };
    assert!(done > 10, "{done}");
    assert_eq!(refused, Abort::DeadlinePassed);
    assert_eq!(db.run(|tx| items.read(tx, 0, Item::COUNT)), Ok(done));
    // It comes back.
    primary.cut(Direction::Requests, false);
    db.with(replicated()).run(|tx| items.update(tx, 0, Item::COUNT.add(1))).unwrap();
    assert_eq!(counts(&place, uuid(&db)), BTreeMap::from([(0, done + 1)]));
}

/// With every fault that a place may have, what is acknowledged is there.
#[test]
fn faults_of_a_place_lose_nothing() {
    for seed in 0..20 {
        let (place, disk) = (SimPlace::new(seed), SimDisk::default());
        let (db, items) = open(&disk, &place, quickly()).unwrap();
        let faults = Faults {
            lost: 10,
            unanswered: 10,
            late: 5,
            twice: 10,
            old_list: 10,
            missed: 10,
            ..Faults::default()
        };
        place.set_faults(faults);
        for id in 0..20 {
            insert(&db, &items, id).unwrap();
        }
        place.set_faults(Faults::default());
        assert_eq!(counts(&place, uuid(&db)).len(), 20, "seed {seed}");
    }
}

#[test]
fn a_checkpoint_waits_for_the_place_and_the_next_opening_compares_only_the_rest() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, quickly()).unwrap();
    let database = uuid(&db);
    for round in 0..3 {
        for id in 0..10 {
            db.run(|tx| items.insert(tx, Item { id: 10 * round + id, count: 0 })).unwrap();
        }
        assert!(db.checkpoint().unwrap().is_new);
        assert_eq!(counts(&place, database).len() as u64, 10 * (round + 1));
    }
    drop((db, items));
    let (db, items) = open(&disk, &place, quickly()).unwrap();
    insert(&db, &items, 100).unwrap();
    assert_eq!(counts(&place, database).len(), 31);
}

#[test]
fn a_directory_is_a_place() {
    let path: PathBuf =
        std::env::temp_dir().join(format!("candide-reach-primary-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    let log = || LogOptions::new().replicate(Directory::new(path.join("place")).unwrap());
    for round in 0..3 {
        let db = Database::<Occ>::builder().open(path.join("db"), log()).unwrap();
        let items = db.table::<Item>("items").unwrap();
        insert(&db, &items, round).unwrap();
        assert_eq!(db.run(|tx| items.iter(tx, ()).count()), Ok(round as usize + 1));
    }
    std::fs::remove_dir_all(path).unwrap();
}

/// The place takes one object after another when the test says so. Each has the blocks of one
/// segment of the local log.
#[test]
fn a_heartbeat_does_not_acknowledge_what_the_place_lacks() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let permits = Arc::new(Mutex::new(usize::MAX));
    let gate = permits.clone();
    let gated = place.with_hook(move |_| {
        loop {
            let mut left = gate.lock().unwrap();
            if *left > 0 {
                *left -= usize::from(*left != usize::MAX);
                return;
            }
            drop(left);
            thread::sleep(Duration::from_millis(1));
        }
    });
    let (db, items) = open(&disk, &gated, quickly().objects_under_way(1)).unwrap();
    let database = uuid(&db);
    insert(&db, &items, 0).unwrap();
    *permits.lock().unwrap() = 0;
    for id in 1..=100 {
        db.run(|tx| items.insert(tx, Item { id, count: 0 })).unwrap();
    }
    let pending = db.run_logged(|tx| items.insert(tx, Item { id: 101, count: 0 }));
    db.sync().unwrap();
    let before = read(&place, database).0.blocks;
    // The first may have begun earlier.
    *permits.lock().unwrap() = 2;
    eventually(|| read(&place, database).0.blocks == before + 2);
    thread::sleep(Duration::from_millis(50));
    let (there, is_told) = (counts(&place, database).len(), pending.is_at(Level::Replicated));
    // First, since the close waits for the place.
    *permits.lock().unwrap() = usize::MAX;
    assert!(there < 102, "{there}");
    assert!(!is_told, "the place has not got it");
    pending.wait_for(Level::Replicated).unwrap();
    assert_eq!(counts(&place, database).len(), 102);
}
