//! What can go wrong with a replica.

#![forbid(unsafe_code)]

use super::notes::Note;
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

/// The reason why a directory cannot follow any more: it has been opened as a database of its own,
/// and something was changed. Nothing of that is dropped, or mixed with what comes from the other
/// database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedElsewhere {
    /// What was changed.
    pub what: String,
    /// The note of the last whole object or snapshot.
    pub note: Option<Note>,
}

impl Display for ChangedElsewhere {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "this directory has followed another database, and then {} by a program that did not \
             follow; set the directory aside and follow by a new one (`candide reach rejoin`), or \
             go on with it as a database of its own",
            self.what
        )
    }
}

impl std::error::Error for ChangedElsewhere {}
