//! The benefit of commit-time updates and timestamp splitting: throughput as a multiple of the
//! throughput without both.

use super::super::comparison::Comparison;
use super::super::number::{counted, times};
use super::bars::{Bar, Block, bars};
use super::frame::{group, panel};

/// The gains of a protocol with one number of threads.
struct Gains {
    threads: usize,
    protocol: &'static str,
    /// The names of the switches that are on, and the ratio.
    ratios: Vec<(&'static str, f64)>,
}

/// Returns a chart with a panel for each number of threads. The chart is empty unless some setting
/// was measured both with a switch off and with that switch on.
pub(crate) fn chart(comparison: &Comparison<'_>) -> String {
    let gains = gains(comparison);
    let ratios = || {
        gains
            .iter()
            .flat_map(|gain| gain.ratios.iter().map(move |&(name, ratio)| (ratio, name, gain)))
    };
    let Some((most, name, best)) = ratios().max_by(|(a, ..), (b, ..)| a.total_cmp(b)) else {
        return String::new();
    };
    let least = ratios().map(|(ratio, ..)| ratio).fold(f64::INFINITY, f64::min);
    let what = format!(
        "{}: throughput with commit-time updates (CU) and timestamp splitting (TS), as a multiple of without",
        comparison.title
    );
    let finding = format!(
        "From {} to {}: most with {name} under {} with {}. The line is at 1\u{d7}, where a switch changes nothing.",
        times(least),
        times(most),
        best.protocol,
        counted(best.threads, "thread"),
    );
    let panels = comparison.threads().into_iter().filter_map(|threads| {
        let blocks: Vec<Block> =
            gains.iter().filter(|gain| gain.threads == threads).map(block).collect();
        let caption = counted(threads, "thread");
        let (height, drawn) = bars(&blocks, most.max(1.0), "\u{d7}", Some(1.0));
        (!blocks.is_empty()).then(|| panel(&caption, &format!("{what}, {caption}"), height, &drawn))
    });
    group(&what, &finding, "", &panels.collect::<String>())
}

fn gains(comparison: &Comparison<'_>) -> Vec<Gains> {
    // Only results with one source of timestamps and one opacity count, since the benefit of
    // another one is no gain of these switches.
    let is_opacity_off = comparison.first().is_opacity_off();
    let timestamps = comparison.first().other_timestamps();
    let results = || {
        let results = comparison.entries.iter().map(|entry| entry.result);
        results.filter(move |result| {
            result.other_timestamps() == timestamps && result.is_opacity_off() == is_opacity_off
        })
    };
    // A switch that was never off is on in the base of the comparison, too, and is not mentioned.
    let (cu, ts) = (results().all(|result| result.cu), results().all(|result| result.ts));
    let switched = [("CU", (true, ts)), ("TS", (cu, true)), ("CU and TS", (true, true))];
    let beyond = [!cu, !ts, !cu && !ts];
    let mut gains = Vec::new();
    for threads in comparison.threads() {
        for protocol in comparison.protocols() {
            let with = |switches: (bool, bool)| {
                let key = (protocol, threads, switches.0, switches.1);
                let mut results = results();
                let found = results.find(|result| {
                    (result.protocol, result.threads, result.cu, result.ts) == key
                })?;
                Some(found.throughput_tps)
            };
            let Some(without) = with((cu, ts)).filter(|&tps| tps > 0.0) else { continue };
            let switched = switched.into_iter().zip(beyond).filter(|(_, is_beyond)| *is_beyond);
            let ratios: Vec<_> = switched
                .filter_map(|((name, switches), _)| Some((name, with(switches)? / without)))
                .collect();
            if !ratios.is_empty() {
                gains.push(Gains { threads, protocol, ratios });
            }
        }
    }
    gains
}

fn block(gain: &Gains) -> Block {
    let bar = |&(name, ratio): &(&str, f64)| Bar {
        protocol: gain.protocol,
        name: name.to_string(),
        value: ratio,
        range: None,
        words: times(ratio),
        attributes: String::new(),
    };
    Block { heading: gain.protocol.to_string(), bars: gain.ratios.iter().map(bar).collect() }
}
