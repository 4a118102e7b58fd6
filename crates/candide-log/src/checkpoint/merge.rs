//! Merging a stretch of the log into the rows of a checkpoint.

use crate::checkpoint::order::{self, Numbered};
use crate::checkpoint::read::{PartReader, all_rows, parts};
use crate::checkpoint::write::{CheckpointWriter, PartError};
use crate::disk::Disk;
use crate::error::{OpenError, StoreError};
use crate::format::checkpoint::Contents;
use crate::format::commit::{Change, ChangeKind};
use crate::format::long_row::LongRow;
use crate::format::manifest::Manifest;
use crate::log::replay::Step;
use crate::names::MANIFEST;
use crate::rows;
use crate::schema::TableSchema;
use crate::stored_row::{LongColumns, StoredRow};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hint;
use std::vec::IntoIter;

/// The receiver of merged rows.
pub(crate) trait Sink {
    /// Notes that so many bytes of the checkpoint in force have been read.
    fn note_read(&mut self, _bytes: u64) {}

    /// Takes a row. Rows come in ascending order of table and key.
    fn row(&mut self, schema: &TableSchema, row: LongRow<'_>) -> Result<(), PartError>;
}

impl Sink for CheckpointWriter<'_> {
    fn row(&mut self, schema: &TableSchema, row: LongRow<'_>) -> Result<(), PartError> {
        CheckpointWriter::row(self, schema, row)
    }
}

/// Merges the changes of `steps`, which are in the order of the log, into the rows of the
/// checkpoint in force. The checkpoint is read part by part. Rows of dropped tables are left out.
pub(crate) fn merge(
    disk: &dyn Disk,
    manifest: &Manifest,
    steps: &[Step],
    to: &mut dyn Sink,
) -> Result<(), StoreError> {
    let mut merge = Merge::new(&manifest.tables, steps);
    for part in parts(manifest) {
        let mut part = PartReader::open(disk, manifest, part)?;
        loop {
            let offset = part.offset();
            let Some(block) = part.next()? else { break };
            if let Contents::Rows { table, .. } | Contents::LongRows { table, .. } = block.contents
            {
                for row in all_rows(&block) {
                    merge.row(to, table, row)?;
                }
            }
            to.note_read(part.offset() - offset);
        }
    }
    merge.finish(to)
}

/// The changes of a log that have not been merged.
struct Changes<'a> {
    /// The log, in its order.
    steps: &'a [Step],
    /// The changes by table and key, those of one row in their order.
    left: IntoIter<Numbered>,
    next: Option<(Change<'a>, &'a Step)>,
}

/// The number of changes that are looked at ahead, so that the processor loads their words, which
/// lie all over the log, at the same time.
const AHEAD: usize = 16;

impl<'a> Changes<'a> {
    /// Returns the changes of `steps`, which are in the order of the log.
    fn of(steps: &'a [Step]) -> Changes<'a> {
        let changes = (0..).zip(steps).flat_map(|(number, step)| {
            step.batch.places().map(move |(table, place)| (number, table.into(), place))
        });
        let left = order::by_row(changes, |step, place| steps[step as usize].batch.key_at(place));
        let mut changes = Changes { steps, left: left.into_iter(), next: None };
        changes.advance();
        changes
    }

    /// Returns the next change, and the step in which it was read.
    fn peek(&self) -> Option<(Change<'a>, &'a Step)> {
        self.next
    }

    /// Takes the next change, if it is one of this row.
    fn next_of(&mut self, row: (u32, &[u64])) -> Option<(Change<'a>, &'a Step)> {
        let next = self.next.filter(|(change, _)| place(change) == row)?;
        self.advance();
        Some(next)
    }

    fn advance(&mut self) {
        let left = self.left.as_slice();
        if left.len().is_multiple_of(AHEAD) {
            let ahead = &left[..left.len().min(AHEAD)];
            let words = ahead.iter().map(|next| self.step(next).batch.header_at(next.place));
            hint::black_box(words.fold(0, |all, word| all ^ word));
        }
        self.next = self.left.next().map(|next| {
            let step = self.step(&next);
            (step.batch.change_at(next.place), step)
        });
    }

    fn step(&self, change: &Numbered) -> &'a Step {
        &self.steps[change.step as usize]
    }
}

/// Rows in ascending order, into which the changes of a log are merged.
struct Merge<'a> {
    tables: &'a [TableSchema],
    /// The columns of any length of each table.
    long: BTreeMap<u32, LongColumns>,
    changes: Changes<'a>,
}

impl<'a> Merge<'a> {
    /// Returns a merge of the changes of `steps`, which are in the order of the log.
    fn new(tables: &'a [TableSchema], steps: &'a [Step]) -> Merge<'a> {
        let long = tables.iter().map(|table| (table.number, LongColumns::of(table))).collect();
        Merge { tables, long, changes: Changes::of(steps) }
    }

    /// Adds a row of the checkpoint before, and the rows before it that the log has created.
    fn row(&mut self, to: &mut dyn Sink, table: u32, row: LongRow<'_>) -> Result<(), StoreError> {
        loop {
            let next = self.changes.peek().map(|(change, _)| place(&change));
            match next.map_or(Ordering::Greater, |next| next.cmp(&(table, row.key))) {
                Ordering::Less => self.changed_row(to, None)?,
                Ordering::Equal => return self.changed_row(to, Some(StoredRow::of(row))),
                Ordering::Greater => break,
            }
        }
        let schema = self.schema(table).ok_or_else(|| no_table(MANIFEST, 0, table))?;
        match schema.is_dropped() {
            true => Ok(()),
            false => Ok(to.row(schema, row)?),
        }
    }

    /// Adds the rows that are left.
    fn finish(&mut self, to: &mut dyn Sink) -> Result<(), StoreError> {
        while self.changes.peek().is_some() {
            self.changed_row(to, None)?;
        }
        Ok(())
    }

    /// Makes all changes of the next row, whose former words are `row`, and adds the row if it
    /// still exists.
    fn changed_row(
        &mut self,
        to: &mut dyn Sink,
        mut row: Option<StoredRow>,
    ) -> Result<(), StoreError> {
        let Some((first, Step { file, offset, .. })) = self.changes.peek() else { return Ok(()) };
        let (table, key) = place(&first);
        let schema = self.schema(table).ok_or_else(|| no_table(file, *offset, table))?;
        let long = &self.long[&table];
        while let Some((change, step)) = self.changes.next_of((table, key)) {
            if schema.is_dropped() {
                row = None;
                continue;
            }
            let refused = |error| OpenError::load(error, &step.file, step.offset);
            rows::check(schema, long, &change).map_err(refused)?;
            match (&mut row, change.kind) {
                (Some(_), ChangeKind::Delete) => row = None,
                (Some(row), _) => row.store(&change),
                (None, ChangeKind::Put) => {
                    row.insert(StoredRow::zeros(schema.row_words())).store(&change);
                }
                (None, _) => rows::ghost(schema, &change).map_err(refused)?,
            }
        }
        if let Some(row) = row {
            let all = row.all_words();
            to.row(schema, LongRow::with_values(key, &all, row.row_words()))?;
        }
        Ok(())
    }

    fn schema(&self, table: u32) -> Option<&'a TableSchema> {
        let tables = self.tables;
        let found = tables.binary_search_by_key(&table, |schema| schema.number);
        found.ok().map(|place| &tables[place])
    }
}

fn place<'a>(change: &Change<'a>) -> (u32, &'a [u64]) {
    (change.table.into(), change.key)
}

fn no_table(file: &str, offset: u64, table: u32) -> StoreError {
    let what = format!("a row of table {table}, but there is no such table");
    StoreError::Damaged(OpenError::corrupt(file, offset, what))
}

impl From<PartError> for StoreError {
    fn from(error: PartError) -> StoreError {
        StoreError::io(&error.file)(error.source)
    }
}
