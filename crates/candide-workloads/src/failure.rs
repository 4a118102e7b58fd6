//! The failures of a workload.

use std::fmt;

use candide::{Abort, Error};

/// The reason why a workload could not be loaded or checked.
#[derive(Debug)]
pub enum Failure {
    /// The database refused a table or a session.
    Setup(Error),
    /// A transaction ended in a way that loading and checking do not expect.
    Transaction(Abort),
    /// Ctrl-C stopped loading.
    Stopped,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Setup(error)
    }
}

impl From<Abort> for Failure {
    fn from(abort: Abort) -> Self {
        Failure::Transaction(abort)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Setup(error) => write!(f, "the database refused: {error}"),
            Failure::Transaction(abort) => write!(f, "a transaction failed: {abort}"),
            Failure::Stopped => f.write_str("loading was stopped"),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Failure::Setup(error) => Some(error),
            Failure::Transaction(abort) => Some(abort),
            Failure::Stopped => None,
        }
    }
}
