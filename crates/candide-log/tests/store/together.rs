//! Checkpoints, backups and new tables while a thread writes the log.

use crate::crashes::scripts;
use crate::model::{Habits, World};
use crate::support::*;
use candide_log::disk::{Disk, RealDisk};
use candide_log::{Store, StoreError};
use candide_log_testing::{Fault, SimDisk};
use std::sync::Arc;
use std::thread;

/// Writes a log in one thread and does everything else in this one.
fn write_and_manage(disk: Arc<dyn Disk>, copies: impl Fn(u64) -> SimDisk) {
    let Opened { store, mut log, .. } = open_shared(Arc::clone(&disk), &options()).unwrap();
    let table = store.add_table(schema("accounts")).unwrap();
    let commits = 400;
    let writer = thread::spawn(move || {
        for number in 1..=commits {
            log.write(&[&put(number, table, number, number)], number).unwrap();
            log.sync().unwrap();
            log.prepare().unwrap();
        }
        log.close().unwrap();
    });
    let mut rounds = 0;
    while !writer.is_finished() || rounds == 0 {
        manage(&store, rounds, &copies(rounds), table);
        rounds += 1;
    }
    writer.join().unwrap();
    manage(&store, rounds, &copies(rounds), table);
    drop(store);
    let opened = open_shared(disk, &options()).unwrap();
    assert_eq!(opened.rows, rows(table, 1..=commits));
    assert_eq!(opened.store.tables().len() as u64, 2 + rounds);
}

/// Adds a table, makes a checkpoint, and a backup that contains what was durable.
fn manage(store: &Store, round: u64, copy: &SimDisk, table: u32) {
    store.add_table(schema(&format!("table {round}"))).unwrap();
    store.checkpoint().unwrap();
    let done = store.backup(Arc::new(copy.clone())).unwrap();
    let opened = open(copy.clone()).unwrap();
    assert_eq!(opened.rows, rows(table, 1..=done.cut));
    assert_eq!(
        (opened.recovered.last_generation, opened.recovered.cut),
        (done.generation, done.cut)
    );
    assert_eq!(opened.store.tables().len() as u64, 2 + round);
}

#[test]
fn commits_checkpoints_and_backups_run_at_once_on_a_simulated_disk() {
    write_and_manage(Arc::new(SimDisk::new()), |_| SimDisk::new());
}

/// A directory of the operating system that goes away.
#[derive(Debug)]
struct Folder(RealDisk);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.path());
    }
}

#[test]
fn commits_checkpoints_and_backups_run_at_once_on_a_real_disk() {
    let path = std::env::temp_dir().join(format!("candide-log-together-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    let folder = Folder(RealDisk::create(&path).unwrap());
    write_and_manage(Arc::new(RealDisk::open(&path).unwrap()), |_| SimDisk::new());
    drop(folder);
}

#[test]
fn a_backup_of_any_moment_opens_as_what_was_durable() {
    for seed in scripts(12) {
        let mut world = World::new(seed);
        for _ in 0..12 {
            world.run(3, Habits::default());
            let copy = SimDisk::new();
            world.opened().store.backup(Arc::new(copy.clone())).unwrap();
            let opened = open(copy).unwrap();
            world.check_crash(&opened, world.disk.position()).unwrap();
        }
    }
}

#[test]
fn a_backup_does_not_contain_a_block_that_is_not_durable() {
    for durable in 1..=6 {
        let (disk, copy) = (SimDisk::new(), SimDisk::new());
        let mut opened = open(disk).unwrap();
        let table = opened.store.add_table(schema("accounts")).unwrap();
        for number in 1..=durable + 1 {
            // Every second block is the first of a segment.
            opened.log.write(&[&put(number, table, number, number)], number).unwrap();
        }
        let done = opened.store.backup(Arc::new(copy.clone())).unwrap();
        assert_eq!((done.generation, done.cut), (1, durable));
        assert_eq!(open(copy).unwrap().rows, rows(table, 1..=durable));
    }
}

#[test]
fn a_failed_backup_does_not_open_with_fewer_rows() {
    let mut world = World::new(3);
    world.run(20, Habits::default());
    for fault in [Fault::Error, Fault::StorageFull, Fault::SyncLoses] {
        for n in 1.. {
            let copy = SimDisk::new();
            copy.fail(n, fault);
            let result = world.opened().store.backup(Arc::new(copy.clone()));
            let has_failed = copy.pending_faults() == 0;
            copy.clear_faults();
            if result.is_err() {
                // Either everything is there, or it is no database.
                if let Ok(opened) = open(copy) {
                    let is_empty = opened.recovered.is_new;
                    assert!(is_empty || world.check_crash(&opened, world.disk.position()).is_ok());
                }
            }
            if !has_failed {
                break;
            }
        }
    }
}

#[test]
fn a_checkpoint_that_finds_damage_leaves_all_files_unchanged() {
    let (disk, mut opened, table) = open_new();
    for number in 1..=6 {
        opened.log.write(&[&put(number, table, number, number)], number).unwrap();
    }
    let file = disk.open("log-0000000001").unwrap();
    file.write_at(4096 + 70, &[&[0xff]]).unwrap();
    let before = names(&disk).len();
    for _ in 0..2 {
        let Err(StoreError::Damaged(error)) = opened.store.checkpoint() else { panic!("made") };
        assert!(error.to_string().contains("log-0000000001 is damaged at byte 4096"), "{error}");
    }
    assert_eq!(names(&disk).len(), before + 1, "one segment was closed");
    opened.log.write(&[&put(7, table, 7, 7)], 7).unwrap();
    opened.log.sync().unwrap();
}
