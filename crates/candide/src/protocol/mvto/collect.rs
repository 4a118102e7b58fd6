//! Collecting: versions that nobody can come to see any more leave their chains, and deleted rows their indexes.
//!
//! A unit with more than one version is QUEUED, and in exactly one session's queue; so is the first unit of an absent record.
//! The holder of the first unit's entry of an absent record collects the other units, too, and buries the record, when none of
//! them is queued. So an entry never dangles.
//!
//! An entry is due when its epoch is behind the bound. It has brought the clock's time from before that epoch was read (its
//! *time*). Whoever is in a transaction now has pinned later, and so reads at that time or after it, and draws later timestamps. Hence
//! no version at that time or before is pending any more, nor will another one be linked there; and what must stay is: every version
//! newer than the entry's time, the newest that stands of the others, and for each open snapshot the newest that is not newer than it.
//! Those of these that are deltas become rows, since what is below them goes.
//!
//! Only what was there when an entry was looked at last is taken out: it has a note of the newest version that stood then.
//!
//! What leaves a chain is retired like anything that is unlinked: others may be just walking past it.

#![forbid(unsafe_code)]

use super::Mvto;
use super::flatten::flatten_latched;
use crate::epoch::Epoch;
use crate::protocol::{Burial, Context, Due, Retired};
use crate::record::chain::{Latched, Version, VersionId};
use crate::record::{CellAt, Tid};
use crate::sync::{Mutant, mutant};

/// For [`Protocol::bury`](super::Protocol::bury): collects what an entry is about.
pub(super) fn collect(context: &mut Context<'_, Mvto>, due: &mut Due, units: &[CellAt], _bound: Epoch) -> Burial {
    let at = due.at;
    let Ok(mut cell) = at.try_latch() else { return Burial::NotYet };
    debug_assert!(cell.word().has(Tid::QUEUED));
    // What has come since it was looked at last is left for the next time: to walk over that again and again would take longer, the
    // longer the chain, and the chain grow meanwhile.
    let noted = at.linked(VersionId::of_word(due.note)).or_else(|| cell.newest());
    prune(context, &at, &mut cell, noted, due.time);
    if !is_settled(&cell, due.time) {
        due.note = note(&cell).word();
        cell.release();
        return Burial::NotYet;
    }
    if is_absent(&cell) && due.at.is_first() {
        return bury(context, due, units, cell);
    }
    // Whoever comes for the unit from now on queues it again.
    cell.clear(Tid::QUEUED);
    cell.release();
    Burial::Alive
}

/// Whether nothing is left to collect: one version at most, which all see who do not look at a snapshot.
fn is_settled(cell: &Latched<'_>, time: u64) -> bool {
    cell.newest().is_none_or(|newest| {
        let stamp = newest.stamp();
        newest.older().is_none() && stamp.is_committed() && stamp.ts() <= time
    })
}

fn is_absent(cell: &Latched<'_>) -> bool {
    cell.newest().is_none_or(|newest| newest.stamp().is_absent())
}

/// The newest version that stands, for the next time. Nobody else takes it out.
fn note(cell: &Latched<'_>) -> VersionId {
    let standing = cell.newest().and_then(|newest| newest.and_older().find(|version| version.stamp().is_committed()));
    standing.map_or(VersionId::NONE, Version::id)
}

/// Takes out of a chain what nobody can come to see, from a version on.
fn prune<'a>(
    context: &mut Context<'_, Mvto>,
    at: &'a CellAt,
    cell: &mut Latched<'a>,
    from: Option<Version<'a>>,
    time: u64,
) {
    let is_kept = |version: &Version<'_>| {
        let stamp = version.stamp();
        stamp.is_committed() && (stamp.ts() <= time || mutant(Mutant::CollectedEarly))
    };
    let Some(mut kept) = from.and_then(|from| from.and_older().find(is_kept)) else { return };
    let mut image = Vec::new();
    // What is below a delta goes into it. Nothing there is pending any more.
    let mut is_row = |kept: Version<'_>| mutant(Mutant::DeltaCutLoose) || flatten_latched(kept, &mut image);
    let mut next = kept.older().filter(|_| is_row(kept));
    while let Some(version) = next {
        next = version.older();
        if is_seen(&context.local.snapshots, version, kept) {
            kept = version;
            next = next.filter(|_| is_row(kept));
        } else {
            cell.replace(Some(kept), next);
            retire(context, at, version);
        }
    }
}

/// Whether an open snapshot sees a version and not the one above it.
fn is_seen(snapshots: &[u64], version: Version<'_>, above: Version<'_>) -> bool {
    // In falling order: the first that does not see the one above is the one most likely to see this one.
    let first = snapshots.partition_point(|&ts| ts >= above.stamp().ts());
    snapshots.get(first).is_some_and(|&ts| ts >= version.stamp().ts()) && !mutant(Mutant::SnapshotsIgnored)
}

/// Hands a version over that has left its chain.
pub(super) fn retire(context: &mut Context<'_, Mvto>, at: &CellAt, version: Version<'_>) {
    if let Some(block) = at.block_of_linked(version) {
        context.local.retired.push(Retired::Version { table: at.table(), block });
    }
}

/// Makes the record of a deleted row, or of an insert that failed, dead; `first` is its first unit's cell.
fn bury<'a>(context: &mut Context<'_, Mvto>, due: &Due, units: &'a [CellAt], first: Latched<'a>) -> Burial {
    let mut cells = vec![first];
    cells.extend(units[1..].iter().map_while(|at| latch_dying(context, at, due.time)));
    let all = cells.len() == units.len();
    for (mut cell, at) in cells.into_iter().zip(units) {
        if all {
            cell.raise(Tid::DEAD);
            if let Some(tombstone) = cell.newest() {
                retire(context, at, tombstone);
            }
        }
        cell.release();
    }
    if all { Burial::Dead } else { Burial::NotYet }
}

/// Latches another unit of a record that is to die, if nothing speaks against it: an entry of its own, which would dangle, or somebody
/// who inserts the row again.
fn latch_dying<'a>(context: &mut Context<'_, Mvto>, at: &'a CellAt, time: u64) -> Option<Latched<'a>> {
    let mut cell = at.try_latch().ok()?;
    if !cell.word().has(Tid::QUEUED) {
        let newest = cell.newest();
        prune(context, at, &mut cell, newest, time);
        if is_settled(&cell, time) && is_absent(&cell) {
            return Some(cell);
        }
    }
    cell.release();
    None
}
