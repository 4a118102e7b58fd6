//! The target of the logger: the writer of the crate `candide-log`, or a writer that a test
//! watches.

#![forbid(unsafe_code)]

use std::fmt::Debug;
use std::io;

/// The reason why a block could not be written.
#[derive(Debug)]
pub(crate) enum BlockError {
    /// The disk has no room for the block. Nothing was written, and the same block may be tried
    /// again.
    Full,
    /// A write or a sync has failed. Every later call fails, too.
    Failed(io::Error),
}

/// The file to which the logger writes blocks.
pub(crate) trait Blocks: Send + Debug {
    /// Writes one block, with the records of a round and its cut. The block survives the end of the
    /// process.
    fn write(&mut self, records: &[&[u64]], cut: u64) -> Result<(), BlockError>;

    /// Returns whether a record that has been written has a stamp above the cuts of all blocks. A
    /// crash would lose it until a block with a later cut is durable.
    fn has_pending(&self) -> bool;

    /// Makes everything written durable.
    fn sync(&mut self) -> Result<(), BlockError>;

    /// Writes a block that confirms the block before it, so that later damage of that block is
    /// noticed.
    fn confirm(&mut self) -> Result<(), BlockError>;

    /// Makes room for later blocks. The result is [`BlockError::Full`] if there is no room yet.
    fn prepare(&mut self) -> Result<(), BlockError>;

    /// Confirms the last block, makes that durable, and ends the log.
    fn close(self: Box<Self>) -> Result<(), BlockError>;
}
