//! The additional functions of a protocol that runs one transaction at a time and applies writes at
//! once.

#![forbid(unsafe_code)]

use super::context::Context;
use super::observation::Seen;
use super::parts::Parts;
use crate::error::Abort;
use crate::record::CellAt;
use crate::schema::Words;
use crate::sync::Instant;

/// Exclusion of transactions, and writes that are applied when they are staged.
///
/// A protocol either is [`Deferred`] and has none of this, or answers for all of it.
pub trait InPlace<P: Parts> {
    /// Whether writes are applied when they are staged. Records have one unit then, deletes unlink
    /// their records at once, and no versions are numbered.
    #[doc(hidden)]
    const APPLIES_AT_ONCE: bool = false;

    /// Waits for the right to run a transaction, at most until `until` if that is given. Called
    /// before the session is pinned; paired with [`InPlace::leave`].
    ///
    /// # Errors
    /// [`Abort::Nested`] if this thread would wait for itself, [`Abort::DeadlinePassed`] if `until`
    /// has passed.
    #[doc(hidden)]
    #[inline(always)]
    fn enter(_clock: &P::Clock, _until: Option<Instant>) -> Result<(), Abort> {
        Ok(())
    }

    /// Gives back the right to run a transaction, after its commit or abort.
    #[doc(hidden)]
    #[inline(always)]
    fn leave(_clock: &P::Clock) {}

    /// Returns whether an update has failed that the attempt has applied: the attempt can only end
    /// in that.
    #[doc(hidden)]
    #[inline(always)]
    fn has_failed(_attempt: &P::Attempt) -> bool {
        false
    }

    /// Returns a mark for a scan that begins now: the writes that have been applied so far.
    #[doc(hidden)]
    #[inline(always)]
    fn mark(_attempt: &mut P::Attempt) -> usize {
        0
    }

    /// Reads a unit without the writes that the attempt has applied since a mark. Only called if
    /// writes are applied at once.
    #[doc(hidden)]
    fn read_at_mark(
        _context: &mut Context<'_, P>,
        _attempt: &mut P::Attempt,
        _at: CellAt,
        _mark: usize,
        _copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        unreachable!("writes are not applied at once")
    }
}

/// Writes that wait in the write set until the commit, beside transactions that overlap.
#[derive(Debug)]
pub struct Deferred;

impl<P: Parts> InPlace<P> for Deferred {}
