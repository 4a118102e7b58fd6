//! Standbys that follow, stop, and follow again.

use crate::primary::{Account, LONG, Primary, fall_back, follow, rows, sim};
use candide::{Abort, Position};
use candide_log_testing::SimDisk;
use candide_reach::{Directory, Place, Standby, StandbyOptions, WaitError};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_standby_has_what_the_primary_has() {
    let place = sim(1);
    let mut primary = Primary::new(Arc::clone(&place));
    primary.change(0);
    let disk = SimDisk::new();
    let standby = follow(&place, &disk).unwrap();
    let accounts = standby.database().table::<Account>("accounts").unwrap();
    for seed in 1..5 {
        let position = primary.change(seed);
        standby.wait_for(position, LONG).unwrap();
        assert_eq!(rows(standby.database(), &accounts), primary.accounts());
    }
    let refused = standby.database().run(|tx| accounts.delete(tx, 1));
    assert_eq!(refused, Err(Abort::ReadOnly));
    assert_eq!(standby.failure(), None);
}

#[test]
fn a_standby_goes_on_where_it_has_ended() {
    let place = sim(2);
    let mut primary = Primary::new(Arc::clone(&place));
    let disk = SimDisk::new();
    for seed in 0..5 {
        primary.change(seed);
        let position = primary.change(seed + 10);
        let standby = follow(&place, &disk).unwrap();
        standby.wait_for(position, LONG).unwrap();
        let accounts = standby.database().table::<Account>("accounts").unwrap();
        assert_eq!(rows(standby.database(), &accounts), primary.accounts());
    }
}

#[test]
fn a_standby_begins_with_the_newest_snapshot_and_falls_back_to_it() {
    fall_back(&sim(3), |standby, primary| {
        let accounts = standby.database().table::<Account>("accounts").unwrap();
        assert_eq!(rows(standby.database(), &accounts), primary.accounts());
    });
}

#[test]
fn a_running_standby_keeps_its_handles_when_it_falls_back() {
    let place = sim(4);
    let mut primary = Primary::new(Arc::clone(&place));
    let position = primary.change(0);
    let standby = follow(&place, &SimDisk::new()).unwrap();
    standby.wait_for(position, LONG).unwrap();
    let accounts = standby.database().table::<Account>("accounts").unwrap();
    for seed in 1..4 {
        // The standby may come too late for some of the blocks.
        primary.change(seed);
        primary.snapshot();
        primary.change(seed + 10);
        primary.snapshot();
        let position = primary.change(seed + 20);
        standby.wait_for(position, LONG).unwrap();
        assert_eq!(rows(standby.database(), &accounts), primary.accounts());
    }
}

#[test]
fn a_standby_follows_a_directory() {
    let path = std::env::temp_dir().join(format!("candide-standby-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    let place = Directory::new(path.join("place")).unwrap();
    let mut primary = Primary::new(place.another().unwrap());
    let position = primary.change(1);
    let standby = Standby::follow(place, path.join("standby"), StandbyOptions::new()).unwrap();
    standby.wait_for(position, LONG).unwrap();
    let accounts = standby.database().table::<Account>("accounts").unwrap();
    assert_eq!(rows(standby.database(), &accounts), primary.accounts());
    drop((standby, accounts));
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn a_wait_ends_when_the_time_has_passed_or_the_transaction_is_lost() {
    let place = sim(5);
    let mut primary = Primary::new(Arc::clone(&place));
    let position = primary.change(0);
    let standby = follow(&place, &SimDisk::new()).unwrap();
    standby.wait_for(position, LONG).unwrap();
    let short = Duration::from_millis(20);
    let later = Position { stamp: position.stamp + 1_000, ..position };
    assert_eq!(standby.wait_for(later, short), Err(WaitError::Timeout));
    let next = primary.change(1);
    standby.wait_for(next, LONG).unwrap();
    assert_eq!(standby.wait_for(later, LONG), Err(WaitError::Lost));
    let elsewhere = Position { database: [7; 16], ..position };
    assert_eq!(standby.wait_for(elsewhere, LONG), Err(WaitError::OtherDatabase));
    assert_eq!(standby.wait_for(position, LONG), Ok(()));
}

#[test]
fn records_above_the_cut_wait_for_it_across_restarts() {
    let place = sim(6);
    let mut primary = Primary::new(Arc::clone(&place));
    let position = primary.change(0);
    let before = primary.accounts();
    let disk = SimDisk::new();
    let standby = follow(&place, &disk).unwrap();
    standby.wait_for(position, LONG).unwrap();
    primary.keeps_cut = true;
    let position = primary.change(1);
    let sent = (position.generation, primary.leader.as_ref().unwrap().acknowledged());
    let is_applied = |standby: &Standby| {
        while standby.applied() < sent {
            std::thread::yield_now();
        }
        let accounts = standby.database().table::<Account>("accounts").unwrap();
        assert_eq!(rows(standby.database(), &accounts), before);
    };
    is_applied(&standby);
    standby.database().sync().unwrap();
    drop(standby);
    let standby = follow(&place, &disk).unwrap();
    is_applied(&standby);
    primary.send_cut();
    standby.wait_for(position, LONG).unwrap();
    let accounts = standby.database().table::<Account>("accounts").unwrap();
    assert_eq!(rows(standby.database(), &accounts), primary.accounts());
}
