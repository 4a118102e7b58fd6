//! The contents of MANIFEST.

use crate::format::Uuid;
use crate::schema::TableSchema;

/// The version of the format of MANIFEST that is written. This version and all earlier ones are
/// read.
pub const VERSION: u32 = 3;
/// The largest number of bytes of a base. A greater length is refused, so a damaged length takes no
/// memory.
pub const BASE_BYTES_MAX: u64 = 256 << 20;
/// The number of bytes of the checksum at the end.
pub(super) const CRC_BYTES: usize = 4;

/// The contents of MANIFEST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The database.
    pub uuid: Uuid,
    /// A number that grows with each MANIFEST that is written.
    pub sequence: u64,
    /// The number of the first segment that recovery needs.
    pub first_segment: u64,
    /// The number of the last segment that is known to contain a durable block; it may be smaller
    /// than the number of the first segment needed. Recovery needs all segments up to it, so that
    /// the loss of the last file is noticed.
    pub last_segment: u64,
    /// The checkpoint in force, if there is one.
    pub checkpoint: Option<Checkpoint>,
    /// The tables, in ascending order of their numbers, with different names.
    pub tables: Vec<TableSchema>,
}

impl Manifest {
    /// Returns the place of the table with this number; or, if there is none, the place at which
    /// it would be.
    pub(crate) fn place_of(&self, number: u32) -> Result<usize, usize> {
        self.tables.binary_search_by_key(&number, |table| table.number)
    }

    /// Returns the table with this number.
    pub fn table(&self, number: u32) -> Option<&TableSchema> {
        self.place_of(number).ok().map(|place| &self.tables[place])
    }

    /// Returns the numbers of the tables that have been dropped, in ascending order.
    pub fn dropped(&self) -> Vec<u32> {
        let dropped = self.tables.iter().filter(|table| table.is_dropped());
        dropped.map(|table| table.number).collect()
    }
}

/// A checkpoint as MANIFEST names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The number of the checkpoint, which the names of its parts have, too.
    pub number: u64,
    /// The generation up to which the checkpoint contains the log, from 1.
    pub generation: u64,
    /// The cut up to which the checkpoint contains the generation.
    pub cut: u64,
    /// The parts, in order.
    pub parts: Vec<Part>,
}

/// A part of a checkpoint as MANIFEST names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The checksum of its last block, which depends on all bytes of the file.
    pub crc: u32,
}
