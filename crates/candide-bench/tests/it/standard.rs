//! Standard output and input in the place of files.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::common::file;
use serde_json::Value;

fn candide(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_candide"));
    command.args(arguments.split(' '));
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Runs a command that reads `input`.
fn fed(arguments: &str, input: &[u8]) -> Output {
    let mut child = candide(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    // The command may end before it has read all, which is not judged here.
    let _ = child.stdin.take().expect("piped").write_all(input);
    child.wait_with_output().expect("a child")
}

#[test]
fn json_on_standard_output_is_alone_there_and_is_a_baseline_for_the_next_command() {
    let bench = "bench predicate --rows 10 --transactions 100 --warmup 0s --runs 2 --threads 1";
    // On a busy machine nothing may commit in a short time.
    let mut outputs = (0..12).map(|doubled| {
        candide(&format!("{bench} --duration {}ms --json -", 20 << doubled))
            .output()
            .expect("starts")
    });
    let output = outputs.find(|output| output.status.success()).expect("something commits");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!(report["results"].as_array().map(Vec::len), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("txn/s") && said.contains("every check held"), "{said}");

    let again = file("baseline.json");
    let arguments = format!("{bench} --duration 20ms --baseline - --json {}", again.display());
    let compared = fed(&arguments, &output.stdout);
    let printed = text(&compared.stdout);
    assert!(printed.contains("Compared with standard input ("), "{printed}");
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(&again).expect("written")).expect("JSON");
    let changes = report["baseline"]["changes"].as_array().expect("a list");
    assert_eq!(changes.len(), 1, "{printed}");
    assert_eq!(changes[0]["result"], 0);

    let refused = fed(&arguments, b"{}");
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("standard input does not hold results"), "{said}");
    assert!(said.contains("--baseline takes a file that --json has written"), "{said}");
}

#[test]
fn histories_are_written_to_standard_output_and_checked_from_standard_input() {
    let record = "check random --protocol occ --duration 50ms --threads 2 --history -";
    let history = candide(record).output().expect("starts");
    assert_eq!(history.status.code(), Some(0), "{}", text(&history.stderr));
    assert!(text(&history.stderr).contains("occ: random"), "what is found is said elsewhere");
    let judged = fed("check --file -", &history.stdout);
    let printed = text(&judged.stdout);
    assert!(printed.starts_with("standard input: versions"), "{printed}{}", text(&judged.stderr));
    assert_eq!(judged.status.code(), Some(0), "{printed}");

    let record = "check lists --mode black --protocol occ --duration 50ms --threads 2 --edn -";
    let history = candide(record).output().expect("starts");
    assert_eq!(history.status.code(), Some(0), "{}", text(&history.stderr));
    let judged = fed("check --file -", &history.stdout);
    let printed = text(&judged.stdout);
    assert!(printed.starts_with("standard input: lists"), "{printed}{}", text(&judged.stderr));

    let damaged = fed("check --file -", b"{\"format\": 3}\n");
    assert_eq!(damaged.status.code(), Some(1));
    assert!(text(&damaged.stderr).contains("standard input: "), "{}", text(&damaged.stderr));
    assert_eq!(fed("check --file -", b"").status.code(), Some(3), "nothing to check");
}

#[test]
fn standard_output_has_room_for_one_result() {
    let output = candide("bench ycsb --json - --report -").output().expect("starts");
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("--json and --report name the same file"), "{said}");
    assert!(output.stdout.is_empty());
}
