//! The crash laboratory of the command.

use std::fs;

use crate::common::{file, place, run};

#[test]
fn the_next_run_begins_after_the_last_seed_of_the_ledger() {
    let ledger = file("crashes.csv");
    let _ = fs::remove_file(&ledger);
    let arguments = "crash --states 100 --threads 2 --engine 0.05 --recovery 0.01 --ledger";
    let mut next = 0;
    for lines in [2, 3] {
        let (status, printed, message) = run(arguments, &[&ledger]);
        assert_eq!((status, &message[..]), (0, ""), "{printed}");
        assert!(printed.contains(&format!("seeds {next} to ")), "{printed}");
        assert!(printed.contains(": 0 failed"), "{printed}");
        let text = fs::read_to_string(&ledger).expect("written");
        assert_eq!(text.lines().count(), lines, "{text}");
        let values: Vec<&str> = text.lines().last().expect("a line").split(',').collect();
        assert_eq!(values.len(), 6, "{text}");
        assert_eq!(values[1].parse(), Ok(next));
        next = values[2].parse::<u64>().expect("a seed") + 1;
        assert!(values[3].parse::<u64>().expect("a number") >= 100, "{text}");
        assert_eq!(values[4], "0");
    }
}

#[test]
fn replay_of_a_crash_state_prints_its_operations_and_verdict() {
    for state in ["killed-12", "12:512:nothing"] {
        let (status, printed, message) = run(&format!("crash --replay 0:{state}"), &[]);
        assert_eq!((status, &message[..]), (0, ""), "{printed}");
        assert!(printed.contains("\n11 "), "the operations before the crash: {printed}");
        assert!(printed.ends_with("is as it must be\n"), "{printed}");
    }
    let (status, _, message) = run("crash --replay 0:100000:512:nothing", &[]);
    assert_eq!(status, 2, "{message}");
    assert!(message.contains("has no state 100000:512:nothing: its disk does "), "{message}");
    let (status, _, message) = run("crash --replay 0:soon", &[]);
    assert_eq!(status, 2, "{message}");
    assert!(message.contains("valid names are 37:512:all-but-5 and killed-37"), "{message}");
}

#[test]
fn acknowledged_transactions_survive_kills_of_their_processes() {
    let place = place("crash-kill");
    let arguments = "crash --kill --runs 5 --protocol occ,mvcc,global-lock --dir";
    let (status, printed, message) = run(arguments, &[&place]);
    assert_eq!((status, &message[..]), (0, ""), "{printed}");
    assert!(printed.starts_with("5 processes killed in "), "{printed}");
    assert!(place.join("MANIFEST").exists(), "the database stays");
    let (status, _, message) = run(arguments, &[&place]);
    assert_eq!(status, 2, "{message}");
    assert!(message.contains("name a directory that does not exist"), "{message}");
    let (status, _, message) = run("crash --kill --ack memory", &[]);
    assert_eq!(status, 2, "{message}");
    assert!(message.contains("use --ack written or --ack durable"), "{message}");
    fs::remove_dir_all(&place).expect("removed");
}
