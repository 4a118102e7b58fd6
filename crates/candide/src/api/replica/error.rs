//! What can go wrong with a replica.

#![forbid(unsafe_code)]

use crate::error::Error;
use std::fmt::{self, Display, Formatter};

/// The reason why a replica has not applied something. Unless the documentation of a call states
/// the contrary, the replica has ended, and its database stays at the last whole object. Another
/// opening begins there.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplicaError {
    /// What was given does not fit what was given before, or is damaged.
    Damaged(String),
    /// The database refuses: its memory limit or its disk leaves no room, or its log has failed.
    Refused(Error),
    /// The replica has ended by an earlier error.
    Ended,
}

impl Display for ReplicaError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ReplicaError::Damaged(what) => f.write_str(what),
            ReplicaError::Refused(error) => error.fmt(f),
            ReplicaError::Ended => f.write_str("the replica has ended by an earlier error"),
        }
    }
}

impl std::error::Error for ReplicaError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReplicaError::Refused(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for ReplicaError {
    fn from(error: Error) -> ReplicaError {
        ReplicaError::Refused(error)
    }
}
