//! Multi-version concurrency control: commits add versions, and whoever began before reads the old ones.
//!
//! # Guarantee
//! Serializable, strictly so, and opaque: an attempt sees the database as it was at one moment after it began, even if it is
//! going to fail. A transaction that only reads is not validated, and writes nothing that others look at; what others write
//! while it runs does not fail it, unless a commit in its way takes too long, or an ordered index is restructured under its scan. In
//! a snapshot, and under `run_read_only`, it waits and goes on.
//!
//! # Source
//! The protocol of MSTO [HU20], section 2.4, after Cicada [LI17]: chains of versions, one counter, and timestamps that are drawn
//! when a commit begins. Differences: a commit draws its timestamp when it has *locked* what it writes, instead of linking
//! pending versions at a timestamp it has drawn. So a version always becomes the newest of its chain, nobody meets a pending
//! one, and nothing remembers until when it was read: a reader that finds a unit unlocked after it has taken the time knows all
//! that will ever be written to it up to then. Readers write nothing, chains hold only what is committed, and no fence is
//! needed but the counter. What we give up: writing below a later version, and updates that are linked without being evaluated.
//!
//! # Phases
//! Executing, an attempt reads at its *time*. If it meets a newer version and may still write, it moves its time on, when
//! all it has read is what it was; if that is not so, it goes on as a reader of old versions, or fails if it has written.
//!
//! 1 lock the write set, checking each item's expectation - 2 draw the timestamp - 3 validate reads and nodes - 4 evaluate
//! updaters - 5 install new versions and release. A transaction that wrote nothing does nothing.
//!
//! # Cell
//! ```text
//! | newest version: 52 | flags: 12: LOCK INSTALL ABSENT DEAD QUEUED PARKED |   and a version: | ts: 63 | absent: 1 | older |
//! ```
//! The first version of a unit lies beside its cell, in the record; the others in blocks of their own.
//!
//! # Invariants
//! The cell is locked as `protocol/locks.rs` says, with invariants K1 to K5, except that every unit can be QUEUED and PARKED; and
//! chains are as `record/version.rs` says, with V1 to V3. Besides:
//! * **M1** INSTALL is set in all cells that a commit writes before its timestamp is drawn, and until they say what it wrote.
//! * **M2** Versions of a chain descend, and each was the newest when it was installed.
//! * **M3** The attempt's time is taken from the clock after its session was pinned, and never falls.
//! * **M4** All that an attempt has read was the newest at its time.
//! * **M5** A version stays in its chain while somebody can come to see it: a running attempt, by its time; an open snapshot;
//!   or whoever begins (`collect.rs`).
//! * **M6** A unit with more than one version, and the first of an absent record, is released QUEUED or PARKED; but for the other units of
//!   an absent record, which are collected together with the first. One that is PARKED and not QUEUED has two versions at most.
//! * **M7** Nothing that can fail happens after phase 4.
//!
//! # Why it is serializable
//! The order is that of timestamps; one that only reads comes after the commit whose timestamp is its time, and before the next.
//! Let U write x at u. *Whoever looks at x after having taken a time of u or later sees INSTALL, or what came of U*: U has set
//! INSTALL before it drew u, and the counter has brought that along. So, if it sees no INSTALL, nothing that is not in the
//! chain yet will be written up to its time: M4 holds for a read, and again when a time is moved on, since that looks at
//! everything again. ww: U's successor locks x when U has released it, so it draws later. wr: T sees U's version at its time,
//! which is u or later, or if T writes, draws later yet. rw: T writes too, at t, and has read what U replaced. If u < t, then
//! phase 3, which comes after the draw, sees INSTALL or a new version, and T fails; so t < u. If T only reads, at r, then M4
//! says that r < u. An absent key is a cell, or a node whose version an insert raises before it can lock the record. Every
//! timestamp is drawn, and every time taken, within the call, so the order agrees with real time.
//!
//! A time for which a record is missing in the index: it was not linked, so no row was inserted up to then; or it was buried, and
//! then the row had been deleted before anyone began who is still running, and no open snapshot sees it.
//!
//! # Aborts
//! `Locked`: a lock was not released in time, in phase 1, at a read, or at a read for update. `ReadChanged`: phase 3, or what had
//! been read was replaced before the attempt met something newer, and it had written, or wanted to afterwards. `Phantom`: the
//! same of a node. `Existence`, `Dead`: phase 1. `MemoryLimit`: staging. `Guard`, `Overflow`: phase 4, definite.
//!
//! # Costs
//! One counter, which every begin reads and every writing commit changes. A version costs two words, an old one its memory for
//! a few milliseconds. Reading a row that has been updated touches a cache line more. An update of one word copies its unit.
//!
//! [HU20]: https://doi.org/10.14778/3377369.3377373
//! [LI17]: https://doi.org/10.1145/3035918.3064015

#![forbid(unsafe_code)]

mod clock;
mod collect;

pub use clock::Clock;

use super::locks::{self, Held, lock_all, look_again, release, release_cell};
use super::nodes::NodeSet;
use super::room::Room;
use super::{Burial, Committed, Context, Due, LookBack, Missing, Protocol, Seen, TableCore, Versioned};
use crate::access::{Failure, Intent, WriteItem, WriteSet};
use crate::epoch::Epoch;
use crate::error::Abort;
use crate::factor::Factor;
use crate::index::{NodeAt, NodeChange};
use crate::record::version::{self, Version};
use crate::record::{CellAt, Op, Tid, Words};
use crate::sync::{AtomicU64, Mutant, Ordering, Point, mutant, pass};
use crate::timestamps::Timestamps;
use std::panic::resume_unwind;

/// An attempt that has written nothing so far moves its time on while it has read at most so much: one that reads much and writes
/// nothing needs no newer time, and would look at all it has read again and again.
const MOVED_READS_MAX: usize = 32;

/// After an attempt wanted to write what it had read old versions for, so many take newer times from the beginning.
const WARY_ATTEMPTS: u8 = 4;

/// Multi-version concurrency control, after MSTO: commits add versions, and whoever only reads sees one moment. Its databases have
/// [snapshots](crate::Snapshot).
#[derive(Debug)]
pub struct Mvcc;

/// What an attempt has observed, and what it holds.
#[derive(Debug, Default)]
pub struct Attempt {
    /// It sees what was committed up to here.
    time: u64,
    /// Whether that is later than it began.
    has_moved: bool,
    reads: Vec<(CellAt, Tid)>,
    nodes: NodeSet,
    held: Held,
    /// What its writes expect of their rows' existence.
    expected: Vec<(CellAt, bool)>,
    has_staged: bool,
    /// It has read what had been replaced, and can only end as one that reads. What it reads is not noted any more.
    only_reads: bool,
    /// How many attempts more do not become such.
    wary: u8,
    /// For the versions that do not go into their records.
    room: Room,
    /// Units to be written whose versions will have room in their records.
    in_records: Vec<CellAt>,
}

impl Attempt {
    /// Whether it is bound to write, as far as it is known.
    fn will_write(&self) -> bool {
        self.has_staged || self.wary > 0 || !self.held.is_empty()
    }
}

impl Attempt {
    /// Reads the version that it sees of a unit, whose cell said `word`.
    #[inline(always)]
    fn see(
        &mut self,
        (at, word): (CellAt, Tid),
        version: Option<Version<'_>>,
        copy: &mut impl FnMut(Words<'_>),
    ) -> Seen {
        let present = version.filter(|version| !version.is_absent());
        if let Some(version) = present {
            copy(Words::Shared(version.payload()));
        }
        pass(Point::Copied);
        if !self.only_reads && (present.is_some() || !mutant(Mutant::TombstoneUnobserved)) {
            self.reads.push((at, word));
        }
        Seen { present: present.is_some(), version: version.map_or(0, Version::ts) }
    }
}

impl Protocol for Mvcc {
    const NAME: &'static str = "mvcc";
    const STRICT: bool = true;
    const OPAQUE: bool = true;
    const CELL_WORDS: usize = version::CHAIN_WORDS;
    const NODE_WORDS: usize = 0;
    const VERSION_WORDS: usize = version::VERSION_WORDS;
    const READS_ALONE: bool = true;
    const TIMESTAMPS: &'static [Timestamps] = &[Timestamps::Counter];
    type Clock = Clock;
    type Attempt = Attempt;

    #[inline(always)]
    fn begin(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt) {
        debug_assert!(attempt.held.is_empty(), "the attempt before has ended");
        attempt.reads.clear();
        attempt.nodes.clear();
        attempt.expected.clear();
        attempt.room.clear();
        attempt.in_records.clear();
        (attempt.has_staged, attempt.only_reads, attempt.has_moved) = (false, false, false);
        attempt.wary = attempt.wary.saturating_sub(1);
        attempt.time = match context.local.look_back {
            LookBack::To(ts) => ts,
            LookBack::No | LookBack::Now => context.clock.now(), // M3
        };
        if context.local.look_back != LookBack::No {
            (attempt.only_reads, attempt.wary) = (true, 0);
        }
    }

    #[inline(always)]
    fn read(
        context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        let mut word = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
        if word.has(Tid::INSTALL) {
            word = await_install(context, attempt, at, word)?;
        }
        let mut newest = at.newest(word);
        if newest.is_some_and(|newest| newest.ts() > attempt.time) {
            word = meet_newer(context, attempt, at, word)?;
            newest = seen_at(at.newest(word), attempt.time);
        }
        Ok(attempt.see((at, word), newest, &mut copy))
    }

    #[inline(always)]
    fn read_at_once(attempt: &mut Attempt, at: CellAt, mut copy: impl FnMut(Words<'_>)) -> Option<Seen> {
        let word = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
        let newest = at.newest(word);
        let is_simple = !word.has(Tid::INSTALL) && newest.is_none_or(|newest| newest.ts() <= attempt.time);
        is_simple.then(|| attempt.see((at, word), newest, &mut copy))
    }

    fn read_for_update(
        context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        if attempt.only_reads {
            return Err(too_late(context, attempt, at));
        }
        if !attempt.held.has(at) {
            attempt.held.hold(context, at)?;
        }
        Self::read(context, attempt, at, copy)
    }

    #[inline(always)]
    fn peek(attempt: &Attempt, at: CellAt) -> bool {
        // Acquire: the version's header (E3).
        let newest = at.newest(Tid(at.cell_word(0).load(Ordering::Acquire)));
        seen_at(newest, attempt.time).is_some_and(|version| !version.is_absent())
    }

    fn chain_length(_attempt: &Attempt, at: CellAt) -> Option<usize> {
        // Acquire: the version's header (E3).
        let newest = at.newest(Tid(at.cell_word(0).load(Ordering::Acquire)))?;
        (!newest.is_absent()).then(|| std::iter::successors(Some(newest), |version| version.older()).count())
    }

    #[inline(always)]
    fn absent(_context: &mut Context<'_, Mvcc>, attempt: &mut Attempt, missing: Missing<'_>) -> Result<(), Abort> {
        if !attempt.only_reads {
            attempt.nodes.observe(missing);
        }
        Ok(())
    }

    fn make_room(context: &mut Context<'_, Mvcc>, attempt: &Attempt, table: u16, units: usize) -> Result<(), Abort> {
        attempt.room.offer(context, table, units)
    }

    fn stage(
        context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort> {
        begin_staging(context, attempt, at)?;
        let is_new = writes.items().len();
        let index = writes.stage(at, intent, op);
        if index == is_new { prepare(context, attempt, at, writes.items()[index].expects, intent) } else { Ok(()) }
    }

    fn stage_new(
        context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        mut cells: impl Iterator<Item = CellAt> + Clone,
        operand: u32,
    ) -> Result<(), Abort> {
        cells.clone().try_for_each(|at| begin_staging(context, attempt, at))?;
        writes.stage_new(cells.clone(), operand);
        cells.try_for_each(|at| prepare(context, attempt, at, Some(false), Intent::Insert))
    }

    fn revalidate(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt, _writes: &WriteSet) -> Result<(), Abort> {
        // One that only reads is right at its time.
        if attempt.has_staged { look_at_all(context, attempt, |_| false) } else { Ok(()) }
    }

    #[inline]
    fn commit(
        context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
    ) -> Result<Committed, Abort> {
        let result = if writes.is_empty() {
            attempt.wary = 0;
            Ok(Committed { version: 0 })
        } else {
            commit(context, attempt, writes)
        };
        if !attempt.held.is_empty() {
            release_held(context, attempt);
        }
        pass(Point::Released);
        result
    }

    fn abort(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt, _writes: &mut WriteSet) {
        if mutant(Mutant::HeldForEver) {
            attempt.held.forget();
        }
        release_held(context, attempt);
    }

    fn unborn(at: CellAt) {
        at.cell_word(0).store(Tid::UNBORN.0, Ordering::Relaxed);
    }

    #[inline]
    fn linked(attempt: &mut Attempt, node: NodeAt, before: u64, after: u64, first: CellAt) {
        if attempt.nodes.linked(node, before, after) {
            attempt.reads.push((first, Tid::UNBORN));
        }
    }

    fn divided(attempt: &mut Attempt, change: &NodeChange) {
        attempt.nodes.divided(change);
    }

    fn left_absent(first: CellAt) -> bool {
        locks::left_absent(first)
    }

    fn time(clock: &Clock) -> u64 {
        clock.before_stamp()
    }

    fn reach(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt, time: u64, table: u16) -> Result<(), Abort> {
        if attempt.time >= time {
            Ok(())
        } else if context.local.look_back != LookBack::No {
            Err(Abort::NoIndex)
        } else if attempt.only_reads {
            Err(context.phantom(table))
        } else {
            move_on(context, attempt)
        }
    }

    fn keep_seen(clock: &Clock, attempt: &Attempt, epoch: Epoch) -> Option<u64> {
        clock.snapshots.keep(attempt.time, epoch);
        Some(attempt.time)
    }

    fn let_go(clock: &Clock, time: u64, epoch: Epoch) {
        clock.snapshots.close(time, epoch);
    }

    fn oldest_snapshot(clock: &Clock) -> Option<Epoch> {
        clock.snapshots.oldest()
    }

    fn begin_collecting(context: &mut Context<'_, Mvcc>) {
        context.clock.snapshots.copy(&mut context.local.snapshots);
    }

    #[inline(always)]
    fn prefetch(at: CellAt, first: usize, count: usize) {
        at.prefetch_in_newest(first, count);
    }

    fn approach(due: impl Iterator<Item = CellAt> + Clone) {
        collect::approach(due);
    }

    fn bury(
        context: &mut Context<'_, Mvcc>,
        due: &mut Due,
        _table: &TableCore,
        units: &[CellAt],
        _horizon: Epoch,
    ) -> Burial {
        collect::collect(context, due, units)
    }
}

impl Versioned for Mvcc {
    fn open_snapshot(clock: &Clock, epoch: Epoch) -> u64 {
        clock.snapshots.open(epoch, || clock.now())
    }

    fn close_snapshot(clock: &Clock, ts: u64, epoch: Epoch) {
        clock.snapshots.close(ts, epoch);
    }
}

/// The newest version that is not later than a time.
fn seen_at(newest: Option<Version<'_>>, time: u64) -> Option<Version<'_>> {
    std::iter::successors(newest, |version| version.older()).find(|version| version.ts() <= time)
}

/// Waits until a commit to a cell is over; gives what the cell says then.
#[cold]
fn await_install(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt, at: CellAt, word: Tid) -> Result<Tid, Abort> {
    if mutant(Mutant::InstallNotAwaited) {
        return Ok(word);
    }
    let look = move || {
        let word = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
        if word.has(Tid::INSTALL) { Err(word) } else { Ok(word) }
    };
    let again =
        |context: &mut Context<'_, Mvcc>| look_again(Context { local: context.local, ..*context }, at, word, look);
    let mut awaited = again(context);
    while awaited == Err(Abort::Locked) && context.local.look_back != LookBack::No {
        // It has no other chance to come, and nobody is waiting for it.
        awaited = again(context);
    }
    if awaited == Err(Abort::Dead) && !attempt.will_write() && !attempt.has_moved {
        // It was buried after we began, so its row had been deleted before that, or no open snapshot sees it; and whoever inserts
        // the key again draws a later timestamp, or else we would have found the new record.
        context.local.conflict = None;
        attempt.only_reads = true;
        return Ok(Tid(at.cell_word(0).load(Ordering::Acquire))); // E3
    }
    awaited
}

/// What to do about a unit that was written after the attempt's time, as its cell says: the attempt moves on in time, or goes on as one
/// that only reads. Gives a word from whose version all are reached that the attempt may see: whenever the time has moved, the cell is
/// looked at again, since what was written in between is not in the older chain.
#[cold]
fn meet_newer(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt, at: CellAt, mut word: Tid) -> Result<Tid, Abort> {
    let is_worth_it = attempt.will_write() || attempt.reads.len() + attempt.nodes.len() <= MOVED_READS_MAX;
    let first = word;
    while is_worth_it && !attempt.only_reads {
        match move_on(context, attempt) {
            Err(abort) if attempt.will_write() => return Err(abort),
            Err(_) => break,
            Ok(()) => {}
        }
        pass(Point::MovedOn);
        word = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
        if word.has(Tid::INSTALL) {
            word = await_install(context, attempt, at, word)?;
        }
        if at.newest(word).is_none_or(|newest| newest.ts() <= attempt.time) {
            return Ok(word);
        }
    }
    context.local.conflict = None;
    attempt.only_reads = true;
    Ok(if mutant(Mutant::MovedOnUnseen) { first } else { word })
}

/// Moves an attempt's time on to now, if all it has read permits it.
fn move_on(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt) -> Result<(), Abort> {
    // First the clock, then all that it has read (M4).
    let now = context.clock.now();
    look_at_all(context, attempt, |_| false)?;
    pass(Point::LookedAgain);
    for &(at, expected) in &attempt.expected {
        let word = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
        // At the new time: it may have changed since, and be what it was before that.
        let time = if mutant(Mutant::ExpectedAsNewest) { u64::MAX } else { now };
        let is_there = seen_at(at.newest(word), time).is_some_and(|version| !version.is_absent());
        if is_there != expected || word.has(Tid::INSTALL) {
            return Err(context.conflict(Abort::Existence, at));
        }
    }
    (attempt.time, attempt.has_moved) = (now, true);
    Ok(())
}

/// Refuses a write of an attempt that can only read any more.
#[inline(always)]
fn begin_staging(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt, at: CellAt) -> Result<(), Abort> {
    if attempt.only_reads && !mutant(Mutant::OldReadsWritten) {
        return Err(too_late(context, attempt, at));
    }
    attempt.has_staged = true;
    Ok(())
}

/// Takes note of the first write of a unit: of what it assumes, and where its version will be.
fn prepare(
    context: &mut Context<'_, Mvcc>,
    attempt: &mut Attempt,
    at: CellAt,
    expects: Option<bool>,
    intent: Intent,
) -> Result<(), Abort> {
    if let Some(expected) = expects {
        assume(context, attempt, at, expected)?;
    }
    let word = Tid(at.cell_word(0).load(Ordering::Relaxed));
    if word.version() == 0 {
        attempt.in_records.push(at);
        return Ok(());
    }
    if intent == Intent::Update {
        // The commit copies it.
        at.prefetch_all_of_newest();
    }
    attempt.room.add(context, at, intent)
}

/// Takes note of what a write assumes of a row's existence. That it is so at the attempt's time is something it is told.
fn assume(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt, at: CellAt, expected: bool) -> Result<(), Abort> {
    let mut word = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
    if word.has(Tid::INSTALL) {
        word = await_install(context, attempt, at, word)?;
    }
    let is_there = seen_at(at.newest(word), attempt.time).is_some_and(|version| !version.is_absent());
    if is_there != expected {
        return Err(context.conflict(Abort::Existence, at));
    }
    attempt.expected.push((at, expected));
    Ok(())
}

/// Refuses to let an attempt write that can only read any more.
#[cold]
fn too_late(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt, at: CellAt) -> Abort {
    attempt.wary = WARY_ATTEMPTS;
    context.conflict(Abort::ReadChanged, at)
}

/// Looks whether everything that was read is still the newest, and nobody is about to replace it.
fn look_at_all(
    context: &mut Context<'_, Mvcc>,
    attempt: &Attempt,
    is_own: impl Fn(CellAt) -> bool,
) -> Result<(), Abort> {
    if mutant(Mutant::NoReadValidation) {
        return Ok(());
    }
    for &(at, seen) in &attempt.reads {
        // Relaxed: what has to be visible was brought along by the counter (E15).
        let word = Tid(at.cell_word(0).load(Ordering::Relaxed));
        if word.0 != seen.0 {
            let others_lock = word.has(Tid::INSTALL) && !mutant(Mutant::OthersLocksIgnored) && !is_own(at);
            if !word.same_version(seen) || others_lock {
                return Err(context.conflict(Abort::ReadChanged, at));
            }
        }
    }
    attempt.nodes.validate(context)?;
    Ok(())
}

/// The phases of a commit. Whatever comes of it, nothing is locked afterwards but what is still in `held`; nor is that, if an
/// updater panics.
#[inline(always)]
fn commit(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt, writes: &mut WriteSet) -> Result<Committed, Abort> {
    context.yield_to_token()?;
    context.reserve_for(writes);
    context.reserve_to_park(writes);
    if context.engine.options.factors.has(Factor::SortedLocks) {
        writes.sort();
    }
    let early = mutant(Mutant::DrawnBeforeLocks).then(|| context.clock.draw());
    pass(Point::Unlocked);

    // 1 lock
    if !attempt.held.is_empty() {
        attempt.held.hand_over(writes, install_held);
    }
    lock_all(context, writes)?;
    pass(Point::Locked);

    // 2 timestamp, 3 validate
    let ts = early.unwrap_or_else(|| context.clock.draw());
    let valid =
        have_room(context, attempt).and_then(|()| look_at_all(context, attempt, |at| writes.find(at).is_some()));
    if let Err(abort) = valid {
        release(context, writes.items());
        return Err(abort);
    }
    pass(Point::Validated);

    // 4 evaluate
    if let Err(failure) = writes.evaluate(|item| Words::Shared(replaced_words(item))) {
        release(context, writes.items());
        match failure {
            Failure::Outcome(abort) => return Err(abort),
            Failure::Panic(panic) => {
                release_held(context, attempt);
                resume_unwind(panic);
            }
        }
    }

    // 5 install and release
    for index in 0..writes.items().len() {
        install(context, writes, index, ts);
    }
    attempt.wary = 0;
    Ok(Committed { version: ts })
}

/// Raises INSTALL in a held cell.
fn install_held(at: CellAt, word: Tid) -> Tid {
    let owned = Tid(word.0 | Tid::LOCK | Tid::INSTALL);
    if !mutant(Mutant::HeldNotInstalling) {
        // No exchange: while we have the lock nobody else changes the cell. Release for those who do not wait and go on to the
        // version that it still names (E3): this store ends the release sequence of that version's own.
        at.cell_word(0).store(owned.0, Ordering::Release);
    }
    owned
}

/// Whether the units that had not been written when they were staged are still such, so that no other room is needed for them.
fn have_room(context: &mut Context<'_, Mvcc>, attempt: &Attempt) -> Result<(), Abort> {
    let is_taken = |at: &&CellAt| Tid(at.cell_word(0).load(Ordering::Relaxed)).version() != 0;
    match attempt.in_records.iter().find(is_taken) {
        None => Ok(()),
        Some(&at) => Err(context.conflict(Abort::Existence, at)),
    }
}

/// The words that a locked item's are to replace; they mean nothing if there is no row.
fn replaced_words(item: &WriteItem) -> &[AtomicU64] {
    item.at.newest(Tid(item.note)).map_or(item.at.payload(), Version::payload)
}

/// Phase 5 for one item: makes its version the newest and releases its cell.
#[inline(always)]
fn install(context: &mut Context<'_, Mvcc>, writes: &mut WriteSet, index: usize, ts: u64) {
    let item = &mut writes.items_mut()[index];
    let (at, was, present) = (item.at, Tid(item.note), item.present);
    pass(Point::Installing);
    if !present && was.has(Tid::ABSENT) {
        item.untouched = true;
        release_cell(context, at, was.unlocked());
        return;
    }
    let replaced = at.newest(was);
    let room = match replaced {
        Some(_) => at.room_in(context.version_block(at.table())),
        None => at.room_in_record(),
    };
    if present {
        if let Some(replaced) = replaced
            && !writes.replaces_unit(index)
        {
            room.copy_from(replaced);
        }
        writes.install(index, room.payload());
    }
    let mut new = room.stamp(ts, present, replaced).0 | was.0 & (Tid::QUEUED | Tid::PARKED);
    if mutant(Mutant::ParkedLost) {
        new &= !Tid::PARKED;
    }
    if let Some(replaced) = replaced
        && (present || at.is_first() || was.has(Tid::PARKED))
        && !was.has(Tid::QUEUED)
    {
        let only = || replaced.older().is_none().then(|| replaced.ts());
        new |= context.queue_or_park(at, was, only); // M6
    }
    at.cell_word(0).store(new, Ordering::Release); // E3
}

/// Gives back what is still held, as it was.
#[cold]
fn release_held(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt) {
    for (at, word) in attempt.held.drain() {
        release_cell(context, at, word);
    }
}
