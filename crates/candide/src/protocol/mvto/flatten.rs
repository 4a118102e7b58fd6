//! Deltas come to be rows: when somebody reads one, when its chain is collected, and before too
//! many lie on one another.
//!
//! A delta is committed without a look at the row below, only at its existence. Others may still be
//! linked below it, deltas or whole rows. Who flattens has latched the cell, as has who links; so
//! what is below is either there already, or will find the read timestamps raised to the delta's,
//! and fail. What is pending below is waited for, without the latch, which its owner may need. What
//! users' updaters do is done under the latch, so no panic of theirs comes as far as here
//! (`record/delta.rs`), and a delta becomes a row whatever they do.

#![forbid(unsafe_code)]

use super::{Mvto, await_settled, raise};
use crate::error::Abort;
use crate::protocol::Context;
use crate::protocol::locks::LOCK_ROUNDS_MAX;
use crate::record::chain::{Latched, Version};
use crate::record::{CellAt, Tid};
use crate::sync::{Mutant, Ordering, Spin, mutant};

/// As many deltas may lie on one another; whoever comes then, reads.
pub(crate) const DELTAS_MAX: usize = 16;

/// Makes room for a row of this unit, and for another one: a user's updater that breaks its word
/// leaves the row as it was.
pub(super) fn make_room(image: &mut Vec<u64>, at: &CellAt) {
    image.clear();
    image.reserve(2 * at.payload_words());
}

/// Makes a committed delta the row that it comes to. The image is room for that.
#[cold]
pub(super) fn flatten(
    context: &mut Context<'_, Mvto>,
    at: &CellAt,
    version: Version<'_>,
    image: &mut Vec<u64>,
    is_patient: bool,
) -> Result<(), Abort> {
    if version.stamp().is_delta() {
        make_room(image, at);
    }
    let mut spin = Spin::default();
    while version.stamp().is_delta() {
        match at.try_latch() {
            Ok(cell) => {
                let is_flat = flatten_latched(&cell, version, image);
                cell.release();
                if is_flat {
                    return Ok(());
                }
                let mut below = version.and_older().skip(1);
                if let Some(pending) = below.find(|below| below.stamp().is_pending())
                    && await_settled(context, at, pending, is_patient)
                {
                    continue;
                }
            }
            Err(word) if word.has(Tid::DEAD) => {
                return Err(context.conflict(Abort::RecordRemoved, *at));
            }
            Err(_) => {}
        }
        if !spin.wait_at_most(LOCK_ROUNDS_MAX) && !is_patient {
            return Err(context.conflict(Abort::Locked, *at));
        }
    }
    Ok(())
}

/// The same by who has latched the cell; false if something below is pending.
pub(super) fn flatten_latched(
    cell: &Latched<'_>,
    version: Version<'_>,
    image: &mut Vec<u64>,
) -> bool {
    if !version.stamp().is_delta() {
        return true;
    }
    let to = 2 * version.stamp().ts();
    let mut row = None;
    for below in version.and_older().skip(1) {
        let stamp = below.stamp();
        if stamp.is_aborted() || stamp.is_pending() && mutant(Mutant::FlattenedOverPending) {
            continue;
        }
        if stamp.is_pending() {
            return false;
        }
        if !mutant(Mutant::FlattenedUnraised) {
            raise(below.rts(), to);
        }
        if !stamp.is_delta() {
            row = Some(below);
            break;
        }
    }
    let mut under = row.expect("a delta lies above a row");
    image.clear();
    image.extend(under.payload().iter().map(|word| word.load(Ordering::Relaxed)));
    loop {
        // From below to above, without a list: there are few.
        let above = version.and_older().take_while(|next| next.id() != under.id());
        let Some(next) = above.filter(|next| next.stamp().is_committed()).last() else { break };
        cell.apply_delta(next, image);
        under = next;
    }
    version.become_row(image);
    true
}
