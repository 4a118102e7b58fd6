//! Multi-version concurrency control: commits write in place and keep undo records, from which
//! transactions that began before rebuild older versions.
//!
//! # Guarantee
//! Serializable, strictly so, and opaque: an attempt sees the database as it was at one moment
//! after it began, even if it is going to fail. A transaction that only reads is not validated at
//! its end, and writes nothing that other sessions read. When it meets a newer version, it may
//! validate what it has read, to move its time on; if that fails, it reads at its old time.
//! Concurrent writes do not make it fail, unless a commit in its way takes too long, or an ordered
//! index is restructured under its scan. In a snapshot, and under `read_view`, a read waits
//! instead. With `Builder::read_only_past`, read-only transactions are serializable, but not
//! strictly: they have an earlier time (`epoch/past.rs`), up to which all commits have ended.
//!
//! # Source
//! Timestamps are those of MSTO [HU20], section 2.2, after Cicada [LI17]: one counter, and one draw
//! for each commit. Versions are stored as in HyPer [NE15], section 2: the newest in the record,
//! and the words that commits have replaced in undo records, newest to oldest. The differences: a
//! commit draws its timestamp when it has *locked* its write set, so that it always writes the
//! newest version, and no reader meets a pending version. There are no read timestamps: if a reader
//! has taken the time and then finds a unit unlocked, it sees all that will ever be written to the
//! unit up to that time. Nothing is written in place before the commit, so an attempt that fails
//! puts nothing back. Read sets are validated by versions, as under `occ`, not by predicates. Undo
//! records that no transaction can see any more are freed without a look at their chains. If
//! snapshots are open, undo records between the versions that the snapshots see are taken out,
//! after Steam [BO19]. `mvto` keeps chains of whole versions, as Cicada does, and writes below
//! later ones, too.
//!
//! # Phases
//! Executing, an attempt reads at its *time*. If it meets a newer version and may still write, it
//! validates its read set and moves its time on; if that fails, it continues as a reader of old
//! versions, or fails if it has written.
//!
//! 1 lock the write set, checking each item's expectation - 2 draw the timestamp - 3 validate reads
//! and nodes - 4 evaluate updaters, and run steps, in the order of the program - 5 write undo
//! records, install, and release. A transaction that wrote nothing has no commit phases.
//!
//! *Without a phase.* With phase 2 before phase 1, a reader takes a time above the timestamp, finds
//! the unit unlocked, and reads the old version, which is replaced at an earlier time. Without
//! phase 3, a commit writes what follows from a version that has been replaced before its
//! timestamp: a lost update. If phase 5 wrote its undo records after the new words, an attempt that
//! began before would not find its version, in the record or in the chain.
//!
//! # Cell
//! ```text
//! | ts: 52 | flags: 12: LOCK INSTALL ABSENT DEAD QUEUED REQUEUE WATCHED PRUNING |  | newest undo |
//! ```
//! The cell is followed by the words of the newest version.
//!
//! # Invariants
//! The cell is locked as in `protocols/shared/cell_lock.rs`, with invariants CL1 to CL6, except
//! that pruning a chain (`collect.rs`) holds LOCK alone briefly, also of an absent row. Undo
//! records are as in `record/undo_record.rs`, with UR1 to UR4. Besides:
//! * **MV1** INSTALL is set in all cells that a commit writes before its timestamp is drawn, and
//!   until they name the version that it wrote.
//! * **MV2** Timestamps of a unit rise from one version to the next: its commits have locked it one
//!   after another, and drawn under the lock.
//! * **MV3** The attempt's time is taken from the clock after its session was pinned, and never
//!   falls.
//! * **MV4** All that an attempt has read was the newest at its time.
//! * **MV5** An undo is not freed while it can be seen: by a running attempt, at its time; by an
//!   open snapshot; or by an attempt that begins (`collect.rs`).
//! * **MV6** An undo is in one session's garbage from the end of its commit on. The first unit of
//!   an absent record is released QUEUED.
//! * **MV7** Nothing that can fail happens after phase 4.
//! * **MV8** The record of a deleted row that only open snapshots see may be dead, and in its
//!   table's index of deleted records (`index/deleted_index.rs`) instead of the index. Its older
//!   versions are read as before; pruning its chains holds PRUNING, since LOCK is never released.
//! * **MV9** A value outside of records that a commit has replaced is in one session's garbage,
//!   with the timestamps between which versions name it (`value_queue.rs`).
//!
//! # Why it is serializable
//! The order is that of timestamps; a read-only transaction comes after the commit whose timestamp
//! is its time, and before the next. Let U write x at u. *An attempt that looks at x after it has
//! taken a time of u or later sees INSTALL, or the outcome of U*: U has set INSTALL before it drew
//! u, and the counter makes that visible. So, if it sees no INSTALL, all versions up to its time
//! have been written: MV4 holds for a read, and again when the time is moved on, since that
//! validates the whole read set. (And if it sees a later version than its time, then all versions
//! up to its time are in undo records, MV2: it need not wait.) ww: U's successor locks x when U has
//! released it, so it draws later. wr: T sees U's version at its time, which is u or later, or if T
//! writes, draws later yet. rw: T writes too, at t, and has read the version that U replaced. If u
//! < t, then phase 3, which comes after the draw, sees INSTALL or a new version, and T fails; so t
//! < u. If T only reads, at r, then MV4 says that r < u. The absence of a key is observed in a cell
//! (of an absent record), or in a node, whose version an insert raises before it can lock the
//! record. Every timestamp is drawn, and every time taken, within the call, so the order agrees
//! with real time.
//!
//! A record that is missing in the index at an attempt's time: either it was not linked, so no row
//! was inserted up to then; or it was reaped or put into the index of deleted records, and then the
//! row had been deleted before all running attempts began, except those that look back in an open
//! snapshot. These search the index of deleted records after the index, and a record is in the
//! index of deleted records before it leaves the index. If the deletion is later than their time,
//! it is the key's only record that was there then: the next one was linked after the deletion. If
//! it is not, they need it no more than other attempts do.
//!
//! # Stamps and cuts
//! The stamp of a commit is its timestamp, and the logger's cut is the counter. A commit that takes
//! its turn to log after the logger's visit draws a timestamp above the cut.
//! * W: By the proof above, T has a later timestamp than U if T has read or replaced what
//!   U wrote.
//! * S: If U had ended when T began, then T draws after U.
//! * R: The order of timestamps is the serial order, so Prefix(c) is what a reader at time c
//!   sees. An epoch as the stamp would not do: two commits may load their epochs in the other order
//!   than they have drawn their timestamps, and a reader between the two sees the second one alone.
//!
//! # Example
//! T reads a version that U replaces meanwhile (`tests/timelines`). Rows are shown as *value of
//! timestamp*.
//! ```text
//! T                                         U                             x        y
//! begins at time 1, reads x: 0                                            0 of 1   0 of 1
//!                                           locks x and y (MV1)
//!                                           draws 2, validates
//!                                           writes two undo records (UR4)
//!                                           installs, commits (MV2)       1 of 2   1 of 2
//! meets y of 2, tries to move its time on
//! finds x replaced, so its time stays 1
//! reads y: 0, by the undo record
//! if it ends now: commits
//! if it writes now: aborts: ReadChanged
//! ```
//! All that T has read was the newest at 1 (MV4), so as a reader it comes before U. If it wrote, it
//! would draw a timestamp after U's. Had T not read x, its time would have moved on to 2 (MV3).
//!
//! # Aborts
//! `Locked`: a lock was not released in time, in phase 1, at a read, or at a read for update.
//! `ReadChanged`: phase 3, or a version read was replaced before the attempt met a newer one, and
//! it had written, or wanted to afterwards. `Phantom`: a node read was changed likewise.
//! `ExistenceChanged`, `RecordRemoved`: phase 1. `VersionsExhausted`: phase 2, if the timestamp is
//! too large for a cell. `MemoryLimit`: staging. `Guard`, `Overflow`: phase 4, definite.
//!
//! # Costs
//! A counter that every begin reads and every writing commit changes. A commit copies the words of
//! a unit from the first to the last that it changes; the copies take memory for one or two
//! milliseconds, or as long as a snapshot sees them. The newest version is read as under `occ`; a
//! reader of an older version copies the unit, and applies the undo records of all later versions.
//!
//! [HU20]: https://doi.org/10.14778/3377369.3377373
//! [LI17]: https://doi.org/10.1145/3035918.3064015
//! [NE15]: https://doi.org/10.1145/2723372.2749436
//! [BO19]: https://doi.org/10.14778/3364324.3364328

#![forbid(unsafe_code)]

mod clock;
mod collect;
mod parts;
#[cfg(all(test, not(any(loom, shuttle, sanitized))))]
mod tests;
mod undo_queue;
mod value_queue;
mod versions;

pub(crate) use clock::Clock;
pub(crate) use parts::Attempt;
pub use parts::Mvcc;

use crate::access::{Intent, WriteItem, WriteSet};
use crate::engine::{
    Absence, BlockSize, Committed, Context, Deferred, Due, GcOutcome, Missing, Protocol, ReadView,
    Seen, TableCore, Unwatched, Watch,
};
use crate::epoch::{Epoch, Epochs};
use crate::error::Abort;
use crate::index::{NodeAt, NodeChange};
use crate::log::LogTurn;
use crate::protocols::mvcc::parts::block_size;
use crate::protocols::mvcc::undo_queue::UndoEntry;
use crate::protocols::shared::cell_lock::{
    self, acquire, begin_install, evaluate, fail, is_owned, look_again, raise_install, release,
    release_cell, release_installed,
};
use crate::protocols::shared::late_rows::{Late, LateRows, NoLateRows};
use crate::protocols::shared::read_set::{first_changed, has_changed};
use crate::record::undo_record::{self, UNDO_WORDS, Undo};
use crate::record::{CellAt, Tid};
use crate::schema::{Op, Words};
use crate::stats::LockCounters;
use crate::sync::{Ordering, Point, pass};
use crate::timestamps::Timestamps;
use std::sync::Arc;

/// The largest number of reads with which an attempt that has written nothing moves its time
/// forward. An attempt that reads much and writes nothing needs no newer time, and would validate
/// its read set repeatedly.
const MOVED_READS_MAX: usize = 32;

/// The number of attempts that take newer times from the beginning, after an attempt that had read
/// an old version tried to write.
const REFRESH_ATTEMPTS: u8 = 4;

impl Attempt {
    /// Returns whether the attempt is expected to write.
    fn will_write(&self) -> bool {
        self.has_staged || self.refresh_attempts_left > 0 || !self.held.is_empty()
    }
}

impl Attempt {
    /// Returns whether the attempt notes its reads.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn notes_reads(&self) -> bool {
        !self.only_reads || self.keeps_reads
    }

    /// Adds a unit to the read set with the version in its TID word, `word`, which is the newest at
    /// the attempt's time.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn observe(&mut self, at: CellAt, word: Tid) -> Seen {
        debug_assert!(word.ts() <= self.time, "MV4: the newest version at the attempt's time");
        let present = !word.has(Tid::ABSENT);
        if self.notes_reads() {
            self.reads.push(at, word);
        }
        Seen { present, version: word.ts() }
    }
}

impl Protocol for Mvcc {
    const NAME: &'static str = "mvcc";
    const STRICT: bool = true;
    const OPAQUE: bool = true;
    const CELL_WORDS: usize = undo_record::CELL_WORDS;
    const NODE_WORDS: usize = 0;
    const SINGLE_READ_COMMITS: bool = true;
    const COMMITS_STALE: bool = true;
    const LATE_ROWS: bool = true;
    const TIMESTAMPS: &'static [Timestamps] = &[Timestamps::Counter];
    type Versions = Self;
    type InPlace = Deferred;

    fn clock(_policy: &(), _timestamps: Timestamps, _epochs: &Arc<Epochs>) -> Clock {
        Clock::default()
    }

    fn attempt(_clock: &Clock, _counts: &Arc<LockCounters>) -> Attempt {
        Attempt::default()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn begin(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt) {
        debug_assert!(attempt.held.is_empty(), "C2: the attempt before has ended");
        attempt.reads.clear();
        attempt.nodes.clear();
        attempt.expected.clear();
        attempt.room.clear();
        attempt.inserted.clear();
        (attempt.has_staged, attempt.only_reads, attempt.has_moved) = (false, false, false);
        attempt.refresh_attempts_left = attempt.refresh_attempts_left.saturating_sub(1);
        attempt.time = match context.local.read_view {
            ReadView::Snapshot(ts) | ReadView::Past(ts) => ts,
            ReadView::Current | ReadView::AtBegin => context.clock.now(), // MV3
        };
        if context.local.read_view != ReadView::Current {
            attempt.refresh_attempts_left = 0;
            only_read(context, attempt);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read(
        context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        match look(at, attempt.time, &mut copy) {
            Some(word) => Ok(attempt.observe(at, word)),
            None => read_again(context, attempt, at, &mut copy),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read_at_once(
        attempt: &mut Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Option<Seen> {
        look(at, attempt.time, &mut copy).map(|word| attempt.observe(at, word))
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
        Self::hold(context, attempt, at)?;
        Self::read(context, attempt, at, copy)
    }

    fn hold(
        context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        at: CellAt,
    ) -> Result<bool, Abort> {
        attempt.held.hold_once(context, at, || {})
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_present(attempt: &Attempt, at: CellAt) -> bool {
        let word = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
        at.was_there(word, attempt.time)
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
        let before = writes.find(at).map(|index| room_for(&writes.items()[index]).0);
        let index = writes.stage(at, intent, op);
        let item = &writes.items()[index];
        match before {
            None => prepare(context, attempt, item, intent),
            Some(size) => prepare_more(context, attempt, item, intent, size),
        }
    }

    fn stage_new(
        context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        cells: impl Iterator<Item = CellAt> + Clone,
        operand: u32,
    ) -> Result<(), Abort> {
        cells.clone().try_for_each(|at| begin_staging(context, attempt, at))?;
        let first = writes.items().len();
        writes.stage_new(cells, operand);
        writes.items()[first..]
            .iter()
            .try_for_each(|item| prepare(context, attempt, item, Intent::Insert))
    }

    fn revalidate(
        context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        _writes: &WriteSet,
    ) -> Result<(), Abort> {
        // If an attempt only reads, its reads are valid at its time.
        if attempt.has_staged { look_at_all(context, attempt, |_| false) } else { Ok(()) }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn commit(
        context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort> {
        let result = if writes.is_empty() {
            attempt.refresh_attempts_left = 0;
            context.note_staleness(|| is_stale(attempt));
            Ok(Committed::NOTHING)
        } else {
            commit_known(context, attempt, writes, turn)
        };
        cell_lock::end(context, &mut attempt.held, release_cell);
        result
    }

    #[cold]
    fn commit_late(
        context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort> {
        attempt.reads.reserve(writes.late_row_count()); // C4
        let mut late = LateRows::take(context);
        let result = match late.prepare(context, attempt, writes) {
            Ok(()) => commit(context, attempt, writes, turn, &late),
            Err(abort) => Err(abort),
        };
        late.give_back(context);
        cell_lock::end(context, &mut attempt.held, release_cell);
        result
    }

    fn cut(clock: &Clock, _epochs: &Epochs) -> u64 {
        clock.now()
    }

    fn last_stamp(clock: &Clock, _epochs: &Epochs) -> u64 {
        clock.now()
    }

    fn seen_stamp(_clock: &Clock, _epochs: &Epochs, attempt: &Attempt) -> u64 {
        attempt.time
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read_set_size(attempt: &Attempt) -> usize {
        attempt.reads.len() + attempt.nodes.len()
    }

    fn abort(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt, _writes: &mut WriteSet) {
        attempt.held.give_back(context, release_cell);
    }

    fn watch(
        _context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        watch: &mut Watch<'_>,
    ) -> Result<(), Unwatched> {
        if attempt.only_reads {
            // The attempt has met a unit that was written later than its time.
            attempt.refresh_attempts_left = REFRESH_ATTEMPTS;
            return Err(Unwatched::Changed);
        }
        attempt.reads.watch(watch)?;
        attempt.nodes.watch(watch)
    }

    fn begin_ts_bound(clock: &Clock) -> u64 {
        clock.before_stamp()
    }

    fn reach(
        context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        time: u64,
        table: u16,
    ) -> Result<(), Abort> {
        if attempt.time >= time {
            Ok(())
        } else if context.local.read_view != ReadView::Current {
            Err(Abort::NoIndex)
        } else if attempt.only_reads {
            Err(context.phantom(table))
        } else {
            move_on(context, attempt)
        }
    }
}

impl Absence for Mvcc {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn absent(
        _context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        missing: Missing<'_>,
    ) -> Result<(), Abort> {
        if attempt.notes_reads() {
            attempt.nodes.observe(missing);
        }
        Ok(())
    }

    fn init_absent_cell(_clock: &Clock, at: CellAt, _flags: u64) {
        at.empty();
    }

    #[inline]
    fn linked(attempt: &mut Attempt, node: NodeAt, before: u64, after: u64, first: CellAt) {
        if attempt.nodes.linked(node, before, after) {
            attempt.reads.push(first, Tid::INITIAL);
        }
    }

    fn divided(attempt: &mut Attempt, change: &NodeChange) {
        attempt.nodes.divided(change);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn may_be_reaped(_clock: &Clock, first: CellAt) -> bool {
        cell_lock::may_be_reaped(first)
    }

    fn keep(context: &mut Context<'_, Mvcc>, first: CellAt) -> Result<bool, Abort> {
        cell_lock::keep(context, first)
    }

    fn enqueue_if_absent(_clock: &Clock, first: CellAt) -> bool {
        cell_lock::enqueue_if_absent(first)
    }

    fn reap(
        context: &mut Context<'_, Mvcc>,
        due: &mut Due,
        _table: &TableCore,
        units: &[CellAt],
        _horizon: Epoch,
    ) -> GcOutcome {
        collect::reap(context, due, units)
    }
}

/// Reads a unit if its newest version is not later than a time, and returns its cell's word.
/// Returns `None` otherwise, or if the words copied may belong to no version.
#[cfg_attr(not(debug_assertions), inline(always))]
fn look(at: CellAt, time: u64, copy: &mut impl FnMut(Words<'_>)) -> Option<Tid> {
    let before = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
    if is_written(before) || before.ts() > time {
        return None;
    }
    copy_row(at, before, copy);
    // Relaxed: if a word came from an install in progress, its Acquire load made the lock visible
    // (E3).
    let after = Tid(at.cell_word(0).load(Ordering::Relaxed));
    // Another attempt may have locked or released the cell in between; the words are still those of
    // the version.
    let same = before == after || !after.has(Tid::INSTALL) && after.same_version(before);
    same.then_some(before)
}

/// Returns whether a commit is writing a unit, which its readers have to wait for.
#[cfg_attr(not(debug_assertions), inline(always))]
fn is_written(word: Tid) -> bool {
    word.has(Tid::INSTALL)
}

/// Copies the words of a unit with the TID word `word`, if its row exists.
#[cfg_attr(not(debug_assertions), inline(always))]
fn copy_row(at: CellAt, word: Tid, copy: &mut impl FnMut(Words<'_>)) {
    if !word.has(Tid::ABSENT) {
        copy(Words::Shared(at.payload()));
    }
    pass(Point::Copied);
}

/// Reads a unit that is being written, or has been written since the attempt's time.
#[cold]
#[inline(never)]
fn read_again(
    context: &mut Context<'_, Mvcc>,
    attempt: &mut Attempt,
    at: CellAt,
    copy: &mut impl FnMut(Words<'_>),
) -> Result<Seen, Abort> {
    loop {
        // The word of the second load of `look` is not enough: that load is Relaxed, so undo
        // records need not be visible after it.
        let mut word = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
        if word.has(Tid::INSTALL) && word.ts() <= attempt.time {
            word = await_install(context, attempt, at, word)?;
        }
        if word.has(Tid::DEAD) {
            // An attempt older than the deletion reads in a snapshot, or sees only what an open
            // snapshot sees.
            let is_older = word.ts() > attempt.time;
            debug_assert!(
                !is_older || attempt.only_reads,
                "MV8: the pin of all others keeps what they see"
            );
            return Ok(if is_older {
                read_older(attempt, at, word, copy)
            } else {
                attempt.observe(at, word)
            });
        }
        if word.ts() > attempt.time && !attempt.only_reads {
            word = meet_newer(context, attempt, at, word)?;
        }
        if word.ts() > attempt.time {
            // A commit that is writing the unit now has a later timestamp.
            return Ok(read_older(attempt, at, word, copy));
        }
        if let Some(word) = look(at, attempt.time, copy) {
            return Ok(attempt.observe(at, word));
        }
        // The unit has been written meanwhile.
    }
}

/// Reads the version of a unit at the attempt's time, after the unit was written later. `word` is
/// the cell's TID word, the present one or an earlier one.
fn read_older(
    attempt: &mut Attempt,
    at: CellAt,
    word: Tid,
    copy: &mut impl FnMut(Words<'_>),
) -> Seen {
    let Attempt { image, time, .. } = attempt;
    let undos = at.undos(word, *time);
    pass(Point::LookingBack);
    // First the words, then the undo records: a commit that writes one of these words meanwhile has
    // linked its undo record before, so the walk finds that record (UR4).
    image.clear();
    Words::Shared(at.payload()).extend(at.payload_words(), image);
    let seen = undos.inspect(|undo| undo.put_back(image)).last().filter(|undo| undo.ts() <= *time);
    let present = seen.is_some_and(|undo| !undo.is_absent());
    let version = seen.map_or(0, Undo::ts);
    if present {
        copy(Words::Own(image));
    }
    pass(Point::Copied);
    if attempt.notes_reads() {
        attempt.reads.push(at, Tid::of_ts(version));
    }
    Seen { present, version }
}

/// Waits until a commit to a cell has ended; returns the cell's word afterwards.
#[cold]
fn await_install(
    context: &mut Context<'_, Mvcc>,
    attempt: &mut Attempt,
    at: CellAt,
    word: Tid,
) -> Result<Tid, Abort> {
    let look = move || {
        let word = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
        if word.has(Tid::INSTALL) { Err(word) } else { Ok(word) }
    };
    let again = |context: &mut Context<'_, Mvcc>| look_again(context.again(), at, word, look);
    let mut awaited = again(context);
    while awaited == Err(Abort::Locked) && context.local.read_view != ReadView::Current {
        // The wait has no limit: the attempt cannot begin anew, and no other attempt waits for it.
        awaited = again(context);
    }
    if awaited == Err(Abort::RecordRemoved) && !attempt.will_write() && !attempt.has_moved {
        // The record was reaped after this attempt began. So its row was deleted before the attempt
        // began, or no open snapshot sees the row; and an insert of the key since then draws a
        // later timestamp, since otherwise the new record would have been found.
        context.local.conflict = None;
        only_read(context, attempt);
        return Ok(Tid(at.cell_word(0).load(Ordering::Acquire))); // E3
    }
    awaited
}

/// Moves the attempt's time forward when it meets a unit that was written later. If that is
/// impossible, the attempt may only read from now on. Returns the cell's word at the new time.
#[cold]
fn meet_newer(
    context: &mut Context<'_, Mvcc>,
    attempt: &mut Attempt,
    at: CellAt,
    mut word: Tid,
) -> Result<Tid, Abort> {
    let is_worth_it =
        attempt.will_write() || attempt.reads.len() + attempt.nodes.len() <= MOVED_READS_MAX;
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
        if word.ts() <= attempt.time {
            return Ok(word);
        }
    }
    context.local.conflict = None;
    only_read(context, attempt);
    Ok(word)
}

/// Restricts the attempt to reading from now on.
fn only_read(context: &Context<'_, Mvcc>, attempt: &mut Attempt) {
    (attempt.only_reads, attempt.keeps_reads) = (true, context.engine.options.counts_stale());
}

/// Moves the attempt's time forward to the present, if its read set is still valid at that time.
fn move_on(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt) -> Result<(), Abort> {
    // The clock is read first, then the read set is validated (MV4).
    let now = context.clock.now();
    look_at_all(context, attempt, |_| false)?;
    pass(Point::LookedAgain);
    for &(at, expected) in &attempt.expected {
        let word = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
        // Reads at the new time: the unit may have changed since, and may have been as expected
        // before that change.
        let is_there = at.was_there(word, now);
        if is_there != expected || word.has(Tid::INSTALL) {
            return Err(context.conflict(Abort::ExistenceChanged, at));
        }
    }
    debug_assert!(attempt.time <= now, "MV3: an attempt's time never falls");
    (attempt.time, attempt.has_moved) = (now, true);
    Ok(())
}

/// Notes that an attempt writes, or refuses if it only reads.
#[cfg_attr(not(debug_assertions), inline(always))]
fn begin_staging(
    context: &mut Context<'_, Mvcc>,
    attempt: &mut Attempt,
    at: CellAt,
) -> Result<(), Abort> {
    if attempt.only_reads {
        return Err(too_late(context, attempt, at));
    }
    attempt.has_staged = true;
    Ok(())
}

/// Prepares the first write of a unit: notes its expectation, and reserves memory for its undo
/// record.
fn prepare(
    context: &mut Context<'_, Mvcc>,
    attempt: &mut Attempt,
    item: &WriteItem,
    intent: Intent,
) -> Result<(), Abort> {
    let at = item.at;
    if let Some(expected) = item.expects {
        assume(context, attempt, at, expected)?;
    }
    let word = Tid(at.cell_word(0).load(Ordering::Relaxed));
    if word.ts() == 0 {
        attempt.inserted.push(at);
        return Ok(());
    }
    attempt.room.add(context, at, intent, room_for(item))
}

/// Prepares another write of a unit, for whose undo record a block of this size was reserved. A
/// unit that was never written needs no larger block: all its words are new.
fn prepare_more(
    context: &mut Context<'_, Mvcc>,
    attempt: &mut Attempt,
    item: &WriteItem,
    intent: Intent,
    before: BlockSize,
) -> Result<(), Abort> {
    let room = room_for(item);
    if room.0 == before { Ok(()) } else { attempt.room.add(context, item.at, intent, room) }
}

/// Returns the size of the block for an item's undo record, and the number of words used.
fn room_for(item: &WriteItem) -> (BlockSize, usize) {
    let words = item.changed().len();
    (block_size(words), UNDO_WORDS + words)
}

/// Notes a write's expectation of a row's existence, or refuses if it fails at the attempt's time.
/// The outcome is an observation, which `move_on` checks again.
fn assume(
    context: &mut Context<'_, Mvcc>,
    attempt: &mut Attempt,
    at: CellAt,
    expected: bool,
) -> Result<(), Abort> {
    let mut word = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
    if word.has(Tid::INSTALL) {
        word = await_install(context, attempt, at, word)?;
    }
    let is_there = at.was_there(word, attempt.time);
    if is_there != expected {
        return Err(context.conflict(Abort::ExistenceChanged, at));
    }
    attempt.expected.push((at, expected));
    Ok(())
}

/// Returns the conflict of an attempt that wants to write, but only reads.
#[cold]
fn too_late(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt, at: CellAt) -> Abort {
    attempt.refresh_attempts_left = REFRESH_ATTEMPTS;
    context.conflict(Abort::ReadChanged, at)
}

/// Validates that every version read is still the newest, and that no other commit is replacing it.
fn look_at_all(
    context: &mut Context<'_, Mvcc>,
    attempt: &Attempt,
    is_own: impl Fn(CellAt) -> bool,
) -> Result<(), Abort> {
    // Relaxed: all stores that must be visible are visible since the load of the counter (E15).
    match attempt.reads.first_with(|at, seen| has_changed(at, seen, || is_own(at))) {
        Some(at) => Err(context.conflict(Abort::ReadChanged, at)),
        None => attempt.nodes.validate(context),
    }
}

/// Returns whether OCC would abort the attempt, which has written nothing. (It would abort no
/// attempt that has written and commits here: such an attempt is validated as under OCC.)
#[cold]
fn is_stale(attempt: &Attempt) -> bool {
    first_changed(&attempt.reads, |_| false).is_some() || attempt.nodes.first_changed().is_some()
}

/// Commits an attempt that has no late rows. This is not generic, so that it is compiled with the
/// engine, and not with each crate that uses the engine.
#[inline(never)]
fn commit_known(
    context: &mut Context<'_, Mvcc>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    turn: &mut LogTurn<'_>,
) -> Result<Committed, Abort> {
    commit(context, attempt, writes, turn, &NoLateRows)
}

/// Runs the phases of a commit. On return, whether the commit has succeeded or failed, only the
/// cells still in `held` are locked. If an updater panics, no cell stays locked.
fn commit(
    context: &mut Context<'_, Mvcc>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    turn: &mut LogTurn<'_>,
    late: &impl Late,
) -> Result<Committed, Abort> {
    let mut units = writes.items().len();
    for (table, rows) in late.tables() {
        units += attempt.room.add_rows(context, table, rows, block_size)?;
    }
    context.versions.undo_entries.reserve(units); // C4

    // 1 lock
    acquire(context, &mut attempt.held, writes, install_held)?;
    let replaced = |item: &WriteItem| Tid(item.note).ts();
    late.lock(context, attempt, writes, |attempt| &attempt.held, replaced)?; // LR1

    // 2 timestamp, 3 validate
    debug_assert!(writes.items().iter().all(is_owned), "MV1: INSTALL is set before the draw");
    turn.take(); // LG1, LG2
    let ts = draw(context, attempt);
    has_number(ts)
        .and_then(|()| have_room(context, attempt))
        .and_then(|()| look_at_all(context, attempt, |at| writes.find(at).is_some()))
        .inspect_err(|_| release(context, writes.items()))?;
    context.note_staleness(|| false);

    // 4 evaluate
    if let Err(failure) = evaluate(context.local, writes, ts, replaced) {
        return Err(fail(context, &mut attempt.held, writes, failure, release_cell));
    }

    // 5 install and release: nothing fails any more (MV7)
    for index in 0..writes.items().len() {
        install(context, writes, index, ts);
    }
    attempt.refresh_attempts_left = 0;
    Ok(Committed { version: ts, stamp: ts })
}

/// Raises INSTALL in a held cell.
fn install_held(at: CellAt, word: Tid) -> Tid {
    // Release, for readers that continue to the undo records without waiting (E3): this store ends
    // the release sequence of the store that installed the version.
    raise_install(word, |owned| at.cell_word(0).store(owned, Ordering::Release))
}

/// Draws the timestamp of a commit that has locked its write set.
#[cfg_attr(not(debug_assertions), inline(always))]
fn draw(context: &Context<'_, Mvcc>, attempt: &Attempt) -> u64 {
    let ts = context.clock.draw();
    debug_assert!(attempt.time < ts, "MV3: a timestamp is above the time of its attempt");
    ts
}

/// Returns an error if the timestamp is too large for a cell, which takes seven years of twenty
/// million commits a second.
fn has_number(ts: u64) -> Result<(), Abort> {
    if ts <= Tid::TS_MAX { Ok(()) } else { Err(Abort::VersionsExhausted) }
}

/// Validates that the units that were staged as never written are still unwritten, since the
/// attempt has reserved no undo records for them.
fn have_room(context: &mut Context<'_, Mvcc>, attempt: &Attempt) -> Result<(), Abort> {
    let is_taken = |at: &&CellAt| Tid(at.cell_word(0).load(Ordering::Relaxed)).ts() != 0;
    match attempt.inserted.iter().find(is_taken) {
        None => Ok(()),
        Some(&at) => Err(context.conflict(Abort::ExistenceChanged, at)),
    }
}

/// Installs one item, phase 5: writes its undo record, stores its words, and releases its cell with
/// the new version.
#[cfg_attr(not(debug_assertions), inline(always))]
fn install(context: &mut Context<'_, Mvcc>, writes: &mut WriteSet, index: usize, ts: u64) {
    let item = &mut writes.items_mut()[index];
    let ((at, was), present) = (begin_install(item), item.present);
    debug_assert!(was.ts() < ts, "MV2: timestamps of a unit rise");
    if !present && was.has(Tid::ABSENT) {
        item.untouched = true;
        release_cell(context, at, was.unlocked());
        return;
    }
    if was.ts() != 0 {
        let (size, _) = room_for(item);
        let block = context.version_block(at.table(), size);
        at.store_undo(block, was, if present { item.changed() } else { 0..0 });
        let entries = &context.versions.undo_entries;
        debug_assert!(entries.len() < entries.capacity(), "C4: its entry's room was reserved");
        // MV6
        context.versions.undo_entries.push(UndoEntry { at, block, size, ts: was.ts(), until: ts });
    }
    if present {
        writes.install(index, at.payload());
    }
    let absent = if present { 0 } else { cell_lock::flags_of_deleted(was) };
    let new = Tid(Tid::of_ts(ts).0 | was.0 & Tid::QUEUED | absent);
    release_installed(context, at, was, new);
}
