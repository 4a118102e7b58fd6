use super::draw;
use super::rows::short;
use crate::cli::Options;
use crate::counters::Events;
use crate::figures::Cost;
use crate::report::Report;
use crate::{Kind, Role};
use clap::Parser;

const MAPS: [(&str, Kind, Role); 3] = [
    ("ours", Kind::Hash, Role::Candide),
    ("theirs", Kind::Hash, Role::Peer),
    ("sorted", Kind::Ordered, Role::Peer),
];

fn report(counted: bool) -> Report {
    let mut report = Report::new(&Options::parse_from(["maps", "--misses"]));
    report.lookup_costs = MAPS
        .iter()
        .flat_map(|&(map, kind, role)| {
            [1000, 100_000].map(|rows| Cost {
                rows,
                key_bytes: 8,
                map,
                kind,
                role,
                nanoseconds: rows as f64 / 1000.0,
                load_nanoseconds: 50.0,
                events: counted
                    .then_some(Events { misses: rows as f64 / 10_000.0, instructions: 40.0 }),
            })
        })
        .collect();
    report
}

#[test]
fn a_map_has_a_line_in_each_panel_and_a_colour() {
    let svg = draw(&report(true), &MAPS);
    for (map, ..) in MAPS {
        let lines: Vec<&str> = svg
            .lines()
            .filter(|line| line.contains(&format!("<title>{map}</title></polyline>")))
            .collect();
        assert_eq!(lines.len(), 2, "{map}");
        let colours =
            lines.iter().map(|line| line.split("stroke=").nth(1).unwrap().split(' ').next());
        assert_eq!(colours.collect::<std::collections::HashSet<_>>().len(), 1, "{map}");
    }
    // If cache misses were counted, each point is labelled with its number of rows. The points of
    // the two hash maps coincide and share one label.
    assert_eq!(svg.matches("paint-order").count(), 4);
}

#[test]
fn without_counters_the_second_panel_has_dependent_loads() {
    let svg = draw(&report(false), &MAPS);
    assert_eq!(svg.matches("<polyline").count(), 2 * MAPS.len());
    assert!(!svg.contains("cache misses per lookup"));
    assert!(svg.contains("<title>ours, 100k rows: 2.0 loads</title>"));
}

#[test]
fn numbers_of_rows_are_abbreviated() {
    assert_eq!([7, 10_000, 2_500_000, 10_000_000].map(short), ["7", "10k", "2.5M", "10M"]);
    assert_eq!([123_456, 1_234_567].map(short), ["123k", "1.23M"]);
}
