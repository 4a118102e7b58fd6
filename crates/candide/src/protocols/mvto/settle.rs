//! Pending versions, and the attempts that wait for them.

#![forbid(unsafe_code)]

use super::parts::Mvto;
use crate::engine::Context;
use crate::locks::patience;
use crate::record::CellAt;
use crate::record::version_chain::{Version, VersionId};
use crate::sync::{AtomicU64, MODELLED, Ordering, Patience, Wait, Waited, Wish};

/// Waits until a pending version of a unit is committed or aborted; returns false if that takes too
/// long. If `is_patient`, the wait has no limit. The waiting attempt may sleep even while it holds
/// locks: a commit waits only for versions with smaller timestamps, and waits only a few rounds for
/// locks.
#[cold]
pub(super) fn await_settled(
    context: &Context<'_, Mvto>,
    at: &CellAt,
    pending: Version<'_>,
    is_patient: bool,
) -> bool {
    let patience = if is_patient && !MODELLED { Patience::Endless } else { patience(!MODELLED) };
    let place = settling_place(at, pending.id());
    let mut wait = Wait::new(&context.engine.parking, place, Wish::Look, patience);
    while pending.stamp().is_pending() {
        if wait.wait() == Waited::InVain && !is_patient {
            return false;
        }
    }
    true
}

/// Returns the place where attempts sleep while they wait for a version of a unit. Each version has
/// a place of its own.
#[inline]
pub(super) fn settling_place(at: &CellAt, version: VersionId) -> u64 {
    at.address() ^ version.word().rotate_left(32) | 1
}

/// Raises the read timestamp `rts` to `to`, unless it is that high already (TO1). The caller issues
/// a fence afterwards.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn raise(rts: &AtomicU64, to: u64) {
    if rts.load(Ordering::Relaxed) < to {
        rts.fetch_max(to, Ordering::Relaxed);
    }
}
