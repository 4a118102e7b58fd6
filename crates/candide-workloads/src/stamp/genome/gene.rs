//! The gene and its segments, and the sequential program.

use std::collections::{HashMap, HashSet};

use fastrand::Rng;

use super::entry::NONE;
use super::knobs::{Genome, shortest_overlap};
use crate::replay::Stopped;
use crate::rng;

/// The random stream from which the gene is drawn.
const STREAM: u64 = 1 << 32;

/// The number of segments that are inserted in one transaction, as in STAMP.
pub(super) const CHUNK: usize = 12;

/// Some nucleotides, two bits each, of which the last one is in the lowest bits.
pub(super) type Text = u128;

/// Draws a gene in which no text of `length` nucleotides occurs twice. Each nucleotide is a number
/// below 4.
fn draw_gene(rng: &mut Rng, gene: u32, length: u32) -> Vec<u8> {
    let mask = (1 << (2 * length)) - 1;
    loop {
        let (mut drawn, mut text, mut seen) = (Vec::new(), 0u64, HashSet::new());
        while drawn.len() < gene as usize {
            let first = rng.u8(..4);
            let is_short = drawn.len() + 1 < length as usize;
            let mut candidates = (0..4).map(|summand| (first + summand) % 4);
            let next = candidates
                .find(|&next| is_short || seen.insert((text << 2 | u64::from(next)) & mask));
            let Some(next) = next else { break };
            drawn.push(next);
            text = (text << 2 | u64::from(next)) & mask;
        }
        if drawn.len() == gene as usize {
            return drawn;
        }
    }
}

/// The gene and its segments.
#[derive(Debug, PartialEq)]
pub(super) struct Gene {
    /// The number of nucleotides of a segment.
    pub(super) segment: u32,
    /// The nucleotides, as numbers below 4.
    pub(super) nucleotides: Vec<u8>,
    /// The segments in random order, many of them several times.
    pub(super) segments: Vec<Text>,
}

impl Gene {
    /// Draws the gene, and segments that cover it.
    pub(super) fn draw(knobs: &Genome, seed: u64) -> Gene {
        let mut rng = rng::stream(seed, STREAM);
        let &Genome { gene, segment, segments, .. } = knobs;
        let overlap = shortest_overlap(gene);
        let nucleotides = draw_gene(&mut rng, gene, overlap);
        let last = gene - segment;
        let covering = (0..last).step_by((segment - overlap) as usize).chain([last]);
        let mut starts: Vec<u32> = covering.collect();
        starts.extend((starts.len()..segments as usize).map(|_| rng.u32(..=last)));
        rng.shuffle(&mut starts);
        let text = |start: u32| {
            let text = &nucleotides[start as usize..][..segment as usize];
            text.iter().fold(0, |text, &next| text << 2 | Text::from(next))
        };
        let segments = starts.into_iter().map(text).collect();
        Gene { segment, nucleotides, segments }
    }

    /// Returns the first nucleotides of a segment, `length` of them.
    pub(super) fn beginning(&self, segment: Text, length: u32) -> Text {
        segment >> (2 * (self.segment - length))
    }

    /// Returns the different ones among the first `count` segments, sorted.
    pub(super) fn different(&self, count: usize) -> Vec<Text> {
        let set: HashSet<Text> =
            self.segments[..count.min(self.segments.len())].iter().copied().collect();
        let mut different: Vec<Text> = set.into_iter().collect();
        different.sort_unstable();
        different
    }

    /// Joins segments, each with the overlap with the next one. Returns the nucleotides.
    pub(super) fn join(&self, chain: impl Iterator<Item = (Text, u32)>) -> Vec<u8> {
        let (mut joined, mut skipped) = (Vec::new(), 0);
        for (segment, overlap) in chain {
            let rest = (0..self.segment - skipped).rev();
            joined.extend(rest.map(|place| (segment >> (2 * place) & 3) as u8));
            skipped = overlap;
        }
        joined
    }

    /// Puts the gene together on one thread, without transactions. Returns it, and how many
    /// transactions threads need for the same; `None` if it was told to stop.
    pub(super) fn sequential(&self, stopped: Stopped<'_>) -> Option<(Vec<u8>, u64)> {
        let different = self.different(self.segments.len());
        let (count, mut beginnings) = (different.len(), HashMap::new());
        for (&segment, number) in different.iter().zip(0..) {
            for length in 1..self.segment {
                let hash = hash(self.beginning(segment, length));
                beginnings.entry((length, hash)).or_insert_with(Vec::new).push(number);
            }
        }
        let mut transactions = self.segments.len().div_ceil(CHUNK) as u64;
        transactions += count as u64 * u64::from(self.segment);
        let mut chains = Chains::new(count);
        for length in (1..self.segment).rev() {
            if stopped() {
                return None;
            }
            for (end, &segment) in different.iter().enumerate() {
                if chains.next[end].0 == NONE {
                    transactions += 1;
                    let text = ending(segment, length);
                    let fitting = beginnings.get(&(length, hash(text))).into_iter().flatten();
                    let begins = |&&start: &&u32| {
                        self.beginning(different[start as usize], length) == text
                            && chains.is_free(start as usize, end)
                    };
                    let start = fitting.copied().find(|start| begins(&start));
                    start.into_iter().for_each(|start| chains.link(end, start, length));
                }
            }
        }
        let links = chains.in_order().into_iter();
        let chain = links.map(|(number, overlap)| (different[number as usize], overlap));
        Some((self.join(chain), transactions))
    }
}

/// Returns the last nucleotides of a segment, `length` of them.
pub(super) fn ending(segment: Text, length: u32) -> Text {
    segment & ((1 << (2 * length)) - 1)
}

/// Returns the hash of a text.
pub(super) fn hash(text: Text) -> u64 {
    let word = (text as u64) ^ ((text >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// The chains of the sequential program.
struct Chains {
    /// The segment that follows each one, and the overlap with it.
    next: Vec<(u32, u32)>,
    /// Whether a segment is the first one of its chain.
    is_first: Vec<bool>,
    /// The first one of the chain of each last one.
    first: Vec<usize>,
    /// The last one of the chain of each first one.
    last: Vec<usize>,
}

impl Chains {
    fn new(count: usize) -> Chains {
        let (first, last) = ((0..count).collect(), (0..count).collect());
        Chains { next: vec![(NONE, 0); count], is_first: vec![true; count], first, last }
    }

    /// Returns whether `start` is the first one of another chain than that whose last one is `end`.
    fn is_free(&self, start: usize, end: usize) -> bool {
        self.is_first[start] && self.first[end] != start
    }

    fn link(&mut self, end: usize, start: u32, overlap: u32) {
        self.next[end] = (start, overlap);
        let start = start as usize;
        self.is_first[start] = false;
        let (first, last) = (self.first[end], self.last[start]);
        (self.first[last], self.last[first]) = (first, last);
    }

    /// Returns all segments, chain by chain, each with its overlap with the next one.
    fn in_order(&self) -> Vec<(u32, u32)> {
        let mut all = Vec::new();
        for first in (0..self.next.len()).filter(|&number| self.is_first[number]) {
            let mut number = first as u32;
            while number != NONE {
                let (next, overlap) = self.next[number as usize];
                all.push((number, overlap));
                number = next;
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::choices::Scale;
    use crate::stamp::genome::knobs::least_segments;

    #[test]
    fn the_sequential_program_finds_the_gene_from_few_segments_and_from_many() {
        for segments in [least_segments(256, 16), 100, 5_000] {
            let knobs = Genome { segments, ..Genome::published(Scale::Sim) };
            let gene = Gene::draw(&knobs, 5);
            assert_eq!(gene.segments.len(), segments as usize);
            let (found, transactions) = gene.sequential(&|| false).expect("not stopped");
            assert_eq!(found, gene.nucleotides, "{segments} segments");
            assert!(transactions > u64::from(segments) / 12, "{segments} segments");
            assert_eq!(gene.sequential(&|| true), None);
        }
    }

    #[test]
    fn genes_follow_from_the_seed_and_repeat_no_text_as_long_as_the_shortest_overlap() {
        let knobs = Genome { gene: 4_000, segments: 600, ..Genome::published(Scale::Sim) };
        let [gene, same, other] = [5, 5, 6].map(|seed| Gene::draw(&knobs, seed));
        assert!(gene == same && gene != other);
        let texts = gene.nucleotides.windows(shortest_overlap(4_000) as usize);
        assert_eq!(texts.clone().collect::<HashSet<_>>().len(), texts.len());
        let segment = gene.segments[0];
        assert_eq!(gene.beginning(segment, 16), segment);
        assert_eq!(gene.beginning(segment, 1), segment >> 30);
        assert_eq!(ending(segment, 2), segment % 16);
    }
}
