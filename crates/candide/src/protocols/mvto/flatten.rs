//! Flattening: a delta becomes a row when it is read, when its chain is collected, and before too
//! many lie on top of each other.
//!
//! A delta is committed without reading the row below; only the row's existence is checked. Other
//! versions may still be linked below it, deltas or whole rows. Flattening and linking both latch
//! the cell. So when a delta is flattened, an older version has been linked already, or its commit
//! will fail, because it finds the read timestamps raised to that of the delta. Pending versions
//! below are waited for without the latch, which their commits may need. Users' updaters are run
//! under the latch, so `record/delta.rs` catches their panics, and a delta becomes a row even then.

#![forbid(unsafe_code)]

use super::parts::Mvto;
use super::settle::{await_settled, raise};
use crate::engine::Context;
use crate::error::Abort;
use crate::protocols::shared::cell_lock::LOCK_ROUNDS_MAX;
use crate::record::version_chain::{Latched, Version};
use crate::record::{CellAt, Tid};
use crate::sync::{Mutant, Ordering, Spin, mutant};

/// The most deltas that may lie on one another; an update above them reads the row instead.
pub(crate) const DELTAS_MAX: usize = 16;

/// Makes room for two rows of this unit: the second restores the row if a user's updater fails.
pub(super) fn make_room(image: &mut Vec<u64>, at: &CellAt) {
    image.clear();
    image.reserve(2 * at.payload_words());
}

/// Makes a committed delta a row, which is built in `image`.
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

/// Makes a committed delta a row, under the latch of its cell; returns false if a version below is
/// pending.
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
            raise(below.rts(), to); // TO8
        }
        if !stamp.is_delta() {
            row = Some(below);
            break;
        }
    }
    let mut under = row.expect("TO8: a delta lies above a row");
    image.clear();
    image.extend(under.payload().iter().map(|word| word.load(Ordering::Relaxed)));
    loop {
        // From the oldest to the newest, without a list: there are few.
        let above = version.and_older().take_while(|next| next.id() != under.id());
        let Some(next) = above.filter(|next| next.stamp().is_committed()).last() else { break };
        cell.apply_delta(next, image);
        under = next;
    }
    version.become_row(image);
    true
}
