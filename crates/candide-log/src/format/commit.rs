//! Commit records: the changes of one commit, as words.
//!
//! ```text
//! word 0      number of words of the record (low 32 bits) | number of entries (high 32 bits)
//! word 1      stamp
//! word 2      version
//! entries     header, key words, words of the row, values
//!
//! header      table 48..64 | first word 32..48 | count of words 16..32 | key words 8..16 | kind 0..8
//! kind        0 update, 1 put, 2 delete; | SAME_ROW: no key words, the row of the entry before
//!             | VALUES: values behind the words, each a header and its bytes
//! value       number of bytes 0..32 | place of its word in the row 32..48 | NONE | LAST
//! ```
//!
//! The words of a row are counted from its first one, group after group, and do not depend on
//! timestamp splitting.
#![forbid(unsafe_code)]

// Layers, lowest first: head, read, write.
mod head;
mod read;
mod write;

pub use head::{ChangeKind, HEADER_WORDS, Head, SAME_ROW, VALUES, entry_words};
pub use read::{Change, Changes, CommitRecord, Records, records};
pub(crate) use read::{change_at, key_at};
pub use write::{CommitWriter, RecordBuffer};
