//! Collecting: versions that nobody can come to see any more leave their chains, and deleted rows their indexes.
//!
//! A unit with more than one version is QUEUED, and in exactly one session's queue; so is the first unit of an absent record.
//! Only the holder of its entry touches what is below the newest version of its chain. The holder of the first unit's entry of
//! an absent record collects the other units, too, and buries the record, when none of them is queued. So an entry never
//! dangles, and no two collect one chain: should the others be queued while they are collected, since the row has come back,
//! then the entry is not due as long as whoever collects is pinned.
//!
//! An entry is due when its epoch is behind the bound. It has brought the clock's time from before that epoch was read (its
//! *time*). Whoever is in a transaction now has pinned later, and so reads at that time or after it (`epoch.rs` has the
//! proof: reading a timestamp is loading a link). Hence what must stay is: every version newer than the entry's time, the
//! newest of the others, and for each open snapshot the newest that is not newer than it.
//!
//! Only what was there when an entry was looked at last is taken out: it has a note of what the cell said then. That version has stayed
//! in its chain, since nobody else takes any out.
//!
//! What leaves a chain is retired like anything that is unlinked: others who collect, or read in a snapshot, may be just walking
//! past it.

#![forbid(unsafe_code)]

use super::Mvcc;
use crate::epoch::Epoch;
use crate::protocol::locks;
use crate::protocol::{Burial, Context, Due, Retired};
use crate::record::version::Version;
use crate::record::{CellAt, Tid};
use crate::sync::{Mutant, Ordering, mutant};

/// For [`Protocol::approach`](super::Protocol::approach): brings the cells nearer, then their newest versions, then those below, each for
/// all entries before the next, so that one waits for a line of memory while the others are on their way.
pub(super) fn approach(due: impl Iterator<Item = CellAt> + Clone) {
    due.clone().for_each(|at| at.prefetch_cell());
    due.clone().for_each(|at| at.prefetch_newest());
    due.for_each(|at| at.prefetch_older());
}

/// For [`Protocol::bury`](super::Protocol::bury): collects what an entry is about.
pub(super) fn collect(context: &mut Context<'_, Mvcc>, due: &mut Due, units: &[CellAt], _bound: Epoch) -> Burial {
    let at = due.at;
    let cell = at.cell_word(0);
    let word = Tid(cell.load(Ordering::Acquire)); // E3
    debug_assert!(word.has(Tid::QUEUED) && !word.has(Tid::DEAD));
    // What has come since it was looked at last is left for the next time: to walk over that again and again would take longer, the
    // longer the chain, and the chain grow meanwhile.
    prune(context, at, if due.note == 0 { word } else { Tid(due.note) }, due.time);
    due.note = word.0;
    if word.has(Tid::LOCK) || !is_settled(at, word, due.time) {
        return Burial::NotYet;
    }
    if word.has(Tid::ABSENT) && at.is_first() {
        return bury(context, due, units, word);
    }
    // Whoever comes for the unit from now on queues it again. Relaxed: nothing is handed over but the flag.
    let unqueued = cell.compare_exchange(word.0, word.0 & !Tid::QUEUED, Ordering::Relaxed, Ordering::Relaxed);
    if unqueued.is_ok() { Burial::Alive } else { Burial::NotYet }
}

/// Whether nothing is left to collect: one version, which all see who do not look at a snapshot.
fn is_settled(at: CellAt, word: Tid, time: u64) -> bool {
    at.newest(word).is_none_or(|newest| newest.older().is_none() && newest.ts() <= time)
}

/// Takes out of a chain what nobody can come to see, from the version on that was the newest when the cell said `word`.
fn prune(context: &mut Context<'_, Mvcc>, at: CellAt, word: Tid, time: u64) {
    let Some(mut kept) = at.newest(word) else { return };
    while kept.ts() > time && !mutant(Mutant::CollectedEarly) {
        let Some(older) = kept.older() else { return };
        kept = older;
    }
    let mut next = kept.older();
    while let Some(version) = next {
        next = version.older();
        if is_seen(&context.local.snapshots, version, kept) {
            kept = version;
        } else {
            kept.set_older(next);
            retire(context, at, version);
        }
    }
}

/// Whether an open snapshot sees a version and not the one above it.
fn is_seen(snapshots: &[u64], version: Version<'_>, above: Version<'_>) -> bool {
    // In falling order: the first that does not see the one above is the one most likely to see this one.
    let first = snapshots.partition_point(|&ts| ts >= above.ts());
    snapshots.get(first).is_some_and(|&ts| ts >= version.ts()) && !mutant(Mutant::SnapshotsIgnored)
}

/// Hands a version over that has left its chain.
fn retire(context: &mut Context<'_, Mvcc>, at: CellAt, version: Version<'_>) {
    if let Some(block) = at.block_of(version) {
        context.local.retired.push(Retired::Version { table: at.table(), block });
    }
}

/// Makes the record of a deleted row, or of an insert that failed, dead, if its first cell still says `first`.
fn bury(context: &mut Context<'_, Mvcc>, due: &Due, units: &[CellAt], first: Tid) -> Burial {
    // Other units' entries would dangle. They become queued only by an insert, which the exchange of the first word notices.
    for &at in &units[1..] {
        let word = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
        if word.has(Tid::QUEUED | Tid::LOCK) {
            return Burial::NotYet;
        }
        prune(context, at, word, due.time);
        if !is_settled(at, word, due.time) {
            return Burial::NotYet;
        }
    }
    if !locks::kill(units, first) {
        return Burial::NotYet;
    }
    for &at in units {
        if let Some(tombstone) = at.newest(Tid(at.cell_word(0).load(Ordering::Relaxed))) {
            retire(context, at, tombstone);
        }
    }
    Burial::Dead
}
