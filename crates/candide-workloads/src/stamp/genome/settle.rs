//! The program but for its objects, and the check.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::entry::{Entry, NONE};
use super::gene::{CHUNK, Gene, Text, ending, hash};
use super::knobs::Genome;
use crate::Consistency;
use crate::replay::Stopped;
use crate::stamp::repeated::Program;
use crate::stamp::timed;
use crate::workload::lock;

/// The gene, and what the sequential program needs.
struct Prepared {
    gene: Gene,
    transactions: u64,
    took: Duration,
}

/// The program but for its objects.
pub struct Sequencer {
    prepared: Arc<Prepared>,
    /// The next chunk, beginning or segment of the stage, which the threads share out.
    pub(super) cursor: AtomicUsize,
    /// Whether another segment follows. Only the thread that has taken a segment changes it.
    pub(super) is_linked: Vec<AtomicBool>,
    /// The different segments, once they are known.
    texts: Mutex<Arc<Vec<Text>>>,
}

/// The contents of the objects.
#[derive(Debug, PartialEq)]
pub struct Found {
    /// The different segments, sorted.
    pub(super) texts: Vec<Text>,
    /// Their beginnings, sorted.
    pub(super) beginnings: Vec<(u32, u64, u32)>,
    /// Their places in the chains.
    pub(super) entries: Vec<Entry>,
}

impl Sequencer {
    /// Draws the gene and runs the sequential program. Returns `None` if `stopped` returns `true`
    /// meanwhile.
    pub(super) fn new(knobs: &Genome, seed: u64, stopped: Stopped<'_>) -> Option<Sequencer> {
        let prepare = || {
            let gene = Gene::draw(knobs, seed);
            let ((found, transactions), took) = timed(|| gene.sequential(stopped)).ok_or(())?;
            assert!(found == gene.nucleotides, "the generator sees to it that there is one gene");
            Ok::<_, ()>(Prepared { gene, transactions, took })
        };
        let inputs = (seed, knobs.gene, knobs.segment, knobs.segments);
        let prepared = knobs.kept.get_or(&inputs, prepare).ok()?;
        let is_linked = (0..knobs.segments).map(|_| AtomicBool::new(false)).collect();
        Some(Sequencer {
            prepared,
            cursor: AtomicUsize::new(0),
            is_linked,
            texts: Mutex::default(),
        })
    }

    pub(super) fn gene(&self) -> &Gene {
        &self.prepared.gene
    }

    /// Returns the different segments.
    pub(super) fn texts(&self) -> Arc<Vec<Text>> {
        lock(&self.texts).clone()
    }

    pub(super) fn keep_texts(&self, texts: Vec<Text>) {
        *lock(&self.texts) = Arc::new(texts);
    }

    /// Returns the overlap for which a stage looks.
    pub(super) fn overlap(&self, stage: usize) -> u32 {
        self.gene().segment + 1 - stage as u32
    }

    /// Returns the segment of which transaction `number` of the second stage inserts something: a
    /// beginning of a length, or the entry if that is 0.
    pub(super) fn prepared_at(&self, number: usize) -> (u32, u32) {
        let segment = self.gene().segment as usize;
        ((number / segment) as u32, (number % segment) as u32)
    }

    /// Returns the entry of a segment that is a chain of its own.
    pub(super) fn alone(&self, number: u32) -> Entry {
        let length = self.gene().segment;
        Entry {
            number,
            is_first: true,
            next: NONE,
            overlap: 0,
            first: number,
            last: number,
            length,
        }
    }

    /// Returns how many transactions of the second stage have been run, of those that `all`
    /// segments need, and the beginnings that they have inserted.
    fn beginnings(&self, stage: usize, texts: &[Text]) -> (usize, Vec<(u32, u64, u32)>) {
        let all = texts.len() * self.gene().segment as usize;
        let done = match stage {
            0 => 0,
            1 => self.cursor.load(Ordering::Relaxed).min(all),
            _ => all,
        };
        let beginning = |(number, length): (u32, u32)| {
            let text = self.gene().beginning(texts[number as usize], length);
            (length, hash(text), number)
        };
        let inserted = (0..done).map(|number| self.prepared_at(number));
        let mut all: Vec<_> = inserted.filter(|at| at.1 > 0).map(beginning).collect();
        all.sort_unstable();
        (done, all)
    }

    /// Goes through all chains. Returns the chains, and a sentence on each that is not as its
    /// segments say.
    fn chains(&self, Found { texts, entries, .. }: &Found) -> (Vec<Vec<u32>>, Vec<String>) {
        let (mut chains, mut wrong, mut before) = (Vec::new(), Vec::new(), vec![0; entries.len()]);
        for &Entry { number, next, overlap, .. } in entries.iter().filter(|at| at.next != NONE) {
            let beginning =
                texts.get(next as usize).map(|&text| self.gene().beginning(text, overlap));
            if beginning != Some(ending(texts[number as usize], overlap)) {
                wrong.push(format!("segment {number} does not end as segment {next} begins"));
            }
            before.get_mut(next as usize).into_iter().for_each(|before| *before += 1);
        }
        for (entry, before) in entries.iter().zip(&before) {
            if *before != i32::from(!entry.is_first) {
                wrong.push(format!("segment {} follows {before} others", entry.number));
            }
        }
        for first in entries.iter().filter(|entry| entry.is_first) {
            let (mut chain, mut length, mut at) = (vec![first.number], self.gene().segment, first);
            while let Some(next) = entries.get(at.next as usize) {
                chain.push(next.number);
                length += self.gene().segment - at.overlap;
                if chain.len() > entries.len() {
                    break;
                }
                at = next;
            }
            if (first.last, first.length, at.first) != (at.number, length, first.number) {
                wrong.push(format!("the chain of segment {} has other ends", first.number));
            }
            chains.push(chain);
        }
        (chains, wrong)
    }

    /// Returns the gene that a chain says.
    fn join(&self, Found { texts, entries, .. }: &Found, chain: &[u32]) -> Vec<u8> {
        let overlap = |&number: &u32| (texts[number as usize], entries[number as usize].overlap);
        self.gene().join(chain.iter().map(overlap))
    }
}

impl Program for Sequencer {
    type Found = Found;

    fn stages(&self) -> usize {
        self.gene().segment as usize + 1
    }

    fn sequential_tps(&self) -> f64 {
        self.prepared.transactions as f64 / self.prepared.took.as_secs_f64().max(1e-9)
    }

    fn settle(
        &self,
        found: &Found,
        stage: usize,
        counts: &[u64; 4],
        has_ended: bool,
    ) -> Consistency {
        let (mut consistency, gene) = (Consistency::default(), self.gene());
        let Found { texts, beginnings, entries } = found;
        let inserted = match stage {
            0 => self.cursor.load(Ordering::Relaxed).saturating_mul(CHUNK),
            _ => usize::MAX,
        };
        let different = gene.different(inserted);
        consistency.expect(different == *texts, || {
            let all = different.len();
            format!("there are {} different segments, others than the {all} inserted", texts.len())
        });
        let (done, expected) = self.beginnings(stage, texts);
        consistency.expect(expected == *beginnings, || {
            let all = expected.len();
            format!("there are {} beginnings, others than the {all} inserted", beginnings.len())
        });
        let all = done.div_ceil(gene.segment as usize);
        consistency.expect(entries.len() == all, || {
            format!("there are {} entries where {all} were inserted", entries.len())
        });
        let (chains, wrong) = self.chains(found);
        consistency.expect(wrong.is_empty(), || wrong.join("; "));
        let chained: usize = chains.iter().map(Vec::len).sum();
        consistency.expect(chained == entries.len(), || {
            format!("{chained} segments are in chains where there are {}", entries.len())
        });
        let links = entries.iter().filter(|entry| entry.next != NONE).count() as u64;
        consistency.expect(links == counts[0], || {
            format!("there are {links} links where {} were made", counts[0])
        });
        if has_ended {
            let result = chains.first().filter(|_| chains.len() == 1);
            let is_gene = result.is_some_and(|chain| self.join(found, chain) == gene.nucleotides);
            consistency.expect(is_gene, || {
                format!("the {} chains at the end are not the gene", chains.len())
            });
        }
        consistency
    }

    fn begin(&self, stage: usize) {
        self.cursor.store(0, Ordering::Relaxed);
        if stage == 0 {
            self.is_linked.iter().for_each(|is| is.store(false, Ordering::Relaxed));
        }
    }
}
