//! Collecting: versions that nobody can come to see any more leave their chains, and deleted rows their indexes.
//!
//! A unit with more than one version is QUEUED, and in exactly one queue, a session's or everybody's; so is the first unit of an absent
//! record.
//! Only the holder of its entry touches what is below the newest version of its chain. The holder of the first unit's entry of
//! an absent record collects the other units, too, and buries the record, when none of them is queued or parked. So an entry never
//! dangles, and no two collect one chain: should the others be queued while they are collected, since the row has come back,
//! then the entry is not due as long as whoever collects is pinned.
//!
//! When all that is left below the newest version is one that open snapshots see, the entry is *parked*, and the cell says PARKED
//! instead: nobody looks at it until the newest of these snapshots has closed. Who writes the unit meanwhile queues it anew, so it can have
//! two entries, of which the chain is the queued one's. That one is done when nothing is left but what the parked one is about; and who looks
//! at the parked one, and finds the unit queued, gives it up. Where snapshots keep several versions, an entry stays in its queue. A commit that
//! replaces the only version, and knows of an open snapshot that sees it, parks the unit at once.
//!
//! An entry is due when its epoch is behind the horizon. It has brought the clock's time from before that epoch was read (its
//! *time*). Whoever is in a transaction now has pinned later, and so reads at that time or after it (`epoch.rs` has the
//! proof: reading a timestamp is loading a link), or else reads in a snapshot. Hence what must stay is: every version newer than the entry's time, the
//! newest of the others, and for each open snapshot the newest that is not newer than it.
//!
//! Only what was there when an entry was looked at last is taken out: it has a note of what was the newest then. That version has stayed
//! in its chain, since nobody else takes any out.
//!
//! What leaves a chain is retired like anything that is unlinked: others who collect, or read in a snapshot, may be just walking
//! past it.

#![forbid(unsafe_code)]

use super::Mvcc;
use crate::protocol::locks;
use crate::protocol::{Burial, Context, Due, Retired, VERSIONS_AT_ONCE};
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
pub(super) fn collect(context: &mut Context<'_, Mvcc>, due: &mut Due, units: &[CellAt]) -> Burial {
    let at = due.at;
    let cell = at.cell_word(0);
    let word = Tid(cell.load(Ordering::Acquire)); // E3
    let own = if due.is_parked { Tid::PARKED } else { Tid::QUEUED };
    debug_assert!(word.has(own) && !word.has(Tid::DEAD));
    // Release: what has left the chain, for who looks at it with the unit's other entry (E3).
    let leave = |flags: u64, burial: Burial| {
        let left = cell.compare_exchange(word.0, word.0 & !own | flags, Ordering::Release, Ordering::Relaxed);
        if left.is_ok() { burial } else { Burial::NotYet }
    };
    if due.is_parked && word.has(Tid::QUEUED) {
        // The chain is the other entry's.
        return match word.has(Tid::LOCK) {
            _ if mutant(Mutant::ParkedForgotten) => Burial::Alive,
            true => Burial::NotYet,
            false => leave(0, Burial::Alive),
        };
    }
    // What has come since it was looked at last is left for the next time: to walk over that again and again would take longer, the
    // longer the chain, and the chain grow meanwhile.
    if !prune(context, at, if due.note == 0 { word } else { Tid(due.note) }, due.time) {
        return Burial::Unfinished;
    }
    due.note = word.version();
    if word.has(Tid::LOCK) {
        return Burial::NotYet;
    }
    let is_settled = is_settled(at, word, due.time);
    let keeper = if is_settled { None } else { keeper(context, at, word, due.time) };
    if !is_settled && keeper.is_none() {
        return Burial::NotYet;
    }
    if !due.is_parked && word.has(Tid::PARKED) {
        // The rest is the other entry's.
        return leave(0, Burial::Alive);
    }
    match keeper {
        Some(snapshot) => leave(Tid::PARKED, Burial::Kept(snapshot)),
        None if word.has(Tid::ABSENT) && at.is_first() => bury(context, due, units, word),
        // Whoever comes for the unit from now on queues it again.
        None => leave(0, Burial::Alive),
    }
}

/// The newest open snapshot for which a chain still has a second version, if it has just one, and nobody else can come to see that.
#[cold]
fn keeper(context: &Context<'_, Mvcc>, at: CellAt, word: Tid, time: u64) -> Option<u64> {
    let newest = at.newest(word).filter(|newest| newest.ts() <= time && !mutant(Mutant::NeverParked))?;
    let kept = newest.older().filter(|kept| kept.older().is_none())?;
    seen_by(&context.local.snapshots, kept, newest)
}

/// Whether nothing is left to collect: one version, which all see who do not look at a snapshot.
fn is_settled(at: CellAt, word: Tid, time: u64) -> bool {
    at.newest(word).is_none_or(|newest| newest.older().is_none() && newest.ts() <= time)
}

/// Takes out of a chain what nobody can come to see, from the version on that was the newest when the cell said `word`; says whether that
/// was all.
fn prune(context: &mut Context<'_, Mvcc>, at: CellAt, word: Tid, time: u64) -> bool {
    let Some(mut kept) = at.newest(word) else { return true };
    while kept.ts() > time && !mutant(Mutant::CollectedEarly) {
        let Some(older) = kept.older() else { return true };
        kept = older;
    }
    let (mut next, mut left) = (kept.older(), VERSIONS_AT_ONCE);
    while let Some(version) = next.filter(|_| left > 0) {
        next = version.older();
        if seen_by(&context.local.snapshots, version, kept).is_some() {
            kept = version;
        } else {
            kept.set_older(next);
            retire(context, at, version);
            left -= 1;
        }
    }
    next.is_none()
}

/// The newest open snapshot that sees a version and not the one above it.
fn seen_by(snapshots: &[u64], version: Version<'_>, above: Version<'_>) -> Option<u64> {
    // In falling order: the first that does not see the one above is the one most likely to see this one.
    let first = snapshots.partition_point(|&ts| ts >= above.ts());
    snapshots.get(first).copied().filter(|&ts| ts >= version.ts() && !mutant(Mutant::SnapshotsIgnored))
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
        if word.has(Tid::QUEUED | Tid::LOCK) || word.has(Tid::PARKED) && !mutant(Mutant::ParkedBuried) {
            return Burial::NotYet;
        }
        if !prune(context, at, word, due.time) || !is_settled(at, word, due.time) {
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
