//! A copy of the log elsewhere, as the store sees it.

use super::checkpoint_parts::CheckpointParts;
use super::feed::Feed;
use super::unopened::Unopened;
use crate::error::OpenError;
use crate::format::Uuid;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// A copy of the log elsewhere, for one database at a time.
///
/// It reads the log that is durable here by a [`Feed`], on threads of its own, and says by
/// [`Replies`] what it has. An *append* is an attempt to add something to the copy, if only the
/// statement that nothing is new. Appends have numbers, from 1. Each succeeds only if all before
/// it have, and only as long as this database is the one that may write to the copy.
///
/// No call waits for the copy, except [`open`](Remote::open), [`begin`](Remote::begin),
/// [`release`](Remote::release), [`checkpointed`](Remote::checkpointed) and
/// [`close`](Remote::close).
pub trait Remote: Send + Sync + Debug {
    /// Asks, before the contents of a directory are loaded, whether the database may be opened.
    /// Nothing has been changed, and the directory is locked.
    ///
    /// # Errors
    /// The database is not opened.
    fn open(&self, unopened: &Unopened<'_>) -> Result<(), OpenError>;

    /// Begins to copy. The contents are loaded; nothing is written yet.
    ///
    /// # Errors
    /// The database is not opened.
    fn begin(&self, feed: Feed, replies: Arc<dyn Replies>) -> Result<(), OpenError>;

    /// Returns whether there is a copy, or will be once the database is open. Without one, no
    /// transaction can wait for it.
    fn copies(&self) -> bool;

    /// Notes that all commits with stamps up to `cut` are durable here, with `bytes` more records
    /// than before.
    fn durable(&self, cut: u64, bytes: u64);

    /// Notes that a thread waits until the copy has all commits with stamps up to `cut`, and the
    /// append of this number has succeeded; 0 for none. The commits may not be durable here yet.
    fn want(&self, cut: u64, append: u64);

    /// Returns the number of appends that have begun.
    fn appends(&self) -> u64;

    /// Returns the number by which the copy tells the times apart in which one database writes to
    /// it.
    fn generation(&self) -> u64;

    /// Returns the identity of the database whose log the copy has. `own` is that of the database
    /// here, which is another one if it has followed.
    fn database(&self, own: Uuid) -> Uuid;

    /// Waits until the copy does not need the segments of the log up to `last`, so that they can be
    /// given back: it has them, or lags so much that it will have a checkpoint instead. Returns the
    /// number of the last one that it does not need, a smaller one if the copy ends or is closed.
    fn release(&self, last: u64) -> u64;

    /// Notes that a checkpoint is in force. Until this returns, no other one is made.
    fn checkpointed(&self, parts: &CheckpointParts<'_>);

    /// Returns why the last checkpoint has not been copied, as far as that is known; `None` if it
    /// has, or need not be. The next one is copied instead.
    fn checkpoint_failure(&self) -> Option<String>;

    /// Tries to copy what is durable, for a limited time, and ends the threads. The feed is dropped
    /// when this returns. Does nothing without [`begin`](Remote::begin).
    fn close(&self);
}

/// What a [`Remote`] tells the engine. Implemented by the engine. Calls may come from any thread.
pub trait Replies: Send + Sync + Debug {
    /// Says that the copy has all commits with stamps up to `cut`, by the append of this number.
    fn reach(&self, cut: u64, append: u64);

    /// Says whether the copy lags so much that no transaction should write now.
    fn set_behind(&self, is_behind: bool);

    /// Ends the log, as a failed sync does.
    fn fail(&self, failure: io::Error);

    /// Returns whether the log can be written: it has not failed, and the disk has room.
    fn can_write(&self) -> bool;
}
