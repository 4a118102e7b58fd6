//! Earlier results, with which those of a report are compared.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::doubt::{Doubt, Sampled};
use super::machine::Machine;
use super::measurement::Measurement;
use super::notes::label;

/// The results of an earlier command, as `--json` has written them. Fields that are not compared
/// are ignored.
#[derive(Debug, Deserialize)]
pub(crate) struct Baseline {
    /// The name of the file.
    #[serde(skip)]
    file: String,
    machine: EarlierMachine,
    results: Vec<Earlier>,
}

/// The parts of an earlier machine that are compared or named.
#[derive(Debug, Deserialize)]
struct EarlierMachine {
    cpu: String,
    cores: usize,
    commit: Option<String>,
    time: String,
}

/// An earlier result: its setting, and its throughput.
#[derive(Debug, Deserialize)]
struct Earlier {
    workload: String,
    params: Value,
    profile: Value,
    protocol: String,
    cu: bool,
    ts: bool,
    timestamps: Option<String>,
    opaque: Option<bool>,
    factors: Vec<String>,
    threads: usize,
    throughput_tps: f64,
    tps_runs: Vec<f64>,
    core_share: Option<f64>,
}

/// The comparison of a report with earlier results. The names of the fields are the interface to
/// other programs.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    file: String,
    commit: Option<String>,
    time: String,
    pub(crate) changes: Vec<Change>,
    /// The results that were not compared, and differences of the machines, in words.
    #[serde(skip)]
    pub(crate) notes: Vec<String>,
}

/// The change of the throughput in one setting.
#[derive(Debug, Serialize)]
pub(crate) struct Change {
    /// The index of the result.
    pub(crate) result: usize,
    /// The earlier throughput.
    pub(crate) before_tps: f64,
    /// The throughput as a multiple of the earlier one; `None` if nothing committed then.
    pub(crate) of_before: Option<f64>,
    /// The reason why the change says nothing; `None` if it is not in doubt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) doubt: Option<Doubt>,
}

impl Baseline {
    /// Sets the name of the file.
    pub(crate) fn of(self, file: &str) -> Baseline {
        Baseline { file: file.to_string(), ..self }
    }

    /// Compares `results`, which were measured on `machine`, with these: each with the earlier
    /// result of the same setting, whichever seed it had.
    pub(crate) fn compare(&self, machine: &Machine, results: &[Measurement]) -> Comparison {
        let mut left: Vec<&Earlier> = self.results.iter().collect();
        let (mut changes, mut unknown) = (Vec::new(), Vec::new());
        for (index, result) in results.iter().enumerate() {
            match left.iter().position(|earlier| earlier.is_of(result)) {
                Some(place) => changes.push(left.remove(place).change(index, result)),
                None => unknown.push(label(result)),
            }
        }
        let mut notes = Vec::new();
        let EarlierMachine { cpu, cores, commit, time } = &self.machine;
        if (cpu, *cores) != (&machine.cpu, machine.cores) {
            notes.push(format!(
                "{} was measured on another machine, so changes say little: {cpu} with {cores} cores",
                self.file
            ));
        }
        if !unknown.is_empty() {
            notes.push(format!("not in {}: {}", self.file, unknown.join("; ")));
        }
        if !left.is_empty() {
            notes.push(format!("settings that only {} has: {}", self.file, left.len()));
        }
        let (file, commit, time) = (self.file.clone(), commit.clone(), time.clone());
        Comparison { file, commit, time, changes, notes }
    }
}

impl Earlier {
    /// Returns whether the setting is that of `result`.
    fn is_of(&self, result: &Measurement) -> bool {
        let unseeded = |params: &Value| {
            let mut params = params.clone();
            params.as_object_mut().map(|knobs| knobs.remove("seed"));
            params
        };
        self.workload == result.workload
            && unseeded(&self.params) == unseeded(&result.params)
            && self.profile == serde_json::json!(result.profile)
            && self.protocol == result.protocol
            && (self.cu, self.ts, self.threads) == (result.cu, result.ts, result.threads)
            && self.timestamps.as_deref() == result.timestamps
            && self.opaque == result.opaque
            && self.factors == result.factors
    }

    fn change(&self, index: usize, result: &Measurement) -> Change {
        let sampled = Sampled { runs: &self.tps_runs, core_share: self.core_share };
        let before_tps = self.throughput_tps;
        Change {
            result: index,
            before_tps,
            of_before: (before_tps > 0.0).then(|| result.throughput_tps / before_tps),
            doubt: Doubt::of_medians(&sampled, &result.sampled()),
        }
    }
}

impl Comparison {
    /// Says what is compared, and counts the changes.
    pub(crate) fn sentence(&self) -> String {
        let count = |is_it: &dyn Fn(f64) -> bool| {
            self.changes.iter().filter(|change| change.told().is_some_and(is_it)).count()
        };
        let (faster, slower) = (count(&|ratio| ratio > 1.0), count(&|ratio| ratio < 1.0));
        let commit = self.commit.as_deref().map_or("an unknown commit", |commit| {
            &commit[..commit.char_indices().nth(12).map_or(commit.len(), |(end, _)| end)]
        });
        format!(
            "Compared with {} ({commit}, {}): {faster} faster, {slower} slower, {} not moved or in doubt",
            self.file,
            self.time,
            self.changes.len() - faster - slower
        )
    }
}

impl Change {
    /// Returns the throughput as a multiple of the earlier one; `None` if that is in doubt.
    pub(crate) fn told(&self) -> Option<f64> {
        self.of_before.filter(|_| self.doubt.is_none())
    }

    /// Says whether the throughput has moved, and by how much.
    pub(crate) fn words(&self) -> String {
        match (self.told(), self.doubt) {
            (Some(ratio), _) => {
                let direction = if ratio < 1.0 { "slower" } else { "faster" };
                format!("{direction}: {:+.1} %", (ratio - 1.0) * 100.0)
            }
            (None, Some(doubt)) => format!("noise: {}", doubt.words()),
            (None, None) => "nothing committed before".to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Report;
    use crate::results::sample::{self, Sample, measurement};

    const SAMPLE: Sample = Sample { protocol: 0, threads: 1, cu: true, ts: true, tps: 1000.0 };

    fn report(samples: &[Sample]) -> Report {
        sample::report(samples.iter().map(|&sample| measurement("tpcc", sample)).collect())
    }

    /// Returns the baseline that the file of `report` would be.
    fn baseline(report: &Report) -> Baseline {
        let json = report.to_json().expect("JSON");
        let baseline: Baseline = serde_json::from_str(&json).expect("its own file is read");
        baseline.of("old.json")
    }

    #[test]
    fn changes_beyond_the_spread_are_told_and_others_are_noise() {
        let with = |threads, tps| Sample { threads, tps, ..SAMPLE };
        let old = baseline(&report(&[with(1, 1000.0), with(2, 1000.0), with(4, 1000.0)]));
        let mut new = report(&[with(1, 1100.0), with(2, 1010.0), with(4, 500.0)]);
        new.results[0].params["seed"] = 2.into();
        let compared = old.compare(&new.machine, &new.results);
        let words: Vec<String> = compared.changes.iter().map(Change::words).collect();
        assert_eq!(
            words,
            ["faster: +10.0 %", "noise: within the spread of the runs", "slower: -50.0 %"]
        );
        assert_eq!(compared.notes, Vec::<String>::new());
        let sentence = compared.sentence();
        assert!(sentence.starts_with("Compared with old.json ("), "{sentence}");
        assert!(sentence.ends_with("): 1 faster, 1 slower, 1 not moved or in doubt"), "{sentence}");
        new.results[0].core_share = Some(0.5);
        let words = old.compare(&new.machine, &new.results).changes[0].words();
        assert_eq!(words, "noise: a thread had less than 0.8 of a core");
    }

    #[test]
    fn settings_without_a_counterpart_are_named() {
        let mut old = baseline(&report(&[SAMPLE, Sample { threads: 2, ..SAMPLE }]));
        old.machine.cores = 64;
        let mut zero = report(&[SAMPLE, Sample { cu: false, ..SAMPLE }]);
        zero.results[0].tps_runs = vec![1500.0; 3];
        let compared = old.compare(&zero.machine, &zero.results);
        assert_eq!(compared.changes.len(), 1);
        assert!(compared.notes[0].contains("another machine"), "{:?}", compared.notes);
        assert_eq!(compared.notes[1], "not in old.json: tpcc occ, 1 thread, cu off");
        assert_eq!(compared.notes[2], "settings that only old.json has: 1");
        let nothing = Change { result: 0, before_tps: 0.0, of_before: None, doubt: None };
        assert_eq!(nothing.words(), "nothing committed before");
    }
}
