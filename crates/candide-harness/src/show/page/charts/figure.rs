//! A part of a published figure, with a bar for each line. If a line is compared with another one,
//! the bar shows its throughput as a multiple of the other's.

use super::super::number::{counted, rate, times};
use super::bars::{Bar, Block, bars};
use super::frame::{group, panel};
use crate::results::{MeasuredLine, Point, Report};

/// Returns the chart, with a panel for each number of threads.
pub(crate) fn chart(report: &Report, lines: &[MeasuredLine]) -> String {
    let is_ratio = lines.iter().any(|line| line.base.is_some());
    let unit = if is_ratio {
        "throughput as a multiple of the line compared with"
    } else {
        "transactions per second"
    };
    let what = format!("{}: {unit}", lines[0].panel);
    let value =
        |point: &Point| if is_ratio { point.of_base.unwrap_or(1.0) } else { point.throughput_tps };
    let points =
        || lines.iter().flat_map(|line| line.points.iter().map(move |point| (line, point)));
    let most =
        points().map(|(_, point)| value(point)).fold(if is_ratio { 1.0 } else { 0.0 }, f64::max);
    let mut threads: Vec<usize> = points().map(|(_, point)| point.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    // Only the lines with a base are drawn here. The ratio of the line with which others are
    // compared is always 1.
    let compared = points().filter(|(line, _)| !is_ratio || line.base.is_some());
    let Some((best, point)) = compared.max_by(|(_, a), (_, b)| value(a).total_cmp(&value(b)))
    else {
        return String::new();
    };
    let words = |point: &Point| if is_ratio { times(value(point)) } else { rate(value(point)) };
    let finding = format!(
        "Most: {} for {} with {}.",
        words(point),
        best.label,
        counted(point.threads, "thread")
    );
    let panels = threads.into_iter().map(|threads| {
        let bar = |(line, point): (&MeasuredLine, &Point)| Bar {
            protocol: report.results[point.result].protocol,
            name: line.label.clone(),
            value: value(point),
            range: (!is_ratio).then(|| point.range()),
            words: words(point),
            attributes: String::new(),
        };
        let drawn = points().filter(|(_, point)| point.threads == threads).map(bar).collect();
        let block = Block { heading: String::new(), bars: drawn };
        let caption = counted(threads, "thread");
        let reference = is_ratio.then_some(1.0);
        let (height, drawn) = bars(&[block], most, if is_ratio { "\u{d7}" } else { "" }, reference);
        panel(&caption, &format!("{what}, {caption}"), height, &drawn)
    });
    group(&what, &finding, "", &panels.collect::<String>())
}
