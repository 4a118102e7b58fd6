//! A directory that is moved or removed while it is open, with another database made at its place.

use crate::support::*;
use candide_log::disk::{Disk, DiskFile, LockError, RealDisk};
use candide_log::{StoreError, StoreOptions, WriteError};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What becomes of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Moved,
    Removed,
}

/// A directory for one test, which is removed at the end. In it, databases are at `place` and, when
/// they have been moved, at `away`.
#[derive(Debug)]
struct Scene {
    base: PathBuf,
    place: PathBuf,
    away: PathBuf,
}

impl Scene {
    fn new(test: &str) -> Scene {
        let name = format!("candide-log-moved-{}-{test}", std::process::id());
        let base = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&base);
        Scene { place: base.join("place"), away: base.join("away"), base }
    }

    fn open(&self, path: &Path) -> Opened {
        open(RealDisk::create(path).unwrap()).unwrap()
    }

    /// Moves or removes the directory, and makes another database at its place. Returns the other
    /// one's files.
    fn meet(&self, fate: Fate) -> BTreeMap<String, Vec<u8>> {
        match fate {
            Fate::Moved => fs::rename(&self.place, &self.away).unwrap(),
            Fate::Removed => fs::remove_dir_all(&self.place).unwrap(),
        }
        self.make_other();
        files(&self.place)
    }

    /// Makes the other database, with the row 7.
    fn make_other(&self) {
        let mut other = self.open(&self.place);
        let table = other.store.add_table(schema("accounts")).unwrap();
        other.log.write(&[&put(7, table, 7, 7)], 7).unwrap();
        other.log.close().unwrap();
    }

    /// Checks that the other database is as it was, and has its row.
    fn check_other(&self, before: &BTreeMap<String, Vec<u8>>) {
        assert!(files(&self.place) == *before, "the database at the old place was changed");
        assert_eq!(self.open(&self.place).rows, rows(1, [7]));
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// Returns the contents of the files in a directory.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(path).unwrap().map(Result::unwrap);
    let named = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()));
    named.collect()
}

/// Commits the row `number` and makes it durable, as the thread of a log does.
fn commit(opened: &mut Opened, number: u64) -> Result<(), WriteError> {
    opened.log.write(&[&put(number, 1, number, number)], number)?;
    opened.log.sync()?;
    // What is acknowledged by now is so whatever becomes of this.
    let _ = opened.log.prepare();
    Ok(())
}

/// Opens the database of a scene, with a table and the rows from 1 to `last`.
fn begun(scene: &Scene, last: u64) -> Opened {
    let mut opened = scene.open(&scene.place);
    opened.store.add_table(schema("accounts")).unwrap();
    for number in 1..=last {
        commit(&mut opened, number).unwrap();
    }
    opened
}

#[test]
fn a_moved_database_is_written_under_its_new_name() {
    let scene = Scene::new("log");
    let mut opened = begun(&scene, 1);
    let other = scene.meet(Fate::Moved);
    for number in 2..=40 {
        commit(&mut opened, number).unwrap();
    }
    assert_eq!(opened.store.add_table(schema("later")).unwrap(), 2);
    let refused = open(RealDisk::open(&scene.away).unwrap());
    assert!(refused.is_err(), "the lock has moved with the directory");
    drop(opened);
    scene.check_other(&other);
    let opened = scene.open(&scene.away);
    assert_eq!(opened.rows, rows(1, 1..=40));
    assert_eq!(opened.store.tables().len(), 2);
}

#[test]
fn a_moved_database_makes_its_checkpoints_under_its_new_name() {
    let scene = Scene::new("checkpoint");
    let mut opened = begun(&scene, 12);
    let other = scene.meet(Fate::Moved);
    for number in 13..=30 {
        assert!(opened.store.checkpoint().unwrap().is_new);
        commit(&mut opened, number).unwrap();
    }
    drop(opened);
    scene.check_other(&other);
    assert_eq!(scene.open(&scene.away).rows, rows(1, 1..=30));
}

#[test]
fn a_removed_database_acknowledges_nothing() {
    let scene = Scene::new("removed-log");
    for last in 1..=5 {
        let mut opened = begun(&scene, last);
        let other = scene.meet(Fate::Removed);
        let WriteError::Failed(error) = commit(&mut opened, last + 1).unwrap_err() else {
            panic!("not full")
        };
        assert!(error.to_string().contains("removed while it was open"), "{error}");
        assert!(commit(&mut opened, last + 2).is_err());
        assert!(opened.store.checkpoint().is_err());
        drop(opened);
        scene.check_other(&other);
        fs::remove_dir_all(&scene.place).unwrap();
    }
}

#[test]
fn a_removed_database_makes_no_checkpoint() {
    let scene = Scene::new("removed-checkpoint");
    for last in 1..=5 {
        let mut opened = begun(&scene, last);
        let other = scene.meet(Fate::Removed);
        let error = opened.store.checkpoint().unwrap_err();
        assert!(error.to_string().contains("removed while it was open"), "{error}");
        assert!(commit(&mut opened, last + 1).is_err());
        assert!(opened.store.add_table(schema("later")).is_err());
        drop(opened);
        scene.check_other(&other);
        fs::remove_dir_all(&scene.place).unwrap();
    }
}

#[test]
fn a_log_whose_segment_was_removed_fails_at_the_next_sync() {
    let scene = Scene::new("segment");
    for last in 1..=5 {
        let mut opened = begun(&scene, last);
        let names = files(&scene.place).into_keys();
        let segment = names.filter(|name| name.starts_with("log-")).max().unwrap();
        fs::remove_file(scene.place.join(&segment)).unwrap();
        let error = commit(&mut opened, last + 1).unwrap_err();
        assert!(error.to_string().contains("the file was removed"), "{error}");
        drop(opened);
        fs::remove_dir_all(&scene.place).unwrap();
    }
}

#[test]
fn a_moved_segment_receives_no_commits_after_its_directory_is_removed() {
    let scene = Scene::new("elsewhere");
    let mut opened = begun(&scene, 1);
    fs::create_dir(&scene.away).unwrap();
    let segment = "log-0000000001";
    fs::rename(scene.place.join(segment), scene.away.join(segment)).unwrap();
    let other = scene.meet(Fate::Removed);
    let error = commit(&mut opened, 2).unwrap_err();
    assert!(error.to_string().contains("the directory was removed"), "{error}");
    drop(opened);
    scene.check_other(&other);
}

#[test]
fn a_database_made_in_the_emptied_directory_is_not_touched() {
    let scene = Scene::new("emptied");
    for last in 1..=5 {
        let mut opened = begun(&scene, last);
        // The other one is copied there: this process can open the directory once only.
        let elsewhere = Scene::new("emptied-elsewhere");
        elsewhere.make_other();
        for name in files(&scene.place).into_keys() {
            fs::remove_file(scene.place.join(name)).unwrap();
        }
        let other = files(&elsewhere.place);
        for (name, bytes) in &other {
            fs::write(scene.place.join(name), bytes).unwrap();
        }
        let failures = [
            opened.store.add_table(schema("later")).unwrap_err().to_string(),
            opened.store.checkpoint().unwrap_err().to_string(),
            commit(&mut opened, last + 1).unwrap_err().to_string(),
        ];
        for failure in failures {
            assert!(failure.contains("removed while it was open"), "{failure}");
        }
        drop(opened);
        scene.check_other(&other);
        fs::remove_dir_all(&scene.place).unwrap();
    }
}

#[test]
fn a_database_whose_lock_file_was_removed_acknowledges_nothing() {
    let scene = Scene::new("unlocked");
    let mut opened = begun(&scene, 1);
    fs::remove_file(scene.place.join("LOCK")).unwrap();
    let error = commit(&mut opened, 2).unwrap_err();
    assert!(error.to_string().contains("the file LOCK was removed"), "{error}");
    assert!(opened.store.add_table(schema("later")).is_err());
    assert!(opened.store.checkpoint().is_err());
}

/// A file that is moved to another directory still has a name, and so has one with a second name.
#[test]
fn a_database_whose_lock_file_was_moved_acknowledges_nothing() {
    for is_linked in [false, true] {
        for makes_other in [false, true] {
            let scene = Scene::new("lock-elsewhere");
            let mut opened = begun(&scene, 1);
            fs::create_dir(&scene.away).unwrap();
            let [here, there] = [&scene.place, &scene.away].map(|path| path.join("LOCK"));
            if is_linked {
                fs::hard_link(&here, &there).unwrap();
                commit(&mut opened, 2).unwrap();
                fs::remove_file(&here).unwrap();
            } else {
                fs::rename(&here, &there).unwrap();
            }
            if makes_other {
                fs::write(&here, "").unwrap();
            }
            let error = opened.store.add_table(schema("later")).unwrap_err();
            assert!(error.to_string().contains("the file LOCK was removed"), "{error}");
            assert!(opened.store.checkpoint().is_err());
            let error = commit(&mut opened, 3).unwrap_err();
            assert!(error.to_string().contains("the file LOCK was removed"), "{error}");
        }
    }
}

#[test]
fn a_database_whose_files_are_moved_is_not_written_in_both_directories() {
    let scene = Scene::new("files-elsewhere");
    let disk = RealDisk::create(&scene.place).unwrap();
    // Its first segment is large enough that no file has been made for the next one.
    let mut opened = open_with(disk, &StoreOptions::default()).unwrap();
    opened.store.add_table(schema("accounts")).unwrap();
    commit(&mut opened, 1).unwrap();
    fs::create_dir(&scene.away).unwrap();
    for name in files(&scene.place).into_keys() {
        fs::rename(scene.place.join(&name), scene.away.join(&name)).unwrap();
    }
    for number in 2..=40 {
        assert!(commit(&mut opened, number).is_err(), "commit {number}");
    }
    drop(opened);
    assert!(files(&scene.place).is_empty(), "{:?}", files(&scene.place).keys());
    assert!(!scene.open(&scene.away).rows.is_empty());
}

/// A directory that meets its fate before the n-th operation, from 0.
#[derive(Debug)]
struct Fated {
    disk: RealDisk,
    left: AtomicUsize,
    scene: Arc<Scene>,
    fate: Fate,
}

impl Fated {
    fn new(disk: RealDisk, scene: &Arc<Scene>, fate: Fate, n: usize) -> Arc<Fated> {
        Arc::new(Fated { disk, left: AtomicUsize::new(n), scene: Arc::clone(scene), fate })
    }

    fn disk(&self) -> &RealDisk {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.scene.meet(self.fate);
        }
        &self.disk
    }

    /// Returns whether the directory has met its fate.
    fn has_met(&self) -> bool {
        self.left.load(Ordering::Relaxed) > usize::MAX / 2
    }
}

impl Disk for Fated {
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk().list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk().create(name)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk().open(name)
    }

    fn open_to_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk().open_to_read(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk().rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk().remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.disk().sync_directory()
    }

    fn lock(&self) -> Result<Box<dyn Send + Sync + Debug>, LockError> {
        self.disk().lock()
    }
}

/// Makes a backup to a directory that meets its fate before the n-th operation, for each n. Calls
/// `check` with the scene of the target, and what became of the backup.
fn back_up_to(test: &str, fate: Fate, check: impl Fn(&Scene, Result<(), StoreError>)) {
    let source = Scene::new(&format!("{test}-source"));
    let mut opened = begun(&source, 9);
    opened.store.checkpoint().unwrap();
    commit(&mut opened, 10).unwrap();
    for n in 0.. {
        let scene = Arc::new(Scene::new(test));
        let target = Fated::new(RealDisk::create(&scene.place).unwrap(), &scene, fate, n);
        let made = opened.store.backup(target.clone());
        if !target.has_met() {
            assert!(n > 10, "the backup takes {n} operations");
            break;
        }
        assert_eq!(scene.open(&scene.place).rows, rows(1, [7]), "before operation {n}");
        check(&scene, made.map(drop));
    }
}

#[test]
fn a_backup_whose_target_is_moved_is_whole_under_its_new_name() {
    back_up_to("moved-target", Fate::Moved, |scene, made| {
        made.unwrap();
        assert_eq!(scene.open(&scene.away).rows, rows(1, 1..=10));
    });
}

#[test]
fn a_backup_whose_target_is_removed_fails() {
    back_up_to("removed-target", Fate::Removed, |_, made| {
        let error = made.unwrap_err();
        assert!(error.to_string().contains("removed while it was open"), "{error}");
    });
}

#[test]
fn a_backup_of_a_database_that_is_moved_meanwhile_is_whole() {
    for n in 0.. {
        let scene = Arc::new(Scene::new("moved-source"));
        let copies = Scene::new("moved-source-copies");
        let mut opened = begun(&scene, 9);
        opened.store.checkpoint().unwrap();
        commit(&mut opened, 10).unwrap();
        drop(opened);
        // The operations of opening are counted, too.
        let disk = Fated::new(RealDisk::open(&scene.place).unwrap(), &scene, Fate::Moved, n);
        let opened = open_shared(disk.clone(), &options()).unwrap();
        let target = Arc::new(RealDisk::create(&copies.place).unwrap());
        opened.store.backup(target).unwrap();
        drop(opened);
        if !disk.has_met() {
            assert!(n > 10, "the backup takes {n} operations");
            break;
        }
        assert_eq!(scene.open(&scene.place).rows, rows(1, [7]), "before operation {n}");
        assert_eq!(scene.open(&scene.away).rows, rows(1, 1..=10), "before operation {n}");
        assert_eq!(copies.open(&copies.place).rows, rows(1, 1..=10), "before operation {n}");
    }
}
