//! The hot rows, under the policies that learn from conflicts.
//!
//! A row is *hot* if RASK and WASK are set in its cell: readers and writers lock it. Reads that
//! fail to validate raise a row's temperature, and a row whose temperature reaches the threshold
//! becomes hot. A session that waits for the lock of a hot row raises the temperature, too: the
//! lock has probably spared a failure. Each release of a lock lowers it, by the less the longer the
//! attempts are that fail, since a failure costs an attempt, and a lock less than a read. So short
//! transactions lock a row only if most of them would fail without. A hot row whose temperature has
//! fallen [`COOLED_BY`] below the threshold is no longer hot.
//!
//! An attempt that takes a lock because the attempt before has failed sets WASK if the row is not
//! hot, so that writers ask. The release of the lock clears the flag, unless another session then
//! holds the lock. In that case, or if the attempt has not got the lock, a later release clears the
//! flag.
//!
//! Temperatures are looked at only by attempts that fail or that lock. So a workload without
//! conflicts never touches them.

#![forbid(unsafe_code)]

use super::change::exchange_flags;
use super::patience::{ROUNDS_HELD, patience};
use super::shared::{LockBase, Locker};
use super::{FLAGS, RASK, WASK};
use crate::policy::Policy;
use crate::record::{CellAt, Tid};
use crate::stats::LockCount;
use crate::sync::{MODELLED, Ordering, Spin, Wait, Waited, Wish};

/// The distance below the threshold to which the temperature of a hot row falls before the row is
/// no longer hot. A row of temperature 0 is hot only if the threshold is 0.
const COOLED_BY: u8 = 3;
/// The number of bytes of memory in which all rows have one temperature, if rows share
/// temperatures.
const PAGE: u64 = 1 << 12;

/// Returns the key of a cell's temperature.
fn key(base: LockBase<'_>, at: CellAt) -> u64 {
    if base.locks.policies.mocc().is_per_page() { at.address() & !(PAGE - 1) } else { at.address() }
}

fn has(at: CellAt, flag: u64) -> bool {
    Tid(at.cell_word(0).load(Ordering::Relaxed)).has(flag)
}

/// Returns whether a row is hot.
pub(super) fn is_hot(at: CellAt) -> bool {
    has(at, RASK)
}

/// Counts a read that has failed to validate. The row becomes hot if its temperature has reached
/// the threshold.
pub(super) fn heat(locker: &mut Locker<'_>, at: CellAt) {
    let options = locker.locks.policies.mocc();
    let threshold = options.threshold_of_heat();
    let temperature =
        locker.locks.temperatures.raise(key(locker.base(), at), &mut locker.local.random);
    if temperature < threshold {
        return;
    }
    make_hot(locker, at);
    if options.is_per_page() {
        let table = locker.engine.table(at.table());
        let words = at.record().key_words(table.layout.key_words());
        table.index.for_each_beside(words.as_slice(), &mut |record| {
            for at in table.layout.cells(record) {
                // The record may be in another page of memory.
                locker.locks.temperatures.keep(key(locker.base(), at), threshold);
                make_hot(locker, at);
            }
        });
    }
}

/// Makes a row hot, unless its cell is locked; a row that stays cold for this reason becomes hot
/// with its next failure.
fn make_hot(locker: &mut Locker<'_>, at: CellAt) {
    if !has(at, RASK | Tid::ABSENT) && exchange_flags(at, FLAGS, false) {
        locker.count(LockCount::Heated);
    }
}

/// Makes writers of a row ask for its lock. If a commit has locked the cell, sleeps until that
/// commit has ended (WA3). If a read for update has locked it, waits a few rounds only, since the
/// attempt that has read may be waiting for this one (WA1). Returns whether writers now ask for the
/// lock.
pub(super) fn warm(base: LockBase<'_>, at: CellAt) -> bool {
    let mut spin = Spin::default();
    let mut wait: Option<Wait<'_>> = None;
    let begin = || {
        let patience = patience(!MODELLED);
        Wait::new(&base.engine.parking, at.address(), Wish::Look, patience)
    };
    loop {
        if has(at, WASK) || exchange_flags(at, WASK, false) {
            return true;
        }
        let goes_on = match has(at, Tid::INSTALL) {
            true => wait.get_or_insert_with(begin).wait() == Waited::Again,
            false => spin.wait_at_most(ROUNDS_HELD),
        };
        if !goes_on {
            return false;
        }
    }
}

/// Counts a wait for the lock of a hot row like a failure that the lock has spared.
pub(super) fn note_wait(locker: &mut Locker<'_>, at: CellAt) {
    if locker.locks.policies.at(at) == Policy::Mocc && is_hot(at) {
        let key = key(locker.base(), at);
        locker.locks.temperatures.raise(key, &mut locker.local.random);
    }
}

/// Returns whether attempts that read a row usually write it.
pub(super) fn is_written(base: LockBase<'_>, at: CellAt) -> bool {
    base.locks.temperatures.is_written(key(base, at))
}

/// Notes whether an attempt that has read a row has also written it.
pub(super) fn note_written(base: LockBase<'_>, at: CellAt, is_written: bool) {
    let key = key(base, at);
    if base.locks.temperatures.is_written(key) != is_written {
        base.locks.temperatures.set_written(key, is_written);
    }
}

/// Lowers the temperature of a row whose lock is about to be released, and makes a cold row hot if
/// its temperature has reached the threshold. Returns whether the row's flags are to be cleared,
/// once the attempt holds the lock alone (LK4).
pub(super) fn cools(locker: &mut Locker<'_>, at: CellAt) -> bool {
    if locker.locks.policies.at(at) != Policy::Mocc {
        return true;
    }
    let threshold = locker.locks.policies.mocc().threshold_of_heat();
    let (key, releases) = (key(locker.base(), at), locker.own.releases);
    let temperature = locker.locks.temperatures.lower(key, releases, &mut locker.local.random);
    if is_hot(at) {
        return temperature < threshold.saturating_sub(COOLED_BY).max(threshold.min(1));
    }
    let is_cold = temperature < threshold;
    if !is_cold {
        make_hot(locker, at);
    }
    is_cold
}

/// Clears the flags of a row whose lock the attempt holds alone.
pub(super) fn clear(locker: &mut Locker<'_>, at: CellAt) {
    let was_hot = is_hot(at);
    if exchange_flags(at, 0, true) && was_hot {
        locker.count(LockCount::Cooled);
    }
}
