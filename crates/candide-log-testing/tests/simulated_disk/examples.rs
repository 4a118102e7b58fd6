//! Small scripts, and by hand what a crash leaves of them.

use super::{Files, files};
use candide_log::disk::Disk;
use candide_log_testing::{CrashOptions, Fault, Grain, SimDisk};
use std::collections::BTreeSet;

fn states(disk: &SimDisk) -> BTreeSet<Files> {
    let position = disk.position();
    let options = CrashOptions { first: position, last: position, ..CrashOptions::default() };
    disk.crash_states(&options).map(|state| files(&state.disk())).collect()
}

/// Returns a disk with these durable files.
fn durable(contents: &[(&str, &[u8])]) -> SimDisk {
    let disk = SimDisk::new();
    for (name, bytes) in contents {
        let file = disk.create(name).unwrap();
        file.write_at(0, &[bytes]).unwrap();
        file.sync().unwrap();
    }
    disk.sync_directory().unwrap();
    assert_eq!(states(&disk).len(), 1);
    disk
}

fn set<const N: usize>(states: [&[(&str, &[u8])]; N]) -> BTreeSet<Files> {
    let state = |state: &[(&str, &[u8])]| {
        state.iter().map(|(name, bytes)| (name.to_string(), bytes.to_vec())).collect()
    };
    states.map(state).into()
}

#[test]
fn a_synced_file_in_an_unsynced_directory_has_its_bytes_or_is_missing() {
    let disk = SimDisk::new();
    let file = disk.create("a").unwrap();
    file.write_at(0, &[b"x"]).unwrap();
    file.sync().unwrap();
    assert_eq!(states(&disk), set([&[], &[("a", b"x")]]));
}

#[test]
fn a_synced_name_does_not_make_bytes_durable() {
    let disk = durable(&[]);
    disk.create("a").unwrap().write_at(0, &[b"x"]).unwrap();
    disk.sync_directory().unwrap();
    assert_eq!(states(&disk), set([&[("a", b"")], &[("a", b"\0")], &[("a", b"x")]]));
}

#[test]
fn a_rename_is_durable_or_not_independently_of_the_bytes() {
    let disk = durable(&[("new", b"o"), ("old", b"x")]);
    disk.open("new").unwrap().write_at(0, &[b"n"]).unwrap();
    disk.rename("new", "old").unwrap();
    let expected = set([
        &[("new", b"o"), ("old", b"x")],
        &[("new", b"n"), ("old", b"x")],
        &[("old", b"o")],
        &[("old", b"n")],
    ]);
    assert_eq!(states(&disk), expected);
}

#[test]
fn unsynced_changes_of_the_directory_are_lost_one_by_one() {
    let disk = durable(&[("a", b"a"), ("b", b"b")]);
    disk.remove("a").unwrap();
    disk.rename("b", "c").unwrap();
    let expected = set([
        &[("a", b"a"), ("b", b"b")],
        &[("b", b"b")],
        &[("a", b"a"), ("c", b"b")],
        &[("c", b"b")],
    ]);
    assert_eq!(states(&disk), expected);
}

#[test]
fn a_rename_or_removal_of_a_file_that_was_never_created_is_no_state_of_its_own() {
    let disk = durable(&[]);
    disk.create("a").unwrap();
    disk.rename("a", "b").unwrap();
    disk.remove("b").unwrap();
    let options = CrashOptions { first: disk.position(), ..CrashOptions::default() };
    let ids = disk.crash_states(&options).map(|state| state.id().to_string());
    let subsets: Vec<String> = ids.collect();
    let expected = [0, 1, 3, 7].map(|bits| format!("{}:512:subset-{bits}", disk.position()));
    assert_eq!(subsets, expected);
}

#[test]
fn a_write_is_torn_at_sectors_and_not_within_one() {
    let disk = durable(&[("a", &[1; 1536])]);
    disk.open("a").unwrap().write_at(100, &[&[2; 1000]]).unwrap();
    let mut expected = BTreeSet::new();
    for subset in 0..8 {
        let mut bytes = vec![1; 1536];
        for (number, range) in [100..512, 512..1024, 1024..1100].into_iter().enumerate() {
            if subset >> number & 1 == 1 {
                bytes[range].fill(2);
            }
        }
        expected.insert(Files::from([("a".to_string(), bytes)]));
    }
    assert_eq!(states(&disk), expected);
}

#[test]
fn a_file_that_is_emptied_and_written_anew_has_its_old_size_or_the_new_one() {
    let disk = durable(&[("a", b"old")]);
    disk.create("a").unwrap().write_at(0, &[b"n"]).unwrap();
    let expected = [&b"old"[..], b"nld", b"", b"\0", b"n"];
    let expected: BTreeSet<Vec<u8>> = expected.map(<[u8]>::to_vec).into();
    let contents: BTreeSet<Vec<u8>> =
        states(&disk).into_iter().map(|mut files| files.remove("a").unwrap()).collect();
    assert_eq!(contents, expected);
}

#[test]
fn bytes_that_replace_themselves_after_the_file_was_emptied_can_be_lost() {
    let disk = durable(&[("a", b"xy")]);
    disk.create("a").unwrap().write_at(0, &[b"x"]).unwrap();
    let expected = set([&[("a", b"xy")], &[("a", b"")], &[("a", b"\0")], &[("a", b"x")]]);
    assert_eq!(states(&disk), expected);
}

#[test]
fn bytes_that_return_to_what_they_were_before_a_durable_write_can_be_lost() {
    let disk = durable(&[("a", &[1; 1024])]);
    let file = disk.open("a").unwrap();
    file.write_at(0, &[b"2"]).unwrap();
    disk.fail(1, Fault::SyncLoses);
    file.sync().unwrap_err();
    file.write_at(512, &[b"3"]).unwrap();
    file.sync().unwrap();
    file.write_at(512, &[&[1]]).unwrap();
    let places = |files: &Files| (files["a"][0], files["a"][512]);
    let expected = [(1, b'3'), (b'2', b'3'), (1, 1), (b'2', 1)].into();
    assert_eq!(states(&disk).iter().map(places).collect::<BTreeSet<_>>(), expected);
}

#[test]
fn bytes_that_survive_beyond_the_size_are_zeros_when_the_file_grows_again() {
    let disk = durable(&[("a", b"x")]);
    disk.open("a").unwrap().write_at(1, &[b"lost"]).unwrap();
    let options = CrashOptions { first: disk.position(), ..CrashOptions::default() };
    let mut grown = 0;
    for state in disk.crash_states(&options).map(|state| state.disk()) {
        let file = state.open("a").unwrap();
        if file.len().unwrap() == 1 {
            file.write_at(5, &[b"y"]).unwrap();
            assert_eq!(files(&state)["a"], b"x\0\0\0\0y");
            grown += 1;
        }
    }
    assert_eq!(grown, 2, "the size is lost, and the bytes are or not");
}

#[test]
fn sectors_written_with_equal_bytes_add_no_states() {
    let disk = durable(&[("a", &[1; 4096])]);
    let mut bytes = [1; 4096];
    bytes[700] = 2;
    disk.open("a").unwrap().write_at(0, &[&bytes]).unwrap();
    let options = CrashOptions { first: disk.position(), ..CrashOptions::default() };
    assert_eq!(disk.crash_states(&options).count(), 2);
}

#[test]
fn a_file_grows_in_parts() {
    let disk = durable(&[("a", b"")]);
    disk.open("a").unwrap().write_at(0, &[&[0; 65536]]).unwrap();
    let sizes: BTreeSet<usize> = states(&disk).iter().map(|files| files["a"].len()).collect();
    assert_eq!(sizes, [0, 32768, 65536].into());
}

#[test]
fn a_large_file_of_zeros_has_few_states() {
    let disk = durable(&[("a", b"")]);
    let (file, zeros) = (disk.open("a").unwrap(), vec![0; 1 << 20]);
    for part in 0..4 {
        file.write_at(part << 20, &[&zeros]).unwrap();
    }
    let options = CrashOptions { first: disk.position(), ..CrashOptions::default() };
    assert_eq!(disk.crash_states(&options).count(), 1 << 8, "two sizes for each write");
}

#[test]
fn a_large_write_has_states_of_ever_larger_pieces() {
    let disk = durable(&[("a", &[0; 1 << 20])]);
    disk.open("a").unwrap().write_at(0, &[&[1; 1 << 20]]).unwrap();
    let options = CrashOptions { first: disk.position(), pieces: 20, ..CrashOptions::default() };
    let ids: Vec<_> = disk.crash_states(&options).map(|state| state.id()).collect();
    let count = |grain| ids.iter().filter(|id| id.grain == grain).count();
    assert_eq!(count(Grain::Writes), 2, "the write is there or not");
    assert_eq!(count(Grain::Bytes(65536)), 32, "each of 16 pieces is missing, or alone");
    assert_eq!(count(Grain::Bytes(512)), 32, "and 32 random subsets of sectors");
    assert_eq!(ids.len(), 66);
}

#[test]
fn changes_whose_sync_failed_are_not_made_durable_by_a_later_sync() {
    let disk = durable(&[("a", &[1; 1024])]);
    let file = disk.open("a").unwrap();
    file.write_at(0, &[b"2"]).unwrap();
    disk.fail(1, Fault::SyncLoses);
    file.sync().unwrap_err();
    file.write_at(512, &[b"3"]).unwrap();
    file.sync().unwrap();
    let places = |files: &Files| (files["a"][0], files["a"][512]);
    let expected = [(1, b'3'), (b'2', b'3')].into();
    assert_eq!(states(&disk).iter().map(places).collect::<BTreeSet<_>>(), expected);
    assert_eq!(places(&files(&disk)), (b'2', b'3'), "the running program sees both");
}

#[test]
fn a_removed_file_is_still_written_and_read_by_its_handle() {
    let disk = durable(&[("a", b"1")]);
    let file = disk.open("a").unwrap();
    disk.remove("a").unwrap();
    disk.sync_directory().unwrap();
    file.write_at(0, &[b"2"]).unwrap();
    let mut byte = [0];
    file.read_at(0, &mut byte).unwrap();
    assert_eq!(&byte, b"2");
    let options = CrashOptions { first: disk.position(), ..CrashOptions::default() };
    assert_eq!(disk.crash_states(&options).count(), 1, "what becomes of it does not matter");
    assert_eq!(states(&disk), set([&[]]));
}

#[test]
fn the_description_of_a_state_lists_kept_and_lost_changes() {
    let disk = durable(&[("a", &[1; 1024])]);
    disk.open("a").unwrap().write_at(0, &[&[2; 1024]]).unwrap();
    disk.rename("a", "b").unwrap();
    let id = format!("{}:512:all-but-1", disk.position()).parse().unwrap();
    let expected = format!(
        "{0}:512:all-but-1 after {0} operations:\n  rename a to b: kept\n  a: write 0..1024: lost \
         bytes 0..512\n",
        disk.position()
    );
    assert_eq!(disk.state(id).unwrap().describe(), expected);
    assert!(disk.state(format!("{}:512:nothing", disk.position() + 1).parse().unwrap()).is_none());
    let widest = format!("{}:{}:nothing", disk.position(), u64::MAX).parse().unwrap();
    assert!(disk.state(widest).unwrap().describe().ends_with("a: write 0..1024: lost\n"));
    let operations = disk.operations();
    assert_eq!(operations[0], "create a as file 0");
    assert_eq!(operations[operations.len() - 2..], ["file 0: write 0..1024", "rename a to b"]);
}

#[test]
fn a_clone_is_the_same_disk_and_a_lock_excludes_others_until_it_is_dropped() {
    let disk = SimDisk::new();
    let other = disk.clone();
    let lock = disk.lock().unwrap();
    other.create("a").unwrap();
    assert_eq!(disk.list().unwrap(), ["a"]);
    let error = other.lock().map(drop).unwrap_err().to_string();
    let expected = format!("the directory is in use by the process {}", std::process::id());
    assert_eq!(error, expected);
    drop(disk.at(disk.position()).lock().unwrap());
    drop(lock);
    drop(other.lock().unwrap());
}
