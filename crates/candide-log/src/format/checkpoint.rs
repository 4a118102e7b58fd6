//! Parts of a checkpoint: rows in the order of tables and keys, and pending commit records.
//!
//! A part is a header, blocks of rows, blocks of commit records, and an end, which is a block
//! without contents. The checksum of each block continues the checksum of the block before, so that
//! the last checksum depends on all bytes of the file.

#![forbid(unsafe_code)]

// Layers, lowest first: header, block, write, read.
mod block;
mod header;
mod read;
mod write;

pub use block::{BLOCK_FIELDS, Contents, PART_BLOCK_HEADER_BYTES, PartBlockHeader};
pub use header::{FIELDS, PART_HEADER_BYTES, PartHeader, VERSION};
pub use read::{PartBlock, PartDecoder};
pub use write::{PART_BLOCK_BYTES, PART_BYTES, PartEncoder};
