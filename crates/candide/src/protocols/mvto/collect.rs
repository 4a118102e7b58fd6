//! Garbage collection: versions that no transaction or snapshot can see any more leave their
//! chains, and deleted rows their indexes.
//!
//! A unit with more than one version is QUEUED, and in exactly one queue, a session's or the shared
//! one; so is the first unit of an absent record. The holder of the first unit's entry of an absent
//! record collects the other units, too, and reaps the record, when none of them is queued or
//! parked. So an entry never dangles.
//!
//! When all that is left below the newest version is one that open snapshots see, the entry is
//! *parked*, and the cell says ON_SNAPSHOT_LIST instead: the entry is not looked at until the
//! newest of these snapshots has closed. A commit that writes the unit meanwhile queues it anew, so
//! it can have two entries; then the queued one is responsible for the chain. It is done when only
//! the version of the parked one is left; and a parked entry whose unit is found queued is dropped.
//! Where snapshots keep several versions, an entry stays in its queue. A commit that replaces the
//! only version, and knows of an open snapshot that sees it, parks the unit at once.
//!
//! An entry is due when its epoch is behind the horizon. It holds the clock's time from before that
//! epoch was read (its *time*). Every transaction that is running now has pinned later, and so
//! reads at that time or after it, and draws later timestamps; or else it reads in a snapshot.
//! Hence no version at that time or before is pending any more, nor will another one be linked
//! there; and these must stay: every version newer than the entry's time, the newest committed of
//! the others, and for each open snapshot the newest that is not newer than it. If they are deltas,
//! they become rows, since the versions below them are pruned.
//!
//! Only versions that were there at the entry's last visit are pruned: it notes the newest version
//! that was committed then.
//!
//! Pruned versions are retired, since readers may be walking past them.

#![forbid(unsafe_code)]

use super::flatten::flatten_latched;
use super::parts::Mvto;
use crate::access::WriteSet;
use crate::engine::{BlockSize, Context, Due, GcOutcome, Retired, VERSIONS_AT_ONCE};
use crate::protocols::shared::cell_lock::LOCK_ROUNDS_MAX;
use crate::record::version_chain::{Latched, ON_SNAPSHOT_LIST, Version, VersionId};
use crate::record::{CellAt, Tid};
use crate::sync::{Mutant, Point, Spin, mutant, pass};

/// Collects the unit of an entry, for [`Absence::reap`](crate::engine::Absence::reap).
pub(super) fn collect(
    context: &mut Context<'_, Mvto>,
    due: &mut Due,
    units: &[CellAt],
) -> GcOutcome {
    let at = due.at;
    let Some(mut cell) = latch_for_a_while(&at) else { return GcOutcome::Busy };
    let own = if due.is_parked { ON_SNAPSHOT_LIST } else { Tid::QUEUED };
    debug_assert!(cell.word().has(own), "TO7: the flag says where the entry is");
    if due.is_parked && cell.word().has(Tid::QUEUED) {
        // The queued entry is responsible for the chain.
        return leave(
            cell,
            if mutant(Mutant::ParkedForgotten) { 0 } else { own },
            GcOutcome::Alive,
        );
    }
    // Versions linked since the last visit are left for the next one: the longer the chain, the
    // longer a walk over them would take, and the chain would grow meanwhile.
    let noted = at.linked(VersionId::of_word(due.note)).or_else(|| cell.newest());
    if !prune(context, &at, &mut cell, noted, due.time) {
        cell.release();
        return GcOutcome::Unfinished;
    }
    let is_settled = is_settled(&cell, due.time);
    let keeper = if is_settled { None } else { keeper(context, &cell, due.time) };
    if !is_settled && keeper.is_none() {
        due.note = note(&cell).word();
        cell.release();
        return GcOutcome::NotYet;
    }
    if !due.is_parked && cell.word().has(ON_SNAPSHOT_LIST) {
        // The rest is for the parked entry.
        return leave(cell, own, GcOutcome::Alive);
    }
    match keeper {
        Some(snapshot) => {
            cell.raise(ON_SNAPSHOT_LIST);
            leave(cell, own & !ON_SNAPSHOT_LIST, GcOutcome::Kept(snapshot))
        }
        None if is_absent(&cell) && due.at.is_first() => reap(context, due, units, cell),
        // The next commit that writes the unit queues it again.
        None => leave(cell, own, GcOutcome::Alive),
    }
}

/// Latches a cell, unless it stays latched for too long. One attempt would not do: the latch of a
/// hot unit is free only briefly between two writers.
fn latch_for_a_while(at: &CellAt) -> Option<Latched<'_>> {
    let mut spin = Spin::default();
    loop {
        match at.try_latch() {
            Ok(cell) => return Some(cell),
            Err(_) if spin.wait_at_most(LOCK_ROUNDS_MAX) => {}
            Err(_) => return None,
        }
    }
}

/// Clears some flags of a cell, and releases it.
fn leave(mut cell: Latched<'_>, flags: u64, outcome: GcOutcome) -> GcOutcome {
    cell.clear(flags);
    cell.release();
    outcome
}

/// Returns the newest open snapshot that sees the second version of a chain; `None` if the chain
/// has a third version or a transaction can see the second.
#[cold]
fn keeper(context: &Context<'_, Mvto>, cell: &Latched<'_>, time: u64) -> Option<u64> {
    let newest = cell.newest()?;
    let kept = newest.older().filter(|kept| kept.older().is_none())?;
    let is_left = newest.stamp().ts() <= time
        && [newest, kept].iter().all(|version| version.stamp().is_readable());
    seen_by(&context.versions.snapshots, kept, newest)
        .filter(|_| is_left && !mutant(Mutant::NeverParked))
}

/// Returns whether nothing is left to collect: there is at most one version, and all transactions
/// outside snapshots see it.
fn is_settled(cell: &Latched<'_>, time: u64) -> bool {
    cell.newest().is_none_or(|newest| {
        let stamp = newest.stamp();
        newest.older().is_none() && stamp.is_committed() && stamp.ts() <= time
    })
}

fn is_absent(cell: &Latched<'_>) -> bool {
    cell.newest().is_none_or(|newest| newest.stamp().is_absent())
}

/// Returns the newest committed version, for the entry's next visit. No other entry prunes it.
fn note(cell: &Latched<'_>) -> VersionId {
    let standing = cell
        .newest()
        .and_then(|newest| newest.and_older().find(|version| version.stamp().is_committed()));
    standing.map_or(VersionId::NONE, Version::id)
}

/// Prunes the versions of a chain that cannot be seen any more, from a version on; returns whether
/// it reached the end.
fn prune<'a>(
    context: &mut Context<'_, Mvto>,
    at: &'a CellAt,
    cell: &mut Latched<'a>,
    from: Option<Version<'a>>,
    time: u64,
) -> bool {
    let is_kept = |version: &Version<'_>| {
        let stamp = version.stamp();
        stamp.is_committed() && (stamp.ts() <= time || mutant(Mutant::CollectedEarly))
    };
    let Some(mut kept) = from.and_then(|from| from.and_older().find(is_kept)) else { return true };
    let mut image = Vec::new();
    // A delta that stays becomes a row. No version below it is pending any more.
    let mut is_row = |cell: &Latched<'_>, kept: Version<'_>| {
        mutant(Mutant::DeltaCutLoose) || flatten_latched(cell, kept, &mut image)
    };
    let (mut next, mut left) = (kept.older().filter(|_| is_row(cell, kept)), VERSIONS_AT_ONCE);
    while let Some(version) = next.filter(|_| left > 0) {
        debug_assert!(
            version.stamp().ts() < time || mutant(Mutant::CollectedEarly),
            "TO6: versions newer than the entry's time stay, and the newest of the others"
        );
        next = version.older();
        if seen_by(&context.versions.snapshots, version, kept).is_some() {
            kept = version; // TO6
            next = next.filter(|_| is_row(cell, kept));
        } else {
            cell.replace(Some(kept), next);
            retire(context, at, version);
            left -= 1;
        }
    }
    next.is_none()
}

/// Returns the newest open snapshot that sees `version` but not `above`, the next newer one.
fn seen_by(snapshots: &[u64], version: Version<'_>, above: Version<'_>) -> Option<u64> {
    // Timestamps are in descending order: if the first snapshot that does not see `above` does not
    // see `version`, no snapshot does.
    let first = snapshots.partition_point(|&ts| ts >= above.stamp().ts());
    snapshots
        .get(first)
        .copied()
        .filter(|&ts| ts >= version.stamp().ts() && !mutant(Mutant::SnapshotsIgnored))
}

/// Retires a version that has left its chain.
pub(super) fn retire(context: &mut Context<'_, Mvto>, at: &CellAt, version: Version<'_>) {
    if let Some(block) = at.block_of_linked(version) {
        context.local.retired.push(Retired::Version {
            table: at.table(),
            size: BlockSize::Whole,
            block,
        });
    }
}

/// Makes the record of a deleted row, or of an insert that failed, dead; `first` is its first
/// unit's cell.
fn reap<'a>(
    context: &mut Context<'_, Mvto>,
    due: &Due,
    units: &'a [CellAt],
    first: Latched<'a>,
) -> GcOutcome {
    let mut cells = vec![first];
    cells.extend(units[1..].iter().map_while(|at| latch_dying(context, at, due.time)));
    let all = cells.len() == units.len();
    pass(Point::Reaping);
    for (mut cell, at) in cells.into_iter().zip(units) {
        if all {
            cell.raise(Tid::DEAD);
            if let Some(tombstone) = cell.newest() {
                retire(context, at, tombstone);
            }
        }
        cell.release();
    }
    if all { GcOutcome::Dead } else { GcOutcome::NotYet }
}

/// Latches another unit of a record that is to die, unless it has an entry of its own, which would
/// dangle, or an insert of the row has linked a version.
fn latch_dying<'a>(
    context: &mut Context<'_, Mvto>,
    at: &'a CellAt,
    time: u64,
) -> Option<Latched<'a>> {
    let mut cell = at.try_latch().ok()?;
    let word = cell.word();
    if !word.has(Tid::QUEUED) && (!word.has(ON_SNAPSHOT_LIST) || mutant(Mutant::ParkedReaped)) {
        let newest = cell.newest();
        if prune(context, at, &mut cell, newest, time)
            && is_settled(&cell, time)
            && is_absent(&cell)
        {
            return Some(cell);
        }
    }
    cell.release();
    None
}

impl Context<'_, Mvto> {
    /// Reserves memory for [`Context::queue_or_park`], like [`Context::reserve_for`].
    #[inline(always)]
    pub(super) fn reserve_to_park(&mut self, writes: &WriteSet) {
        if !self.versions.snapshots.is_empty() {
            self.versions.parked.reserve(writes.items().len());
        }
    }

    /// Queues a unit that has got another version, and whose cell says `word`; or parks it at once,
    /// if an open snapshot sees the version replaced, and that is the only one: then `only` returns
    /// its timestamp. Returns the flag to raise in the cell.
    #[inline(always)]
    pub(super) fn queue_or_park(
        &mut self,
        at: CellAt,
        word: Tid,
        only: impl FnOnce() -> Option<u64>,
    ) -> u64 {
        // It suffices that it was open when this session collected last: entries parked for a
        // closed snapshot are looked at.
        if let Some(&snapshot) = self.versions.snapshots.first()
            && !word.has(ON_SNAPSHOT_LIST)
            && only().is_some_and(|only| only <= snapshot)
            && !mutant(Mutant::NeverParked)
        {
            self.versions.parked.push((snapshot, at));
            return ON_SNAPSHOT_LIST;
        }
        let queue = &mut self.local.reap_queue;
        debug_assert!(queue.len() < queue.capacity(), "C4: its room was reserved");
        queue.push(at);
        Tid::QUEUED
    }
}
