//! The results in the order of the page: by workload, switches, protocol and number of threads.

use std::collections::BTreeSet;

use super::number::{count, counted};
use crate::registry;
use crate::results::{Measurement, Report, plain};

/// A measurement, and its index in the report's results.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) index: usize,
    pub(crate) result: &'a Measurement,
}

impl Entry<'_> {
    /// Returns the protocol with its choices that differ from the default, the number of threads,
    /// and the switches that are off.
    pub(crate) fn setting(self) -> String {
        let Measurement { threads, cu, ts, .. } = *self.result;
        let protocol = self.result.protocol_words();
        let off: String = [(cu, ", CU off"), (ts, ", TS off")]
            .iter()
            .filter(|(on, _)| !on)
            .map(|(_, words)| *words)
            .collect();
        format!("{protocol} with {}{off}", counted(threads, "thread"))
    }
}

/// The results of one workload with the same knobs. Results are compared only within such a group.
pub(crate) struct Comparison<'a> {
    pub(crate) title: String,
    pub(crate) entries: Vec<Entry<'a>>,
}

/// The results of a comparison with the same switches.
pub(crate) struct Facet<'a> {
    pub(crate) cu: bool,
    pub(crate) ts: bool,
    /// The source of timestamps; `None` if it is a counter or the protocol offers no choice.
    pub(crate) timestamps: Option<&'static str>,
    /// Whether opacity was on, or the protocol leaves no choice.
    pub(crate) opaque: bool,
    /// Whether the comparison has results with other switches.
    is_switched: bool,
    pub(crate) series: Vec<Series<'a>>,
}

/// The results of a facet under one protocol, by the number of threads.
pub(crate) struct Series<'a> {
    pub(crate) protocol: &'static str,
    pub(crate) entries: Vec<Entry<'a>>,
}

/// The properties that distinguish the results of a comparison: whether CU and TS are on, the
/// source of timestamps, unless it is a counter, and whether opacity is not off.
type Switches = (bool, bool, Option<&'static str>, bool);

fn switches_of(result: &Measurement) -> Switches {
    (result.cu, result.ts, result.other_timestamps(), !result.is_opacity_off())
}

/// Returns every comparison of a report, in the order of the report's results.
pub(crate) fn comparisons(report: &Report) -> Vec<Comparison<'_>> {
    let mut comparisons: Vec<Comparison<'_>> = Vec::new();
    for (index, result) in report.results.iter().enumerate() {
        let entry = Entry { index, result };
        match comparisons.iter_mut().find(|comparison| is_same(comparison.first(), result)) {
            Some(comparison) => comparison.entries.push(entry),
            None => comparisons.push(Comparison { title: String::new(), entries: vec![entry] }),
        }
    }
    let titles: Vec<String> =
        comparisons.iter().map(|comparison| title(comparison.first(), &comparisons)).collect();
    comparisons.iter_mut().zip(titles).for_each(|(comparison, title)| comparison.title = title);
    comparisons
}

fn is_same(one: &Measurement, other: &Measurement) -> bool {
    let key =
        |result: &Measurement| (result.workload.clone(), result.profile, result.factors.clone());
    key(one) == key(other) && one.params == other.params
}

/// The knobs that are the size of a workload, with their words in the singular. The first of these
/// knobs that a workload has goes into its title.
const SIZES: [(&str, &str); 5] = [
    ("warehouses", "warehouse"),
    ("branches", "branch"),
    ("rows", "row"),
    ("accounts", "account"),
    ("items", "item"),
];

/// Returns the workload's name, its size, and the other knobs in which it differs from workloads of
/// the same name.
fn title(result: &Measurement, comparisons: &[Comparison<'_>]) -> String {
    let mut title = name(&result.workload);
    let size =
        SIZES.iter().find_map(|&(knob, one)| Some((knob, one, result.params.get(knob)?.as_u64()?)));
    if let Some((knob, one, size)) = size {
        title += &format!(", {} {}", count(size), if size == 1 { one } else { knob });
    }
    let namesakes = || {
        comparisons.iter().map(Comparison::first).filter(|other| other.workload == result.workload)
    };
    for (knob, value) in result.params.as_object().into_iter().flatten() {
        let differs = namesakes().any(|other| other.params.get(knob) != Some(value));
        if differs && size.is_none_or(|(size, ..)| size != knob) {
            title += &format!(", {} {}", knob.replace('_', " "), plain(value));
        }
    }
    if namesakes().any(|other| other.factors != result.factors) {
        title += &match result.factors.as_slice() {
            [] => ", no bad choice".to_string(),
            factors => format!(", {}", factors.join(" and ")),
        };
    }
    if namesakes().any(|other| other.profile != result.profile) {
        title += &format!(", profile {}", plain(&serde_json::json!(result.profile)));
    }
    title
}

/// The usual spelling of workloads whose names on the command line are in lower case.
const NAMES: [(&str, &str); 6] = [
    ("tpcc", "TPC-C"),
    ("tpcb", "TPC-B"),
    ("ycsb", "YCSB"),
    ("smallbank", "SmallBank"),
    ("rubis", "RUBiS"),
    ("wikipedia", "Wikipedia"),
];

fn name(workload: &str) -> String {
    let known = NAMES.iter().find_map(|(short, name)| Some((name, workload.strip_prefix(short)?)));
    match known {
        Some((name, variant)) if variant.len() == 2 => format!("{name}{}", variant.to_uppercase()),
        Some((name, variant)) => format!("{name}{variant}"),
        None => workload.to_string(),
    }
}

impl<'a> Comparison<'a> {
    /// Returns one of the results, for the properties that all of them share.
    pub(crate) fn first(&self) -> &'a Measurement {
        self.entries[0].result
    }

    /// Returns the results grouped by switches, in the order in which they were run.
    pub(crate) fn facets(&self) -> Vec<Facet<'a>> {
        let mut switches: Vec<Switches> = Vec::new();
        for Entry { result, .. } in &self.entries {
            if !switches.contains(&switches_of(result)) {
                switches.push(switches_of(result));
            }
        }
        let is_switched = self.is_switched();
        let facet = |(cu, ts, timestamps, opaque)| {
            let series = self.series((cu, ts, timestamps, opaque));
            Facet { cu, ts, timestamps, opaque, is_switched, series }
        };
        switches.into_iter().map(facet).collect()
    }

    fn series(&self, switches: Switches) -> Vec<Series<'a>> {
        let with = |protocol: &str| {
            let chosen = self.entries.iter().copied().filter(|entry| {
                switches_of(entry.result) == switches && entry.result.protocol == protocol
            });
            let mut entries: Vec<Entry<'a>> = chosen.collect();
            entries.sort_by_key(|entry| entry.result.threads);
            entries
        };
        let series = self
            .protocols()
            .into_iter()
            .map(|protocol| Series { protocol, entries: with(protocol) });
        series.filter(|series| !series.entries.is_empty()).collect()
    }

    /// Returns whether any switch is off in any result.
    pub(crate) fn is_switched(&self) -> bool {
        self.entries.iter().any(|entry| switches_of(entry.result) != (true, true, None, true))
    }

    /// Returns the protocols of the results, in the order of the registry.
    pub(crate) fn protocols(&self) -> Vec<&'static str> {
        let mut protocols: Vec<&str> =
            self.entries.iter().map(|entry| entry.result.protocol).collect();
        protocols.sort_by_key(|protocol| registry::place(protocol));
        protocols.dedup();
        protocols
    }

    /// Returns the numbers of threads of the results, the smallest first.
    pub(crate) fn threads(&self) -> Vec<usize> {
        let threads: BTreeSet<usize> =
            self.entries.iter().map(|entry| entry.result.threads).collect();
        threads.into_iter().collect()
    }
}

impl<'a> Facet<'a> {
    /// Returns the facet's results, protocol by protocol.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'a>> {
        self.series.iter().flat_map(|series| series.entries.iter().copied())
    }

    /// Returns the results with `threads` threads.
    pub(crate) fn with(&self, threads: usize) -> Vec<Entry<'a>> {
        self.entries().filter(|entry| entry.result.threads == threads).collect()
    }

    /// Returns the switches in a few words; an empty text if all results of the comparison have the
    /// default switches.
    pub(crate) fn words(&self) -> String {
        if !self.is_switched {
            return String::new();
        }
        let word = |on: bool| if on { "on" } else { "off" };
        let timestamps = self
            .timestamps
            .map_or_else(String::new, |timestamps| format!(", timestamps by {timestamps}"));
        let opaque = if self.opaque { "" } else { ", opacity off" };
        format!("CU {}, TS {}{timestamps}{opaque}", word(self.cu), word(self.ts))
    }
}
