//! The checkpoint in force, as a copy elsewhere reads it.

use super::unopened::LogPlace;
use crate::directory::Directory;
use crate::error::OpenError;
use crate::format::checkpoint::{Contents, PartDecoder};
use crate::format::manifest::Checkpoint;
use crate::log::segments::{FIRST_BLOCK, damaged};
use crate::names;
use crate::schema::TableSchema;
use crate::sum::{long_row_hash, row_hash};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The checkpoint in force. Its files stay as they are while this exists.
#[derive(Debug)]
pub struct CheckpointParts<'a> {
    pub(super) disk: &'a Arc<Directory>,
    pub(super) checkpoint: &'a Checkpoint,
    /// The tables that were known before the checkpoint was made, or later.
    pub(super) tables: &'a [TableSchema],
    /// The number of the first segment that the checkpoint does not contain.
    pub(super) first_segment: u64,
}

/// The rows of the parts of a checkpoint that have been read.
#[derive(Debug, Default)]
pub struct PartRows {
    /// The sum of the hashes of the rows of each table ([`crate::sum`]).
    pub sums: BTreeMap<u32, u64>,
}

impl CheckpointParts<'_> {
    /// Returns the generation and the cut up to which the checkpoint contains the log.
    pub fn state(&self) -> (u64, u64) {
        (self.checkpoint.generation, self.checkpoint.cut)
    }

    /// Returns the place of the first block of the log that the checkpoint does not contain.
    pub fn first(&self) -> LogPlace {
        LogPlace { segment: self.first_segment, offset: FIRST_BLOCK }
    }

    /// Returns the number of parts.
    pub fn count(&self) -> u32 {
        self.checkpoint.parts.len() as u32
    }

    /// Returns whether the checkpoint has left out the rows of a table, which had been dropped.
    pub fn lacks(&self, table: u32) -> bool {
        self.tables.iter().any(|known| known.number == table && known.is_dropped())
    }

    /// Returns the bytes of a part, which is checked as a whole. Adds its rows to `rows`.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    ///
    /// # Panics
    /// If there is no part of this number.
    pub fn read(&self, number: u32, rows: &mut PartRows) -> Result<Vec<u8>, OpenError> {
        let part = self.checkpoint.parts[number as usize];
        let name = names::part(self.checkpoint.number, number);
        let file = self.disk.open_to_read(&name).map_err(OpenError::io(&name))?;
        let mut bytes = vec![0; part.bytes as usize];
        file.read_at(0, &mut bytes).map_err(OpenError::io(&name))?;
        let damaged = |error| damaged(&name, error);
        let (mut decoder, _) = PartDecoder::new(&bytes, part).map_err(damaged)?;
        while decoder.left() > 0 {
            let at = decoder.offset();
            let block = decoder.block(&bytes[at as usize..]);
            let block = block.map_err(|error| damaged(error.after(at)))?;
            match block.contents {
                Contents::Rows { table, .. } => {
                    let sum = rows.sums.entry(table).or_default();
                    let hashes = block.rows().map(|(key, words)| row_hash(key, words));
                    *sum = hashes.fold(*sum, u64::wrapping_add);
                }
                Contents::LongRows { table, .. } => {
                    let sum = rows.sums.entry(table).or_default();
                    *sum = block.long_rows().map(long_row_hash).fold(*sum, u64::wrapping_add);
                }
                Contents::Pending { .. } | Contents::End { .. } => {}
            }
        }
        Ok(bytes)
    }
}
