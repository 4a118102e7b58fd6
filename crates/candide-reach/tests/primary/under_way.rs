//! Several objects under way, of which the place has later ones and lacks an earlier one.

use crate::crashes::copy;
use crate::holding::Holding;
use crate::rows::counts;
use crate::snapshots::{briefly, follow, names};
use crate::{Item, claim_with_rows, eventually, insert, open, quickly, replicated, uuid};
use candide::{Abort, Database, Level, LogOptions, Occ, OpenError, RunOptions, Table};
use candide_log_testing::SimDisk;
use candide_reach::object::{Kind, Object};
use candide_reach::sim::SimPlace;
use candide_reach::tools::{status, verify};
use candide_reach::{Patience, Place, Replicate, ReplicateOptions};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

fn open_with(
    disk: &SimDisk,
    place: &Holding,
    options: ReplicateOptions,
) -> Result<(Database, Table<Item>), OpenError> {
    let log = LogOptions::new().replicate_with(place.clone(), options);
    let db = Database::<Occ>::builder().open_on(Arc::new(disk.clone()), log)?;
    let items = db.table::<Item>("items").unwrap();
    Ok((db, items))
}

/// Commits rows one after another, for none of which a thread waits, until `is_enough`.
fn commit_until(
    db: &Database,
    items: &Table<Item>,
    mut ids: std::ops::Range<u64>,
    is_enough: impl Fn() -> bool,
) {
    while !is_enough() {
        let id = ids.next().expect("objects are under way");
        db.run(|tx| items.insert(tx, Item { id, count: 0 })).unwrap();
        thread::sleep(Duration::from_millis(2));
    }
}

fn faults(place: &SimPlace) -> Vec<(String, String)> {
    verify(Arc::new(place.clone()), Patience::default()).unwrap().faults
}

/// Returns the place of an object of a log.
fn place_of(name: &str) -> u64 {
    name.rsplit('/').next().unwrap().parse().unwrap()
}

#[test]
fn nothing_is_acknowledged_over_a_gap() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let holding = Holding::new(&place);
    let (db, items) = open_with(&disk, &holding, quickly()).unwrap();
    let database = uuid(&db);
    insert(&db, &items, 0).unwrap();
    let _release = holding.until_dropped();
    holding.hold(1);
    let first = db.run_logged(|tx| items.insert(tx, Item { id: 1, count: 1 }));
    eventually(|| holding.names().len() == 1);
    let gap = holding.names().remove(0);
    let above = || names(&place, "log/").into_iter().filter(|name| *name > gap).count();
    let second = db.run_logged(|tx| items.insert(tx, Item { id: 2, count: 2 }));
    eventually(|| above() == 1);
    // As many as may be under way, and no more.
    commit_until(&db, &items, 10..1000, || above() == 3);
    db.run(|tx| items.insert(tx, Item { id: 3, count: 3 })).unwrap();
    let soon = Instant::now() + Duration::from_millis(50);
    let read = db.with(replicated().deadline(soon)).run(|tx| items.read(tx, 0, Item::COUNT));
    assert_eq!(read, Err(Abort::OutcomeUnknown));
    assert!(!first.is_at(Level::Replicated) && !second.is_at(Level::Replicated));
    assert_eq!(above(), 3);
    // Readers end before the gap, and what is behind is no fault.
    assert_eq!(counts(&place, database).len(), 1);
    assert_eq!(faults(&place), []);
    let last = |place: &SimPlace, generation: u64| {
        let known = status(Arc::new(place.clone()), 9, Patience::default()).unwrap().unwrap();
        let of = known.generations.iter().find(|of| of.number == generation).unwrap();
        of.last.map(|(at, is_end, _)| (at, is_end))
    };
    assert_eq!(last(&place, 1), Some((place_of(&gap) - 1, false)));
    // Of another leader, the end is in the gap.
    let ended = copy(&place);
    let (next, rows) = claim_with_rows(&ended, database);
    assert_eq!((next.generation(), rows.rows.len()), (2, 1));
    assert_eq!(faults(&ended), []);
    assert_eq!(last(&ended, 1), Some((place_of(&gap), true)));
    // So it is of this directory, if it comes back. It sends all again.
    let (again, items_again) = open(&disk.at(disk.position()), &copy(&place), quickly()).unwrap();
    insert(&again, &items_again, 5000).unwrap();
    drop((again, items_again));
    holding.release();
    first.wait_for(Level::Replicated).unwrap();
    second.wait_for(Level::Replicated).unwrap();
    insert(&db, &items, 4).unwrap();
    let here = db.run(|tx| items.iter(tx, ()).count()).unwrap();
    assert_eq!(counts(&place, database).len(), here);
    assert_eq!(faults(&place), []);
}

#[test]
fn no_segment_is_given_back_and_no_position_noted_over_a_gap() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let holding = Holding::new(&place);
    let (db, items) = open_with(&disk, &holding, briefly()).unwrap();
    let database = uuid(&db);
    insert(&db, &items, 0).unwrap();
    let _release = holding.until_dropped();
    holding.hold(1);
    db.run(|tx| items.insert(tx, Item { id: 1, count: 1 })).unwrap();
    eventually(|| holding.names().len() == 1);
    let gap = holding.names().remove(0);
    let above = || names(&place, "log/").into_iter().filter(|name| *name > gap).count();
    let checkpoint = {
        let db = db.clone();
        thread::spawn(move || db.checkpoint().map(|made| made.is_new))
    };
    commit_until(&db, &items, 10..1000, || above() == 3);
    thread::sleep(Duration::from_millis(50));
    assert!(!checkpoint.is_finished(), "the place lacks a part of it");
    assert!(names(&place, "floor/").is_empty() && names(&place, "snapshot/").is_empty());
    // What a crash leaves now leads to all of it.
    let (left, image) = (copy(&place), disk.at(disk.position()));
    let (again, items_again) = open(&image, &left, briefly()).unwrap();
    insert(&again, &items_again, 5000).unwrap();
    let here = again.run(|tx| items_again.iter(tx, ()).count()).unwrap();
    assert_eq!(counts(&left, database).len(), here);
    assert_eq!(faults(&left), []);
    drop((again, items_again));
    holding.release();
    assert_eq!(checkpoint.join().unwrap(), Ok(true));
    insert(&db, &items, 4).unwrap();
    let here = db.run(|tx| items.iter(tx, ()).count()).unwrap();
    assert_eq!(counts(&place, database).len(), here);
    assert_eq!((names(&place, "floor/").len(), faults(&place)), (1, vec![]));
}

#[test]
fn a_restart_waits_for_the_objects_under_way() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let holding = Holding::new(&place);
    let (db, items) = open_with(&disk, &holding, briefly().replicate_backlog(2000)).unwrap();
    let database = uuid(&db);
    insert(&db, &items, 0).unwrap();
    let standby = follow(&place);
    let _release = holding.until_dropped();
    holding.hold(1);
    let soon = || RunOptions::new().deadline(Instant::now() + Duration::from_millis(50));
    let mut ids = 10..;
    let insert_next = || {
        let id = ids.next().unwrap();
        db.with(soon()).run(|tx| items.insert(tx, Item { id, count: 0 }))
    };
    let refused = std::iter::repeat_with(insert_next).find_map(Result::err);
    assert_eq!(refused, Some(Abort::DeadlinePassed));
    assert!(db.checkpoint().unwrap().is_new, "it does not wait");
    let restarts = || {
        let kind = |name: &String| {
            let bytes = place.read(name).unwrap().unwrap();
            Object::decode(bytes).unwrap().header.kind
        };
        names(&place, "log/").iter().filter(|name| kind(name) == Kind::Restart).count()
    };
    thread::sleep(Duration::from_millis(50));
    assert_eq!((restarts(), names(&place, "snapshot/").len()), (0, 0));
    holding.release();
    eventually(|| restarts() == 1 || db.log_failure().is_some());
    assert!(db.log_failure().is_none(), "{:?}", db.log_failure());
    insert(&db, &items, 5).unwrap();
    let here = db.run(|tx| items.iter(tx, ()).count()).unwrap();
    assert_eq!(counts(&place, database).len(), here);
    assert_eq!(faults(&place), []);
    let rows = || {
        let items = standby.database().table::<Item>("items").unwrap();
        standby.database().read_view(|tx| items.iter(tx, ()).count()).unwrap()
    };
    eventually(|| rows() == here);
}

/// What is committed while as many objects as may be are under way is in the next one.
#[test]
fn transactions_that_wait_share_the_next_object() {
    for under_way in [1, 4, 64] {
        let (place, disk) = (SimPlace::new(1), SimDisk::default());
        let holding = Holding::new(&place);
        let options = quickly().objects_under_way(under_way);
        let (db, items) = open_with(&disk, &holding, options).unwrap();
        insert(&db, &items, 0).unwrap();
        let _release = holding.until_dropped();
        holding.hold(usize::MAX);
        commit_until(&db, &items, 100..1000, || holding.names().len() == under_way);
        let commit = |id| db.run_logged(|tx| items.insert(tx, Item { id, count: 0 }));
        let pending: Vec<_> = (1..=64).map(commit).collect();
        db.sync().unwrap();
        assert_eq!(holding.names().len(), under_way);
        let last = place_of(holding.names().last().unwrap());
        let fast = db.run_logged(|tx| items.update(tx, 0, Item::COUNT.add(1)));
        db.sync().unwrap();
        holding.release();
        for pending in pending.into_iter().chain([fast]) {
            pending.wait_for(Level::Replicated).unwrap();
        }
        let count = names(&place, "log/").into_iter().map(|name| place_of(&name)).max().unwrap();
        // Another one may go out for a waiter, or as a sign of life.
        assert!((last + 1..=last + 3).contains(&count), "{under_way}: {last}, {count}");
        assert_eq!(holding.most(), under_way);
    }
}

#[test]
fn a_number_of_objects_out_of_range_is_refused() {
    for count in [0, 65] {
        let (place, disk) = (SimPlace::new(1), SimDisk::default());
        let refused = open(&disk, &place, quickly().objects_under_way(count)).unwrap_err();
        let what = refused.to_string();
        let expected = format!("objects_under_way is {count}; from 1 to 64 objects may be");
        assert!(what.contains(&expected), "{what}");
        assert_eq!((place.calls(), disk.operations().len()), (0, 0));
    }
}
