//! Ctrl-C: what was measured by then is reported, and said to be no more than that.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Far longer than a test may take.
const LONG: &str = "600s";

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn start(arguments: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_candide"));
    command.args(arguments.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts")
}

/// What Ctrl-C sends.
fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("there is a `kill`");
    assert!(sent.success());
}

/// So many threads measure: more than ever load.
fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from) + 8
}

/// Waits until those threads have begun.
fn wait_for_measuring(child: &mut Child) {
    wait_for_threads(child, threads());
    thread::sleep(Duration::from_millis(200));
}

/// Waits until somebody waits for Ctrl-C, who is a thread of its own.
fn wait_for_listening(child: &mut Child) {
    wait_for_threads(child, 2);
}

/// Waits until the process has so many threads.
fn wait_for_threads(child: &mut Child, count: usize) {
    let tasks = format!("/proc/{}/task", child.id());
    let begun = Instant::now();
    while fs::read_dir(&tasks).map_or(0, Iterator::count) < count {
        assert!(child.try_wait().expect("a child").is_none(), "it has ended");
        assert!(begun.elapsed() < Duration::from_secs(60), "it has never had {count} threads");
        thread::sleep(Duration::from_millis(5));
    }
}

/// How it ended, and what it printed.
fn end(mut child: Child) -> (Option<i32>, String, String) {
    let begun = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().expect("it runs");
            panic!("it goes on");
        }
        thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("a child");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    assert_eq!(output.status.signal(), None, "it ends by itself");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Begins what would take long, and interrupts it while it measures: what it printed, said, and wrote.
fn interrupted(name: &str, arguments: &str, duration: &str) -> (String, String, Value) {
    let json = file(name).with_extension("json");
    let threads = threads();
    let mut child =
        start(&format!("{arguments} --warmup 0s --threads {threads} --duration {duration} --json {}", json.display()));
    wait_for_measuring(&mut child);
    interrupt(&child);
    let (status, printed, message) = end(child);
    assert_eq!(status, Some(130), "{printed}{message}");
    let report = serde_json::from_str(&fs::read_to_string(json).expect("written")).expect("JSON");
    (printed, message, report)
}

#[test]
fn a_benchmark_reports_what_it_has_measured() {
    let (printed, message, report) =
        interrupted("interrupted", "bench ycsb --rows 2000 --transactions 500 --protocol occ,tictoc", LONG);
    assert!(message.contains("interrupted") && message.contains("once more"), "{message}");
    assert!(printed.contains("note: ended early, by Ctrl-C"), "{printed}");
    assert_eq!(report["ended_early"], true);
    let results = report["results"].as_array().expect("a list");
    assert_eq!(results.len(), 1, "the other protocol has not been run");
    assert_eq!(results[0]["ended_early"], true);
    assert_eq!(results[0]["tps_runs"].as_array().map(Vec::len), Some(1), "of three");
    assert!(results[0]["committed"].as_f64().is_some_and(|committed| committed > 0.0));
    assert!(results[0]["duration_s"].as_f64().is_some_and(|seconds| seconds < 60.0));
    assert!(results[0]["consistency"]["checked"].as_f64().is_some_and(|checked| checked > 0.0), "it is checked");
    assert_eq!(results[0]["consistency"]["failed"], Value::Array(Vec::new()));
}

#[test]
fn what_is_left_of_a_run_is_not_put_beside_whole_ones() {
    let json = file("interrupted-later").with_extension("json");
    let (threads, arguments) = (threads(), "bench ycsb --rows 2000 --transactions 500 --protocol occ --warmup 0s");
    let mut child =
        start(&format!("{arguments} --runs 30 --duration 2s --threads {threads} --json {}", json.display()));
    wait_for_measuring(&mut child);
    thread::sleep(Duration::from_millis(2800));
    interrupt(&child);
    assert_eq!(end(child).0, Some(130));
    let report: Value = serde_json::from_str(&fs::read_to_string(json).expect("written")).expect("JSON");
    let result = &report["results"][0];
    let runs = result["tps_runs"].as_array().expect("a list").len();
    let seconds = result["duration_s"].as_f64().expect("a number");
    // A machine that is very busy may not have come beyond the first run.
    assert!(runs == 1 || seconds >= 2.0 * runs as f64, "{runs} runs of {seconds} s together");
    assert_eq!((&report["ended_early"], &result["consistency"]["failed"]), (&true.into(), &Value::Array(Vec::new())));
}

#[test]
fn phases_end_early_too() {
    let arguments = "bench shifting --rows 2000 --transactions 500 --phase 300s --slice 1s";
    let (_, _, report) = interrupted("interrupted-phases", arguments, LONG);
    let phases = &report["results"][0]["timeline"]["phases"];
    assert_eq!(phases.as_array().map(Vec::len), Some(1), "the first was ended, and no other begun");
}

#[test]
fn slices_end_early_too_and_nobody_waits_for_the_next_beginning() {
    let arguments = "bench ycsb --rows 2000 --transactions 500 --rate 0.001 --slice 100ms --runs 1";
    let (_, _, report) = interrupted("interrupted-slices", arguments, "90s");
    let result = &report["results"][0];
    let slices = result["slices"].as_array().expect("a list");
    let seconds: f64 = slices.iter().filter_map(|slice| slice["duration_s"].as_f64()).sum();
    assert!(result["duration_s"].as_f64().is_some_and(|all| (all - seconds).abs() < 1e-9 && all < 60.0), "{result}");
    assert!((1..900).contains(&slices.len()), "{}", slices.len());
}

#[test]
fn a_figure_reports_what_it_has_measured() {
    let (_, _, report) = interrupted("interrupted-figure", "reproduce delivery --scale 0.0001", LONG);
    assert_eq!((&report["ended_early"], &report["figure"]["name"]), (&true.into(), &"delivery".into()));
    let points: Vec<_> =
        report["figure"]["lines"].as_array().expect("a list").iter().map(|line| &line["points"]).collect();
    let counts: Vec<_> = points.iter().map(|points| points.as_array().map_or(0, Vec::len)).collect();
    assert_eq!(counts, [1, 0, 1, 0], "the second line has not been run");
}

#[test]
fn nothing_is_reported_of_what_was_not_measured() {
    // Loading so much takes minutes here.
    let mut child = start("bench tpcc --warehouses 10 --threads 1");
    wait_for_listening(&mut child);
    thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    interrupt(&child);
    let (status, printed, message) = end(child);
    assert_eq!((status, printed.as_str()), (Some(130), ""), "{message}");
    assert!(message.contains("interrupted before anything was measured"), "{message}");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn a_check_judges_what_it_has_recorded() {
    for arguments in ["check smallbank", "check lists --mode black"] {
        let mut child = start(&format!("{arguments} --protocol occ,tictoc --duration {LONG}"));
        // The seed is said when it begins.
        let mut said = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("text");
        assert!(line.starts_with("seed "), "{line}");
        thread::sleep(Duration::from_millis(500));
        interrupt(&child);
        let (status, printed, _) = end(child);
        let mut message = String::new();
        said.read_to_string(&mut message).expect("text");
        assert_eq!(status, Some(130), "{printed}{message}");
        assert!(printed.contains("(ended early, by Ctrl-C)"), "{printed}");
        assert!(printed.contains("serializable in the order of real time: yes"), "{printed}");
        assert!(printed.contains("not checked: tictoc"), "{printed}");
    }
}

#[test]
fn the_second_time_ends_it_at_once() {
    // Drawing so many inputs takes long, and nobody looks up from it.
    let mut child = start("bench smallbank --accounts 500 --transactions 100000000 --threads 1");
    let mut said = BufReader::new(child.stderr.take().expect("piped"));
    wait_for_listening(&mut child);
    thread::sleep(Duration::from_millis(700));
    interrupt(&child);
    let mut line = String::new();
    while !line.contains("once more") {
        assert!(said.read_line(&mut line).expect("text") > 0, "{line}");
    }
    assert!(child.try_wait().expect("a child").is_none(), "there is nothing to be ended at once");
    let begun = Instant::now();
    interrupt(&child);
    let (status, printed, _) = end(child);
    assert_eq!((status, printed.as_str()), (Some(130), ""));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}
