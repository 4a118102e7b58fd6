//! Directories, places and protocols that do not fit.

use crate::refusing::Refusing;
use crate::snapshots::{briefly, follow, names};
use crate::{Item, eventually, insert, open, quickly};
use candide::{Database, Error, LogOptions, Mvcc, Occ, OpenError, TicToc};
use candide_log_testing::SimDisk;
use candide_reach::sim::SimPlace;
use candide_reach::{Directory, PlaceError, Replicate, Standby, StandbyError, StandbyOptions};
use std::fs;
use std::sync::Arc;
use std::thread;

#[test]
fn a_protocol_whose_log_cannot_be_read_in_order_is_refused() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let log = LogOptions::new().replicate_with(place.handle(1), quickly());
    let refused = Database::<TicToc>::builder().open_on(Arc::new(disk.clone()), log).unwrap_err();
    let OpenError::Target(refused) = refused else { panic!("{refused}") };
    let refused = refused.downcast_ref();
    assert!(matches!(refused, Some(Error::NoReadableCut { protocol: "tictoc" })), "{refused:?}");
    assert_eq!((place.calls(), disk.operations().len()), (0, 0));
}

#[test]
fn a_place_that_may_not_be_listed_or_written_to_is_refused_by_name() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, quickly()).unwrap();
    insert(&db, &items, 1).unwrap();
    drop((db, items));
    let before = place.names();
    let open_with = |place: &Refusing| {
        let log = LogOptions::new().replicate_with(place.clone(), quickly());
        Database::<Occ>::builder().open_on(Arc::new(disk.clone()), log)
    };
    let no_writes = Refusing::new(&place);
    no_writes.refuse(Some(("", PlaceError::Refused("no right to write".to_string()))));
    let no_lists = Refusing::new(&place).without_lists();
    for (refusing, what) in [(&no_writes, "no right to write"), (&no_lists, "no right to list")] {
        let refused = open_with(refusing).unwrap_err();
        assert!(matches!(&refused, OpenError::Remote(_)), "{refused}");
        assert!(refused.to_string().contains(what), "{refused}");
        assert_eq!(place.names(), before);
    }
    let followed = Arc::new(no_lists);
    let standby = Standby::follow_on(followed, Arc::new(SimDisk::new()), StandbyOptions::new());
    let refused = standby.unwrap_err().to_string();
    assert!(refused.contains("no right to list"), "{refused}");
    no_writes.refuse(None);
    open_with(&no_writes).unwrap();
}

#[test]
fn a_place_and_a_directory_in_one_another_are_refused() {
    let folder = format!("candide-reach-apart-{}", std::process::id());
    let all = std::env::temp_dir().join(folder);
    fs::create_dir_all(all.join("inside")).unwrap();
    let (place, dir) = (all.join("place"), all.join("database"));
    let open = |place: &std::path::Path, dir: &std::path::Path| {
        let log = LogOptions::new().replicate_with(Directory::new(place).unwrap(), quickly());
        Database::<Mvcc>::builder().open(dir, log)
    };
    let files = |path: &std::path::Path| {
        let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.filter(|name| name != "LOCK" && name != ".tmp").collect();
        names.sort();
        names
    };
    drop(open(&place, &dir).unwrap());
    for (wrong, of) in [(&place, &place), (&dir, &dir), (&dir.join("place"), &dir)] {
        let before = files(of);
        let refused = open(wrong, of).unwrap_err();
        assert!(matches!(&refused, OpenError::Remote(_)), "{refused}");
        assert!(refused.to_string().contains("are in one another"), "{refused}");
        fs::remove_dir_all(dir.join("place")).unwrap_or_default();
        assert_eq!(files(of), before);
    }
    let before = files(&place);
    for of in [&place, &place.join("standby")] {
        let place = Directory::new(&place).unwrap();
        let refused = Standby::follow(place, of, StandbyOptions::new()).unwrap_err();
        assert!(matches!(&refused, StandbyError::Open(OpenError::Remote(_))), "{refused}");
    }
    fs::remove_dir_all(place.join("standby")).unwrap();
    assert_eq!(files(&place), before);
    drop(open(&place, &dir).unwrap());
    fs::remove_dir_all(all).unwrap();
}

#[test]
fn a_checkpoint_that_the_place_has_not_got_is_told_and_the_next_one_is_sent() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let refusing = Refusing::new(&place);
    let log = LogOptions::new().replicate_with(refusing.clone(), briefly());
    let db = Database::<Occ>::builder().open_on(Arc::new(disk), log).unwrap();
    let items = db.table::<Item>("items").unwrap();
    let failure = || db.durability().unwrap().remote_checkpoint_failure;
    insert(&db, &items, 1).unwrap();
    assert_eq!(failure(), None);
    // A place that is full is asked again.
    refusing.refuse(Some(("snapshot/", PlaceError::Refused("no room".to_string()))));
    thread::scope(|scope| {
        let made = scope.spawn(|| db.checkpoint());
        eventually(|| failure().is_some_and(|what| what.contains("no room")));
        assert!(!made.is_finished());
        refusing.refuse(None);
        assert!(made.join().unwrap().unwrap().is_new);
    });
    assert_eq!((failure(), names(&place, "floor/").len()), (None, 1));
    // What cannot succeed is left to the next checkpoint, and the log stays.
    refusing.refuse(Some(("floor/", PlaceError::Broken("not a folder".to_string()))));
    insert(&db, &items, 2).unwrap();
    assert!(db.checkpoint().unwrap().is_new);
    assert!(failure().is_some_and(|what| what.contains("not a folder")));
    assert_eq!(names(&place, "floor/").len(), 1);
    insert(&db, &items, 3).unwrap();
    let count = |standby: &Standby| {
        let there = standby.database().table::<Item>("items").unwrap();
        standby.database().read_view(|tx| there.iter(tx, ()).count()).unwrap()
    };
    let standby = follow(&place);
    eventually(|| count(&standby) == 3);
    refusing.refuse(None);
    assert!(db.checkpoint().unwrap().is_new);
    assert_eq!((failure(), names(&place, "floor/").len()), (None, 2));
}
