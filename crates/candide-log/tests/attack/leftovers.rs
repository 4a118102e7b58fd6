//! Files that a process has left behind.

use crate::support::*;
use candide_log_testing::SimDisk;

/// A process is killed while it makes a checkpoint, and the disk gets full.
#[test]
fn files_of_an_unfinished_checkpoint_do_not_prevent_opening() {
    let (disk, mut opened, table) = open_new();
    for key in 1..=1000 {
        opened.log.write(&[&put(key, table, key, key)], key).unwrap();
    }
    let before = disk.position();
    opened.store.checkpoint().unwrap();
    let operations = disk.operations();
    let in_force = operations.iter().rposition(|operation| operation.contains("to MANIFEST"));
    drop(opened);
    let mut checked = 0;
    for position in before..in_force.expect("MANIFEST is replaced") {
        let disk = disk.at(position);
        let count = |disk: &SimDisk| {
            names(disk).iter().filter(|name| name.starts_with("checkpoint-0000000001")).count()
        };
        if count(&disk) < 3 || names(&disk).iter().any(|name| name.starts_with("spare-")) {
            continue;
        }
        disk.set_quota(Some(disk.used()));
        let opened = open(disk.clone()).unwrap_or_else(|error| panic!("{position}: {error}"));
        assert_eq!(opened.rows, rows(table, 1..=1000));
        checked += 1;
    }
    assert!(checked > 0, "there were parts");
}

#[test]
fn a_file_with_the_largest_number_does_not_prevent_opening() {
    let disk = SimDisk::new();
    drop(open(disk.clone()).unwrap());
    write_file(&disk, &format!("spare-{}", u64::MAX), b"");
    let mut opened = open(disk.clone()).unwrap();
    let table = opened.store.add_table(schema("accounts")).unwrap();
    for key in 1..=20 {
        opened.log.write(&[&put(key, table, key, key)], key).unwrap();
    }
    drop(opened);
    assert_eq!(open(disk).unwrap().rows, rows(table, 1..=20));
}
