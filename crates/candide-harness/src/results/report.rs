//! The report of all results of a command.

use serde::Serialize;

use super::baseline::{Baseline, Comparison};
use super::figure::Figure;
use super::finding::Finding;
use super::machine::Machine;
use super::measurement::Measurement;
use super::notes::{label, unattained, variety};
use crate::failure::Failure;

/// All results of a command, and the notes that accompany them.
#[derive(Debug, Serialize)]
pub struct Report {
    pub(crate) machine: Machine,
    /// Notes on the numbers, such as omitted lines and checks.
    pub(crate) notes: Vec<String>,
    /// Whether Ctrl-C ended the command before everything requested was measured.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ended_early: bool,
    /// The published figure that the command reproduces; `None` if it reproduces none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) figure: Option<Figure>,
    pub(crate) results: Vec<Measurement>,
    /// The comparison with earlier results; `None` if it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) baseline: Option<Comparison>,
}

impl Report {
    /// Makes a report of `results`. If `ended_early` is set and there are no results, returns
    /// [`Failure::Interrupted`].
    pub(crate) fn new(
        machine: Machine,
        mut notes: Vec<String>,
        mut results: Vec<Measurement>,
        ended_early: bool,
    ) -> Result<Self, Failure> {
        if ended_early {
            if results.is_empty() {
                return Err(Failure::Interrupted);
            }
            notes.push("ended early, by Ctrl-C: these are the results until then".to_string());
        }
        let varieties: Vec<String> =
            results.iter().map(|result| variety(result, &results)).collect();
        results.iter_mut().zip(varieties).for_each(|(result, variety)| result.variety = variety);
        let fruitless = results.iter().filter(|result| result.committed == 0);
        notes.extend(fruitless.map(|result| {
            format!("{}: no transaction committed while it was measured", label(result))
        }));
        notes.extend(results.iter().filter_map(unattained));
        Ok(Report { machine, notes, ended_early, figure: None, results, baseline: None })
    }

    /// Compares the results with the earlier ones of `baseline`.
    pub(crate) fn compare_with(&mut self, baseline: &Baseline) {
        let comparison = baseline.compare(&self.machine, &self.results);
        self.notes.extend(comparison.notes.iter().cloned());
        self.baseline = Some(comparison);
    }

    /// Describes the times from which and to which latencies are measured, which are the same in
    /// all results.
    pub(crate) fn latency_span(&self) -> &'static str {
        self.results.first().map_or("", Measurement::latency_span)
    }

    /// Returns all notes of a report, each once: those on the whole, and then those on single
    /// results, with the settings that they are about. Notes that differ in the number at their
    /// beginning become one.
    pub(crate) fn all_notes(&self) -> Vec<String> {
        let mut told: Vec<Told<'_>> = Vec::new();
        for result in &self.results {
            for note in &result.consistency.notes {
                let (number, words) = numbered(note);
                let place = told.iter().position(|other| other.words == words);
                let place = place.unwrap_or_else(|| {
                    told.push(Told { words, numbers: Vec::new(), settings: Vec::new() });
                    told.len() - 1
                });
                told[place].numbers.extend(number);
                let setting = label(result);
                if !told[place].settings.contains(&setting) {
                    told[place].settings.push(setting);
                }
            }
        }
        let of_results = told.iter().map(|told| told.note(self.results.len()));
        self.notes.iter().cloned().chain(of_results).collect()
    }

    pub(crate) fn to_json(&self) -> Result<String, Failure> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Returns whether every invariant that was examined held.
    pub(crate) fn is_consistent(&self) -> bool {
        self.results.iter().all(|result| result.consistency.failed.is_empty())
    }

    /// Returns the finding that decides the command's exit status. A report without a single commit
    /// is [`Finding::Bad`], unless Ctrl-C ended the command early.
    pub fn finding(&self) -> Finding {
        let is_fruitless =
            self.results.iter().all(|result| result.committed == 0) && !self.ended_early;
        if self.is_consistent() && !is_fruitless { Finding::Good } else { Finding::Bad }
    }
}

/// The largest number of settings that a note names.
const NAMED_MAX: usize = 3;

/// A note on results.
struct Told<'a> {
    /// The note without the number at its beginning.
    words: &'a str,
    numbers: Vec<u64>,
    settings: Vec<String>,
}

impl Told<'_> {
    /// Returns the note, with the settings that it is about, of which there are `all`.
    fn note(&self, all: usize) -> String {
        let Told { words, numbers, settings } = self;
        let range = match (numbers.iter().min(), numbers.iter().max()) {
            (Some(low), Some(high)) if low < high => format!("{low} to {high}{words}"),
            (Some(low), _) => format!("{low}{words}"),
            _ => words.to_string(),
        };
        match settings.as_slice() {
            [setting] => format!("{setting}: {range}"),
            settings if settings.len() == all => format!("in all settings: {range}"),
            settings if settings.len() > NAMED_MAX => {
                format!("{range} (in {} of {all} settings)", settings.len())
            }
            settings => format!("{range} (in {})", settings.join("; ")),
        }
    }
}

/// Splits a note into the number at its beginning, if there is one, and the rest.
fn numbered(note: &str) -> (Option<u64>, &str) {
    let end = note.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(note.len());
    match note[..end].parse() {
        Ok(number) => (Some(number), &note[end..]),
        Err(_) => (None, note),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample::{self, Sample, measurement};

    /// Returns a report of one measurement in which the invariants `failed` do not hold.
    fn report(failed: &[&str]) -> Report {
        let sample = Sample { protocol: 0, threads: 1, cu: true, ts: true, tps: 1.0 };
        let mut result = measurement("smallbank", sample);
        result.consistency.failed.extend(failed.iter().map(|failure| failure.to_string()));
        sample::report(vec![result])
    }

    #[test]
    fn notes_on_several_results_are_told_once() {
        let sample = |threads| Sample { protocol: 0, threads, cu: true, ts: true, tps: 1.0 };
        let mut results: Vec<Measurement> =
            (1..=6).map(|threads| measurement("tpcc", sample(threads))).collect();
        for (index, result) in results.iter_mut().enumerate() {
            let mut notes = vec![format!("{} rows were left", 3 + index), "all of it".to_string()];
            notes.extend((index < 2).then(|| "two of it".to_string()));
            notes.extend((index < 5).then(|| "many of it".to_string()));
            notes.extend((index == 0).then(|| "7 alone".to_string()));
            result.consistency.notes = notes;
        }
        assert_eq!(
            sample::report(results).all_notes()[1..],
            [
                "in all settings: 3 to 8 rows were left",
                "in all settings: all of it",
                "two of it (in tpcc occ, 1 thread; tpcc occ, 2 threads)",
                "many of it (in 5 of 6 settings)",
                "tpcc occ, 1 thread: 7 alone",
            ]
        );
    }

    #[test]
    fn one_failed_invariant_makes_the_report_inconsistent() {
        assert!(report(&[]).is_consistent());
        assert!(!report(&["1 < 2 is no longer true"]).is_consistent());
    }

    #[test]
    fn a_report_without_commits_is_bad_and_says_so() {
        let of = |committed: &[u64], ended_early: bool| {
            let sample = Sample { protocol: 0, threads: 2, cu: true, ts: true, tps: 0.0 };
            let result =
                |&committed: &u64| Measurement { committed, ..measurement("smallbank", sample) };
            let results = committed.iter().map(result).collect();
            let report = Report::new(Machine::inspect(2), Vec::new(), results, ended_early)
                .expect("results");
            let told = "smallbank occ, 2 threads: no transaction committed while it was measured";
            (report.finding(), report.notes.iter().filter(|note| *note == told).count())
        };
        assert_eq!(of(&[0], false), (Finding::Bad, 1));
        assert_eq!(of(&[0, 0], false), (Finding::Bad, 2));
        assert_eq!(of(&[0, 5], false), (Finding::Good, 1));
        assert_eq!(of(&[5], false), (Finding::Good, 0));
        assert_eq!(of(&[0], true), (Finding::Good, 1), "Ctrl-C ended it");
    }

    #[test]
    fn results_of_one_workload_are_distinguished_by_their_knobs() {
        let of = |workload: &str, params: serde_json::Value| Measurement {
            params,
            ..measurement(
                workload,
                Sample { protocol: 0, threads: 1, cu: true, ts: true, tps: 1.0 },
            )
        };
        let results = [
            of("tpcc", serde_json::json!({ "warehouses": 1, "order_ids": "once", "items": 5 })),
            of("tpcc", serde_json::json!({ "warehouses": 2, "order_ids": "district", "items": 5 })),
            of("ycsb-a", serde_json::json!({ "warehouses": 3 })),
        ];
        let varieties = results.each_ref().map(|result| variety(result, &results));
        assert_eq!(
            varieties,
            [", order ids once, warehouses 1", ", order ids district, warehouses 2", ""]
        );
    }
}
