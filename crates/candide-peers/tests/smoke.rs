//! Every map keeps what it is given, and the whole commands run.

use std::collections::HashSet;

use candide_peers::cli::Options;
use candide_peers::stores::durable;
use clap::Parser;

#[test]
fn every_map_finds_and_orders_its_rows() {
    // masstree 0.9.5 skips rows in a scan from a key that shares its first eight bytes with more
    // than fifteen others.
    assert_eq!(candide_peers::check(1000).unwrap(), [("masstree", 24)]);
}

#[test]
fn the_command_measures_every_map() {
    let json = std::env::temp_dir().join(format!("candide-peers-{}.json", std::process::id()));
    let path = json.to_str().unwrap();
    let small = ["maps", "--rows", "1000", "--duration", "2ms", "--runs", "2"];
    candide_peers::run(&Options::parse_from(small.iter().chain(&["--json", path]))).unwrap();
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    std::fs::remove_file(json).unwrap();
    for figure in report["throughput"].as_array().unwrap() {
        assert!(figure["ops_per_second"].as_f64().unwrap() > 0.0, "{figure}");
    }
    candide_peers::run(&Options::parse_from(small.iter().chain(&["--misses"]))).unwrap();
}

#[test]
fn a_plot_is_well_formed_and_has_a_line_for_each_map() {
    let file = |kind| {
        std::env::temp_dir().join(format!("candide-peers-plot-{}.{kind}", std::process::id()))
    };
    let (svg, json) = (file("svg"), file("json"));
    let small = [
        "maps",
        "--misses",
        "--rows",
        "100,1000",
        "--keys",
        "8",
        "--duration",
        "2ms",
        "--runs",
        "1",
    ];
    let files = ["--plot", svg.to_str().unwrap(), "--json", json.to_str().unwrap()];
    candide_peers::run(&Options::parse_from(small.iter().chain(&files))).unwrap();
    let plot = std::fs::read_to_string(&svg).unwrap();
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    std::fs::remove_file(svg).unwrap();
    std::fs::remove_file(json).unwrap();

    assert_balanced(&plot);
    let costs = report["lookup_costs"].as_array().unwrap();
    let maps: HashSet<&str> = costs.iter().map(|cost| cost["map"].as_str().unwrap()).collect();
    assert!(maps.contains("candide-ordered") && maps.contains("dashmap"), "{maps:?}");
    // In time by rows; and by cache misses, or in dependent loads if the system does not count.
    for map in &maps {
        assert_eq!(plot.matches(&format!("<title>{map}</title></polyline>")).count(), 2, "{map}");
    }
    assert_eq!(plot.matches("<polyline").count(), 2 * maps.len());
    let said = report["notes"]
        .as_array()
        .unwrap()
        .iter()
        .any(|note| note.as_str().unwrap().contains("times are given in loads"));
    assert_eq!(said, costs.iter().all(|cost| cost["events"].is_null()));
    assert!(costs.iter().all(|cost| cost["load_nanoseconds"].as_f64().unwrap() > 0.0));
}

/// Each tag that is opened is closed, in its turn; and no number is none.
fn assert_balanced(svg: &str) {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').unwrap();
        assert!(!text.contains('>') && tag.matches('"').count().is_multiple_of(2), "{tag}");
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed));
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap());
        }
    }
    assert!(svg.starts_with("<svg ") && open.is_empty(), "{open:?}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

#[test]
fn a_plot_without_counted_misses_is_refused() {
    let error = Options::try_parse_from(["maps", "--plot", "lookups.svg"]).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("--misses"), "{error}");
}

#[test]
fn an_unknown_map_is_an_error() {
    assert!(candide_peers::run(&Options::parse_from(["maps", "--only", "hashbrown"])).is_err());
}

#[test]
fn the_command_measures_every_durable_store_and_leaves_no_files() {
    let directory =
        std::env::temp_dir().join(format!("candide-peers-durable-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let json = directory.join("results.json");
    let small = ["--threads", "1,3", "--seconds", "0.01", "--rounds", "3", "--rows", "1000"];
    let whole = ["durable", directory.to_str().unwrap(), "--json", json.to_str().unwrap()];
    durable::run(&durable::Options::parse_from(whole.iter().chain(&small))).unwrap();
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    std::fs::remove_file(json).unwrap();
    // Fails if a folder was left behind.
    std::fs::remove_dir(directory).unwrap();

    let names: Vec<_> = report["stores"].as_array().unwrap().iter().map(|s| &s["name"]).collect();
    assert_eq!(names[..2], ["candide-occ", "candide-64-pending"]);
    let results = report["results"].as_array().unwrap();
    // Two shapes, two numbers of threads, and the floor beside the stores.
    assert_eq!(results.len(), 2 * 2 * (1 + names.len()));
    for result in results {
        assert!(result["failure"].is_null(), "{result}");
        let rounds = result["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 3);
        for round in rounds {
            let number = |name: &str| round[name].as_f64().unwrap();
            assert!(number("committed") > 0.0, "{result}");
            assert!(0.0 < number("latency_p50_us"), "{result}");
            assert!(number("latency_p50_us") <= number("latency_p99_us"), "{result}");
        }
        let of_all = |name: &str| result[name].as_f64().unwrap();
        assert!(of_all("commits_per_second_min") <= of_all("commits_per_second"), "{result}");
        assert!(of_all("commits_per_second") <= of_all("commits_per_second_max"), "{result}");
    }
}
