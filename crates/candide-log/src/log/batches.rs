//! Batches: the commit records that are applied when a block has been read, in order.
//!
//! A block closes a cut. The records with a stamp up to the cut, from this block or an earlier one,
//! are a *batch*: they are applied in the order of their versions. The other records stay pending
//! until a later block of the same generation closes a cut that contains them, or until the
//! generation ends.
//!
//! The writes of one row come in the right order also from batch to batch. A commit that replaces
//! what another commit wrote has a stamp that is no smaller (property W of the engine's log), so it
//! is in the same batch or in a later one.

use crate::format::Malformed;
use crate::format::commit::{self, Change, CommitRecord, records};

/// The records that are pending, and the cut that the last block has closed.
#[derive(Debug, Default)]
pub struct Batches {
    cut: u64,
    /// Whole commit records, one after the other, in the order in which they were read.
    pending: Vec<u64>,
}

/// Commit records that are applied together.
#[derive(Debug, Default)]
pub struct Batch {
    words: Vec<u64>,
    order: Vec<RecordPlace>,
}

/// The place of a change in the words of its batch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    at: usize,
    /// The number of words from the entry that has the key to the entry of the change.
    back: u32,
}

/// The place of a record in the words of its batch.
#[derive(Debug, Clone, Copy)]
struct RecordPlace {
    version: u64,
    at: usize,
}

impl Batches {
    /// Returns the state of replay after a checkpoint with this cut and these pending records.
    pub fn after(cut: u64, pending: Vec<u64>) -> Batches {
        Batches { cut, pending }
    }

    /// Returns the cut that the last block has closed; 0 before the first block of a generation.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Returns the words of the pending records, one record after the other.
    pub fn pending(&self) -> &[u64] {
        &self.pending
    }

    /// Returns the number of pending records.
    pub fn pending_count(&self) -> u64 {
        records(&self.pending).count() as u64
    }

    /// Adds the records of a block that closes `cut`, which is not below the cut before. Returns
    /// those that are complete with it.
    ///
    /// # Errors
    /// The payload does not consist of commit records, or one of them has a stamp up to the cut
    /// before. The offset counts bytes of the payload.
    pub fn add(&mut self, cut: u64, payload: Vec<u64>) -> Result<Batch, Malformed> {
        let mut batch = Batch { words: payload, order: Vec::new() };
        let end = batch.words.len();
        let mut pending = Vec::new();
        for record in records(&self.pending) {
            let record = record?;
            if record.stamp <= cut {
                batch.order.push(RecordPlace { version: record.version, at: batch.words.len() });
                batch.words.extend_from_slice(record.words());
            } else {
                pending.extend_from_slice(record.words());
            }
        }
        let mut at = 0;
        while at < end {
            let base = size_of_val(&batch.words[..at]) as u64;
            let (record, _) =
                CommitRecord::parse(&batch.words[at..end]).map_err(|error| error.after(base))?;
            if record.stamp <= self.cut {
                let (stamp, cut) = (record.stamp, self.cut);
                let what = format!("a record below the cut: stamp {stamp}, after cut {cut}");
                return Err(Malformed::new(base, what));
            }
            let next = at + record.words().len();
            if record.stamp <= cut {
                batch.order.push(RecordPlace { version: record.version, at });
            } else {
                pending.extend_from_slice(record.words());
            }
            at = next;
        }
        if !batch.order.is_sorted_by_key(|place| place.version) {
            batch.order.sort_by_key(|place| place.version);
        }
        self.cut = cut;
        self.pending = pending;
        Ok(batch)
    }

    /// Ends the generation: its pending records are dropped, and the next one begins at cut 0.
    /// Returns the number of records that are dropped.
    pub fn end_generation(&mut self) -> u64 {
        self.cut = 0;
        let dropped = self.pending_count();
        self.pending.clear();
        dropped
    }
}

impl Batch {
    /// Returns the number of records.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the records in the order in which they are applied.
    pub fn records(&self) -> impl Iterator<Item = CommitRecord<'_>> {
        self.order.iter().map(|place| CommitRecord::parsed(&self.words[place.at..]))
    }

    /// Returns the changes by their tables and places, in the order in which they are applied.
    pub(crate) fn places(&self) -> impl Iterator<Item = (u16, Place)> {
        self.order.iter().flat_map(|record| {
            let entries = CommitRecord::parsed(&self.words[record.at..]).entries();
            entries.places().map(|(table, at, back)| {
                let at = record.at + at;
                (table, Place { at, back })
            })
        })
    }

    /// Returns the key of the change at a place.
    pub(crate) fn key_at(&self, place: Place) -> &[u64] {
        commit::key_at(&self.words, place.at - place.back as usize)
    }

    /// Returns the first word of the change at a place.
    pub(crate) fn header_at(&self, place: Place) -> u64 {
        self.words[place.at]
    }

    /// Returns the change at a place.
    pub(crate) fn change_at(&self, place: Place) -> Change<'_> {
        Change { key: self.key_at(place), ..commit::change_at(&self.words, place.at) }
    }

    /// Returns the changes in the order in which they are applied.
    pub fn changes(&self) -> impl Iterator<Item = Change<'_>> {
        self.records().flat_map(|record| record.entries())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::commit::{ChangeKind, CommitWriter, RecordBuffer};

    /// Appends a record that puts `version` in the only word of row 1.
    fn put(words: &mut Vec<u64>, stamp: u64, version: u64) {
        let mut buffer = RecordBuffer::new();
        let mut record = CommitWriter::begin(&mut buffer);
        record.entry(ChangeKind::Put, 1, 0, 1, Some(&[1]));
        record.push(version);
        record.finish(stamp, version);
        words.extend_from_slice(buffer.words());
    }

    fn payload(records: &[(u64, u64)]) -> Vec<u64> {
        let mut words = Vec::new();
        records.iter().for_each(|(stamp, version)| put(&mut words, *stamp, *version));
        words
    }

    fn versions(batch: &Batch) -> Vec<u64> {
        batch.records().map(|record| record.version).collect()
    }

    #[test]
    fn a_batch_has_the_records_up_to_the_cut_by_version() {
        let mut batches = Batches::default();
        let batch = batches.add(5, payload(&[(4, 40), (6, 60), (3, 30), (5, 10)])).unwrap();
        assert_eq!(versions(&batch), [10, 30, 40]);
        assert_eq!(batch.changes().map(|change| change.words[0]).sum::<u64>(), 80);
        let batch = batches.add(5, Vec::new()).unwrap();
        assert_eq!(batch.len(), 0);
        let batch = batches.add(7, payload(&[(7, 20)])).unwrap();
        assert_eq!(versions(&batch), [20, 60]);
        assert_eq!((batches.cut(), batches.pending()), (7, &[][..]));
    }

    #[test]
    fn records_of_one_version_stay_in_order_in_a_batch() {
        let mut batches = Batches::default();
        batches.add(1, payload(&[(2, 9)])).unwrap();
        let mut words = payload(&[(3, 9)]);
        let value = words.len() - 1;
        words[value] = 100;
        let batch = batches.add(3, words).unwrap();
        assert_eq!(batch.changes().map(|change| change.words[0]).collect::<Vec<_>>(), [9, 100]);
    }

    #[test]
    fn a_record_that_comes_after_its_cut_is_a_defect() {
        let mut batches = Batches::default();
        batches.add(5, payload(&[(5, 5)])).unwrap();
        let error = batches.add(6, payload(&[(6, 6), (5, 7)])).unwrap_err();
        assert!(error.what.contains("a record below the cut"), "{error}");
        assert_eq!(error.offset as usize, size_of_val(&payload(&[(6, 6)])[..]));
    }

    #[test]
    fn pending_records_end_with_their_generation() {
        let mut batches = Batches::default();
        batches.add(5, payload(&[(6, 6), (8, 8)])).unwrap();
        assert_eq!(batches.end_generation(), 2);
        assert_eq!(versions(&batches.add(9, payload(&[(1, 1)])).unwrap()), [1]);
    }

    #[test]
    fn words_that_are_no_commit_records_are_refused_with_their_place() {
        let mut words = payload(&[(1, 1)]);
        let whole = size_of_val(&words[..]) as u64;
        words.extend([0; 3]);
        assert_eq!(Batches::default().add(1, words).unwrap_err().offset, whole);
    }
}
