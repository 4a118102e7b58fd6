//! Databases that are made from a place, and checks of what it has.

use crate::primary::{Account, LONG, PATIENCE, Primary, follow, rows, sim};
use candide::{Database, LogOptions, Mvcc, OpenError};
use candide_log_testing::SimDisk;
use candide_reach::sim::SimPlace;
use candide_reach::tools::verify;
use candide_reach::{Place, StandbyError, StandbyOptions, belongs_to, restore};
use std::path::PathBuf;
use std::sync::Arc;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("candide-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

#[test]
fn a_restored_database_has_what_the_place_has_and_leaves_it_as_it_is() {
    let place = SimPlace::new(1);
    let shared: Arc<dyn Place> = Arc::new(place.clone());
    let mut primary = Primary::new(Arc::clone(&shared));
    primary.change(0);
    let dir = folder("restored");
    for (round, has_snapshot) in [(1, false), (2, true)] {
        if has_snapshot {
            primary.snapshot();
        }
        primary.change(round);
        let names = place.names();
        let options = || StandbyOptions::new().patience(PATIENCE);
        let restored = restore(place.clone(), &dir, options()).unwrap();
        assert_eq!(place.names(), names, "the place has changed");
        let leader = primary.leader.as_ref().unwrap();
        assert_eq!(restored.position, leader.position());
        assert!(belongs_to(&dir, restored.database).unwrap());
        assert!(!belongs_to(&dir, [1; 16]).unwrap());
        let again = restore(place.clone(), &dir, options()).unwrap_err();
        assert!(again.to_string().contains("a database already"), "{again}");
        // Any program opens it and writes.
        let db = Database::<Mvcc>::builder().open(&dir, LogOptions::new()).unwrap();
        let accounts = db.table::<Account>("accounts").unwrap();
        assert_eq!(rows(&db, &accounts), primary.accounts());
        db.run(|tx| accounts.put(tx, Account { id: 1_000, owner: 1, cents: 1 })).unwrap();
        drop((db, accounts));
        std::fs::remove_dir_all(&dir).unwrap();
    }
    let nothing = restore(SimPlace::new(2), &dir, StandbyOptions::new().patience(PATIENCE));
    assert!(matches!(nothing, Err(StandbyError::Nothing)));
    assert!(!dir.exists());
    let absent = belongs_to(&dir, [1; 16]);
    assert!(matches!(absent, Err(StandbyError::Open(OpenError::Io { .. }))), "{absent:?}");
}

#[test]
fn a_floor_whose_sum_is_not_that_of_its_rows_is_named() {
    for wrong in [0, 1] {
        let place = sim(3);
        let mut primary = Primary::new(Arc::clone(&place));
        primary.change(0);
        let position = primary.change(1);
        let standby = follow(&place, &SimDisk::new()).unwrap();
        standby.wait_for(position, LONG).unwrap();
        primary.snapshot_with(wrong);
        let faults = verify(Arc::clone(&place), PATIENCE).unwrap().faults;
        match (wrong, &faults[..]) {
            (0, []) => {}
            (1, [(name, what)]) => {
                assert_eq!(name, "floor/000000000002/000000000001");
                assert!(what.contains("the sum of the rows of its snapshot is "), "{what}");
            }
            _ => panic!("{faults:?}"),
        }
    }
}
