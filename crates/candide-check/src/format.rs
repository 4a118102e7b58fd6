//! Errors of reading a file with a history.

use std::fmt;
use std::io;

/// The reason why a file with a history could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum FormatError {
    /// Reading failed.
    Io(io::Error),
    /// A line is malformed.
    Line {
        /// The line's number, from 1.
        line: u64,
        /// The problem with the line, and the expected content.
        problem: String,
    },
}

impl FormatError {
    pub(crate) fn at(line: u64, problem: impl Into<String>) -> FormatError {
        FormatError::Line { line, problem: problem.into() }
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::Io(error) => write!(f, "the history could not be read: {error}"),
            FormatError::Line { line, problem } => write!(f, "line {line}: {problem}"),
        }
    }
}

impl std::error::Error for FormatError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FormatError::Io(error) => Some(error),
            FormatError::Line { .. } => None,
        }
    }
}

impl From<io::Error> for FormatError {
    fn from(error: io::Error) -> FormatError {
        FormatError::Io(error)
    }
}
