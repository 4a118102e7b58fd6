//! Garbage collection: frees undo records that no attempt and no snapshot can see any more, and
//! removes the records of deleted rows from their indexes.
//!
//! An undo record has an *entry* in one queue: that of its commit's session or, later, that of a
//! snapshot that sees it. An entry is due when its epoch is behind the horizon. The entry was
//! queued after its commit had drawn its timestamp, and every transaction that runs now has pinned
//! later. So each of these either reads at that timestamp or a later one (`epoch/mod.rs` has the
//! proof: reading a timestamp is loading a link), or sees only versions that an open snapshot
//! keeps. If no open snapshot is older than that commit, no reader will follow a link to the undo
//! record (UR2), and it is freed at once, without reading the undo record or its unit. The unit's
//! record may be freed by then.
//!
//! If open snapshots are older than the commit, and one of them sees the version of the undo
//! record, the entry waits until that snapshot has closed. If none of them sees the version, the
//! undo record is examined, and its chain is *pruned*. For this, the session walks the chain like a
//! reader of the oldest snapshot, and takes out unseen undo records under the unit's lock, which it
//! holds briefly. If undo records hold only some of the unit's words, the next older record may
//! lack words of the removed records; then a record with all these words replaces it. An undo
//! record that is taken out is marked, and its own entry retires it, because readers of snapshots
//! may be reading it. Other sessions may have pruned the same chain meanwhile, so nothing is done
//! unless the chain is, under the lock, as it was found. An undo record is out of its chain if and
//! only if it is marked.
//!
//! The record of a deleted row is reaped when no open snapshot is older than the deletion, or when
//! all its undo records have been taken out of their chains. Undo records that no snapshot sees are
//! taken out soon, by their entries. If a snapshot sees the record, and the table is ordered, the
//! record moves to the index of deleted records until the snapshots that see it have closed.
//! Otherwise all other scans would have to pass the record.
//!
//! # Why no freed undo record is read
//! A reader follows the link of a version with timestamp t only if it sees a version from before t;
//! and no undo record of a version that is seen is freed. Pruning stops at the version that the
//! oldest snapshot of the session's list sees. A session that frees undo records after that list
//! was copied may no longer have that snapshot in its list. Therefore pruning sessions are counted,
//! under the lock under which the list is copied (as are sessions that count versions, or search
//! for the snapshots that see a deleted row). While one is counted, other sessions retire the undo
//! records that they could free. A pruning session has been pinned since before it was counted, so
//! retired undo records stay; if it pinned anew, it would have to copy the list again. A session
//! that has copied the list earlier cannot free a version that a snapshot opened meanwhile sees:
//! such a snapshot is no older than the time that all attempts had reached when the session's
//! entries were due.
//!
//! A record is not freed while a session reads its undo records: it is neither reaped nor removed
//! from the index of deleted records while one of them is in its chain and a snapshot older than
//! the deletion is open.

#![forbid(unsafe_code)]

use super::parts::{Mvcc, block_size};
use super::undo_queue::{UndoEntry, UndoQueue};
use crate::engine::{Context, Due, GcOutcome, Retired, SnapshotOutcome, TableCore};
use crate::epoch::Epoch;
use crate::memory::Block;
use crate::protocols::shared::cell_lock;
use crate::protocols::shared::snapshot_list::seen_by;
use crate::record::undo_record::Undo;
use crate::record::{CellAt, Tid};
use crate::schema::Words;
use crate::sync::{MODELLED, Ordering, Point, Spin, pass};
use std::sync::Arc;

/// The largest number of rounds of waiting for a lock, most of them busy: a commit may be in
/// progress. No thread waits for the pruning session.
const LOCK_ROUNDS_MAX: u32 = if MODELLED { 1 } else { 20 };

/// The lock of a dead unit's chain, while undo records are taken out of it.
const PRUNING: u64 = Tid::own_flag(4);

/// The largest number of undo records taken out of a chain under one lock. The lock must be held
/// for less time than a writer waits, and few of the undo records are in a cache.
const TAKEN_AT_ONCE: usize = if MODELLED { 2 } else { 32 };

/// The largest number of undo records that one collection examines, unless more have been added
/// since the last collection; also the most that it examines of those kept for a closed snapshot.
/// Further entries are left to the next collection.
const UNDO_BATCH_MAX: usize = 4_096;

/// The outcome of examining an undo record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UndoOutcome {
    /// No reader can reach the undo record.
    Free,
    /// No new reader can reach the undo record, but a running reader may hold it.
    Retire,
    /// An open snapshot of this timestamp sees the undo record's version.
    Kept(u64),
    /// Another session uses the chain; a later collection examines the undo record again.
    NotYet,
}

/// Returns whether a collection has undo records to examine.
pub(super) fn is_due(backlog: &UndoQueue, horizon: Epoch) -> bool {
    backlog.has_kept() || !backlog.values.is_empty() || backlog.due(horizon).0 > 0
}

/// Lists the open snapshots. The session may then free undo records of commits up to `until`; if a
/// snapshot is open, it walks through version chains.
pub(super) fn begin_collecting(context: &mut Context<'_, Mvcc>, until: u64) {
    let session = &mut *context.versions;
    let (others_walk, reached) =
        context.clock.snapshots.begin_looking(&mut session.snapshots, until);
    let walk = &mut session.walk;
    walk.is_counted = !session.snapshots.is_empty();
    (walk.others_walk, walk.reached) = (others_walk, reached);
    walk.busy_units.clear();
}

/// Ends the session's walk through chains.
pub(super) fn end_walk(context: &mut Context<'_, Mvcc>) {
    if std::mem::take(&mut context.versions.walk.is_counted) {
        context.clock.snapshots.end_looking();
    }
}

/// Examines the undo records that are due, and those that closed snapshots have seen, up to the
/// limits of one collection.
pub(super) fn collect_undos(
    context: &mut Context<'_, Mvcc>,
    backlog: &mut UndoQueue,
    tables: &[Arc<TableCore>],
    horizon: Epoch,
    budget: usize,
) {
    // `until` covers all undo records that are due, also those left to later collections, since a
    // walk through a chain takes out all expired undo records at once.
    let (due, until) = backlog.due(horizon);
    begin_collecting(context, until);
    backlog.release(&context.versions.snapshots);
    if !backlog.values.is_empty() {
        let Context { engine, local, versions, .. } = context;
        let free = |value| local.discard(value, engine);
        backlog.values.collect(horizon, &versions.snapshots, free);
    }
    let due = due.min(UNDO_BATCH_MAX.max(budget));
    let mut again = Vec::new();
    for number in 0..due + UNDO_BATCH_MAX {
        let next = if number < due { backlog.pop() } else { backlog.pop_released() };
        let Some(entry) = next else { break };
        pass(Point::Collecting);
        let block =
            Retired::Version { table: entry.at.table(), size: entry.size, block: entry.block };
        match look_at(context, &entry, &tables[usize::from(entry.at.table())]) {
            // MV5: no reader can reach the undo record.
            UndoOutcome::Free => context.local.free(block, context.engine, tables),
            UndoOutcome::Retire => context.local.retired.push(block),
            UndoOutcome::Kept(snapshot) => backlog.keep(snapshot, entry),
            UndoOutcome::NotYet => again.push(entry),
        }
    }
    again.append(&mut context.versions.undo_entries);
    if !again.is_empty() {
        backlog.extend(context.engine.epochs.stamp(), &mut again);
    }
    end_walk(context);
}

/// Returns the outcome for an undo record whose epoch the horizon has passed.
#[inline]
fn look_at(context: &mut Context<'_, Mvcc>, put: &UndoEntry, table: &TableCore) -> UndoOutcome {
    let session = &*context.versions;
    match session.snapshots.last() {
        Some(&oldest) if oldest < put.until => {
            // An undo record that a larger one has replaced waits, too: its entry does not show
            // whether it was replaced.
            match seen_by(&session.snapshots, put.ts..put.until) {
                Some(snapshot) => UndoOutcome::Kept(snapshot),
                None => look_at_undo(context, put, table),
            }
        }
        _ if session.walk.others_walk => UndoOutcome::Retire,
        _ => UndoOutcome::Free,
    }
}

/// Returns the outcome for an undo record whose version no open snapshot sees, and whose commit is
/// later than an open snapshot.
fn look_at_undo(
    context: &mut Context<'_, Mvcc>,
    put: &UndoEntry,
    table: &TableCore,
) -> UndoOutcome {
    let undo = put.at.undo_in(put.block);
    if undo.is_out() {
        return UndoOutcome::Retire;
    }
    if !context.versions.walk.busy_units.contains(&put.at.address()) {
        prune(context, table, put.at);
    }
    if undo.is_out() { UndoOutcome::Retire } else { UndoOutcome::NotYet }
}

/// Takes unseen undo records out of a unit's chain. Stops if another session writes the unit or
/// prunes its chain.
fn prune(context: &mut Context<'_, Mvcc>, table: &TableCore, at: CellAt) {
    let mut chain = std::mem::take(&mut context.versions.walk.chain);
    let oldest =
        *context.versions.snapshots.last().expect("an open snapshot sees an older version");
    let word = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
    pass(Point::LookingBack);
    chain.clear();
    chain.extend(at.undos(word, oldest).map(Undo::block));

    // The last undo record that stays, and the place behind it of the first that is taken out.
    let (mut above, mut first, mut until) = (None::<Undo<'_>>, 0, word.ts());
    for index in 0..=chain.len() {
        let undo = chain.get(index).map(|&block| at.undo_in(block));
        if let Some(undo) = undo {
            let mut seen = undo.ts()..std::mem::replace(&mut until, undo.ts());
            if seen.is_empty() {
                // The unit has been written since its word was loaded, so the word does not give
                // the time at which this version was replaced.
                seen.end = u64::MAX;
            }
            if seen.end <= context.versions.walk.reached
                && seen_by(&context.versions.snapshots, seen).is_none()
            {
                continue;
            }
        }
        let gone = &chain[first..index];
        let below = match undo {
            Some(undo) if !has_all(&at, undo, gone) => {
                let until = above.map_or(word.ts(), Undo::ts);
                replace(context, table, &at, (gone, undo, until)).map(Some)
            }
            _ => Some(undo),
        };
        let Some(below) = below.filter(|&below| take_out(context, &at, above, gone, below)) else {
            context.versions.walk.busy_units.push(at.address());
            break;
        };
        (above, first) = (below, index + 1);
    }
    context.versions.walk.chain = chain;
}

/// Returns whether an undo record has all words of other undo records.
fn has_all(at: &CellAt, undo: Undo<'_>, others: &[Block]) -> bool {
    let place = undo.place();
    others
        .iter()
        .map(|&other| at.undo_in(other).place())
        .all(|other| other.is_empty() || place.start <= other.start && other.end <= place.end)
}

/// Takes adjacent undo records out of a chain, unless the chain has changed meanwhile; returns
/// whether it did. The callers pass few, so that writers of the unit wait only briefly.
fn take_out(
    context: &Context<'_, Mvcc>,
    at: &CellAt,
    above: Option<Undo<'_>>,
    gone: &[Block],
    below: Option<Undo<'_>>,
) -> bool {
    let mut rest = gone.chunks(TAKEN_AT_ONCE).peekable();
    while let Some(part) = rest.next() {
        let next = rest.peek().map_or(below, |rest| Some(at.undo_in(rest[0])));
        let taken = with_lock(context, at, || {
            let follow = part.iter().map(|&block| Some(at.undo_in(block))).chain([next]);
            let is_so = above.is_none_or(|above| !above.is_out()) && at.is_chain(above, follow);
            if is_so {
                at.name_below(above, next);
                part.iter().for_each(|&block| at.undo_in(block).set_out());
            }
            is_so
        });
        if taken != Some(true) {
            return false;
        }
    }
    true
}

/// Replaces the undo record `old`, which follows the removed undo records `gone`, by an undo record
/// with the words of all these records. Does nothing if the chain has changed meanwhile; returns
/// the new undo record. The version above it was written at `until`.
fn replace<'a>(
    context: &mut Context<'_, Mvcc>,
    table: &TableCore,
    at: &'a CellAt,
    (gone, old, until): (&[Block], Undo<'a>, u64),
) -> Option<Undo<'a>> {
    // If the old undo record is a replacement itself, the new one has all words of the unit, so no
    // third one is ever needed.
    let places =
        gone.iter().map(|&block| at.undo_in(block).place()).filter(|place| !place.is_empty());
    let words = places.fold(old.place(), |sum, place| match (old.is_larger(), sum.is_empty()) {
        (true, _) => 0..at.payload_words(),
        (false, true) => place,
        (false, false) => sum.start.min(place.start)..sum.end.max(place.end),
    });
    let size = block_size(words.len());
    context.prepare_versions_of(table, size, 1, false).ok()?;
    let mut image = std::mem::take(&mut context.versions.walk.image);
    // The order is that of a reader: first the words, then the undo records.
    let word = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
    image.clear();
    Words::Shared(at.payload()).extend(at.payload_words(), &mut image);
    at.undos(word, old.ts()).for_each(|undo| undo.put_back(&mut image));
    let block = context.version_block(at.table(), size);
    let new = at.larger_undo(block, old, words.clone(), &image[words]);
    context.versions.walk.image = image;

    let last =
        at.undo_in(*gone.last().expect("removed undo records have words that the new one lacks"));
    let replaced = with_lock(context, at, || {
        let is_so = !last.is_out() && at.is_chain(Some(last), [Some(old)].into_iter());
        if is_so {
            // Older undo records may have been taken out meanwhile.
            new.name_same(old);
            at.name_below(Some(last), Some(new));
            old.set_out();
        }
        is_so
    });
    if replaced != Some(true) {
        context.free_version_block(table, size, block);
        return None;
    }
    context.versions.undo_entries.push(UndoEntry { at: *at, block, size, ts: new.ts(), until });
    Some(new)
}

/// Runs a change under the lock of a unit and its chain; does nothing, and returns `None`, if the
/// lock stays taken.
fn with_lock<T>(context: &Context<'_, Mvcc>, at: &CellAt, change: impl FnOnce() -> T) -> Option<T> {
    let cell = at.cell_word(0);
    let mut spin = Spin::default();
    let word = loop {
        let word = Tid(cell.load(Ordering::Relaxed));
        // The LOCK of a dead unit is never released (CL3, MV8).
        let lock = if word.has(Tid::DEAD) { PRUNING } else { Tid::LOCK };
        let exchange =
            || cell.compare_exchange(word.0, word.0 | lock, Ordering::Acquire, Ordering::Relaxed);
        // Acquire: the chain, as earlier lock holders have left it (E3).
        if !word.has(lock) && exchange().is_ok() {
            break word;
        }
        if !spin.wait_at_most(LOCK_ROUNDS_MAX) {
            return None;
        }
    };
    pass(Point::Pruning);
    let changed = change();
    let store = |is_handed: bool| {
        let lock = if is_handed { Tid::LOCK } else { 0 };
        // Release: the chain, for the next lock holder (E3).
        cell.store(word.0 | lock, Ordering::Release);
    };
    cell_lock::free(context, *at, !word.has(Tid::ABSENT | Tid::DEAD), store);
    Some(changed)
}

/// Makes the record of a deleted row, or of a failed insert, dead, unless a commit is writing it or
/// a transaction can see an older version of it; for [`Protocol::reap`](super::Protocol::reap).
pub(super) fn reap(context: &mut Context<'_, Mvcc>, due: &mut Due, units: &[CellAt]) -> GcOutcome {
    let cell = due.at.cell_word(0);
    let word = Tid(cell.load(Ordering::Acquire)); // E3
    debug_assert!(word.has(Tid::QUEUED), "MV6: the first unit of an absent record is absent");
    let seen = || seen_before(&context.versions.snapshots, word, units);
    if word.has(Tid::DEAD) {
        return match seen() {
            Before::Nothing => GcOutcome::OfSnapshots(SnapshotOutcome::Expired),
            Before::Unseen => GcOutcome::NotYet,
            Before::Seen(snapshot) => GcOutcome::OfSnapshots(SnapshotOutcome::Kept(snapshot)),
        };
    }
    if word.has(Tid::LOCK) {
        return GcOutcome::NotYet;
    }
    if !word.has(Tid::ABSENT) {
        let left = cell.compare_exchange(
            word.0,
            word.0 & !Tid::QUEUED,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        return if left.is_ok() { GcOutcome::Alive } else { GcOutcome::NotYet };
    }
    if cell_lock::requeues(due.at, word) {
        return GcOutcome::NotYet;
    }
    // All units were deleted by one commit, or were never written. Otherwise a commit is writing
    // them, and has locked one of them.
    if word.ts() > due.time {
        return GcOutcome::NotYet;
    }
    match seen() {
        Before::Nothing if cell_lock::kill(units, word) => GcOutcome::Dead,
        Before::Nothing | Before::Unseen => GcOutcome::NotYet,
        Before::Seen(snapshot) => {
            due.note = word.version();
            GcOutcome::OfSnapshots(SnapshotOutcome::MoveToDeletedIndex(snapshot))
        }
    }
}

/// The state of the older versions of a deleted row, which snapshots before the deletion may see.
enum Before {
    /// No version is left, or no open snapshot is that old.
    Nothing,
    /// The versions that are left are seen by no snapshot, and are about to be taken out.
    Unseen,
    /// A version that the snapshot with this timestamp sees, the newest of all snapshots that see
    /// any of the versions.
    Seen(u64),
}

/// Returns the state of the versions before a row's deletion, whose TID word is `word`. The session
/// is counted among those that walk chains.
fn seen_before(snapshots: &[u64], word: Tid, units: &[CellAt]) -> Before {
    let older = snapshots.partition_point(|&snapshot| snapshot >= word.ts());
    let older = &snapshots[older..];
    let Some(&oldest) = older.last() else { return Before::Nothing };
    if units.iter().all(CellAt::has_no_undo) {
        return Before::Nothing;
    }
    let seen = |at: &CellAt| {
        let mut until = word.ts();
        let mut undos = at.undos(word, oldest);
        undos.find_map(|undo| seen_by(older, undo.ts()..std::mem::replace(&mut until, undo.ts())))
    };
    units.iter().filter_map(seen).max().map_or(Before::Unseen, Before::Seen)
}

/// Makes a record dead that [`reap`] has just examined and that snapshots see; for
/// [`Versions::detach_for_snapshots`](crate::engine::Versions::detach_for_snapshots).
pub(super) fn detach_for_snapshots(due: &Due, units: &[CellAt]) -> bool {
    let word = Tid(due.at.cell_word(0).load(Ordering::Relaxed));
    let is_same = word.version() == due.note && word.has(Tid::ABSENT) && !word.has(Tid::LOCK);
    is_same && !word.has(Tid::REQUEUE) && cell_lock::kill(units, word)
}
