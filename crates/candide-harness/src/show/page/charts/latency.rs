//! Latencies of each transaction type, with a panel for each percentile, all to one logarithmic
//! scale.

use super::super::comparison::{Comparison, Entry};
use super::super::markup::{escape, folded};
use super::super::number::{counted, decimal};
use super::super::palette::{Look, legend};
use super::frame::{WIDTH, about, group, mark, panel, tip};
use super::scale::{LogScale, log_plumb};
use crate::results::Transactions;

const PITCH: f64 = 13.0;
const GAP: f64 = 10.0;
const RIGHT: f64 = WIDTH - 22.0;
const LETTER: f64 = 7.6;

struct Percentile {
    name: &'static str,
    field: &'static str,
    micros: fn(&Transactions) -> f64,
}

const PERCENTILES: [Percentile; 4] = [
    Percentile { name: "median", field: "p50_us", micros: |kind| kind.p50_us },
    Percentile { name: "99th percentile", field: "p99_us", micros: |kind| kind.p99_us },
    Percentile { name: "99.9th percentile", field: "p999_us", micros: |kind| kind.p999_us },
    Percentile { name: "slowest", field: "max_us", micros: |kind| kind.max_us },
];

/// The part of the name of a transaction type that only checks tables. Such types read whole
/// tables, and are drawn apart from others.
const AUDIT: &str = "audit";

/// Shows the results of the first facet with the largest number of threads. Results with fewer
/// threads or other switches are folded.
pub(crate) fn chart(comparison: &Comparison<'_>) -> String {
    let facets = comparison.facets();
    let threads = comparison.threads();
    let settings =
        facets.iter().flat_map(|facet| threads.iter().rev().map(move |&threads| (facet, threads)));
    let mut settings = settings.filter_map(|(facet, threads)| {
        let entries = facet.with(threads);
        let setting = about(&counted(threads, "thread"), &facet.words());
        (!entries.is_empty()).then_some((setting, entries))
    });
    let Some((setting, entries)) = settings.next() else { return String::new() };
    let [kinds, audits] = kinds(&entries);
    let mut shown = String::new();
    for (of, kinds) in [("each transaction type", &kinds), ("audits, which check tables", &audits)]
    {
        if kinds.is_empty() {
            continue;
        }
        let what = format!("{}: latency of {of}, in \u{b5}s, {setting}", comparison.title);
        shown += &group(
            &what,
            &slowest(&entries, kinds),
            &legend(entries.iter().map(|entry| entry.result.protocol)),
            &panels(&what, &entries, kinds),
        );
    }
    let others = settings.map(|(setting, entries)| {
        let drawn: String = self::kinds(&entries)
            .iter()
            .filter(|kinds| !kinds.is_empty())
            .map(|kinds| {
                format!("<div class=\"panels\">\n{}</div>\n", panels(&setting, &entries, kinds))
            })
            .collect();
        folded(&format!("Latency, {setting}"), &drawn)
    });
    format!("<div class=\"wide\">\n{shown}{}</div>\n", others.collect::<String>())
}

/// Returns the transaction types of the results: those that do the workload's work, and audits.
fn kinds(entries: &[Entry<'_>]) -> [Vec<&'static str>; 2] {
    let mut kinds: Vec<&str> =
        entries.iter().flat_map(|entry| entry.result.transactions.keys().copied()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let (audits, kinds) = kinds.into_iter().partition(|kind| kind.contains(AUDIT));
    [kinds, audits]
}

fn slowest(entries: &[Entry<'_>], shown: &[&str]) -> String {
    let kinds = entries.iter().flat_map(|entry| {
        entry.result.transactions.iter().map(|(name, kind)| (*entry, name, kind))
    });
    let kinds = kinds.filter(|(_, name, _)| shown.contains(name));
    let worst = kinds.max_by(|(.., a), (.., b)| a.p99_us.total_cmp(&b.p99_us));
    let words = worst.map(|(entry, name, kind)| {
        format!(
            "Highest 99th percentile: {name} under {}, {} \u{b5}s (median {}). ",
            entry.result.protocol,
            decimal(kind.p99_us),
            decimal(kind.p50_us)
        )
    });
    let span = entries.first().map_or("", |entry| entry.result.latency_span());
    words.unwrap_or_default() + &format!("Latencies are {span}. The scale is logarithmic.")
}

fn panels(what: &str, entries: &[Entry<'_>], kinds: &[&str]) -> String {
    let left =
        kinds.iter().map(|kind| kind.chars().count()).max().unwrap_or(0) as f64 * LETTER + 10.0;
    let of_all = entries.iter().flat_map(|entry| &entry.result.transactions);
    let values = of_all
        .filter(|(name, _)| kinds.contains(name))
        .flat_map(|(_, kind)| PERCENTILES.map(|percentile| (percentile.micros)(kind)));
    let across = LogScale::new(values, left, RIGHT);
    let one = |percentile| one(what, entries, kinds, percentile, (&across, left));
    PERCENTILES.iter().map(one).collect()
}

/// Returns the panel of a percentile. The panel has a row for each transaction type, in which each
/// protocol has a marker. `across` is the scale, which begins at `left`.
fn one(
    what: &str,
    entries: &[Entry<'_>],
    kinds: &[&str],
    percentile: &Percentile,
    (across, left): (&LogScale, f64),
) -> String {
    let micros = |entry: Entry<'_>, kind: &str| {
        Some((percentile.micros)(entry.result.transactions.get(kind)?))
    };
    let height = entries.len() as f64 * PITCH + GAP;
    let mut rows = String::new();
    for (row, kind) in kinds.iter().enumerate() {
        let top = row as f64 * height + 4.0;
        let names = (left - 6.0, top + (height - GAP) / 2.0 + 4.0);
        rows += &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
            names.0,
            names.1,
            escape(kind)
        );
        for (line, &entry) in entries.iter().enumerate() {
            let y = top + (line as f64 + 0.5) * PITCH;
            rows += &micros(entry, kind).map_or(String::new(), |value| {
                dot(entry, kind, percentile, value, (across.place(value), y), left)
            });
        }
    }
    let bottom = kinds.len() as f64 * height;
    let ticks = across.ticks().map(|value| log_plumb(value, across.place(value), 2.0, bottom));
    let drawn = ticks.collect::<String>() + &rows;
    panel(
        &format!("{}, \u{b5}s", percentile.name),
        &format!("{what}: {}", percentile.name),
        bottom + 24.0,
        &drawn,
    )
}

/// Returns the marker of a value at `(x, y)`, and a dotted line to it from the beginning of the
/// scale. The length of the line says nothing, since the scale is logarithmic.
fn dot(
    entry: Entry<'_>,
    kind: &str,
    percentile: &Percentile,
    value: f64,
    (x, y): (f64, f64),
    left: f64,
) -> String {
    let protocol = entry.result.protocol;
    let look = Look::of(protocol);
    let attributes =
        mark("x", value, entry.index, &format!("transactions/{kind}/{}", percentile.field));
    let words = format!("{kind} under {protocol}, {}: {} \u{b5}s", percentile.name, decimal(value));
    let line = format!(
        "<line class=\"leader\" x1=\"{left:.2}\" x2=\"{x:.2}\" y1=\"{y:.2}\" y2=\"{y:.2}\"/>"
    );
    look.group(protocol, &format!("{}{line}{}", tip(&words), look.marker(x, y, &attributes)))
}
