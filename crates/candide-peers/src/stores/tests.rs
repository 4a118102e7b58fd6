//! Tests that every peer runs every workload and leaves possible rows, and that the check finds
//! peers that are wrong.

pub(super) mod broken;

use std::time::Duration;

use clap::Parser;

use super::cli::Choice;
use super::driver::{Contender, Job, Lots, Turn, of};
use super::{Failure, Options, peers, suite};

/// The number of rows. The number is so small that transactions conflict.
const ROWS: u64 = 100;

fn draw(workload: Choice, threads: usize) -> Job {
    workload.draw(ROWS, Lots { threads, each: 1000, seed: 1 })
}

fn measure(
    peer: &dyn Contender,
    job: &Job,
    threads: usize,
    milliseconds: u64,
) -> Result<u64, Failure> {
    let turn = Turn { threads, duration: Duration::from_millis(milliseconds), run: 0 };
    peer.measure(job, turn).map(|sample| sample.committed)
}

#[test]
fn every_workload_is_consistent_in_every_peer() {
    for workload in
        [Choice::Transfer, Choice::SmallBank, Choice::YcsbA, Choice::YcsbB, Choice::YcsbC]
    {
        let job = draw(workload, 2);
        for peer in peers::all() {
            let about = peer.about();
            let committed = measure(peer.as_ref(), &job, about.threads_max.min(2), 15);
            assert!(
                committed.as_ref().is_ok_and(|&count| count > 0),
                "{} {workload:?}: {committed:?}",
                about.name
            );
        }
    }
}

#[test]
fn write_skew_occurs_in_no_peer() {
    let job = draw(Choice::Skew, 2);
    for peer in peers::all() {
        let about = peer.about();
        let committed = measure(peer.as_ref(), &job, about.threads_max.min(2), 60);
        assert!(committed.is_ok(), "{}: {committed:?}", about.name);
    }
}

/// Returns the fault that a workload finds in a peer; `None` if it finds none. On a busy machine,
/// it can take many attempts until transactions conflict.
fn found(peer: &dyn Contender, workload: Choice) -> Option<String> {
    let job = draw(workload, 4);
    // The attempts take a minute, and more on a busy machine.
    (0..1_200).find_map(|_| measure(peer, &job, 4, 50).err()).map(|failure| failure.to_string())
}

#[test]
fn lost_updates_are_found_by_every_workload_that_writes() {
    for workload in
        [Choice::Transfer, Choice::SmallBank, Choice::YcsbA, Choice::YcsbB, Choice::Skew]
    {
        assert!(found(of::<broken::NoIsolation>().as_ref(), workload).is_some(), "{workload:?}");
    }
}

#[test]
fn write_skew_is_found_by_the_probe_and_by_nothing_else() {
    let peer = of::<broken::WritesOnly>();
    let failure = found(peer.as_ref(), Choice::Skew);
    assert!(failure.as_ref().is_some_and(|failure| failure.contains("write skew")), "{failure:?}");
    measure(peer.as_ref(), &draw(Choice::Transfer, 4), 4, 50).unwrap();
}

#[test]
fn a_failed_store_is_reported_and_the_others_are_compared() {
    let options = Options::parse_from([
        "stores",
        "--workload",
        "transfer",
        "--rows",
        "100",
        "--threads",
        "4",
    ]);
    let options = Options { duration: Duration::from_millis(50), ..options };
    let mut contenders = peers::all();
    contenders.retain(|peer| ["candide-occ", "mutex"].contains(&peer.about().name));
    contenders.push(of::<broken::NoIsolation>());
    // The measurement is repeated until transactions conflict.
    let mut reports = (0..400).map(|_| suite::measure(&options, &contenders).unwrap());
    let report =
        reports.find(|report| report.results[2].failure.is_some()).expect("updates are lost");
    let [candide, mutex, broken] = &report.results[..] else { panic!("{:?}", report.results) };
    assert!(
        broken.failure.as_ref().is_some_and(|failure| failure.contains("add up to")),
        "{broken:?}"
    );
    let verdict = suite::examined(&report.results).unwrap_err().to_string();
    assert!(verdict.starts_with("no-isolation, transfer, 4 threads: "), "{verdict}");
    assert!(suite::examined(&report.results[..2]).is_ok());
    assert_eq!((broken.of_candide, candide.of_candide), (None, Some(1.0)));
    assert_eq!(mutex.of_candide, Some(mutex.throughput_tps / candide.throughput_tps));
}

#[test]
fn results_are_written_as_json() {
    let json = std::env::temp_dir().join(format!("candide-stores-{}.json", std::process::id()));
    let small =
        ["--rows", "100", "--duration", "2ms", "--runs", "3", "--workload", "transfer,smallbank"];
    let whole = [
        "stores",
        "--peers",
        "candide-occ,candide-serial,fast-stm",
        "--json",
        json.to_str().unwrap(),
    ];
    super::run(&Options::parse_from(whole.iter().chain(&small))).unwrap();
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    std::fs::remove_file(json).unwrap();
    let results = report["results"].as_array().unwrap();
    // There are two workloads. For each, three peers run with one thread, and two of these peers
    // run with two threads.
    assert_eq!(results.len(), 2 * (3 + 2));
    for result in results {
        assert!(
            result["throughput_tps"].as_f64().unwrap() > 0.0 && result["failure"].is_null(),
            "{result}"
        );
        assert_eq!(result["tps_runs"].as_array().unwrap().len(), 3);
    }
    let stm = &report["peers"][2];
    assert_eq!((&stm["name"], &stm["crate"]), (&"fast-stm".into(), &"fast-stm".into()));
    assert!(report["notes"].to_string().contains("candide-serial cannot be used by 2 threads"));
}

#[test]
fn bad_arguments_of_the_comparison_are_refused_with_valid_values() {
    let error = |arguments: &[&str]| {
        let error = Options::try_parse_from(["stores"].iter().chain(arguments)).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    };
    assert!(
        error(&["--peers", "candide-occ,rodb"])
            .contains("use all, or some of candide-occ,candide-tictoc")
    );
    assert!(error(&["--workload", "ycsb"]).contains("ycsb-a"));
    assert!(error(&["--rows", "10"]).contains("100.."));
    assert!(error(&["--runs", "0"]).contains("1.."));
    assert!(error(&["--threads", "0"]).contains("use numbers from 1 to"));
    assert!(error(&["--duration", "0s"]).contains("longer than zero"));
    for (feature, names) in peers::LEFT_OUT {
        assert!(error(&["--peers", names[0]]).contains(&format!("--features {feature}")));
    }
    let alone = ["stores", "--peers", "candide-serial", "--threads", "2", "--workload", "transfer"];
    let error = super::run(&Options::parse_from(alone)).unwrap_err();
    assert!(error.to_string().contains("so many threads"), "{error}");
}
