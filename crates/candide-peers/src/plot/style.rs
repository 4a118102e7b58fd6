//! The style of each map, the same in all panels.

use std::collections::HashMap;

use super::svg::Marker;
use crate::{Kind, Role};

#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) colour: &'static str,
    pub(super) marker: Marker,
    /// The width of the map's line.
    pub(super) width: f64,
}

/// The colours of Candide's lines, which are warm. One usage has the same colour for hash tables
/// and for ordered tables. The two are never in one panel.
const CANDIDE: [&str; 3] = ["#d62728", "#f5871f", "#7f1d1d"];
const PEERS: [&str; 8] =
    ["#1f6fb5", "#2a9134", "#8e44ad", "#4aa3df", "#3d348b", "#7a8b00", "#e377c2", "#14b8c4"];
const YARDSTICKS: [&str; 2] = ["#7f7f7f", "#4d4d4d"];
const MARKERS: [Marker; 4] = [Marker::Square, Marker::Diamond, Marker::Triangle, Marker::Wedge];

pub(super) struct Styles(HashMap<&'static str, Style>);

impl Styles {
    /// Returns the styles of all known maps. A map's style depends on its place among the maps of
    /// the same role.
    pub(super) fn of(maps: &[(&'static str, Kind, Role)]) -> Styles {
        let style = |index: usize| {
            let (name, kind, role) = maps[index];
            let before = |also: fn(Kind, Kind) -> bool| {
                maps[..index].iter().filter(|other| other.2 == role && also(other.1, kind)).count()
            };
            let (among_kind, among_all) = (before(|one, other| one == other), before(|_, _| true));
            let style = match role {
                Role::Candide => Style {
                    colour: CANDIDE[among_kind % CANDIDE.len()],
                    marker: Marker::Circle,
                    width: 2.6,
                },
                Role::Peer => Style {
                    colour: PEERS[among_all % PEERS.len()],
                    marker: MARKERS[among_kind % MARKERS.len()],
                    width: 1.5,
                },
                Role::Yardstick => Style {
                    colour: YARDSTICKS[among_all % YARDSTICKS.len()],
                    marker: Marker::Square,
                    width: 1.5,
                },
            };
            (name, style)
        };
        Styles((0..maps.len()).map(style).collect())
    }

    pub(super) fn get(&self, map: &str) -> Style {
        self.0.get(map).copied().unwrap_or(Style {
            colour: "#000000",
            marker: Marker::Circle,
            width: 1.5,
        })
    }
}
