//! Multi-version timestamp ordering: a commit draws its timestamp first, and links versions where
//! they belong in time.
//!
//! # Guarantee
//! Serializable, strictly so, in the order of timestamps. Not opaque: an attempt that will fail may
//! see what was committed at different times (never a torn value) before it fails. In a snapshot,
//! and under `run_read_only`, a transaction sees one moment, never fails, and writes nothing that
//! other sessions read but the rows that it makes of deltas.
//!
//! # Source
//! MSTO [HU20], section 2.4, after Cicada [LI17]: one counter, pending versions, and timestamps
//! until when versions have been read. Differences: a change of a version chain latches its cell
//! briefly, so that versions of failed commits leave it at once; a read-only transaction is
//! validated at the time it began instead of being run in the past; nodes have plain versions,
//! since every timestamp is drawn after the links of its transaction, from a counter or from the
//! system's clock (`ticks.rs`), where Cicada has one clock for each thread; the existence of a row,
//! which is all that a delta rests on, has a read timestamp of its own; an updater that may fail is
//! applied by the commit; the version of a read-modify-write may come below later versions that
//! have not been read, where Cicada requires that it be the newest; the place of a version in the
//! record is used once, so no reader walks past a second version in that place; deltas are not
//! combined with one another while a transaction may read at a time between two, and become one row
//! afterwards (`collect.rs`); and a read for update keeps other writers out.
//!
//! # Phases
//! Executing, an attempt reads at its *time*, the clock's when it began. If it meets a newer
//! version and may still write, it validates its read set and moves its time on; if that fails, it
//! goes on as a reader of old versions, or fails if it has written.
//!
//! 1 draw the timestamp - 2 link pending versions - 3 raise the rts of the read set, and of the
//! versions followed, to the timestamp - 4 let its tick pass, fence, and validate both - 5 evaluate
//! updaters - 6 fill the versions in, and commit them. An attempt that wrote nothing validates its
//! read set once no commit at its time or before is going on; if one is, it does phases 3 and 4
//! instead of waiting, unless the token is taken. Keys that it has missed in an index need no
//! validation: their inserts have later timestamps.
//!
//! Updates that cannot fail become deltas: versions that hold an operation on the row below, and
//! become rows when they are read (`flatten.rs`). They wait for no other commit and rest only on
//! the existence of a row. A user's updater declares by `TOTAL` that it cannot fail. If it fails
//! nevertheless, its transaction has committed, and another one is applying it: then it has no
//! effect on the row, and its panic is only reported by the panic hook.
//!
//! # Cell
//! ```text
//! | newest: 52 | flags: 12: LOCK INSTALL DEAD QUEUED INLINE_USED ON_SNAPSHOT_LIST |   | seen until |   and a version: | ts: 60 | absent, state | rts | older |
//! ```
//! The first version of a unit lies beside its cell, in the record; the others in blocks of their
//! own. LOCK says that a read for update holds the unit, INSTALL that the chain is being changed.
//!
//! # Invariants
//! Chains are as `record/version_chain.rs` says, with invariants VC1 to VC4. Besides:
//! * **TO1** Read timestamps count halves: `2 t` is a transaction that writes at `t`, `2 t + 1` one
//!   that only reads after it. They never fall.
//! * **TO2** A version that is committed at `t` follows one whose rts, and that of all between that
//!   are not aborted, was `2 t` at most after the version was linked and a fence was passed.
//! * **TO3** A transaction that commits at `t`, having read version `v`, raised its rts to `2 t`
//!   (`2 t + 1` if it only reads) and passed a fence, and then no version between `v` and `t` was
//!   linked but aborted ones; or it only reads, no commit at `t` or before was going on any more,
//!   and the same.
//! * **TO4** What a write expects of its row, and the row that an updater is applied to, are read
//!   in the sense of TO3.
//! * **TO5** The attempt's time is taken from the clock after its session was pinned, and never
//!   falls; its timestamp is above it.
//! * **TO6** A version stays in its chain while a transaction or a snapshot can still see it
//!   (`collect.rs`).
//! * **TO7** A unit with more than one version, and the first of an absent record, is QUEUED,
//!   ON_SNAPSHOT_LIST, or in the `linked` list of the attempt that linked it; except the other
//!   units of an absent record, which are collected together with the first.
//! * **TO8** A delta that is committed at `t` raised the cell's second word to `2 t`, passed a
//!   fence, and then found a row below it, whether or not pending versions in between commit. A
//!   commit that deletes a row at `t` finds that word at `2 t` at most, after its fence. A delta
//!   becomes a row only after the rts of all that it is made of have been raised to the delta's
//!   timestamp, under the latch.
//! * **TO9** Nothing that can fail happens after phase 5. A commit waits only for versions with
//!   smaller timestamps, and not for ever.
//!
//! # Why it is serializable
//! The order is that of timestamps; one that only reads at `t` comes between `t` and the next. ww:
//! chains descend. wr: a reader at `t` sees versions at or before `t`, and only such as are
//! committed. rw: let T at `t` have read `v`, and let U commit `w`, with `v < w < t`, or `w = t` if
//! T only reads; let `w` be the lowest such version. Either T's fence comes before U's; then U,
//! after its own, sees the rts that T has raised on `v`, which `w` follows, and fails (TO2). Or U's
//! comes first; then T, after its own, sees `w` linked, and fails (TO3). If T waited instead for
//! all commits at `t` or before, U's was over when T looked, so T saw `w`. An absent record is such
//! a version, by the cell's second word. A reader of a delta has read all that it is made of, in
//! the sense of TO3: a writer that links below it afterwards, under the latch, finds those rts
//! raised (TO8), and no commit in between deletes the row that it rests on. A key without a record:
//! its insert links the record before it draws its timestamp, and T validates the node after it has
//! drawn its own, or has taken its time; so either T sees the node changed, or the insert's
//! timestamp is above. Every timestamp is drawn, and every time taken, within the call, so the
//! order agrees with real time.
//!
//! The read timestamps of a record are lost when it is reaped: a later insert of its key draws a
//! timestamp later than those of all readers that have found, in phase 4 or as they read, that it
//! is not dead.
//!
//! Each claim above that a timestamp is later than others, or else something is seen, holds for a
//! counter by its modification order, and for the system's clock by fences and by the end of a tick
//! in phase 4 (TK1 to TK4 of `ticks.rs`).
//!
//! # Example
//! T wants to write below what R has read (`tests/timelines`). Versions are shown as *value of
//! timestamp*, with the rts.
//! ```text
//! T                                     R                                 x
//! draws 2, to write x                                                     0 of 1
//!                                       begins at time 2 (TO5)
//!                                       reads x: 0 of 1
//!                                       T is committing at 2, so:
//!                                       raises the rts to 5 (TO1)         0 of 1, rts 5
//!                                       fences, finds no version
//!                                       between 1 and 2 (TO3), commits
//! latches x, to link 1 of 2
//! finds rts 5, above 4 (TO2)
//! aborts: ReadChanged
//! ```
//! Had T linked its version before R read x, R would have waited for the outcome.
//!
//! # Aborts
//! `Locked`: a pending version was not settled in time. `ReadChanged`: phase 2 or 4; or a version
//! read was replaced before the attempt met a newer one, and it had written, or wanted to
//! afterwards. `Phantom`: a node read was changed likewise. `ExistenceChanged`, `RecordRemoved`:
//! phases 2 and 4. `MemoryLimit`: staging. `Guard`, `Overflow`: phase 5, definite.
//!
//! # Costs
//! One counter, which every begin reads and every writing commit changes; or else the system's
//! clock, which every begin reads once and every writing commit twice, with a fence each, and the
//! rest of a tick of 64 ns, for which a commit waits while its versions are pending. A writing
//! commit raises the rts of its read set, a write to each row's line. A version costs three words
//! and two to spare, a cell five. A commit that fails has linked its versions. A delta is made a
//! row by its first reader; sixteen may lie on one another. While a user's deferred updater is
//! applied, no other thread links a version of that unit, or makes one a row.
//!
//! [HU20]: https://doi.org/10.14778/3377369.3377373
//! [LI17]: https://doi.org/10.1145/3035918.3064015

#![forbid(unsafe_code)]

mod clock;
mod collect;
mod flatten;
mod parts;
mod settle;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod tests;
mod ticks;
mod versions;

pub use clock::Clock;
pub use parts::{Attempt, Mvto, SessionVersions};

use crate::access::{Failure, Intent, WriteItem, WriteSet};
use crate::engine::{
    Absence, BlockSize, Committed, Context, Deferred, Due, GcOutcome, Missing, Protocol, ReadView,
    Seen, TableCore,
};
use crate::epoch::{Epoch, Epochs};
use crate::error::Abort;
use crate::factor::Factor;
use crate::index::{NodeAt, NodeChange};
use crate::protocols::shared::cell_lock::{self, patience};
use crate::record::version_chain::{
    self, INLINE_USED, Latched, ON_SNAPSHOT_LIST, Stamp, Version, VersionId,
};
use crate::record::{CellAt, Tid};
use crate::schema::{Op, Words};
use crate::sync::{
    Mutant, Ordering, Point, Spin, Wait, Waited, Wish, full_fence, mutant, pass, step,
};
use crate::timestamps::Timestamps;
use clock::Part;
pub(crate) use flatten::DELTAS_MAX;
use flatten::flatten;
use settle::{await_settled, raise, settling_place};
use std::panic::resume_unwind;
use std::sync::Arc;

/// The most reads with which an attempt that has written nothing moves its time on: one that reads
/// much and writes nothing needs no newer time, and would validate its read set again and again.
const MOVED_READS_MAX: usize = 32;

/// The number of attempts that take newer times from the beginning, after one that had read old
/// versions wanted to write.
const REFRESH_ATTEMPTS: u8 = 4;

/// The note of an item whose version has to go into the record, which held none when it was staged:
/// no block has been made ready. The note of any other item is zero until its version is linked,
/// and that version afterwards.
const NO_BLOCK: u64 = 1;

impl Attempt {
    /// Returns whether the attempt is expected to write.
    fn will_write(&self) -> bool {
        self.has_staged || self.refresh_attempts_left > 0 || !self.held.is_empty()
    }

    /// Returns whether the attempt notes what it reads.
    #[inline(always)]
    fn notes_reads(&self) -> bool {
        !self.reads_settled || self.keeps_reads
    }

    /// Copies the version that the attempt sees of a unit, and adds it to the read set.
    #[inline(always)]
    fn see(
        &mut self,
        at: CellAt,
        seen: Option<Version<'_>>,
        copy: &mut impl FnMut(Words<'_>),
    ) -> Seen {
        let stamp = seen.map(Version::stamp);
        debug_assert!(
            stamp.is_none_or(|stamp| stamp.is_readable() && stamp.ts() <= self.time),
            "TO3: a read is of a committed version at the attempt's time or before"
        );
        let present = seen.filter(|_| !stamp.is_some_and(Stamp::is_absent));
        if let Some(version) = present {
            copy(Words::Shared(version.payload()));
        }
        pass(Point::Copied);
        if self.notes_reads() && (present.is_some() || !mutant(Mutant::TombstoneUnobserved)) {
            self.reads.push((at, seen.map_or(VersionId::NONE, Version::id)));
        }
        Seen { present: present.is_some(), version: stamp.map_or(0, Stamp::ts) }
    }

    /// Returns whether the attempt holds a unit. Searches only if its cell is locked, the latest
    /// first.
    fn holds(&self, at: CellAt) -> bool {
        let is_it = |held: &CellAt| {
            step();
            held.address() == at.address()
        };
        !self.held.is_empty() && at.chain_word().has(Tid::LOCK) && self.held.iter().rev().any(is_it)
    }

    /// Returns whether the attempt holds a unit. The caller is the attempt's commit, which has
    /// sorted `held`.
    fn holds_at_commit(&self, at: CellAt) -> bool {
        self.held.binary_search_by_key(&at.address(), |held| held.address()).is_ok()
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            part.leave();
        }
    }
}

impl Protocol for Mvto {
    const NAME: &'static str = "mvto";
    const STRICT: bool = true;
    const OPAQUE: bool = false;
    const CELL_WORDS: usize = version_chain::CHAIN_WORDS;
    const NODE_WORDS: usize = 0;
    const COMMITS_STALE: bool = true;
    const TIMESTAMPS: &'static [Timestamps] = &[Timestamps::Counter, Timestamps::Clock];
    type Versions = Self;
    type InPlace = Deferred;

    fn attempt(_clock: &Clock) -> Attempt {
        Attempt::default()
    }

    fn clock(_policy: &(), timestamps: Timestamps, _epochs: &Arc<Epochs>) -> Clock {
        Clock::new(timestamps)
    }

    #[inline(always)]
    fn begin(context: &mut Context<'_, Mvto>, attempt: &mut Attempt) {
        attempt.reads.clear();
        attempt.nodes.clear();
        attempt.room.clear();
        (attempt.has_staged, attempt.only_reads, attempt.has_moved) = (false, false, false);
        attempt.refresh_attempts_left = attempt.refresh_attempts_left.saturating_sub(1);
        attempt.reads_settled = context.local.read_view != ReadView::Current;
        attempt.time = match context.local.read_view {
            ReadView::Snapshot(ts) => ts,
            ReadView::Current | ReadView::AtBegin => context.clock.now(), // TO5
        };
        if attempt.reads_settled {
            look_back(context, attempt);
        }
    }

    #[inline(always)]
    fn read(
        context: &mut Context<'_, Mvto>,
        attempt: &mut Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        if let Some(seen) = Self::read_at_once(attempt, at, &mut copy) {
            return Ok(seen);
        }
        let seen = read_older(context, attempt, &at)?;
        Ok(attempt.see(at, seen, &mut copy))
    }

    #[inline(always)]
    fn read_at_once(
        attempt: &mut Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Option<Seen> {
        let word = at.chain_word();
        let newest = at.newest_linked(word);
        let is_simple = newest.is_none_or(|newest| {
            let stamp = newest.stamp();
            stamp.is_readable() && stamp.ts() <= attempt.time
        });
        (is_simple && !word.has(Tid::DEAD)).then(|| attempt.see(at, newest, &mut copy))
    }

    fn read_for_update(
        context: &mut Context<'_, Mvto>,
        attempt: &mut Attempt,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        if attempt.only_reads {
            return Err(too_late(context, attempt, at));
        }
        Self::hold(context, attempt, at)?;
        Self::read(context, attempt, at, copy)
    }

    fn hold(
        context: &mut Context<'_, Mvto>,
        attempt: &mut Attempt,
        at: CellAt,
    ) -> Result<bool, Abort> {
        if !attempt.holds(at) {
            hold(context, attempt, at)?;
        }
        Ok(attempt.holds(at))
    }

    #[inline(always)]
    fn is_present(attempt: &Attempt, at: CellAt) -> bool {
        let newest = at.newest_linked(at.chain_word());
        let is_seen = |version: &Version<'_>| {
            let stamp = version.stamp();
            stamp.is_committed() && stamp.ts() <= attempt.time
        };
        let seen = newest.and_then(|newest| newest.and_older().find(is_seen));
        seen.is_some_and(|version| !version.stamp().is_absent())
    }

    fn stage(
        context: &mut Context<'_, Mvto>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort> {
        admit_write(context, attempt, at)?;
        let is_new = writes.items().len();
        let index = writes.stage(at, intent, op);
        if index == is_new {
            prepare(context, attempt, &mut writes.items_mut()[index], intent)
        } else {
            Ok(())
        }
    }

    fn stage_new(
        context: &mut Context<'_, Mvto>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        cells: impl Iterator<Item = CellAt> + Clone,
        operand: u32,
    ) -> Result<(), Abort> {
        cells.clone().try_for_each(|at| admit_write(context, attempt, at))?;
        let first = writes.items().len();
        writes.stage_new(cells, operand);
        let mut items = writes.items_mut()[first..].iter_mut();
        items.try_for_each(|item| prepare(context, attempt, item, Intent::Insert))
    }

    fn revalidate(
        context: &mut Context<'_, Mvto>,
        attempt: &mut Attempt,
        _writes: &WriteSet,
    ) -> Result<(), Abort> {
        // If an attempt only reads, its reads are valid at its time, unless a commit with an
        // earlier timestamp has linked a version since.
        let (before, later) =
            if attempt.has_staged { (u64::MAX, true) } else { (attempt.time + 1, false) };
        look_at_all(context, attempt, before, later)
    }

    #[inline]
    fn commit(
        context: &mut Context<'_, Mvto>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
    ) -> Result<Committed, Abort> {
        let result = if writes.is_empty() {
            commit_reads(context, attempt)
        } else {
            commit(context, attempt, writes)
        };
        if result.is_ok() {
            attempt.refresh_attempts_left = 0;
        }
        end(context, attempt);
        result
    }

    #[inline(always)]
    fn read_set_size(attempt: &Attempt) -> usize {
        attempt.reads.len() + attempt.nodes.len()
    }

    fn abort(context: &mut Context<'_, Mvto>, attempt: &mut Attempt, _writes: &mut WriteSet) {
        // There is no version to unlink: only a commit links versions, and a commit that fails has
        // unlinked them.
        give_back(context, attempt);
    }

    fn begin_ts_bound(clock: &Clock) -> u64 {
        clock.before_stamp()
    }

    fn reach(
        context: &mut Context<'_, Mvto>,
        attempt: &mut Attempt,
        time: u64,
        table: u16,
    ) -> Result<(), Abort> {
        if attempt.time >= time {
            Ok(())
        } else if attempt.reads_settled {
            Err(Abort::NoIndex)
        } else if attempt.only_reads {
            Err(context.phantom(table))
        } else {
            move_on(context, attempt, time)
        }
    }

    #[inline(always)]
    fn prefetch(_clock: &Clock, at: CellAt, first: usize, count: usize) {
        at.prefetch_in_newest_linked(first, count);
    }
}

impl Absence for Mvto {
    fn absent(
        _context: &mut Context<'_, Mvto>,
        attempt: &mut Attempt,
        missing: Missing<'_>,
    ) -> Result<(), Abort> {
        if attempt.notes_reads() {
            attempt.nodes.observe(missing);
        }
        Ok(())
    }

    fn init_absent_cell(_clock: &Clock, at: CellAt) {
        at.empty_chain();
    }

    fn linked(attempt: &mut Attempt, node: NodeAt, before: u64, after: u64, first: CellAt) {
        if attempt.nodes.linked(node, before, after) {
            attempt.reads.push((first, VersionId::NONE));
        }
    }

    fn divided(attempt: &mut Attempt, change: &NodeChange) {
        attempt.nodes.divided(change);
    }

    fn enqueue_if_absent(_clock: &Clock, first: CellAt) -> bool {
        let mut spin = Spin::default();
        loop {
            match first.try_latch() {
                Ok(mut cell) => {
                    // If an insert of the row is pending, the collection of the entry will find out
                    // whether it was committed.
                    let newest = cell.newest().map(Version::stamp);
                    let is_row =
                        newest.is_some_and(|stamp| stamp.is_committed() && !stamp.is_absent());
                    let queues = !is_row && !cell.word().has(Tid::QUEUED | ON_SNAPSHOT_LIST);
                    if queues {
                        cell.raise(Tid::QUEUED);
                    }
                    cell.release();
                    return queues;
                }
                Err(word) if word.has(Tid::DEAD) => return false,
                Err(_) => spin.wait(),
            }
        }
    }

    fn reap(
        context: &mut Context<'_, Mvto>,
        due: &mut Due,
        _table: &TableCore,
        units: &[CellAt],
        _horizon: Epoch,
    ) -> GcOutcome {
        collect::collect(context, due, units)
    }
}

/// Begins an attempt that reads at a time in the past.
#[cold]
fn look_back(context: &mut Context<'_, Mvto>, attempt: &mut Attempt) {
    (attempt.only_reads, attempt.refresh_attempts_left) = (true, 0);
    attempt.keeps_reads = context.engine.options.counts_stale();
    if context.local.read_view == ReadView::AtBegin && !mutant(Mutant::UnsettledSnapshot) {
        context.clock.await_settled(&mut attempt.others, attempt.time);
    }
}

/// Notes that an attempt writes, or refuses if it only reads.
#[inline(always)]
fn admit_write(
    context: &mut Context<'_, Mvto>,
    attempt: &mut Attempt,
    at: CellAt,
) -> Result<(), Abort> {
    if attempt.only_reads && !mutant(Mutant::OldReadsWritten) {
        return Err(too_late(context, attempt, at));
    }
    attempt.has_staged = true;
    Ok(())
}

/// Reserves memory for an item's version, and for the row that the commit may have to make of a
/// delta below.
fn prepare(
    context: &mut Context<'_, Mvto>,
    attempt: &mut Attempt,
    item: &mut WriteItem,
    intent: Intent,
) -> Result<(), Abort> {
    flatten::make_room(&mut attempt.image, &item.at);
    if !Tid(item.at.cell_word(0).load(Ordering::Relaxed)).has(INLINE_USED) {
        item.note = NO_BLOCK;
        return Ok(());
    }
    if intent == Intent::Update {
        // The commit will copy the newest version.
        item.at.prefetch_all_of_newest_linked();
    }
    // The version of a delete has no payload.
    let words = if intent == Intent::Delete {
        0
    } else {
        version_chain::VERSION_WORDS + item.at.payload_words()
    };
    attempt.room.add(context, item.at, intent, (BlockSize::Whole, words))
}

/// Returns the conflict of an attempt that wants to write, but only reads.
#[cold]
fn too_late(context: &mut Context<'_, Mvto>, attempt: &mut Attempt, at: CellAt) -> Abort {
    attempt.refresh_attempts_left = REFRESH_ATTEMPTS;
    context.conflict(Abort::ReadChanged, at)
}

/// Keeps other attempts from writing a unit whose row is there, until this one ends.
fn hold(context: &mut Context<'_, Mvto>, attempt: &mut Attempt, at: CellAt) -> Result<(), Abort> {
    // From now on, other writers of the unit wait for this attempt.
    context.yield_to_token()?;
    attempt.held.reserve(1);
    let mut wait: Option<Wait<'_>> = None;
    let waited = loop {
        match at.try_latch() {
            Ok(mut cell) => {
                let is_locked = cell.word().has(Tid::LOCK);
                let pending = seen_at(cell.newest(), u64::MAX).err();
                let is_free = pending.is_none() && !is_locked;
                let is_row = is_row(&cell);
                if is_free && is_row {
                    cell.raise(Tid::LOCK);
                    attempt.held.push(at);
                }
                cell.release();
                if is_free && is_row {
                    return Ok(());
                } else if is_free {
                    match wait.as_mut().map(Wait::give_up) {
                        Some(Waited::Handed) => break Waited::Handed,
                        _ => return Ok(()),
                    }
                } else if let Some(pending) = pending.filter(|_| !is_locked) {
                    // No lock is going to be released.
                    match await_settled(context, &at, pending, false) {
                        true => continue,
                        false => break wait.as_mut().map_or(Waited::InVain, Wait::give_up),
                    }
                }
            }
            Err(word) if word.has(Tid::DEAD) => {
                wait.as_mut().map(Wait::give_up);
                return Err(context.conflict(Abort::RecordRemoved, at));
            }
            Err(_) => {}
        }
        let is_in_order = || attempt.held.iter().all(|held| held.address() < at.address());
        let begin = || cell_lock::wait_to_own(context, at, is_in_order());
        match wait.get_or_insert_with(begin).wait() {
            Waited::Again => {}
            waited => break waited,
        }
    };
    if waited == Waited::Handed {
        attempt.held.push(at);
        return Ok(());
    }
    attempt.held.iter().for_each(|&held| context.want(held));
    context.want(at);
    Err(context.conflict(Abort::Locked, at))
}

/// Releases the units that an attempt has held.
fn give_back(context: &Context<'_, Mvto>, attempt: &mut Attempt) {
    if mutant(Mutant::HeldForEver) {
        attempt.held.clear();
    }
    for at in attempt.held.drain(..) {
        let cell = latch_own(&at);
        // Waiters are woken only if the row exists; the attempt may have deleted it.
        let is_row = context.engine.parking.has_sleepers() && is_row(&cell);
        let mut cell = Some(cell);
        let free = |is_handed: bool| {
            if let Some(mut cell) = cell.take() {
                if !is_handed {
                    cell.clear(Tid::LOCK);
                }
                cell.release();
            }
        };
        cell_lock::free(context, at, is_row, free);
    }
}

/// Ends a commit or a failed attempt at one: releases the locks that are still held.
fn end(context: &Context<'_, Mvto>, attempt: &mut Attempt) {
    give_back(context, attempt);
    pass(Point::Released);
}

/// Returns whether the newest version of a latched unit is committed, and a row.
fn is_row(cell: &Latched<'_>) -> bool {
    let newest = seen_at(cell.newest(), u64::MAX);
    newest.is_ok_and(|newest| newest.is_some_and(|newest| !newest.stamp().is_absent()))
}

/// Wakes the attempts that wait for the versions that a commit has linked.
#[cold]
fn wake_all(context: &Context<'_, Mvto>, writes: &WriteSet) {
    for item in writes.items() {
        context.engine.parking.wake(settling_place(&item.at, VersionId::of_word(item.note)));
    }
}

/// Latches a cell that cannot be dead: latches are held only briefly.
fn latch_own(at: &CellAt) -> Latched<'_> {
    let mut spin = Spin::default();
    loop {
        match at.try_latch() {
            Ok(cell) => return cell,
            Err(_) => spin.wait(),
        }
    }
}

/// Returns the newest version of a chain that is not aborted and not later than `time`; as an
/// error, that version if it is pending.
fn seen_at(newest: Option<Version<'_>>, time: u64) -> Result<Option<Version<'_>>, Version<'_>> {
    let Some(newest) = newest else { return Ok(None) };
    for version in newest.and_older() {
        let stamp = version.stamp();
        if stamp.ts() <= time && !stamp.is_aborted() {
            return if stamp.is_pending() { Err(version) } else { Ok(Some(version)) };
        }
    }
    Ok(None)
}

/// Returns the version that an attempt sees of a unit whose newest version is pending or later than
/// its time, or whose record is dead.
#[cold]
#[inline(never)]
fn read_older<'a>(
    context: &mut Context<'_, Mvto>,
    attempt: &mut Attempt,
    at: &'a CellAt,
) -> Result<Option<Version<'a>>, Abort> {
    loop {
        let word = at.chain_word();
        if word.has(Tid::DEAD) && (attempt.will_write() || attempt.has_moved) {
            return Err(context.conflict(Abort::RecordRemoved, *at));
        }
        // If the record is dead for another reason, it was reaped after this attempt began: its row
        // was deleted before the attempt began, or no open snapshot sees the row.
        let newest = at.newest_linked(word);
        let seen = match seen_at(newest, attempt.time) {
            Ok(seen) => seen,
            // In a snapshot the wait has no limit: the attempt cannot begin anew, and no other
            // attempt waits for it.
            Err(pending) if await_settled(context, at, pending, attempt.reads_settled) => continue,
            Err(_) => return Err(context.conflict(Abort::Locked, *at)),
        };
        let replaced = newest.and_then(|newest| {
            let mut newer = newest
                .and_older()
                .map(Version::stamp)
                .take_while(|stamp| stamp.ts() > attempt.time);
            newer.find(|stamp| stamp.is_committed())
        });
        let Some(replaced) = replaced.filter(|_| !attempt.only_reads) else {
            return read_row(context, attempt, at, seen);
        };
        let is_worth_it =
            attempt.will_write() || attempt.reads.len() + attempt.nodes.len() <= MOVED_READS_MAX;
        if is_worth_it {
            match move_on(context, attempt, replaced.ts()) {
                Ok(()) => continue,
                Err(abort) if attempt.will_write() => return Err(abort),
                Err(_) => {}
            }
        }
        context.local.conflict = None;
        attempt.only_reads = true;
        return read_row(context, attempt, at, seen);
    }
}

/// Flattens a version that is a delta, so that it can be read.
fn read_row<'a>(
    context: &mut Context<'_, Mvto>,
    attempt: &mut Attempt,
    at: &CellAt,
    seen: Option<Version<'a>>,
) -> Result<Option<Version<'a>>, Abort> {
    if let Some(version) = seen {
        flatten(context, at, version, &mut attempt.image, attempt.reads_settled)?;
    }
    Ok(seen)
}

/// Moves the attempt's time forward to the present, which is not below `ts`, a timestamp that the
/// attempt has met. Fails if the read set is not valid at the new time.
fn move_on(context: &mut Context<'_, Mvto>, attempt: &mut Attempt, ts: u64) -> Result<(), Abort> {
    let now = context.clock.now_from(ts);
    debug_assert!(attempt.time <= now && ts <= now, "TO5: an attempt's time never falls");
    look_at_all(context, attempt, now + 1, true)?;
    (attempt.time, attempt.has_moved) = (now, true);
    Ok(())
}

/// Validates that every version read is the last version before a timestamp, pending versions
/// included. If `later`, which says that the timestamp is later than the time of the reads, dead
/// records and missed keys are validated, too: their rows may have been inserted since.
fn look_at_all(
    context: &mut Context<'_, Mvto>,
    attempt: &Attempt,
    before: u64,
    later: bool,
) -> Result<(), Abort> {
    for &(at, seen) in &attempt.reads {
        let word = at.chain_word();
        if later && is_reaped(word) {
            return Err(context.conflict(Abort::RecordRemoved, at));
        }
        let newest = at.newest_linked(word);
        if is_seen(newest, seen) {
            continue;
        }
        let last = newest.and_then(|newest| {
            newest.and_older().find(|version| is_linked_before(version.stamp(), before))
        });
        if !is_seen(last, seen) {
            return Err(context.conflict(Abort::ReadChanged, at));
        }
    }
    // If not `later`, missed keys need no validation: their inserts link the record first, so they
    // draw timestamps after this attempt began.
    if later { attempt.nodes.validate(context) } else { Ok(()) }
}

/// Returns whether a record was unlinked from its index. Such a record proves nothing for later
/// times.
#[inline(always)]
fn is_reaped(word: Tid) -> bool {
    word.has(Tid::DEAD) && !mutant(Mutant::DeadUnnoticed)
}

/// Returns whether a version is the version that was read, `None` being the absence of one.
#[inline(always)]
fn is_seen(version: Option<Version<'_>>, seen: VersionId) -> bool {
    version.map_or(VersionId::NONE, Version::id) == seen || mutant(Mutant::NoReadValidation)
}

/// Returns whether a version has a timestamp before `time` and is not aborted; it may be pending.
#[inline(always)]
fn is_linked_before(stamp: Stamp, before: u64) -> bool {
    let is_ignored = stamp.is_pending() && mutant(Mutant::OthersLocksIgnored);
    stamp.ts() < before && !stamp.is_aborted() && !is_ignored
}

/// Returns whether OCC would abort the attempt: of a unit that it has read another version is the
/// newest, committed or pending, or a node has changed. The attempt's own versions have the
/// timestamp `own`.
#[cold]
fn is_stale(attempt: &Attempt, own: Option<u64>) -> bool {
    let is_others = |version: &Version<'_>| {
        let stamp = version.stamp();
        !stamp.is_aborted() && Some(stamp.ts()) != own
    };
    let is_replaced = |&(at, seen): &(CellAt, VersionId)| {
        let newest = at.newest_linked(at.chain_word());
        let newest = newest.and_then(|newest| newest.and_older().find(is_others));
        newest.map_or(VersionId::NONE, Version::id) != seen
    };
    attempt.reads.iter().any(is_replaced) || attempt.nodes.first_changed().is_some()
}

/// Raises the read timestamps of the read set (TO3); a fence has to follow.
fn raise_reads(attempt: &Attempt, to: u64) {
    for (at, seen) in &attempt.reads {
        raise(at.linked(*seen).map_or(at.existence_rts(), Version::rts), to);
    }
}

/// Commits an attempt that wrote nothing, at its time.
fn commit_reads(
    context: &mut Context<'_, Mvto>,
    attempt: &mut Attempt,
) -> Result<Committed, Abort> {
    if !attempt.reads_settled && attempt.reads.len() + attempt.nodes.len() > 0 {
        if !context.clock.is_settled(&mut attempt.others, attempt.time) {
            // Raised read timestamps may make the token holder's commit fail once more.
            context.yield_to_token()?;
            raise_reads(attempt, 2 * attempt.time + 1);
            full_fence(); // E1
        }
        look_at_all(context, attempt, attempt.time + 1, false)?;
    }
    context.note_staleness(|| is_stale(attempt, None));
    Ok(Committed { version: 0 })
}

/// Runs the phases of a commit that writes. No version of its own is pending afterwards, whether it
/// commits or fails.
fn commit(
    context: &mut Context<'_, Mvto>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
) -> Result<Committed, Abort> {
    context.yield_to_token()?;
    context.reserve_for(writes);
    context.reserve_to_park(writes);
    // If the commit fails, its linked versions are retired.
    context.local.retired.reserve(writes.items().len());
    if context.engine.options.factors.has(Factor::SortedLocks) {
        writes.sort();
    }
    let part = attempt.part.take().unwrap_or_else(|| context.clock.join());

    // 1 timestamp
    let ts = draw(context, attempt, &part);
    let committed = commit_at(context, attempt, writes, ts);
    if !matches!(committed, Ok(())) {
        unlink_all(context, writes);
    }
    if context.engine.parking.has_sleepers() {
        wake_all(context, writes);
    }
    await_tick_at_end(context, &committed, ts);
    part.rest();
    attempt.part = Some(part);
    // The commit waits only here: before this point other attempts wait for its versions, and for
    // its end.
    if let (Err(Failure::Outcome(Abort::Locked)), true) = (&committed, attempt.held.is_empty())
        && let Some(at) = writes.items().iter().map(|item| item.at).find(cell_lock::is_locked)
    {
        cell_lock::await_unlocked(context, at);
    }
    match committed {
        Ok(()) => Ok(Committed { version: ts }),
        Err(Failure::Outcome(abort)) => Err(abort),
        Err(Failure::Panic(panic)) => {
            give_back(context, attempt);
            resume_unwind(panic)
        }
    }
}

/// Runs phases 2 to 6.
#[inline(always)]
fn commit_at(
    context: &mut Context<'_, Mvto>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    ts: u64,
) -> Result<(), Failure> {
    attempt.held.sort_unstable_by_key(|held| held.address());

    // 2 link
    for index in 0..writes.items().len() {
        link(context, attempt, writes, index, ts).map_err(Failure::Outcome)?;
    }

    // 3 raise, 4 let the tick pass, fence and validate
    raise_observed(attempt, ts);
    for index in 0..writes.items().len() {
        raise_below(context, writes, index, ts).map_err(Failure::Outcome)?;
    }
    await_tick(context, ts);
    fence_after_raising();
    look_at_all(context, attempt, end_of_reads(attempt, ts), true).map_err(Failure::Outcome)?;
    for index in 0..writes.items().len() {
        look_below(context, attempt, writes, index, ts).map_err(Failure::Outcome)?;
    }
    context.note_staleness(|| is_stale(attempt, Some(ts)));

    // 5 evaluate
    evaluate(writes)?;

    // 6 install: nothing fails any more (TO9)
    for index in 0..writes.items().len() {
        fill_in(writes, index);
    }
    for item in writes.items_mut() {
        finish(context, item);
    }
    Ok(())
}

/// Draws the timestamp of a commit: phase 1.
#[inline(always)]
fn draw(context: &Context<'_, Mvto>, attempt: &Attempt, part: &Part) -> u64 {
    let ts = context.clock.next_for(part, attempt.time);
    debug_assert!(attempt.time < ts, "TO5: a timestamp is above the time of its attempt");
    pass(Point::Unlocked);
    ts
}

/// Raises the read timestamps of a commit's read set, once its versions are linked. The caller
/// issues a fence afterwards.
#[inline(always)]
fn raise_observed(attempt: &Attempt, ts: u64) {
    pass(Point::Locked);
    if !mutant(Mutant::NotRaised) {
        raise_reads(attempt, 2 * ts);
    }
}

/// Waits until the tick of a commit's timestamp is over, before the commit validates.
#[inline(always)]
fn await_tick(context: &Context<'_, Mvto>, ts: u64) {
    if !mutant(Mutant::TickAwaitedLate) {
        context.clock.pass(ts);
    }
}

/// Waits, for a failed commit, until the tick of its timestamp is over. It may have failed before
/// its own wait.
#[inline(always)]
fn await_tick_at_end(context: &Context<'_, Mvto>, committed: &Result<(), Failure>, ts: u64) {
    if committed.is_err() || mutant(Mutant::TickAwaitedLate) {
        context.clock.pass(ts);
    }
}

/// Orders the commit's raised read timestamps before its validation (E1).
#[inline(always)]
fn fence_after_raising() {
    if !mutant(Mutant::NoFence) {
        full_fence(); // E1
    }
}

/// Returns the time before which a commit's reads must still be the last versions: its timestamp.
#[inline(always)]
fn end_of_reads(attempt: &Attempt, ts: u64) -> u64 {
    if mutant(Mutant::ValidatedInPast) { attempt.time + 1 } else { ts }
}

/// Evaluates the operations of a commit that has validated, by the rows that its versions follow.
#[inline(always)]
fn evaluate(writes: &mut WriteSet) -> Result<(), Failure> {
    pass(Point::Validated);
    writes
        .evaluate(|item| Words::Shared(row_below(item).map_or(item.at.payload(), Version::payload)))
}

/// Commits the version of one item, or unlinks one that changes nothing: phase 6.
#[inline(always)]
fn finish(context: &mut Context<'_, Mvto>, item: &mut WriteItem) {
    pass(Point::Installing);
    match own(item) {
        Some(version) if !item.untouched => version.commit(),
        Some(_) => unlink(context, item),
        None => {}
    }
}

/// Returns the version that a commit has linked for an item.
fn own(item: &WriteItem) -> Option<Version<'_>> {
    if item.note == NO_BLOCK { None } else { item.at.linked(VersionId::of_word(item.note)) }
}

/// The property of the version below on which a write depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// No property: the write replaces the unit, whether or not the row exists.
    Anything,
    /// The existence of a row, with any words.
    AnyRow,
    /// The version itself, or the absence of one.
    ThisRow,
}

fn follows(writes: &WriteSet, index: usize) -> Follows {
    let item = &writes.items()[index];
    let is_blind = item.present && (item.is_delta || writes.replaces_unit(index));
    match item.expects {
        None if is_blind => Follows::Anything,
        Some(true) if is_blind => Follows::AnyRow,
        _ => Follows::ThisRow,
    }
}

/// Links a pending version for one item: phase 2.
fn link(
    context: &mut Context<'_, Mvto>,
    attempt: &Attempt,
    writes: &mut WriteSet,
    index: usize,
    ts: u64,
) -> Result<(), Abort> {
    let item = writes.items()[index];
    let at = item.at;
    let mut cell = latch(context, attempt, &at)?;
    let above = newest_after(&cell, ts);
    let below = above.map_or_else(|| cell.newest(), Version::older);
    if let Some(abort) = forbids(&item, below, ts) {
        cell.release();
        return Err(context.conflict(abort, at));
    }
    let block = match (cell.has_room_in_record(), item.note) {
        (true, _) => None,
        (false, NO_BLOCK) => {
            // Another commit has used the space for a version in the record.
            cell.release();
            return Err(context.conflict(Abort::ExistenceChanged, at));
        }
        (false, _) => Some(context.version_block(at.table(), BlockSize::Whole)),
    };
    let is_delta = block.is_some() && can_wait(writes, index, below);
    let stamp = Stamp::pending(ts, item.present);
    let is_first = cell.newest().is_none();
    pass(Point::Linking);
    let version = cell.link(above, block, if is_delta { stamp.of_delta() } else { stamp });
    if !is_first
        && (item.present || at.is_first() || cell.word().has(ON_SNAPSHOT_LIST))
        && !cell.word().has(Tid::QUEUED)
    {
        let is_only = |below: &Version<'_>| {
            above.is_none() && below.older().is_none() && below.stamp().is_readable()
        };
        let only = || below.filter(is_only).map(|only| only.stamp().ts());
        let flag = context.queue_or_park(at, cell.word(), only);
        cell.raise(flag); // TO7
    }
    debug_assert!(
        is_first
            || !item.present && !at.is_first()
            || cell.word().has(Tid::QUEUED | ON_SNAPSHOT_LIST),
        "TO7: a unit with a second version has an entry"
    );
    cell.release();
    let item = &mut writes.items_mut()[index];
    (item.note, item.is_delta) = (version.id().word(), is_delta);
    Ok(())
}

/// Returns whether an item's update can be deferred, as a delta, until it is read.
fn can_wait(writes: &WriteSet, index: usize, below: Option<Version<'_>>) -> bool {
    let item = &writes.items()[index];
    let room = item.at.payload_words() + version_chain::SPARE_WORDS;
    let deltas = || {
        let below = below.into_iter().flat_map(Version::and_older);
        below.take_while(|version| version.stamp().is_delta()).take(DELTAS_MAX).count()
    };
    item.expects == Some(true)
        && item.present
        && !writes.replaces_unit(index)
        && writes.delta_words(index).is_some_and(|words| words <= room)
        && deltas() < DELTAS_MAX
}

/// Latches a cell that no other attempt holds.
fn latch<'a>(
    context: &mut Context<'_, Mvto>,
    attempt: &Attempt,
    at: &'a CellAt,
) -> Result<Latched<'a>, Abort> {
    let mut wait = Wait::new(&context.engine.parking, at.address(), Wish::Look, patience(false));
    loop {
        match at.try_latch() {
            Ok(cell) if !cell.word().has(Tid::LOCK) || attempt.holds_at_commit(*at) => {
                return Ok(cell);
            }
            Ok(cell) => {
                cell.release();
            }
            Err(word) if word.has(Tid::DEAD) => {
                return Err(context.conflict(Abort::RecordRemoved, *at));
            }
            Err(_) => {}
        }
        if wait.wait() == Waited::InVain {
            return Err(context.conflict(Abort::Locked, *at));
        }
    }
}

/// Returns the oldest version after a timestamp.
fn newest_after<'a>(cell: &Latched<'a>, ts: u64) -> Option<Version<'a>> {
    cell.newest()?.and_older().take_while(|version| version.stamp().ts() > ts).last()
}

/// Returns the conflict if an item's version must not be linked above another one at a timestamp: a
/// transaction with a later timestamp has read the version below (TO2), or depends on the existence
/// of its row (TO8).
fn forbids(item: &WriteItem, below: Option<Version<'_>>, ts: u64) -> Option<Abort> {
    if mutant(Mutant::LinkedUnlooked) {
        return None;
    }
    // A delete removes the row that later deltas need.
    let takes_away = !item.present && !mutant(Mutant::DeletedUnderDelta);
    let mut rests_on_chain = false;
    for version in below.into_iter().flat_map(Version::and_older) {
        let stamp = version.stamp();
        if stamp.is_aborted() {
            continue;
        }
        if version.rts().load(Ordering::Relaxed) > 2 * ts {
            return Some(Abort::ReadChanged);
        }
        if stamp.is_committed() {
            rests_on_chain = true;
            break;
        }
    }
    let existence =
        (takes_away || !rests_on_chain).then(|| item.at.existence_rts().load(Ordering::Relaxed));
    (existence > Some(2 * ts) && !mutant(Mutant::AbsenceForgotten)).then_some(Abort::ReadChanged)
}

/// Raises the read timestamp on which one item depends (TO4, TO8): phase 3.
fn raise_below(
    context: &mut Context<'_, Mvto>,
    writes: &WriteSet,
    index: usize,
    ts: u64,
) -> Result<(), Abort> {
    let item = &writes.items()[index];
    match follows(writes, index) {
        Follows::Anything => {}
        Follows::AnyRow => raise(item.at.existence_rts(), 2 * ts),
        Follows::ThisRow => {
            let below = settled_below(context, item)?;
            pass(Point::Following);
            raise(below.map_or(item.at.existence_rts(), Version::rts), 2 * ts);
        }
    }
    Ok(())
}

/// Returns the version that a linked item's version follows, once that is no longer pending. Waits
/// only for versions with smaller timestamps.
fn settled_below<'a>(
    context: &mut Context<'_, Mvto>,
    item: &'a WriteItem,
) -> Result<Option<Version<'a>>, Abort> {
    loop {
        match seen_at(own(item).and_then(Version::older), u64::MAX) {
            Ok(below) => return Ok(below),
            Err(pending) => {
                debug_assert!(waits_for(item, pending), "TO9: commits wait for earlier ones");
                if !await_settled(context, &item.at, pending, false) {
                    return Err(context.conflict(Abort::Locked, item.at));
                }
            }
        }
    }
}

/// Returns whether a commit may wait for a pending version of an item's unit: one with a smaller
/// timestamp than its own (TO9).
fn waits_for(item: &WriteItem, pending: Version<'_>) -> bool {
    own(item).is_some_and(|own| pending.stamp().ts() < own.stamp().ts())
}

/// Validates one item: phase 4. No transaction with a later timestamp has read the version that the
/// item's version follows, and that version is the expected one.
fn look_below(
    context: &mut Context<'_, Mvto>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    index: usize,
    ts: u64,
) -> Result<(), Abort> {
    let item = writes.items()[index];
    let at = item.at;
    if let Some(abort) = forbids(&item, own(&item).and_then(Version::older), ts)
        && !mutant(Mutant::RelinkedUnlooked)
    {
        return Err(context.conflict(abort, at));
    }
    match follows(writes, index) {
        Follows::Anything => return Ok(()),
        Follows::AnyRow if mutant(Mutant::RestedOnNothing) => return Ok(()),
        Follows::AnyRow => return look_for_row(context, &item),
        Follows::ThisRow => {}
    }
    let below = settled_below(context, &item)?;
    // A version linked after phase 3 and before the fence has not been raised by this commit.
    let rts = below.map_or(at.existence_rts(), Version::rts);
    if rts.load(Ordering::Relaxed) < 2 * ts && !mutant(Mutant::RaisedUnlooked) {
        return Err(context.conflict(Abort::ReadChanged, at));
    }
    let is_row = below.is_some_and(|below| !below.stamp().is_absent());
    if !item.accepts(is_row) {
        return Err(context.conflict(Abort::ExistenceChanged, at));
    }
    if let Some(below) = below
        && (item.present || item.looks_at_unit())
    {
        flatten(context, &at, below, &mut attempt.image, false)?;
    }
    writes.items_mut()[index].untouched = !item.present && !is_row;
    Ok(())
}

/// Validates that a row exists below an item's version, whatever the outcome of pending versions.
fn look_for_row(context: &mut Context<'_, Mvto>, item: &WriteItem) -> Result<(), Abort> {
    'again: loop {
        for version in own(item).into_iter().flat_map(Version::and_older).skip(1) {
            let stamp = version.stamp();
            if stamp.is_aborted() || stamp.is_pending() && !stamp.is_absent() {
                continue;
            }
            if stamp.is_committed() && !stamp.is_absent() {
                return Ok(());
            }
            debug_assert!(
                !stamp.is_pending() || waits_for(item, version),
                "TO9: commits wait for earlier ones"
            );
            if stamp.is_pending() && await_settled(context, &item.at, version, false) {
                continue 'again;
            }
            break;
        }
        return Err(context.conflict(Abort::ExistenceChanged, item.at));
    }
}

/// Returns the row that a linked item's version follows, once that version is settled. `None` if it
/// is still a delta: the item does not depend on its words then.
fn row_below(item: &WriteItem) -> Option<Version<'_>> {
    let below = own(item)?.older()?.and_older().find(|version| version.stamp().is_committed())?;
    let stamp = below.stamp();
    (stamp.is_readable() && !stamp.is_absent()).then_some(below)
}

/// Fills in the words of one item's version: phase 6.
fn fill_in(writes: &WriteSet, index: usize) {
    let item = &writes.items()[index];
    if let (true, Some(version)) = (item.present, own(item)) {
        if item.is_delta {
            return writes.write_delta(index, version.delta_room());
        }
        if let Some(row) = row_below(item)
            && !writes.replaces_unit(index)
        {
            version.copy_from(row);
        }
        writes.install(index, version.payload());
    }
}

/// Unlinks the versions of a failed commit from their chains.
#[cold]
fn unlink_all(context: &mut Context<'_, Mvto>, writes: &WriteSet) {
    for item in writes.items() {
        unlink(context, item);
    }
}

/// Unlinks an item's version from its chain, if the version was linked.
#[cold]
fn unlink(context: &mut Context<'_, Mvto>, item: &WriteItem) {
    let Some(version) = own(item) else { return };
    version.abort();
    let mut cell = latch_own(&item.at);
    let above = newest_after(&cell, version.stamp().ts());
    cell.replace(above, version.older());
    let newest = cell.newest().map(Version::stamp);
    if newest.is_none_or(Stamp::is_absent)
        && item.at.is_first()
        && !cell.word().has(Tid::QUEUED | ON_SNAPSHOT_LIST)
    {
        cell.raise(Tid::QUEUED); // TO7
        context.local.reap_queue.push(item.at);
    }
    cell.release();
    collect::retire(context, &item.at, version);
}
