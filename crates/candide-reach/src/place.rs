//! What a place is: objects that can be created only if their name is free.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt::{self, Debug, Display, Formatter};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The most names that a list has. One with fewer names is complete.
pub const LIST_MAX: usize = 1000;

/// How often [`Place::wait`] looks, unless a place can do better.
const POLL: Duration = Duration::from_millis(20);

/// A place that keeps objects: bytes with a name, which never change.
///
/// A place is trusted for two things:
///
/// * Of several creations of one name, from whatever machine, at most one succeeds, unless the
///   object is deleted in between. Before a place is trusted, it is [probed](crate::probe()).
/// * What exists is durable and can be read, if not at once: an object that a creation or a read
///   has found may be missing from a read for a while, but not for ever.
///
/// Lists are hints. They may lack objects, and name deleted ones. An implementation that breaks
/// these rules may lose what was acknowledged; it cannot lead to undefined behaviour, and readers
/// notice gaps, rewinds and flipped bits by what the objects say of one another.
///
/// Calls block, and may come from several threads at once. A name is checked by
/// [`check_name`](crate::check_name), and refused if that says so.
pub trait Place: Send + Sync + Debug {
    /// Creates an object with these bytes if no object has this name.
    ///
    /// # Errors
    /// After [`PlaceError::Unknown`] the object may exist now, later, or never. After any other
    /// error this call has created nothing and will not.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, PlaceError>;

    /// Returns the bytes of an object; `None` if there is none of this name.
    ///
    /// # Errors
    /// The object could not be read.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, PlaceError>;

    /// Returns names of objects that begin with `prefix` and come after `after`, in ascending
    /// order: the first [`LIST_MAX`], or all if there are fewer, as far as the place knows.
    ///
    /// # Errors
    /// The names could not be read.
    fn list(&self, prefix: &str, after: &str) -> Result<Vec<String>, PlaceError>;

    /// Deletes an object. That there is none of this name is no error.
    ///
    /// # Errors
    /// The object may exist or not.
    fn delete(&self, name: &str) -> Result<(), PlaceError>;

    /// Waits until an object of this name exists, at most for `timeout`. Returns whether it does.
    ///
    /// # Errors
    /// The place could not be asked.
    fn wait(&self, name: &str, timeout: Duration) -> Result<bool, PlaceError> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if self.read(name)?.is_some() {
                return Ok(true);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
            thread::sleep(left.map_or(POLL, |left| left.min(POLL)));
        }
    }

    /// Opens another handle of the same place, which shares no connection and no cache with this
    /// one. The probe needs it.
    ///
    /// # Errors
    /// The place cannot be opened.
    fn another(&self) -> Result<Arc<dyn Place>, PlaceError>;

    /// Returns the path of the folder that the place is, if it is one. It is not to be in the
    /// directory of the database, nor the other way round.
    fn path(&self) -> Option<&Path> {
        None
    }
}

/// What became of a creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// This call has created the object, which is durable.
    New,
    /// An object of this name exists. It may be that of an earlier request of the same caller.
    Exists,
}

/// The reason why a call of a place has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceError {
    /// There was no answer, or none that says what has happened. The call may take effect later.
    Unknown(String),
    /// The place does not do it: a name that is not allowed, no right, no room. Nothing was done.
    Refused(String),
    /// What the place has contradicts what a place is.
    Broken(String),
    /// Two creations of one name both succeeded, so two leaders could acknowledge different
    /// histories. Such a place cannot be used.
    Unconditional(String),
}

impl Display for PlaceError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            PlaceError::Unknown(what) => write!(f, "the place has not answered: {what}"),
            PlaceError::Refused(what) => write!(f, "the place refuses: {what}"),
            PlaceError::Broken(what) => write!(f, "the place is broken: {what}"),
            PlaceError::Unconditional(what) => write!(
                f,
                "the place lets two creations of one name succeed ({what}); use a place that \
                 creates an object only if its name is free"
            ),
        }
    }
}

impl Error for PlaceError {}
