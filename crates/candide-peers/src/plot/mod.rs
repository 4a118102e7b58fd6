//! A plot of the costs of lookups: one SVG picture, which needs no other files, fonts or scripts.
//!
//! The picture has a section for each kind of map and size of key. A section has one panel that
//! shows the time of a lookup by the number of rows. If the system permits the counting of events,
//! a second panel shows the time by the number of cache misses. Otherwise the second panel shows
//! the time in loads that depend on one another. The legend lists the maps in the order of the
//! right ends of their lines.

mod label;
mod panel;
mod rows;
mod scale;
mod section;
mod style;
mod svg;

use crate::report::Report;
use crate::{Kind, Role};
use section::Section;
use style::Styles;
use svg::{FOOTNOTE, Svg, TITLE};

const MARGIN: f64 = 24.0;
const FOOTNOTE_HEIGHT: f64 = 16.0;

/// Draws the costs of a report. A map's style depends only on the map's place in `maps`, so the
/// style is the same in every picture.
pub(crate) fn draw(report: &Report, maps: &[(&'static str, Kind, Role)]) -> String {
    let styles = Styles::of(maps);
    let sections = Section::of(&report.lookup_costs);
    let counted = report.lookup_costs.iter().any(|cost| cost.events.is_some());
    let width = 2.0 * MARGIN + section::SECTION_WIDTH;
    let mut svg = Svg::default();
    let mut y = MARGIN + 16.0;
    svg.text((MARGIN, y), &TITLE, "What a lookup costs as maps grow");
    y += 22.0;
    let runs = if report.runs == 1 {
        "one run".to_string()
    } else {
        format!("medians of {} runs", report.runs)
    };
    let machine = &report.machine;
    let what = format!(
        "One thread, keys that are there, drawn uniformly; {runs}. {}, {} cores.",
        machine.cpu, machine.cores
    );
    for line in wrapped(&what, width) {
        svg.text((MARGIN, y), &FOOTNOTE, &line);
        y += FOOTNOTE_HEIGHT;
    }
    y += 18.0;
    for section in &sections {
        section.draw(&mut svg, (MARGIN, y), counted, &styles);
        y += section::HEIGHT;
    }
    for note in &report.notes {
        for line in wrapped(&format!("Note: {note}"), width) {
            svg.text((MARGIN, y), &FOOTNOTE, &line);
            y += FOOTNOTE_HEIGHT;
        }
    }
    svg.finish(width, y + MARGIN - FOOTNOTE_HEIGHT, "What a lookup costs as maps grow")
}

/// Breaks `text` into lines, so that it fits into a picture of this width.
fn wrapped(text: &str, width: f64) -> Vec<String> {
    let most = ((width - 2.0 * MARGIN) / svg::text_width(&FOOTNOTE, "n")) as usize;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests;
