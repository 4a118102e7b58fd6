//! Rounds that do not fit into the segment in use, when it contains no block yet.

use crate::support::*;
use candide_log::disk::Disk;
use candide_log::{OpenError, StoreError};
use candide_log_testing::{CrashOptions, Fault, SimDisk};

/// Returns records of more bytes than a segment of the usual size has.
fn large(stamp: u64, table: u32, keys: std::ops::Range<u64>) -> Vec<u64> {
    keys.flat_map(|key| put(stamp, table, key, key)).collect()
}

fn few() -> CrashOptions {
    CrashOptions { exhaustive: 3, pieces: 6, samples: 3, ..CrashOptions::default() }
}

/// Lets a checkpoint fail behind the moment at which it has closed the segment in use.
pub fn fail_checkpoint(disk: &SimDisk, opened: &Opened) {
    // The fourth creation or write: the three before make the next segment.
    disk.fail(4, Fault::StorageFull);
    match opened.store.checkpoint() {
        Err(StoreError::Full { file, .. }) => assert!(file.starts_with("checkpoint-"), "{file}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_large_round_after_a_failed_checkpoint_is_durable() {
    let (disk, mut opened, table) = open_new();
    let first = large(1, table, 1..400);
    opened.log.write(&[&first], 1).unwrap();
    opened.log.sync().unwrap();
    fail_checkpoint(&disk, &opened);
    opened.log.write(&[&large(2, table, 400..800)], 2).unwrap();
    opened.log.sync().unwrap();
    let position = disk.position();
    // The next checkpoint reads the log, and so does the next opening.
    assert_eq!(opened.store.checkpoint().unwrap().rows, 799);
    drop(opened);
    assert_eq!(open(disk.at(position)).unwrap().rows, rows(table, 1..800));
    assert_eq!(open(disk).unwrap().rows, rows(table, 1..800));
}

#[test]
fn a_large_round_during_a_checkpoint_is_durable() {
    let (disk, mut opened, table) = open_new();
    opened.log.write(&[&put(1, table, 1, 1)], 1).unwrap();
    opened.log.sync().unwrap();
    fail_checkpoint(&disk, &opened);
    let before = disk.position();
    opened.log.write(&[&large(2, table, 400..800)], 2).unwrap();
    drop(opened);
    let whole: Map = rows(table, [1].into_iter().chain(400..800));
    for state in disk.crash_states(&CrashOptions { first: before, ..few() }) {
        let after = state.disk();
        for _ in 0..3 {
            let opened = open(after.clone()).unwrap_or_else(|e| panic!("{}{e}", state.describe()));
            assert!(opened.rows == whole || opened.rows == rows(table, [1]));
        }
    }
}

#[test]
fn a_torn_large_first_round_after_a_checkpoint_is_cut_off() {
    let (disk, mut opened, table) = open_new();
    opened.log.write(&[&put(1, table, 1, 1)], 1).unwrap();
    opened.store.checkpoint().unwrap();
    let before = disk.position();
    opened.log.write(&[&large(2, table, 400..800)], 2).unwrap();
    drop(opened);
    let whole: Map = rows(table, [1].into_iter().chain(400..800));
    for state in disk.crash_states(&CrashOptions { first: before, ..few() }) {
        let after = state.disk();
        for _ in 0..3 {
            let opened = open(after.clone()).unwrap_or_else(|e| panic!("{}{e}", state.describe()));
            assert!(opened.rows == whole || opened.rows == rows(table, [1]));
        }
        let mut opened = open(after.clone()).unwrap();
        let mut expected = opened.rows.clone();
        opened.log.write(&[&put(1, table, 2, 2)], 1).unwrap();
        opened.log.close().unwrap();
        drop(opened.store);
        expected.extend(rows(table, [2]));
        assert_eq!(open(after).unwrap().rows, expected);
    }
}

/// The cut of a block may be that of the block before. The blocks behind a checkpoint are then not
/// told apart by their cuts.
#[test]
fn a_damaged_segment_behind_a_checkpoint_is_not_passed_over() {
    let (disk, mut opened, table) = open_new();
    opened.log.write(&[&put(5, table, 1, 1)], 5).unwrap();
    opened.store.checkpoint().unwrap();
    opened.log.write(&[&large(6, table, 10..300)], 5).unwrap();
    opened.log.write(&[&large(7, table, 300..600)], 7).unwrap();
    opened.log.close().unwrap();
    drop(opened.store);
    let whole = rows(table, [1].into_iter().chain(10..600));
    assert_eq!(open(copy(&disk)).unwrap().rows, whole);
    let first = names(&disk).into_iter().find(|name| name.starts_with("log-")).unwrap();
    for place in [4096, 4096 + 8, 4096 + 52, 4096 + 2000] {
        let damaged = copy(&disk);
        let mut bytes = read_file(&damaged, &first);
        bytes[place] ^= 1;
        damaged.open(&first).unwrap().write_at(0, &[&bytes]).unwrap();
        match open(damaged).map(|opened| opened.rows) {
            Err(OpenError::Corrupt { file, offset: 4096, .. }) => assert_eq!(file, first),
            Err(error) => panic!("{error}"),
            Ok(rows) => panic!("{} rows of {}, byte {place}", rows.len(), whole.len()),
        }
    }
}
