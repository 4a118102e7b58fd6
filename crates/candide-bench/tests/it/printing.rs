//! What is printed where it cannot be, and that nothing is run or said twice.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

const BENCH: &str = "bench predicate --rows 10 --transactions 100 --warmup 0s --runs 1 --threads 1";
const BRIEF: &str = "--duration 20ms";

fn candide(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_candide"));
    command.args(arguments.split(' '));
    command
}

/// Returns the exit status and what was said.
fn ended(output: Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

/// Runs a command for longer and longer, until it ends with status 0, and returns what was said. On
/// a busy machine nothing may commit in a short time, which is status 1; the longest time is more
/// than a minute.
fn said_in_the_end(arguments: &str, run: impl Fn(&mut Command) -> Output) -> String {
    let mut outputs = (0..13).map(|doubled| {
        let duration = format!("--duration {}ms", 20 << doubled);
        ended(run(&mut candide(&format!("{arguments} {duration}"))))
    });
    let (_, message) = outputs.find(|(status, _)| *status == Some(0)).expect("status 0 in the end");
    message
}

/// Runs a command whose standard output is closed.
fn closed(command: &mut Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    drop(child.stdout.take());
    child.wait_with_output().expect("a child")
}

/// Opens what can be written to and is full.
fn full() -> File {
    File::options().write(true).open("/dev/full").expect("Linux has it")
}

#[test]
fn output_to_a_full_disk_ends_with_status_1_and_a_message() {
    let check = "check random --protocol occ --duration 20ms --threads 1";
    let figure =
        "reproduce delivery --scale 0.0001 --duration 20ms --warmup 0s --runs 1 --threads 1";
    let bench = &format!("{BENCH} {BRIEF}");
    for arguments in
        [bench, check, figure, "--help", "--version", "bench tpcc --help", "help bench"]
    {
        let (status, message) = ended(candide(arguments).stdout(full()).output().expect("starts"));
        assert_eq!(status, Some(1), "{arguments}: {message}");
        assert!(
            message.contains("error: cannot print to standard output: "),
            "{arguments}: {message}"
        );
        assert!(!message.contains("panicked"), "{arguments}: {message}");
    }
}

#[test]
fn output_to_a_closed_pipe_ends_without_a_message() {
    for (arguments, said) in
        [(BENCH, ""), ("check random --protocol occ,mvcc --threads 1 --seed 1", "seed 1\n")]
    {
        assert_eq!(said_in_the_end(arguments, closed), said, "{arguments}");
    }
    assert_eq!(ended(closed(&mut candide("bench tpcc --help"))), (Some(0), String::new()));
}

#[test]
fn messages_that_cannot_be_printed_leave_the_exit_status() {
    let unsaid = |command: &mut Command| command.stderr(full()).output().expect("starts");
    assert_eq!(said_in_the_end(BENCH, unsaid), "");
    for arguments in ["bench tpcc --warehouses 0", "bench tpcd"] {
        assert_eq!(ended(unsaid(&mut candide(arguments))).0, Some(2), "{arguments}");
    }
}

#[test]
fn a_setting_that_is_given_twice_is_run_once() {
    let output = candide(&format!("{BENCH},1 {BRIEF} --protocol occ,occ --cu on,on"))
        .output()
        .expect("starts");
    let lines = BufReader::new(&output.stdout[..]).lines().map(|line| line.expect("text"));
    assert_eq!(lines.filter(|line| line.trim_start().starts_with("occ ")).count(), 1);
}

#[test]
fn tables_fit_a_hundred_columns_and_the_last_line_says_what_came_out() {
    let arguments =
        format!("{BENCH},2 --duration 100ms --protocol occ,2pl-wait-die,mvto --cu on,off");
    let output = candide(&arguments).output().expect("starts");
    let printed = String::from_utf8(output.stdout).expect("text");
    let tables: Vec<&str> =
        printed.lines().take_while(|line| !line.starts_with("note: ")).collect();
    assert!(tables.len() > 12, "{printed}");
    for line in tables {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(printed.starts_with("All results: predicate, ts on\n"), "{printed}");
    assert_eq!(printed.matches("\n  fresh MiB ").count(), 1, "explained once: {printed}");
    let (_, last) = printed.trim_end().rsplit_once("\n\n").expect("a last paragraph");
    assert!(last.starts_with("6 settings: from ") && last.contains("every check held"), "{last}");
}

#[test]
fn reproduce_without_a_figure_lists_the_figures() {
    let output = candide("reproduce").output().expect("starts");
    assert_eq!(output.status.code(), Some(0));
    let printed = String::from_utf8(output.stdout).expect("text");
    for figure in ["factors", "separate-effects", "mocc", "drp"] {
        let is_of = |line: &&str| line.split_whitespace().next() == Some(figure);
        assert_eq!(printed.lines().filter(is_of).count(), 1, "{figure}: {printed}");
    }
    assert!(printed.contains("candide reproduce FIGURE"), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 100), "{printed}");
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
    for text in [&text, &help("bench --help")] {
        for column in ["cu", "ts", "fresh MiB"] {
            assert_eq!(text.matches(&format!("\n  {column:<13} ")).count(), 1, "{column}: {text}");
        }
    }
    assert!(help("bench --help").contains("\nWorkloads:\n"));
    assert!(help("bench --help").contains("\nExamples:\n  candide bench tpcc\n"));
}
