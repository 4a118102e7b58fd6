//! The sizes of read and write sets, and the commits that OCC would have aborted, as they are
//! reported.

use crate::common::{bench_until, number};
use serde_json::Value;

/// The times of the runs, without their duration.
const TIMING: &str = "--warmup 20ms --runs 2";

/// Returns the milliseconds of a run: fewer unless `CANDIDE_FULL` is set.
fn millis() -> u64 {
    if std::env::var_os("CANDIDE_FULL").is_none() { 50 } else { 300 }
}

/// Returns whether a result has a committed transaction of the usual type.
fn has_writers(result: &Value) -> bool {
    number(&result["transactions"]["read-write"]["committed"]) > 0.0
}

#[test]
fn read_and_write_sets_have_the_sizes_that_the_workload_implies() {
    // 16 operations, each a read of one unit or a blind write of one; a transaction is read-only
    // once in 65,536.
    let size = "ycsb --rows 2000 --transactions 1000 --threads 1,2 --protocol usual --cu on,off";
    let (printed, page, results) =
        bench_until(millis(), &format!("{size} --set-sizes {TIMING}"), "sets", &has_writers);
    for result in &results {
        let kind = &result["transactions"]["read-write"];
        let label = format!("{} cu {}", result["protocol"], result["cu"]);
        let has_sets =
            !["serial", "global-lock"].contains(&result["protocol"].as_str().expect("a name"));
        for sets in [result, kind] {
            let (reads, writes) = (number(&sets["read_set"]), number(&sets["write_set"]));
            let expected = match (has_sets, result["cu"] == true) {
                (false, _) => 0.0,
                (true, true) => 16.0,
                // A write reads what it writes.
                (true, false) => 16.0 + writes,
            };
            assert!((reads + writes - expected).abs() < 1e-9, "{label}: {reads} and {writes}");
            // Few transactions may commit. The number of writes of one has a deviation of 2.
            let far = (12.0 / number(&kind["committed"]).sqrt()).max(1.0);
            assert!(!has_sets || (writes - 8.0).abs() < far, "{label}: {writes}");
            assert!(sets.get("occ_would_abort").is_none(), "{label}");
        }
    }
    assert!(printed.contains("Read and write sets: entries for each"), "{printed}");
    assert!(page.contains("<summary>Read and write sets</summary>"));
    let field = "data-field=\"transactions/read-write/read_set\"";
    assert_eq!(page.matches(field).count(), results.len());
}

#[test]
fn sizes_of_read_and_write_sets_are_in_the_json_and_on_the_page() {
    let size = "ycsb --rows 2000 --transactions 1000 --threads 1";
    let (printed, page, results) =
        bench_until(millis(), &format!("{size} {TIMING}"), "no-sets", &has_writers);
    assert!(number(&results[0]["read_set"]) > 0.0);
    assert!(results[0]["transactions"]["read-write"].get("read_set").is_none());
    assert!(results[0].get("occ_would_abort").is_none());
    assert!(!printed.contains("Read and write sets") && page.contains("Read and write sets"));
}

#[test]
fn share_of_commits_that_occ_would_abort_is_reported_for_other_protocols() {
    let size = "ycsb --rows 100 --transactions 500 --threads 3 --protocol usual --would-abort";
    let (printed, page, results) =
        bench_until(millis(), &format!("{size} {TIMING}"), "would-abort", &has_writers);
    for result in &results {
        let protocol = result["protocol"].as_str().expect("a name");
        let can = ["tictoc", "mvcc", "mvto"].contains(&protocol);
        let all = result.get("occ_would_abort");
        assert_eq!(all.is_some(), can, "{result}");
        let kinds = result["transactions"].as_object().expect("an object").values();
        for share in kinds.map(|kind| kind.get("occ_would_abort")).chain([all]) {
            assert_eq!(share.is_some(), can, "{result}");
            assert!(share.is_none_or(|share| (0.0..=1.0).contains(&number(share))), "{result}");
        }
        // Its commits that write have been validated as under OCC.
        let writers = &result["transactions"]["read-write"];
        assert!(protocol != "mvcc" || number(&writers["occ_would_abort"]) == 0.0, "{result}");
    }
    assert!(printed.contains("occ would abort"), "{printed}");
    assert_eq!(page.matches("data-field=\"occ_would_abort\"").count(), 3);
}
