//! Runs of the command whose results a test reads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Runs `candide bench` with `arguments`, and returns what it printed, the page, and its results.
pub(crate) fn bench(arguments: &str, name: &str) -> (String, String, Vec<Value>) {
    let (json, page) = (file(name).with_extension("json"), file(name).with_extension("html"));
    let output = Command::new(env!("CARGO_BIN_EXE_candide"))
        .arg("bench")
        .args(arguments.split(' '))
        .arg("--json")
        .arg(&json)
        .arg("--report")
        .arg(&page)
        .output()
        .expect("starts");
    let message = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{arguments}: {message}");
    let report: Value =
        serde_json::from_str(&fs::read_to_string(json).expect("written")).expect("JSON");
    let results = report["results"].as_array().expect("a list").clone();
    (
        String::from_utf8(output.stdout).expect("text"),
        fs::read_to_string(page).expect("written"),
        results,
    )
}

/// Returns a number of the results.
pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}
