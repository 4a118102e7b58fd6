//! Changes of the flags that make readers and writers of a cell ask its table's policy.

#![forbid(unsafe_code)]

use super::cell_queue::{has_queue, queue};
use super::patience::LOCK_ROUNDS_MAX;
use super::shared::LockBase;
use super::word::{Lock, Mode, release};
use super::{FLAGS, FROZEN, RASK, WASK, flags_of};
use crate::policy::Policy;
use crate::record::{CellAt, Tid};
use crate::sync::{Ordering, Spin};

/// Gives a cell exactly the flags `wanted`, if its TID word is unlocked (LK3). Unless
/// `can_clear`, only adds flags, and does nothing to a cell with other ones; otherwise the caller
/// holds the second word for writing (LK4). Returns whether the cell now has these flags.
pub(super) fn exchange_flags(at: CellAt, wanted: u64, can_clear: bool) -> bool {
    let cell = at.cell_word(0);
    loop {
        let tid = Tid(cell.load(Ordering::Relaxed));
        let now = tid.0 & !FLAGS | wanted;
        if now == tid.0 || tid.has(Tid::DEAD) {
            return true;
        }
        if !can_clear && tid.has(FLAGS & !wanted) {
            return false;
        }
        if tid.has(Tid::LOCK) {
            return false;
        }
        // Release: a writer that finds the flags gone also finds the second word as it was when
        // they went (E21). Acquire is not needed, since nothing is read under the flags.
        if cell.compare_exchange(tid.0, now, Ordering::Release, Ordering::Relaxed).is_ok() {
            return true;
        }
    }
}

/// Gives a cell the flags of its table's present policy. The caller holds the second word for
/// writing, and releases it next.
pub(super) fn follow(base: LockBase<'_>, at: CellAt, policy: Policy) {
    exchange_flags(at, flags_of(policy, base.locks.policies.mocc()), true);
}

/// Returns whether a cell has the flags of its table's present policy.
#[inline]
pub(super) fn follows(base: LockBase<'_>, at: CellAt, policy: Policy) -> bool {
    let flags = at.cell_word(0).load(Ordering::Relaxed) & FLAGS;
    flags == flags_of(policy, base.locks.policies.mocc())
}

/// Returns the TID word with which a held cell is released: `tid`, with the flags of the table's
/// policy that it lacks (LK3).
pub(crate) fn with_flags(base: LockBase<'_>, at: CellAt, tid: Tid) -> Tid {
    let flags = || flags_of(base.locks.policies.at(at), base.locks.policies.mocc());
    let wanted = if at.cell_words() > 1 { flags() } else { 0 };
    Tid(tid.0 | wanted)
}

/// Decides by a coin how a cell of an adaptive table is read from now on. The caller holds the
/// second word in `mode`, and releases it next. After a write, heads make readers lock. After a
/// read, heads make readers optimistic, if no other session reads. Returns the mode in which the
/// second word is held now.
pub(super) fn toss(at: CellAt, mode: Mode, me: u16, is_heads: bool) -> Mode {
    match mode {
        Mode::Write if is_heads => {
            exchange_flags(at, RASK | WASK, true);
            Mode::Write
        }
        Mode::Read if is_heads && Lock::of(&at).upgrade(me) => {
            exchange_flags(at, WASK, true);
            Mode::Write
        }
        mode => mode,
    }
}

/// Gives a cell the flags of a policy to which its table changes. Waits for the cell's locks for a
/// bounded number of rounds.
pub(crate) fn follow_policy(base: LockBase<'_>, at: CellAt, policy: Policy) {
    let wanted = flags_of(policy, base.locks.policies.mocc());
    let mut spin = Spin::default();
    loop {
        let done = exchange_flags(at, wanted, false)
            || has_queue(at) && queue(base, &at).is_free() && exchange_flags(at, wanted, true)
            || at.cell_words() == 2
                && Lock::of(&at).take_to_write(0).is_ok_and(|()| {
                    let done = exchange_flags(at, wanted, true);
                    release(base, at, Mode::Write);
                    done
                });
        if done || !spin.wait_at_most(LOCK_ROUNDS_MAX) {
            return;
        }
    }
}

/// Sets the flag of frozen units in a cell, if the cell is unlocked.
pub(crate) fn note_frozen(at: CellAt) {
    let change = |tid: u64| (!Tid(tid).has(Tid::LOCK)).then_some(tid | FROZEN);
    // Relaxed: the flag is a hint.
    let _ = at.cell_word(0).fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
}

/// Clears the flag of frozen units in a cell, if the cell is unlocked.
pub(crate) fn forget_frozen(at: CellAt) {
    let change = |tid: u64| (!Tid(tid).has(Tid::LOCK)).then_some(tid & !FROZEN);
    // Relaxed: the flag is a hint.
    let _ = at.cell_word(0).fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
}
