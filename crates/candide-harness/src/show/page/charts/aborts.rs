//! Aborted attempts: their number, the reasons, and the conflicting transaction types.

use std::collections::BTreeMap;

use super::super::comparison::{Comparison, Entry, Facet};
use super::super::markup::escape;
use super::super::number::{counted, percent};
use super::super::palette::legend;
use super::bars::{Bar, Block, bars};
use super::frame::{about, group, panel};
use super::lines::{Quantity, lines};

const RATE: Quantity = Quantity {
    field: "abort_rate",
    unit: " %",
    value: |entry| entry.result.abort_ratio() * 100.0,
    range: None,
    words: |value| format!("{} of attempts aborted", percent(value / 100.0)),
};

/// The largest number of causes that are drawn for a result. The table has all causes.
const CAUSES_DRAWN: usize = 6;

/// Returns the charts, or a sentence if no attempt was aborted.
pub(crate) fn charts(comparison: &Comparison<'_>) -> String {
    if comparison.entries.iter().all(|entry| entry.result.aborted == 0) {
        return format!(
            "<p class=\"none\">{}: no attempt was aborted.</p>\n",
            escape(&comparison.title)
        );
    }
    rates(comparison) + &reasons(comparison) + &causes(comparison)
}

fn rates(comparison: &Comparison<'_>) -> String {
    let threads = comparison.threads();
    let most = comparison.entries.iter().map(|&entry| (RATE.value)(entry)).fold(0.0, f64::max);
    let what = format!("{}: aborted attempts, per cent of all attempts", comparison.title);
    let facets = comparison.facets();
    let panels = facets.iter().map(|facet| {
        let (height, drawn) = match threads.as_slice() {
            [_] => bars(
                &[Block { heading: String::new(), bars: facet.entries().map(rate_bar).collect() }],
                most,
                " %",
                None,
            ),
            _ => lines(facet, &RATE, most, &threads),
        };
        panel(&facet.words(), &about(&what, &facet.words()), height, &drawn)
    });
    let legend =
        if threads.len() > 1 { legend(comparison.protocols().into_iter()) } else { String::new() };
    group(&what, &worst(comparison), &legend, &panels.collect::<String>())
}

fn rate_bar(entry: Entry<'_>) -> Bar {
    Bar {
        protocol: entry.result.protocol,
        name: entry.result.protocol.to_string(),
        value: Some((RATE.value)(entry)),
        range: None,
        words: percent(entry.result.abort_ratio()),
        attributes: format!(" data-results=\"{}\" data-field=\"{}\"", entry.index, RATE.field),
    }
}

fn worst(comparison: &Comparison<'_>) -> String {
    let by_ratio =
        |a: &&Entry<'_>, b: &&Entry<'_>| a.result.abort_ratio().total_cmp(&b.result.abort_ratio());
    let Some(worst) = comparison.entries.iter().max_by(by_ratio) else { return String::new() };
    format!(
        "Most: {} under {}. An aborted attempt is run again.",
        percent(worst.result.abort_ratio()),
        worst.setting()
    )
}

/// Returns the facet's results with aborted attempts, with one number of threads: the largest with
/// which any attempt of the comparison was aborted.
fn busiest<'a>(comparison: &Comparison<'_>, facet: &Facet<'a>) -> Vec<Entry<'a>> {
    let threads = comparison
        .entries
        .iter()
        .filter(|entry| entry.result.aborted > 0)
        .map(|entry| entry.result.threads)
        .max();
    facet.with(threads.unwrap_or(1)).into_iter().filter(|entry| entry.result.aborted > 0).collect()
}

/// Returns `attempts` in per cent of all attempts of a result.
fn share(entry: Entry<'_>, attempts: u64) -> f64 {
    attempts as f64 / (entry.result.committed + entry.result.aborted) as f64 * 100.0
}

fn reasons(comparison: &Comparison<'_>) -> String {
    let bar = |entry: Entry<'_>, reason: &str, attempts: u64| Bar {
        protocol: entry.result.protocol,
        name: reason.replace('_', " "),
        value: Some(share(entry, attempts)),
        range: None,
        words: percent(share(entry, attempts) / 100.0),
        attributes: String::new(),
    };
    let what =
        format!("{}: aborted attempts by reason, per cent of all attempts", comparison.title);
    by_protocol(comparison, &what, "Reasons as the engine reports them", |entry| {
        let mut reasons: Vec<(&str, u64)> =
            entry.result.abort_reasons.iter().map(|(&name, &count)| (name, count)).collect();
        reasons.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        reasons.into_iter().map(|(reason, count)| bar(entry, reason, count)).collect()
    })
}

fn causes(comparison: &Comparison<'_>) -> String {
    if comparison.entries.iter().all(|entry| entry.result.causes.is_none()) {
        return String::new();
    }
    let what = format!(
        "{}: aborted attempts by the types of both transactions, per cent of all attempts",
        comparison.title
    );
    let finding = format!(
        "The {CAUSES_DRAWN} most frequent of each protocol; all are in the table. Met: the type of the transaction that was writing there at the same time. Recording causes lowers the throughput"
    );
    by_protocol(comparison, &what, &finding, |entry| {
        // Another chart shows the reasons. Causes that differ only in the reason are drawn as one
        // bar.
        let mut met: BTreeMap<String, u64> = BTreeMap::new();
        for cause in entry.result.causes.iter().flatten() {
            let other =
                if cause.met.is_empty() { "unknown".to_string() } else { cause.met.join(" or ") };
            *met.entry(format!("{} met {other} at {}", cause.aborted, cause.place)).or_default() +=
                cause.attempts;
        }
        let mut met: Vec<(String, u64)> = met.into_iter().collect();
        met.sort_by(|(_, a), (_, b)| b.cmp(a));
        let bar = |(name, attempts): (String, u64)| Bar {
            protocol: entry.result.protocol,
            name,
            value: Some(share(entry, attempts)),
            range: None,
            words: percent(share(entry, attempts) / 100.0),
            attributes: String::new(),
        };
        met.into_iter().take(CAUSES_DRAWN).map(bar).collect()
    })
}

/// Returns a panel for each facet, with a block for each protocol.
fn by_protocol(
    comparison: &Comparison<'_>,
    what: &str,
    finding: &str,
    bars_of: impl Fn(Entry<'_>) -> Vec<Bar>,
) -> String {
    let facets: Vec<(Facet<'_>, Vec<Block>)> = comparison
        .facets()
        .into_iter()
        .map(|facet| {
            let entries = busiest(comparison, &facet).into_iter();
            let blocks = entries.map(|entry| Block {
                heading: entry.result.protocol.to_string(),
                bars: bars_of(entry),
            });
            let blocks = blocks.filter(|block| !block.bars.is_empty()).collect();
            (facet, blocks)
        })
        .collect();
    let all = facets.iter().flat_map(|(_, blocks)| blocks).flat_map(|block| &block.bars);
    let most = all.filter_map(|bar| bar.value).fold(0.0, f64::max);
    if most == 0.0 {
        return String::new();
    }
    let panels = facets.iter().filter(|(_, blocks)| !blocks.is_empty()).map(|(facet, blocks)| {
        let (height, drawn) = bars(blocks, most, " %", None);
        panel(&facet.words(), &about(what, &facet.words()), height, &drawn)
    });
    let threads = facets
        .iter()
        .find_map(|(facet, _)| Some(busiest(comparison, facet).first()?.result.threads))
        .unwrap_or(1);
    let finding = format!("{finding}. With {}.", counted(threads, "thread"));
    group(what, &finding, "", &panels.collect::<String>())
}
