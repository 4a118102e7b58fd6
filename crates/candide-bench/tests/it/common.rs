//! Runs of the command whose results a test reads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Runs `candide bench` with `arguments`, each run for `millis` milliseconds, or longer if nothing
/// commits. Returns what it printed, the page, and its results.
pub(crate) fn bench(millis: u64, arguments: &str, name: &str) -> (String, String, Vec<Value>) {
    bench_until(millis, arguments, name, &|_| true)
}

/// Runs `candide bench` as [`bench`] does, for longer and longer, until each result is enough.
pub(crate) fn bench_until(
    millis: u64,
    arguments: &str,
    name: &str,
    is_enough: &dyn Fn(&Value) -> bool,
) -> (String, String, Vec<Value>) {
    let page = file(name).with_extension("html");
    let arguments = format!("{arguments} --report {}", page.display());
    let (printed, _, mut report) = bench_anew(millis, &arguments, name, &|| (), is_enough);
    let results = std::mem::take(report["results"].as_array_mut().expect("a list"));
    (printed, fs::read_to_string(page).expect("written"), results)
}

/// Runs `candide bench` for longer and longer, at first for `millis` milliseconds, until something
/// commits and each result is enough: on a busy machine few transactions end in a short time. The
/// longest time is more than a minute. Calls `begin` before each time. Returns what it printed, its
/// messages, and its report.
pub(crate) fn bench_anew(
    millis: u64,
    arguments: &str,
    name: &str,
    begin: &dyn Fn(),
    is_enough: &dyn Fn(&Value) -> bool,
) -> (String, String, Value) {
    let json = file(name).with_extension("json");
    let mut durations = (0..12).map(|doubled| format!("{}ms", millis << doubled));
    let run = |duration: String| {
        begin();
        let mut command = Command::new(env!("CARGO_BIN_EXE_candide"));
        command.arg("bench").args(arguments.split(' ')).args(["--duration", &duration]);
        let output = command.arg("--json").arg(&json).output().expect("starts");
        let [printed, message] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
        if output.status.code() == Some(1) && message.is_empty() {
            return None;
        }
        assert_eq!(output.status.code(), Some(0), "{arguments}: {message}");
        let report: Value =
            serde_json::from_str(&fs::read_to_string(&json).expect("written")).expect("JSON");
        let results = report["results"].as_array().expect("a list");
        results.iter().all(is_enough).then_some((printed, message, report))
    };
    durations.find_map(run).expect("something commits, and each result is enough")
}

/// Returns whether a result has a committed transaction.
pub(crate) fn has_committed(result: &Value) -> bool {
    number(&result["committed"]) > 0.0
}

/// Returns whether a result has a committed transaction of each of its types.
pub(crate) fn has_committed_each(result: &Value) -> bool {
    let kinds = result["transactions"].as_object().expect("an object");
    kinds.values().all(|kind| number(&kind["committed"]) > 0.0)
}

/// Checks that the counts of a result are the sums over its transaction types, and that each
/// aborted attempt has one reason.
pub(crate) fn assert_counts_add_up(result: &Value) {
    for count in ["committed", "aborted", "user_aborted"] {
        let kinds = result["transactions"].as_object().expect("an object").values();
        let sum: f64 = kinds.map(|kind| number(&kind[count])).sum();
        assert_eq!(number(&result[count]), sum, "{count}");
    }
    let reasons = result["abort_reasons"].as_object().expect("an object").values();
    assert_eq!(number(&result["aborted"]), reasons.map(number).sum::<f64>(), "{result}");
}

/// Returns a number of the results.
pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}
