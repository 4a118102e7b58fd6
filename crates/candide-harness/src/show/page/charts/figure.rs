//! A part of a published figure, with a bar for each line. If a line is compared with another one,
//! the bar shows its throughput as a multiple of the other's.

use super::super::super::figure_rows::NOISE;
use super::super::number::{counted, rate, times};
use super::bars::{Bar, Block, bars};
use super::frame::{group, panel};
use crate::results::{MeasuredLine, Point, Report};

/// Returns the chart of the lines from index `first`, with a panel for each number of threads.
pub(crate) fn chart(report: &Report, first: usize, lines: &[MeasuredLine]) -> String {
    let is_ratio = lines.iter().any(|line| line.base.is_some());
    let unit = if is_ratio {
        "throughput as a multiple of the line compared with"
    } else {
        "transactions per second"
    };
    let what = format!("{}: {unit}", lines[0].panel);
    // The ratio of the line with which others are compared is 1. One in doubt is not drawn.
    let value = |point: &Point| match (is_ratio, point.doubt) {
        (false, _) => Some(point.throughput_tps),
        (true, Some(_)) => None,
        (true, None) => Some(point.of_base.unwrap_or(1.0)),
    };
    let points = || {
        lines.iter().enumerate().flat_map(move |(index, line)| {
            let points = line.points.iter().enumerate();
            points.map(move |(place, point)| ((first + index, place), line, point))
        })
    };
    let most = points()
        .filter_map(|(.., point)| value(point))
        .fold(if is_ratio { 1.0 } else { 0.0 }, f64::max);
    let mut threads: Vec<usize> = points().map(|(.., point)| point.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    if threads.is_empty() {
        return String::new();
    }
    let words = |value: f64| if is_ratio { times(value) } else { rate(value) };
    // The line with which others are compared is not among them.
    let compared = points()
        .filter(|(_, line, _)| !is_ratio || line.base.is_some())
        .filter_map(|(_, line, point)| Some((value(point)?, line, point)));
    let best = compared.max_by(|(a, ..), (b, ..)| a.total_cmp(b)).map(|(most, line, point)| {
        format!(
            "Most: {} for {} with {}.",
            words(most),
            line.label,
            counted(point.threads, "thread")
        )
    });
    let in_doubt = points().filter(|(.., point)| value(point).is_none()).count();
    let in_doubt = match in_doubt {
        0 => String::new(),
        count => format!(" {} in doubt, and not drawn.", counted(count, "ratio")),
    };
    let finding = best.unwrap_or_default() + &in_doubt;
    let panels = threads.into_iter().map(|threads| {
        let bar = |((index, place), line, point): ((usize, usize), &MeasuredLine, &Point)| Bar {
            protocol: report.results[point.result].protocol,
            name: line.label.clone(),
            value: value(point),
            range: (!is_ratio).then(|| point.range()),
            words: value(point).map_or_else(|| NOISE.to_string(), words),
            attributes: match line.base.is_some() {
                true => format!(" data-told=\"figure/lines/{index}/points/{place}\""),
                false => String::new(),
            },
        };
        let drawn = points().filter(|(.., point)| point.threads == threads).map(bar).collect();
        let block = Block { heading: String::new(), bars: drawn };
        let caption = counted(threads, "thread");
        let reference = is_ratio.then_some(1.0);
        let (height, drawn) = bars(&[block], most, if is_ratio { "\u{d7}" } else { "" }, reference);
        panel(&caption, &format!("{what}, {caption}"), height, &drawn)
    });
    group(&what, finding.trim_start(), "", &panels.collect::<String>())
}
