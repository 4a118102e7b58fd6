//! The operating system's disk: files, and the lock among processes and within one.

#![forbid(unsafe_code)]

use candide_log::disk::{Disk, LockError, RealDisk};
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::PathBuf;
use std::process::{self, Child, Command, Stdio};
use std::thread;

/// A directory for one test, which is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = env::temp_dir().join(format!("candide-log-{}-{test}", process::id()));
        _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn sorted(disk: &RealDisk) -> Vec<String> {
    let mut names = disk.list().unwrap();
    names.sort();
    names
}

#[test]
fn a_file_is_read_as_it_was_written() {
    let scratch = Scratch::new("read");
    let disk = RealDisk::create(&scratch.0).unwrap();
    let file = disk.create("file").unwrap();
    assert!(file.is_empty().unwrap());
    file.write_at(3, &[b"one", b"", b"two"]).unwrap();
    file.sync().unwrap();
    disk.sync_directory().unwrap();
    assert_eq!(file.len().unwrap(), 9);

    let mut bytes = [1; 9];
    disk.open("file").unwrap().read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"\0\0\0onetwo");
    let error = file.read_at(5, &mut bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn more_parts_are_written_than_the_kernel_accepts_at_once() {
    let scratch = Scratch::new("parts");
    let disk = RealDisk::create(&scratch.0).unwrap();
    let file = disk.create("file").unwrap();
    let bytes: Vec<u8> = (0..5000_u32).map(|number| number as u8).collect();
    let parts: Vec<&[u8]> = bytes.chunks(1).collect();
    file.write_at(10, &parts).unwrap();
    let mut read = vec![0; bytes.len()];
    file.read_at(10, &mut read).unwrap();
    assert_eq!(read, bytes);
    assert_eq!(file.len().unwrap(), 5010);
}

#[test]
fn a_write_of_no_bytes_does_nothing() {
    let scratch = Scratch::new("nothing");
    let disk = RealDisk::create(&scratch.0).unwrap();
    let file = disk.create("file").unwrap();
    file.write_at(10, &[]).unwrap();
    file.write_at(10, &[b"", b""]).unwrap();
    assert_eq!(file.len().unwrap(), 0);
}

#[test]
fn files_are_created_renamed_replaced_and_removed() {
    let scratch = Scratch::new("names");
    let disk = RealDisk::create(&scratch.0).unwrap();
    fs::create_dir(scratch.0.join("folder")).unwrap();
    let first = disk.create("a").unwrap();
    first.write_at(0, &[b"first"]).unwrap();
    disk.create("b").unwrap().write_at(0, &[b"second"]).unwrap();
    disk.rename("a", "b").unwrap();
    assert_eq!(sorted(&disk), ["b"]);
    assert_eq!(disk.open("b").unwrap().len().unwrap(), 5);
    disk.create("b").unwrap();
    assert_eq!(first.len().unwrap(), 0, "to create a file empties the one that is there");
    disk.remove("b").unwrap();
    assert!(sorted(&disk).is_empty());
    for error in [
        disk.open("b").map(drop).unwrap_err(),
        disk.remove("b").unwrap_err(),
        disk.rename("b", "c").unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}

#[test]
fn a_name_that_leads_out_of_the_directory_is_refused() {
    let scratch = Scratch::new("plain");
    let disk = RealDisk::create(&scratch.0).unwrap();
    for name in ["", ".", "..", "../file", "folder/file", "/file", "a\0b", "C:file", "a\\b"] {
        let error = disk.create(name).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name:?}");
        assert!(error.to_string().contains("is not a plain file name"), "{error}");
    }
}

#[test]
fn missing_ancestors_are_created_and_a_missing_directory_is_not_opened() {
    let scratch = Scratch::new("ancestors");
    let path = scratch.0.join("one/two");
    assert_eq!(RealDisk::open(&path).unwrap_err().kind(), ErrorKind::NotFound);
    let disk = RealDisk::create(&path).unwrap();
    disk.create("file").unwrap();
    assert_eq!(disk.path(), path.canonicalize().unwrap());
    assert_eq!(sorted(&RealDisk::create(&path).unwrap()), ["file"]);
    assert_eq!(sorted(&RealDisk::open(&path).unwrap()), ["file"]);

    let file = path.join("file");
    assert_eq!(RealDisk::open(&file).unwrap_err().kind(), ErrorKind::NotADirectory);
    assert_eq!(RealDisk::create(&file).unwrap_err().kind(), ErrorKind::NotADirectory);
    assert!(RealDisk::create(file.join("below")).is_err());
}

#[test]
fn a_second_lock_in_the_process_is_refused_until_the_first_is_dropped() {
    let scratch = Scratch::new("thread");
    let disk = RealDisk::create(&scratch.0).unwrap();
    let lock = disk.lock().unwrap();
    // Another path to the same directory, on another thread.
    let path = scratch.0.join("..").join(scratch.0.file_name().unwrap());
    let again = thread::spawn(move || RealDisk::open(path).unwrap().lock().map(drop));
    match again.join().unwrap() {
        Err(LockError::InUse { pid }) => assert_eq!(pid, Some(process::id())),
        other => panic!("{other:?}"),
    }
    drop(lock);
    drop(disk.lock().unwrap());
    assert_eq!(sorted(&disk), ["LOCK"]);
}

#[test]
fn a_second_lock_in_the_process_is_refused_even_if_the_lock_file_has_been_removed() {
    let scratch = Scratch::new("removed");
    let disk = RealDisk::create(&scratch.0).unwrap();
    let _lock = disk.lock().unwrap();
    disk.remove("LOCK").unwrap();
    match disk.lock() {
        Err(LockError::InUse { pid }) => assert_eq!(pid, Some(process::id())),
        other => panic!("{other:?}"),
    }
    assert!(sorted(&disk).is_empty(), "the refused attempt opens no file");
}

#[test]
fn locks_of_different_directories_do_not_meet() {
    let scratch = Scratch::new("different");
    let one = RealDisk::create(scratch.0.join("one")).unwrap();
    let two = RealDisk::create(scratch.0.join("two")).unwrap();
    let _one = one.lock().unwrap();
    let _two = two.lock().unwrap();
}

#[test]
fn a_lock_file_that_cannot_be_opened_is_an_error_and_nothing_stays_locked() {
    let scratch = Scratch::new("unopenable");
    let disk = RealDisk::create(&scratch.0).unwrap();
    fs::create_dir(scratch.0.join("LOCK")).unwrap();
    match disk.lock() {
        Err(LockError::Io(_)) => {}
        other => panic!("{other:?}"),
    }
    fs::remove_dir(scratch.0.join("LOCK")).unwrap();
    drop(disk.lock().unwrap());
}

/// The directory that a process started by a test is to lock.
const DIRECTORY: &str = "CANDIDE_LOG_LOCK";

/// Starts this test binary again, to run [`another_process`] only. The process answers with one
/// line on its standard output.
fn start(scratch: &Scratch) -> (Child, String) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "another_process", "--ignored", "--nocapture"])
        .env(DIRECTORY, &scratch.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let answer = lines.map(Result::unwrap).find(|line| line.starts_with("lock: "));
    (child, answer.expect("the other process says what became of the lock"))
}

#[test]
#[ignore = "it is the other process of the tests below, which start it"]
fn another_process() {
    let Ok(path) = env::var(DIRECTORY) else { return };
    let disk = RealDisk::open(path).unwrap();
    let lock = disk.lock();
    match &lock {
        Ok(_) => println!("\nlock: mine"),
        Err(error) => println!("\nlock: {error}"),
    }
    // Until the test closes the pipe, or ends the process.
    _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn another_process_is_refused_and_told_which_process_has_the_lock() {
    let scratch = Scratch::new("refused");
    let disk = RealDisk::create(&scratch.0).unwrap();
    let lock = disk.lock().unwrap();
    let (mut child, answer) = start(&scratch);
    let expected = format!("lock: the directory is in use by the process {}", process::id());
    assert_eq!(answer, expected);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(lock);
}

#[test]
fn a_process_that_is_killed_leaves_no_lock() {
    let scratch = Scratch::new("killed");
    let disk = RealDisk::create(&scratch.0).unwrap();
    let (mut child, answer) = start(&scratch);
    assert_eq!(answer, "lock: mine");
    match disk.lock() {
        Err(LockError::InUse { pid }) => assert_eq!(pid, Some(child.id())),
        other => panic!("{other:?}"),
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(disk.lock().unwrap());
}
