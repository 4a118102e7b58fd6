//! What a protocol that runs one transaction at a time, and applies its writes at once, has beside
//! the others.

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
    /// Whether writes are applied when they are staged, to records that are one unit, and deletes
    /// unlink what they delete. Such a protocol numbers no versions.
    #[doc(hidden)]
    const APPLIES_AT_ONCE: bool = false;

    /// Waits for the right to run a transaction, until `until` at most if it is given, before the
    /// session is pinned; paired with [`InPlace::leave`].
    ///
    /// # Errors
    /// [`Abort::Nested`] if this thread would wait for itself, [`Abort::DeadlinePassed`] if it is
    /// too late.
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
