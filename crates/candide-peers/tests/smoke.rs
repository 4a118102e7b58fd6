//! Every map keeps what it is given, and the whole command runs.

use candide_peers::cli::Options;
use clap::Parser;

#[test]
fn every_map_finds_and_orders_its_rows() {
    // masstree 0.9.5 skips rows in a scan from a key that shares its first eight bytes with more than fifteen others.
    assert_eq!(candide_peers::check(1000).unwrap(), [("masstree", 24)]);
}

#[test]
fn the_command_measures_every_map() {
    let json = std::env::temp_dir().join(format!("candide-peers-{}.json", std::process::id()));
    let path = json.to_str().unwrap();
    let small = ["maps", "--rows", "1000", "--duration", "2ms", "--runs", "2"];
    candide_peers::run(&Options::parse_from(small.iter().chain(&["--json", path]))).unwrap();
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    std::fs::remove_file(json).unwrap();
    for figure in report["throughput"].as_array().unwrap() {
        assert!(figure["ops_per_second"].as_f64().unwrap() > 0.0, "{figure}");
    }
    candide_peers::run(&Options::parse_from(small.iter().chain(&["--misses"]))).unwrap();
}

#[test]
fn an_unknown_map_is_an_error() {
    assert!(candide_peers::run(&Options::parse_from(["maps", "--only", "hashbrown"])).is_err());
}
