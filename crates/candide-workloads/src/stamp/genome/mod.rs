//! genome: a gene is put together from segments of it that overlap.
//!
//! Threads insert the segments into a set, some in each transaction, which leaves one of each. Then
//! they make an entry for each segment, and one for each of its beginnings in an index by hash.
//! Then, for each length of overlap from the longest to the shortest, they look for the segment
//! whose beginning is the end of another one: if both are free, a transaction links them, and
//! updates the two ends of the chain. One chain is left in the end, which must be the gene.
//!
//! The generator sees to that: no text of as many nucleotides as the shortest overlap of
//! neighbouring segments occurs twice in the gene. A segment has at most 64 nucleotides, two bits
//! each.

mod entry;
mod gene;
mod knobs;
mod objects;
mod settle;

use candide::{Database, Protocol};

use super::repeated::Repeated;
use crate::{Failure, Loading, Size, Workload};
pub use entry::{Entry, NONE};
pub use knobs::Genome;
pub use objects::Sequencing;
pub use settle::{Found, Sequencer};

/// The types of transactions.
const KINDS: [&str; 3] = ["insert", "prepare", "match"];

/// The bytes of a nucleotide of a different segment: those of an element of the index.
const NUCLEOTIDE_BYTES: u64 = 100;
/// The bytes of a segment among the inputs.
const SEGMENT_BYTES: u64 = 17;

impl Workload for Genome {
    type Loaded<P: Protocol> = Repeated<P, Sequencing<P>>;

    const KINDS: &'static [&'static str] = &KINDS;
    const TABLES: &'static [&'static str] = &["entries"];

    fn name(&self) -> String {
        "genome".to_string()
    }

    fn keys(&self) -> u64 {
        1
    }

    fn size(&self) -> Size {
        let (gene, segment) = (u64::from(self.gene), u64::from(self.segment));
        let different = gene.saturating_sub(segment).saturating_add(1);
        Size::of(different, "nucleotides", segment * NUCLEOTIDE_BYTES)
            .and(u64::from(self.segments) * SEGMENT_BYTES)
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn differences(&self) -> Vec<&'static str> {
        vec![
            "the same gene is put together again and again, and one thread empties the index meanwhile",
            "threads take the next segments instead of equal shares",
        ]
    }

    fn validate(&self) -> Result<(), String> {
        Genome::validate(self)
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<Self::Loaded<P>, Failure> {
        let program = Sequencer::new(self, loading.seed, loading.stopped);
        Repeated::load(db, loading, program.ok_or(Failure::Stopped)?)
    }
}
