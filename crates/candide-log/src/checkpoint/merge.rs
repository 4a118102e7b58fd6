//! Merging a stretch of the log into the rows of a checkpoint.

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
use std::iter::Peekable;
use std::vec::IntoIter;

/// The receiver of merged rows.
pub(crate) trait Sink {
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
        while let Some(block) = part.next()? {
            if let Contents::Rows { table, .. } | Contents::LongRows { table, .. } = block.contents
            {
                for row in all_rows(&block) {
                    merge.row(to, table, row)?;
                }
            }
        }
    }
    merge.finish(to)
}

/// A change, and where it was read.
struct Located<'a> {
    change: Change<'a>,
    step: &'a Step,
}

/// Rows in ascending order, into which the changes of a log are merged.
struct Merge<'a> {
    tables: &'a [TableSchema],
    /// The columns of any length of each table.
    long: BTreeMap<u32, LongColumns>,
    /// The changes that are left, by table and key, those of one row in their order.
    changes: Peekable<IntoIter<Located<'a>>>,
}

impl<'a> Merge<'a> {
    /// Returns a merge of the changes of `steps`, which are in the order of the log.
    fn new(tables: &'a [TableSchema], steps: &'a [Step]) -> Merge<'a> {
        let located =
            steps.iter().flat_map(|step| step.batch.changes().map(move |change| (step, change)));
        let mut changes: Vec<_> = located.map(|(step, change)| Located { change, step }).collect();
        changes.sort_by(|a, b| place(&a.change).cmp(&place(&b.change)));
        let long = tables.iter().map(|table| (table.number, LongColumns::of(table))).collect();
        Merge { tables, long, changes: changes.into_iter().peekable() }
    }

    /// Adds a row of the checkpoint before, and the rows before it that the log has created.
    fn row(&mut self, to: &mut dyn Sink, table: u32, row: LongRow<'_>) -> Result<(), StoreError> {
        loop {
            let next = self.changes.peek().map(|next| place(&next.change));
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
        let Some(first) = self.changes.peek() else { return Ok(()) };
        let (table, key) = place(&first.change);
        let Step { file, offset, .. } = first.step;
        let schema = self.schema(table).ok_or_else(|| no_table(file, *offset, table))?;
        let long = &self.long[&table];
        while let Some(Located { change, step }) =
            self.changes.next_if(|next| place(&next.change) == (table, key))
        {
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
