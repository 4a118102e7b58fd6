//! A check of a benchmark's results. The results must have every field on which other programs
//! rely, and their figures must be possible.

use serde_json::Value;
use std::fs;

/// The kind of value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Switch,
    /// A switch, or null if it is not known which way.
    SwitchOrNull,
    Number,
    /// A number, or null if there is no number to report.
    NumberOrNull,
    List,
    Object,
}

use Kind::*;

const REPORT: &[(&str, Kind)] = &[("machine", Object), ("results", List)];

const RESULT: &[(&str, Kind)] = &[
    ("workload", Text),
    ("params", Object),
    ("profile", Text),
    ("protocol", Text),
    ("cu", Switch),
    ("ts", Switch),
    ("factors", List),
    ("threads", Number),
    ("duration_s", Number),
    ("committed", Number),
    ("aborted", Number),
    ("user_aborted", Number),
    ("throughput_tps", Number),
    ("tps_runs", List),
    ("involuntary_switches", NumberOrNull),
    ("core_share", NumberOrNull),
    ("abort_reasons", Object),
    ("transactions", Object),
    ("memory_bytes", Number),
    ("rss_bytes", NumberOrNull),
    ("huge_page_bytes", NumberOrNull),
    ("consistency", Object),
];

const TRANSACTION: &[(&str, Kind)] = &[
    ("committed", Number),
    ("aborted", Number),
    ("p50_us", Number),
    ("p99_us", Number),
    ("max_us", Number),
];

const CAUSE: &[(&str, Kind)] =
    &[("reason", Text), ("aborted", Text), ("met", List), ("attempts", Number)];

const HOTTEST: &[(&str, Kind)] = &[
    ("row", Text),
    ("probes", Number),
    ("aborted", Number),
    ("p50_us", NumberOrNull),
    ("p99_us", NumberOrNull),
    ("versions_p99", NumberOrNull),
    ("versions_max", NumberOrNull),
];

const LOCKS: &[(&str, Kind)] = &[
    ("taken", Number),
    ("waited", Number),
    ("died", Number),
    ("killed", Number),
    ("forgone", Number),
    ("retrospective", Number),
    ("restored", Number),
    ("heated", Number),
    ("cooled", Number),
];

const LOG: &[(&str, Kind)] =
    &[("acknowledge", Text), ("log_bytes", Number), ("log_bytes_per_txn", NumberOrNull)];

const SLICE: &[(&str, Kind)] = &[
    ("run", Number),
    ("from_s", Number),
    ("duration_s", Number),
    ("committed", Number),
    ("aborted", Number),
    ("user_aborted", Number),
    ("p50_us", Number),
    ("p99_us", Number),
    ("p999_us", Number),
    ("max_us", Number),
    ("memory_bytes", Number),
    ("rss_bytes", NumberOrNull),
];

const VERDICT: &[(&str, Kind)] =
    &[("claim", Text), ("threads", Number), ("measured", NumberOrNull), ("holds", SwitchOrNull)];

const CONSISTENCY: &[(&str, Kind)] = &[("checked", Number), ("failed", List)];

/// Checks files, and prints a line for each correct file.
pub(crate) fn run(files: &[String]) -> Result<(), String> {
    for file in files {
        let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let report: Value =
            serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))?;
        let results = check(&report).map_err(|problem| format!("{file}: {problem}"))?;
        println!(
            "{file}: {results} results, every field there, throughput above zero, no invariant failed"
        );
    }
    Ok(())
}

/// Checks a report. Returns the number of its results.
fn check(report: &Value) -> Result<usize, String> {
    fields(report, REPORT).map_err(|problem| format!("the report {problem}"))?;
    let results = report["results"].as_array().expect("a list, as has been checked");
    if results.is_empty() {
        return Err("there are no results".to_string());
    }
    for verdict in report["figure"]["verdicts"].as_array().into_iter().flatten() {
        fields(verdict, VERDICT)
            .map_err(|problem| format!("the figure has a verdict that {problem}"))?;
        if verdict["measured"].is_null() && verdict["holds"] == true {
            return Err(format!("the figure has a verdict about nothing: {verdict}"));
        }
    }
    for (number, result) in results.iter().enumerate() {
        check_result(result).map_err(|problem| format!("result {number} {problem}"))?;
    }
    Ok(results.len())
}

fn check_result(result: &Value) -> Result<(), String> {
    fields(result, RESULT)?;
    for (name, transaction) in result["transactions"].as_object().into_iter().flatten() {
        fields(transaction, TRANSACTION)
            .map_err(|problem| format!("in transaction {name:?} {problem}"))?;
    }
    if let Some(causes) = result["causes"].as_array() {
        causes
            .iter()
            .try_for_each(|cause| fields(cause, CAUSE))
            .map_err(|problem| format!("has a cause that {problem}"))?;
        let attempts: u64 = causes.iter().filter_map(|cause| cause["attempts"].as_u64()).sum();
        if Some(attempts) != result["aborted"].as_u64() {
            return Err(format!(
                "has causes of {attempts} aborted attempts out of {}",
                result["aborted"]
            ));
        }
    }
    if let Some(locks) = result.get("locks") {
        fields(locks, LOCKS).map_err(|problem| format!("in its locks {problem}"))?;
        let aborted = locks["died"].as_u64().zip(locks["killed"].as_u64());
        let aborted = aborted.map(|(died, killed)| died + killed);
        if aborted > result["aborted"].as_u64() {
            return Err(format!("has aborted attempts {}, and locks {locks}", result["aborted"]));
        }
    }
    if let Some(log) = result.get("log") {
        check_log(log, &result["committed"]).map_err(|problem| format!("in its log {problem}"))?;
    }
    if let Some(slices) = result["slices"].as_array() {
        slices
            .iter()
            .try_for_each(|slice| fields(slice, SLICE))
            .map_err(|problem| format!("has a slice that {problem}"))?;
        for field in ["committed", "aborted", "user_aborted"] {
            let sum: u64 = slices.iter().filter_map(|slice| slice[field].as_u64()).sum();
            if Some(sum) != result[field].as_u64() {
                return Err(format!(
                    "has {sum} for {field:?} in its slices out of {}",
                    result[field]
                ));
            }
        }
    }
    if let Some(hottest) = result.get("hottest") {
        check_hottest(hottest).map_err(|problem| format!("in its hottest row {problem}"))?;
    }
    fields(&result["consistency"], CONSISTENCY)
        .map_err(|problem| format!("in its consistency {problem}"))?;

    let throughput = result["throughput_tps"].as_f64().unwrap_or(f64::NAN);
    let median = median(&result["tps_runs"]).ok_or("has no runs, or runs that are no numbers")?;
    if throughput.is_nan() || throughput <= 0.0 {
        return Err(format!("has a throughput of {throughput}"));
    }
    if (throughput - median).abs() > median * 1e-9 {
        return Err(format!(
            "has a throughput of {throughput}, but the median of its runs is {median}"
        ));
    }
    if result["consistency"]["checked"].as_u64() == Some(0) {
        return Err("has examined no invariant".to_string());
    }
    let failed = &result["consistency"]["failed"];
    if failed.as_array().is_some_and(|failed| !failed.is_empty()) {
        return Err(format!("has failed invariants: {failed}"));
    }
    Ok(())
}

/// Checks that the figures of a log are possible, if so many transactions have committed.
fn check_log(log: &Value, committed: &Value) -> Result<(), String> {
    fields(log, LOG)?;
    let level = log["acknowledge"].as_str().unwrap_or_default();
    if !["memory", "written", "durable"].contains(&level) {
        return Err(format!("has the level {level:?}"));
    }
    let bytes = log["log_bytes"].as_f64().zip(committed.as_f64());
    let quotient = bytes.filter(|(_, committed)| *committed > 0.0).map(|(log, count)| log / count);
    match (log["log_bytes_per_txn"].as_f64(), quotient) {
        (None, None) => Ok(()),
        (Some(found), Some(wanted)) if (found - wanted).abs() <= wanted * 1e-9 => Ok(()),
        _ => Err(format!("has {log} for {committed} commits")),
    }
}

/// Checks that the figures of a row are possible. The figures of the median and of the maximum must
/// be present if the row was read, and absent otherwise.
fn check_hottest(hottest: &Value) -> Result<(), String> {
    fields(hottest, HOTTEST)?;
    let number = |field: &str| hottest[field].as_f64();
    let is_looked_at = number("probes") > Some(0.0);
    for (small, large, least) in [("p50_us", "p99_us", 0.0), ("versions_p99", "versions_max", 1.0)]
    {
        let can_be = match (number(small), number(large)) {
            (Some(small), Some(large)) => is_looked_at && least <= small && small <= large,
            (None, None) => !is_looked_at,
            _ => false,
        };
        if !can_be {
            return Err(format!("has {hottest}, where {small:?} and {large:?} cannot be"));
        }
    }
    Ok(())
}

/// Returns the median of the runs: the middle run, or the mean of the two middle runs. Returns
/// `None` if `runs` is not a list of numbers.
fn median(runs: &Value) -> Option<f64> {
    let mut runs: Vec<f64> = runs.as_array()?.iter().map(Value::as_f64).collect::<Option<_>>()?;
    runs.sort_by(f64::total_cmp);
    let (low, high) = (runs.get(runs.len().checked_sub(1)? / 2)?, runs.get(runs.len() / 2)?);
    Some((low + high) / 2.0)
}

fn fields(value: &Value, wanted: &[(&str, Kind)]) -> Result<(), String> {
    let object = value.as_object().ok_or("is no object")?;
    for &(name, kind) in wanted {
        let field = object.get(name).ok_or_else(|| format!("lacks the field {name:?}"))?;
        if !kind.fits(field) {
            return Err(format!("has {field} for {name:?}, which is not of kind {kind:?}"));
        }
    }
    Ok(())
}

impl Kind {
    fn fits(self, value: &Value) -> bool {
        match self {
            Text => value.is_string(),
            Switch => value.is_boolean(),
            SwitchOrNull => value.is_boolean() || value.is_null(),
            Number => value.is_number(),
            NumberOrNull => value.is_number() || value.is_null(),
            List => value.is_array(),
            Object => value.is_object(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report() -> Value {
        json!({
            "machine": {},
            "results": [{
                "workload": "w", "params": {}, "profile": "strict", "protocol": "occ", "cu": true, "ts": true,
                "factors": [], "threads": 1, "duration_s": 0.9, "committed": 6, "aborted": 0, "user_aborted": 0,
                "throughput_tps": 2.0, "tps_runs": [3.0, 1.0, 2.0], "abort_reasons": {},
                "involuntary_switches": null, "core_share": null,
                "transactions": {
                    "t": { "committed": 6, "aborted": 0, "p50_us": 1.0, "p99_us": 1.0, "max_us": 1.0 }
                },
                "memory_bytes": 1, "rss_bytes": null, "huge_page_bytes": null,
                "consistency": { "checked": 1, "failed": [] },
            }],
        })
    }

    #[test]
    fn a_whole_report_is_accepted() {
        assert_eq!(check(&report()), Ok(1));
        let mut report = report();
        report["results"][0]["aborted"] = json!(3);
        let cause = |attempts| json!({ "reason": "locked", "aborted": "t", "met": ["t"], "attempts": attempts });
        report["results"][0]["locks"] = locks();
        report["results"][0]["causes"] = json!([cause(2), cause(1)]);
        report["results"][0]["log"] = log();
        report["results"][0]["slices"] = json!([slice(4, 1), slice(2, 2)]);
        report["figure"]["verdicts"] = json!([verdict()]);
        assert_eq!(check(&report), Ok(1));
        for hottest in [
            hottest(),
            json!({ "row": "rows[0]", "probes": 0, "aborted": 0, "p50_us": null, "p99_us": null,
            "versions_p99": null, "versions_max": null }),
        ] {
            report["results"][0]["hottest"] = hottest;
            assert_eq!(check(&report), Ok(1));
        }
    }

    fn hottest() -> Value {
        json!({
            "row": "rows[0]", "probes": 3, "aborted": 1, "p50_us": 0.5, "p99_us": 0.5, "versions_p99": 2, "versions_max": 9,
        })
    }

    fn log() -> Value {
        json!({ "acknowledge": "memory", "log_bytes": 600, "log_bytes_per_txn": 100.0 })
    }

    fn locks() -> Value {
        json!({
            "taken": 9, "waited": 5, "died": 2, "killed": 1, "forgone": 0, "retrospective": 4, "restored": 0, "heated": 1,
            "cooled": 0,
        })
    }

    fn verdict() -> Value {
        json!({ "claim": "fast", "threads": 2, "measured": null, "holds": false })
    }

    fn slice(committed: u64, aborted: u64) -> Value {
        json!({
            "run": 1, "from_s": 0.0, "duration_s": 0.5, "committed": committed, "aborted": aborted, "user_aborted": 0,
            "p50_us": 1.0, "p99_us": 1.0, "p999_us": 1.0, "max_us": 1.0, "memory_bytes": 1, "rss_bytes": null,
        })
    }

    #[test]
    fn missing_and_wrong_fields_of_a_report_are_named() {
        let refused = |change: &dyn Fn(&mut Value), words: &str| {
            let mut report = report();
            change(&mut report);
            let problem = check(&report).expect_err(words);
            assert!(problem.contains(words), "no {words:?} in {problem:?}");
        };
        let remove = |value: &mut Value, field: &str| {
            drop(value.as_object_mut().expect("an object").remove(field))
        };
        for (field, _) in RESULT {
            refused(&|report| remove(&mut report["results"][0], field), field);
        }
        refused(
            &|report| remove(&mut report["results"][0]["transactions"]["t"], "p99_us"),
            "p99_us",
        );
        let cause = json!({ "reason": "locked", "aborted": "t", "met": [], "attempts": 1 });
        refused(
            &|report| report["results"][0]["causes"] = json!([cause]),
            "causes of 1 aborted attempts out of 0",
        );
        refused(
            &|report| report["results"][0]["causes"] = json!([{ "reason": "locked" }]),
            "\"aborted\"",
        );
        refused(
            &|report| report["results"][0]["slices"] = json!([slice(5, 0)]),
            "5 for \"committed\" in its slices out of 6",
        );
        refused(
            &|report| report["results"][0]["slices"] = json!([slice(6, 1)]),
            "1 for \"aborted\"",
        );
        refused(
            &|report| report["results"][0]["locks"] = locks(),
            "has aborted attempts 0, and locks {",
        );
        for (field, _) in LOCKS {
            let mut locks = locks();
            remove(&mut locks, field);
            refused(&|report| report["results"][0]["locks"] = locks.clone(), field);
        }
        for (field, _) in VERDICT {
            let mut verdict = verdict();
            remove(&mut verdict, field);
            refused(&|report| report["figure"]["verdicts"] = json!([verdict.clone()]), field);
        }
        let mut verdict = verdict();
        verdict["holds"] = json!(true);
        refused(
            &|report| report["figure"]["verdicts"] = json!([verdict.clone()]),
            "a verdict about nothing",
        );
        for (field, _) in SLICE {
            let mut slice = slice(6, 0);
            remove(&mut slice, field);
            refused(&|report| report["results"][0]["slices"] = json!([slice]), field);
        }
        for (field, _) in HOTTEST {
            let mut hottest = hottest();
            remove(&mut hottest, field);
            refused(&|report| report["results"][0]["hottest"] = hottest.clone(), field);
        }
        for (field, wrong) in [
            ("probes", json!(0)),
            ("p50_us", json!(0.6)),
            ("p99_us", json!(null)),
            ("versions_p99", json!(0)),
        ] {
            let mut hottest = hottest();
            hottest[field] = wrong;
            refused(&|report| report["results"][0]["hottest"] = hottest.clone(), "cannot be");
        }
        refused(&|report| report["results"] = json!([]), "no results");
        refused(&|report| report["results"][0]["threads"] = json!("one"), "threads");
        refused(&|report| report["results"][0]["throughput_tps"] = json!(0.0), "throughput of 0");
        refused(
            &|report| report["results"][0]["tps_runs"] = json!([1.0, 2.0]),
            "median of its runs is 1.5",
        );
        refused(
            &|report| report["results"][0]["consistency"]["checked"] = json!(0),
            "no invariant",
        );
        refused(&|report| report["results"][0]["consistency"]["failed"] = json!(["sum"]), "sum");
    }
}
