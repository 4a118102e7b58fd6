//! What can go wrong with a standby.

#![forbid(unsafe_code)]

use crate::error::ReachError;
use candide::OpenError;
use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// The reason why a database cannot follow another one, or not take over.
#[derive(Debug)]
#[non_exhaustive]
pub enum StandbyError {
    /// The database in the directory cannot be opened, or does not follow another one.
    Open(OpenError),
    /// The place fails, or what it has cannot be used.
    Reach(ReachError),
    /// The place has no database, or no state of one yet.
    Nothing,
    /// Readers of the directory have been shown a later state than what can be read in the place.
    /// Follow again when the place shows the rest. Each object is named by its generation and its
    /// place in the log of that generation.
    Behind {
        /// The object after which readers have seen the database.
        shown: (u64, u64),
        /// The last object that can be read; zeros if there is none.
        found: (u64, u64),
    },
    /// The standby follows no more, for this reason. Follow again to begin with its last whole
    /// object.
    Stopped(String),
}

impl Display for StandbyError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            StandbyError::Open(error) => error.fmt(f),
            StandbyError::Reach(error) => error.fmt(f),
            StandbyError::Nothing => f.write_str(
                "the place has no state of a database yet; open the database that is to be followed with this place",
            ),
            StandbyError::Behind { shown, found } => write!(
                f,
                "the place shows the log up to object {} of generation {}, and readers have seen \
                 the state after object {} of generation {}; follow again when the place shows it",
                found.1, found.0, shown.1, shown.0
            ),
            StandbyError::Stopped(what) => write!(f, "the standby has stopped: {what}"),
        }
    }
}

impl Error for StandbyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StandbyError::Open(error) => Some(error),
            StandbyError::Reach(error) => Some(error),
            _ => None,
        }
    }
}

impl From<OpenError> for StandbyError {
    fn from(error: OpenError) -> StandbyError {
        StandbyError::Open(error)
    }
}

impl From<ReachError> for StandbyError {
    fn from(error: ReachError) -> StandbyError {
        StandbyError::Reach(error)
    }
}

/// The reason why a standby is not where it was to be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitError {
    /// The generation has ended before the transaction: a fail-over has lost it.
    Lost,
    /// The time has passed.
    Timeout,
    /// The position is that of another database.
    OtherDatabase,
    /// The standby follows no more, for this reason.
    Stopped(String),
}

impl Display for WaitError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            WaitError::Lost => {
                f.write_str("the transaction was lost: its generation has ended before it")
            }
            WaitError::Timeout => f.write_str("the standby has not got there in time"),
            WaitError::OtherDatabase => {
                f.write_str("the position is that of another database than the standby follows")
            }
            WaitError::Stopped(what) => write!(f, "the standby has stopped: {what}"),
        }
    }
}

impl Error for WaitError {}
