//! Throughput over time, for workloads that change while they run.

use super::super::comparison::{Comparison, Entry};
use super::super::markup::escape;
use super::super::number::{rate, short};
use super::super::palette::Look;
use super::frame::{WIDTH, group, panel};
use super::scale::{Scale, level, plumb};
use crate::results::{NamedPhase, Timeslices};

/// The height of a panel.
pub(super) const HEIGHT: f64 = 190.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = WIDTH - 16.0;
pub(super) const TOP: f64 = 10.0;
pub(super) const BOTTOM: f64 = HEIGHT - 42.0;

/// The largest number of points with which a phase is drawn.
const POINTS_PER_PHASE: usize = 25;

/// Returns a panel for each result that has phases, all to one scale.
pub(crate) fn chart(comparison: &Comparison<'_>) -> String {
    let mut timelines: Vec<(Entry<'_>, &Timeslices)> = comparison
        .facets()
        .iter()
        .flat_map(|facet| facet.entries())
        .filter_map(|entry| Some((entry, entry.result.timeline.as_ref()?)))
        .collect();
    timelines.sort_by_key(|(entry, _)| std::cmp::Reverse(entry.result.threads));
    let Some(&(first, phases)) = timelines.first() else { return String::new() };
    let most = timelines
        .iter()
        .flat_map(|(_, timeline)| rates(timeline))
        .map(|(_, rate)| rate)
        .fold(0.0, f64::max);
    let what = format!("{}: committed transactions per second over time", comparison.title);
    let panels = timelines.iter().map(|&(entry, timeline)| {
        let caption = entry.setting();
        panel(&caption, &format!("{what}, {caption}"), HEIGHT, &one(entry, timeline, most))
    });
    group(&what, &finding(first, phases), "", &panels.collect::<String>())
}

fn finding(entry: Entry<'_>, timeline: &Timeslices) -> String {
    let mut names: Vec<&str> = Vec::new();
    for named in &timeline.phases {
        if !names.contains(&named.name) {
            names.push(named.name);
        }
    }
    let means = names.iter().map(|name| {
        let phases = timeline.phases.iter().filter(|named| named.name == *name);
        let (committed, seconds) = phases
            .flat_map(|named| &named.phase.slices)
            .fold((0, 0.0), |(committed, seconds), slice| {
                (committed + slice.committed, seconds + slice.seconds)
            });
        format!(
            "{} txn/s in phases of {name}",
            rate(committed as f64 / f64::max(seconds, f64::MIN_POSITIVE))
        )
    });
    let shaded = names.get(1).map(|name| format!(" Shaded: {name}.")).unwrap_or_default();
    format!(
        "Under {}: {}.{shaded} Each point is the mean of about a {POINTS_PER_PHASE}th of a phase, over all runs.",
        entry.setting(),
        means.collect::<Vec<_>>().join(", "),
    )
}

/// Returns the points to draw: the seconds since the beginning, and the transactions per second.
fn rates(timeline: &Timeslices) -> Vec<(f64, f64)> {
    let mut rates = Vec::new();
    for (index, NamedPhase { phase, .. }) in timeline.phases.iter().enumerate() {
        let count = phase.slices.len().min(POINTS_PER_PHASE);
        let begun = index as f64 * timeline.phase_s;
        let length = (phase.slices.len() as f64 * timeline.slice_s).min(timeline.phase_s);
        let parts = phase.parts(count);
        rates.extend(parts.iter().enumerate().map(|(part, slice)| {
            (begun + (part as f64 + 0.5) / count as f64 * length, slice.throughput())
        }));
    }
    rates
}

fn one(entry: Entry<'_>, timeline: &Timeslices, most: f64) -> String {
    let end = timeline.phases.len() as f64 * timeline.phase_s;
    shades(timeline, &along(end)) + &curves(entry.result.protocol, &[rates(timeline)], most, end)
}

/// Returns a line through each list of points, each a time in seconds and a number. The scale of
/// times reaches to `end`, and that of numbers to `most`.
pub(super) fn curves(protocol: &str, lines: &[Vec<(f64, f64)>], most: f64, end: f64) -> String {
    let (up, along) = (Scale::new(most, BOTTOM, TOP, 3), along(end));
    let levels: String = up
        .ticks()
        .into_iter()
        .map(|value| level(value, up.place(value), LEFT, RIGHT, ""))
        .collect();
    let ticks = along
        .ticks()
        .into_iter()
        .map(|value| plumb(value, along.place(value), BOTTOM, BOTTOM + 4.0, Some(&short(value))));
    let line = |points: &Vec<(f64, f64)>| {
        let places: String = points
            .iter()
            .map(|&(time, value)| format!("{:.2},{:.2} ", along.place(time), up.place(value)))
            .collect();
        let values: Vec<String> = points.iter().map(|(_, value)| value.to_string()).collect();
        format!(
            "<polyline class=\"series\" points=\"{places}\" data-mark=\"y-points\" data-values=\"{}\"/>",
            values.join(" ")
        )
    };
    let axis = format!(
        "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">seconds</text>\n",
        (LEFT + RIGHT) / 2.0,
        HEIGHT - 6.0,
    );
    let drawn = Look::of(protocol).group(protocol, &lines.iter().map(line).collect::<String>());
    format!("{levels}{}{axis}{drawn}", ticks.collect::<String>())
}

/// Returns the scale of time, from zero to `end` seconds.
pub(super) fn along(end: f64) -> Scale {
    Scale::new(end, LEFT, RIGHT, 4)
}

/// Returns a shade behind every phase whose name is not that of the first phase.
fn shades(timeline: &Timeslices, along: &Scale) -> String {
    let first = timeline.phases.first().map(|named| named.name);
    let others = timeline.phases.iter().enumerate().filter(|(_, named)| Some(named.name) != first);
    let shade = |(index, named): (usize, &NamedPhase)| {
        let (from, to) = (
            along.place(index as f64 * timeline.phase_s),
            along.place((index + 1) as f64 * timeline.phase_s),
        );
        format!(
            "<rect class=\"shade\" x=\"{from:.2}\" y=\"{TOP}\" width=\"{:.2}\" height=\"{}\"><title>{}</title></rect>\n",
            to - from,
            BOTTOM - TOP,
            escape(named.name),
        )
    };
    others.map(shade).collect()
}
