//! The bytes of every file: encoders and decoders, which are pure functions over bytes and words.
//!
//! | file | contents | module |
//! |---|---|---|
//! | `MANIFEST`, `MANIFEST.copy` | tables, the checkpoint in force, the first segment needed | [`manifest`] |
//! | `log-NNNNNNNNNN` | a segment: a header, then blocks | [`segment`], [`block`] |
//! | `checkpoint-NNNNNNNNNN-PPPP` | a part: a header, then blocks of rows and of commit records | [`checkpoint`] |
//!
//! What an object in a place says of the tables is in [`catalog`]. Commit records, which log blocks
//! and checkpoints contain, are in [`commit`]; the values of any
//! length that these and the rows of checkpoints have, in [`value`] and [`long_row`]. All numbers
//! are little-endian. No decoder panics, whatever it is given, and none allocates more than a small
//! multiple of its input. `docs/file-format.md` describes every field.

#![forbid(unsafe_code)]

// Layers, lowest first: bytes, value, commit, long_row, manifest, catalog, checkpoint, block,
// segment.
pub mod block;
pub mod bytes;
pub mod catalog;
pub mod checkpoint;
pub mod commit;
pub mod long_row;
pub mod manifest;
pub mod segment;
pub mod value;

use std::borrow::Cow;
use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// The identity of a database: random bytes that all its files contain.
pub type Uuid = [u8; 16];

/// Bytes that a decoder refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The place of the error, in bytes from the beginning of the decoder's input.
    pub offset: u64,
    /// The description of the fault.
    pub what: Cow<'static, str>,
    /// The kind of the error.
    pub fault: Fault,
}

/// Kinds of malformed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The bytes do not begin with the expected magic number.
    Magic,
    /// The bytes are intact, but of an unknown version of the format.
    Version {
        /// The version.
        found: u32,
        /// The latest version that is known.
        known: u32,
    },
    /// The bytes end too early.
    Short,
    /// Anything else: damaged bytes, or bytes that the encoder would not write.
    Damaged,
}

impl Malformed {
    /// Returns an error at `offset`, with the text `what`.
    pub fn new(offset: u64, what: impl Into<Cow<'static, str>>) -> Malformed {
        Malformed { offset, what: what.into(), fault: Fault::Damaged }
    }

    /// Returns the same error with another fault.
    #[must_use]
    pub fn with(self, fault: Fault) -> Malformed {
        Malformed { fault, ..self }
    }

    /// Returns the same error with an offset that counts from `base` bytes earlier.
    #[must_use]
    pub fn after(self, base: u64) -> Malformed {
        Malformed { offset: self.offset.saturating_add(base), ..self }
    }
}

impl Display for Malformed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.what)
    }
}

impl Error for Malformed {}
