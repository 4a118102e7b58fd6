//! What can go wrong between a place and a leader or follower.

#![forbid(unsafe_code)]

use crate::place::PlaceError;
use candide_log::format::{Fault, Malformed, Uuid};
use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// The reason why a process cannot lead, write or follow.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReachError {
    /// Another process has claimed a generation since this directory has led. Nothing was changed.
    /// The directory can follow, or the operator may take over.
    Led {
        /// The newest claimed generation.
        generation: u64,
        /// When it was claimed, in milliseconds since 1970 by its claimant's clock.
        since: u64,
        /// The last object of its log, as far as it was looked for: the place, and when it was
        /// made. `None` if the log has none.
        last: Option<(u64, u64)>,
    },
    /// A later generation was claimed, and its claimant has ended this one. What this process has
    /// sent and not acknowledged may be in the log or not; it can acknowledge nothing more.
    Superseded {
        /// The generation of this process.
        generation: u64,
        /// The later generation.
        by: u64,
    },
    /// The place fails, or does not answer as often as was asked. The same call may succeed later.
    Place(PlaceError),
    /// The place's objects belong to another database.
    OtherDatabase {
        /// The object that shows it.
        name: String,
        /// The identity of its database.
        found: Uuid,
    },
    /// An object has a format of a later version.
    Format {
        /// The object.
        name: String,
        /// The version of its format.
        found: u32,
        /// The latest version that is known.
        known: u32,
    },
    /// An object is damaged, does not belong where it is, or is missing although others name it.
    /// A place that keeps its promises does not lead to this.
    Damaged {
        /// The object.
        name: String,
        /// The description of the fault.
        what: String,
    },
    /// The program has asked for something that the state does not allow. Nothing was changed.
    Misuse(String),
    /// The receiver of blocks and snapshots has refused one.
    Receiver(Box<dyn Error + Send + Sync>),
}

impl ReachError {
    pub(crate) fn damaged(name: impl Display, what: impl Into<String>) -> ReachError {
        ReachError::Damaged { name: name.to_string(), what: what.into() }
    }

    pub(crate) fn malformed(name: impl Display, error: &Malformed) -> ReachError {
        match error.fault {
            Fault::Version { found, known } => {
                ReachError::Format { name: name.to_string(), found, known }
            }
            _ => ReachError::damaged(name, error.to_string()),
        }
    }
}

impl Display for ReachError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ReachError::Led { generation, last, .. } => {
                write!(f, "another process leads generation {generation}")?;
                if let Some((place, _)) = last {
                    write!(f, ", whose log has {place} objects")?;
                }
                f.write_str("; follow it, or take over if it is gone for good")
            }
            ReachError::Superseded { generation, by } => write!(
                f,
                "generation {generation} has been ended by the process that leads generation \
                 {by}; this process can acknowledge nothing more"
            ),
            ReachError::Place(error) => error.fmt(f),
            ReachError::OtherDatabase { name, found } => {
                write!(f, "{name} belongs to another database, ")?;
                found.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            ReachError::Format { name, found, known } => write!(
                f,
                "{name} has format {found}, and this version knows formats up to {known}; use a \
                 later version"
            ),
            ReachError::Damaged { name, what } => write!(f, "{name} is damaged: {what}"),
            ReachError::Misuse(what) => f.write_str(what),
            ReachError::Receiver(error) => error.fmt(f),
        }
    }
}

impl Error for ReachError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ReachError::Place(error) => Some(error),
            ReachError::Receiver(error) => Some(&**error),
            _ => None,
        }
    }
}

impl From<PlaceError> for ReachError {
    fn from(error: PlaceError) -> ReachError {
        ReachError::Place(error)
    }
}
