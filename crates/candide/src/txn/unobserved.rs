//! Transactions with a name, in builds without the features `histograms` and `tracing`: nothing of
//! them is observed. Each function here is empty, and becomes no instruction.

#![forbid(unsafe_code)]

use crate::error::Abort;
use crate::stats::{Names, NamesByAddress, SessionNames};

/// The part of an observation that the session has: none.
#[derive(Debug, Default)]
pub(super) struct Kept;

impl Kept {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn begin(&mut self, _: Option<&'static str>, _: u64) -> Observed {
        Observed
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn note(&mut self, _: Option<Abort>) {}

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn note_abort(
        &mut self,
        _: &mut NamesByAddress,
        _: (&Names, &SessionNames),
        _: (Option<u16>, Abort),
    ) {
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn end(
        &mut self,
        _: &mut NamesByAddress,
        _: (&Names, &SessionNames),
        _: &mut Observed,
        _: (bool, u32),
    ) {
    }
}

/// The part of an observation that the transaction's call has: none.
#[derive(Debug)]
pub(super) struct Observed;

impl Observed {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn return_to_caller(&mut self) {}
}
