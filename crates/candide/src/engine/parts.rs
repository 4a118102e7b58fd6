//! The parts of a protocol: what it keeps for a database, for a session, and for what sessions
//! leave behind.

#![forbid(unsafe_code)]

use crate::epoch::Epoch;
use std::fmt::Debug;

/// The types of a protocol, apart from its functions, so that what works with a database and a
/// session whatever the protocol needs no function of it.
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
    /// What a session keeps of old versions, and needs when it collects garbage, too.
    #[doc(hidden)]
    type SessionVersions: Default + Send + Debug;
    /// What waits among a session's garbage for the end of attempts that see old versions.
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

    /// Returns whether more could be looked at than has been, if `horizon` is that of epochs.
    #[doc(hidden)]
    fn is_due(&self, horizon: Epoch) -> bool;

    /// Takes over what a session has left behind. Returns how many entries will have to be looked
    /// at for it.
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
