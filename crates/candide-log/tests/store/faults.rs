//! Operations that fail: at every operation of a script, each kind of failure.

use crate::crashes::{check_crashes, scripts};
use crate::model::{Habits, World};
use crate::support::*;
use candide_log::disk::Disk;
use candide_log::{LogWriter, OpenError, StoreError, WriteError};
use candide_log_testing::{CrashOptions, Fault, SimDisk};
use std::ops::Range;

/// Without reopenings, which would find the fault, too.
const HABITS: Habits = Habits { tables: 8, checkpoints: 10, reopenings: 0, confirmations: 10 };

/// The states that are checked after a fault: those at the end.
fn at_the_end(disk: &SimDisk) -> CrashOptions {
    let first = disk.position().saturating_sub(1);
    CrashOptions { first, exhaustive: 5, pieces: 8, samples: 4, ..CrashOptions::default() }
}

/// Runs scripts with a fault at the n-th operation, for each n until the fault does not occur any
/// more. Calls `check` with each world at its end, and with the result of its last step.
fn at_every_operation(
    fault: Fault,
    seeds: Range<u64>,
    check: impl Fn(&mut World, Result<(), WriteError>),
) {
    for seed in seeds {
        for n in 1.. {
            let mut world = World::new(seed);
            world.disk.fail(n, fault);
            let mut result = Ok(());
            for _ in 0..16 {
                result = world.step(HABITS);
                if result.is_err() {
                    break;
                }
            }
            let has_failed = world.disk.pending_faults() == 0;
            world.disk.clear_faults();
            check(&mut world, result);
            if !has_failed {
                break;
            }
        }
    }
}

/// Checks that after a failure nothing can be written, and that everything that was promised is
/// there after a loss of power, after a kill, and after both.
fn check_wedged(world: &mut World, result: Result<(), WriteError>) {
    if let Err(error) = result {
        let WriteError::Failed(error) = error else { panic!("not full: {error}") };
        let position = world.disk.position();
        let log = &mut world.opened().log;
        let later = [log.write(&[], u64::MAX), log.sync(), log.confirm(), log.prepare()];
        for later in later {
            let WriteError::Failed(later) = later.unwrap_err() else { panic!("not full") };
            assert_eq!(later.to_string(), error.to_string());
        }
        assert!(world.opened().store.checkpoint().is_err());
        assert_eq!(world.disk.position(), position, "nothing is done any more");
    }
    check_crashes(world, &at_the_end(&world.disk));
    // A process that opens it now sees what may not be durable, and makes it so.
    world.close_failed();
    let opened = open(world.disk.clone()).unwrap();
    world.check_killed(&opened, world.disk.position()).unwrap();
    let recovered = (opened.recovered.last_generation, opened.recovered.cut);
    drop(opened);
    for state in world.disk.crash_states(&at_the_end(&world.disk)) {
        let opened =
            open(state.disk()).unwrap_or_else(|error| panic!("{}{error}", state.describe()));
        assert_eq!((opened.recovered.last_generation, opened.recovered.cut), recovered);
    }
}

#[test]
fn a_failed_operation_ends_the_log_and_loses_nothing() {
    at_every_operation(Fault::Error, scripts(3), check_wedged);
}

#[test]
fn a_short_write_ends_the_log_and_loses_nothing() {
    for bytes in [0, 100, 512, 5000] {
        at_every_operation(Fault::ShortWrite { bytes }, scripts(2), check_wedged);
    }
}

/// Lets each sync fail in turn.
#[test]
fn a_failed_sync_ends_the_log_and_loses_nothing_that_was_durable() {
    at_every_operation(Fault::SyncLoses, scripts(4), check_wedged);
}

/// Rounds until there is no room, then room again.
#[test]
fn a_full_disk_stops_the_log_until_there_is_room() {
    for seed in scripts(6) {
        let mut world = World::new(seed);
        world.add_table();
        let used = world.disk.used();
        world.disk.set_quota(Some(used + (40 << 10)));
        let mut stops = 0;
        for _ in 0..60 {
            match world.step(Habits { reopenings: 0, ..Habits::default() }) {
                Ok(()) => {}
                Err(WriteError::Full(_)) => {
                    stops += 1;
                    check_crashes(&world, &at_the_end(&world.disk));
                    if stops % 3 == 0 {
                        let used = world.disk.used();
                        world.disk.set_quota(Some(used + (40 << 10)));
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(stops > 0, "the disk was full");
        world.disk.set_quota(None);
        world.run(5, Habits::default());
        check_crashes(&world, &at_the_end(&world.disk));
    }
}

#[test]
fn a_full_disk_at_any_operation_does_not_end_the_log() {
    for seed in scripts(3) {
        for n in 1.. {
            let mut world = World::new(seed);
            world.disk.fail(n, Fault::StorageFull);
            for _ in 0..16 {
                match world.step(HABITS) {
                    Ok(()) => {}
                    Err(WriteError::Full(_)) => {}
                    // A block is written to a file that has room for it.
                    Err(WriteError::Failed(_)) => break,
                }
            }
            let has_failed = world.disk.pending_faults() == 0;
            world.disk.clear_faults();
            check_crashes(&world, &at_the_end(&world.disk));
            if !has_failed {
                break;
            }
        }
    }
}

#[test]
fn the_block_that_is_being_written_has_room_when_the_disk_becomes_full() {
    let (disk, mut opened, table) = open_new();
    let mut number = 0;
    let mut round = |log: &mut LogWriter| {
        number += 1;
        log.write(&[&put(number, table, number, number)], number)?;
        log.sync()
    };
    for _ in 0..5 {
        round(&mut opened.log).unwrap();
        opened.log.prepare().unwrap();
    }
    disk.set_quota(Some(disk.used()));
    // A segment has two blocks, of which the one in use has one, and the next one is ready.
    for _ in 0..3 {
        round(&mut opened.log).unwrap();
    }
    // There is room for no segment behind that, which is told before it is needed.
    assert!(matches!(opened.log.prepare(), Err(WriteError::Full(_))));
    for _ in 0..2 {
        assert!(matches!(round(&mut opened.log), Err(WriteError::Full(_))));
    }
    disk.set_quota(None);
    round(&mut opened.log).unwrap();
    drop(opened);
    assert_eq!(open(disk).unwrap().rows, rows(table, (1..=8).chain([11])));
}

/// Opening fails at each operation; what was there is there at the next opening.
#[test]
fn a_failed_opening_leaves_the_files_unchanged() {
    for seed in scripts(4) {
        let mut world = World::new(seed);
        world.run(12, Habits::default());
        world.close_failed();
        for n in 1.. {
            let disk = world.disk.at(world.disk.position());
            disk.fail(n, Fault::Error);
            let result = open(disk.clone());
            let has_failed = disk.pending_faults() == 0;
            disk.clear_faults();
            if let Err(error) = result {
                assert!(matches!(error, OpenError::Io { .. }), "{error}");
            } else {
                drop(result);
            }
            let opened = open(disk.clone()).unwrap();
            world.check_killed(&opened, world.disk.position()).unwrap();
            if !has_failed {
                break;
            }
        }
    }
}

#[test]
fn opening_on_a_full_disk_frees_space() {
    let (disk, mut opened, table) = open_new();
    for number in 1..=12 {
        opened.log.write(&[&put(number, table, number, number)], number).unwrap();
        opened.log.sync().unwrap();
        opened.log.prepare().unwrap();
    }
    opened.store.checkpoint().unwrap();
    opened.log.write(&[&put(13, table, 13, 13)], 13).unwrap();
    drop(opened);
    assert!(disk.list().unwrap().iter().any(|name| name.starts_with("spare-")));
    disk.set_quota(Some(disk.used()));
    assert_eq!(open(disk).unwrap().rows, rows(table, 1..=13));
}

/// A rename, or the sync of names, fails when a checkpoint comes into force.
#[test]
fn a_manifest_whose_replacement_may_be_durable_is_not_replaced_again() {
    let mut failures = 0;
    for (fault, n) in (1..80).flat_map(|n| [(Fault::SyncLoses, n), (Fault::Error, n)]) {
        let disk = SimDisk::new();
        let mut opened = open(disk.clone()).unwrap();
        let table = opened.store.add_table(schema("a")).unwrap();
        opened.log.write(&[&put(1, table, 1, 1)], 1).unwrap();
        opened.log.sync().unwrap();
        disk.fail(n, fault);
        let Err(StoreError::Failed(failed)) = opened.store.checkpoint() else { continue };
        failures += 1;
        disk.clear_faults();
        let position = disk.position();
        let again = [
            opened.store.add_table(schema("b")).map(|_| ()),
            opened.store.checkpoint().map(|_| ()),
        ];
        for again in again {
            let Err(StoreError::Failed(again)) = again else { panic!("{fault:?} {n}: {again:?}") };
            assert_eq!(again.to_string(), failed.to_string());
        }
        assert_eq!(disk.position(), position, "nothing is done any more");
        drop(opened);
        for state in disk.crash_states(&at_the_end(&disk)) {
            let opened =
                open(state.disk()).unwrap_or_else(|error| panic!("{}{error}", state.describe()));
            assert_eq!(opened.rows, rows(table, [1]));
        }
    }
    assert_eq!(failures, 1 + 3, "the sync of names; and two renames before it");
}
