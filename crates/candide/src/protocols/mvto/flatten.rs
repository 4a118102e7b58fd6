//! Flattening: turning a delta into a row. A delta is flattened when it is read, when its chain is
//! collected, and before more than `DELTAS_MAX` deltas lie on one another.
//!
//! Most deltas are committed without reading the row below; only the row's existence is checked.
//! Other versions, deltas or whole rows, may still be linked below such a delta. Flattening and
//! linking both latch the cell. So when a delta is flattened, each older version has been linked
//! already, or will not be: its commit will fail, because it finds the read timestamps raised to
//! the delta's timestamp. An attempt waits for pending versions below without holding the latch,
//! since their commits may need the latch. Users' updaters run under the latch. `record/delta.rs`
//! catches their panics, so the delta becomes a row even then.

#![forbid(unsafe_code)]

use super::parts::Mvto;
use super::settle::{await_settled, raise};
use crate::engine::Context;
use crate::error::Abort;
use crate::locks::LOCK_ROUNDS_MAX;
use crate::record::version_chain::{Latched, Version};
use crate::record::{CellAt, Tid};
use crate::sync::{Ordering, Spin};

/// The largest number of deltas that may lie on one another. An update above that many reads the
/// row instead of becoming a delta.
pub(crate) const DELTAS_MAX: usize = 16;

/// Makes room in `image` for two rows of this unit. The second one restores the row if a user's
/// updater fails.
pub(super) fn make_room(image: &mut Vec<u64>, at: &CellAt) {
    image.clear();
    image.reserve(2 * at.payload_words());
}

/// Makes the committed version `version` a row if it is a delta. The row is built in `image`. If
/// the delta is merged meanwhile (VC5), it is aborted afterwards.
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

/// Makes a committed delta a row, under the latch of its cell. Returns true if `version` is a row
/// afterwards, and false if a version below is pending.
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
        if stamp.is_aborted() {
            continue;
        }
        if stamp.is_pending() {
            return false;
        }
        raise(below.rts(), to); // TO8
        if !stamp.is_delta() {
            row = Some(below);
            break;
        }
    }
    let mut under = row.expect("TO8: a delta lies above a row");
    image.clear();
    image.extend(under.payload().iter().map(|word| word.load(Ordering::Relaxed)));
    loop {
        // Applies the deltas from the oldest to the newest. Each round walks the chain anew, since
        // there are few deltas.
        let above = version.and_older().take_while(|next| next.id() != under.id());
        let Some(next) = above.filter(|next| next.stamp().is_committed()).last() else { break };
        cell.apply_delta(next, image);
        under = next;
    }
    version.become_row(image);
    true
}
