//! Failures of the command.

use std::error::Error;
use std::fmt;

use crate::interrupt;

/// A failure of the command. The variant decides the exit status.
///
/// This type does not implement `std::error::Error`, so that every such error can be converted into
/// a `Failure`.
#[derive(Debug)]
pub enum Failure {
    /// The arguments are wrong. The message describes valid arguments.
    Usage(String),
    /// The run failed.
    Run(Box<dyn Error>),
    /// Ctrl-C was pressed before there was a result to report.
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
