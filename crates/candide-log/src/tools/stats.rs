//! The room that the contents take, by table and group.

use super::inspect::{Item, inspect};
use crate::disk::Disk;
use crate::error::OpenError;
use crate::format::block::BLOCK_HEADER_BYTES;
use crate::format::commit::Change;
use crate::schema::TableSchema;
use std::ops::ControlFlow;

/// The bytes of a word.
const WORD: u64 = size_of::<u64>() as u64;

/// The room that a database takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// The tables, in the order of their numbers.
    pub tables: Vec<TableStats>,
    /// The bytes of the checkpoint's files.
    pub checkpoint_bytes: u64,
    /// The number of segments.
    pub segments: u64,
    /// The bytes of the segments, used or not.
    pub segment_bytes: u64,
    /// The number of blocks in the log.
    pub blocks: u64,
    /// The bytes of the blocks.
    pub block_bytes: u64,
    /// The bytes of the blocks outside records: headers, and the padding behind the records.
    pub padding_bytes: u64,
    /// The number of commit records in the log.
    pub records: u64,
    /// The bytes of the heads of commit records and of their entries.
    pub head_bytes: u64,
}

/// The room that a table takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableStats {
    /// The table's number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// The number of its rows in the checkpoint.
    pub rows: u64,
    /// The bytes of their keys and words.
    pub row_bytes: u64,
    /// The number of its entries in commit records.
    pub changes: u64,
    /// The bytes of the keys in entries.
    pub key_bytes: u64,
    /// The groups, in order.
    pub groups: Vec<GroupStats>,
}

/// The room that a column group takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupStats {
    /// The group's name.
    pub name: String,
    /// The bytes of its words in a row.
    pub bytes_per_row: u64,
    /// The bytes of its words in the entries of commit records.
    pub change_bytes: u64,
}

/// Returns what takes how much room in a database that is not in use.
///
/// # Errors
/// The errors of [`inspect`].
pub fn stats(disk: &dyn Disk) -> Result<Stats, OpenError> {
    let mut stats = Stats::default();
    inspect(disk, &mut |item| {
        stats.count(item);
        ControlFlow::Continue(())
    })?;
    Ok(stats)
}

impl Stats {
    fn count(&mut self, item: Item<'_>) {
        match item {
            Item::Manifest(manifest) => {
                let tables = manifest.tables.iter().filter(|table| !table.is_dropped());
                self.tables = tables.map(TableStats::new).collect();
                let parts = manifest.checkpoint.iter().flat_map(|checkpoint| &checkpoint.parts);
                self.checkpoint_bytes = parts.map(|part| part.bytes).sum();
            }
            Item::Row { table, row, .. } => {
                if let Some(table) = self.table(table) {
                    table.rows += 1;
                    let words = row.key.len() + row.words.len() + row.value_words().len();
                    table.row_bytes += words as u64 * WORD;
                }
            }
            Item::Segment { header, .. } => {
                self.segments += 1;
                self.segment_bytes += header.bytes;
            }
            Item::Block { header, .. } => {
                self.blocks += 1;
                self.block_bytes += header.size();
                self.padding_bytes += header.size() - header.payload_bytes;
                debug_assert!(header.size() >= header.payload_bytes + BLOCK_HEADER_BYTES as u64);
            }
            Item::Record { record, .. } => {
                self.records += 1;
                let mut words = record.words().len() as u64;
                let mut before: Option<&[u64]> = None;
                for change in record.entries() {
                    // The key of the entry before is not repeated.
                    let is_repeated = before.is_some_and(|key| std::ptr::eq(key, change.key));
                    let key = if is_repeated { 0 } else { change.key.len() as u64 };
                    before = Some(change.key);
                    let stored = change.words.len() + change.value_words.len();
                    words -= key + stored as u64;
                    if let Some(table) = self.table(change.table.into()) {
                        table.change(&change, key);
                    }
                }
                self.head_bytes += words * WORD;
            }
            Item::End { .. } => {}
        }
    }

    fn table(&mut self, number: u32) -> Option<&mut TableStats> {
        let place = self.tables.binary_search_by_key(&number, |table| table.number);
        place.ok().map(|place| &mut self.tables[place])
    }
}

impl TableStats {
    fn new(schema: &TableSchema) -> TableStats {
        let groups = schema.groups.iter().map(|(name, words)| GroupStats {
            name: name.clone(),
            bytes_per_row: u64::from(*words) * WORD,
            change_bytes: 0,
        });
        TableStats {
            number: schema.number,
            name: schema.name.clone(),
            rows: 0,
            row_bytes: 0,
            changes: 0,
            key_bytes: 0,
            groups: groups.collect(),
        }
    }

    /// Counts an entry with `key` words of a key.
    fn change(&mut self, change: &Change<'_>, key: u64) {
        self.changes += 1;
        self.key_bytes += key * WORD;
        let first = u64::from(change.first) * WORD;
        let end = first + change.words.len() as u64 * WORD;
        let mut begin = 0;
        for group in &mut self.groups {
            let group_end = begin + group.bytes_per_row;
            group.change_bytes += end.min(group_end).saturating_sub(first.max(begin));
            begin = group_end;
        }
    }
}
