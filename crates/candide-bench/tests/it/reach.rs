//! The tools for places that have the logs of databases.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use candide::{Database, Level, LogOptions, Mvcc, Record, RunOptions};
use candide_reach::{Directory, Replicate};

use crate::common::{place as folder, run};

#[derive(Record, Clone, Copy)]
struct Item {
    #[key]
    id: u64,
    count: i64,
}

/// Makes a database whose log is in a place, with rows up to `last`. Returns the directory that
/// both are in, the place, and the directory of the database.
fn primary(name: &str, last: u64) -> (PathBuf, PathBuf, PathBuf) {
    let all = folder(name);
    fs::create_dir_all(&all).expect("made");
    let (place, dir) = (all.join("place"), all.join("primary"));
    insert(&place, &dir, 1..=last);
    (all, place, dir)
}

/// Opens a database whose log is in a place, and inserts rows.
fn insert(place: &Path, dir: &Path, ids: impl IntoIterator<Item = u64>) {
    let log = LogOptions::new().replicate(Directory::new(place).expect("a place"));
    let db = Database::<Mvcc>::builder().open(dir, log).expect("it leads");
    let items = db.table::<Item>("items").expect("a table");
    let replicated = RunOptions::new().acknowledge(Level::Replicated);
    for id in ids {
        let item = Item { id, count: 1 };
        db.with(replicated).run(|tx| items.insert(tx, item)).expect("acknowledged");
    }
}

/// Returns the number of rows that `candide tables` prints of a database.
fn rows(dir: &Path) -> String {
    let (status, printed, message) = run("tables", &[dir]);
    assert_eq!(status, 0, "{message}");
    let line = printed.lines().find(|line| line.starts_with("items ")).expect("a table");
    line.split(": ").nth(1).expect("a number").to_string()
}

/// Returns the path of an object.
fn object(place: &Path, name: &str) -> PathBuf {
    let path = place.join(name);
    assert!(path.exists(), "{name}");
    path
}

#[test]
fn a_place_is_looked_at_checked_and_restored() {
    let (all, place, dir) = primary("reach-whole", 20);
    insert(&place, &dir, 21..=30);
    let (status, printed, message) = run("reach status", &[&place]);
    assert_eq!((status, &message[..]), (0, ""));
    assert!(printed.contains(" has the log of database "), "{printed}");
    assert!(printed.contains("\ngeneration 2 is led by claim "), "{printed}");
    let numbers = |printed: &str| -> Vec<String> {
        let rows = printed.lines().filter_map(|line| line.split_whitespace().next());
        rows.filter(|word| word.parse::<u64>().is_ok()).map(str::to_string).collect()
    };
    let listed = numbers(printed.split_once(" generation ").expect("a table").1);
    assert_eq!(listed, ["2", "1"], "{printed}");
    assert!(printed.contains(", its end"), "the first generation is ended: {printed}");
    let (_, one, _) = run("reach status --generations 1", &[&place]);
    assert!(one.contains("in the 1 newest generations"), "{one}");
    let (status, printed, message) = run("reach verify", &[&place]);
    assert_eq!((status, &message[..]), (0, ""));
    assert!(printed.contains(" is sound, up to object "), "{printed}");
    assert!(printed.contains(" of generation 2: "), "{printed}");
    let copy = all.join("copy");
    let (status, printed, message) = run("reach restore", &[&place, &copy]);
    assert_eq!((status, &message[..]), (0, ""));
    assert!(printed.contains(" of generation 2\n"), "{printed}");
    assert_eq!(rows(&copy), "30 rows");
    let (status, _, message) = run("reach restore", &[&place, &copy]);
    assert_eq!(status, 2, "{message}");
    assert!(message.contains(" is not empty: it contains "), "{message}");
    fs::remove_dir_all(all).expect("removed");
}

#[test]
fn damaged_and_missing_objects_are_named() {
    let (all, place, _) = primary("reach-damaged", 10);
    let name = "log/000000000001/000000000002";
    let path = object(&place, name);
    let bytes = fs::read(&path).expect("read");
    let mut damaged = bytes.clone();
    damaged[40] ^= 1;
    fs::write(&path, &damaged).expect("written");
    let (status, printed, message) = run("reach verify", &[&place]);
    assert_eq!((status, &printed[..]), (1, ""), "{message}");
    assert!(message.contains(&format!("FAILED: {}: {name}: ", place.display())), "{message}");
    let copy = all.join("copy");
    let (status, _, message) = run("reach restore", &[&place, &copy]);
    assert_eq!(status, 1, "{message}");
    assert!(message.contains(name), "{message}");
    assert!(!copy.exists(), "what cannot be restored leaves nothing");
    fs::remove_file(&path).expect("removed");
    let (status, _, message) = run("reach verify", &[&place]);
    assert_eq!(status, 1);
    let next = "log/000000000001/000000000003: the log ends before it, at place 1 of generation 1";
    assert!(message.contains(next), "{message}");
    // A later version is not damage.
    let mut later = bytes;
    later[8] = 9;
    let end = later.len() - 4;
    let crc = crc32c(&later[..end]).to_le_bytes();
    later[end..].copy_from_slice(&crc);
    fs::write(&path, &later).expect("written");
    let (status, _, message) = run("reach verify", &[&place]);
    assert_eq!(status, 1);
    assert!(message.contains("has format 9, and this version knows formats up to 1"), "{message}");
    fs::remove_dir_all(all).expect("removed");
}

/// Returns the CRC-32C of bytes.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0x82F6_3B78 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[test]
fn wrong_directories_are_refused_and_stay_as_they_are() {
    let (all, place, dir) = primary("reach-wrong", 3);
    let (empty, missing, file) = (all.join("empty"), all.join("missing"), all.join("file"));
    fs::create_dir(&empty).expect("made");
    fs::write(&file, "").expect("written");
    let target = all.join("target");
    for (wrong, words) in [
        (&missing, "there is no such directory; name a directory with the log of a database"),
        (&empty, "no database has its log there"),
        (&dir, "this is the directory of a database, and no place"),
        (&file, "this is not a directory"),
    ] {
        let tools: [(&str, &[&Path]); 4] = [
            ("reach status", &[wrong]),
            ("reach verify", &[wrong]),
            ("reach restore", &[wrong, &target]),
            ("reach standby", &[wrong, &target]),
        ];
        for (tool, paths) in tools {
            let (status, printed, message) = run(tool, paths);
            assert_eq!((status, &printed[..]), (2, ""), "{tool}: {message}");
            assert!(message.contains(words), "{tool}: {message}");
            assert!(!target.exists(), "{tool}");
        }
    }
    assert_eq!(fs::read_dir(&empty).expect("a directory").count(), 0);
    assert!(!missing.exists() && !dir.join(".tmp").exists());
    // A place within the directory of its database does not outlive it.
    for inside in [place.clone(), place.join("copy"), all.clone()] {
        for tool in ["reach restore", "reach standby"] {
            let (status, _, message) = run(tool, &[&place, &inside]);
            assert_eq!(status, 2, "{message}");
            assert!(message.contains(" are in one another; "), "{message}");
        }
    }
    // A database that has led, and a standby of another one.
    let (status, _, message) = run("reach standby", &[&place, &dir]);
    assert_eq!(status, 1, "{message}");
    assert!(message.contains("this directory has led; set it aside"), "{message}");
    let (other, elsewhere, _) = primary("reach-wrong-other", 1);
    let mut standby = Command::new(env!("CARGO_BIN_EXE_candide"));
    let standby = standby.args(["reach", "standby"]).args([&elsewhere, &target]);
    let promoted = standby.args(["--promote-after", "1ms"]).output().expect("starts");
    assert!(promoted.status.success(), "{promoted:?}");
    let tools = [("reach standby", [&place, &target]), ("reach rejoin", [&target, &place])];
    for (tool, paths) in tools {
        let (status, _, message) = run(tool, &paths.map(PathBuf::as_path));
        assert_eq!(status, 2, "{message}");
        assert!(message.contains("target is another database than that whose log is in "));
    }
    fs::remove_dir_all(other).expect("removed");
    let (status, _, message) = run("reach rejoin", &[&place, &place]);
    assert_eq!(status, 2, "{message}");
    let (status, _, message) = run("reach rejoin", &[&empty, &place]);
    assert_eq!(status, 2, "{message}");
    assert!(message.contains("empty has no database; name the directory of a database"));
    fs::remove_dir_all(all).expect("removed");
}

#[test]
fn a_former_primary_is_set_aside_and_follows() {
    let (all, place, dir) = primary("reach-rejoin", 5);
    let (other, _, stranger) = primary("reach-stranger", 2);
    let (status, _, message) = run("reach rejoin", &[&stranger, &place]);
    assert_eq!(status, 2, "{message}");
    assert!(message.contains("is another database than that whose log is in "), "{message}");
    assert_eq!(rows(&stranger), "2 rows");
    for number in 1..=2 {
        let (status, printed, message) = run("reach rejoin", &[&dir, &place]);
        assert_eq!((status, &message[..]), (0, ""), "{printed}");
        let aside = all.join(format!("primary.aside-{number}"));
        assert!(printed.contains(&format!("is set aside as {}\n", aside.display())), "{printed}");
        assert_eq!((rows(&aside), rows(&dir)), ("5 rows".to_string(), "5 rows".to_string()));
    }
    // A place that cannot be followed leaves the database where it was.
    fs::remove_file(object(&place, "log/000000000001/000000000001")).expect("removed");
    let (status, _, message) = run("reach rejoin", &[&dir, &place]);
    assert_ne!(status, 0, "{message}");
    assert_eq!(rows(&dir), "5 rows");
    assert!(!all.join("primary.aside-3").exists());
    fs::remove_dir_all(all).expect("removed");
    fs::remove_dir_all(other).expect("removed");
}

#[test]
fn a_standby_takes_over_after_a_silence() {
    let (all, place, dir) = primary("reach-standby", 7);
    let standby = all.join("standby");
    let mut command = Command::new(env!("CARGO_BIN_EXE_candide"));
    command.args(["reach", "standby"]).args([&place, &standby]).args(["--promote-after", "300ms"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("starts");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let lines: Vec<String> = lines.map(|line| line.expect("text")).collect();
    assert!(child.wait().expect("it ends").success(), "{lines:?}");
    assert!(lines[0].contains("standby follows, from object "), "{lines:?}");
    assert!(lines[1].starts_with("nothing new for 300ms after object "), "{lines:?}");
    assert!(lines[2].ends_with(" of generation 1 is applied"), "{lines:?}");
    assert!(lines[3].contains("standby has taken over"), "{lines:?}");
    assert_eq!(rows(&standby), "7 rows");
    // The former primary does not lead any more.
    let log = LogOptions::new().replicate(Directory::new(&place).expect("a place"));
    let led = Database::<Mvcc>::builder().open(&dir, log).expect_err("another one leads");
    assert!(matches!(led, candide::OpenError::Led { generation: 2, .. }), "{led}");
    fs::remove_dir_all(all).expect("removed");
}

#[test]
fn a_standby_that_lags_tells_how_far_it_has_come_while_it_takes_over() {
    let (all, place, dir) = primary("reach-lags", 1);
    let log = LogOptions::new().replicate(Directory::new(&place).expect("a place"));
    let db = Database::<Mvcc>::builder().open(&dir, log).expect("it leads");
    let items = db.table::<Item>("items").expect("a table");
    // While an object with so many rows is applied, nothing is new.
    let many = 2..=100_000;
    db.run(|tx| many.clone().try_for_each(|id| items.insert(tx, Item { id, count: 1 })))
        .expect("it commits");
    drop((db, items));
    let standby = all.join("standby");
    let mut command = Command::new(env!("CARGO_BIN_EXE_candide"));
    command.args(["reach", "standby"]).args([&place, &standby]).args(["--promote-after", "1ms"]);
    let output = command.output().expect("starts");
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{printed}");
    let lines: Vec<_> = printed.lines().collect();
    assert!(lines[1].starts_with("nothing new for 1ms after object "), "{printed}");
    let [.., told, last] = &lines[2..] else { panic!("{printed}") };
    assert!(told.starts_with("object ") && told.ends_with(" of generation 2 is applied"), "{told}");
    assert!(last.contains("standby has taken over"), "{printed}");
    assert_eq!(rows(&standby), "100,000 rows");
    fs::remove_dir_all(all).expect("removed");
}

#[cfg(unix)]
#[test]
fn a_drill_loses_nothing() {
    let all = folder("reach-drill");
    fs::create_dir_all(&all).expect("made");
    let place = all.join("place");
    let arguments = "reach drill --seconds 1 --pause 300ms --promote-after 1h --threads 2 --seed 3";
    let (status, printed, message) = run(arguments, &[&place]);
    assert_eq!((status, &message[..]), (0, ""), "{printed}");
    let last = printed.lines().last().expect("a line");
    assert!(last.starts_with("lost 0 acknowledged of "), "{printed}");
    assert!(last.contains(", longest gap "), "{printed}");
    let (status, _, message) = run(arguments, &[&place]);
    assert_eq!(status, 2, "{message}");
    assert!(message.contains("place is not empty: it contains "), "{message}");
    fs::remove_dir_all(all).expect("removed");
}
