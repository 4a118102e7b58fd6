//! Faults that a test asks for, each with what it does and does not do.

use super::files;
use candide_log::disk::{Disk, DiskFile};
use candide_log_testing::{Fault, SimDisk};
use std::io::{self, ErrorKind};

/// Returns a disk, and a file `a` of 1024 bytes on it.
fn disk() -> (SimDisk, Box<dyn DiskFile>) {
    let disk = SimDisk::new();
    let file = disk.create("a").unwrap();
    file.write_at(0, &[&[1; 1024]]).unwrap();
    (disk, file)
}

fn read(file: &dyn DiskFile, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_at(offset, &mut bytes)?;
    Ok(bytes)
}

#[test]
fn an_error_hits_the_nth_operation_of_any_kind_which_has_no_effect() {
    type Step = fn(&SimDisk, &dyn DiskFile) -> io::Result<()>;
    let steps: [Step; 10] = [
        |disk, _| disk.list().map(drop),
        |disk, _| disk.create("b").map(drop),
        |disk, _| disk.open("a").map(drop),
        |disk, _| disk.rename("a", "c"),
        |_, file| file.len().map(drop),
        |_, file| read(file, 0, 1).map(drop),
        |_, file| file.write_at(0, &[b"2"]),
        |_, file| file.sync(),
        |disk, _| disk.sync_directory(),
        |disk, _| disk.remove("c"),
    ];
    for failing in 0..steps.len() {
        let (disk, file) = disk();
        disk.fail(failing as u64 + 1, Fault::Error);
        for (number, step) in steps.iter().enumerate().take(failing + 1) {
            let position = disk.position();
            assert_eq!(disk.pending_faults(), 1);
            let result = step(&disk, &*file);
            assert_eq!(result.is_err(), number == failing, "{number}");
            if let Err(error) = result {
                assert_eq!(error.kind(), ErrorKind::Other);
                assert_eq!(disk.position(), position);
            }
        }
        assert_eq!(disk.pending_faults(), 0);
        file.sync().unwrap();
    }
}

#[test]
fn a_short_write_leaves_its_first_bytes() {
    let (disk, file) = disk();
    disk.fail(1, Fault::ShortWrite { bytes: 3 });
    assert_eq!(file.write_at(1022, &[b"ab", b"cd"]).unwrap_err().kind(), ErrorKind::Other);
    assert_eq!(read(&*file, 1020, 5).unwrap(), b"\x01\x01abc");
    assert_eq!(file.len().unwrap(), 1025);
}

#[test]
fn a_full_disk_refuses_files_and_writes_without_an_effect() {
    let (disk, file) = disk();
    let before = files(&disk);
    for n in 1..=2 {
        disk.fail(n, Fault::StorageFull);
    }
    assert_eq!(disk.create("b").map(drop).unwrap_err().kind(), ErrorKind::StorageFull);
    file.sync().unwrap();
    assert_eq!(file.write_at(0, &[b"2"]).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(files(&disk), before);
    file.write_at(0, &[b"2"]).unwrap();
}

#[test]
fn a_flipped_bit_is_read_once() {
    let (disk, file) = disk();
    disk.fail(2, Fault::FlipBit { bit: 8 * 1024 + 11 });
    assert_eq!(read(&*file, 0, 4).unwrap(), [1, 1, 1, 1]);
    assert_eq!(read(&*file, 0, 1024).unwrap()[..3], [1, 9, 1]);
    assert_eq!(read(&*file, 0, 4).unwrap(), [1, 1, 1, 1]);
}

#[test]
fn a_misdirected_write_goes_elsewhere_without_an_error() {
    let (disk, file) = disk();
    disk.fail(1, Fault::Misdirected { offset: 512 });
    file.write_at(0, &[b"ab"]).unwrap();
    assert_eq!(read(&*file, 0, 2).unwrap(), [1, 1]);
    assert_eq!(read(&*file, 511, 4).unwrap(), b"\x01ab\x01");
    file.write_at(0, &[b"cd"]).unwrap();
    assert_eq!(read(&*file, 0, 2).unwrap(), b"cd");
}

#[test]
fn an_old_block_is_what_was_there_before_the_last_write_to_the_place() {
    let (disk, file) = disk();
    file.write_at(0, &[b"2222"]).unwrap();
    file.write_at(2, &[b"33"]).unwrap();
    file.write_at(512, &[b"4"]).unwrap();
    disk.fail(1, Fault::OldBlock);
    assert_eq!(read(&*file, 0, 5).unwrap(), b"2222\x01");
    disk.fail(1, Fault::OldBlock);
    assert_eq!(read(&*file, 0, 2).unwrap(), [1, 1]);
    assert_eq!(read(&*file, 0, 5).unwrap(), b"2233\x01");
}

#[test]
fn a_failed_sync_of_the_directory_leaves_entries_that_no_later_sync_makes_durable() {
    let (disk, _file) = disk();
    disk.fail(1, Fault::SyncLoses);
    assert_eq!(disk.sync_directory().unwrap_err().kind(), ErrorKind::Other);
    disk.sync_directory().unwrap();
    let nothing = disk.state(format!("{}:512:nothing", disk.position()).parse().unwrap()).unwrap();
    assert!(files(&nothing.disk()).is_empty());
    assert!(files(&disk).contains_key("a"));
}

#[test]
fn only_operations_that_a_fault_applies_to_are_counted() {
    let (disk, file) = disk();
    disk.fail(2, Fault::SyncLoses);
    disk.fail(3, Fault::ShortWrite { bytes: 0 });
    for _ in 0..2 {
        file.write_at(0, &[b"2"]).unwrap();
    }
    disk.sync_directory().unwrap();
    read(&*file, 0, 1).unwrap();
    assert_eq!(disk.pending_faults(), 2);
    file.sync().unwrap_err();
    file.write_at(0, &[b"2"]).unwrap_err();
    assert_eq!(disk.pending_faults(), 0);
    disk.fail(1, Fault::Error);
    disk.clear_faults();
    file.sync().unwrap();
}

#[test]
#[should_panic(expected = "the next operation is the first one")]
fn a_fault_before_the_next_operation_is_refused() {
    SimDisk::new().fail(0, Fault::Error);
}

#[test]
fn a_quota_lets_files_be_overwritten_and_stops_them_from_growing() {
    let (disk, file) = disk();
    disk.set_quota(Some(1030));
    file.write_at(0, &[&[2; 1024]]).unwrap();
    let other = disk.create("b").unwrap();
    let error = other.write_at(2, &[b"abcdef"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(read(&*other, 0, 6).unwrap(), b"\0\0abcd");
    assert_eq!(disk.used(), 1030);
    assert_eq!(file.write_at(1024, &[b"a"]).unwrap_err().kind(), ErrorKind::StorageFull);
    disk.remove("b").unwrap();
    file.write_at(1024, &[b"a"]).unwrap();
    disk.set_quota(None);
    file.write_at(5000, &[b"a"]).unwrap();
    assert_eq!(disk.used(), 5001);
}

#[test]
fn a_quota_below_what_is_there_lets_nothing_grow() {
    let (disk, file) = disk();
    disk.set_quota(Some(10));
    file.write_at(1000, &[b"ab"]).unwrap();
    assert_eq!(file.write_at(1023, &[b"ab"]).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(read(&*file, 1022, 2).unwrap(), b"\x01a");
    assert_eq!(file.len().unwrap(), 1024);
}
