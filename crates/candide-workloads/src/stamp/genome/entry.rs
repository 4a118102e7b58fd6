//! The rows that chain the segments.

use candide::Record;

/// The number that stands for no segment.
pub const NONE: u32 = u32::MAX;

/// A segment's place in the chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
pub struct Entry {
    /// The segment's number, in the order of the different segments.
    #[key]
    pub number: u32,
    /// Whether no segment is before it.
    pub is_first: bool,
    /// The segment after it, or [`NONE`].
    pub next: u32,
    /// The number of nucleotides that both have in common.
    pub overlap: u32,
    /// The first segment of the chain, if this is the last one.
    #[group(chain)]
    pub first: u32,
    /// The last segment of the chain, if this is the first one.
    #[group(chain)]
    pub last: u32,
    /// The number of nucleotides of the chain, if this is the first segment.
    #[group(chain)]
    pub length: u32,
}
