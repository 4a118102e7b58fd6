//! The benefit of commit-time updates and timestamp splitting: throughput as a multiple of the
//! throughput without both.

use super::super::super::figure_rows::NOISE;
use super::super::comparison::{Comparison, Entry};
use super::super::number::{counted, times};
use super::bars::{Bar, Block, bars};
use super::frame::{group, panel};

/// The gains of a protocol with one number of threads.
struct Gains {
    threads: usize,
    protocol: &'static str,
    /// The names of the switches that are on, and the ratios.
    ratios: Vec<Gain>,
}

/// A ratio to the throughput without the switches.
struct Gain {
    name: &'static str,
    /// The ratio; `None` if it is in doubt.
    ratio: Option<f64>,
    /// The indexes of the results that are compared.
    of: (usize, usize),
}

/// Returns a chart with a panel for each number of threads. The chart is empty unless some setting
/// was measured both with a switch off and with that switch on.
pub(crate) fn chart(comparison: &Comparison<'_>) -> String {
    let gains = gains(comparison);
    let ratios =
        || gains.iter().flat_map(|gains| gains.ratios.iter().map(move |gain| (gain, gains)));
    if gains.is_empty() {
        return String::new();
    }
    let told = || ratios().filter_map(|(gain, of)| Some((gain.ratio?, gain.name, of)));
    let most = told().map(|(ratio, ..)| ratio).fold(1.0, f64::max);
    let least = told().map(|(ratio, ..)| ratio).fold(f64::INFINITY, f64::min);
    let range = told().max_by(|(a, ..), (b, ..)| a.total_cmp(b)).map(|(most, name, best)| {
        format!(
            "From {} to {}: most with {name} under {} with {}. ",
            times(least),
            times(most),
            best.protocol,
            counted(best.threads, "thread"),
        )
    });
    let in_doubt = match ratios().filter(|(gain, _)| gain.ratio.is_none()).count() {
        0 => String::new(),
        count => format!(" {} in doubt, and not drawn.", counted(count, "ratio")),
    };
    let what = format!(
        "{}: throughput with commit-time updates (CU) and timestamp splitting (TS), as a multiple of without",
        comparison.title
    );
    let finding = format!(
        "{}The line is at 1\u{d7}, where a switch changes nothing.{in_doubt}",
        range.unwrap_or_default(),
    );
    let panels = comparison.threads().into_iter().filter_map(|threads| {
        let blocks: Vec<Block> =
            gains.iter().filter(|gain| gain.threads == threads).map(block).collect();
        let caption = counted(threads, "thread");
        let (height, drawn) = bars(&blocks, most, "\u{d7}", Some(1.0));
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
        comparison.entries.iter().copied().filter(move |Entry { result, .. }| {
            result.other_timestamps() == timestamps && result.is_opacity_off() == is_opacity_off
        })
    };
    // A switch that was never off is on in the base of the comparison, too, and is not mentioned.
    let (cu, ts) = (results().all(|entry| entry.result.cu), results().all(|entry| entry.result.ts));
    let switched = [("CU", (true, ts)), ("TS", (cu, true)), ("CU and TS", (true, true))];
    let beyond = [!cu, !ts, !cu && !ts];
    let mut gains = Vec::new();
    for threads in comparison.threads() {
        for protocol in comparison.protocols() {
            let with = |switches: (bool, bool)| {
                let key = (protocol, threads, switches.0, switches.1);
                let mut results = results();
                results.find(|Entry { result, .. }| {
                    (result.protocol, result.threads, result.cu, result.ts) == key
                })
            };
            let Some(without) = with((cu, ts)) else { continue };
            let switched = switched.into_iter().zip(beyond).filter(|(_, is_beyond)| *is_beyond);
            let ratios: Vec<_> = switched
                .filter_map(|((name, switches), _)| {
                    let with = with(switches)?;
                    let ratio = with.result.ratio_to(without.result)?.ok();
                    Some(Gain { name, ratio, of: (with.index, without.index) })
                })
                .collect();
            if !ratios.is_empty() {
                gains.push(Gains { threads, protocol, ratios });
            }
        }
    }
    gains
}

fn block(gain: &Gains) -> Block {
    let bar = |&Gain { name, ratio, of: (with, without) }: &Gain| Bar {
        protocol: gain.protocol,
        name: name.to_string(),
        value: ratio,
        range: None,
        words: ratio.map_or_else(|| NOISE.to_string(), times),
        attributes: format!(" data-told=\"results/{with} results/{without}\""),
    };
    Block { heading: gain.protocol.to_string(), bars: gain.ratios.iter().map(bar).collect() }
}
