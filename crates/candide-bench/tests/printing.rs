//! What is printed where it cannot be, and that nothing is run or said twice.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

const BENCH: &str = "bench predicate --rows 10 --transactions 100 --duration 20ms --warmup 0s --runs 1 --threads 1";

fn candide(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_candide"));
    command.args(arguments.split(' '));
    command
}

/// Returns the exit status and what was said.
fn ended(output: Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn a_full_output_ends_with_status_1_and_a_message() {
    let check = "check random --protocol occ --duration 20ms --threads 1";
    let figure = "reproduce delivery --scale 0.0001 --duration 20ms --warmup 0s --runs 1 --threads 1";
    for arguments in [BENCH, check, figure, "--help", "--version", "bench tpcc --help", "help bench"] {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let (status, message) = ended(candide(arguments).stdout(full).output().expect("starts"));
        assert_eq!(status, Some(1), "{arguments}: {message}");
        assert!(message.contains("error: cannot print to standard output: "), "{arguments}: {message}");
        assert!(!message.contains("panicked"), "{arguments}: {message}");
    }
}

#[test]
fn a_closed_output_ends_quietly() {
    let check = "check random --protocol occ,mvcc --duration 20ms --threads 1 --seed 1";
    for (arguments, said) in [(BENCH, ""), ("bench tpcc --help", ""), (check, "seed 1\n")] {
        let mut child = candide(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        drop(child.stdout.take());
        let (status, message) = ended(child.wait_with_output().expect("a child"));
        assert_eq!((status, message.as_str()), (Some(0), said), "{arguments}");
    }
}

#[test]
fn messages_that_cannot_be_said_change_no_status() {
    for (arguments, expected) in [(BENCH, 0), ("bench tpcc --warehouses 0", 2), ("bench tpcd", 2)] {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let output = candide(arguments).stderr(full).output().expect("starts");
        assert_eq!(output.status.code(), Some(expected), "{arguments}");
    }
}

#[test]
fn what_is_named_twice_is_run_once() {
    let output = candide(&format!("{BENCH},1 --protocol occ,occ --cu on,on")).output().expect("starts");
    let lines = BufReader::new(&output.stdout[..]).lines().map(|line| line.expect("text"));
    assert_eq!(lines.filter(|line| line.trim_start().starts_with("predicate  occ ")).count(), 1);
}

#[test]
fn the_help_of_a_workload_has_groups_and_an_example() {
    let help = |arguments: &str| {
        let output = candide(arguments).output().expect("starts");
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).expect("text")
    };
    let text = help("bench tpcc --help");
    let headings = ["\nWorkload:\n", "\nDatabase:\n", "\nRuns:\n", "\nResults:\n", "\nExample:\n"];
    let places: Vec<_> = headings.map(|heading| text.find(heading)).into_iter().collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} in {text}");
    assert!(help("bench --help").contains("\nWorkloads:\n"));
    assert!(help("bench --help").contains("\nExamples:\n  candide bench tpcc\n"));
}
