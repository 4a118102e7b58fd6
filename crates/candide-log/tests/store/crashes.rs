//! What is recovered after crashes at every operation.

use crate::model::{Habits, World};
use crate::support::*;
use candide_log_testing::{CrashOptions, SimDisk};
use std::ops::Range;

/// Returns the number of scripts that a test runs: fewer in a short run.
pub fn scripts(usual: u64) -> Range<u64> {
    let is_short = std::env::var_os("CANDIDE_FULL").is_none();
    let seed = std::env::var("CANDIDE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let count = if is_short { usual.div_ceil(8) } else { usual };
    seed * usual..seed * usual + count
}

/// Checks all states that a crash could leave. Returns their number.
pub fn check_crashes(world: &World, options: &CrashOptions) -> u64 {
    let mut count = 0;
    for state in world.disk.crash_states(options) {
        let position = state.id().position;
        let result = open(state.disk())
            .map_err(|error| format!("does not open: {error}"))
            .and_then(|opened| world.check_crash(&opened, position));
        if let Err(why) = result {
            panic!("{}{why}\n{}", state.describe(), last_operations(&world.disk, position));
        }
        count += 1;
    }
    count
}

/// Returns lines of the operations before a position.
fn last_operations(disk: &SimDisk, position: usize) -> String {
    let operations = disk.operations();
    let shown = position.saturating_sub(40)..position;
    shown.map(|number| format!("{number} {}\n", operations[number])).collect()
}

pub fn few() -> CrashOptions {
    CrashOptions { exhaustive: 6, pieces: 24, samples: 8, ..CrashOptions::default() }
}

#[test]
fn every_crash_leaves_a_prefix_with_all_that_was_durable() {
    let mut states = 0;
    for seed in scripts(24) {
        let mut world = World::new(seed);
        world.run(25, Habits::default());
        states += check_crashes(&world, &few());
    }
    println!("{states} states");
}

#[test]
fn a_killed_process_leaves_all_that_was_written() {
    for seed in scripts(24) {
        let mut world = World::new(seed);
        world.run(25, Habits::default());
        for position in 0..=world.disk.position() {
            let opened = open(world.disk.at(position));
            let opened = opened.unwrap_or_else(|error| panic!("{seed} at {position}: {error}"));
            if let Err(why) = world.check_killed(&opened, position) {
                panic!("{seed}: {why}\n{}", last_operations(&world.disk, position));
            }
        }
    }
}

#[test]
fn a_crash_in_recovery_loses_nothing() {
    for seed in scripts(6) {
        let mut world = World::new(seed);
        world.run(12, Habits::default());
        let options = CrashOptions { exhaustive: 0, pieces: 2, samples: 1, ..few() };
        for state in world.disk.crash_states(&options).step_by(5) {
            let position = state.id().position;
            let disk = state.disk();
            let opened = open(disk.clone()).unwrap();
            let first = (opened.recovered.last_generation, opened.recovered.cut);
            drop(opened);
            for again in disk.crash_states(&options) {
                let opened = open(again.disk())
                    .unwrap_or_else(|error| panic!("{}{error}", again.describe()));
                assert_eq!((opened.recovered.last_generation, opened.recovered.cut), first);
                world.check_crash(&opened, position).unwrap();
            }
        }
    }
}

/// Kills a process everywhere, lets the next one recover what was not durable yet, and cuts the
/// power.
#[test]
fn recovered_changes_are_durable() {
    for seed in scripts(12) {
        let mut world = World::new(seed);
        world.run(15, Habits::default());
        for position in 0..=world.disk.position() {
            let disk = world.disk.at(position);
            let opened = open(disk.clone()).unwrap();
            let first = (opened.recovered.last_generation, opened.recovered.cut);
            drop(opened);
            let last = disk.position();
            let options = CrashOptions { first: last, last, ..few() };
            for state in disk.crash_states(&options) {
                let opened = open(state.disk())
                    .unwrap_or_else(|error| panic!("{}{error}", state.describe()));
                assert_eq!((opened.recovered.last_generation, opened.recovered.cut), first);
                world.check_killed(&opened, position).unwrap();
            }
        }
    }
}

/// After a crash, the database is used, and crashes again.
#[test]
fn a_recovered_database_accepts_commits() {
    for seed in scripts(8) {
        let mut world = World::new(seed);
        world.run(12, Habits::default());
        let options = CrashOptions { exhaustive: 0, pieces: 1, samples: 1, seed, ..few() };
        for state in world.disk.crash_states(&options).step_by(7) {
            let disk = state.disk();
            let mut opened = open(disk.clone()).unwrap();
            let mut expected = opened.rows.clone();
            let table = match opened.store.tables().last() {
                Some(table) => table.number,
                None => opened.store.add_table(schema("late")).unwrap(),
            };
            opened.log.write(&[&put(1, table, 100, 100), &put(2, table, 101, 101)], 1).unwrap();
            opened.log.sync().unwrap();
            let before = disk.position();
            expected.extend(rows(table, [100]));
            drop(opened);
            let options = CrashOptions { first: before, ..options.clone() };
            for state in disk.crash_states(&options) {
                let opened = open(state.disk()).unwrap();
                assert_eq!(opened.rows, expected, "{}", state.describe());
            }
        }
    }
}

#[test]
fn a_database_whose_creation_crashed_is_created_anew() {
    let disk = SimDisk::new();
    drop(open(disk.clone()).unwrap());
    for state in disk.crash_states(&CrashOptions::default()) {
        let mut opened =
            open(state.disk()).unwrap_or_else(|error| panic!("{}{error}", state.describe()));
        let table = opened.store.add_table(schema("accounts")).unwrap();
        opened.log.write(&[&put(1, table, 1, 1)], 1).unwrap();
    }
}
