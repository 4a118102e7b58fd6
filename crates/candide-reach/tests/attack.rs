//! Interleavings that could break what is promised of places, leaders and standbys.

#![cfg(feature = "engine")]

use candide::{
    Abort, Database, Level, LogOptions, Mvcc, Occ, OpenError, Record, RunOptions, Table,
};
use candide_log::format::commit::records;
use candide_log_testing::{Fault, SimDisk};
use candide_reach::object::{Header, Kind, Object};
use candide_reach::sim::SimPlace;
use candide_reach::{Block, Claim, Created, Follower, Leader, Patience, Place, PlaceError};
use candide_reach::{Position, Progress, Promoted, Receiver, Refusal, Replicate, ReplicateOptions};
use candide_reach::{
    Standby, StandbyError, StandbyOptions, WaitError, probe, random_number, restore,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(120);
const PATIENCE: Patience = Patience { calls: 3, pause: Duration::ZERO, pause_max: Duration::ZERO };

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Item {
    #[key]
    id: u64,
    count: i64,
}

/// A handle of a place which can refuse creations, and hide objects.
#[derive(Clone, Debug)]
struct Gate {
    place: SimPlace,
    /// What is found while the place is not mounted.
    empty: SimPlace,
    doors: Arc<Mutex<Doors>>,
}

#[derive(Debug, Default)]
struct Doors {
    /// What the names begin with that are refused.
    refused: Option<String>,
    /// Once this was created, everything is refused.
    last: Option<String>,
    /// Objects that are not found.
    hidden: BTreeSet<String>,
    /// Objects whose reads have no answer.
    silent: BTreeSet<String>,
    is_unmounted: bool,
    /// Whether each new object seems to have been there.
    seems_old: bool,
}

impl Gate {
    fn new(place: &SimPlace) -> Gate {
        Gate { place: place.clone(), empty: SimPlace::new(0), doors: Arc::default() }
    }

    fn place(&self) -> &SimPlace {
        if self.doors.lock().unwrap().is_unmounted { &self.empty } else { &self.place }
    }

    fn set(&self, set: impl FnOnce(&mut Doors)) {
        set(&mut self.doors.lock().unwrap());
    }

    fn check(&self, name: &str) -> Result<(), PlaceError> {
        let doors = self.doors.lock().unwrap();
        match &doors.refused {
            Some(begin) if name.starts_with(begin) => Err(PlaceError::Refused(name.to_string())),
            _ => Ok(()),
        }
    }
}

impl Place for Gate {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, PlaceError> {
        self.check(name)?;
        let created = self.place().create(name, bytes);
        let mut doors = self.doors.lock().unwrap();
        if doors.last.as_deref() == Some(name) {
            doors.refused = Some(String::new());
        }
        if doors.seems_old { created.map(|_| Created::Exists) } else { created }
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, PlaceError> {
        let doors = self.doors.lock().unwrap();
        if doors.refused.as_deref() == Some("") {
            return Err(PlaceError::Refused(name.to_string()));
        }
        if doors.silent.contains(name) {
            return Err(PlaceError::Unknown(name.to_string()));
        }
        if doors.hidden.contains(name) {
            return Ok(None);
        }
        drop(doors);
        self.place().read(name)
    }

    fn list(&self, prefix: &str, after: &str) -> Result<Vec<String>, PlaceError> {
        let mut names = self.place().list(prefix, after)?;
        names.retain(|name| !self.doors.lock().unwrap().hidden.contains(name));
        Ok(names)
    }

    fn delete(&self, name: &str) -> Result<(), PlaceError> {
        self.check(name)?;
        self.place().delete(name)
    }

    fn wait(&self, name: &str, _: Duration) -> Result<bool, PlaceError> {
        Ok(self.read(name)?.is_some())
    }

    fn another(&self) -> Result<Arc<dyn Place>, PlaceError> {
        Ok(Arc::new(self.clone()))
    }
}

fn quickly() -> ReplicateOptions {
    ReplicateOptions::new().replicate_every(Duration::from_millis(1)).keep(Duration::ZERO)
}

fn replicated() -> RunOptions<'static> {
    RunOptions::new().acknowledge(Level::Replicated)
}

fn open(
    disk: &SimDisk,
    place: &(impl Place + Clone + 'static),
    options: ReplicateOptions,
) -> Result<(Database, Table<Item>), OpenError> {
    let log = LogOptions::new().replicate_with(place.clone(), options);
    let db = Database::<Occ>::builder().open_on(Arc::new(disk.clone()), log)?;
    let items = db.table::<Item>("items").unwrap();
    Ok((db, items))
}

fn insert(db: &Database, items: &Table<Item>, id: u64) -> Result<(), Abort> {
    db.with(replicated()).run(|tx| items.insert(tx, Item { id, count: id as i64 }))
}

fn add(db: &Database<Mvcc>, items: &Table<Item, Mvcc>, id: u64) -> Result<(), Abort> {
    db.with(replicated()).run(|tx| items.insert(tx, Item { id, count: id as i64 }))
}

fn follow(place: &SimPlace, disk: &SimDisk) -> Result<Standby, StandbyError> {
    let options = StandbyOptions::new().patience(PATIENCE).replicate(quickly());
    Standby::follow_on(Arc::new(place.clone()), Arc::new(disk.clone()), options)
}

/// Returns the position of the transaction that has inserted a row.
fn position(db: &Database, items: &Table<Item>, id: u64) -> candide::Position {
    db.run_logged(|tx| items.read(tx, id, Item::COUNT)).position().unwrap()
}

fn eventually(is_so: impl Fn() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "it does not become so");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the keys that a new standby finds in a place.
fn ids(place: &SimPlace) -> Vec<u64> {
    let standby = follow(place, &SimDisk::new()).unwrap();
    let last = |standby: &Standby| {
        while standby.trouble().is_none() {
            let applied = standby.applied();
            thread::sleep(Duration::from_millis(300));
            if standby.applied() == applied {
                return;
            }
        }
    };
    last(&standby);
    ids_of(&standby)
}

fn ids_of(standby: &Standby) -> Vec<u64> {
    let db = standby.database();
    let items = db.table::<Item>("items").unwrap();
    let read = db.read_view(|tx| items.iter(tx, ()).collect::<Result<Vec<_>, _>>());
    let mut ids: Vec<u64> = read.unwrap().into_iter().map(|(id, ())| id).collect();
    ids.sort_unstable();
    ids
}

fn copy(place: &SimPlace) -> SimPlace {
    let to = SimPlace::new(1);
    for name in place.names() {
        to.damage(&name, place.read(&name).unwrap());
    }
    to
}

fn object(place: &SimPlace, name: &str) -> Object {
    Object::decode(place.read(name).unwrap().unwrap()).unwrap()
}

fn names(place: &SimPlace, prefix: &str) -> Vec<String> {
    place.names().into_iter().filter(|name| name.starts_with(prefix)).collect()
}

#[test]
fn a_primary_leads_again_that_was_killed_after_a_checkpoint_beside_reads() {
    let (place, mut disk) = (SimPlace::new(1), SimDisk::default());
    for round in 1..=10 {
        let handle = Gate::new(&place);
        let (db, items) = open(&disk, &handle, quickly()).unwrap_or_else(|error| panic!("{error}"));
        insert(&db, &items, round).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                // Each is an append without a record.
                while !is_over.load(Ordering::Relaxed) {
                    db.with(replicated()).run(|tx| items.read(tx, round, Item::COUNT)).unwrap();
                }
            });
            db.checkpoint().unwrap();
            is_over.store(true, Ordering::Relaxed);
        });
        disk = disk.at(disk.position());
        handle.set(|doors| doors.refused = Some(String::new()));
    }
}

#[test]
fn a_restart_after_a_promotion_has_all_that_the_place_had() {
    let (place, second) = (SimPlace::new(2), SimDisk::default());
    let (db, former) = {
        let log = LogOptions::new().replicate_with(place.clone(), quickly());
        let disk = Arc::new(SimDisk::default());
        let db = Database::<Occ>::builder().open_on(disk, log).unwrap();
        let former = db.table::<Item>("former").unwrap();
        (db, former)
    };
    insert(&db, &former, 1).unwrap();
    let images = Arc::new(Mutex::new(Vec::new()));
    let watched = {
        let (place, second, images) = (place.clone(), second.clone(), images.clone());
        place.clone().with_hook(move |_| {
            // The first request of the new leader. Objects may be deleted meanwhile.
            let names = place.names();
            let last = names.iter().rfind(|name| name.starts_with("log/"));
            let last = last.and_then(|name| place.read(name).unwrap());
            let is_end = |bytes| Object::decode(bytes).unwrap().header.kind == Kind::End;
            let is_closed = last.is_some_and(is_end);
            if is_closed {
                images.lock().unwrap().push((second.at(second.position()), copy(&place)));
            }
        })
    };
    let standby = follow(&watched, &second).unwrap();
    standby.wait_for(position(&db, &former, 1), LONG).unwrap();
    drop(former);
    db.drop_table("former").unwrap();
    eventually(|| standby.database().table::<Item>("former").is_err());
    // The number is free again, but not in the directory of the standby.
    db.checkpoint().unwrap();
    let items = db.table::<Item>("items").unwrap();
    insert(&db, &items, 1).unwrap();
    standby.wait_for(position(&db, &items, 1), LONG).unwrap();
    // The standby makes a checkpoint of its own, and the primary goes on.
    standby.database().checkpoint().unwrap();
    for id in 2..=5 {
        insert(&db, &items, id).unwrap();
    }
    let Promoted { database: db2, .. } = standby.promote().unwrap();
    let there = db2.table::<Item>("items").unwrap();
    add(&db2, &there, 10).unwrap();
    drop((db2, there, items, db));
    assert_eq!(object(&place, "log/000000000002/000000000001").header.kind, Kind::Restart);
    assert_eq!(ids(&place), [1, 2, 3, 4, 5, 10]);
    // As if the directory had been opened again when the new primary had died before its first
    // object, and again behind that.
    let (second, early) = images.lock().unwrap().swap_remove(0);
    let gate = Gate::new(&early);
    gate.set(|doors| doors.refused = Some("log/000000000003/000000000002".to_string()));
    let log = LogOptions::new().replicate_with(gate, quickly());
    let db3 = Database::<Mvcc>::builder().open_on(Arc::new(second), log).unwrap();
    eventually(|| !names(&early, "log/000000000003/").is_empty());
    std::mem::forget(db3);
    assert_eq!(ids(&early), [1, 2, 3, 4, 5]);
    // As if the new primary had died behind its first object.
    for name in names(&place, "log/000000000002/").into_iter().skip(1) {
        place.damage(&name, None);
    }
    assert_eq!(ids(&place), [1, 2, 3, 4, 5]);
}

#[test]
fn a_take_over_that_has_failed_does_not_replace_what_another_leader_has_acknowledged() {
    let (place, disk) = (SimPlace::new(3), SimDisk::default());
    let (db, items) = open(&disk, &place, quickly()).unwrap();
    insert(&db, &items, 0).unwrap();
    drop((db, items));
    let standby = follow(&place, &SimDisk::default()).unwrap();
    let Promoted { database: db2, .. } = standby.promote().unwrap();
    let there = db2.table::<Item>("items").unwrap();
    eventually(|| !names(&place, "log/000000000002/").is_empty());
    let gate = Gate::new(&place);
    gate.set(|doors| doors.last = Some("claim/000000000003".to_string()));
    assert!(open(&disk, &gate, quickly().take_over()).is_err());
    // The other one still leads.
    add(&db2, &there, 100).unwrap();
    let alone = quickly().replicate_backlog(1000).open_alone();
    let (db, items) = open(&disk, &place, alone).unwrap();
    for id in 1..=50 {
        db.run(|tx| items.insert(tx, Item { id, count: 0 })).unwrap();
    }
    assert!(db.checkpoint().unwrap().is_new);
    drop((db, items));
    let opened = open(&disk, &place, quickly());
    assert!(matches!(opened, Err(OpenError::Diverged { .. })), "{opened:?}");
    assert_eq!(ids(&place), [0, 100]);
}

#[test]
fn a_commit_that_waited_for_its_cut_and_was_dropped_is_only_here() {
    let (place, disk) = (SimPlace::new(4), SimDisk::default());
    let gate = Gate::new(&place);
    let (db, items) = open(&disk, &gate, quickly()).unwrap();
    insert(&db, &items, 0).unwrap();
    insert(&db, &items, 1).unwrap();
    gate.set(|doors| doors.refused = Some(String::new()));
    let disk = disk.at(disk.position());
    // The place has the last commit, and not the cut that closes it.
    let has_records = |name: &String| !object(&place, name).payload().is_empty();
    let name = names(&place, "log/").into_iter().rfind(has_records).unwrap();
    for later in names(&place, "log/").into_iter().filter(|later| *later > name) {
        place.damage(&later, None);
    }
    let last = object(&place, &name);
    let words = last.payload().as_chunks::<8>().0.iter();
    let words: Vec<u64> = words.map(|word| u64::from_le_bytes(*word)).collect();
    let stamp = records(&words).next().unwrap().unwrap().stamp;
    let header = Header { cut: stamp - 1, ..last.header };
    place.damage(&name, Some(header.encode(last.catalog(), last.payload())));
    let standby = follow(&place, &SimDisk::default()).unwrap();
    let Promoted { database: db2, .. } = standby.promote().unwrap();
    let there = db2.table::<Item>("items").unwrap();
    add(&db2, &there, 2).unwrap();
    assert_eq!(ids(&place), [0, 2]);
    let opened = open(&disk, &place, quickly());
    assert!(matches!(opened, Err(OpenError::Diverged { .. })), "{opened:?}");
}

#[test]
fn a_standby_that_restarts_leaves_out_records_of_dropped_tables() {
    let (place, disk) = (SimPlace::new(5), SimDisk::default());
    let (db, items) = open(&disk, &place, quickly()).unwrap();
    let others = db.table::<Item>("others").unwrap();
    insert(&db, &items, 0).unwrap();
    insert(&db, &others, 0).unwrap();
    drop((db, items, others));
    let (db, items) = open(&disk, &place, quickly().open_alone()).unwrap();
    let others = db.table::<Item>("others").unwrap();
    db.run(|tx| others.insert(tx, Item { id: 1, count: 1 })).unwrap();
    drop(others);
    db.drop_table("others").unwrap();
    db.run(|tx| items.insert(tx, Item { id: 1, count: 1 })).unwrap();
    drop((db, items));
    // The first object of a leader has all tables, and what was written before comes behind it.
    let gate = Gate::new(&place);
    gate.set(|doors| doors.refused = Some("log/000000000002/000000000002".to_string()));
    let (db, items) = open(&disk, &gate, quickly()).unwrap();
    let second = SimDisk::default();
    let standby = follow(&place, &second).unwrap();
    eventually(|| standby.applied() == (2, 1));
    drop(standby);
    gate.set(|doors| doors.refused = None);
    insert(&db, &items, 2).unwrap();
    let standby = follow(&place, &second).unwrap();
    assert_eq!(standby.wait_for(position(&db, &items, 2), LONG), Ok(()));
    assert_eq!(ids_of(&standby), [0, 1, 2]);
    assert_eq!(standby.failure(), None);
}

#[test]
fn what_a_primary_sends_after_a_restart_is_not_lost() {
    let (place, disk) = (SimPlace::new(6), SimDisk::default());
    let gate = Gate::new(&place);
    let (db, items) = open(&disk, &gate, quickly()).unwrap();
    insert(&db, &items, 0).unwrap();
    let standby = follow(&place, &SimDisk::default()).unwrap();
    gate.set(|doors| doors.refused = Some(String::new()));
    let pending = db.run_logged(|tx| items.insert(tx, Item { id: 1, count: 1 }));
    let early = pending.position().unwrap();
    pending.wait().unwrap();
    let disk = disk.at(disk.position());
    std::mem::forget((db, items));
    let (db, items) = open(&disk, &place, quickly()).unwrap();
    insert(&db, &items, 2).unwrap();
    assert_eq!(standby.wait_for(early, LONG), Ok(()));
    assert_eq!(standby.wait_for(position(&db, &items, 2), LONG), Ok(()));
    let never = candide::Position { stamp: early.stamp + 1_000_000, ..early };
    assert_eq!(standby.wait_for(never, LONG), Err(WaitError::Lost));
    assert_eq!(ids_of(&standby), [0, 1, 2]);
}

#[test]
fn rows_of_a_restart_that_was_interrupted_are_not_mixed_with_earlier_objects() {
    let (place, second) = (SimPlace::new(12), SimDisk::default());
    let gate = Gate::new(&place);
    let (db, items) = open(&SimDisk::default(), &gate, quickly().replicate_backlog(1000)).unwrap();
    insert(&db, &items, 0).unwrap();
    let standby = follow(&place, &second).unwrap();
    standby.wait_for(position(&db, &items, 0), LONG).unwrap();
    gate.set(|doors| doors.refused = Some("log/".to_string()));
    let item = |id| Item { id, count: 0 };
    db.run(|tx| (1..=4_000).try_for_each(|id| items.insert(tx, item(id)))).unwrap();
    thread::sleep(Duration::from_millis(30));
    db.checkpoint().unwrap();
    let begun = second.position();
    gate.set(|doors| doors.refused = None);
    insert(&db, &items, 5_000).unwrap();
    standby.wait_for(position(&db, &items, 5_000), LONG).unwrap();
    standby.database().sync().unwrap();
    let ended = second.position();
    drop((standby, db, items));
    // The place does not show the restart, and what comes behind it, for a while.
    let early = copy(&place);
    let is_restart = |name: &&String| object(&place, name).header.kind == Kind::Restart;
    let restart = names(&place, "log/").iter().find(is_restart).unwrap().clone();
    let hidden = names(&place, "log/").into_iter().filter(|name| *name >= restart);
    hidden.chain(names(&place, "floor/")).for_each(|name| early.damage(&name, None));
    let mut found = BTreeSet::new();
    for at in begun..=ended {
        let standby = follow(&early, &second.at(at)).unwrap();
        let ids = ids_of(&standby);
        assert!([1, 4_001, 4_002].contains(&ids.len()), "{at}: {} rows", ids.len());
        found.insert(ids.len());
    }
    assert!(found.len() > 1, "{found:?}");
}

/// A receiver that notes where it is.
#[derive(Default)]
struct Places(Vec<u64>);

impl Receiver for Places {
    fn begin(&mut self, _: &Object) -> Result<(), Refusal> {
        Ok(())
    }

    fn part(&mut self, part: &Object) -> Result<(), Refusal> {
        self.0.push(part.header.place);
        Ok(())
    }

    fn complete(&mut self) -> Result<(), Refusal> {
        Ok(())
    }

    fn block(&mut self, block: &Object) -> Result<(), Refusal> {
        self.0.push(block.header.place);
        Ok(())
    }
}

#[test]
fn a_follower_that_was_interrupted_within_a_snapshot_does_not_go_back() {
    let place = SimPlace::new(7);
    let claim = Claim {
        database: [7; 16],
        number: random_number(),
        earlier: &[],
        against_others: false,
        position: None,
        patience: PATIENCE,
    };
    let leader = Leader::claim(Arc::new(place.clone()), &claim, &mut ()).unwrap();
    let send = |count| {
        for _ in 0..count {
            leader.send(&leader.offer(&Block::default()).unwrap()).unwrap();
        }
    };
    let snapshot = |at| {
        let mut snapshot = leader.snapshot(at).unwrap();
        snapshot.part(b"", b"").unwrap();
        snapshot.finish(b"").unwrap();
    };
    send(4);
    snapshot(4);
    let gate = Gate::new(&place);
    let mut places = Places::default();
    let mut follower =
        Follower::new(Arc::new(gate.clone()), [7; 16], Position::default(), PATIENCE);
    send(2);
    while follower.step(&mut places).unwrap() != Progress::Nothing {}
    assert_eq!(places.0, [1, 2, 3, 4, 5, 6]);
    send(4);
    snapshot(8);
    // What it needs is gone, and then the place does not answer within the snapshot.
    place.damage("log/000000000001/000000000007", None);
    let part = "snapshot/000000000001/000000000008/00000";
    gate.set(|doors| doors.silent = BTreeSet::from([part.to_string()]));
    follower.step(&mut places).unwrap_err();
    // The place does not show the floor for a while.
    let floor = "floor/000000000001/000000000002";
    gate.set(|doors| doors.hidden = BTreeSet::from([floor.to_string()]));
    gate.set(|doors| doors.silent.clear());
    assert_eq!(follower.step(&mut places).unwrap(), Progress::Nothing);
    gate.set(|doors| doors.hidden.clear());
    assert_eq!(follower.step(&mut places).unwrap(), Progress::Snapshot);
    while follower.step(&mut places).unwrap() != Progress::Nothing {}
    assert_eq!(places.0, [1, 2, 3, 4, 5, 6, 8, 9, 10]);
}

#[test]
fn a_standby_whose_place_is_not_mounted_does_not_lead_in_an_empty_folder() {
    let place = SimPlace::new(9);
    let (db, items) = open(&SimDisk::default(), &place, quickly()).unwrap();
    insert(&db, &items, 1).unwrap();
    let gate = Gate::new(&place);
    let options = StandbyOptions::new().patience(PATIENCE);
    let disk = Arc::new(SimDisk::default());
    let standby = Standby::follow_on(Arc::new(gate.clone()), disk, options).unwrap();
    standby.wait_for(position(&db, &items, 1), LONG).unwrap();
    gate.set(|doors| doors.is_unmounted = true);
    let promoted = standby.promote();
    assert!(promoted.is_err(), "{promoted:?}");
    insert(&db, &items, 2).unwrap();
}

#[test]
fn tables_are_told_of_though_a_checkpoint_has_failed_that_the_place_was_to_get() {
    let mut failures = 0;
    for number in 1..=8 {
        let (place, disk) = (SimPlace::new(10), SimDisk::default());
        let gate = Gate::new(&place);
        let (db, items) = open(&disk, &gate, quickly().replicate_backlog(1000)).unwrap();
        insert(&db, &items, 0).unwrap();
        let standby = follow(&place, &SimDisk::default()).unwrap();
        gate.set(|doors| doors.refused = Some("log/".to_string()));
        db.run(|tx| (1..50).try_for_each(|id| items.insert(tx, Item { id, count: 0 }))).unwrap();
        thread::sleep(Duration::from_millis(30));
        let others = db.table::<Item>("others").unwrap();
        disk.fail(number, Fault::StorageFull);
        failures += u32::from(db.checkpoint().is_err());
        disk.clear_faults();
        gate.set(|doors| doors.refused = None);
        insert(&db, &others, 0).unwrap();
        assert_eq!(standby.wait_for(position(&db, &others, 0), LONG), Ok(()), "{number}");
        assert_eq!(ids_of(&standby).len(), 50);
    }
    assert!(failures > 0);
}

#[test]
fn a_restored_database_that_was_written_to_is_not_made_a_standby() {
    let place = SimPlace::new(11);
    let (db, items) = open(&SimDisk::default(), &place, quickly()).unwrap();
    insert(&db, &items, 1).unwrap();
    let dir = std::env::temp_dir().join(format!("candide-attack-{}", std::process::id()));
    restore(place.clone(), &dir, StandbyOptions::new().patience(PATIENCE)).unwrap();
    let restored = Database::<Mvcc>::builder().open(&dir, LogOptions::new()).unwrap();
    let there = restored.table::<Item>("items").unwrap();
    restored.run(|tx| there.insert(tx, Item { id: 50, count: 0 })).unwrap();
    drop((restored, there));
    let followed = Standby::follow(place, &dir, StandbyOptions::new().patience(PATIENCE));
    assert!(followed.is_err(), "{:?}", ids_of(&followed.unwrap()));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_place_may_say_of_what_a_probe_has_made_that_it_exists() {
    let gate = Gate::new(&SimPlace::new(8));
    // The client of a store repeats requests whose answers are lost.
    gate.set(|doors| doors.seems_old = true);
    assert_eq!(probe(&gate), Ok(()));
}
