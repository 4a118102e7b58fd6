//! Standbys that are opened again: what their readers see, and what is known of earlier leaders.

use crate::primary::{Account, LONG, Primary, follow, rows, sim};
use candide::{Database, Level, LogOptions, Mvcc, Occ, Position, Record, RunOptions};
use candide_log::format::catalog::{Catalog, CatalogKind};
use candide_log_testing::SimDisk;
use candide_reach::object::Object;
use candide_reach::sim::SimPlace;
use candide_reach::{
    Block, Directory, Place, Promoted, Replicate, Standby, StandbyError, StandbyOptions, WaitError,
    belongs_to,
};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn readers_do_not_go_back_behind_a_snapshot_that_is_interrupted() {
    let sim = SimPlace::new(1);
    let place: Arc<dyn Place> = Arc::new(sim.clone());
    let mut primary = Primary::new(Arc::clone(&place));
    primary.change(0);
    primary.snapshot();
    let older = kept(&sim, "snapshot/");
    let position = primary.change(1);
    let disk = SimDisk::new();
    let standby = follow(&place, &disk).unwrap();
    standby.wait_for(position, LONG).unwrap();
    let (shown, seen) = (standby.applied(), primary.accounts());
    standby.database().sync().unwrap();
    drop(standby);
    primary.change(2);
    primary.snapshot();
    let position = primary.change(3);
    let begun = disk.position();
    follow(&place, &disk).unwrap().wait_for(position, LONG).unwrap();
    let ended = disk.position();
    // The place does not show the newer snapshot for a while.
    let generation = format!("floor/{:012}/", position.generation - 1);
    let newest: Vec<_> = kept(&sim, &generation);
    assert!(!newest.is_empty());
    let (mut refused, mut went_on) = (0, 0);
    for at in begun..=ended {
        let disk = disk.at(at);
        newest.iter().for_each(|(name, _)| sim.damage(name, None));
        older.iter().for_each(|(name, bytes)| sim.damage(name, bytes.clone()));
        for _ in 0..2 {
            match follow(&place, &disk) {
                Ok(standby) => {
                    assert!(standby.applied() >= shown, "{at}: {:?}", standby.applied());
                    if standby.applied() == shown {
                        let accounts = standby.database().table::<Account>("accounts").unwrap();
                        assert_eq!(rows(standby.database(), &accounts), seen);
                    }
                    went_on += 1;
                }
                Err(StandbyError::Behind { shown: of, found }) => {
                    assert!(of >= shown && found < of, "{at}: {of:?} {found:?}");
                    refused += 1;
                }
                Err(other) => panic!("{at}: {other}"),
            }
        }
        newest.iter().for_each(|(name, bytes)| sim.damage(name, bytes.clone()));
        let standby = follow(&place, &disk).unwrap();
        standby.wait_for(position, LONG).unwrap();
        let accounts = standby.database().table::<Account>("accounts").unwrap();
        assert_eq!(rows(standby.database(), &accounts), primary.accounts());
    }
    assert!(refused > 0 && went_on > 0, "{refused} {went_on}");
}

#[test]
fn readers_do_not_go_back_when_the_log_goes_on_behind_another_state() {
    let place = sim(3);
    let mut primary = Primary::new(Arc::clone(&place));
    primary.change(0);
    let position = primary.change(1);
    let (standby, expected) = (follow(&place, &SimDisk::new()).unwrap(), primary.accounts());
    standby.wait_for(position, LONG).unwrap();
    let accounts = standby.database().table::<Account>("accounts").unwrap();
    let leader = primary.leader.as_ref().unwrap();
    let first = format!("log/{:012}/{:012}", leader.generation(), 1);
    let first = Object::decode(place.read(&first).unwrap().unwrap()).unwrap();
    let catalog = Catalog::decode(first.catalog()).unwrap().unwrap();
    let kind = CatalogKind::Whole { own: 9, behind: (9, 9), is_anew: false };
    let catalog = Catalog { kind, ..catalog }.encode().unwrap();
    let block = Block { cut: 10, stamp_generation: 9, catalog: &catalog, payload: b"" };
    leader.send(&leader.offer(&block).unwrap()).unwrap();
    let end = Instant::now() + LONG;
    let what = "the log goes on behind (9, 9)";
    while standby.trouble().is_none_or(|trouble| !trouble.contains(what)) {
        assert!(Instant::now() < end, "{:?}", standby.trouble());
        assert_eq!(rows(standby.database(), &accounts), expected);
    }
    let end = Instant::now() + Duration::from_millis(300);
    while Instant::now() < end {
        assert_eq!(rows(standby.database(), &accounts), expected);
    }
    assert_eq!(standby.failure(), None);
    // A snapshot of a later object is of use.
    primary.snapshot();
    let end = Instant::now() + LONG;
    while standby.applied() < (position.generation, leader_place(&primary)) {
        assert!(Instant::now() < end, "{:?}", standby.trouble());
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(rows(standby.database(), &accounts), expected);
}

fn leader_place(primary: &Primary) -> u64 {
    primary.leader.as_ref().unwrap().acknowledged()
}

/// Returns the objects whose names begin so.
fn kept(place: &SimPlace, begin: &str) -> Vec<(String, Option<Vec<u8>>)> {
    let names = place.names().into_iter().filter(|name| name.starts_with(begin));
    names.map(|name| (name.clone(), place.read(&name).unwrap())).collect()
}

#[test]
fn a_standby_that_restarts_knows_what_earlier_leaders_have_reached() {
    let place = sim(2);
    let mut primary = Primary::new(Arc::clone(&place));
    let positions: Vec<Position> = (0..3).map(|seed| primary.change(seed)).collect();
    let disk = SimDisk::new();
    let standby = follow(&place, &disk).unwrap();
    standby.wait_for(positions[2], LONG).unwrap();
    let check = |standby: &Standby| {
        for (number, position) in positions.iter().enumerate() {
            assert_eq!(standby.wait_for(*position, Duration::ZERO), Ok(()));
            let later = Position { stamp: position.stamp + 1_000, ..*position };
            if number < 2 {
                assert_eq!(standby.wait_for(later, Duration::ZERO), Err(WaitError::Lost));
            }
        }
    };
    check(&standby);
    standby.database().sync().unwrap();
    drop(standby);
    for _ in 0..2 {
        check(&follow(&place, &disk).unwrap());
    }
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Item {
    #[key]
    id: u64,
    count: i64,
}

#[test]
fn a_look_at_a_promoted_standby_leaves_its_tables_as_they_are() {
    let path = std::env::temp_dir().join(format!("candide-look-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    let place = || Directory::new(path.join("place")).unwrap();
    let replicated = || RunOptions::new().acknowledge(Level::Replicated);
    let db = Database::<Occ>::builder()
        .open(path.join("primary"), LogOptions::new().replicate(place()))
        .unwrap();
    let items = db.table::<Item>("items").unwrap();
    db.with(replicated()).run(|tx| items.insert(tx, Item { id: 1, count: 1 })).unwrap();
    let database = db.run_logged(|_| Ok(())).position().unwrap().database;
    let dir = path.join("standby");
    let standby = Standby::follow(place(), &dir, StandbyOptions::new()).unwrap();
    let Promoted { database: db2, leader } = standby.promote().unwrap();
    let others = db2.table::<Item>("others").unwrap();
    db2.with(replicated()).run(|tx| others.insert(tx, Item { id: 2, count: 2 })).unwrap();
    drop((others, db2, leader));
    assert!(belongs_to(&dir, database).unwrap());
    assert!(!belongs_to(&dir, [1; 16]).unwrap());
    let db2 = Database::<Mvcc>::builder().open(&dir, LogOptions::new().replicate(place())).unwrap();
    let others = db2.table::<Item>("others").unwrap();
    assert_eq!(db2.run(|tx| others.read(tx, 2, Item::COUNT)), Ok(2));
    drop((others, db2, items, db));
    std::fs::remove_dir_all(path).unwrap();
}
