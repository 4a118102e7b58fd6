//! Crashes that leave MANIFEST and its copy different, and damage of one of them before the next
//! opening.

use crate::support::*;
use candide_log::disk::Disk;
use candide_log::format::manifest::Front;
use candide_log::{OpenError, TableSchema};
use candide_log_testing::{CrashOptions, SimDisk};

/// What was acknowledged up to a position.
#[derive(Debug, Clone, Copy)]
struct Acknowledged {
    position: usize,
    tables: usize,
    rows: u64,
}

/// Adds tables, commits, and makes checkpoints. Returns what was acknowledged when.
fn run(disk: &SimDisk) -> Vec<Acknowledged> {
    let mut opened = open(disk.clone()).unwrap();
    let mut all = Vec::new();
    let mut note = |tables, rows| {
        all.push(Acknowledged { position: disk.position(), tables, rows });
    };
    opened.store.add_table(schema("accounts")).unwrap();
    note(1, 0);
    for number in 1..=5 {
        let table = TableSchema { row_type: "x".repeat(900), ..schema(&format!("t{number}")) };
        opened.store.add_table(table).unwrap();
        note(number as usize + 1, number - 1);
        opened.log.write(&[&put(number, 1, number, number)], number).unwrap();
        opened.log.sync().unwrap();
        note(number as usize + 1, number);
        if number == 3 {
            opened.store.checkpoint().unwrap();
        }
    }
    all
}

/// Returns the lengths at which a file ends with its base or with an entry, and a few others.
fn lengths(bytes: &[u8]) -> Vec<usize> {
    let is_end =
        |length: &usize| Front::decode(&bytes[..*length]).is_ok_and(|front| front.tail.is_none());
    let ends = (100..bytes.len()).filter(is_end);
    ends.chain([0, 50, bytes.len().saturating_sub(1)]).collect()
}

#[test]
fn damage_of_one_manifest_after_a_crash_loses_no_acknowledged_commit() {
    let disk = SimDisk::new();
    let all = run(&disk);
    let few = CrashOptions {
        first: all[0].position,
        exhaustive: 3,
        pieces: 4,
        samples: 1,
        ..CrashOptions::default()
    };
    let (mut opened, mut refused) = (0, 0);
    for state in disk.crash_states(&few).step_by(3) {
        let least = all.iter().rfind(|last| last.position <= state.id().position).unwrap();
        let mut check = |disk: SimDisk, what: &str| match open(disk) {
            Ok(found) => {
                opened += 1;
                let tables = found.store.tables().len();
                let (rows, names) = (found.rows.len() as u64, state.describe());
                assert!(tables >= least.tables, "{names}{what}: {tables} tables, {least:?}");
                assert!(rows >= least.rows, "{names}{what}: {rows} rows, {least:?}");
            }
            Err(OpenError::Corrupt { .. }) => refused += 1,
            Err(error) => panic!("{}{what}: {error}", state.describe()),
        };
        for name in ["MANIFEST", "MANIFEST.copy"] {
            let whole = state.disk();
            if !names(&whole).iter().any(|there| there == name) {
                continue;
            }
            let bytes = read_file(&whole, name);
            for length in lengths(&bytes) {
                let damaged = copy(&whole);
                write_file(&damaged, name, &bytes[..length]);
                check(damaged, &format!("{length} bytes of {name}"));
            }
            for bit in (0..8 * bytes.len()).step_by(4001) {
                let mut bytes = bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let damaged = copy(&whole);
                write_file(&damaged, name, &bytes);
                check(damaged, &format!("bit {bit} of {name}"));
            }
            whole.remove(name).unwrap();
            check(whole, &format!("without {name}"));
        }
    }
    assert!(opened > 10 * refused, "{opened} opened, {refused} refused");
}
