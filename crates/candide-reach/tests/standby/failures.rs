//! Standbys that cannot follow.

use crate::primary::{Account, LONG, PATIENCE, Primary, follow, sim};
use candide::{Database, LogOptions, Mvcc};
use candide_log_testing::SimDisk;
use candide_reach::{Standby, StandbyError, StandbyOptions, WaitError};
use std::sync::Arc;

#[test]
fn a_place_without_a_database_is_refused() {
    let refused = follow(&sim(1), &SimDisk::new()).unwrap_err();
    assert!(matches!(refused, StandbyError::Nothing), "{refused}");
}

#[test]
fn a_standby_without_memory_stops_and_says_so() {
    let place = sim(2);
    let mut primary = Primary::new(Arc::clone(&place));
    let (generation, stamp) = primary.change(0);
    let builder = Database::<Mvcc>::builder().memory_limit(8 << 20);
    let replica = builder.follow_on(Arc::new(SimDisk::new()), LogOptions::new()).unwrap();
    let options = StandbyOptions::new().patience(PATIENCE);
    let standby = Standby::of(Arc::clone(&place), replica, options).unwrap();
    standby.wait_for(generation, stamp, LONG).unwrap();
    let accounts = standby.database().table::<Account>("accounts").unwrap();
    let before = standby.database().read_view(|tx| accounts.sum(tx, Account::CENTS)).unwrap();
    let (generation, stamp) = primary.work(|db| {
        let accounts = db.table::<Account>("accounts").unwrap();
        for first in (0..80_000).step_by(1_000) {
            let put = |id| Account { id, owner: 0, cents: 1 };
            db.run(|tx| (first..first + 1_000).try_for_each(|id| accounts.put(tx, put(id))))
                .unwrap();
        }
    });
    let stopped = standby.wait_for(generation, stamp, LONG).unwrap_err();
    assert!(matches!(&stopped, WaitError::Stopped(what) if what.contains("memory limit")));
    assert!(standby.failure().unwrap().contains("memory limit"));
    // Its readers go on.
    let after = standby.database().read_view(|tx| accounts.sum(tx, Account::CENTS)).unwrap();
    assert_eq!(before, after);
    assert!(matches!(standby.promote(), Err(StandbyError::Stopped(_))));
}
