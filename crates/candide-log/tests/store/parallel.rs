//! Recovery by several threads finds what one thread finds.

use crate::support::*;
use candide_log::disk::Disk;
use candide_log::format::commit::ChangeKind;
use candide_log::{OpenError, Progress, Rows, Store, StoreOptions};
use candide_log_testing::SimDisk;
use std::cell::Cell;
use std::sync::Arc;

fn threads(count: usize) -> StoreOptions {
    StoreOptions { recovery_threads: count, segment_bytes: 1 << 20, ..StoreOptions::default() }
}

/// Returns a database with more than is read by one thread: a checkpoint of several parts, and a
/// log.
fn large_database() -> SimDisk {
    let disk = SimDisk::new();
    let mut opened = open_with(disk.clone(), &threads(1)).unwrap();
    let table = opened.store.add_table(schema("accounts")).unwrap();
    let mut rng = fastrand::Rng::with_seed(7);
    let keys = 40_000;
    let all: Vec<u64> = (0..keys).flat_map(|key| put(1, table, key, key)).collect();
    opened.log.write(&[&all], 1).unwrap();
    opened.store.checkpoint().unwrap();
    let mut version = 1;
    for round in 2..40 {
        // Versions count down within a round: the last record is the first to be applied.
        let mut payload = Vec::new();
        for number in (0..500).rev() {
            let key = rng.u64(0..keys);
            let write = Write::new(ChangeKind::Put, table, key, 1, &[round, number]);
            commit(&mut payload, round, version + number, &[write]);
        }
        version += 500;
        opened.log.write(&[&payload], round).unwrap();
    }
    opened.log.close().unwrap();
    disk
}

#[test]
fn loading_with_any_number_of_threads_finds_the_same_rows() {
    let disk = large_database();
    let one = open_with(copy(&disk), &threads(1)).unwrap();
    assert_eq!(one.rows.len(), 40_000);
    for count in [2, 3, 7] {
        let opened = open_with(copy(&disk), &threads(count)).unwrap();
        assert!(opened.rows == one.rows, "with {count} threads");
        assert_eq!(opened.recovered, one.recovered);
    }
}

#[test]
fn loading_with_any_number_of_threads_finds_the_same_damage() {
    let whole = large_database();
    let names = names(&whole);
    let parts: Vec<_> = names.iter().filter(|name| name.starts_with("checkpoint-")).collect();
    let segments: Vec<_> = names.iter().filter(|name| name.starts_with("log-")).collect();
    assert!(parts.len() > 1);
    for (name, offset) in [(parts[0], 70_000), (parts[1], 70_000), (segments[0], 4200)] {
        let errors = [1, 2, 5].map(|count| {
            let disk = copy(&whole);
            disk.open(name).unwrap().write_at(offset, &[&[0xee; 8]]).unwrap();
            match open_with(disk, &threads(count)) {
                Err(error @ OpenError::Corrupt { .. }) => error.to_string(),
                _ => panic!("{name} is damaged"),
            }
        });
        assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    }
}

#[test]
fn the_first_change_that_cannot_be_made_is_named() {
    let disk = large_database();
    let mut opened = open_with(disk.clone(), &threads(1)).unwrap();
    for (stamp, key) in [(1, 1_000_003), (2, 1_000_001), (3, 1_000_002)] {
        let mut payload = Vec::new();
        commit(&mut payload, stamp, stamp, &[Write::new(ChangeKind::Update, 1, key, 0, &[1])]);
        opened.log.write(&[&payload], stamp).unwrap();
    }
    drop(opened);
    for count in [1, 2, 5] {
        let Err(error) = open_with(copy(&disk), &threads(count)) else { panic!("opened") };
        assert!(error.to_string().contains("accounts [1000003]"), "{error}");
    }
}

#[test]
fn progress_of_loading_ends_at_the_number_of_bytes() {
    let disk = large_database();
    for count in [1, 4] {
        let (loaded, replayed) = (Cell::new((0, 1)), Cell::new(0));
        let progress = |progress| match progress {
            Progress::Checkpoint { done, total } => loaded.set((done, total)),
            Progress::Log { done, total } => {
                assert!(replayed.get() < done && done <= total);
                replayed.set(done);
            }
        };
        let opened = Store::open(Arc::new(copy(&disk)), &threads(count), &Rows::new(), &progress);
        let (.., recovered) = opened.unwrap();
        let (done, total) = loaded.get();
        assert_eq!(done, total);
        assert_eq!(replayed.get(), recovered.log_bytes);
    }
}
