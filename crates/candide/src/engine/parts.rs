//! The parts of a protocol: its data for a database, for a session, and for the garbage of
//! sessions.

#![forbid(unsafe_code)]

use super::garbage::Due;
use crate::epoch::Epoch;
use crate::record::CellAt;
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
    /// The old versions in a session's garbage. Old versions wait for the end of the attempts that
    /// may see them.
    #[doc(hidden)]
    type Backlog: Backlog;
}

/// Old versions that wait to be collected, and records and units that wait for snapshots to close.
/// The type is empty if the protocol keeps no versions.
pub trait Backlog: Default + Send + Debug {
    /// Returns whether nothing waits.
    #[doc(hidden)]
    fn is_empty(&self) -> bool;

    /// Returns the number of waiting entries.
    #[doc(hidden)]
    fn len(&self) -> usize;

    /// Returns whether old versions remain that can be examined when the horizon of epochs is
    /// `horizon`.
    #[doc(hidden)]
    fn is_due(&self, horizon: Epoch) -> bool;

    /// Takes over the backlog `left` of a closed session. Returns the number of entries added that
    /// have to be examined.
    #[doc(hidden)]
    fn take_over(&mut self, left: Self) -> usize;

    /// Parks a record, by its first unit, or a unit until the snapshot has closed, or until the
    /// next collection if `snapshot` is `None`. `queued` and `time` are as in [`Due`].
    #[doc(hidden)]
    fn park(&mut self, _snapshot: Option<u64>, _at: CellAt, (_queued, _time): (Epoch, u64)) {
        unreachable!("there are no versions")
    }

    /// Returns whether there are parked entries whose snapshots have closed.
    #[doc(hidden)]
    fn has_released(&self) -> bool {
        false
    }

    /// Moves parked entries whose snapshots have closed to `into`, until `into` has `most` entries.
    /// Each was parked before the epoch `before`.
    #[doc(hidden)]
    fn take_released(&mut self, _before: Epoch, _most: usize, _into: &mut Vec<Due>) {}
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
