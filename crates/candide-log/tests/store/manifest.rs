//! MANIFEST and its copy: tables that are appended, crashes between the two, and damage of each.

use crate::support::*;
use candide_log::disk::Disk;
use candide_log::format::manifest::{Front, Manifest};
use candide_log::tools::{repair, verify};
use candide_log::{OpenError, StoreError, TableSchema};
use candide_log_testing::{CrashOptions, Fault, SimDisk};
use std::fs;
use std::path::Path;
use std::sync::Arc;

const BOTH: [&str; 2] = ["MANIFEST", "MANIFEST.copy"];

/// Returns the schema of the table that is added as the n-th, from 0.
fn nth(n: usize) -> TableSchema {
    TableSchema { number: n as u32 + 1, ..schema(&format!("table {n}")) }
}

/// Returns a database whose MANIFEST has entries, and what is in it.
fn database_with_entries() -> (SimDisk, Map) {
    let (disk, rows) = closed_database();
    let opened = open(disk.clone()).unwrap();
    for name in ["one", "two", "three"] {
        opened.store.add_table(schema(name)).unwrap();
    }
    drop(opened);
    let front = Front::decode(&read_file(&disk, "MANIFEST")).unwrap();
    assert_eq!((front.manifest.tables.len(), front.tail), (4, None));
    (disk, rows)
}

/// Changes the file so that its bit with this number is another one.
fn flip(disk: &SimDisk, name: &str, bit: usize) {
    let byte = read_file(disk, name)[bit / 8] ^ 1 << (bit % 8);
    disk.open(name).unwrap().write_at(bit as u64 / 8, &[&[byte]]).unwrap();
}

fn damage_of(disk: &SimDisk) -> (String, u64, String) {
    match open(disk.clone()).err().expect("refused") {
        OpenError::Corrupt { file, offset, what } => (file, offset, what),
        error => panic!("{error}"),
    }
}

#[test]
fn the_bytes_written_for_tables_grow_with_their_number() {
    for count in [100, 1000, 2000] {
        let disk = SimDisk::new();
        let opened = open(disk.clone()).unwrap();
        let (before, operations) = (disk.written(), disk.position());
        for n in 0..count {
            assert_eq!(opened.store.add_table(nth(n)).unwrap(), n as u32 + 1);
        }
        let (written, done) = (disk.written() - before, disk.position() - operations);
        let of_one = read_file(&disk, "MANIFEST").len() / count;
        println!("{count} tables: {written} bytes, {of_one} for one; {done} operations");
        // Two files; each table is appended once, and written anew once on the average, or twice.
        assert!(written as usize <= 2 * 3 * count * (of_one + 20), "{written} bytes for {count}");
        assert!(done <= 5 * count, "{done} operations");
        drop(opened);
        let tables = open(disk).unwrap().store.tables();
        assert!(tables.into_iter().eq((0..count).map(nth)));
    }
}

/// Adds tables, and opens what each crash leaves: as it is, and with one of the two files lost.
#[test]
fn a_crash_while_tables_are_added_loses_no_added_table() {
    let disk = SimDisk::new();
    let opened = open(disk.clone()).unwrap();
    let long = |n| TableSchema { row_type: "x".repeat(600), ..nth(n) };
    let begin = disk.position();
    let mut added = Vec::new();
    for n in 0..16 {
        opened.store.add_table(long(n)).unwrap();
        added.push(disk.position());
    }
    drop(opened);
    let anew =
        disk.operations()[begin..].iter().filter(|line| line.contains("to MANIFEST")).count();
    assert_eq!(anew, 2, "both were written anew once");
    let options =
        CrashOptions { first: begin, exhaustive: 7, pieces: 8, samples: 4, ..Default::default() };
    for state in disk.crash_states(&options) {
        let position = state.id().position;
        let least = added.iter().filter(|since| **since <= position).count();
        let check = |disk: SimDisk, what: &str| {
            let opened = open(disk)?;
            let tables = opened.store.tables();
            assert!(tables.len() >= least, "{}{what}: {least} tables", state.describe());
            assert!(tables.into_iter().eq((0..).map(long).take(opened.store.tables().len())));
            Ok(())
        };
        check(state.disk(), "as it is")
            .unwrap_or_else(|error: OpenError| panic!("{}{error}", state.describe()));
        // What is torn is no damage. (Of the copy, that is not known.)
        if let Some(OpenError::Corrupt { file, .. }) =
            verify(&state.disk()).unwrap().manifest_damage
        {
            assert_eq!(file, "MANIFEST.copy", "{}", state.describe());
        }
        for name in BOTH {
            let damaged = state.disk();
            flip(&damaged, name, 300);
            let other = BOTH.into_iter().find(|other| *other != name).unwrap();
            let is_torn = Front::decode(&read_file(&damaged, other)).unwrap().tail.is_some();
            // Of two files that are damaged, and be it by a crash, no more is known.
            match check(damaged, name) {
                Ok(()) => assert!(!is_torn),
                Err(error) => assert!(is_torn, "{}{name}: {error}", state.describe()),
            }
        }
    }
}

#[test]
fn a_table_that_could_not_be_added_can_be_added_again() {
    let faults = [
        Fault::Error,
        Fault::ShortWrite { bytes: 0 },
        Fault::ShortWrite { bytes: 30 },
        Fault::ShortWrite { bytes: 10_000 },
        Fault::StorageFull,
        Fault::SyncLoses,
    ];
    for (fault, n) in faults.into_iter().flat_map(|fault| [(fault, 1), (fault, 2)]) {
        let disk = SimDisk::new();
        let opened = open(disk.clone()).unwrap();
        opened.store.add_table(nth(0)).unwrap();
        disk.fail(n, fault);
        // Longer than the next ones, which must leave nothing of it.
        let failed = opened.store.add_table(schema(&"other".repeat(100))).unwrap_err();
        assert!(matches!(failed, StoreError::Io { .. } | StoreError::Full { .. }), "{failed}");
        assert_eq!(opened.store.tables(), [nth(0)]);
        // The process may be killed now, or power be lost.
        for state in disk.crash_states(&CrashOptions { first: disk.position(), ..few() }) {
            let tables = open(state.disk()).unwrap().store.tables();
            assert!(tables.len() <= 2 && tables[0] == nth(0), "{tables:?}");
        }
        let killed = open(disk.at(disk.position())).unwrap().store.tables();
        assert!(killed.len() <= 2 && killed[0] == nth(0), "{killed:?}");
        assert_eq!(opened.store.add_table(nth(1)).unwrap(), 2);
        opened.store.add_table(nth(2)).unwrap();
        drop(opened);
        for state in disk.crash_states(&CrashOptions { first: disk.position(), ..few() }) {
            let tables = open(state.disk()).unwrap().store.tables();
            assert_eq!(tables, [nth(0), nth(1), nth(2)], "{fault:?} {n}: {}", state.describe());
        }
    }
}

fn few() -> CrashOptions {
    CrashOptions { exhaustive: 7, pieces: 8, samples: 4, ..CrashOptions::default() }
}

#[test]
fn damage_of_one_of_the_two_files_loses_nothing() {
    let (disk, expected) = database_with_entries();
    let check = |damaged: SimDisk, what: &str| {
        let opened = open(damaged.clone()).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(opened.rows, expected, "{what}");
        assert_eq!(opened.store.tables().len(), 4, "{what}");
        drop(opened);
        let [first, second] = BOTH.map(|name| read_file(&damaged, name));
        assert_eq!(first, second, "{what}");
    };
    for name in BOTH {
        let bytes = read_file(&disk, name);
        for bit in (0..8 * bytes.len()).step_by(5) {
            let damaged = copy(&disk);
            flip(&damaged, name, bit);
            if bit % 50 == 0 {
                let verified = verify(&damaged).unwrap();
                assert!(verified.damage.is_empty(), "{:?}", verified.damage);
                let Some(OpenError::Corrupt { file, .. }) = verified.manifest_damage else {
                    panic!("bit {bit} of {name} is not noticed");
                };
                assert_eq!(file, name);
            }
            check(damaged, &format!("bit {bit} of {name}"));
        }
        for length in 0..bytes.len() {
            let damaged = copy(&disk);
            write_file(&damaged, name, &bytes[..length]);
            check(damaged, &format!("{length} bytes of {name}"));
        }
        for length in [bytes.len() as u64 + 1, 10_000, 1 << 40] {
            let damaged = copy(&disk);
            damaged.open(name).unwrap().write_at(length - 1, &[&[0]]).unwrap();
            check(damaged, &format!("{name} has {length} bytes"));
        }
        let damaged = copy(&disk);
        damaged.remove(name).unwrap();
        check(damaged, &format!("{name} is missing"));
    }
}

#[test]
fn damage_of_both_files_is_refused_and_a_backup_advised() {
    let (disk, _) = database_with_entries();
    let bytes = read_file(&disk, "MANIFEST");
    for bit in (0..8 * bytes.len()).step_by(7) {
        let damaged = copy(&disk);
        flip(&damaged, "MANIFEST", bit);
        flip(&damaged, "MANIFEST.copy", 8 * bytes.len() - 1);
        let error = open(damaged).err().expect("refused").to_string();
        assert!(error.starts_with("MANIFEST is damaged at byte "), "{error}");
        assert!(error.contains("; and MANIFEST.copy, is damaged at byte "), "{error}");
        assert!(error.ends_with("; restore a backup"), "{error}");
        let damaged = copy(&disk);
        flip(&damaged, "MANIFEST", bit);
        damaged.remove("MANIFEST.copy").unwrap();
        assert_eq!(damage_of(&damaged).0, "MANIFEST");
    }
}

/// As `truncate -s 1T` makes it.
#[test]
fn a_manifest_is_read_by_its_own_lengths_and_not_by_the_size_of_its_file() {
    let (disk, _) = database_with_entries();
    for name in BOTH {
        disk.open(name).unwrap().write_at((1 << 40) - 1, &[&[0]]).unwrap();
    }
    let (file, offset, what) = damage_of(&disk);
    assert_eq!((&file[..], offset), ("MANIFEST", 8192));
    assert!(what.starts_with("MANIFEST has 1099511627776 bytes, and 8192 are the most"), "{what}");
    // The length that the file itself says is not trusted, either.
    for name in BOTH {
        disk.open(name).unwrap().write_at(16, &[&(1u64 << 40).to_le_bytes()]).unwrap();
    }
    let (file, offset, what) = damage_of(&disk);
    assert_eq!((&file[..], offset), ("MANIFEST", 16));
    assert!(what.starts_with("MANIFEST has a base of 1099511627776 bytes"), "{what}");
}

/// Keeps a copy as it was before a checkpoint, and damages MANIFEST.
#[test]
fn a_manifest_copy_that_names_missing_files_is_not_used() {
    let (disk, mut opened, table) = open_new();
    opened.log.write(&[&put(1, table, 1, 1)], 1).unwrap();
    opened.log.sync().unwrap();
    let before = read_file(&disk, "MANIFEST.copy");
    opened.store.checkpoint().unwrap();
    let between = read_file(&disk, "MANIFEST.copy");
    opened.log.write(&[&put(2, table, 2, 2)], 2).unwrap();
    opened.store.checkpoint().unwrap();
    drop(opened);
    flip(&disk, "MANIFEST", 300);
    for (old, missing) in [(before, "log-0000000001"), (between, "checkpoint-0000000001-0000")] {
        write_file(&disk, "MANIFEST.copy", &old);
        let (file, _, what) = damage_of(&disk);
        assert_eq!(file, "MANIFEST");
        let why = format!("; and {missing}, which the copy names, is damaged at byte 0: the file");
        assert!(what.contains(&why), "{what}");
        assert!(matches!(verify(&disk), Err(OpenError::Corrupt { .. })));
        // It would be an empty database.
        let repaired = repair(&disk, Arc::new(SimDisk::new()), None);
        assert!(matches!(repaired, Err(StoreError::Damaged(_))), "{repaired:?}");
    }
}

/// An older file is whole as well, and what it names may all be there.
#[test]
fn the_older_of_two_valid_manifests_is_not_used() {
    let disk = SimDisk::new();
    let opened = open(disk.clone()).unwrap();
    let mut older = Vec::new();
    for n in 0..16 {
        if n < 15 {
            older.push(read_file(&disk, "MANIFEST"));
        }
        let schema = TableSchema { row_type: "x".repeat(600), ..nth(n) };
        opened.store.add_table(schema).unwrap();
    }
    drop(opened);
    let last = Front::decode(&read_file(&disk, "MANIFEST")).unwrap().manifest;
    for (name, bytes) in BOTH.into_iter().flat_map(|name| older.iter().map(move |old| (name, old)))
    {
        let swapped = copy(&disk);
        write_file(&swapped, name, bytes);
        let Some(OpenError::Corrupt { file, .. }) = verify(&swapped).unwrap().manifest_damage
        else {
            panic!("{name} is not noticed");
        };
        assert_eq!(file, name);
        assert_eq!(open(swapped).unwrap().store.tables(), last.tables);
    }
}

#[test]
fn a_wrong_magic_number_beside_files_of_a_database_is_damage() {
    let (whole, _) = closed_database();
    for kept in ["log-", "checkpoint-"] {
        let disk = copy(&whole);
        for name in names(&disk) {
            if !name.starts_with(kept) {
                disk.remove(&name).unwrap();
            }
        }
        write_file(&disk, "MANIFEST", &[0x20; 300]);
        let (file, offset, what) = damage_of(&disk);
        assert_eq!((&file[..], offset, &what[..]), ("MANIFEST", 0, "this is not MANIFEST"));
        assert!(matches!(verify(&disk), Err(OpenError::Corrupt { .. })));
        disk.remove("MANIFEST").unwrap();
        for refused in [open(disk.clone()).err(), verify(&disk).err()] {
            let refused = refused.expect("refused").to_string();
            assert!(refused.contains(": the file is missing, although there is "), "{refused}");
        }
    }
    let disk = SimDisk::new();
    write_file(&disk, "MANIFEST", &[0x20; 300]);
    write_file(&disk, "MANIFEST.copy", &[0x20; 300]);
    assert!(matches!(open(disk), Err(OpenError::NotADatabase { .. })));
}

#[test]
fn a_repair_is_advised_if_it_would_succeed() {
    let (whole, _) = closed_database();
    for name in names(&whole) {
        let disk = copy(&whole);
        let is_manifest = name.starts_with("MANIFEST");
        for damaged in if is_manifest { BOTH.to_vec() } else { vec![&name[..]] } {
            flip(&disk, damaged, 8 * 90);
        }
        let error = open(disk.clone()).err().expect("refused");
        let advises = error.to_string().contains("repair");
        let repaired = repair(&disk, Arc::new(SimDisk::new()), None);
        assert_eq!(advises, repaired.is_ok(), "{error}: {repaired:?}");
        assert!(error.to_string().contains("restore a backup"), "{error}");
    }
}

/// Returns a database that a program wrote which knew version 1 only, and its rows: two tables, a
/// checkpoint with a record above its cut, a segment of each of two generations.
fn golden_database() -> (SimDisk, Map) {
    let disk = SimDisk::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1/database");
    for entry in fs::read_dir(golden).unwrap() {
        let entry = entry.unwrap();
        let (name, bytes) = (entry.file_name(), fs::read(entry.path()).unwrap());
        write_file(&disk, name.to_str().unwrap(), &bytes);
        disk.open(name.to_str().unwrap()).unwrap().sync().unwrap();
    }
    disk.sync_directory().unwrap();
    let mut expected = rows(1, (1..=9).chain([101]));
    expected.extend(rows(2, [100, 200]));
    (disk, expected)
}

#[test]
fn a_database_of_the_first_version_is_opened_and_written_in_the_last() {
    let (disk, mut expected) = golden_database();
    assert_eq!(read_file(&disk, "MANIFEST")[8], 1);
    assert!(disk.open("MANIFEST.copy").is_err());
    assert_eq!(verify(&disk).unwrap().rows, 12);
    let mut opened = open(disk.clone()).unwrap();
    assert_eq!(opened.rows, expected);
    let tables = opened.store.tables();
    assert_eq!(
        tables.iter().map(|table| &table.name[..]).collect::<Vec<_>>(),
        ["accounts", "plain"]
    );
    assert_eq!(tables[0], TableSchema { number: 1, ..schema("accounts") });
    let [first, second] = BOTH.map(|name| read_file(&disk, name));
    assert_eq!((first[8], &first), (3, &second));
    let table = opened.store.add_table(schema("later")).unwrap();
    opened.log.write(&[&put(1, table, 7, 7)], 1).unwrap();
    opened.log.close().unwrap();
    drop(opened.store);
    expected.extend(rows(table, [7]));
    assert_eq!(open(disk.clone()).unwrap().rows, expected);
    let manifest = Manifest::decode(&read_file(&disk, "MANIFEST")).unwrap();
    assert_eq!(manifest.tables.len(), 3);
}

/// Between the first version and the last, a crash leaves one or the other.
#[test]
fn a_crash_during_conversion_from_the_first_version_loses_nothing() {
    let (disk, expected) = golden_database();
    let first = disk.position();
    drop(open(disk.clone()).unwrap());
    for state in disk.crash_states(&CrashOptions { first, ..few() }) {
        let opened = open(state.disk());
        let opened = opened.unwrap_or_else(|error| panic!("{}{error}", state.describe()));
        assert_eq!(opened.rows, expected, "{}", state.describe());
    }
}
