//! The locks by policy, as they are reported.

mod common;

use common::{bench, number};

#[test]
fn locks_are_told_of_each_policy_that_may_take_some() {
    // So few rows that transactions of several threads meet, even on one core.
    let size = "ycsb-hot --rmws 5 --transactions 500 --threads 1,3 --protocol all";
    let timing = "--warmup 20ms --runs 2";
    let (printed, page, results) = bench(120, &format!("{size} {timing}"), "locks");
    let without = ["occ", "tictoc", "mvcc", "mvto", "serial", "global-lock"];
    let is_without = |name: &str| without.contains(&name);
    let mut with = 0;
    for result in &results {
        let protocol = result["protocol"].as_str().expect("a name");
        let Some(locks) = result.get("locks") else {
            assert!(is_without(protocol), "{result}");
            continue;
        };
        assert!(!is_without(protocol), "{result}");
        with += 1;
        let counts =
            ["taken", "waited", "died", "killed", "forgone"].map(|name| number(&locks[name]));
        assert_eq!(locks.as_object().expect("an object").len(), counts.len());
        let [taken, waited, died, killed, forgone] = counts;
        // The only table of `mixed` has the first policy in turn, which is optimistic.
        assert!(protocol != "mixed" || counts == [0.0; 5], "{result}");
        let is_idle = protocol == "mixed" || result["committed"] == 0;
        assert!(is_idle || taken > 0.0, "{result}");
        assert!(died + killed <= number(&result["aborted"]), "{result}");
        if result["threads"] == 1 {
            assert_eq!([waited, died, killed, forgone], [0.0; 4], "{result}");
        }
    }
    // Eight policies with two numbers of threads.
    assert_eq!(with, 16);
    let (_, table) = printed.split_once("\nLocks on rows by policy: ").expect("a table of locks");
    let rows = table.lines().take_while(|line| !line.is_empty() && !line.starts_with("note: "));
    let rows = rows.filter(|line| line.trim_start().starts_with("ycsb-hot-5 "));
    assert_eq!(rows.count(), 16, "{printed}");
    assert!(page.contains("<summary>Locks by policy</summary>"));
    assert_eq!(page.matches("data-field=\"locks/taken\"").count(), 16);
}

#[test]
fn without_policies_that_lock_there_is_no_table_of_locks() {
    let timing = "--warmup 20ms --runs 1 --threads 1";
    let size = "ycsb-hot --transactions 500 --protocol occ,tictoc";
    let (printed, page, results) = bench(120, &format!("{size} {timing}"), "no-locks");
    assert!(results.iter().all(|result| result.get("locks").is_none()));
    assert!(!printed.contains("Locks") && !page.contains("Locks by policy"), "{printed}");
}
