//! The tools, which look at databases that are not in use.

use crate::crashes::{few, scripts};
use crate::damage::changed_block;
use crate::model::{Habits, World};
use crate::support::*;
use candide_log::disk::{Disk, DiskFile, LockError};
use candide_log::format::commit::ChangeKind;
use candide_log::tools::{Item, Until, backup, inspect, repair, stats, verify};
use candide_log::{OpenError, StoreError};
use candide_log_testing::SimDisk;
use std::fmt::Debug;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

#[test]
fn a_whole_database_is_verified_and_not_changed() {
    for seed in scripts(8) {
        let mut world = World::new(seed);
        world.run(20, Habits::default());
        world.close_failed();
        let before = world.disk.position();
        let verified = verify(&world.disk).unwrap();
        assert!(verified.damage.is_empty(), "{:?}", verified.damage);
        inspect(&world.disk, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(world.disk.position(), before, "nothing was changed");
        let opened = open(world.disk.clone()).unwrap();
        let recovered = &opened.recovered;
        assert_eq!(verified.rows, opened.rows.len() as u64);
        assert_eq!(verified.tables, opened.store.tables().len() as u64);
        assert_eq!(
            (verified.generation, verified.cut, verified.records, verified.dropped),
            (recovered.last_generation, recovered.cut, recovered.records, recovered.dropped)
        );
    }
}

#[test]
fn verification_reports_all_damage_in_one_pass() {
    let (disk, _) = closed_database();
    let names = names(&disk);
    let parts: Vec<_> = names.iter().filter(|name| name.starts_with("checkpoint-")).collect();
    let last = names.iter().rfind(|name| name.starts_with("log-")).unwrap();
    for (name, offset) in [(parts[0], 200), (parts[1], 80), (last, 100)] {
        disk.open(name).unwrap().write_at(offset, &[&[0xee; 8]]).unwrap();
    }
    let verified = verify(&disk).unwrap();
    let files: Vec<_> = verified
        .damage
        .iter()
        .map(|damage| match damage {
            OpenError::Corrupt { file, .. } => file,
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(files, [parts[0], parts[1], last]);
}

#[test]
fn tools_refuse_a_database_in_use_and_an_empty_directory() {
    let disk = SimDisk::new();
    assert!(matches!(verify(&disk), Err(OpenError::NotADatabase { .. })));
    let _opened = open(disk.clone()).unwrap();
    assert!(matches!(verify(&disk), Err(OpenError::InUse { .. })));
    assert!(matches!(stats(&disk), Err(OpenError::InUse { .. })));
    let copy = Arc::new(SimDisk::new());
    let refused = repair(&disk, copy, None);
    assert!(matches!(refused, Err(StoreError::Damaged(OpenError::InUse { .. }))));
}

#[test]
fn inspection_lists_items_in_the_order_of_the_files() {
    let (disk, _) = closed_database();
    let mut seen = Vec::new();
    let mut rows = 0;
    inspect(&disk, &mut |item| {
        seen.push(match item {
            Item::Manifest(manifest) => format!("{} table", manifest.tables.len()),
            Item::Row { .. } => {
                rows += 1;
                return ControlFlow::Continue(());
            }
            Item::Segment { file, header } => format!("{file} of {}", header.generation),
            Item::Block { header, .. } => format!("block {} {}", header.sequence, header.cut),
            Item::Record { record, .. } => format!("record {}", record.stamp),
            Item::End { file, offset } => format!("end {file} {offset}"),
        });
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(rows, 900);
    let expected = [
        "1 table",
        "record 6",
        "log-0000000002 of 1",
        "block 2 7",
        "record 7",
        "block 3 7",
        "log-0000000003 of 2",
        "block 1 1",
        "record 1",
        "block 2 2",
        "record 2",
        "log-0000000004 of 2",
        "block 3 3",
        "record 3",
        "block 4 4",
        "record 4",
        "block 5 4",
        "end log-0000000004 16384",
    ];
    assert_eq!(seen, expected);
    let mut count = 0;
    inspect(&disk, &mut |_| {
        count += 1;
        if count == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    assert_eq!(count, 5);
}

#[test]
fn bytes_are_counted_by_table_and_group() {
    let (disk, _) = closed_database();
    let stats = stats(&disk).unwrap();
    let table = &stats.tables[0];
    assert_eq!((&table.name[..], table.rows, table.row_bytes), ("accounts", 900, 900 * 40));
    // One is pending in the checkpoint, five are in the log; each is a put of a whole row.
    assert_eq!((stats.records, table.changes, table.key_bytes), (6, 6, 6 * 8));
    let groups: Vec<_> =
        table.groups.iter().map(|group| (&group.name[..], group.change_bytes)).collect();
    assert_eq!(groups, [("cold", 6 * 8), ("hot", 6 * 24)]);
    assert_eq!(stats.head_bytes, 6 * (3 + 1) * 8);
    assert_eq!((stats.segments, stats.blocks, stats.block_bytes), (3, 7, 7 * 4096));
    assert_eq!(stats.padding_bytes, 7 * 4096 - 5 * (3 + 1 + 1 + 4) * 8);
}

#[test]
fn a_copy_of_an_undamaged_database_has_all_commits() {
    for seed in scripts(8) {
        let mut world = World::new(seed);
        world.run(20, Habits::default());
        world.close_failed();
        let copy = SimDisk::new();
        let repaired = repair(&world.disk, Arc::new(copy.clone()), None).unwrap();
        assert!(repaired.damage.is_none() && repaired.lost.is_empty(), "{repaired:?}");
        let (from, copied) = (open(world.disk.clone()).unwrap(), open(copy.clone()).unwrap());
        assert_eq!(copied.rows, from.rows);
        assert_eq!(copied.store.tables(), from.store.tables());
        assert_eq!(copied.recovered.cut, from.recovered.cut);
        drop(copied);
        use_it(copy);
    }
}

/// Checks that a repaired copy is a database like any other.
fn use_it(disk: SimDisk) {
    let mut opened = open(disk.clone()).unwrap();
    let mut expected = opened.rows.clone();
    let table = opened.store.add_table(schema("later")).unwrap();
    opened.log.write(&[&put(1, table, 7, 7)], 1).unwrap();
    opened.store.checkpoint().unwrap();
    opened.log.write(&[&put(2, table, 8, 8)], 2).unwrap();
    opened.log.close().unwrap();
    drop(opened.store);
    expected.extend(rows(table, [7, 8]));
    assert_eq!(open(disk).unwrap().rows, expected);
}

#[test]
fn a_copy_ends_before_the_damage() {
    let (disk, _) = closed_database();
    // The second block of the last generation, of which four have records.
    disk.open("log-0000000003").unwrap().write_at(2 * 4096 + 70, &[&[0xee]]).unwrap();
    assert!(open(disk.clone()).is_err());
    let copy = SimDisk::new();
    let repaired = repair(&disk, Arc::new(copy.clone()), None).unwrap();
    assert_eq!((repaired.generation, repaired.cut), (2, 1));
    assert!(
        repaired.damage.unwrap().to_string().contains("log-0000000003 is damaged at byte 8192")
    );
    let lost: Vec<_> =
        repaired.lost.iter().map(|lost| (&lost.file[..], lost.cut, lost.records)).collect();
    assert_eq!(lost, [("log-0000000004", 3, 1), ("log-0000000004", 4, 1)]);
    let expected = rows(1, (1..=900).chain([1000, 1001, 2001]));
    assert_eq!(open(copy.clone()).unwrap().rows, expected);
    use_it(copy);
    assert!(open(disk).is_err(), "the damaged one is as it was");
}

/// Checksums are right, and yet the block cannot be replayed.
#[test]
fn a_copy_ends_before_changes_that_cannot_be_made() {
    let writes = [
        Write::new(ChangeKind::Update, 1, 77, 0, &[1]),
        Write::new(ChangeKind::Delete, 1, 77, 0, &[]),
        Write::new(ChangeKind::Put, 9, 1, 0, &[1]),
        Write::new(ChangeKind::Put, 1, 1, 3, &[1, 2]),
    ];
    for write in writes {
        let disk = changed_block(false, |_, payload| {
            payload.clear();
            commit(payload, 3, 3, std::slice::from_ref(&write));
        });
        let error = open(disk.clone()).err().expect("refused");
        assert!(error.to_string().contains("or let repair make a copy"), "{error}");
        let copy = SimDisk::new();
        let repaired = repair(&disk, Arc::new(copy.clone()), None).unwrap();
        assert_eq!((repaired.generation, repaired.cut, repaired.lost.len()), (1, 2, 1));
        let Some(OpenError::Corrupt { file, offset, .. }) = repaired.damage else {
            panic!("{:?}", repaired.damage);
        };
        assert_eq!((&file[..], offset), ("log-0000000001", 3 * 4096));
        assert_eq!(open(copy.clone()).unwrap().rows, rows(1, 1..=2));
        use_it(copy);
    }
}

#[test]
fn a_copy_is_made_without_segments_that_are_missing() {
    let (disk, _) = closed_database();
    disk.remove("log-0000000003").unwrap();
    let copy = SimDisk::new();
    let repaired = repair(&disk, Arc::new(copy.clone()), None).unwrap();
    assert_eq!((repaired.generation, repaired.cut), (1, 7));
    assert_eq!(repaired.lost.len(), 2);
    assert_eq!(open(copy).unwrap().rows, rows(1, (1..=900).chain([1000, 1001])));
}

#[test]
fn a_copy_ends_at_a_chosen_cut() {
    let (disk, _) = closed_database();
    let cases: [((u64, u64), &[u64]); 5] = [
        ((1, 6), &[1000]),
        ((1, 7), &[1000, 1001]),
        ((1, 100), &[1000, 1001]),
        ((2, 2), &[1000, 1001, 2001, 2002]),
        ((9, 9), &[1000, 1001, 2001, 2002, 2003, 2004]),
    ];
    for ((generation, cut), keys) in cases {
        let copy = SimDisk::new();
        let until = Some(Until { generation, cut });
        let repaired = repair(&disk, Arc::new(copy.clone()), until).unwrap();
        assert!(repaired.damage.is_none());
        assert_eq!(open(copy).unwrap().rows, rows(1, (1..=900).chain(keys.iter().copied())));
    }
    // The checkpoint contains cut 5.
    let until = Some(Until { generation: 1, cut: 4 });
    let refused = repair(&disk, Arc::new(SimDisk::new()), until).unwrap_err();
    assert!(refused.to_string().contains("the checkpoint contains cut 5 of generation 1"));
}

#[test]
fn a_copy_is_made_in_an_empty_directory_only() {
    let (disk, _) = closed_database();
    let copy = SimDisk::new();
    write_file(&copy, "notes.txt", b"mine");
    let refused = repair(&disk, Arc::new(copy.clone()), None).unwrap_err();
    assert!(matches!(refused, StoreError::NotEmpty { found } if found == "notes.txt"));
    assert_eq!(names(&copy), ["notes.txt"]);
}

/// A disk that may only be read.
#[derive(Debug)]
struct ReadOnly(SimDisk);

fn denied<T>() -> io::Result<T> {
    Err(io::ErrorKind::PermissionDenied.into())
}

impl Disk for ReadOnly {
    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn create(&self, _: &str) -> io::Result<Box<dyn DiskFile>> {
        denied()
    }

    fn open(&self, _: &str) -> io::Result<Box<dyn DiskFile>> {
        denied()
    }

    fn open_to_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.0.open_to_read(name)
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        denied()
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        denied()
    }

    fn sync_directory(&self) -> io::Result<()> {
        denied()
    }

    fn lock(&self) -> Result<Box<dyn Send + Sync + Debug>, LockError> {
        self.0.lock()
    }
}

#[test]
fn all_tools_work_with_read_permission() {
    for seed in scripts(8) {
        let mut world = World::new(seed);
        world.run(20, Habits::default());
        world.close_failed();
        let disk = ReadOnly(world.disk.clone());
        assert!(verify(&disk).unwrap().damage.is_empty());
        stats(&disk).unwrap();
        inspect(&disk, &mut |_| ControlFlow::Continue(())).unwrap();
        let (copied, repaired) = (SimDisk::new(), SimDisk::new());
        backup(&disk, Arc::new(copied.clone())).unwrap();
        repair(&disk, Arc::new(repaired.clone()), None).unwrap();
        let rows = open(world.disk.clone()).unwrap().rows;
        assert_eq!(open(copied).unwrap().rows, rows);
        assert_eq!(open(repaired).unwrap().rows, rows);
    }
}

/// What an opening of the copy finds is what an opening of the database would have found, whatever
/// a crash has left of it.
#[test]
fn a_copy_has_the_rows_that_an_opening_finds() {
    for seed in scripts(3) {
        let mut world = World::new(seed);
        world.run(20, Habits::default());
        world.close_failed();
        for state in world.disk.crash_states(&few()) {
            let disk = state.disk();
            let copied = SimDisk::new();
            let made = match backup(&disk, Arc::new(copied.clone())) {
                // The database has not been made yet.
                Err(StoreError::Damaged(OpenError::NotADatabase { .. })) => continue,
                Err(StoreError::Damaged(OpenError::Corrupt { file, .. })) if file == "MANIFEST" => {
                    assert!(open(disk).unwrap().recovered.is_new);
                    continue;
                }
                made => made.unwrap(),
            };
            let expected = open(disk).unwrap();
            assert!(verify(&copied).unwrap().damage.is_empty());
            let opened = open(copied).unwrap();
            assert_eq!(opened.rows, expected.rows, "{}", state.describe());
            assert_eq!(opened.store.tables(), expected.store.tables());
            assert_eq!((made.generation, made.cut), {
                (expected.recovered.last_generation, expected.recovered.cut)
            });
        }
    }
}

#[test]
fn a_damaged_database_is_not_copied() {
    let (disk, _) = closed_database();
    let last = names(&disk).into_iter().rfind(|name| name.starts_with("log-")).unwrap();
    disk.open(&last).unwrap().write_at(4200, &[&[0xee; 8]]).unwrap();
    let error = backup(&disk, Arc::new(SimDisk::new())).unwrap_err();
    assert!(matches!(error, StoreError::Damaged(OpenError::Corrupt { .. })), "{error}");
}
