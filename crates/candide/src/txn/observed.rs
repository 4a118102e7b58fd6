//! Observing transactions that have a name, under the features `histograms` and `tracing`: the time
//! that they take, the reasons of their aborts, and spans.
//!
//! An observation begins before the first attempt, and ends when nothing is locked or pinned any
//! more. A subscriber, which is the user's code, runs only then, and between two attempts.

#![forbid(unsafe_code)]

#[cfg(feature = "tracing")]
use super::events::{self, End};
use crate::error::Abort;
use crate::stats::{Names, NamesByAddress, SessionNames};
#[cfg(feature = "histograms")]
use crate::sync::Instant;

/// The part of an observation that the session has.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The name of the running transaction, if it has one.
    name: Option<&'static str>,
    /// The reason for which the last attempt, or the transaction, has ended; `None` if the closure
    /// has ended it.
    reason: Option<Abort>,
}

/// The part of an observation that the transaction's call has; empty if the transaction has no
/// name.
#[derive(Debug)]
pub(super) struct Observed(Option<Begun>);

#[derive(Debug)]
struct Begun {
    #[cfg(feature = "histograms")]
    at: Instant,
    #[cfg(feature = "tracing")]
    span: tracing::span::EnteredSpan,
    /// Whether the transaction has returned a result, and not ended in a panic.
    has_returned: bool,
}

impl Kept {
    /// Begins to observe a transaction of a session, if the transaction has a name.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn begin(&mut self, name: Option<&'static str>, session: u64) -> Observed {
        Observed(name.map(|name| self.begin_named(name, session)))
    }

    #[inline(never)]
    #[cfg_attr(not(feature = "tracing"), expect(unused_variables, reason = "for a span"))]
    fn begin_named(&mut self, name: &'static str, session: u64) -> Begun {
        let begun = Begun {
            #[cfg(feature = "histograms")]
            at: Instant::now(),
            #[cfg(feature = "tracing")]
            span: events::transaction(name, session),
            has_returned: false,
        };
        // Only now: a subscriber that panics leaves nothing behind.
        *self = Kept { name: Some(name), reason: None };
        begun
    }

    /// Notes the reason for which an attempt, or the transaction, has ended; `None` if the closure
    /// has ended it.
    pub(super) fn note(&mut self, reason: Option<Abort>) {
        self.reason = reason;
    }

    /// Notes the reason for which an attempt, or the transaction, has ended, and counts it, if the
    /// transaction has a name.
    #[cfg_attr(not(feature = "histograms"), expect(unused_variables, reason = "for counts"))]
    pub(super) fn note_abort(
        &mut self,
        by_address: &mut NamesByAddress,
        (names, session): (&Names, &SessionNames),
        (table, reason): (Option<u16>, Abort),
    ) {
        self.reason = Some(reason);
        #[cfg(feature = "histograms")]
        if let Some(name) = self.name {
            by_address.count_abort(names, session, name, (table, reason));
        }
    }

    /// Ends an observation, of a transaction that has committed or not, after so many attempts.
    #[inline(never)]
    #[cfg_attr(
        not(all(feature = "histograms", feature = "tracing")),
        expect(unused_variables, reason = "each is for one of the features")
    )]
    pub(super) fn end(
        &mut self,
        by_address: &mut NamesByAddress,
        (names, session): (&Names, &SessionNames),
        observed: &mut Observed,
        (has_committed, attempts): (bool, u32),
    ) {
        let Kept { name, reason } = std::mem::take(self);
        let (Some(name), Some(begun)) = (name, observed.0.take()) else { return };
        #[cfg(feature = "histograms")]
        by_address.record(names, session, name, begun.at.elapsed());
        #[cfg(feature = "tracing")]
        let end = match reason {
            _ if has_committed => End::Commit,
            _ if !begun.has_returned => End::Panic,
            None => End::Error,
            Some(reason) => End::Abort(reason),
        };
        #[cfg(feature = "tracing")]
        events::transaction_ended(name, begun.span, attempts, end);
    }
}

impl Observed {
    /// Notes that the transaction returns to its caller, and has not ended in a panic.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn return_to_caller(&mut self) {
        if let Some(begun) = &mut self.0 {
            begun.has_returned = true;
        }
    }
}
