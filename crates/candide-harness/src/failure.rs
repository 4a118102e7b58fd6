//! Failures of the command.

use std::error::Error;
use std::fmt;

use crate::interrupt;

/// Whose fault it was decides the exit status.
///
/// It is no `std::error::Error` itself, so that every such error can become one.
#[derive(Debug)]
pub enum Failure {
    /// The arguments': the message says what would be right.
    Usage(String),
    /// The run's.
    Run(Box<dyn Error>),
    /// Ctrl-C was pressed before there was anything to report.
    Interrupted,
}

impl Failure {
    /// Returns the exit status of the command.
    pub fn exit_status(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Run(_) => 1,
            Failure::Interrupted => interrupt::STATUS,
        }
    }
}

impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Run(Box::new(error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) => f.write_str(message),
            Failure::Run(error) => error.fmt(f),
            Failure::Interrupted => f.write_str("interrupted before anything was measured"),
        }
    }
}
