//! The additional functions of a protocol that runs one transaction at a time and applies its
//! writes at once.

#![forbid(unsafe_code)]

use super::context::Context;
use super::observation::Seen;
use super::parts::Parts;
use crate::access::Failure;
use crate::error::Abort;
use crate::record::CellAt;
use crate::schema::Words;
use crate::sync::Instant;

/// A moment in an attempt that applies its writes at once, to which the writes can be undone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Applied {
    /// The number of entries in the undo log.
    pub(crate) entries: usize,
    /// Whether an update had failed by then, and whether an updater had panicked.
    pub(crate) has_failed: bool,
    pub(crate) has_panicked: bool,
}

/// The exclusion of other transactions, and writes that are applied when they are staged.
///
/// A protocol uses [`Deferred`], which has none of these, or implements this trait.
pub trait InPlace<P: Parts> {
    /// Whether writes are applied when they are staged. Each record is then one unit, deletes
    /// unlink their records at once, and versions are not numbered.
    #[doc(hidden)]
    const APPLIES_AT_ONCE: bool = false;

    /// Waits for the right to run a transaction, until `until` at the latest; without a limit if
    /// `until` is `None`. Called before the session is pinned; each success is paired with
    /// [`InPlace::leave`].
    ///
    /// # Errors
    /// [`Abort::Nested`] if this thread would wait for itself; [`Abort::DeadlinePassed`] if `until`
    /// has passed.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn enter(_clock: &P::Clock, _until: Option<Instant>) -> Result<(), Abort> {
        Ok(())
    }

    /// Releases the right to run a transaction, after the transaction's commit or abort.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn leave(_clock: &P::Clock) {}

    /// Returns whether one of the attempt's updates has failed when it was applied. The attempt can
    /// then only end in the outcome of that update.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn has_failed(_attempt: &P::Attempt) -> bool {
        false
    }

    /// Returns whether the attempt has changed anything in place.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn has_changed(_attempt: &P::Attempt) -> bool {
        false
    }

    /// Returns a mark for a scan that begins now: the number of writes applied so far.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn mark(_attempt: &mut P::Attempt) -> usize {
        0
    }

    /// Returns the current moment, to which [`InPlace::undo_to`] can return.
    #[doc(hidden)]
    fn applied(_attempt: &P::Attempt) -> Applied {
        Applied::default()
    }

    /// Returns the first panic of an updater since a moment, as an error, or else how the first
    /// update that has failed since has failed. After an earlier panic, or an earlier failure, the
    /// respective one is not returned.
    #[doc(hidden)]
    fn failure_since(_attempt: &mut P::Attempt, _since: Applied) -> Result<(), Failure> {
        Ok(())
    }

    /// Notes that an operation has failed in this way and may have been applied in part. Returns
    /// `false`, and notes nothing, if writes are not applied at once.
    #[doc(hidden)]
    fn fail(_attempt: &mut P::Attempt, _abort: Abort) -> bool {
        false
    }

    /// Notes that the next write is a step on this unit. The step runs when it is applied, and its
    /// result is hidden until the commit: reads of the unit return [`Abort::NotYet`]. Returns the
    /// outcome in which the attempt has failed before, if any: the step is not to run then.
    #[doc(hidden)]
    fn hide(_attempt: &mut P::Attempt, _at: CellAt) -> Option<Abort> {
        None
    }

    /// Notes that the closure has asked for the result of the first hidden step on this unit, which
    /// is no longer hidden. Returns the step's outcome, if it has failed.
    #[doc(hidden)]
    fn show(_attempt: &mut P::Attempt, _at: CellAt) -> Result<(), Failure> {
        Ok(())
    }

    /// Undoes the writes applied since a moment. Records that the attempt has linked since stay
    /// linked, without a row. A mark that was made since stands for that moment.
    #[doc(hidden)]
    fn undo_to(_attempt: &mut P::Attempt, _to: Applied) {}

    /// Reads a unit as it was at `_mark`, without the attempt's later writes. Only called if writes
    /// are applied at once.
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

/// Writes that stay in the write set until the commit. Transactions may overlap.
#[derive(Debug)]
pub struct Deferred;

impl<P: Parts> InPlace<P> for Deferred {}
