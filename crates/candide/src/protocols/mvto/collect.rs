//! Garbage collection: versions that no transaction or snapshot can see any more are removed from
//! their chains, and deleted rows from their indexes.
//!
//! A unit with more than one version is QUEUED, and has an entry in exactly one queue: a session's
//! or the shared one. The same holds for the first unit of an absent record. The session that holds
//! that entry also collects the other units of the record. It reaps the record only when none of
//! the other units is queued or parked. So an entry never dangles.
//!
//! Let a single version be left below the newest one, and let open snapshots see it. Then the entry
//! is *parked*: the cell has ON_SNAPSHOT_LIST set instead of QUEUED, and no collector looks at the
//! entry until the newest of these snapshots has closed. If a commit writes the unit meanwhile, it
//! queues the unit anew. The unit then has two entries, and the queued one is responsible for the
//! chain. The queued entry is done when only the parked entry's version is left. A parked entry is
//! dropped if its unit is found queued. If snapshots keep several versions, the entry stays in its
//! queue. A commit parks the unit at once if it replaces the unit's only version and knows of an
//! open snapshot that sees that version.
//!
//! An entry is due when its epoch is behind the horizon. The entry's *time* is the clock's time
//! from before that epoch was read. Every transaction that is running now has pinned later. Unless
//! it reads in a snapshot, it reads at the entry's time or later, and draws later timestamps. Hence
//! no version at or before the entry's time is pending any more, nor will one be linked there.
//! These versions must stay: every version newer than the entry's time, the newest committed
//! version among the others, and for each open snapshot the newest version that is not newer than
//! the snapshot. A delta that stays becomes a row if the versions below it are pruned. If the delta
//! is the version that has queued the unit, it is merged into the row below it instead (TO10), and
//! its block is free soon. If that row is not in the record, and the room there is free, the row
//! moves into the record first.
//!
//! Only versions that were in the chain at the last visit to the entry are pruned. At each visit,
//! the entry notes the newest version that is committed.
//!
//! Pruned versions are retired and not freed at once, since readers may still be walking past them.

#![forbid(unsafe_code)]

use super::flatten::flatten_latched;
use super::parts::Mvto;
use crate::access::WriteSet;
use crate::engine::{
    BlockSize, Context, Due, GcOutcome, Retired, SnapshotOutcome, TableCore, VERSIONS_AT_ONCE,
    word_in,
};
use crate::locks::LOCK_ROUNDS_MAX;
use crate::memory::Block;
use crate::record::value::{Value, names_value};
use crate::record::version_chain::{Latched, ON_SNAPSHOT_LIST, Version, VersionId};
use crate::record::{CellAt, Tid};
use crate::sync::{Point, Spin, full_fence, pass};

/// Collects the unit of an entry, for [`Absence::reap`](crate::engine::Absence::reap).
pub(super) fn collect(
    context: &mut Context<'_, Mvto>,
    due: &mut Due,
    table: &TableCore,
    units: &[CellAt],
) -> GcOutcome {
    let at = due.at;
    let Some(mut cell) = latch_for_a_while(&at) else { return GcOutcome::Busy };
    let own = if due.is_parked { ON_SNAPSHOT_LIST } else { Tid::QUEUED };
    debug_assert!(cell.word().has(own), "TO7: the flag says where the entry is");
    if due.is_parked && cell.word().has(Tid::QUEUED) {
        // The queued entry is responsible for the chain.
        return leave(cell, own, GcOutcome::Alive);
    }
    // Versions linked since the last visit are left for the next visit. A walk over a longer chain
    // would take longer, and the chain would grow meanwhile.
    let noted = at.linked(VersionId::of_word(due.note)).or_else(|| cell.newest());
    if !prune(context, (table, &at), &mut cell, noted, due.time) {
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
        // The remaining older version is left to the parked entry.
        return leave(cell, own, GcOutcome::Alive);
    }
    match keeper {
        Some(snapshot) => {
            cell.raise(ON_SNAPSHOT_LIST);
            let kept = GcOutcome::OfSnapshots(SnapshotOutcome::Kept(snapshot));
            leave(cell, own & !ON_SNAPSHOT_LIST, kept)
        }
        None if is_absent(&cell) && due.at.is_first() => reap(context, due, (table, units), cell),
        // The next commit that writes the unit queues it again.
        None => leave(cell, own, GcOutcome::Alive),
    }
}

/// Latches a cell; returns `None` if another thread keeps the latch for too long. A single try
/// would not suffice: the latch of a hot unit is free only briefly between two writers.
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

/// Clears `flags` of a cell, and releases the cell.
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
    seen_by(&context.versions.snapshots, kept, newest).filter(|_| is_left)
}

/// Returns whether nothing is left to collect: the chain has at most one version, and all
/// transactions outside snapshots see that version.
fn is_settled(cell: &Latched<'_>, time: u64) -> bool {
    cell.newest().is_none_or(|newest| {
        let stamp = newest.stamp();
        newest.older().is_none() && stamp.is_committed() && stamp.ts() <= time
    })
}

fn is_absent(cell: &Latched<'_>) -> bool {
    cell.newest().is_none_or(|newest| newest.stamp().is_absent())
}

/// Returns the newest committed version, to be noted for the next visit to the entry. No other
/// entry prunes that version.
fn note(cell: &Latched<'_>) -> VersionId {
    let standing = cell
        .newest()
        .and_then(|newest| newest.and_older().find(|version| version.stamp().is_committed()));
    standing.map_or(VersionId::NONE, Version::id)
}

/// Prunes the versions of a chain, from `from` on, that no transaction can see any more. Returns
/// whether the end of the chain was reached.
fn prune<'a>(
    context: &mut Context<'_, Mvto>,
    (table, at): (&TableCore, &'a CellAt),
    cell: &mut Latched<'a>,
    from: Option<Version<'a>>,
    time: u64,
) -> bool {
    let is_kept = |version: &Version<'_>| {
        let stamp = version.stamp();
        stamp.is_committed() && stamp.ts() <= time
    };
    let Some(mut kept) = from.and_then(|from| from.and_older().find(is_kept)) else { return true };
    let mut image = Vec::new();
    if let Some(row) = merges_into(context, cell, kept) {
        let delta = std::mem::replace(&mut kept, row);
        if let Some(block) = at.block_of_linked(row).filter(|_| has_room(context, cell)) {
            kept = cell.move_into_record(row);
            retire_block(context, at, block);
        }
        cell.merge(delta, kept, &mut image);
        retire(context, at, cell, delta);
    }
    // A delta that stays becomes a row. No version below the delta is pending any more.
    let mut is_row =
        |cell: &Latched<'_>, kept: Version<'_>| flatten_latched(cell, kept, &mut image);
    let (mut next, mut left) = (kept.older().filter(|_| is_row(cell, kept)), VERSIONS_AT_ONCE);
    while let Some(version) = next.filter(|_| left > 0) {
        debug_assert!(
            version.stamp().ts() < time,
            "TO6: versions newer than the entry's time stay, and the newest of the others"
        );
        next = version.older();
        if seen_by(&context.versions.snapshots, version, kept).is_some() {
            kept = version; // TO6
            next = next.filter(|_| is_row(cell, kept));
        } else {
            cell.replace(Some(kept), next);
            if !table.layout.named().is_empty() {
                retire_values(context, (table, at), kept, version);
            }
            retire(context, at, cell, version);
            left -= 1;
        }
    }
    next.is_none()
}

/// Returns the row into which `kept` is to be merged (TO10); `None` if `kept` is not to be merged.
fn merges_into<'a>(
    context: &Context<'_, Mvto>,
    cell: &Latched<'a>,
    kept: Version<'a>,
) -> Option<Version<'a>> {
    let stamp = kept.stamp();
    let is_due = stamp.is_queued_delta();
    let is_newest = cell.newest().is_some_and(|newest| newest.id() == kept.id());
    kept.older().filter(|row| {
        is_due
            && is_newest
            && row.stamp().is_readable()
            && seen_by(&context.versions.snapshots, *row, kept).is_none()
    })
}

/// Returns whether the record's room for a version is free (VC2).
pub(super) fn has_room(context: &Context<'_, Mvto>, cell: &Latched<'_>) -> bool {
    cell.has_room_in_record(|stamp| context.engine.epochs.is_free(stamp))
}

/// Returns the newest open snapshot that sees `version` but not `above`, the next newer version;
/// `None` if no open snapshot does.
fn seen_by(snapshots: &[u64], version: Version<'_>, above: Version<'_>) -> Option<u64> {
    // The timestamps of `snapshots` descend. So if the first snapshot that does not see `above`
    // does not see `version`, no other snapshot sees `version` without `above`.
    let first = snapshots.partition_point(|&ts| ts >= above.stamp().ts());
    snapshots.get(first).copied().filter(|&ts| ts >= version.stamp().ts())
}

/// Retires a version that has left its chain. If the version is in the record, its room may be used
/// again later.
fn retire(
    context: &mut Context<'_, Mvto>,
    at: &CellAt,
    cell: &mut Latched<'_>,
    version: Version<'_>,
) {
    match at.block_of_linked(version) {
        Some(block) => retire_block(context, at, block),
        None => cell.vacate(context.engine.epochs.stamp()),
    }
}

/// Retires the values that `version`, which has left its chain, has named, unless `above`, the row
/// that stays directly above, or the next row below names them (TO12). Deltas name nothing, and an
/// absent row ends the search.
#[cold]
fn retire_values(
    context: &mut Context<'_, Mvto>,
    (table, at): (&TableCore, &CellAt),
    above: Version<'_>,
    version: Version<'_>,
) {
    let is_row = |version: &Version<'_>| version.stamp().is_readable();
    if !is_row(&version) || version.stamp().is_absent() {
        return;
    }
    debug_assert!(is_row(&above), "TO6: a version that stays above others is a row");
    let below = version.and_older().skip(1).find(is_row);
    for named in table.layout.named().iter().filter(|named| usize::from(named.unit) == at.unit()) {
        let word_of = |row: Version<'_>| match row.stamp().is_absent() {
            true => 0,
            false => word_in(row.payload(), named.word.into()),
        };
        let word = word_of(version);
        if names_value(word) && word_of(above) != word && below.map(word_of) != Some(word) {
            context.local.retired.push(Retired::Value(Value::claim(word)));
        }
    }
}

/// Retires the block of a version that has left its chain.
pub(super) fn retire_block(context: &mut Context<'_, Mvto>, at: &CellAt, block: Block) {
    context.local.retired.push(Retired::Version {
        table: at.table(),
        size: BlockSize::Whole,
        block,
    });
}

/// Marks as dead the record of a deleted row or of a failed insert. `first` is the cell of the
/// record's first unit.
fn reap<'a>(
    context: &mut Context<'_, Mvto>,
    due: &Due,
    (table, units): (&TableCore, &'a [CellAt]),
    first: Latched<'a>,
) -> GcOutcome {
    debug_assert!(first.word().has(Tid::ABSENT), "TO11: the cell says that the row is absent");
    if first.word().has(Tid::REQUEUE) {
        let outcome = leave(first, Tid::REQUEUE, GcOutcome::NotYet);
        full_fence(); // E10, TO11
        return outcome;
    }
    let mut cells = vec![first];
    cells.extend(units[1..].iter().map_while(|at| latch_dying(context, (table, at), due.time)));
    let all = cells.len() == units.len();
    pass(Point::Reaping);
    for (mut cell, at) in cells.into_iter().zip(units) {
        if all {
            cell.raise(Tid::DEAD);
            let tombstone = cell.newest().and_then(|newest| at.block_of_linked(newest));
            if let Some(block) = tombstone {
                retire_block(context, at, block);
            }
        }
        cell.release();
    }
    if all { GcOutcome::Dead } else { GcOutcome::NotYet }
}

/// Latches a further unit of a record that is to be marked as dead. Returns `None` if the unit has
/// an entry of its own, which would dangle after the record's end, or if an insert of the row has
/// linked a version.
fn latch_dying<'a>(
    context: &mut Context<'_, Mvto>,
    (table, at): (&TableCore, &'a CellAt),
    time: u64,
) -> Option<Latched<'a>> {
    let mut cell = at.try_latch().ok()?;
    let word = cell.word();
    if !word.has(Tid::QUEUED | ON_SNAPSHOT_LIST) {
        let newest = cell.newest();
        if prune(context, (table, at), &mut cell, newest, time)
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
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn reserve_to_park(&mut self, writes: &WriteSet) {
        if !self.versions.snapshots.is_empty() {
            self.versions.parked.reserve(writes.items().len());
        }
    }

    /// Queues a unit in whose chain another version has been linked. `word` is the cell's word.
    /// Parks the unit at once instead, if the version replaced was the only one and an open
    /// snapshot sees it. `only` returns the timestamp of the replaced version if it was the only
    /// one. Returns the flag to raise in the cell.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn queue_or_park(
        &mut self,
        at: CellAt,
        word: Tid,
        only: impl FnOnce() -> Option<u64>,
    ) -> u64 {
        // The snapshot may have closed since this session last collected. That does no harm:
        // entries parked for a closed snapshot are looked at, too.
        if let Some(&snapshot) = self.versions.snapshots.first()
            && !word.has(ON_SNAPSHOT_LIST)
            && only().is_some_and(|only| only <= snapshot)
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
