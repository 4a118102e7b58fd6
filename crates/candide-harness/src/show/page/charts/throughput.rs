//! Committed transactions per second.

use super::super::comparison::{Comparison, Entry, Facet};
use super::super::number::{counted, rate, times};
use super::super::palette::legend;
use super::bars::{Bar, Block, bars};
use super::frame::{about, group, panel};
use super::lines::{Quantity, lines};

const THROUGHPUT: Quantity = Quantity {
    field: "throughput_tps",
    unit: "",
    value: |entry| entry.result.throughput_tps,
    range: Some(|entry| entry.result.range()),
    words: |value| format!("{} txn/s", rate(value)),
};

/// Returns the chart: lines by the number of threads, or bars if there is only one number of
/// threads.
pub(crate) fn chart(comparison: &Comparison<'_>) -> String {
    let threads = comparison.threads();
    let most = comparison.entries.iter().map(|entry| entry.result.range().1).fold(0.0, f64::max);
    let by = match threads.as_slice() {
        [only] => format!("with {}", counted(*only, "thread")),
        _ => "by number of threads".to_string(),
    };
    let what = format!("{}: committed transactions per second {by}", comparison.title);
    let facets = comparison.facets();
    let panels = facets.iter().map(|facet| {
        let (height, drawn) = match threads.as_slice() {
            [_] => bars(&[blocks(facet)], most, "", None),
            _ => lines(facet, &THROUGHPUT, most, &threads),
        };
        panel(&facet.words(), &about(&what, &facet.words()), height, &drawn)
    });
    let legend =
        if threads.len() > 1 { legend(comparison.protocols().into_iter()) } else { String::new() };
    group(&what, &finding(comparison), &legend, &panels.collect::<String>())
}

fn blocks(facet: &Facet<'_>) -> Block {
    let bar = |entry: Entry<'_>| Bar {
        protocol: entry.result.protocol,
        name: entry.result.protocol.to_string(),
        value: Some(entry.result.throughput_tps),
        range: Some(entry.result.range()),
        words: rate(entry.result.throughput_tps),
        attributes: mark_of(entry),
    };
    Block { heading: String::new(), bars: facet.entries().map(bar).collect() }
}

fn mark_of(entry: Entry<'_>) -> String {
    format!(" data-results=\"{}\" data-field=\"{}\"", entry.index, THROUGHPUT.field)
}

/// Describes the fastest result, and its speed-up over one thread under the same setting.
fn finding(comparison: &Comparison<'_>) -> String {
    let by_throughput = |a: &&Entry<'_>, b: &&Entry<'_>| {
        a.result.throughput_tps.total_cmp(&b.result.throughput_tps)
    };
    let Some(fastest) = comparison.entries.iter().max_by(by_throughput) else {
        return String::new();
    };
    let best = fastest.result;
    let alone = comparison.entries.iter().map(|entry| entry.result).find(|other| {
        (other.protocol, other.cu, other.ts, other.threads) == (best.protocol, best.cu, best.ts, 1)
            && other.other_timestamps() == best.other_timestamps()
            && other.opaque == best.opaque
            && best.threads > 1
    });
    let gain = alone.and_then(|alone| best.ratio_to(alone)).map(|ratio| match ratio {
        Ok(ratio) => format!(", {} as many as with one", times(ratio)),
        Err(doubt) => format!(" (not compared with one thread: {})", doubt.words()),
    });
    let runs = match best.tps_runs.len() {
        1 => "One run each.".to_string(),
        runs => {
            format!("Medians of {runs} runs; thin lines reach from the slowest to the fastest.")
        }
    };
    format!(
        "Most: {} txn/s under {}{}. {runs}",
        rate(best.throughput_tps),
        fastest.setting(),
        gain.unwrap_or_default()
    )
}
