//! The knobs, and the published configurations.

use serde::Serialize;

use super::tables::DIMENSIONS_MAX;
use crate::stamp::choices::{Form, Mode};
use crate::stamp::kept::Kept;
use crate::workload::{require, require_range};

/// The largest number of points. Sums of this many coordinates cannot overflow.
const POINTS_MAX: usize = 1 << 24;
/// The largest number of clusters.
const CLUSTERS_MAX: u32 = 1 << 16;

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct Kmeans {
    /// The published configuration from which the other knobs come.
    pub mode: Mode,
    /// The form of the transactions.
    pub form: Form,
    /// The number of points.
    pub points: usize,
    /// The number of coordinates of a point.
    pub dimensions: usize,
    /// The number of centres around which the points are generated.
    pub sources: u32,
    /// The number of clusters to find.
    pub clusters: u32,
    /// The share of points below which an iteration is the last one if no more points change their
    /// clusters.
    pub threshold: f64,
    /// What databases with these knobs share; empty at first.
    #[serde(skip)]
    pub kept: Kept,
}

impl Kmeans {
    /// Returns a published configuration.
    pub fn published(mode: Mode, form: Form) -> Self {
        let (points, dimensions, sources, threshold) = match mode {
            Mode::LowSim | Mode::HighSim => (2_048, 16, 16, 0.05),
            Mode::Low | Mode::High => (65_536, 32, 32, 0.00001),
            Mode::Drp => (262_144, 32, 32, 0.001),
            Mode::DrpHi => (262_144, 32, 32, 0.00001),
        };
        let clusters = match mode {
            Mode::Low | Mode::LowSim | Mode::DrpHi => 40,
            Mode::High | Mode::HighSim => 15,
            Mode::Drp => 160,
        };
        let kept = Kept::default();
        Kmeans { mode, form, points, dimensions, sources, clusters, threshold, kept }
    }

    /// Checks that all knobs are in range.
    pub(super) fn validate(&self) -> Result<(), String> {
        require_range("the number of points", 1..=POINTS_MAX, self.points)?;
        require_range("the number of dimensions", 1..=DIMENSIONS_MAX, self.dimensions)?;
        require_range("the number of sources", 1..=CLUSTERS_MAX, self.sources)?;
        require_range("the number of clusters", 1..=CLUSTERS_MAX, self.clusters)?;
        require(self.threshold >= 0.0, || {
            format!("the threshold must be at least 0, not {}", self.threshold)
        })
    }
}
