//! Files that are damaged, missing or exchanged, and disks that read and write at wrong places.

use crate::crashes::scripts;
use crate::model::{Habits, World};
use crate::support::*;
use candide_log::OpenError;
use candide_log::disk::Disk;
use candide_log::format::block::{self, BlockHeader};
use candide_log::format::commit::ChangeKind;
use candide_log::format::segment::SegmentHeader;
use candide_log_testing::{Fault, SimDisk};

/// Returns the number of bytes of a file that contain something that is needed: of a segment its
/// header and its blocks but for a confirmation at the end of the log, of MANIFEST and of its copy
/// nothing, while the other one is whole.
fn needed(disk: &SimDisk, name: &str) -> usize {
    let bytes = read_file(disk, name);
    if name.starts_with("MANIFEST") {
        return 0;
    }
    if !name.starts_with("log-") {
        return bytes.len();
    }
    let header = SegmentHeader::decode(&bytes).unwrap();
    let mut end = 4096;
    let mut last = None;
    while let Ok((header, _)) = block::decode(&bytes[end..], header.salt) {
        end += header.size() as usize;
        last = Some(header);
    }
    let is_last = names(disk).iter().rfind(|name| name.starts_with("log-")).unwrap() == name;
    match last {
        Some(last) if is_last && last.payload_bytes == 0 => end - last.size() as usize,
        _ => end,
    }
}

/// Opens a damaged database, which must be refused, or have lost nothing if the damage is beyond
/// what is needed.
fn check_refused(disk: SimDisk, expected: &Map, is_needed: bool, what: &str) {
    match open(disk) {
        Ok(opened) => {
            assert!(!is_needed, "{what} is not noticed");
            assert_eq!(opened.rows, *expected, "{what}");
        }
        Err(OpenError::Corrupt { .. } | OpenError::NotADatabase { .. }) => {
            assert!(is_needed, "{what} does not matter");
        }
        Err(error) => panic!("{what}: {error}"),
    }
}

/// Flips bits in each file.
#[test]
fn damage_of_any_used_bit_is_noticed() {
    let (disk, expected) = closed_database();
    for name in &names(&disk) {
        let bytes = read_file(&disk, name);
        let needed = needed(&disk, name);
        let step = if name.starts_with("log-") { 29 } else { 17 };
        for place in (0..bytes.len()).step_by(step) {
            let damaged = copy(&disk);
            let bit = 1 << (place % 8);
            let file = damaged.open(name).unwrap();
            file.write_at(place as u64, &[&[bytes[place] ^ bit]]).unwrap();
            check_refused(damaged, &expected, place < needed, &format!("byte {place} of {name}"));
        }
    }
}

/// Loses each sector in turn.
#[test]
fn sectors_that_are_lost_are_noticed() {
    let (disk, expected) = closed_database();
    for name in names(&disk) {
        let bytes = read_file(&disk, &name);
        for place in (0..bytes.len()).step_by(512) {
            let sector = place..(place + 512).min(bytes.len());
            if bytes[sector.clone()].iter().all(|byte| *byte == 0) {
                continue;
            }
            let is_needed = place < needed(&disk, &name);
            for garbage in [0, 0xa5] {
                let damaged = copy(&disk);
                let file = damaged.open(&name).unwrap();
                file.write_at(place as u64, &[&vec![garbage; sector.len()]]).unwrap();
                let what = format!("sector {place} of {name}");
                check_refused(damaged, &expected, is_needed, &what);
            }
        }
    }
}

/// Removes each file in turn.
#[test]
fn files_that_are_missing_are_noticed() {
    let (disk, expected) = closed_database();
    for name in &names(&disk) {
        let damaged = copy(&disk);
        damaged.remove(name).unwrap();
        let is_needed = needed(&disk, name) > 0;
        check_refused(damaged, &expected, is_needed, &format!("that {name} is missing"));
    }
}

#[test]
fn files_that_are_cut_off_or_exchanged_are_noticed() {
    let (disk, expected) = closed_database();
    let names = names(&disk);
    for name in &names {
        let bytes = read_file(&disk, name);
        let is_needed = needed(&disk, name) > 0;
        for length in (0..bytes.len()).step_by(1021).chain([bytes.len() - 1]) {
            let damaged = copy(&disk);
            write_file(&damaged, name, &bytes[..length]);
            let what = format!("that {name} has {length} bytes");
            check_refused(damaged, &expected, is_needed, &what);
        }
        for other in names.iter().filter(|other| *other != name) {
            let damaged = copy(&disk);
            write_file(&damaged, name, &read_file(&disk, other));
            check_refused(damaged, &expected, is_needed, &format!("that {name} is {other}"));
        }
    }
    let (other, _) = closed_database();
    for name in &names {
        let damaged = copy(&disk);
        write_file(&damaged, name, &read_file(&other, name));
        let is_needed = name != "MANIFEST.copy";
        let what = format!("that {name} is of another database");
        check_refused(damaged, &expected, is_needed, &what);
    }
}

#[test]
fn a_disk_that_reads_wrongly_leads_to_no_wrong_rows() {
    let (disk, expected) = closed_database();
    for fault in (0..64).map(|bit| Fault::FlipBit { bit: bit * 997 }).chain([Fault::OldBlock]) {
        for n in 1.. {
            let disk = copy(&disk);
            disk.fail(n, fault);
            match open(disk.clone()) {
                Ok(opened) => assert_eq!(opened.rows, expected, "{fault:?} at {n}"),
                Err(OpenError::Corrupt { .. } | OpenError::NotADatabase { .. }) => {}
                Err(error) => panic!("{fault:?} at {n}: {error}"),
            }
            if disk.pending_faults() > 0 {
                break;
            }
        }
    }
}

#[test]
fn a_write_that_goes_to_another_place_leads_to_no_wrong_rows() {
    let habits = Habits { tables: 8, checkpoints: 10, reopenings: 0, confirmations: 10 };
    let mut found = 0;
    for seed in scripts(4) {
        // Within the smallest segment: beyond the end, the last block would be as if never written.
        for offset in [0, 512, 4096, 8192] {
            for n in 1.. {
                let mut world = World::new(seed);
                world.disk.fail(n, Fault::Misdirected { offset });
                // A checkpoint finds damage of the log before an opening does.
                for _ in 0..12 {
                    let _ = world.step(habits);
                }
                let has_failed = world.disk.pending_faults() == 0;
                world.disk.clear_faults();
                world.close_failed();
                match open(world.disk.clone()) {
                    Ok(opened) => world.check_killed(&opened, world.disk.position()).unwrap(),
                    Err(OpenError::Corrupt { .. } | OpenError::NotADatabase { .. }) => found += 1,
                    Err(error) => panic!("{error}"),
                }
                if !has_failed {
                    break;
                }
            }
        }
    }
    assert!(found > 0);
}

/// Writes three blocks, changes the last one, and opens the database.
fn with_changed_block(
    confirmed: bool,
    change: impl FnOnce(&mut BlockHeader, &mut Vec<u64>),
) -> Result<Opened, OpenError> {
    open(changed_block(confirmed, change))
}

/// Writes three blocks, and changes the last one.
pub fn changed_block(
    confirmed: bool,
    change: impl FnOnce(&mut BlockHeader, &mut Vec<u64>),
) -> SimDisk {
    let disk = SimDisk::new();
    let mut opened =
        open_with(disk.clone(), &candide_log::StoreOptions::default()).expect("a new database");
    let table = opened.store.add_table(schema("accounts")).unwrap();
    for number in 1..=3 {
        opened.log.write(&[&put(number, table, number, number)], number).unwrap();
    }
    if confirmed {
        opened.log.close().unwrap();
    } else {
        drop(opened.log);
    }
    drop(opened.store);
    let (name, offset) = ("log-0000000001", 4096 + 2 * 4096);
    let bytes = read_file(&disk, name);
    let salt = SegmentHeader::decode(&bytes).unwrap().salt;
    let (mut header, payload) = block::decode(&bytes[offset..], salt).unwrap();
    let mut words = candide_log::format::bytes::byte_words(payload).unwrap().into_owned();
    change(&mut header, &mut words);
    let header = header.seal(salt, &[&words]);
    let file = disk.open(name).unwrap();
    let bytes = candide_log::format::bytes::word_bytes(&words).into_owned();
    file.write_at(offset as u64, &[&header.encode(), &bytes, header.padding()]).unwrap();
    disk
}

fn corrupt(result: Result<Opened, OpenError>) -> (String, u64, String) {
    match result {
        Err(OpenError::Corrupt { file, offset, what }) => (file, offset, what),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("not noticed"),
    }
}

/// Opens logs that change rows that are not there.
#[test]
fn an_update_of_a_row_that_is_not_there_is_damage() {
    for kind in [ChangeKind::Update, ChangeKind::Delete] {
        let words = if kind == ChangeKind::Delete { vec![] } else { vec![1] };
        let result = with_changed_block(false, |_, payload| {
            payload.clear();
            commit(payload, 3, 3, &[Write::new(kind, 1, 77, 0, &words)]);
        });
        let (file, offset, what) = corrupt(result);
        assert_eq!((&file[..], offset), ("log-0000000001", 3 * 4096));
        assert!(what.ends_with("of a row that is not there: accounts [77]"), "{what}");
    }
}

#[test]
fn changes_that_do_not_fit_their_table_are_damage() {
    let writes =
        [Write::new(ChangeKind::Put, 9, 1, 0, &[1]), Write::new(ChangeKind::Put, 1, 1, 3, &[1, 2])];
    let expected = ["a row of table 9, but there is no such table", "a change of word 4"];
    for (write, expected) in writes.into_iter().zip(expected) {
        let result = with_changed_block(false, |_, payload| {
            payload.clear();
            commit(payload, 3, 3, &[write]);
        });
        let (.., what) = corrupt(result);
        assert!(what.starts_with(expected), "{what}");
    }
}

#[test]
fn a_record_below_the_cut_is_damage() {
    let (file, offset, what) = corrupt(with_changed_block(false, |_, payload| payload[1] = 2));
    assert_eq!((&file[..], offset), ("log-0000000001", 3 * 4096 + 64));
    assert!(what.contains("a record below the cut: stamp 2, after cut 2"), "{what}");
}

#[test]
fn a_valid_block_that_does_not_continue_the_log_is_damage() {
    let changes: [fn(&mut BlockHeader); 4] = [
        |header| (header.cut, header.synced) = (1, 1),
        |header| header.before ^= 1,
        |header| header.sequence = 4,
        |header| header.synced = 3,
    ];
    for change in changes {
        let result = with_changed_block(false, |header, _| change(header));
        let (_, offset, _) = corrupt(result);
        assert_eq!(offset, 3 * 4096);
    }
    let result = with_changed_block(true, |_, payload| payload[2] = 4);
    let (_, offset, what) = corrupt(result);
    assert_eq!(offset, 4 * 4096, "the confirmation does not continue the changed block");
    assert!(what.contains("the checksum of the block before"), "{what}");
}

#[test]
fn the_last_block_is_torn_unless_it_is_confirmed() {
    for confirmed in [false, true] {
        let (disk, mut opened, table) = open_new();
        for number in 1..=2 {
            opened.log.write(&[&put(number, table, number, number)], number).unwrap();
        }
        if confirmed {
            opened.log.confirm().unwrap();
        }
        drop(opened);
        let file = disk.open("log-0000000001").unwrap();
        file.write_at(2 * 4096 + 70, &[&[0xff]]).unwrap();
        let result = open(disk);
        if confirmed {
            let (file, offset, what) = corrupt(result);
            assert_eq!((&file[..], offset), ("log-0000000001", 2 * 4096));
            assert!(what.contains("a later block is at byte 12288 of log-0000000001"), "{what}");
        } else {
            assert_eq!(result.unwrap().rows, rows(table, [1]));
        }
    }
}

#[test]
fn a_directory_without_a_database_is_left_unchanged() {
    let disk = SimDisk::new();
    write_file(&disk, "thesis.tex", b"chapter one");
    let Err(OpenError::NotADatabase { found }) = open(disk.clone()) else { panic!("opened") };
    assert_eq!(found, "a file \"thesis.tex\"");
    assert_eq!(names(&disk), ["thesis.tex"]);
    let disk = SimDisk::new();
    write_file(&disk, "MANIFEST", b"Manifest-Version: 1.0\nCreated-By: another program\n");
    let Err(OpenError::NotADatabase { found }) = open(disk.clone()) else { panic!("opened") };
    assert!(found.contains("no database has written"), "{found}");
}

#[test]
fn files_of_a_later_format_are_refused_with_its_version() {
    let (disk, _) = closed_database();
    for (name, length, latest) in [("MANIFEST", usize::MAX, 2), ("log-0000000003", 4096, 1)] {
        let damaged = copy(&disk);
        let mut bytes = read_file(&disk, name);
        let end = length.min(bytes.len()) - 4;
        bytes[8] = 9;
        let crc = crc32c::crc32c(&bytes[..end]);
        bytes[end..end + 4].copy_from_slice(&crc.to_le_bytes());
        write_file(&damaged, name, &bytes);
        let Err(OpenError::Format { file, found, known }) = open(damaged) else { panic!("opened") };
        assert_eq!((&file[..], found, known), (name, 9, latest));
    }
}
