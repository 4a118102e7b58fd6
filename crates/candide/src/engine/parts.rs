//! The parts of a protocol: its data for a database, for a session, and for the garbage of
//! sessions.

#![forbid(unsafe_code)]

use crate::epoch::Epoch;
use std::fmt::Debug;

/// The types of a protocol, without its functions. Code that uses a database and a session without
/// calling the protocol needs only this trait.
pub trait Parts: Sized + Send + Sync + Debug + 'static {
    /// The protocol's option that is chosen when a database is built
    /// ([`Builder::policy`](crate::Builder::policy)).
    type Policy: Clone + Default + Debug + Send + Sync + 'static;

    /// The protocol's part of a database.
    #[doc(hidden)]
    type Clock: Send + Sync + Debug;
    /// The protocol's part of a session, including everything that an attempt notes.
    #[doc(hidden)]
    type Attempt: Send;
    /// A session's data about old versions that garbage collection needs, too.
    #[doc(hidden)]
    type SessionVersions: Default + Send + Debug;
    /// The old versions in a session's garbage. They wait for the end of the attempts that may see
    /// them.
    #[doc(hidden)]
    type Backlog: Backlog;
}

/// Old versions that wait to be collected; empty if the protocol keeps no versions.
pub trait Backlog: Default + Send + Debug {
    /// Returns whether no old version waits.
    #[doc(hidden)]
    fn is_empty(&self) -> bool;

    /// Returns the number of waiting entries.
    #[doc(hidden)]
    fn len(&self) -> usize;

    /// Returns whether entries remain that can be examined when the horizon of epochs is `horizon`.
    #[doc(hidden)]
    fn is_due(&self, horizon: Epoch) -> bool;

    /// Takes over the backlog `left` of a closed session. Returns the number of entries added that
    /// have to be examined.
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
