//! The knobs, and the published configurations.

use serde::Serialize;

use crate::stamp::choices::Scale;
use crate::stamp::kept::Kept;
use crate::workload::{require, require_range};

/// The largest number of nucleotides of a segment.
pub(super) const NUCLEOTIDES_MAX: u32 = 64;

/// The longest gene.
const GENE_MAX: u32 = 1 << 24;
/// The largest number of segments.
const SEGMENTS_MAX: u32 = 1 << 26;

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct Genome {
    /// The published configuration from which the other knobs come.
    pub mode: Scale,
    /// The number of nucleotides of the gene.
    pub gene: u32,
    /// The number of nucleotides of a segment.
    pub segment: u32,
    /// The number of segments.
    pub segments: u32,
    /// What databases with these knobs share; empty at first.
    #[serde(skip)]
    pub kept: Kept,
}

impl Genome {
    /// Returns a published configuration.
    pub fn published(mode: Scale) -> Self {
        let (gene, segment, segments) = match mode {
            Scale::Sim => (256, 16, 16_384),
            Scale::Real => (16_384, 64, 16_777_216),
        };
        Genome { mode, gene, segment, segments, kept: Kept::default() }
    }

    /// Checks that all knobs are in range.
    pub(super) fn validate(&self) -> Result<(), String> {
        let &Genome { gene, segment, segments, .. } = self;
        require_range("the length of the gene", 1..=GENE_MAX, gene)?;
        let least = shortest_overlap(gene) + 1;
        require_range("the length of a segment", least..=NUCLEOTIDES_MAX, segment)?;
        require(segment <= gene, || {
            format!("a segment must not be longer than the gene, which has {gene} nucleotides")
        })?;
        let least = least_segments(gene, segment);
        require_range("the number of segments", least..=SEGMENTS_MAX, segments)
    }
}

/// Returns the length of the shortest overlap of neighbours. There are 64 times as many texts of
/// this length as the gene has, so that it is easy to draw a gene in which none occurs twice.
pub(super) fn shortest_overlap(gene: u32) -> u32 {
    (1..).find(|&length| 1 << (2 * length) >= 64 * u64::from(gene)).expect("64 bits are enough")
}

/// Returns the least number of segments that cover the gene with overlaps that are long enough.
pub(super) fn least_segments(gene: u32, segment: u32) -> u32 {
    (gene - segment).div_ceil(segment - shortest_overlap(gene)) + 1
}
