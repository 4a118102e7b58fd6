//! Runs of the command whose results a test reads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Returns the path of a file that a test writes. Tests run at the same time, so no two of them
/// give their files the same name.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Returns the path of a directory that a test makes, and that does not exist.
pub(crate) fn place(name: &str) -> PathBuf {
    let place = file(name);
    let _ = fs::remove_dir_all(&place);
    place
}

/// Runs the command with `arguments` and, after them, these paths. Returns its exit status, and
/// what it printed to standard output and to standard error.
pub(crate) fn run(arguments: &str, paths: &[&Path]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_candide"));
    let output = command.args(arguments.split(' ')).args(paths).output().expect("starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("it ends"), text(output.stdout), text(output.stderr))
}

/// Runs `candide bench` with `arguments`, each run for `millis` milliseconds. On a busy machine
/// nothing may commit in a short time, so the command then runs again, for longer. Returns what it
/// printed, the page, and its results.
pub(crate) fn bench(millis: u64, arguments: &str, name: &str) -> (String, String, Vec<Value>) {
    bench_anew(millis, arguments, name, &|| ())
}

/// Runs `candide bench` as [`bench`] does. Calls `begin` before each time.
pub(crate) fn bench_anew(
    millis: u64,
    arguments: &str,
    name: &str,
    begin: &dyn Fn(),
) -> (String, String, Vec<Value>) {
    let (json, page) = (file(name).with_extension("json"), file(name).with_extension("html"));
    let mut outputs = (0..10).map(|doubled| {
        begin();
        let duration = format!("{}ms", millis << doubled);
        let mut command = Command::new(env!("CARGO_BIN_EXE_candide"));
        command.arg("bench").args(arguments.split(' ')).args(["--duration", &duration]);
        command.arg("--json").arg(&json).arg("--report").arg(&page).output().expect("starts")
    });
    let has_committed =
        |output: &Output| output.status.code() != Some(1) || !output.stderr.is_empty();
    let output = outputs.find(has_committed).expect("something commits");
    let message = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{arguments}: {message}");
    let report: Value =
        serde_json::from_str(&fs::read_to_string(json).expect("written")).expect("JSON");
    let results = report["results"].as_array().expect("a list").clone();
    let printed = String::from_utf8(output.stdout).expect("text");
    (printed, fs::read_to_string(page).expect("written"), results)
}

/// Returns a number of the results.
pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}
