//! Standbys that cannot follow.

use crate::primary::{Account, LONG, PATIENCE, Primary, follow, rows, sim};
use candide::{Database, LogOptions, Mvcc};
use candide_log_testing::SimDisk;
use candide_reach::{ReachError, Standby, StandbyError, StandbyOptions, WaitError};
use std::sync::Arc;

#[test]
fn a_place_without_a_database_is_refused() {
    let refused = follow(&sim(1), &SimDisk::new()).unwrap_err();
    assert!(matches!(refused, StandbyError::Nothing), "{refused}");
}

#[test]
fn a_directory_that_has_followed_another_database_is_told_so_at_once() {
    let (place, other) = (sim(6), sim(7));
    let (mut primary, disk) = (Primary::new(Arc::clone(&place)), SimDisk::new());
    let position = primary.change(0);
    follow(&place, &disk).unwrap().wait_for(position, LONG).unwrap();
    // An empty place may be one whose disk is not mounted.
    assert!(matches!(follow(&other, &disk), Err(StandbyError::Nothing)));
    let mut stranger = Primary::new(Arc::clone(&other));
    let elsewhere = stranger.change(1);
    let StandbyError::Reach(refused) = follow(&other, &disk).unwrap_err() else { panic!() };
    let ReachError::OtherDatabase { name, found } = &refused else { panic!("{refused}") };
    assert_eq!((&name[..6], *found), ("claim/", elsewhere.database));
    let standby = follow(&place, &disk).unwrap();
    let position = primary.change(2);
    standby.wait_for(position, LONG).unwrap();
    let accounts = standby.database().table::<Account>("accounts").unwrap();
    assert_eq!(rows(standby.database(), &accounts), primary.accounts());
}

#[test]
fn a_standby_without_memory_stops_and_says_so() {
    let place = sim(2);
    let mut primary = Primary::new(Arc::clone(&place));
    let position = primary.work(|db| {
        let accounts = db.table::<Account>("accounts").unwrap();
        db.run(|tx| accounts.put(tx, Account { id: 0, owner: 0, cents: 0 })).unwrap();
    });
    let builder = Database::<Mvcc>::builder().memory_limit(8 << 20);
    let replica = builder.follow_on(Arc::new(SimDisk::new()), LogOptions::new()).unwrap();
    let options = StandbyOptions::new().patience(PATIENCE);
    let standby = Standby::of(Arc::clone(&place), replica, options).unwrap();
    standby.wait_for(position, LONG).unwrap();
    let accounts = standby.database().table::<Account>("accounts").unwrap();
    let position = primary.work(|db| {
        let accounts = db.table::<Account>("accounts").unwrap();
        for first in (0..80_000).step_by(1_000) {
            let put = |id| Account { id, owner: 1, cents: 1 };
            db.run(|tx| (first..first + 1_000).try_for_each(|id| accounts.put(tx, put(id))))
                .unwrap();
        }
    });
    let stopped = standby.wait_for(position, LONG).unwrap_err();
    assert!(matches!(&stopped, WaitError::Stopped(what) if what.contains("memory limit")));
    assert!(standby.failure().unwrap().contains("memory limit"));
    // Its readers go on.
    let sum = || standby.database().read_view(|tx| accounts.sum(tx, Account::OWNER)).unwrap();
    assert_eq!(sum() % 1_000, 0, "a part of a transaction is seen");
    assert_eq!(sum(), sum());
    assert!(matches!(standby.promote(), Err(StandbyError::Stopped(_))));
}

#[test]
fn a_standby_whose_rows_differ_stops_and_names_the_object() {
    for (seed, wrong) in [(3, 0), (4, 1)] {
        let place = sim(seed);
        let mut primary = Primary::new(Arc::clone(&place));
        let (position, disk) = (primary.change(0), SimDisk::new());
        let standby = follow(&place, &disk).unwrap();
        standby.wait_for(position, LONG).unwrap();
        primary.change(1);
        let position = primary.change(2);
        standby.wait_for(position, LONG).unwrap();
        let place_of = primary.leader.as_ref().unwrap().acknowledged();
        primary.snapshot_with(wrong);
        // The next block names the floor.
        let next = primary.change(3);
        let waited = standby.wait_for(next, LONG);
        let after = primary.change(4);
        let waited = waited.and_then(|()| standby.wait_for(after, LONG));
        if wrong == 0 {
            assert_eq!(waited, Ok(()));
        } else {
            let failure = standby.failure().expect("the sums differ");
            let what = format!(
                "the rows after object {place_of} of generation {} differ",
                position.generation
            );
            assert!(failure.starts_with(&what), "{failure}");
            // Another opening does not go on with these rows.
            drop(standby);
            let refused = follow(&place, &disk).unwrap_err().to_string();
            assert!(refused.contains("has other rows than the leader had"), "{refused}");
        }
    }
}

#[test]
fn a_snapshot_whose_rows_differ_from_its_sum_is_refused() {
    let place = sim(5);
    let mut primary = Primary::new(Arc::clone(&place));
    primary.change(0);
    primary.snapshot_with(1);
    let disk = SimDisk::new();
    for _ in 0..2 {
        let refused = follow(&place, &disk).unwrap_err().to_string();
        assert!(refused.contains("differ from the leader's"), "{refused}");
    }
}
