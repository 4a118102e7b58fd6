//! The tools for databases in files that are not in use.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{bench_anew, file, place, run};

/// Makes a database in files. Returns its directory.
fn database(name: &str) -> PathBuf {
    let place = file(name);
    let size = "smallbank --accounts 50 --transactions 100 --threads 1 --warmup 0s --runs 1";
    let arguments = format!("{size} --durable {} --keep", place.display());
    bench_anew(50, &arguments, name, &|| drop(crate::common::place(name)), &|_| true);
    place.join("001-smallbank-occ")
}

#[test]
fn inspect_and_copy_work_on_a_whole_database() {
    let database = database("files-sound");
    let (status, printed, message) = run("log verify", &[&database]);
    assert_eq!((status, &message[..]), (0, ""));
    assert!(printed.contains("is sound: 4 tables with 200 rows, up to cut "), "{printed}");
    let (status, printed, message) = run("log stats", &[&database]);
    assert_eq!((status, &message[..]), (0, ""));
    for table in ["accounts", "customers", "savings", "checking"] {
        let is_of = |line: &&str| line.split_whitespace().next() == Some(table);
        assert_eq!(printed.lines().filter(is_of).count(), 1, "{table} in {printed}");
    }
    let (status, printed, _) = run("log inspect --table checking --json", &[&database]);
    assert_eq!(status, 0);
    let records: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let mut puts = 0;
    for record in &records {
        for change in record["changes"].as_array().expect("a list") {
            assert_eq!(change["table"], "checking");
            assert_eq!(change["key"][0].as_str().expect("hexadecimal").len(), 16);
            let id = &change["values"]["id"];
            assert!(id.is_u64(), "{change}");
            puts += usize::from(change["kind"] == "put");
        }
    }
    assert_eq!(puts, 50, "each row was loaded once");
    let (_, text, _) = run("log inspect --table checking", &[&database]);
    assert!(text.contains("  put checking id: 7 -> cents: "), "{text}");
    // Later records are those after the loaded ones.
    let last = records.last().expect("some")["stamp"].as_u64().expect("a number");
    let (_, later, _) = run(&format!("log inspect --json --from 1:{last}"), &[&database]);
    let later: Vec<Value> =
        later.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(!later.is_empty());
    assert!(later.iter().all(|record| record["stamp"].as_u64() >= Some(last)), "{later:?}");
    let (status, _, message) = run("log inspect --table branches", &[&database]);
    assert_eq!(status, 2, "{message}");
    assert!(message.contains("has no table `branches`; its tables are accounts, "), "{message}");
    let copy = place("files-copy");
    let (status, printed, message) = run("backup", &[&database, &copy]);
    assert_eq!((status, &message[..]), (0, ""));
    assert!(printed.contains(" is a copy of "), "{printed}");
    let rows = |place: &Path| {
        let (status, printed, message) = run("log verify", &[place]);
        assert_eq!(status, 0, "{message}");
        printed.split_once(" is sound: ").expect("it is").1.lines().next().map(str::to_string)
    };
    assert_eq!(rows(&copy), rows(&database));
    let (status, _, message) = run("backup", &[&database, &copy]);
    assert_eq!(status, 2);
    assert!(message.contains("files-copy is not empty: it contains "), "{message}");
}

#[test]
fn copy_ends_before_the_damage_that_inspect_names() {
    let database = database("files-damaged");
    let mut segments: Vec<PathBuf> = fs::read_dir(&database)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log-"))
        })
        .collect();
    segments.sort();
    // The loaded rows are in the first blocks.
    let segment = &segments[0];
    let mut bytes = fs::read(segment).expect("read");
    bytes[4096 + 100] ^= 1;
    fs::write(segment, bytes).expect("written");
    let (status, printed, message) = run("log verify", &[&database]);
    assert_eq!((status, &printed[..]), (1, ""));
    assert!(message.starts_with("FAILED: "), "{message}");
    assert!(message.contains("log-0000000001 is damaged at byte 4096: the checksum"), "{message}");
    let (status, _, message) = run("backup", &[&database, &place("files-damaged-copy")]);
    assert_eq!(status, 1, "{message}");
    assert!(message.contains("is damaged at byte 4096"), "{message}");
    let copy = place("files-repaired");
    let (status, printed, message) = run("log repair", &[&database, &copy]);
    assert_eq!(status, 0, "{message}");
    assert!(printed.contains("it ends before the damage of log-0000000001 at byte 4096: "));
    assert!(printed.contains(" readable commit records, in "), "{printed}");
    let (status, printed, message) = run("log verify", &[&copy]);
    assert_eq!(status, 0, "{message}");
    assert!(printed.contains("is sound: 4 tables with 0 rows"), "{printed}");
}

#[test]
fn the_copy_of_a_damaged_manifest_is_used_and_the_damage_named() {
    let database = database("files-manifest");
    let manifest = database.join("MANIFEST");
    let mut bytes = fs::read(&manifest).expect("read");
    bytes[60] ^= 1;
    fs::write(&manifest, &bytes).expect("written");
    let (status, printed, message) = run("log verify", &[&database]);
    assert_eq!(status, 0, "{message}");
    assert!(printed.contains(" is sound: 4 tables with "), "{printed}");
    assert!(printed.contains("\nMANIFEST is damaged at byte "), "{printed}");
    fs::write(database.join("MANIFEST.copy"), &bytes).expect("written");
    let (status, _, message) = run("log verify", &[&database]);
    assert_eq!(status, 1, "{message}");
    assert!(message.contains("MANIFEST is damaged at byte "), "{message}");
    assert!(message.trim_end().ends_with("; restore a backup"), "{message}");
}

#[test]
fn directories_without_a_database_are_refused() {
    let missing = place("files-missing");
    let empty = place("files-empty");
    fs::create_dir_all(&empty).expect("made");
    let other = place("files-other");
    fs::create_dir_all(&other).expect("made");
    fs::write(other.join("notes.txt"), "").expect("written");
    for (place, words) in [
        (&missing, "there is no such directory; name the directory of a database"),
        (&empty, "is empty; name the directory of a database"),
        (&other, "no database"),
    ] {
        let target = crate::common::place("files-target");
        for tool in ["log verify", "log stats", "log inspect", "log repair", "backup"] {
            let needs_target = ["log repair", "backup"].contains(&tool);
            let paths: &[&Path] = if needs_target { &[place, &target] } else { &[place] };
            let (status, printed, message) = run(tool, paths);
            assert_eq!((status, &printed[..]), (2, ""), "{tool}: {message}");
            assert!(message.contains(words), "{tool}: {message}");
        }
    }
    assert!(!missing.exists());
    assert_eq!(fs::read_dir(&empty).expect("a directory").count(), 0);
}

#[test]
fn recovery_is_measured_from_a_checkpoint_and_from_the_log() {
    let place = place("files-recovery");
    let (status, printed, message) =
        run("recover-bench --rows 300 --records 200 --threads 1,2 --dir", &[&place]);
    assert_eq!(status, 0, "{message}");
    for (what, count) in [("rows of a checkpoint", "300"), ("commit records of a log", "200")] {
        for threads in ["1", "2"] {
            let is_it = |line: &&str| {
                let words: Vec<&str> = line
                    .trim_start()
                    .strip_prefix(what)
                    .into_iter()
                    .flat_map(str::split_whitespace)
                    .collect();
                words.get(..3) == Some(&["occ", threads, count])
            };
            assert_eq!(printed.lines().filter(is_it).count(), 1, "{what} {threads}: {printed}");
        }
    }
    assert!(!place.exists());
}
