//! Damage of the last block of a log that was closed, or that was copied.

use crate::large_rounds::fail_checkpoint;
use crate::support::*;
use candide_log::OpenError;
use candide_log::disk::Disk;
use candide_log_testing::SimDisk;

/// Flips a bit of each block with commit records that a segment contains, in turn, and checks that
/// the damage is noticed.
fn check_damage_is_noticed(disk: &SimDisk) {
    let mut blocks = 0;
    for name in names(disk).iter().filter(|name| name.starts_with("log-")) {
        let bytes = read_file(disk, name);
        for offset in (4096..bytes.len()).step_by(4096) {
            let has_records = bytes[offset..].starts_with(b"cblk") && bytes[offset + 8] != 0;
            if !has_records {
                continue;
            }
            blocks += 1;
            for place in [offset, offset + 70] {
                let damaged = copy(disk);
                let file = damaged.open(name).unwrap();
                file.write_at(place as u64, &[&[bytes[place] ^ 1]]).unwrap();
                match open(damaged).map(|opened| opened.rows) {
                    Err(OpenError::Corrupt { .. }) => {}
                    Err(error) => panic!("{error}"),
                    Ok(rows) => panic!("{name} at byte {place}: {} rows", rows.len()),
                }
            }
        }
    }
    assert!(blocks > 0, "there are blocks");
}

#[test]
fn a_close_confirms_the_last_block_after_a_checkpoint_that_has_failed() {
    let (disk, mut opened, table) = open_new();
    opened.log.write(&[&put(1, table, 1, 1)], 1).unwrap();
    opened.log.write(&[&put(2, table, 2, 2)], 2).unwrap();
    fail_checkpoint(&disk, &opened);
    opened.log.close().unwrap();
    drop(opened.store);
    assert_eq!(open(copy(&disk)).unwrap().rows, rows(table, [1, 2]));
    check_damage_is_noticed(&disk);
}

#[test]
fn a_block_that_a_checkpoint_contains_is_not_confirmed() {
    let (disk, mut opened, table) = open_new();
    opened.log.write(&[&put(1, table, 1, 1)], 1).unwrap();
    opened.store.checkpoint().unwrap();
    let position = disk.position();
    opened.log.confirm().unwrap();
    assert_eq!(disk.position(), position);
    assert!(!opened.store.checkpoint().unwrap().is_new);
}

#[test]
fn damage_of_the_last_block_of_a_backup_is_noticed() {
    let (_, mut opened, table) = open_new();
    for number in 1..=5 {
        opened.log.write(&[&put(number, table, number, number)], number).unwrap();
        opened.log.sync().unwrap();
        let backup = SimDisk::new();
        let done = opened.store.backup(std::sync::Arc::new(backup.clone())).unwrap();
        assert_eq!(done.cut, number);
        assert_eq!(open(copy(&backup)).unwrap().rows, rows(table, 1..=number));
        check_damage_is_noticed(&backup);
    }
}
