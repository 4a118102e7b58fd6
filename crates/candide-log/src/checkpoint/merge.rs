//! Merging a stretch of the log into the rows of a checkpoint.

use crate::checkpoint::write::{CheckpointWriter, PartError};
use crate::error::{OpenError, StoreError};
use crate::format::commit::{Change, ChangeKind};
use crate::log::replay::Step;
use crate::rows;
use crate::schema::TableSchema;
use std::cmp::Ordering;

/// A change, and where it was read.
struct Located<'a> {
    change: Change<'a>,
    step: &'a Step,
}

/// Rows in ascending order, into which the changes of a log are merged.
pub(crate) struct Merge<'a> {
    tables: &'a [TableSchema],
    /// The changes that are left, by table and key, those of one row in their order.
    changes: std::iter::Peekable<std::vec::IntoIter<Located<'a>>>,
}

impl<'a> Merge<'a> {
    /// Returns a merge of what the steps have completed, which are in the order of the log.
    pub(crate) fn new(tables: &'a [TableSchema], steps: &'a [Step]) -> Merge<'a> {
        let located =
            steps.iter().flat_map(|step| step.batch.changes().map(move |change| (step, change)));
        let mut changes: Vec<_> = located.map(|(step, change)| Located { change, step }).collect();
        changes.sort_by(|a, b| place(&a.change).cmp(&place(&b.change)));
        Merge { tables, changes: changes.into_iter().peekable() }
    }

    /// Adds a row of the checkpoint before, and the rows before it that the log has created.
    pub(crate) fn row(
        &mut self,
        to: &mut CheckpointWriter<'_>,
        table: u32,
        key: &[u64],
        words: &[u64],
    ) -> Result<(), StoreError> {
        loop {
            let next = self.changes.peek().map(|next| place(&next.change));
            match next.map_or(Ordering::Greater, |next| next.cmp(&(table, key))) {
                Ordering::Less => self.changed_row(to, None)?,
                Ordering::Equal => return self.changed_row(to, Some(words.to_vec())),
                Ordering::Greater => break,
            }
        }
        let schema = self.schema(table).ok_or_else(|| no_table(table))?;
        Ok(to.row(schema, key, words)?)
    }

    /// Adds the rows that are left.
    pub(crate) fn finish(&mut self, to: &mut CheckpointWriter<'_>) -> Result<(), StoreError> {
        while self.changes.peek().is_some() {
            self.changed_row(to, None)?;
        }
        Ok(())
    }

    /// Makes all changes of the next row, which was `row` before, and adds it if it exists then.
    fn changed_row(
        &mut self,
        to: &mut CheckpointWriter<'_>,
        mut row: Option<Vec<u64>>,
    ) -> Result<(), StoreError> {
        let Some(first) = self.changes.peek() else { return Ok(()) };
        let (table, key) = place(&first.change);
        let schema = self.schema(table).ok_or_else(|| no_table(table))?;
        while let Some(Located { change, step }) =
            self.changes.next_if(|next| place(&next.change) == (table, key))
        {
            let refused = |error| OpenError::load(error, &step.file, step.offset);
            rows::check(schema, &change).map_err(refused)?;
            match (&mut row, change.kind) {
                (Some(_), ChangeKind::Delete) => row = None,
                (Some(row), _) => rows::store(row, &change),
                (None, ChangeKind::Put) => {
                    rows::store(row.insert(vec![0; schema.row_words()]), &change);
                }
                (None, _) => rows::ghost(schema, &change).map_err(refused)?,
            }
        }
        if let Some(row) = row {
            to.row(schema, key, &row)?;
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

fn no_table(table: u32) -> StoreError {
    let what = format!("a row of table {table}, which does not exist");
    StoreError::Damaged(OpenError::corrupt(crate::names::MANIFEST, 0, what))
}

impl From<PartError> for StoreError {
    fn from(error: PartError) -> StoreError {
        StoreError::io(&error.file)(error.source)
    }
}
