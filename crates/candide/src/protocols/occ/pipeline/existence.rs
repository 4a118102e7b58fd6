//! What the predecessors have left in the TID words of chains.

#![forbid(unsafe_code)]

use super::super::early::Hold;
use super::super::{Attempt, Occ};
use crate::access::{Failure, WriteSet};
use crate::engine::Context;
use crate::error::Abort;
use crate::record::{CellAt, Tid};
use crate::sync::Ordering;

/// Checks that each row of a pipelined item exists or not, as the item expects. What the
/// predecessors have done to the rows is known.
pub(super) fn check_existence(
    context: &mut Context<'_, Occ>,
    attempt: &Attempt,
    writes: &WriteSet,
) -> Result<(), Failure> {
    for link in attempt.early.links().iter().filter(|link| link.hold == Hold::InChain) {
        if !writes.items()[link.index].accepts(!word_of(link.at).has(Tid::ABSENT)) {
            let abort = context.conflict(Abort::ExistenceChanged, link.at);
            return Err(Failure::Outcome(abort));
        }
    }
    Ok(())
}

/// Returns the TID word of a cell in a chain.
pub(super) fn word_of(at: CellAt) -> Tid {
    // Relaxed: the predecessors have been seen to be done or over (E31).
    Tid(at.cell_word(0).load(Ordering::Relaxed))
}
