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

/// Runs `candide bench` with `arguments`, each run for `millis` milliseconds. On a busy machine
/// nothing may commit in a short time, so the command then runs again, for longer. Returns what it
/// printed, the page, and its results.
pub(crate) fn bench(millis: u64, arguments: &str, name: &str) -> (String, String, Vec<Value>) {
    let (json, page) = (file(name).with_extension("json"), file(name).with_extension("html"));
    let mut outputs = (0..10).map(|doubled| {
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
