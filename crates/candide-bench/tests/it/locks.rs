//! The locks by policy, as they are reported.

use crate::common::{bench, bench_until, has_committed, number};

/// Returns the milliseconds of a run: fewer unless `CANDIDE_FULL` is set.
fn millis() -> u64 {
    if std::env::var_os("CANDIDE_FULL").is_none() { 40 } else { 120 }
}

#[test]
fn counts_of_locks_are_reported_for_policies_that_lock() {
    // So few rows that transactions of several threads meet, even on one core.
    let size = "ycsb-hot --rmws 5 --transactions 500 --threads 1,3 --protocol all";
    let timing = "--warmup 20ms --runs 2";
    let (printed, page, results) = bench(millis(), &format!("{size} {timing}"), "locks");
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
        let [taken, waited, died, killed, forgone] = counts;
        let learnt =
            ["retrospective", "restored", "heated", "cooled"].map(|name| number(&locks[name]));
        assert_eq!(locks.as_object().expect("an object").len(), counts.len() + learnt.len());
        let retrospective = learnt[0];
        assert!(retrospective <= taken, "{result}");
        // Only these learn from conflicts which rows to lock.
        let learns = ["mocc", "hybrid"].contains(&protocol);
        // The rows of the only table of `mixed` have all policies.
        let is_mixed = protocol == "mixed";
        assert!(learns || is_mixed || learnt == [0.0; 4], "{result}");
        assert!(result["committed"] == 0 || learns || taken > 0.0, "{result}");
        assert!(died + killed <= number(&result["aborted"]), "{result}");
        if result["threads"] == 1 {
            assert_eq!([waited, died, killed, forgone], [0.0; 4], "{result}");
            // Readers and writers of a mixed table ask for the locks of all rows at first, and then
            // find that those of rows under `mocc` are of no use.
            assert!(is_mixed || learnt == [0.0; 4], "{result}");
            assert!(!learns || taken == 0.0, "{result}");
        }
    }
    // Twelve policies with two numbers of threads.
    assert_eq!(with, 24);
    let (_, table) = printed.split_once("\nLocks on rows by policy: ").expect("a table of locks");
    let rows = table.lines().take_while(|line| !line.is_empty() && !line.starts_with("note: "));
    let rows = rows.filter(|line| line.contains("thread"));
    assert_eq!(rows.count(), 24, "{printed}");
    assert!(page.contains("<summary>Locks by policy</summary>"));
    assert_eq!(page.matches("data-field=\"locks/taken\"").count(), 24);
    // A column of one value is a sentence.
    let cooled = page.matches("data-field=\"locks/cooled\"").count();
    assert!(cooled == 24 || page.matches(":locks/cooled").count() == 24, "{cooled}");
}

#[test]
fn options_of_a_policy_reach_the_database_and_are_in_the_name_of_its_result() {
    let size = "ycsb-hot --rmws 5 --transactions 500 --protocol mocc:h=0,lock=queue,mocc:h=31";
    let timing = "--warmup 20ms --runs 1 --threads 1";
    let (printed, page, results) =
        bench_until(millis(), &format!("{size} {timing}"), "options", &has_committed);
    let [hot, cold] = &results[..] else { panic!("two settings, {} results", results.len()) };
    assert_eq!(
        (&hot["protocol"], &cold["protocol"]),
        (&"mocc:h=0,lock=queue".into(), &"mocc:h=31".into())
    );
    let [of_hot, of_cold] = [hot, cold].map(|result| number(&result["locks"]["taken"]));
    assert!(of_hot > 0.0, "all rows are that hot: {hot}");
    assert_eq!(of_cold, 0.0, "no row is that hot: {cold}");
    assert!(printed.contains("ycsb-hot-5 mocc:h=0,lock=queue: "), "{printed}");
    assert!(page.contains("data-protocol=\"mocc:h=31\""));
}

#[test]
fn without_policies_that_lock_there_is_no_table_of_locks() {
    let timing = "--warmup 20ms --runs 1 --threads 1";
    let size = "ycsb-hot --transactions 500 --protocol occ,tictoc";
    let (printed, page, results) = bench(millis(), &format!("{size} {timing}"), "no-locks");
    assert!(results.iter().all(|result| result.get("locks").is_none()));
    assert!(!printed.contains("Locks") && !page.contains("Locks by policy"), "{printed}");
}
