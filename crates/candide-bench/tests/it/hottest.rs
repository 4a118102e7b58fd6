//! What is reported of the hottest row, if it is requested, and that it is kept apart from
//! everything else.

use std::collections::BTreeSet;

use crate::common::{assert_counts_add_up, bench, number};
use serde_json::Value;

/// Asserts that looks at the hottest row were taken as often as they should be, by `threads`
/// threads in `runs` runs, and that nothing else has them in its counts.
fn assert_looked_at(result: &Value, row: &str, threads: u64, runs: u64) {
    let hottest = &result["hottest"];
    let fields: BTreeSet<_> =
        hottest.as_object().expect("an object").keys().map(String::as_str).collect();
    let wanted = ["row", "probes", "aborted", "p50_us", "p99_us", "versions_p99", "versions_max"];
    assert_eq!(fields, BTreeSet::from(wanted));
    assert_eq!(hottest["row"], row);
    let ended = number(&result["committed"]) + number(&result["user_aborted"]);
    let probes = number(&hottest["probes"]);
    let most = (ended / 256.0).floor();
    // Each thread has a rest of fewer than 256 in each run.
    assert!(probes <= most && probes > most - (threads * runs) as f64 - 1.0, "{probes} of {ended}");
    // No read of the row is among them.
    assert_counts_add_up(result);
    if probes > 0.0 {
        let [p50, p99, often, most] = ["p50_us", "p99_us", "versions_p99", "versions_max"]
            .map(|field| number(&hottest[field]));
        assert!(0.0 < p50 && p50 <= p99 && 1.0 <= often && often <= most, "{hottest}");
        if !result["protocol"].as_str().expect("a name").starts_with("mv") {
            assert_eq!(most, 1.0, "{result}");
        }
    }
}

#[test]
fn the_hottest_row_is_reported_under_every_protocol() {
    // As long as it takes until a thread comes to 256 transactions, and to versions; the last is a
    // minute and more in all.
    let mut durations = (0..6).map(|doubled| 150 << doubled);
    let (printed, page) = durations
        .find_map(|millis| {
            let timing = "--warmup 20ms --runs 2 --threads 1,3 --protocol usual --hottest";
            let arguments = format!("key-value --preset counter --transactions 500 {timing}");
            let (printed, page, results) = bench(millis, &arguments, "hottest");
            assert_eq!(results.len(), 15, "`serial` with one thread only");
            for result in &results {
                assert_looked_at(
                    result,
                    "usertable[0]",
                    result["threads"].as_u64().expect("a number"),
                    2,
                );
            }
            let versions = |protocol: &str| {
                let of = results.iter().filter(|result| result["protocol"] == protocol);
                of.filter_map(|result| result["hottest"]["versions_max"].as_f64())
                    .fold(0.0, f64::max)
            };
            let enough = versions("mvcc") > 1.0 && versions("mvto") > 1.0;
            enough.then_some((printed, page))
        })
        .expect("there are several versions at times");
    assert!(
        printed
            .contains("The hottest row, as threads find it after each 256th of their transactions"),
        "{printed}"
    );
    assert_eq!(
        printed.lines().filter(|line| line.contains("usertable[0]")).count(),
        15,
        "{printed}"
    );
    assert!(page.contains("<summary>The hottest row</summary>"));
    assert_eq!(page.matches("data-field=\"hottest/probes\"").count(), 15);
}

#[test]
fn option_hottest_works_together_with_causes_slices_phases_and_rate() {
    let timing = "--warmup 20ms --runs 1 --threads 3 --hottest";
    let size =
        "tpcc --customers 60 --items 500 --causes --protocol mvcc --cu off --ts off --slice 100ms";
    let (_, _, results) = bench(400, &format!("{size} {timing}"), "hottest-causes");
    assert_looked_at(&results[0], "warehouses[1]", 3, 1);
    let causes = results[0]["causes"].as_array().expect("a list");
    assert_eq!(
        causes.iter().map(|cause| number(&cause["attempts"])).sum::<f64>(),
        number(&results[0]["aborted"])
    );
    let slices = results[0]["slices"].as_array().expect("a list");
    assert_eq!(
        slices.iter().map(|slice| number(&slice["committed"])).sum::<f64>(),
        number(&results[0]["committed"])
    );

    let size = "shifting --rows 500 --reads 2 --transactions 500 --phase 60ms";
    let (_, _, results) = bench(400, &format!("{size} {timing}"), "hottest-phases");
    assert_looked_at(&results[0], "small[0]", 3, 1);

    let (printed, _, results) =
        bench(400, &format!("tpcb --branches 1 --accounts 100 --rate 50 {timing}"), "hottest-rate");
    assert_looked_at(&results[0], "branches[0]", 3, 1);
    assert_eq!(
        number(&results[0]["hottest"]["probes"]),
        0.0,
        "no transaction came to 256: {printed}"
    );
    assert!(
        results[0]["hottest"]["p99_us"].is_null()
            && results[0]["hottest"]["versions_max"].is_null()
    );
}

#[test]
fn without_the_option_no_hottest_row_is_reported() {
    let timing = "--warmup 20ms --runs 1 --threads 1";
    let (printed, page, results) =
        bench(100, &format!("ycsb-hot --transactions 500 {timing}"), "not-hottest");
    assert!(results[0].get("hottest").is_none());
    assert!(!printed.contains("hottest") && !page.contains("hottest"), "{printed}");
}
