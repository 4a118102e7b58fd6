//! A database that is about to be opened, as a remote sees it.

use super::recover;
use super::remembered;
use crate::directory::Directory;
use crate::error::OpenError;
use crate::format::Uuid;
use crate::format::manifest::Manifest;
use crate::log::reader::Reader;
use crate::log::segments::FIRST_BLOCK;
use crate::schema::TableSchema;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A place between two blocks of the log. Places ascend with the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LogPlace {
    /// The number of the segment.
    pub segment: u64,
    /// The place in the segment, in bytes.
    pub offset: u64,
}

/// A database that is about to be opened. Nothing has been changed.
#[derive(Debug)]
pub struct Unopened<'a> {
    pub(super) disk: &'a Arc<Directory>,
    /// `None` if the database is new.
    pub(super) manifest: Option<&'a Manifest>,
    /// The number of the last segment.
    pub(super) last_segment: u64,
}

/// A block of the log of a database that is not open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalBlock {
    /// The generation of the log.
    pub generation: u64,
    /// The cut that the block closes.
    pub cut: u64,
    /// The words of its commit records.
    pub records: Vec<u64>,
    /// The place behind the block.
    pub end: LogPlace,
}

/// The blocks of the log of a database that is not open.
#[derive(Debug)]
pub struct LocalBlocks<'a> {
    reader: Reader<'a>,
    from: LogPlace,
}

impl Unopened<'_> {
    /// Returns the identity of the database; `None` if it is new.
    pub fn uuid(&self) -> Option<Uuid> {
        self.manifest.map(|manifest| manifest.uuid)
    }

    /// Returns all tables, those that are dropped included; none of a new database.
    pub fn tables(&self) -> &[TableSchema] {
        self.manifest.map_or(&[], |manifest| &manifest.tables)
    }

    /// Returns the path of the directory, if it is one of the operating system.
    pub fn path(&self) -> Option<&Path> {
        (***self.disk).path()
    }

    /// Returns the generation and the cut up to which a checkpoint contains the log, which is not
    /// in the segments; `None` without a checkpoint.
    pub fn checkpoint(&self) -> Option<(u64, u64)> {
        let checkpoint = self.manifest?.checkpoint.as_ref()?;
        Some((checkpoint.generation, checkpoint.cut))
    }

    /// Returns the place of the first block that is in the segments.
    pub fn first(&self) -> LogPlace {
        let segment = self.manifest.map_or(1, |manifest| manifest.first_segment);
        LogPlace { segment, offset: FIRST_BLOCK }
    }

    /// Returns the blocks of the log behind `from`, up to its end.
    ///
    /// # Errors
    /// The log cannot be read, or is damaged.
    ///
    /// # Panics
    /// If the database is new.
    pub fn blocks(&self, from: LogPlace) -> Result<LocalBlocks<'_>, OpenError> {
        let manifest = self.manifest.expect("a new database has no log");
        let segments = recover::segments(&***self.disk, manifest, self.last_segment)?;
        let reader = Reader::new(segments, recover::position(manifest), None)?;
        Ok(LocalBlocks { reader, from })
    }

    /// Returns what the remote has noted in the directory; `None` if it has noted nothing.
    ///
    /// # Errors
    /// The note cannot be read.
    pub fn remembered(&self) -> Result<Option<Vec<u8>>, OpenError> {
        remembered::read(self.disk)
    }

    /// Notes something in the directory. It replaces the note before, and is durable when this
    /// returns.
    ///
    /// # Errors
    /// After an error, either note may be there.
    pub fn remember(&self, bytes: &[u8]) -> io::Result<()> {
        remembered::write(self.disk, bytes)
    }
}

impl LocalBlocks<'_> {
    /// Reads the next block; `None` at the end of the log.
    ///
    /// # Errors
    /// The log cannot be read, or is damaged.
    pub fn next_block(&mut self) -> Result<Option<LocalBlock>, OpenError> {
        while let Some(block) = self.reader.next()? {
            let segment = self.reader.segments()[block.segment].number();
            let end = LogPlace { segment, offset: block.offset + block.header.size() };
            if end > self.from {
                let (generation, cut) = (block.header.generation, block.header.cut);
                return Ok(Some(LocalBlock { generation, cut, records: block.payload, end }));
            }
        }
        Ok(None)
    }
}
