//! Ctrl-C: what was measured by then is reported, and said to be no more than that.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::file;
use serde_json::Value;

/// Far longer than a test may take.
const LONG: &str = "36000s";

/// What is said where nothing can be reported.
const NOTHING: &str = "interrupted before anything was measured";

fn start(arguments: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_candide"));
    command
        .args(arguments.split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts")
}

/// What Ctrl-C sends.
fn interrupt(child: &Child) {
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .expect("there is a `kill`");
    assert!(sent.success());
}

/// The number of threads that measure: more than ever load.
fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from) + 8
}

/// Waits until the thread that waits for Ctrl-C is there.
fn wait_for_listening(child: &mut Child) {
    wait_for_threads(child, 2);
}

/// Looks without success, 5 ms apart, after which nothing more is expected: a minute of them, and
/// more on a busy machine.
const LOOKS_MAX: usize = 12_000;

/// Polls until a condition holds. Returns whether it came to hold.
fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    (0..LOOKS_MAX).any(|_| {
        let so = is_so();
        if !so {
            thread::sleep(Duration::from_millis(5));
        }
        so
    })
}

/// Waits until the process has so many threads.
fn wait_for_threads(child: &mut Child, count: usize) {
    let tasks = format!("/proc/{}/task", child.id());
    let came = eventually(|| {
        assert!(child.try_wait().expect("a child").is_none(), "it has ended");
        fs::read_dir(&tasks).map_or(0, Iterator::count) >= count
    });
    assert!(came, "it has never had {count} threads");
}

/// Has `attempt` be made with longer and longer times to let pass, the first of them `millis`,
/// until it gives something: on a busy machine nothing can be said of how far a process comes in a
/// time. The last one is more than a minute.
fn with_time<T>(millis: u64, attempt: impl FnMut(Duration) -> Option<T>) -> T {
    let times = (0..).map(|doubled| Duration::from_millis(millis << doubled));
    let mut times = times.take_while(|time| time.as_secs() < 128);
    times.find_map(attempt).expect("it does not come so far")
}

/// How it ended, and what it printed.
fn end(mut child: Child) -> (Option<i32>, String, String) {
    if !eventually(|| child.try_wait().expect("a child").is_some()) {
        child.kill().expect("it runs");
        panic!("it goes on");
    }
    let output = child.wait_with_output().expect("a child");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    assert_eq!(output.status.signal(), None, "it ends by itself");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Begins what would take long, and interrupts it when it has measured something, and enough of
/// that: what it printed, said, and wrote.
fn interrupted(
    name: &str,
    arguments: &str,
    duration: &str,
    is_enough: impl Fn(&Value) -> bool,
) -> (String, String, Value) {
    let json = file(name).with_extension("json");
    let threads = threads();
    with_time(200, |time| {
        let timing = format!("--warmup 0s --threads {threads} --duration {duration}");
        interrupted_after(time, &format!("{arguments} {timing}"), threads, &json)
            .filter(|(_, _, report)| is_enough(report))
    })
}

/// Runs the command with `arguments`, which ask for `threads` threads, and interrupts it when
/// `time` has passed since its threads began. Returns what it printed, said, and wrote to `json`;
/// `None` if it had measured nothing by then.
fn interrupted_after(
    time: Duration,
    arguments: &str,
    threads: usize,
    json: &Path,
) -> Option<(String, String, Value)> {
    let mut child = start(&format!("{arguments} --json {}", json.display()));
    wait_for_threads(&mut child, threads);
    thread::sleep(time);
    interrupt(&child);
    let (status, printed, message) = end(child);
    assert_eq!(status, Some(130), "{printed}{message}");
    if message.contains(NOTHING) {
        return None;
    }
    let report = serde_json::from_str(&fs::read_to_string(json).expect("written")).expect("JSON");
    Some((printed, message, report))
}

#[test]
fn an_interrupted_benchmark_reports_its_measurements() {
    let arguments = "bench ycsb --rows 2000 --transactions 500 --protocol occ,tictoc";
    let (printed, message, report) = interrupted("interrupted", arguments, LONG, |report| {
        report["results"][0]["committed"].as_f64().is_some_and(|committed| committed > 0.0)
    });
    assert!(message.contains("interrupted") && message.contains("Ctrl-C again"), "{message}");
    assert!(printed.contains("note: ended early, by Ctrl-C"), "{printed}");
    assert_eq!(report["ended_early"], true);
    let results = report["results"].as_array().expect("a list");
    assert_eq!(results.len(), 1, "the other protocol has not been run");
    assert_eq!(results[0]["ended_early"], true);
    assert_eq!(results[0]["tps_runs"].as_array().map(Vec::len), Some(1), "of three");
    assert!(
        results[0]["duration_s"]
            .as_f64()
            .is_some_and(|seconds| 0.0 < seconds && seconds < 36_000.0)
    );
    assert!(
        results[0]["consistency"]["checked"].as_f64().is_some_and(|checked| checked > 0.0),
        "it is checked"
    );
    assert_eq!(results[0]["consistency"]["failed"], Value::Array(Vec::new()));
}

#[test]
fn an_interrupted_run_is_left_out_beside_complete_runs() {
    let json = file("interrupted-later").with_extension("json");
    let (threads, arguments) =
        (threads(), "bench ycsb --rows 2000 --transactions 500 --protocol occ --warmup 0s");
    let report = with_time(2_800, |time| {
        let timing = format!("--runs 1000 --duration 2s --threads {threads}");
        let (_, _, report) =
            interrupted_after(time, &format!("{arguments} {timing}"), threads, &json)?;
        // What is left of the first is all there is.
        let seconds = report["results"][0]["duration_s"].as_f64().expect("a number");
        (seconds >= 2.0).then_some(report)
    });
    let result = &report["results"][0];
    let runs = result["tps_runs"].as_array().expect("a list").len();
    let seconds = result["duration_s"].as_f64().expect("a number");
    assert!(seconds >= 2.0 * runs as f64, "{runs} runs of {seconds} s together");
    assert_eq!(
        (&report["ended_early"], &result["consistency"]["failed"]),
        (&true.into(), &Value::Array(Vec::new()))
    );
}

#[test]
fn an_interrupt_ends_the_phase_and_begins_no_other() {
    let arguments = "bench shifting --rows 2000 --transactions 500 --phase 18000s --slice 1s";
    let (_, _, report) = interrupted("interrupted-phases", arguments, LONG, |_| true);
    let phases = &report["results"][0]["timeline"]["phases"];
    assert_eq!(phases.as_array().map(Vec::len), Some(1), "the first was ended, and no other begun");
}

#[test]
fn an_interrupt_ends_a_slice_without_waiting_for_the_next_transaction() {
    let arguments = "bench ycsb --rows 2000 --transactions 500 --rate 0.001 --slice 100ms --runs 1";
    let (_, _, report) = interrupted("interrupted-slices", arguments, "90s", |_| true);
    let result = &report["results"][0];
    let slices = result["slices"].as_array().expect("a list");
    let seconds: f64 = slices.iter().filter_map(|slice| slice["duration_s"].as_f64()).sum();
    assert!(
        result["duration_s"].as_f64().is_some_and(|all| (all - seconds).abs() < 1e-9 && all < 90.0),
        "{result}"
    );
    assert!((1..900).contains(&slices.len()), "{}", slices.len());
}

// The tables of this figure do not grow, so no memory is reserved for ten seconds of growth.
#[test]
fn an_interrupted_figure_reports_its_measurements() {
    let (_, _, report) =
        interrupted("interrupted-figure", "reproduce indexes --scale 0.0001", LONG, |_| true);
    assert_eq!(
        (&report["ended_early"], &report["figure"]["name"]),
        (&true.into(), &"indexes".into())
    );
    let points: Vec<_> = report["figure"]["lines"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|line| &line["points"])
        .collect();
    let counts: Vec<_> =
        points.iter().map(|points| points.as_array().map_or(0, Vec::len)).collect();
    let mut expected = vec![0; counts.len()];
    expected[0] = 1;
    assert_eq!(counts, expected, "the other lines have not been run");
}

#[test]
fn an_interrupt_before_the_measurement_leaves_no_report() {
    // Loading so much takes minutes here, and so does drawing so many inputs.
    for (number, much) in
        ["tpcc --warehouses 10", "predicate --transactions 100000000"].into_iter().enumerate()
    {
        let json = file(&format!("interrupted-before-{number}")).with_extension("json");
        let mut child =
            start(&format!("bench {much} --threads 1 --force --json {}", json.display()));
        wait_for_listening(&mut child);
        thread::sleep(Duration::from_millis(300));
        interrupt(&child);
        let (status, printed, message) = end(child);
        assert_eq!((status, printed.as_str()), (Some(130), ""), "{message}");
        assert!(message.contains(NOTHING), "{message}");
        assert!(!json.exists(), "nothing was measured, and nothing is written");
    }
}

#[test]
fn an_interrupted_check_judges_its_recorded_transactions() {
    for (arguments, attempts) in
        [("check smallbank", ", aborted attempts included"), ("check lists --mode black", "")]
    {
        let printed = with_time(500, |time| {
            let mut child = start(&format!("{arguments} --protocol occ,tictoc --duration {LONG}"));
            // The seed is said when it begins.
            let mut said = BufReader::new(child.stderr.take().expect("piped"));
            let mut message = String::new();
            said.read_line(&mut message).expect("text");
            assert!(message.starts_with("seed "), "{message}");
            thread::sleep(time);
            interrupt(&child);
            let (status, printed, _) = end(child);
            said.read_to_string(&mut message).expect("text");
            assert_eq!(status, Some(130), "{printed}{message}");
            let is_enough = !message.contains(NOTHING) && !printed.contains("no thread committed");
            is_enough.then_some(printed)
        });
        assert!(printed.contains("(ended early, by Ctrl-C)"), "{printed}");
        let claim = format!("serializable in the order of real time{attempts}: yes");
        assert!(printed.contains(&claim), "{printed}");
        assert!(printed.contains("not checked: tictoc"), "{printed}");
    }
}

#[test]
fn a_second_interrupt_ends_the_program_at_once() {
    let threads = threads();
    with_time(200, |time| {
        // Checking so many rows takes long, and nothing looks up from it.
        let table = "bench ycsb --rows 200000 --transactions 500";
        let mut child =
            start(&format!("{table} --warmup 0s --duration {LONG} --threads {threads}"));
        let mut said = BufReader::new(child.stderr.take().expect("piped"));
        wait_for_threads(&mut child, threads);
        thread::sleep(time);
        interrupt(&child);
        let mut message = String::new();
        while !message.contains("Ctrl-C again") {
            assert!(said.read_line(&mut message).expect("text") > 0, "{message}");
        }
        interrupt(&child);
        let (status, printed, _) = end(child);
        said.read_to_string(&mut message).expect("text");
        assert_eq!(status, Some(130), "{printed}{message}");
        // Else the first time came before anything was measured, or the second one after the check.
        (printed.is_empty() && !message.contains(NOTHING)).then_some(())
    });
}
