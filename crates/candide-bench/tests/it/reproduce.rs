//! Every figure, at a size that means nothing: its parts and lines are there, compared with the
//! right ones, and what was measured agrees with the results beside it.

use std::fs;
use std::process::Command;

use crate::common::{file, number};
use candide::experiments::Factor;
use serde_json::Value;

/// Runs `candide reproduce` with `arguments` at the smallest size, and gives what it printed and
/// what it wrote.
fn reproduce(arguments: &str) -> (String, Value) {
    reproduce_until(arguments, |_| true)
}

/// Runs `candide reproduce` as [`reproduce`] does, for longer and longer, until something commits
/// and what it wrote is enough.
fn reproduce_until(arguments: &str, is_enough: impl Fn(&Value) -> bool) -> (String, Value) {
    let name = arguments.replace(' ', "-");
    let json = file(&format!("reproduce-{name}.json"));
    // On a busy machine few transactions end in a short time; the longest one is more than a
    // minute.
    let mut durations = (0..13).map(|doubled| format!("{}ms", 30 << doubled));
    let run = |duration: String| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_candide"));
        command.arg("reproduce").args(arguments.split(' '));
        command.args(["--scale", "0.0001", "--duration", &duration, "--warmup", "0s", "--json"]);
        let output = command.arg(&json).output().expect("starts");
        let [printed, message] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
        if output.status.code() == Some(1) && message.is_empty() {
            return None;
        }
        assert_eq!(output.status.code(), Some(0), "{arguments}: {message}");
        assert_eq!(message, "", "progress is for terminals");
        let report =
            serde_json::from_str(&fs::read_to_string(&json).expect("written")).expect("JSON");
        // The end of a long line is in the next one, behind an indent.
        let printed = printed.replace("\n  ", " ");
        is_enough(&report).then_some((printed, report))
    };
    durations.find_map(run).expect("something commits, and it is enough")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

/// Returns the elements of a list of results or lines that are not opaque `occ`. Such lines show
/// the price of opacity, and are in addition to those of the figure.
fn without_prices(list: &[Value]) -> Vec<&Value> {
    let is_price = |value: &Value| {
        value["label"].as_str().is_some_and(|label| label.ends_with(", opaque"))
            || value["opaque"] == true
    };
    list.iter().filter(|value| !is_price(value)).collect()
}

/// Returns whether a verdict is whole: the claim holds or does not, or there is a reason for doubt.
fn is_told(verdict: &Value) -> bool {
    match &verdict["holds"] {
        Value::Null => verdict["doubt"].is_string(),
        holds => holds.is_boolean() && verdict["doubt"].is_null(),
    }
}

/// Runs a figure once, with two threads, and asserts that it is whole: so many lines in each part,
/// and verdicts on what the paper claims.
fn assert_whole(figure: &str, source: &str, lines: &[usize]) -> (String, Value) {
    let (printed, report) = reproduce(&format!("{figure} --threads 2 --runs 1"));
    let drawn = &report["figure"];
    assert_eq!(drawn["name"], figure);
    assert!(drawn["source"].as_str().is_some_and(|text| text.contains(source)), "{drawn}");
    let parts: Vec<_> =
        list(&drawn["lines"]).chunk_by(|one, next| one["panel"] == next["panel"]).collect();
    assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), lines, "{figure}");
    assert!(list(&drawn["deviations"]).len() >= 3, "{drawn}");
    let verdicts = list(&drawn["verdicts"]);
    assert!(!verdicts.is_empty() && printed.contains("Claims of the paper"), "{printed}");
    for verdict in verdicts {
        assert!(printed.contains(verdict["claim"].as_str().expect("text")), "{verdict}");
        assert!(is_told(verdict) && verdict["threads"] == 2, "{verdict}");
    }
    let results = list(&report["results"]);
    for line in parts.iter().copied().flatten() {
        let [point] = list(&line["points"]) else { panic!("one number of threads: {line}") };
        let result = &results[number(&point["result"]) as usize];
        assert_eq!((number(&point["threads"]), number(&result["threads"])), (2.0, 2.0));
        assert_eq!(result["profile"], "paper");
        if line["counted"].is_null() {
            assert_eq!(point["throughput_tps"], result["throughput_tps"], "{figure}: {line}");
        }
        let protocol = result["protocol"].as_str().expect("a name");
        let label = line["label"].as_str().expect("text");
        if ["occ", "tictoc", "mvcc", "mvto"].contains(&label.split(',').next().expect("a word")) {
            assert!(label.starts_with(protocol), "{label} is {protocol}");
        }
        assert!(printed.contains(label), "{label}: {printed}");
        let Some(base) = line["base"].as_str() else { continue };
        let in_part = |other: &&&Value| other["panel"] == line["panel"] && other["label"] == base;
        let base = drawn["lines"].as_array().expect("a list").iter().collect::<Vec<_>>();
        let base = base
            .iter()
            .find(in_part)
            .unwrap_or_else(|| panic!("{figure}: {line} has no base in its part"));
        let base = number(&base["points"][0]["throughput_tps"]);
        if base > 0.0 {
            let ratio = number(&point["throughput_tps"]) / base;
            assert!((number(&point["of_base"]) - ratio).abs() <= 1e-9 * ratio, "{figure}: {line}");
        }
    }
    let used =
        parts.iter().copied().flatten().map(|line| number(&line["points"][0]["result"]) as usize);
    assert_eq!(
        used.collect::<std::collections::BTreeSet<_>>().len(),
        results.len(),
        "every result is shown"
    );
    for result in results {
        assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()), "{figure}");
        assert!(number(&result["consistency"]["checked"]) > 0.0, "{figure}");
    }
    (printed, report)
}

#[test]
fn each_factor_is_compared_with_no_factor_under_each_protocol_of_the_paper() {
    let known = |factor: &Factor| factor.is_available() && !factor.is_of_timestamps();
    let factors = Factor::ALL.into_iter().filter(known).count();
    // Two factors are of `tictoc` only, and one is not of `mvto`; opaque `occ` has a line.
    let lines = [1 + factors + 1, 1 + factors + 2, 1 + factors - 1].repeat(2);
    let (printed, report) = assert_whole("factors", "VLDB 2020, Figures 4 and 7", &lines);
    let results = list(&report["results"]);
    let part = results.len() / 2;
    for (index, line) in list(&report["figure"]["lines"]).iter().enumerate() {
        let result = &results[number(&line["points"][0]["result"]) as usize];
        let label = line["label"].as_str().expect("text");
        let chosen = usize::from(!label.contains("good choices only"));
        assert_eq!(list(&result["factors"]).len(), chosen, "{label}: {}", result["factors"]);
        assert_eq!((&result["cu"], &result["ts"]), (&false.into(), &false.into()));
        assert_eq!(number(&result["params"]["warehouses"]), if index < part { 1.0 } else { 2.0 });
    }
    let grades = list(&report["figure"]["grades"]);
    assert_eq!(grades.len(), 3 * factors + 1, "{grades:?}");
    for grade in grades {
        let of_base = number(&grade["of_base"]);
        let expected = match of_base {
            0.9.. => "+",
            0.7.. => "-",
            _ => "--",
        };
        assert_eq!(grade["grade"], expected, "{grade}");
        let name = |field: &str| grade[field].as_str().expect("a name").to_string();
        let label = format!("{}, {}", name("protocol"), name("choice"));
        let line = list(&report["figure"]["lines"]).iter().find(|line| line["label"] == *label);
        assert_eq!(line.expect("graded")["points"][0]["of_base"], grade["of_base"], "{grade}");
        // One round has no spread, so no ratio is believed.
        assert!(grade["doubt"].is_string() && printed.contains(" noise "), "{grade}: {printed}");
        assert!(!printed.contains(&format!("{expected} ({of_base:.2})")), "{grade}: {printed}");
    }
    assert!(printed.contains("contention regulation") && printed.contains("N/A"), "{printed}");
    let of_base = &report["figure"]["lines"][3]["published"];
    assert_eq!(
        (&of_base["text"], &of_base["of_base"]),
        (&"1/1.6 (glibc)".into(), &Value::from(vec![0.625, 0.625]))
    );
    assert!(
        printed
            .lines()
            .any(|line| line.contains("system-allocator") && line.contains("1/1.6 (glibc)")),
        "{printed}"
    );
    assert_ne!(
        Factor::Jemalloc.is_available(),
        printed.contains("jemalloc is left out"),
        "{printed}"
    );
}

#[test]
fn throughput_of_deliveries_is_drawn_besides_that_of_all_types() {
    let (_, report) = assert_whole("delivery", "VLDB 2020, Figure 6", &[3, 2]);
    let (lines, results) = (list(&report["figure"]["lines"]), list(&report["results"]));
    assert_eq!(results.len(), 3, "counted twice, run once");
    for (line, result) in lines.iter().zip(results) {
        assert_eq!(line["counted"], "delivery");
        let delivered = &result["transactions"]["delivery"]["committed"];
        let rate = delivered.as_f64().unwrap_or(0.0) / number(&result["duration_s"]);
        assert!(
            (number(&line["points"][0]["throughput_tps"]) - rate).abs() <= 1e-6 * rate,
            "{line}"
        );
    }
    let aware = results
        .iter()
        .map(|result| result["params"]["contention_aware_keys"].clone())
        .collect::<Vec<_>>();
    assert_eq!(aware, [true, true, false]);
}

#[test]
fn protocols_of_a_figure_are_compared_with_its_first() {
    let (_, report) = assert_whole("protocols", "VLDB 2020, Figure 8", &[5; 6]);
    let results = without_prices(list(&report["results"])).into_iter();
    assert!(results.clone().all(|result| result["cu"] == false && result["ts"] == false));
    let names: Vec<_> =
        results.step_by(4).map(|result| result["workload"].as_str().expect("a name")).collect();
    assert_eq!(names, ["tpcc", "tpcc", "ycsb-a", "ycsb-b", "wikipedia", "rubis"]);
}

#[test]
fn options_are_compared_with_the_same_protocol_without_options() {
    let (_, report) = assert_whole("high-contention", "Figure 12 a to f", &[9; 6]);
    let switches = |report: &Value| {
        let results = without_prices(list(&report["results"])).into_iter();
        results.map(|result| (result["cu"] == true, result["ts"] == true)).collect::<Vec<_>>()
    };
    assert!(switches(&report).chunks(2).all(|pair| pair == [(false, false), (true, true)]));
    let (_, report) = assert_whole("separate-effects", "Figure 12g", &[13; 4]);
    let ways = [(false, false), (true, false), (false, true), (true, true)];
    assert!(switches(&report).chunks(4).all(|four| four == ways));
}

#[test]
fn fine_granularity_is_compared_with_coarse_granularity() {
    let (printed, report) = assert_whole("granularity", "2018, Figures 2 and 3", &[11, 11]);
    assert!(printed.contains("slower than occ throughout"), "{printed}");
    let results = without_prices(list(&report["results"]));
    let grains = results.iter().map(|result| result["ts"] == true);
    assert!(grains.eq((0..20).map(|line| line % 10 >= 5)), "{report}");
    let mechanisms: Vec<_> = results[..5].iter().map(|result| &result["protocol"]).collect();
    assert_eq!(mechanisms, ["occ", "tictoc", "2pl-no-wait", "swiss", "adaptive"]);
    for result in &results {
        let locks = !["occ", "tictoc"].iter().any(|protocol| result["protocol"] == *protocol);
        assert_eq!(result["locks"]["taken"].is_number(), locks, "{result}");
    }
    assert_eq!(results[10]["params"]["warehouses"], 8);
    assert_eq!(results[10]["params"]["splits"], "districts-and-customers");
}

#[test]
fn sizes_of_read_sets_are_compared_by_transaction_type() {
    let (printed, report) = assert_whole("set-sizes", "VLDB 2020, section 6.3", &[5, 4, 4]);
    let lines = without_prices(list(&report["figure"]["lines"]));
    let results = without_prices(list(&report["results"]));
    assert_eq!(results.len(), 4, "counted three times, run once");
    for (index, line) in lines.iter().enumerate() {
        let (point, result) = (&line["points"][0], &results[index % 4]);
        let counted = match line["counted"].as_str() {
            Some(kind) => &result["transactions"][kind],
            None => result,
        };
        assert_eq!(point["read_set"], counted["read_set"], "{line}");
        assert_eq!(point["read_set_of_base"].is_number(), index % 4 > 0, "{line}");
    }
    let read_set = |line: usize| number(&lines[line]["points"][0]["read_set"]);
    for kind in [4, 8] {
        assert!(read_set(kind + 1) < read_set(kind), "commit-time updates read less: {report}");
    }
    assert_eq!(lines[5]["published"]["read_set_of_base"], 0.7);
    assert_eq!(lines[9]["published"]["read_set_of_base"], 0.5);
    assert!(printed.contains("cu: 50 % smaller"), "{printed}");
    let head: Vec<&str> = printed.split_whitespace().collect();
    assert!(head.windows(4).any(|words| words == ["read", "of", "write", "(median)"]), "{printed}");
}

#[test]
fn claims_about_reordering_are_about_protocols_that_reorder() {
    let (printed, report) = assert_whole("reordering", "VLDB 2020, section 5.1", &[3, 3]);
    for line in list(&report["figure"]["lines"]) {
        let share = number(&line["points"][0]["occ_would_abort"]);
        assert!((0.0..=1.0).contains(&share), "{line}");
        assert_eq!(
            line["published"]["occ_would_abort"] == 0.47,
            line["label"] == "mvto" && !line["counted"].is_null()
        );
    }
    let mvcc = &report["figure"]["lines"][5];
    assert_eq!(
        (&mvcc["label"], &mvcc["counted"]),
        (&"mvcc".into(), &"new-order and payment".into())
    );
    assert_eq!(number(&mvcc["points"][0]["occ_would_abort"]), 0.0, "both write");
    assert!(printed.contains("47 % at 12 threads"), "{printed}");
}

#[test]
fn three_timestamps_are_compared_with_two() {
    let (_, report) = assert_whole("three-timestamps", "VLDB 2020, section 6.2", &[13, 13]);
    let results = without_prices(list(&report["results"])).into_iter();
    let settings = results.map(|result| {
        let layout = result["params"]["layout"].as_str().expect("text");
        (result["ts"] == true, layout.ends_with("3 timestamps"))
    });
    let settings: Vec<_> = settings.collect();
    assert!(settings.chunks(3).all(|three| three == [(true, false), (false, false), (true, true)]));
}

#[test]
fn ordered_indexes_are_compared_with_hash_indexes() {
    let (_, report) = assert_whole("indexes", "VLDB 2020, section 4.4", &[3, 3, 3]);
    let results = without_prices(list(&report["results"])).into_iter();
    let factors: Vec<_> = results.map(|result| list(&result["factors"]).len()).collect();
    assert_eq!(factors, [0, 1, 0, 1, 0, 1]);
    let published = &report["figure"]["lines"][2]["published"];
    assert_eq!(published["of_base"], Value::from(vec![0.0, 0.4]));
}

#[test]
fn protocols_are_compared_with_one_lock_where_nothing_meets() {
    let (printed, report) = assert_whole("machinery", "no paper", &[6, 6, 6]);
    assert!(printed.contains("occ costs a twentieth"), "{printed}");
    let protocols = without_prices(list(&report["results"])).into_iter();
    let protocols: Vec<_> = protocols.map(|result| result["protocol"].clone()).collect();
    assert!(
        protocols.chunks(5).all(|five| five == ["global-lock", "occ", "tictoc", "mvto", "mvcc"])
    );
}

#[test]
fn option_opaque_sets_the_opacity_of_all_lines() {
    let lines = |opaque: &str| {
        let (_, report) = reproduce(&format!("delivery --threads 1 --runs 1 --opaque {opaque}"));
        let results = list(&report["results"]);
        let of = |line: &Value| {
            let result = &results[number(&line["points"][0]["result"]) as usize];
            (line["label"].as_str().expect("text").to_string(), result["opaque"] == true)
        };
        let lines = list(&report["figure"]["lines"]).iter();
        lines.filter(|line| line["panel"] == "deliveries").map(of).collect::<Vec<_>>()
    };
    let line = |label: &str, opaque: bool| (label.to_string(), opaque);
    let (aware, contended) = ("contention-aware keys", "index contention");
    assert_eq!(lines("off"), [line(aware, false), line(contended, false)]);
    assert_eq!(lines("on"), [line(aware, true), line(contended, true)]);
    assert_eq!(
        lines("on,off"),
        [
            line(aware, false),
            line("contention-aware keys, opaque", true),
            line(contended, false),
            line("index contention, opaque", true)
        ]
    );
}

#[test]
fn options_choose_the_numbers_of_rounds_and_threads() {
    let (_, report) = reproduce("delivery --threads 3,1 --runs 2");
    for line in list(&report["figure"]["lines"]) {
        let points: Vec<_> =
            list(&line["points"]).iter().map(|point| number(&point["threads"])).collect();
        assert_eq!(points, [1.0, 3.0], "{line}");
        assert!(list(&line["points"]).iter().all(|point| list(&point["tps_runs"]).len() == 2));
    }
}

#[test]
fn mocc_is_compared_with_occ_and_claims_of_the_paper_are_judged() {
    let (printed, report) = reproduce_until("mocc --threads 2 --runs 1", |report| {
        let mut points =
            list(&report["figure"]["lines"]).iter().flat_map(|line| list(&line["points"]));
        points.all(|point| {
            let of_phase = &point["phases"][0]["throughput_tps"];
            number(&point["p999_us"]) > 0.0 && (of_phase.is_null() || number(of_phase) > 0.0)
        })
    });
    let figure = &report["figure"];
    let lines = list(&figure["lines"]);
    let panels: Vec<_> = lines.chunk_by(|one, next| one["panel"] == next["panel"]).collect();
    assert_eq!(
        panels.iter().map(|panel| panel.len()).collect::<Vec<_>>(),
        [&[5, 7, 7, 10][..], &[7; 8], &[10, 10, 7]].concat()
    );
    let results = list(&report["results"]);
    for (panel, line) in panels.iter().flat_map(|panel| panel.iter().map(move |line| (panel, line)))
    {
        assert_eq!(line["base"].is_null(), line["label"] == "occ", "{line}");
        assert_eq!(panel[0]["label"], "occ");
        let is_scan = line["panel"].as_str().is_some_and(|title| title.starts_with("Table 4"));
        let threads: Vec<_> =
            list(&line["points"]).iter().map(|point| number(&point["threads"])).collect();
        assert_eq!(threads, if is_scan { vec![2.0, 4.0] } else { vec![2.0] }, "{line}");
        for point in list(&line["points"]) {
            let result = &results[number(&point["result"]) as usize];
            let label = line["label"].as_str().expect("text");
            let (policy, opaque) = match label.strip_suffix(", opaque") {
                Some(policy) => (policy, true),
                None => (label, false),
            };
            assert_eq!(result["protocol"], policy, "policies are called by their settings");
            assert_eq!(result["opaque"], opaque, "{line}");
            let panel = line["panel"].as_str().expect("text");
            let writes = panel.starts_with("Figure 7") || panel.starts_with("Table 4");
            let locks_first = policy == "pcc" || policy.starts_with("2pl");
            let for_update = result["params"]["for_update"] == true;
            assert_eq!(for_update, writes && locks_first, "{line}");
            assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()), "{line}");
            let warehouses = &result["params"]["warehouses"];
            assert!(warehouses.is_null() || *warehouses == point["threads"], "{result}");
            let switches = |value: &Value| value["involuntary_switches"].as_f64();
            assert_eq!(switches(point), switches(result), "of the only run: {line}");
        }
    }
    assert_eq!(lines[0]["published"]["throughput_tps"], 16.9e6);
    assert_eq!(results[0]["params"]["order_ids"], "district");
    for line in panels[13] {
        let names: Vec<_> =
            list(&line["points"][0]["phases"]).iter().map(|phase| &phase["name"]).collect();
        assert_eq!(names, ["read", "read-modify-write"], "{line}");
    }
    let verdicts = list(&figure["verdicts"]);
    // All are judged with two threads, and those of Table 4 with four, too.
    assert_eq!(verdicts.len(), 3 + 4 + 1 + 5 + 6 + 2 * 5, "{verdicts:?}");
    let starts = ["holds  ", "does not hold  ", "open  "];
    let mut outcomes =
        printed.lines().filter(|line| starts.iter().any(|start| line.starts_with(start)));
    for verdict in verdicts {
        let outcome = outcomes.next().unwrap_or_else(|| panic!("{verdict} is not in {printed}"));
        let claim = verdict["claim"].as_str().expect("text");
        assert!(outcome.contains(claim), "{outcome} of {verdict}");
        assert_eq!(outcome.starts_with("does not"), verdict["holds"] == false, "{outcome}");
        assert_eq!(outcome.starts_with("open"), verdict["holds"].is_null(), "{outcome}");
        assert!(is_told(verdict), "{verdict}");
        let aborted = "Table 4: MOCC hardly aborts (below 2 %)";
        if claim == aborted {
            let place = usize::from(number(&verdict["threads"]) > 2.0);
            let point = &panels[14][2]["points"][place];
            assert_eq!(verdict["measured"], point["abort_ratio"], "{verdict}");
            assert_eq!(verdict["holds"], number(&point["abort_ratio"]) <= 0.02, "{verdict}");
        }
    }
    assert!(outcomes.next().is_none(), "{printed}");
    assert!(printed.contains("16.9 ± 0.14 million") && printed.contains("By phase: "), "{printed}");
    assert!(!printed.contains("in the fifths of each phase"), "phases are reported by name");
}

#[test]
fn pipelining_is_compared_with_occ_and_claims_of_the_paper_are_judged() {
    let (printed, report) = reproduce_until("drp --threads 2 --runs 1", |report| {
        let mut points =
            list(&report["figure"]["lines"]).iter().flat_map(|line| list(&line["points"]));
        points.all(|point| number(&point["latency_us"][2]) > 0.0)
    });
    let figure = &report["figure"];
    let lines = list(&figure["lines"]);
    let panels: Vec<_> = lines.chunk_by(|one, next| one["panel"] == next["panel"]).collect();
    let sizes: Vec<_> = panels.iter().map(|panel| panel.len()).collect();
    assert_eq!(sizes, [5, 5, 5, 6, 6, 2, 3, 3, 5, 3, 3, 3, 3, 2, 2, 2]);
    let results = list(&report["results"]);
    for (panel, line) in panels.iter().flat_map(|panel| panel.iter().map(move |line| (panel, line)))
    {
        assert_eq!(line["base"].is_null(), line["label"] == panel[0]["label"], "{line}");
        let label = line["label"].as_str().expect("text");
        let is_tpcc = line["panel"].as_str().is_some_and(|title| title.contains("TPC-C"));
        assert_eq!(line["counted"] == "new-order", is_tpcc, "{line}");
        let [point] = list(&line["points"]) else { panic!("one number of threads: {line}") };
        let threads = if label.starts_with("serial") { 1.0 } else { 2.0 };
        assert_eq!(number(&point["threads"]), threads, "{line}");
        assert!(number(&point["table_bytes"]) > 0.0, "{line}");
        let latencies = [0, 1, 2].map(|index| number(&point["latency_us"][index]));
        assert!(latencies.is_sorted(), "{line}");
        let result = &results[number(&point["result"]) as usize];
        assert_eq!(result["consistency"]["failed"], Value::Array(Vec::new()), "{line}");
        assert_eq!(result["opaque"] == false, label.ends_with("no early aborts"), "{line}");
        let is_deferred = ["pipelined", "deferred-2pl"].contains(&label) || label.contains('%');
        assert_eq!(result["cu"], is_deferred, "{line}");
        if is_tpcc {
            let wild =
                label.strip_suffix(" % wild").map_or(0.0, |share| share.parse().expect("a number"));
            let deferred = &result["params"]["deferred_pct"];
            assert_eq!(deferred.as_f64(), is_deferred.then_some(100.0 - wild), "{line}");
        }
        assert_eq!(point["of_sequential"].is_number(), !is_tpcc, "{line}");
    }
    let verdicts = list(&figure["verdicts"]);
    assert_eq!(verdicts.len(), 4 + 2 + 3 + 4 + 2 + 5 + 4 * 3 + 2 + 3, "{verdicts:?}");
    assert!(verdicts.iter().all(is_told), "{verdicts:?}");
    for words in ["28/42/52", "STM-TL2 did not finish", "6.6 times OCC", "p50/90/99"] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
}
