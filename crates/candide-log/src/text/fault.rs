//! What can be wrong with rows as text.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io;

/// A fault of a text, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: u64,
    /// The character in the line, from 1.
    pub column: u64,
    /// The fault, as a sentence without its end.
    pub what: String,
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Fault { line, column, what } = self;
        write!(f, "line {line}, column {column}: {what}")
    }
}

/// The reason why no more rows can be read.
#[derive(Debug)]
pub enum TextError {
    /// The text could not be read.
    Io(io::Error),
    /// The text is no row of the table.
    Fault(Fault),
}

impl Display for TextError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TextError::Io(error) => write!(f, "the text cannot be read: {error}"),
            TextError::Fault(fault) => fault.fmt(f),
        }
    }
}

impl Error for TextError {}

/// A fault at a byte of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FaultAt {
    pub(super) at: usize,
    pub(super) what: String,
}

/// Returns a fault at a byte.
pub(super) fn fault<T>(at: usize, what: impl Into<String>) -> Result<T, FaultAt> {
    Err(FaultAt { at, what: what.into() })
}

impl FaultAt {
    /// Returns the fault of a text that begins with this line.
    pub(super) fn in_text(self, text: &str, first_line: u64) -> Fault {
        let is_boundary = |at: &usize| text.is_char_boundary(*at);
        let end = (0..=self.at).rev().find(is_boundary).unwrap_or(0);
        let before = &text[..end];
        let line = first_line + before.matches('\n').count() as u64;
        let column = 1 + before.chars().rev().take_while(|c| *c != '\n').count() as u64;
        Fault { line, column, what: self.what }
    }
}
