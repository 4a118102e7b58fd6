//! The objects, and the transactions on them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use candide::objects::TSet;
use candide::{Abort, Database, Ordered, Protocol, Session, Table, Tx};

use super::entry::Entry;
use super::gene::{CHUNK, Text, ending, hash};
use super::settle::{Found, Sequencer};
use crate::Failure;
use crate::load::run_unmeasured;
use crate::stamp::repeated::{Objects, Turn, in_batches};
use crate::workload::run_counted;

/// The sets and the entries.
pub struct Sequencing<P: Protocol> {
    /// The different segments.
    pub segments: TSet<(u64, u64), P>,
    /// The beginnings of segments: their lengths, their hashes, and the segments' numbers.
    pub beginnings: TSet<(u32, u64, u32), P, Ordered>,
    /// The segments' places in the chains.
    pub entries: Table<Entry, P>,
}

impl<P: Protocol> Clone for Sequencing<P> {
    fn clone(&self) -> Self {
        let Sequencing { segments, beginnings, entries } = self;
        let (segments, beginnings) = (segments.clone(), beginnings.clone());
        Sequencing { segments, beginnings, entries: entries.clone() }
    }
}

/// The different segments, which a thread keeps from one transaction to the next.
#[derive(Debug, Default)]
pub struct Hand(Option<Arc<Vec<Text>>>);

/// Returns the words of a text.
pub(super) fn words(text: Text) -> (u64, u64) {
    ((text >> 64) as u64, text as u64)
}

impl<P: Protocol> Sequencing<P> {
    /// Inserts the entry of a segment, or one of its beginnings.
    fn prepare(
        &self,
        tx: &Tx<'_, P>,
        program: &Sequencer,
        text: Text,
        (number, length): (u32, u32),
    ) -> Result<(), Abort> {
        if length == 0 {
            return self.entries.insert(tx, program.alone(number));
        }
        let hash = hash(program.gene().beginning(text, length));
        self.beginnings.put(tx, (length, hash, number))
    }

    /// Links a segment that is the last one of its chain with one that begins as it ends, with
    /// `overlap` nucleotides. Returns whether there is a free one.
    fn link(
        &self,
        tx: &Tx<'_, P>,
        program: &Sequencer,
        texts: &[Text],
        (end, overlap): (u32, u32),
    ) -> Result<bool, Abort> {
        let text = ending(texts[end as usize], overlap);
        let hash = hash(text);
        let first = self.entries.read(tx, end, Entry::FIRST)?;
        let range = (overlap, hash, 0)..=(overlap, hash, u32::MAX);
        for beginning in self.beginnings.range(tx, range) {
            let (_, _, start) = beginning?;
            if program.gene().beginning(texts[start as usize], overlap) != text
                || start == first
                || !self.entries.read(tx, start, Entry::IS_FIRST)?
            {
                continue;
            }
            let chain = self.entries.find(tx, start)?;
            let (last, length) = (chain.read(Entry::LAST)?, chain.read(Entry::LENGTH)?);
            let before = self.entries.read(tx, first, Entry::LENGTH)?;
            let length = before + length - overlap;
            self.entries.update(tx, start, Entry::IS_FIRST.set(false))?;
            self.entries.update(tx, end, (Entry::NEXT.set(start), Entry::OVERLAP.set(overlap)))?;
            self.entries.update(tx, last, Entry::FIRST.set(first))?;
            self.entries.update(tx, first, (Entry::LAST.set(last), Entry::LENGTH.set(length)))?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Returns the different segments in the set, sorted.
    fn texts(&self, session: &mut Session<P>) -> Result<Vec<Text>, Abort> {
        let mut texts = Vec::new();
        run_unmeasured(session, &mut |tx| {
            texts.clear();
            self.segments.iter(tx).try_for_each(|words| {
                let (high, low) = words?;
                texts.push(Text::from(high) << 64 | Text::from(low));
                Ok(())
            })
        })?;
        texts.sort_unstable();
        Ok(texts)
    }
}

impl<P: Protocol> Objects<P> for Sequencing<P> {
    type Program = Sequencer;
    type Hand = Hand;

    fn create(db: &Database<P>, _: &Sequencer) -> Result<Self, Failure> {
        let entries = db.table("entries")?;
        Ok(Sequencing { segments: TSet::new(db)?, beginnings: TSet::new(db)?, entries })
    }

    /// The program begins with empty objects.
    fn fill(&self, _: &mut Session<P>, _: &Sequencer) -> Result<(), Abort> {
        Ok(())
    }

    fn clear(&self, session: &mut Session<P>, _: &Sequencer, found: &Found) -> Result<(), Abort> {
        let Found { texts, beginnings, entries } = found;
        in_batches(session, texts, &mut |tx, &text| {
            self.segments.remove(tx, words(text)).map(drop)
        })?;
        in_batches(session, beginnings, &mut |tx, &beginning| {
            self.beginnings.remove(tx, beginning).map(drop)
        })?;
        in_batches(session, entries, &mut |tx, entry| self.entries.delete(tx, entry.number))
    }

    fn read(&self, session: &mut Session<P>, program: &Sequencer) -> Result<Found, Abort> {
        let (texts, mut beginnings, mut entries) = (self.texts(session)?, Vec::new(), Vec::new());
        for length in 0..=program.gene().segment {
            let before = beginnings.len();
            run_unmeasured(session, &mut |tx| {
                beginnings.truncate(before);
                let of_length = (length, 0, 0)..=(length, u64::MAX, u32::MAX);
                let mut of_length = self.beginnings.range(tx, of_length);
                of_length.try_for_each(|beginning| {
                    beginnings.push(beginning?);
                    Ok(())
                })
            })?;
        }
        let numbers: Vec<u32> = (0..).take(texts.len()).collect();
        in_batches(session, &numbers, &mut |tx, &number| {
            entries.truncate(number as usize);
            entries.extend(self.entries.get(tx, number, candide::Whole)?);
            Ok(())
        })?;
        Ok(Found { texts, beginnings, entries })
    }

    fn end_stage(
        &self,
        session: &mut Session<P>,
        program: &Sequencer,
        stage: usize,
    ) -> Result<(), Abort> {
        if stage == 0 {
            program.keep_texts(self.texts(session)?);
        }
        Ok(())
    }

    fn step(
        &self,
        turn: Turn<'_, P, Sequencer>,
        Hand(texts): &mut Hand,
    ) -> Result<Option<(usize, u64)>, Abort> {
        let Turn { session, program, stage, counts } = turn;
        let next = || program.cursor.fetch_add(1, Ordering::Relaxed);
        if stage == 0 {
            *texts = None;
            let Some(chunk) = program.gene().segments.chunks(CHUNK).nth(next()) else {
                return Ok(None);
            };
            let (end, retries) = run_counted(session, |tx| {
                chunk.iter().try_for_each(|&text| self.segments.insert(tx, words(text)).map(drop))
            });
            end?;
            return Ok(Some((0, retries)));
        }
        let texts = texts.get_or_insert_with(|| program.texts());
        if stage == 1 {
            let (number, place) = program.prepared_at(next());
            let Some(&text) = texts.get(number as usize) else { return Ok(None) };
            let (end, retries) =
                run_counted(session, |tx| self.prepare(tx, program, text, (number, place)));
            end?;
            return Ok(Some((1, retries)));
        }
        let overlap = program.overlap(stage);
        let end = loop {
            let number = next();
            if number >= texts.len() {
                return Ok(None);
            }
            if !program.is_linked[number].load(Ordering::Relaxed) {
                break number;
            }
        };
        let (is_linked, retries) =
            run_counted(session, |tx| self.link(tx, program, texts, (end as u32, overlap)));
        if is_linked? {
            program.is_linked[end].store(true, Ordering::Relaxed);
            counts[0] += 1;
        }
        Ok(Some((2, retries)))
    }

    fn is_busy(_: &Hand) -> bool {
        false
    }
}
