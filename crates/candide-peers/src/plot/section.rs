//! A section of the plot: the maps of one kind, with keys of one size.

use super::panel::{self, Line, Mark, Panel};
use super::rows::{short, sizes};
use super::scale::Scale;
use super::style::Styles;
use super::svg::{ENTRY, HEADING, Point, Svg};
use crate::Kind;
use crate::figures::Cost;

/// The height of a section, including the room below it.
pub(super) const HEIGHT: f64 = panel::HEIGHT + 140.0;

/// The width to the left of the axes, for their numbers and their label.
const LEFT: f64 = 64.0;
const GAP: f64 = 28.0;
const LEGEND: f64 = 180.0;

/// The width of a section, which has two panels.
pub(super) const SECTION_WIDTH: f64 = 2.0 * (LEFT + panel::WIDTH + GAP) + LEGEND;

pub(super) struct Section<'c> {
    kind: Kind,
    key_bytes: usize,
    costs: Vec<&'c Cost>,
}

impl<'c> Section<'c> {
    /// Returns the sections of `costs`, in the order of `costs`.
    pub(super) fn of(costs: &'c [Cost]) -> Vec<Section<'c>> {
        let mut sections: Vec<Section<'c>> = Vec::new();
        for cost in costs {
            let same = |section: &&mut Section<'_>| {
                section.kind == cost.kind && section.key_bytes == cost.key_bytes
            };
            match sections.iter_mut().find(same) {
                Some(section) => section.costs.push(cost),
                None => sections.push(Section {
                    kind: cost.kind,
                    key_bytes: cost.key_bytes,
                    costs: vec![cost],
                }),
            }
        }
        sections
    }

    /// Draws the section with its upper left corner at `left` and `top`. `counted` is whether
    /// events were counted. Then the second panel shows cache misses, and otherwise dependent
    /// loads.
    pub(super) fn draw(&self, svg: &mut Svg, (left, top): Point, counted: bool, styles: &Styles) {
        let kind = match self.kind {
            Kind::Hash => "Hash maps",
            Kind::Ordered => "Ordered maps",
        };
        svg.text((left, top), &HEADING, &format!("{kind}, keys of {} bytes", self.key_bytes));
        let maps = self.maps();
        let top = top + 40.0;
        let mut x = left + LEFT;
        self.by_rows(&maps, styles).draw(svg, (x, top));
        x += panel::WIDTH + GAP + LEFT;
        let second = if counted { Section::by_misses } else { Section::in_loads };
        second(self, &maps, styles).draw(svg, (x, top));
        x += panel::WIDTH + GAP;
        for (index, map) in maps.iter().enumerate() {
            let (y, style) = (top + 8.0 + 21.0 * index as f64, styles.get(map));
            svg.line((x, y), (x + 26.0, y), style.colour, style.width);
            svg.marker(style.marker, (x + 13.0, y), style.colour, map);
            svg.text((x + 34.0, y + 4.0), &ENTRY, map);
        }
    }

    /// Returns the maps in the order of the right ends of their lines. The first map is the one
    /// whose lookups take longest with the most rows.
    fn maps(&self) -> Vec<&'static str> {
        let mut last: Vec<&Cost> = Vec::new();
        for &cost in &self.costs {
            match last.iter_mut().find(|last| last.map == cost.map) {
                Some(last) if last.rows < cost.rows => *last = cost,
                Some(_) => {}
                None => last.push(cost),
            }
        }
        last.sort_by(|one, other| other.nanoseconds.total_cmp(&one.nanoseconds));
        last.into_iter().map(|cost| cost.map).collect()
    }

    fn by_rows(&self, maps: &[&'static str], styles: &Styles) -> Panel {
        Panel {
            title: "Time of a lookup by the number of rows",
            x_label: "rows in the map (logarithmic; k: thousand, M: million)",
            y_label: "nanoseconds per lookup",
            x: Scale::logarithmic(&sizes(self.costs.iter().copied())),
            y: self.nanoseconds(),
            lines: self.lines(maps, styles, |cost| Some((cost.rows as f64, cost.nanoseconds))),
            labelled: false,
            unit: "ns",
        }
    }

    fn in_loads(&self, maps: &[&'static str], styles: &Styles) -> Panel {
        Panel {
            title: "The same time, in loads that depend on one another",
            x_label: "rows in the map (logarithmic; k: thousand, M: million)",
            y_label: "loads, each from one of as many lines as rows",
            x: Scale::logarithmic(&sizes(self.costs.iter().copied())),
            y: Scale::linear(self.costs.iter().map(|cost| cost.loads()).fold(0.0, f64::max)),
            lines: self.lines(maps, styles, |cost| Some((cost.rows as f64, cost.loads()))),
            labelled: false,
            unit: "loads",
        }
    }

    fn by_misses(&self, maps: &[&'static str], styles: &Styles) -> Panel {
        let misses = |cost: &Cost| cost.events.map(|events| events.misses);
        Panel {
            title: "Time of a lookup by its cache misses, at each number of rows",
            x_label: "cache misses per lookup (at the points: rows; close ones share a black label)",
            y_label: "nanoseconds per lookup",
            x: Scale::linear(self.costs.iter().filter_map(|cost| misses(cost)).fold(0.0, f64::max)),
            y: self.nanoseconds(),
            lines: self.lines(maps, styles, |cost| Some((misses(cost)?, cost.nanoseconds))),
            labelled: true,
            unit: "ns",
        }
    }

    fn nanoseconds(&self) -> Scale {
        Scale::linear(self.costs.iter().map(|cost| cost.nanoseconds).fold(0.0, f64::max))
    }

    /// Returns a line for each map. The line goes through all points for which `place` returns x
    /// and y.
    fn lines(
        &self,
        maps: &[&'static str],
        styles: &Styles,
        place: impl Fn(&Cost) -> Option<(f64, f64)>,
    ) -> Vec<Line> {
        let line = |&map: &&'static str| {
            let mut costs: Vec<&Cost> =
                self.costs.iter().copied().filter(|cost| cost.map == map).collect();
            costs.sort_by_key(|cost| cost.rows);
            let mark = |cost: &Cost| {
                let (x, y) = place(cost)?;
                Some(Mark { x, y, rows: short(cost.rows) })
            };
            Line {
                map,
                style: styles.get(map),
                marks: costs.into_iter().filter_map(mark).collect(),
            }
        };
        // The lines of the quickest maps are drawn last, so they are on top.
        maps.iter().map(line).collect()
    }
}
