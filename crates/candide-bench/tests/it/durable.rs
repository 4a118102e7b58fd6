//! Workloads whose databases have files.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{bench_anew, bench_until, file, has_committed, number, place};

const SIZE: &str = "smallbank --accounts 100 --transactions 100 --warmup 0s --runs 1";

#[test]
fn log_figures_are_reported_by_protocol_and_log_files_removed() {
    let place = place("durable-memory");
    let files = format!("--durable {}", place.display());
    let arguments = format!("{SIZE} --threads 1,2 --protocol occ,mvto {files}");
    let (printed, page, results) = bench_until(50, &arguments, "durable-memory", &has_committed);
    assert_eq!(results.len(), 4);
    for result in &results {
        let log = &result["log"];
        assert_eq!(log["acknowledge"], "memory");
        let (bytes, committed) = (number(&log["log_bytes"]), number(&result["committed"]));
        assert!(bytes > 0.0, "{result}");
        let quotient = number(&log["log_bytes_per_txn"]);
        assert!((quotient - bytes / committed).abs() < 1e-6, "{result}");
        // A record has a header of 24 bytes, and for each row a key and at least one word. One in
        // six transactions only reads. A few commits end in the measured time and begin before it,
        // or begin in it and end afterwards.
        assert!((20.0..200.0).contains(&quotient) || committed < 200.0, "{result}");
    }
    let (_, table) = printed.split_once("\nLogs: ").expect("a table of logs");
    let rows = table.lines().take_while(|line| !line.is_empty() && !line.starts_with("note: "));
    let rows = rows.filter(|line| line.contains("thread"));
    assert_eq!(rows.count(), 4, "{printed}");
    assert_eq!(page.matches("data-field=\"log/log_bytes\"").count(), 4);
    assert!(printed.contains("note: mvto defers no update in a database with a log"), "{printed}");
    assert!(!place.exists(), "it was not there before");
}

#[test]
fn transactions_wait_for_the_level_of_the_option() {
    let place = file("durable-durable");
    let files = format!("--durable {} --ack durable --keep", place.display());
    let arguments = format!("{SIZE} --threads 2 --protocol occ,mvcc {files}");
    let begin = || drop(crate::common::place("durable-durable"));
    let (_, _, report) = bench_anew(50, &arguments, "durable-durable", &begin, &|_| true);
    for result in report["results"].as_array().expect("a list") {
        assert_eq!(result["log"]["acknowledge"], "durable");
    }
    for name in ["001-smallbank-occ", "002-smallbank-mvcc"] {
        assert!(place.join(name).join("MANIFEST").exists(), "{name} is kept");
    }
    let refused = |place: &Path, words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_candide"));
        command.args(["bench", "smallbank", "--durable"]).arg(place);
        let output = command.output().expect("starts");
        let message = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(words), "{message}");
        assert!(message.contains("name an empty directory, or one that does not exist"));
    };
    refused(&place, "is not empty: it contains 00");
    refused(&place.join("001-smallbank-occ"), "001-smallbank-occ is a database; ");
    fs::remove_dir_all(&place).expect("removed");
}

/// Files cannot grow beyond 1 MiB here.
#[test]
fn a_failure_of_the_log_ends_the_run_with_its_reason() {
    let place = place("durable-fails");
    let script = format!(
        "trap '' XFSZ; ulimit -f 1024; exec {} bench {SIZE} --durable {} --threads 1 --duration 60s",
        env!("CARGO_BIN_EXE_candide"),
        place.display()
    );
    let output = Command::new("bash").args(["-c", &script]).output().expect("starts");
    let message = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("smallbank occ, 1 threads: the log has failed: "), "{message}");
    assert!(message.contains("File too large"), "{message}");
    assert!(!place.exists());
}
