//! The parts of a protocol: its data for a database, for a session, and for garbage.

#![forbid(unsafe_code)]

use crate::epoch::Epoch;
use std::fmt::Debug;

/// The types of a protocol, apart from its functions, so that code for databases and sessions which
/// calls no function of the protocol depends only on this trait.
pub trait Parts: Sized + Send + Sync + Debug + 'static {
    /// The choice that the protocol leaves when a database is built
    /// ([`Builder::policy`](crate::Builder::policy)).
    type Policy: Clone + Default + Debug + Send + Sync;

    /// The part of a database that is the protocol's.
    #[doc(hidden)]
    type Clock: Send + Sync + Debug;
    /// The part of a session that is the protocol's, with all that an attempt notes.
    #[doc(hidden)]
    type Attempt: Send;
    /// A session's data about old versions, which its garbage collection uses, too.
    #[doc(hidden)]
    type SessionVersions: Default + Send + Debug;
    /// The part of a session's garbage that waits for the end of attempts that see old versions.
    #[doc(hidden)]
    type Backlog: Backlog;
}

/// Old versions that wait to be collected. Without versions, nothing.
pub trait Backlog: Default + Send + Debug {
    /// Returns whether nothing waits.
    #[doc(hidden)]
    fn is_empty(&self) -> bool;

    /// Returns how many entries wait.
    #[doc(hidden)]
    fn len(&self) -> usize;

    /// Returns whether the backlog has further entries to examine, if `horizon` is the horizon of
    /// epochs.
    #[doc(hidden)]
    fn is_due(&self, horizon: Epoch) -> bool;

    /// Takes over the garbage of a dropped session. Returns the number of entries that this adds.
    #[doc(hidden)]
    fn take_over(&mut self, left: Self) -> usize;
}

impl Backlog for () {
    fn is_empty(&self) -> bool {
        true
    }

    fn len(&self) -> usize {
        0
    }

    fn is_due(&self, _horizon: Epoch) -> bool {
        false
    }

    fn take_over(&mut self, (): ()) -> usize {
        0
    }
}
