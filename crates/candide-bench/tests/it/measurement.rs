//! Tiny runs of the whole command: what it prints and writes, and that its figures agree with one
//! another.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::common::{
    assert_counts_add_up, bench_anew, file, has_committed, has_committed_each, number,
};
use serde_json::Value;

/// Runs `candide bench` with `arguments`, briefly, and gives what it printed and what it wrote.
fn bench(arguments: &str, name: &str) -> (String, Value) {
    bench_until(BRIEF, arguments, name, |_| true)
}

/// The milliseconds of a run, and those in which rare events happen, too.
const BRIEF: u64 = 50;
const LONG: u64 = 200;

/// Runs `candide bench` as [`bench`] does, for so many milliseconds, or longer until something
/// commits and each result is enough.
fn bench_until(
    millis: u64,
    arguments: &str,
    name: &str,
    is_enough: impl Fn(&Value) -> bool,
) -> (String, Value) {
    let arguments = format!("{arguments} --warmup 20ms");
    let (printed, message, report) = bench_anew(millis, &arguments, name, &|| (), &is_enough);
    assert_eq!(message, "", "progress is for terminals");
    (printed, report)
}

/// Returns how many transactions of a type have rolled back by themselves.
fn rolled_back(result: &Value, kind: &str) -> f64 {
    number(&result["transactions"][kind]["user_aborted"])
}

/// Returns whether fewer settings are to be run: unless `CANDIDE_FULL` is set.
fn is_short() -> bool {
    std::env::var_os("CANDIDE_FULL").is_none()
}

fn keys(object: &Value) -> BTreeSet<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}

/// What all of them came to. A busy machine may keep a single thread from its core for as long as a
/// run here takes.
fn committed(results: &[Value]) -> f64 {
    results.iter().map(|result| number(&result["committed"])).sum()
}

#[test]
fn the_json_has_the_documented_shape_and_its_figures_agree() {
    let (_, report) = bench(
        "ycsb --rows 2000 --transactions 1000 --runs 3 --threads 2 --cu off --seed 9",
        "shape",
    );
    assert_eq!(keys(&report), BTreeSet::from(["machine", "notes", "results"]));
    let machine = BTreeSet::from([
        "cpu",
        "cores",
        "os",
        "kernel",
        "thp",
        "allocator",
        "rustc",
        "commit",
        "time",
    ]);
    assert_eq!(keys(&report["machine"]), machine);
    let results = report["results"].as_array().expect("a list");
    let [result] = results.as_slice() else { panic!("one setting, {} results", results.len()) };
    let fields = BTreeSet::from([
        "workload",
        "params",
        "profile",
        "protocol",
        "cu",
        "ts",
        "opaque",
        "factors",
        "threads",
        "duration_s",
        "committed",
        "aborted",
        "user_aborted",
        "throughput_tps",
        "tps_runs",
        "first_second_tps",
        "grown_bytes",
        "fresh_bytes",
        "involuntary_switches",
        "core_share",
        "abort_reasons",
        "read_set",
        "write_set",
        "transactions",
        "memory_bytes",
        "rss_bytes",
        "huge_page_bytes",
        "consistency",
    ]);
    assert_eq!(keys(result), fields);
    assert_eq!(
        (&result["workload"], &result["protocol"], &result["profile"]),
        (&"ycsb-a".into(), &"occ".into(), &"strict".into())
    );
    assert_eq!(
        (&result["cu"], &result["ts"], &result["threads"]),
        (&false.into(), &true.into(), &2.into())
    );
    assert_eq!((&result["params"]["rows"], &result["params"]["seed"]), (&2_000.into(), &9.into()));
    assert_eq!(result["factors"], Value::Array(Vec::new()));

    let mut runs: Vec<f64> =
        result["tps_runs"].as_array().expect("a list").iter().map(number).collect();
    runs.sort_by(f64::total_cmp);
    assert_eq!(runs.len(), 3);
    assert_eq!(number(&result["throughput_tps"]), runs[1]);
    let rate = number(&result["committed"]) / number(&result["duration_s"]);
    assert!(runs[0] * 0.999 <= rate && rate <= runs[2] * 1.001, "{rate} beyond {runs:?}");

    assert_counts_add_up(result);

    let kind = &result["transactions"]["read-write"];
    let kind_fields = BTreeSet::from([
        "committed",
        "aborted",
        "user_aborted",
        "p50_us",
        "p99_us",
        "p999_us",
        "max_us",
    ]);
    assert_eq!(keys(kind), kind_fields);
    let latencies = ["p50_us", "p99_us", "p999_us", "max_us"].map(|field| number(&kind[field]));
    assert!(latencies[0] > 0.0 && latencies.is_sorted(), "{latencies:?}");

    assert!(number(&result["memory_bytes"]) > 0.0);
    assert!(number(&result["consistency"]["checked"]) > 0.0);
    assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
}

#[test]
fn every_protocol_and_mix_is_run_but_serial_with_one_thread_only() {
    let (ts, ways) = if is_short() { ("on", 1) } else { ("on,off", 2) };
    let size = "ycsb --rows 2000 --transactions 1000 --runs 1 --mode a,b,c";
    let (printed, report) = bench(&format!("{size} --protocol usual --ts {ts}"), "usual");
    assert!(printed.contains("note: serial runs one transaction at a time"), "{printed}");
    let settings = report["results"].as_array().expect("a list");
    // Three mixes, ways of time stamps, and two numbers of threads or one.
    let counts = [
        ("occ", 2),
        ("2pl-wait-die", 2),
        ("mixed", 2),
        ("tictoc", 2),
        ("mvcc", 2),
        ("mvto", 2),
        ("global-lock", 2),
        ("serial", 1),
    ];
    for (protocol, count) in counts {
        for mix in ["ycsb-a", "ycsb-b", "ycsb-c"] {
            let is_of =
                |result: &&Value| result["protocol"] == protocol && result["workload"] == mix;
            let results: Vec<Value> = settings.iter().filter(is_of).cloned().collect();
            assert_eq!(results.len(), count * ways, "{mix} under {protocol}");
            assert!(committed(&results) > 0.0, "{mix} under {protocol}");
        }
    }
}

#[test]
fn results_of_policies_by_table_have_the_given_name() {
    let mixture = "mixed:savings=swiss,checking=2pl-wait-die";
    let page = file("mixture.html");
    let arguments = format!(
        "smallbank --accounts 50 --transactions 5000 --runs 1 --threads 2 --protocol {mixture},occ,mixed --report {}",
        page.display()
    );
    let (printed, report) = bench(&arguments, "mixture");
    let results = report["results"].as_array().expect("a list");
    let names: Vec<_> = results.iter().map(|result| &result["protocol"]).collect();
    assert_eq!(names, [mixture, "occ", "mixed"]);
    for result in results {
        assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
    }
    assert!(printed.contains(&format!("smallbank {mixture}: ")), "{printed}");
    let page = fs::read_to_string(page).expect("written");
    assert!(page.contains(&format!("data-protocol=\"{mixture}\"")));
}

#[test]
fn the_report_notes_which_checks_the_paper_profile_omits() {
    let (printed, _) =
        bench("ycsb --rows 2000 --transactions 1000 --runs 1 --threads 1 --profile paper", "paper");
    assert!(printed.contains("note: ycsb-a: only the number of rows is checked"), "{printed}");
}

#[test]
fn narrow_columns_and_hot_rows_are_run() {
    let narrow =
        "ycsb-narrow --rows 5000 --transactions 1000 --contention high,read-only --ts on,off";
    let hot = "ycsb-hot --rmws 0,1,10 --transactions 1000";
    for (arguments, name, settings) in [(narrow, "narrow", 4), (hot, "hot", 3)] {
        let (_, report) =
            bench(&format!("{arguments} --protocol occ,tictoc --threads 4 --runs 1"), name);
        let results = report["results"].as_array().expect("a list");
        assert_eq!(results.len(), settings * 2);
        assert!(committed(results) > 0.0);
        for result in results {
            assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
            assert_eq!(result["params"]["verify"], "increment");
        }
    }
}

#[test]
fn long_scans_are_run_under_every_protocol() {
    let (printed, report) = bench(
        "long-scan --rows 5000 --transactions 500 --protocol usual --threads 1,4 --runs 1",
        "long-scan",
    );
    assert!(printed.contains("note: long-scan: where a scan begins is not published"), "{printed}");
    let results = report["results"].as_array().expect("a list");
    assert_eq!(results.len(), 15, "`serial` with one thread only");
    assert!(committed(results) > 0.0);
    for result in results {
        assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
    }
}

#[test]
fn shifts_are_reported_over_time() {
    let page = file("shifting.html");
    let arguments = "shifting --rows 2000 --transactions 500 --phase 60ms --slice 7ms --protocol occ,serial --threads 1,4 --runs 2";
    // Four phases, the last one shorter.
    let arguments = format!("{arguments} --report {}", page.display());
    let (printed, report) = bench_until(LONG, &arguments, "shifting", |_| true);
    let results = report["results"].as_array().expect("a list");
    assert_eq!(results.len(), 3, "`serial` with one thread only");
    for result in results {
        assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
        let timeline = &result["timeline"];
        assert_eq!((&timeline["phase_s"], &timeline["slice_s"]), (&0.06.into(), &0.007.into()));
        let phases = timeline["phases"].as_array().expect("a list");
        let names: Vec<_> = phases.iter().map(|phase| &phase["name"]).collect();
        assert_eq!(names, ["read", "read-modify-write", "read", "read-modify-write"]);
        let sum = |phase: &Value, field: &str| {
            phase[field].as_array().expect("a list").iter().map(number).sum::<f64>()
        };
        for (field, total) in
            [("seconds", "duration_s"), ("committed", "committed"), ("aborted", "aborted")]
        {
            let slices: f64 = phases.iter().map(|phase| sum(phase, field)).sum();
            let total = number(&result[total]);
            assert!(
                (slices - total).abs() <= 1e-6 * total,
                "{field}: {slices} in slices, {total} in all"
            );
        }
        for (name, others) in [("read", [0, 2]), ("read-modify-write", [1, 3])] {
            let committed: f64 = others.iter().map(|&phase| sum(&phases[phase], "committed")).sum();
            assert_eq!(
                number(&result["transactions"][name]["committed"]),
                committed,
                "no phase has transactions of another"
            );
        }
        assert!(sum(&phases[1], "seconds") >= 0.12, "two runs");
    }
    assert!(printed.contains("Over time: txn/s in the fifths of each phase"), "{printed}");
    assert_eq!(printed.lines().filter(|line| line.contains("0.120 s")).count(), 3, "{printed}");
    let page = fs::read_to_string(page).expect("written");
    assert_eq!(
        page.matches("data-mark=\"y-points\"").count(),
        3,
        "a line over time for each setting"
    );
}

#[test]
fn work_between_operations_is_a_parameter_and_takes_its_time() {
    let page = file("think.html");
    let hot = "ycsb-hot --rmws 5";
    let long_scan = "long-scan --rows 5000";
    let shifting = "shifting --rows 2000 --phase 40ms";
    for (workload, operations) in [(hot, 10.0), (long_scan, 3.0), (shifting, 21.0)] {
        for (think, nanos) in [("", 0), (" --think 0", 0), (" --think 20us", 20_000)] {
            let arguments = format!("{workload} --transactions 500 --threads 2 --runs 1{think}");
            let (printed, report) = bench_until(
                BRIEF,
                &format!("{arguments} --report {}", page.display()),
                "think",
                has_committed_each,
            );
            let [result] = &report["results"].as_array().expect("a list")[..] else {
                panic!("{arguments}: more or less than one result")
            };
            assert_eq!(result["params"]["think_ns"], nanos, "{arguments}");
            assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
            let note = "after each operation a transaction works for the time of --think";
            assert_eq!(printed.contains(note), nanos > 0, "{printed}");
            let page = fs::read_to_string(&page).expect("written");
            assert!(page.contains(&format!(
                "<dt>think ns</dt><dd data-field=\"params/think_ns\">{nanos}</dd>"
            )));
            // The clock of latencies is another one than that of the work.
            let least = 0.99 * operations * f64::from(nanos) / 1e3;
            for (kind, ended) in result["transactions"].as_object().expect("an object") {
                assert!(number(&ended["p50_us"]) >= least, "{arguments}: {kind}: {ended}");
            }
        }
    }
}

#[test]
fn micro_benchmarks_are_run() {
    let presets = ["index", "counter", "cicada", "dbx1000", "ccbench", "silo"].map(|preset| {
        let rows = if preset == "counter" { "" } else { " --rows 5000" };
        (format!("key-value --preset {preset}{rows}"), format!("kv-{preset}"))
    });
    let others = [("range-scan --rows 5000", "range-scan"), ("predicate", "predicate")];
    let others = others.map(|(arguments, name)| (arguments.to_string(), name.to_string()));
    for (arguments, name) in presets.into_iter().chain(others) {
        let arguments = format!("{arguments} --transactions 500 --threads 4 --runs 1");
        let (printed, report) = bench(&arguments, &name);
        let results = report["results"].as_array().expect("a list");
        assert_eq!(results.len(), 1);
        assert!(committed(results) > 0.0);
        for result in results {
            assert_eq!(result["workload"], name.as_str());
            assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
        }
        let admits = printed.lines().any(|line| line.starts_with(&format!("note: {name}: ")));
        assert_eq!(admits, name != "predicate", "{printed}");
    }
}

#[test]
fn smallbank_reports_its_six_types_and_its_rollbacks() {
    let arguments =
        "smallbank --accounts 500 --transactions 5000 --runs 1 --hotspot 50 --factor no-backoff";
    let (_, report) =
        bench_until(LONG, arguments, "bank", |result| rolled_back(result, "send-payment") > 0.0);
    for result in report["results"].as_array().expect("a list") {
        let kinds = BTreeSet::from([
            "amalgamate",
            "balance",
            "deposit-checking",
            "send-payment",
            "transact-savings",
            "write-check",
        ]);
        assert_eq!(keys(&result["transactions"]), kinds);
        assert_eq!(number(&result["transactions"]["balance"]["user_aborted"]), 0.0);
        let reasons = result["abort_reasons"].as_object().expect("an object").values();
        assert_eq!(
            number(&result["aborted"]),
            reasons.map(number).sum::<f64>(),
            "a refusal is a rollback of its own"
        );
        assert_eq!(result["factors"], Value::from(["no-backoff"].as_slice()));
        assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
    }
}

#[test]
fn source_of_timestamps_is_a_setting_of_mvto_only() {
    let size = "ycsb --rows 1000 --transactions 1000 --runs 1 --threads 2";
    let (printed, report) = bench_until(
        BRIEF,
        &format!("{size} --protocol occ,mvto --timestamps counter,clock"),
        "timestamps",
        has_committed,
    );
    let results = report["results"].as_array().expect("a list");
    let settings: Vec<_> =
        results.iter().map(|result| (&result["protocol"], &result["timestamps"])).collect();
    let (occ, mvto, counter, clock) =
        ("occ".into(), "mvto".into(), "counter".into(), "clock".into());
    assert_eq!(settings, [(&occ, &Value::Null), (&mvto, &counter), (&mvto, &clock)]);
    for result in results {
        assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
    }
    assert!(
        printed.contains("mvto by clock")
            && printed.contains("note: --timestamps has no effect under occ"),
        "{printed}"
    );
}

#[test]
fn opacity_is_a_setting_of_protocols_with_that_option() {
    let size = "ycsb --rows 1000 --transactions 1000 --runs 1 --threads 2";
    let (printed, report) =
        bench(&format!("{size} --protocol occ,pcc,mvto --opaque on,off"), "opacity");
    let results = report["results"].as_array().expect("a list");
    let settings: Vec<_> =
        results.iter().map(|result| (&result["protocol"], &result["opaque"])).collect();
    let [occ, pcc, mvto] = ["occ", "pcc", "mvto"].map(Value::from);
    let (on, off) = (true.into(), false.into());
    let expected = [(&occ, &on), (&occ, &off), (&pcc, &on), (&pcc, &off), (&mvto, &Value::Null)];
    assert_eq!(settings, expected);
    for result in results {
        assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
    }
    assert!(
        printed.contains("pcc not opaque")
            && printed.contains("note: --opaque has no effect under mvto"),
        "{printed}"
    );
    let (_, report) = bench(&format!("{size} --protocol occ"), "default-opacity");
    assert_eq!(report["results"][0]["opaque"], true, "by default");
}

#[test]
fn reads_for_update_are_a_setting_of_workloads_with_modifying_transactions() {
    for (workload, size) in [
        ("ycsb-hot --rmws 2", ""),
        ("long-scan --rows 1000 --scan 10", ""),
        ("shifting --rows 1000", " --phase 10ms"),
    ] {
        let timing = "--transactions 1000 --runs 1 --threads 2 --protocol 2pl-wait-die,mvto";
        let arguments = format!("{workload}{size} {timing} --for-update on,off");
        let name = workload.split(' ').next().expect("a name");
        let (printed, report) = bench(&arguments, &format!("for-update-{name}"));
        let results = report["results"].as_array().expect("a list");
        let settings: Vec<_> =
            results.iter().map(|result| result["params"]["for_update"] == true).collect();
        assert_eq!(settings, [true, true, false, false], "{workload}");
        for result in results {
            assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()), "{workload}");
        }
        assert!(printed.contains("for update"), "{printed}");
    }
}

#[test]
fn rubis_reports_its_types_and_its_differences() {
    let size = "rubis --items 500 --users 50 --purchases 500 --transactions 10000";
    let all = "--runs 2 --threads 1,3 --protocol occ,tictoc,serial --stock 30";
    let (printed, report) = bench_until(LONG, &format!("{size} {all}"), "rubis", |result| {
        // Items sell out.
        rolled_back(result, "buy-now") > 0.0
    });
    let results = report["results"].as_array().expect("a list");
    assert_eq!(results.len(), 5);
    for result in results {
        assert_eq!(
            keys(&result["transactions"]),
            BTreeSet::from(["place-bid", "buy-now", "view-item"])
        );
        // Seven conditions in each way of reading, and whether both read the same, after each run.
        assert_eq!(result["consistency"]["checked"], 30);
        assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
    }
    let notes: Vec<_> = printed.lines().filter(|line| line.starts_with("note: rubis: ")).collect();
    assert!(
        notes.len() == 3
            && notes[0].contains("repeats its inputs")
            && notes[1].contains("sell out"),
        "{printed}"
    );
    let runs = if is_short() { "--runs 1 --threads 2" } else { "--runs 2 --threads 1,3" };
    let (printed, report) = bench(&format!("{size} {runs} --profile paper"), "rubis-paper");
    assert!(
        printed.contains("so none raises a price") && printed.contains("beyond their stock"),
        "{printed}"
    );
    assert_eq!(number(&report["results"][0]["user_aborted"]), 0.0);
}

#[test]
fn wikipedia_reports_its_types_and_the_sizes_of_its_texts() {
    let size = "wikipedia --users 50 --pages 20 --transactions 5000 --runs 2 --threads 3 --weights 3,2,5,3,3,1";
    let (printed, report) = bench_until(
        LONG,
        &format!("{size} --protocol occ,tictoc"),
        "wikipedia",
        has_committed_each,
    );
    let results = report["results"].as_array().expect("a list");
    assert_eq!(results.len(), 2);
    for result in results {
        let looking = ["list-namespace", "get-page-anonymous", "get-page-authenticated"];
        let writing = ["add-watch", "remove-watch", "update-page"];
        assert_eq!(keys(&result["transactions"]), looking.into_iter().chain(writing).collect());
        // 14 conditions in each way of reading, whether both read the same, and what was read
        // meanwhile, after each run.
        assert_eq!(result["consistency"]["checked"], 60);
        assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
    }
    assert!(printed.contains("quantiles") && !printed.contains("for ever"), "{printed}");
    let (printed, _) = bench(&format!("{size} --profile paper"), "wikipedia-paper");
    assert!(
        printed.contains("for ever, as published") && printed.contains("safe from phantoms"),
        "{printed}"
    );
}

#[test]
fn tpcb_reports_its_type_and_its_departures_from_the_standard() {
    let size = "tpcb --branches 2 --accounts 1000 --transactions 5000";
    let all = "--runs 2 --threads 1,3 --protocol occ,tictoc,serial";
    let (printed, report) = bench(&format!("{size} {all}"), "tpcb");
    assert!(
        printed.contains("note: tpcb: there are fewer accounts") && !printed.contains("follow"),
        "{printed}"
    );
    let results = report["results"].as_array().expect("a list");
    assert_eq!(results.len(), 5);
    for result in results {
        assert_eq!(keys(&result["transactions"]), BTreeSet::from(["deposit"]));
        // Seven conditions in each way of reading, and whether both read the same, after each run.
        assert_eq!(result["consistency"]["checked"], 30);
        assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
    }
    let (printed, _) = bench(&format!("{size} --runs 1 --profile paper"), "tpcb-paper");
    assert!(
        printed.contains("tellers follow from accounts")
            && printed.contains("balance is not returned"),
        "{printed}"
    );
}

#[test]
fn programs_of_stamp_report_their_speed_up_over_the_sequential_program() {
    let kmeans = ("kmeans", "--points 300", BTreeSet::from(["claim", "end", "point"]));
    let vacation = ("vacation", "--relations 300", BTreeSet::from(["delete", "reserve", "update"]));
    for (workload, size, kinds) in [kmeans, vacation] {
        let arguments = format!("{workload} {size} --mode high-sim --runs 2 --threads 1,2");
        let (printed, report) = bench_until(BRIEF, &arguments, workload, |result| {
            keys(&result["transactions"]) == kinds
        });
        assert!(printed.contains("the sequential program, "), "{printed}");
        let results = report["results"].as_array().expect("a list");
        assert_eq!(results.len(), 4, "both forms with both numbers of threads");
        for (result, form) in results.iter().zip(["eager", "eager", "deferred", "deferred"]) {
            assert_eq!(result["params"]["form"], form);
            assert_eq!(result["params"]["mode"], "high-sim");
            assert_eq!(keys(&result["transactions"]), kinds);
            assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
            assert!(number(&result["sequential_tps"]) > 0.0, "{result}");
            match result["speed_up_doubt"].as_str() {
                Some(_) => assert!(result["speed_up"].is_null(), "{result}"),
                None => assert!(number(&result["speed_up"]) > 0.0, "{result}"),
            }
        }
    }
    let labyrinth = ("labyrinth", "--sides 9,9,2 --paths 9", ["claim", "list", "take"]);
    let intruder = ("intruder", "--flows 60", ["capture", "detect", "reassemble"]);
    let genome = ("genome", "--gene 60 --segments 120", ["insert", "match", "prepare"]);
    let bayes = (
        "bayes",
        "--variables 8 --records 200 --parents-pct 80 --penalty 1",
        ["apply", "search", "take"],
    );
    for (workload, size, kinds) in [labyrinth, intruder, genome, bayes] {
        let arguments = format!("{workload} {size} --runs 1 --threads 2");
        let (_, report) = bench_until(BRIEF, &arguments, workload, |result| {
            keys(&result["transactions"]).is_superset(&BTreeSet::from(kinds))
        });
        let result = &report["results"][0];
        assert_eq!(result["params"]["mode"], "sim");
        assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
        assert!(number(&result["sequential_tps"]) > 0.0, "{result}");
    }
    let (printed, _) = bench("tpcb --branches 1 --accounts 100 --runs 1", "no-speed-up");
    assert!(!printed.contains("sequential program"), "{printed}");
}

#[test]
fn tpcc_reports_its_types_and_begins_anew_for_each_run() {
    let arguments = "tpcc --warehouses 1,2 --customers 60 --items 500 --mix full,new-order --audit 100 --runs 2 --threads 2";
    let (printed, report) = bench_until(LONG, arguments, "tpcc", |result| {
        // Audits are counted, too.
        let checked = number(&result["consistency"]["checked"]);
        rolled_back(result, "new-order") > 0.0 && checked > 90.0
    });
    let results = report["results"].as_array().expect("a list");
    assert_eq!(results.len(), 4);
    for result in results {
        let mut kinds = BTreeSet::from(["new-order", "audit"]);
        if result["workload"] == "tpcc" {
            kinds.extend(["payment", "order-status", "delivery", "stock-level"]);
        }
        assert_eq!(keys(&result["transactions"]), kinds);
        // 20 conditions in each way of reading, and whether five things are the same, after each
        // run.
        assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
    }
    assert_eq!(results[2]["params"]["warehouses"], 2);
    let notes: Vec<_> = printed.lines().filter(|line| line.starts_with("note: tpcc: ")).collect();
    assert!(
        notes.len() == 4 && notes[0].contains("order numbers come from a counter"),
        "{notes:?}"
    );
    assert_eq!(
        notes[3], "note: tpcc: there are fewer customers or items than TPC-C has",
        "said once"
    );
}

#[test]
fn tpcc_with_the_paper_profile_notes_its_departures_from_the_standard() {
    let arguments = "tpcc --customers 60 --items 500 --runs 1 --threads 1 --profile paper --protocol serial,occ";
    let (printed, report) = bench(arguments, "tpcc-paper");
    for words in [
        "no new order rolls back",
        "looks at no stock",
        "are not sorted",
        "are not read",
        "are fewer customers",
    ] {
        assert!(
            printed.lines().any(|line| line.starts_with("note: tpcc: ") && line.contains(words)),
            "{words}: {printed}"
        );
    }
    for result in report["results"].as_array().expect("a list") {
        assert_eq!(number(&result["user_aborted"]), 0.0);
        assert_eq!(result["consistency"]["checked"], 45);
        assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
    }
}

#[test]
fn tpcc_reports_conflicting_types_on_request() {
    let page = file("causes.html");
    // So many threads on so few rows that even one core has them meet.
    let arguments = format!(
        "tpcc --customers 10 --items 20 --runs 2 --threads 4 --cu off --ts off --causes --report {}",
        page.display()
    );
    let (printed, report) = bench_until(LONG, &arguments, "causes", |result| {
        !result["causes"].as_array().expect("a list").is_empty()
    });
    let result = &report["results"][0];
    assert_eq!(result["params"]["causes"], true);
    let causes = result["causes"].as_array().expect("a list");
    let fields = BTreeSet::from(["reason", "table", "group", "aborted", "met", "attempts"]);
    assert!(causes.iter().all(|cause| keys(cause) == fields));
    let attempts: Vec<_> = causes.iter().map(|cause| number(&cause["attempts"])).collect();
    assert!(attempts.iter().rev().is_sorted(), "the most frequent first");
    assert_eq!(
        attempts.iter().sum::<f64>(),
        number(&result["aborted"]),
        "each aborted attempt has one cause"
    );
    for (kind, transactions) in result["transactions"].as_object().expect("an object") {
        let of_kind = causes.iter().filter(|cause| cause["aborted"] == kind.as_str());
        let attempts = of_kind.map(|cause| number(&cause["attempts"])).sum::<f64>();
        assert_eq!(attempts, number(&transactions["aborted"]), "{kind}");
    }
    for (reason, count) in result["abort_reasons"].as_object().expect("an object") {
        let of_reason = causes.iter().filter(|cause| cause["reason"] == reason.as_str());
        assert_eq!(
            of_reason.map(|cause| number(&cause["attempts"])).sum::<f64>(),
            number(count),
            "{reason}"
        );
    }
    let is_hot = |cause: &&Value| {
        cause["table"] == "warehouses"
            && cause["group"] == "*"
            && cause["aborted"] == "new-order"
            && cause["met"] == Value::from(["payment"].as_slice())
    };
    assert!(causes.iter().any(|cause| is_hot(&cause)), "{causes:?}");
    let is_hot_line = |line: &&str| {
        ["warehouses.*", "new-order", "payment"].iter().all(|word| line.contains(word))
    };
    assert!(printed.lines().any(|line| is_hot_line(&line)), "{printed}");
    let page = fs::read_to_string(page).expect("written");
    assert!(
        page.contains("<summary>Aborted attempts by cause</summary>")
            && page.contains(">warehouses.*<")
    );
    assert!(page.contains("new-order met payment at warehouses.*"), "drawn, too");
}

#[test]
fn tpcc_is_run_as_foedus_and_dbx1000_define_it() {
    let small = "--customers 60 --items 500 --runs 1 --threads 4 --profile paper";
    for (like, words, kinds) in
        [("foedus", "payments do not return the balance", 5), ("dbx1000", "no row is inserted", 2)]
    {
        let (printed, report) = bench(&format!("tpcc --like {like} {small}"), like);
        assert!(printed.contains(words), "{printed}");
        let result = &report["results"][0];
        assert_eq!(keys(&result["transactions"]).len(), kinds);
        assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()));
    }
}

#[test]
fn the_page_refers_to_no_other_file() {
    let page = file("page.html");
    let arguments =
        format!("ycsb --rows 2000 --transactions 1000 --runs 1 --report {}", page.display());
    let (_, report) = bench(&arguments, "page");
    let page = fs::read_to_string(page).expect("written");
    let (_, rest) =
        page.split_once("<script type=\"application/json\" id=\"results\">").expect("the JSON");
    let (json, rest) = rest.split_once("</script>").expect("its end");
    let embedded: Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(embedded["results"], report["results"]);
    assert!(!rest.contains("<script"), "one script, and that is data");
    let throughputs = "data-field=\"throughput_tps\"";
    assert_eq!(
        page.matches(&format!("{throughputs}/>")).count(),
        2,
        "a marker for each number of threads"
    );
    assert_eq!(page.matches(&format!("{throughputs}>")).count(), 2, "and a cell of the table");
    assert!(!page.contains("http"), "nothing is fetched");
    assert!(!page.contains("by cause"), "who met whom was not asked");
}

#[test]
fn a_benchmark_that_committed_nothing_ends_with_status_1_and_says_so() {
    // The first of each thread is begun in the warm-up, and the next one in hours.
    let arguments = "bench ycsb --rows 2000 --transactions 500 --rate 0.0001 --warmup 20ms --duration 50ms --runs 2 --threads 2";
    let output = Command::new(env!("CARGO_BIN_EXE_candide"))
        .args(arguments.split(' '))
        .output()
        .expect("starts");
    let printed = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("ycsb-a occ, 2 threads: no transaction committed while it was measured"),
        "{printed}"
    );
}
