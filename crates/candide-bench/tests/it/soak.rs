//! A given rate and slices of the measured time: what is begun when, and that the slices are the
//! whole.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::common::{file, number};
use serde_json::Value;

/// Runs `candide bench` with `arguments`, and gives what it printed and its only result; `None` if
/// nothing has committed.
fn bench(arguments: &str, name: &str) -> Option<(String, Value)> {
    let json = file(name).with_extension("json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_candide"));
    let output = command
        .arg("bench")
        .args(arguments.split(' '))
        .arg("--json")
        .arg(&json)
        .output()
        .expect("starts");
    let message = String::from_utf8(output.stderr).expect("text");
    if output.status.code() == Some(1) && message.is_empty() {
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{arguments}: {message}");
    let mut report: Value =
        serde_json::from_str(&fs::read_to_string(json).expect("written")).expect("JSON");
    let results = report["results"].as_array_mut().expect("a list");
    assert_eq!(results.len(), 1, "one setting");
    Some((String::from_utf8(output.stdout).expect("text"), results.remove(0)))
}

fn slices(result: &Value) -> &[Value] {
    result["slices"].as_array().expect("a list")
}

/// Asserts that the slices of `result` are all of it, and none of them twice.
fn assert_whole(result: &Value) {
    for (field, total) in [
        ("committed", "committed"),
        ("aborted", "aborted"),
        ("user_aborted", "user_aborted"),
        ("duration_s", "duration_s"),
    ] {
        let sum: f64 = slices(result).iter().map(|slice| number(&slice[field])).sum();
        let total = number(&result[total]);
        assert!((sum - total).abs() <= 1e-9 * total, "{field}: {sum} in slices, {total} in all");
    }
    let slowest =
        |parts: Vec<&Value>| parts.iter().map(|part| number(&part["max_us"])).fold(0.0, f64::max);
    let kinds = result["transactions"].as_object().expect("an object").values().collect();
    assert_eq!(
        slowest(slices(result).iter().collect()),
        slowest(kinds),
        "the slowest is in one of them"
    );
}

/// The same, repeatedly, until the machine has let it continue as it `should`: for a minute, and
/// longer where it does not.
fn undisturbed(arguments: &str, name: &str, should: impl Fn(&Value) -> bool) -> (String, Value) {
    let mut runs = (0..60).filter_map(|_| bench(arguments, name));
    runs.find(|(_, result)| should(result))
        .unwrap_or_else(|| panic!("{arguments}: never as it should be"))
}

/// Asserts that in all threads and phases no more were begun than are due at `rate`, in the time
/// that was measured.
fn assert_no_more_than(ended: f64, rate: f64, result: &Value) {
    // Each of two threads begins the first of each phase, of which there are no more than four, at
    // once.
    let most = rate * number(&result["duration_s"]) + 8.0;
    assert!(ended <= most, "{ended} of {most}");
}

#[test]
fn transactions_begin_at_the_requested_rate() {
    let timing = "--warmup 100ms --duration 1s --runs 1 --threads 2 --rate 2000";
    let ended = |result: &Value| number(&result["committed"]) + number(&result["user_aborted"]);
    let (printed, result) = undisturbed(
        &format!("smallbank --accounts 1000 --transactions 1000 {timing}"),
        "paced",
        |result| ended(result) >= 1200.0,
    );
    assert_no_more_than(ended(&result), 2000.0, &result);
    assert_eq!(number(&result["params"]["rate"]), 2000.0);
    assert!(
        printed.contains("from the intended beginning to the end, waiting and retries included"),
        "{printed}"
    );
    assert!(result["slices"].is_null(), "slices were not asked for");
}

#[test]
fn latencies_of_late_transactions_contain_the_delay() {
    // Nothing can be begun so often, so the last ones are late by almost all of the time; but what
    // the warm-up has not begun is not waited for, which is longer.
    let arguments =
        "ycsb --rows 2000 --transactions 500 --warmup 1s --duration 300ms --runs 1 --threads 1";
    let (printed, freely) = undisturbed(arguments, "freely", |_| true);
    let latency =
        |result: &Value, field: &str| number(&result["transactions"]["read-write"][field]);
    let (told, behind) = undisturbed(&format!("{arguments} --rate 1e9"), "behind", |result| {
        (100e3..1000e3).contains(&latency(result, "max_us"))
    });
    assert!(told.contains("1,000,000,000 transactions a second were asked for"), "{told}");
    assert!(latency(&freely, "p50_us") * 2.0 < latency(&behind, "p50_us"), "{freely} {behind}");
    assert!(printed.contains("from the first attempt to the end, retries included"), "{printed}");
    assert!(!printed.contains("were asked for"), "{printed}");
    assert!(freely["params"]["rate"].is_null());
}

#[test]
fn slices_of_all_runs_are_in_order_and_add_up_to_the_result() {
    let page = file("slices.html");
    let timing = "--warmup 50ms --duration 500ms --runs 2 --threads 2 --rate 500 --slice 200ms";
    let arguments = format!(
        "smallbank --accounts 1000 --transactions 1000 {timing} --report {}",
        page.display()
    );
    let (printed, result) = undisturbed(&arguments, "slices", |_| true);
    let places: Vec<_> = slices(&result)
        .iter()
        .map(|slice| (number(&slice["run"]), number(&slice["from_s"])))
        .collect();
    assert_eq!(places, [(1.0, 0.0), (1.0, 0.2), (1.0, 0.4), (2.0, 0.0), (2.0, 0.2), (2.0, 0.4)]);
    let fields = [
        "run",
        "from_s",
        "duration_s",
        "committed",
        "aborted",
        "user_aborted",
        "p50_us",
        "p99_us",
        "p999_us",
        "max_us",
        "memory_bytes",
        "rss_bytes",
    ];
    for slice in slices(&result) {
        let keys: BTreeSet<&str> =
            slice.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(keys, BTreeSet::from(fields));
        assert!(number(&slice["memory_bytes"]) > 0.0);
        let latencies =
            ["p50_us", "p99_us", "p999_us", "max_us"].map(|field| number(&slice[field]));
        assert!(latencies.is_sorted(), "{latencies:?}");
    }
    for whole in [0, 1, 3, 4] {
        assert_eq!(number(&slices(&result)[whole]["duration_s"]), 0.2);
    }
    assert_whole(&result);

    let (_, table) = printed
        .split_once("smallbank occ, 2 threads: latencies in µs of all types")
        .expect("a table");
    let rows: Vec<&str> = table.lines().skip(2).take(6).collect();
    assert!(rows.iter().all(|row| row.contains(" s ") && row.chars().count() <= 100), "{rows:#?}");
    let page = fs::read_to_string(page).expect("written");
    let panels = if slices(&result)[0]["rss_bytes"].is_null() { 3 } else { 4 };
    assert_eq!(
        page.matches("data-mark=\"y-points\"").count(),
        2 * panels,
        "throughput, latency and memory, each with a line for each run"
    );
    assert!(
        page.contains("data-field=\"slices/5/p999_us\"")
            && !page.contains("data-field=\"slices/6/p999_us\"")
    );
}

#[test]
fn the_schedule_of_a_rate_begins_anew_with_each_phase() {
    let timing = "--warmup 50ms --duration 800ms --phase 200ms --slice 50ms --runs 1 --threads 2 --rate 1000";
    let (_, result) = undisturbed(
        &format!("shifting --rows 2000 --transactions 500 {timing}"),
        "paced-phases",
        |result| number(&result["committed"]) >= 400.0,
    );
    let committed = number(&result["committed"]);
    assert_no_more_than(committed, 1000.0, &result);
    assert_eq!(number(&result["timeline"]["slice_s"]), 0.05, "slices are those of the phases");
    assert!(result["slices"].is_null());
}
