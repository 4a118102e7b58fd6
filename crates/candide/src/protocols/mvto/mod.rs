//! Multi-version timestamp ordering: a commit first draws its timestamp, and then links its
//! versions into their chains by that timestamp.
//!
//! # Guarantee
//! Strictly serializable, in the order of timestamps. Not opaque: before an attempt fails, it may
//! have read values that were committed at different times, but never a torn value. In a snapshot,
//! and under `read_view`, a transaction sees the database as it was at one moment, and never
//! fails. The only words that it writes and other sessions read are the rows that it makes from
//! deltas. With `Builder::read_only_past`, read-only transactions are serializable, but not
//! strictly: they have an earlier time (`epoch/past.rs`), up to which all commits have ended.
//!
//! # Source
//! MSTO [HU20], section 2.2, after Cicada [LI17]: one counter, pending versions, and for each
//! version a *read timestamp* (rts), up to which transactions have read that version. Differences:
//! A change of a version chain latches the unit's cell briefly, so that the versions of a failed
//! commit leave the chain at once. A read-only transaction is validated at the time at which it
//! began, and is run in the past only if the database is built so. Index nodes have plain versions,
//! since a transaction links its records before it draws its timestamp. Timestamps come from a
//! counter or from the system's clock (`ticks.rs`); Cicada has one clock for each thread. The
//! existence of a row has a read timestamp of its own; a delta depends on nothing else. A commit
//! applies the updaters that may fail. A read-modify-write may link its version below later
//! versions that have not been read; Cicada requires that it link the newest version. The room for
//! a version in the record is used again when no reader can reach its former version. A delta that
//! no transaction needs any more is applied to the row below it in place. Two deltas are not
//! combined while a transaction may read at a time between them; afterwards they become one row
//! (`collect.rs`). A read for update keeps other writers out.
//!
//! # Phases
//! While it executes, an attempt reads at its *time*: the clock's time when the attempt began. If
//! the attempt meets a newer version and may still write, it validates its read set and moves its
//! time on. If the validation fails, an attempt that has written fails, too; any other continues as
//! a reader of old versions.
//!
//! 1 draw the timestamp - 2 link pending versions - 3 raise the rts of the read set, and of the
//! versions below the linked ones, to the timestamp - 4 wait until the timestamp's tick has ended
//! (`ticks.rs`), fence, and validate the read set and those versions - 5 evaluate updaters - 6 fill
//! the versions in, and commit them. If an attempt wrote nothing and no commit at its time or
//! before is in progress, the attempt only validates its read set. If such a commit is in progress,
//! the attempt does phases 3 and 4 instead of waiting, but fails if another session holds the
//! token. Keys that the attempt has not found in an index need no validation: their inserts have
//! later timestamps.
//!
//! An update that cannot fail becomes a *delta*: a version that holds an operation on the row
//! below. (A database with a log has no deltas, since the log takes results; see Stamps and cuts.)
//! A delta becomes a row when it is read (`flatten.rs`). A delta waits for no other commit, and
//! depends only on the existence of a row. Any other update of a row that has one version becomes a
//! delta in phase 6: its version then holds the words that it changes instead of a copy of the row
//! (`holds_changes`). A delta that holds changes has read the row. If the row is not read soon, the
//! collector applies the delta to the row in place. A user's updater declares by `TOTAL` that it
//! cannot fail. If such an updater fails nevertheless, its transaction has already committed, and
//! another transaction is applying the updater. The updater then has no effect on the row, and only
//! the panic hook reports its panic. A unit with a step is no delta: the step runs in phase 5, on
//! the row below its version, and its transaction depends on this row as if it had read it.
//!
//! *Without a phase.* With phase 2 before phase 1 there is no place in the chain for the versions.
//! Without the read timestamps of phase 3, an earlier writer that comes late links its version
//! below what this transaction has read. Without the fence of phase 4, the reader misses the
//! version and the writer the read timestamp, and both commit. With phase 5 after phase 6, readers
//! see a version whose guard does not hold.
//!
//! # Cell
//! ```text
//! | newest: 52 | flags: 12: LOCK INSTALL ABSENT DEAD QUEUED REQUEUE WATCHED INLINE_USED ON_SNAPSHOT_LIST VACATED |   | seen until |   and a version: | ts: 60 | absent, state | rts | older |
//! ```
//! The word `seen until` is the rts of the row's existence. The first version of a unit lies beside
//! the unit's cell, in the record. Each other version has a block of its own. LOCK is set while a
//! read for update holds the unit, INSTALL while the chain is being changed, ABSENT if the newest
//! version, pending or not, is the row's absence.
//!
//! # Invariants
//! Chains keep the invariants VC1 to VC5 of `record/version_chain.rs`. Besides:
//! * **TO1** Read timestamps count halves. The value `2 t` is that of a read by a transaction that
//!   writes at `t`. The value `2 t + 1` is that of a read by a transaction that only reads, just
//!   after `t`. Read timestamps never fall.
//! * **TO2** Let a version that follows `v` be committed at `t`. After that version had been linked
//!   and its commit had passed a fence, the rts of `v`, and of each version in between that is not
//!   aborted, was at most `2 t`.
//! * **TO3** A transaction that commits at `t`, having read version `v`, raised the rts of `v` to
//!   `2 t` (`2 t + 1` if it only reads) and passed a fence. After that, it found no version between
//!   `v` and `t` in the chain, except aborted ones. A transaction that only reads need not raise
//!   the rts if, before it examined the chain, it found that no commit at `t` or before was going
//!   on any more.
//! * **TO4** A write's expectation of its row, and the row to which an updater is applied, are
//!   reads in the sense of TO3.
//! * **TO5** An attempt takes its time from the clock after its session was pinned. The time never
//!   falls. The attempt's timestamp is later than its time.
//! * **TO6** A version stays in its chain while a transaction or a snapshot can still see it
//!   (`collect.rs`).
//! * **TO7** A unit with more than one version, and the first unit of an absent record, is QUEUED,
//!   ON_SNAPSHOT_LIST, or in the list `linked` of the attempt that linked the record. The other
//!   units of an absent record are exceptions: they are collected together with the first unit.
//! * **TO8** The commit of a delta at `t` has read the row below in the sense of TO3. Or it raised
//!   the cell's second word to `2 t`, passed a fence, and then found a row below the delta,
//!   whatever the outcome of pending versions in between. A commit that deletes a row at `t` finds,
//!   after its fence, that this word is at most `2 t`. Before a delta becomes a row, under the
//!   latch, the rts of all versions from which that row is made are raised to the delta's
//!   timestamp.
//! * **TO9** Nothing that can fail happens after phase 5. A commit waits only for versions with
//!   smaller timestamps, and only for a limited time.
//! * **TO10** A delta is merged into the row below it (VC5) only by the collector, from the entry
//!   that the delta's own commit queued, when the entry is due. The delta is the newest version,
//!   and no open snapshot sees the row without the delta.
//! * **TO11** If the absence of a row becomes its record's newest version while the record has an
//!   entry, REQUEUE is set in the first cell: by the commit that links the absence, or that unlinks
//!   a version above it. So does an attempt, under the latch, that is about to stage a put or an
//!   insert on a record with ABSENT and an entry. Before the collector reaps a record, it clears
//!   REQUEUE, passes a full fence, and queues or parks the entry anew. So no record is reaped under
//!   a staged write; the argument is that of CL6 in `protocols/shared/cell_lock.rs`.
//! * **TO12** The rows that name a value outside of the record are neighbours in the chain, but for
//!   deltas: one commit has stored the value's word, and only a copy of the row below repeats it. A
//!   commit that links between the two is refused by the raised rts. No delta stores such a word
//!   (`can_wait`, `holds_changes`). So when a row leaves its chain, those values end that neither
//!   the row which stays directly above names, nor the next row below (`collect.rs`).
//!
//! # Why it is serializable
//! The order is that of timestamps. A transaction that only reads at `t` comes after `t` and before
//! the next timestamp. ww: the timestamps of a chain descend. wr: a reader at `t` sees only
//! committed versions, at or before `t`. rw: let T at `t` have read `v`, and let U commit `w`, with
//! `v < w < t`, or `w = t` if T only reads. Let `w` be the lowest such version, so that `w` follows
//! `v`. If T's fence comes before U's, then U sees after its fence that T has raised the rts of
//! `v`, and U fails (TO2). If U's fence comes first, then T sees after its fence that `w` is
//! linked, and T fails (TO3). If T found instead that no commit at `t` or before was going on, then
//! U's commit had ended before T validated, so T saw `w`. The absence of a row counts as a version,
//! whose rts is the cell's second word. A reader of a delta has read, in the sense of TO3, all
//! versions from which the row is made. A writer that links below the delta afterwards, under the
//! latch, finds the rts of those versions raised (TO8). No commit in between deletes the row on
//! which the delta depends. Now let T have missed a key without a record. The key's insert links
//! the record before it draws its timestamp. T validates the node after T has drawn its timestamp,
//! or has taken its time. So either T sees that the node has changed, or the insert's timestamp is
//! later than T's. Every timestamp is drawn, and every time taken, during the call that runs the
//! transaction, so the order agrees with real time.
//!
//! A merge changes a row in place, and no transaction notices (TO10). The delta was committed
//! before its entry was queued. Between the two, the thread that queued the entry passed a fence,
//! and then read the epoch (E10). Each running transaction outside of snapshots was pinned in a
//! later epoch, so it has found the delta committed, and its time is not before the delta's
//! timestamp. So it has read the delta, as a row, or a later version; but then the delta is not a
//! delta or not the newest version any more. The delta has not read the row below, nor raised its
//! rts. Commits that depend on the delta without reading it have linked a version above it. An
//! attempt in a snapshot sees the delta or a later version, or versions below the row. It goes past
//! the row, whose new timestamp is later than the snapshot, too. The row takes over the greater rts
//! of the two, so nothing is linked below a read of either.
//!
//! When a record is reaped, its read timestamps are lost. But each of its readers has found, in
//! phase 4 or at the read, that the record was not dead. A later insert of the key draws a later
//! timestamp than any such reader has.
//!
//! Several steps above claim that either a change is seen or a timestamp is later. With a counter,
//! the claim holds by the counter's modification order. With the system's clock, the claim holds by
//! fences and by the end of a tick in phase 4 (TK1 to TK4 of `ticks.rs`).
//!
//! # Stamps and cuts
//! The stamp of a commit is its timestamp. The logger's cut is the clock's time; timestamps that
//! are drawn later are above it (with the system's clock by TK1).
//! * W: T reads only what is committed, at or before its own timestamp; and versions of a
//!   unit that T follows have smaller timestamps, though they may have been linked later.
//! * S: If U had ended when T began, then T's timestamp is later (TO5).
//! * R: The order of timestamps is the serial order, so Prefix(c) is what a reader at time c sees,
//!   once all commits up to c have ended. The logger has waited for them: each has its turn to log
//!   from before its draw to its end.
//!
//! A commit that is logged evaluates its operations instead of linking deltas, since the log takes
//! results. It has its turn while it waits for a cell, but only for the few rounds in which other
//! commits end. If an attempt that reads for update holds the cell, the commit fails, gives up its
//! turn, and waits then.
//!
//! # Example
//! T tries to write at a timestamp at which R has read the row already (`tests/timelines`).
//! Versions are shown as *value of timestamp*, followed by the rts.
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
//! `Locked`: a lock was not released in time, or a pending version did not commit or abort in time;
//! or a commit that needs the row below its version would have waited for several pending versions.
//! `ReadChanged`: phase 2 or 4; or a version that the attempt had read was replaced before the
//! attempt met a newer version, and the attempt had written or wanted to write later. `Phantom`:
//! the same, for a node that the attempt had read. `ExistenceChanged`, `RecordRemoved`: phases 2
//! and 4. `MemoryLimit`: staging. `Guard`, `Overflow`: phase 5, definite.
//!
//! # Costs
//! With a counter, every begin reads it, and every writing commit changes it. With the system's
//! clock, every begin reads it once and every writing commit twice, with a fence for each read. A
//! commit then also waits for the rest of a tick of 64 ns, while its versions are pending. A
//! writing commit raises the rts of its read set, which writes to the cache line of each row read.
//! A version costs three words and two spare words; a cell costs five words. A commit that fails
//! has linked versions without success. The first reader of a delta makes it a row, in a block,
//! where it stays until the collector or a later update brings it back to the record. At most
//! sixteen deltas may lie on one another. While a user's deferred updater is applied, no other
//! thread links a version of that unit, or makes a delta of the unit a row.
//!
//! [HU20]: https://doi.org/10.14778/3377369.3377373
//! [LI17]: https://doi.org/10.1145/3035918.3064015

#![forbid(unsafe_code)]

mod clock;
mod collect;
mod flatten;
mod parts;
mod settle;
#[cfg(all(test, not(any(loom, shuttle, sanitized))))]
pub(crate) mod tests;
mod ticks;
mod versions;

pub(crate) use clock::Clock;
pub(crate) use parts::Attempt;
pub use parts::Mvto;

use crate::access::{Failure, Intent, WriteItem, WriteSet};
use crate::engine::{
    Absence, BlockSize, Committed, Context, Deferred, Due, GcOutcome, Missing, Protocol, ReadView,
    Seen, TableCore, Unwatched, Values, Watch, class_of, own_thread,
};
use crate::epoch::{Epoch, Epochs};
use crate::error::Abort;
use crate::index::{NodeAt, NodeChange};
use crate::locks::{LOCK_ROUNDS_MAX, patience, wait_to_own};
use crate::log::LogTurn;
use crate::protocols::shared::cell_lock;
use crate::record::version_chain::{
    self, INLINE_USED, Latched, ON_SNAPSHOT_LIST, Stamp, VACATED, Version, VersionId,
};
use crate::record::{CellAt, Tid};
use crate::schema::{Op, Words};
use crate::stats::LockCounters;
use crate::sync::{AtomicU64, Ordering, Point, Spin, Wait, Waited, Wish, full_fence, pass};
use crate::timestamps::Timestamps;
use clock::Part;
pub(crate) use flatten::DELTAS_MAX;
use flatten::flatten;
use settle::{await_settled, raise, settling_place};
use std::panic::resume_unwind;
use std::sync::Arc;

/// The largest read set with which an attempt that has written nothing moves its time on. An
/// attempt that reads much and writes nothing needs no newer time. Moving its time on would
/// validate a large read set repeatedly.
const MOVED_READS_MAX: usize = 32;

/// The largest number of pending versions of a unit for which a commit waits that needs the row
/// below its own version. With more of them it fails before it links its version, and tries again
/// when its turn has come. Otherwise each commit to a unit that many threads write would sleep
/// until the commit before it has ended: more threads than cores would never get out of such a
/// queue.
const PENDING_MAX: usize = 1;

/// The number of attempts that prefer a newer time to old versions from their beginning. The first
/// of these attempts follows one that had read old versions and then wanted to write.
const REFRESH_ATTEMPTS: u8 = 4;

/// The note of an item for which no block has been reserved. When the item was staged, the record's
/// room for a version was unused, so the item's version has to go there. The note of any other item
/// is zero until its version is linked. Then the note names that version.
const NO_BLOCK: u64 = 1;

/// The bit of an item's note that is set if the link of the item's version has queued the unit.
/// Versions begin at multiples of eight bytes.
const HAS_QUEUED: u64 = 2;

/// The bit of an item's note that is set if sessions watched the unit when the item's version was
/// linked.
const IS_WATCHED: u64 = 4;

impl Attempt {
    /// Returns whether the attempt is expected to write.
    fn will_write(&self) -> bool {
        self.has_staged || self.refresh_attempts_left > 0 || !self.held.is_empty()
    }

    /// Returns whether the attempt notes its reads.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn notes_reads(&self) -> bool {
        !self.reads_settled || self.keeps_reads
    }

    /// Copies `seen`, the version of the unit `at` that the attempt sees, and adds it to the read
    /// set.
    #[cfg_attr(not(debug_assertions), inline(always))]
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
        if self.notes_reads() {
            self.reads.push(at, seen.map_or(VersionId::NONE, Version::id));
        }
        Seen { present: present.is_some(), version: stamp.map_or(0, Stamp::ts) }
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

    fn attempt(_clock: &Clock, _counts: &Arc<LockCounters>) -> Attempt {
        Attempt::default()
    }

    fn clock(_policy: &(), timestamps: Timestamps, _epochs: &Arc<Epochs>) -> Clock {
        Clock::new(timestamps)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn begin(context: &mut Context<'_, Mvto>, attempt: &mut Attempt) {
        attempt.reads.clear();
        attempt.nodes.clear();
        attempt.room.clear();
        (attempt.has_staged, attempt.only_reads, attempt.has_moved) = (false, false, false);
        attempt.refresh_attempts_left = attempt.refresh_attempts_left.saturating_sub(1);
        attempt.reads_settled = context.local.read_view != ReadView::Current;
        attempt.time = match context.local.read_view {
            ReadView::Snapshot(ts) | ReadView::Past(ts) => ts,
            ReadView::Current | ReadView::AtBegin => context.clock.now(), // TO5
        };
        if attempt.reads_settled {
            look_back(context, attempt);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
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

    #[cfg_attr(not(debug_assertions), inline(always))]
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
        if !attempt.held.has(at) {
            hold(context, attempt, at)?;
        }
        Ok(attempt.held.has(at))
    }

    /// Returns where sessions sleep until the unit's lock is free, or until a commit may be linked.
    fn lock_place(context: &mut Context<'_, Mvto>, _attempt: &Attempt, at: CellAt) -> Option<u64> {
        let word = at.chain_word();
        if word.has(Tid::DEAD) {
            return None;
        }
        if word.has(Tid::LOCK) && !own_thread::is_held_by_another(at, context.local.id) {
            return Some(at.address());
        }
        let newest = at.newest_linked(word).filter(|newest| is_crowded(Some(*newest)))?;
        let oldest = pending_above_row(Some(newest)).last()?;
        Some(settling_place(&at, oldest.id()))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
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
        turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort> {
        let result = if writes.is_empty() {
            commit_reads(context, attempt)
        } else {
            commit(context, attempt, writes, turn)
        };
        if result.is_ok() {
            attempt.refresh_attempts_left = 0;
        }
        cell_lock::end(context, &mut attempt.held, release_held);
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

    fn abort(context: &mut Context<'_, Mvto>, attempt: &mut Attempt, _writes: &mut WriteSet) {
        // No version is linked: only a commit links versions, and a commit that fails has unlinked
        // them.
        attempt.held.give_back(context, release_held);
    }

    fn watch(
        _context: &mut Context<'_, Mvto>,
        attempt: &mut Attempt,
        watch: &mut Watch<'_>,
    ) -> Result<(), Unwatched> {
        if attempt.only_reads {
            // The attempt has met a unit that was written later than its time.
            attempt.refresh_attempts_left = REFRESH_ATTEMPTS;
        }
        for (at, seen) in attempt.reads.iter() {
            watch_unit(watch, at, *seen)?;
        }
        attempt.nodes.watch(watch)
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

    #[cfg_attr(not(debug_assertions), inline(always))]
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

    fn init_absent_cell(_clock: &Clock, at: CellAt, _flags: u64) {
        at.empty_chain();
    }

    fn linked(attempt: &mut Attempt, node: NodeAt, before: u64, after: u64, first: CellAt) {
        if attempt.nodes.linked(node, before, after) {
            attempt.reads.push(first, VersionId::NONE);
        }
    }

    fn divided(attempt: &mut Attempt, change: &NodeChange) {
        attempt.nodes.divided(change);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn may_be_reaped(_clock: &Clock, first: CellAt) -> bool {
        cell_lock::may_be_reaped(first) // TO11
    }

    fn keep(context: &mut Context<'_, Mvto>, first: CellAt) -> Result<bool, Abort> {
        keep(context, first)
    }

    fn enqueue_if_absent(_clock: &Clock, first: CellAt) -> bool {
        let mut spin = Spin::default();
        loop {
            match first.try_latch() {
                Ok(mut cell) => {
                    // If an insert of the row is pending, the collection of the entry will find out
                    // whether the insert was committed.
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
        table: &TableCore,
        units: &[CellAt],
        _horizon: Epoch,
    ) -> GcOutcome {
        collect::collect(context, due, table, units)
    }

    fn each_row(_clock: &Clock, at: CellAt, each: &mut dyn FnMut(&[AtomicU64])) {
        let newest = at.newest_linked(at.chain_word());
        for version in newest.into_iter().flat_map(Version::and_older) {
            if version.stamp().is_readable() && !version.stamp().is_absent() {
                each(version.payload());
            }
        }
    }
}

/// Watches a unit, of which the version `seen` was observed.
fn watch_unit(watch: &mut Watch<'_>, at: &CellAt, seen: VersionId) -> Result<(), Unwatched> {
    watch.add_cell(*at);
    if at.linked(seen).is_none_or(|version| version.stamp().is_absent()) {
        watch.add_links(at.table()); // WT3
    }
    let mut spin = Spin::default();
    loop {
        match at.try_latch() {
            Ok(mut cell) => {
                let is_last = |version: &Version<'_>| !version.stamp().is_aborted();
                let last = cell.newest().and_then(|newest| newest.and_older().find(is_last));
                let is_unchanged = is_seen(last, seen);
                if is_unchanged {
                    cell.raise(Tid::WATCHED); // WT2
                }
                cell.release();
                return if is_unchanged { Ok(()) } else { Err(Unwatched::Changed) };
            }
            Err(word) if word.has(Tid::DEAD) => return Err(Unwatched::Changed),
            Err(_) => spin.wait(),
        }
    }
}

/// Sets REQUEUE in the first cell of an absent record, if the record has an entry (TO11). Returns
/// `false` if the record is dead.
fn keep(context: &mut Context<'_, Mvto>, first: CellAt) -> Result<bool, Abort> {
    let mut spin = Spin::default();
    loop {
        match first.try_latch() {
            Ok(mut cell) => {
                if cell.word().has(Tid::QUEUED | ON_SNAPSHOT_LIST) {
                    cell.raise(Tid::REQUEUE);
                }
                cell.release();
                return Ok(true);
            }
            Err(word) if word.has(Tid::DEAD) => return Ok(false),
            Err(_) if spin.wait_at_most(LOCK_ROUNDS_MAX) => {}
            Err(_) => return Err(context.conflict(Abort::Locked, first)),
        }
    }
}

/// Notes in a latched cell whether the newest version, which has just changed, is the row's
/// absence. If so, and the record has an entry, that entry is older (TO11).
#[cfg_attr(not(debug_assertions), inline(always))]
fn note_absence(cell: &mut Latched<'_>, at: &CellAt, is_absent: bool) {
    if !is_absent {
        return cell.clear(Tid::ABSENT);
    }
    cell.raise(Tid::ABSENT);
    if cell.word().has(Tid::QUEUED | ON_SNAPSHOT_LIST) && at.is_first() {
        cell.raise(Tid::REQUEUE);
    }
}

/// Begins an attempt in a snapshot or under `read_view`. Under the latter, waits until no commit at
/// the attempt's time or before is in progress.
#[cold]
fn look_back(context: &mut Context<'_, Mvto>, attempt: &mut Attempt) {
    (attempt.only_reads, attempt.refresh_attempts_left) = (true, 0);
    attempt.keeps_reads = context.engine.options.counts_stale();
    if context.local.read_view == ReadView::AtBegin {
        context.clock.await_settled(&mut attempt.others, attempt.time);
    }
}

/// Notes that the attempt writes. Fails if the attempt only reads.
#[cfg_attr(not(debug_assertions), inline(always))]
fn admit_write(
    context: &mut Context<'_, Mvto>,
    attempt: &mut Attempt,
    at: CellAt,
) -> Result<(), Abort> {
    if attempt.only_reads {
        return Err(too_late(context, attempt, at));
    }
    attempt.has_staged = true;
    Ok(())
}

/// Reserves memory for an item's version, and for the row that the commit may have to make from a
/// delta below that version.
fn prepare(
    context: &mut Context<'_, Mvto>,
    attempt: &mut Attempt,
    item: &mut WriteItem,
    intent: Intent,
) -> Result<(), Abort> {
    flatten::make_room(&mut attempt.image, &item.at);
    let word = Tid(item.at.cell_word(0).load(Ordering::Relaxed));
    if !word.has(INLINE_USED) {
        item.note = NO_BLOCK;
        return Ok(());
    }
    let is_only = !word.has(Tid::QUEUED | ON_SNAPSHOT_LIST);
    let words = match intent {
        // The version of a delete has no payload.
        Intent::Delete => 0,
        // The version will be a delta (`can_wait`, `holds_changes`).
        Intent::Update if is_only && !item.needs_image && item.at.is_newest_in_record(word) => {
            let changed = item.changed();
            item.at.prefetch_in_newest_linked(changed.start, changed.len());
            version_chain::VERSION_WORDS + 1 + changed.len()
        }
        Intent::Update => {
            // The commit will copy the newest version.
            item.at.prefetch_all_of_newest_linked();
            if is_only && word.has(VACATED) {
                item.at.prefetch_in_record(0, item.at.payload_words());
                0
            } else {
                version_chain::VERSION_WORDS + item.at.payload_words()
            }
        }
        Intent::Insert | Intent::Put => version_chain::VERSION_WORDS + item.at.payload_words(),
    };
    attempt.room.add(context, item.at, intent, (BlockSize::Whole, words))
}

/// Returns the conflict of an attempt that wants to write although `only_reads` is set.
#[cold]
fn too_late(context: &mut Context<'_, Mvto>, attempt: &mut Attempt, at: CellAt) -> Abort {
    attempt.refresh_attempts_left = REFRESH_ATTEMPTS;
    context.conflict(Abort::ReadChanged, at)
}

/// Keeps other attempts from writing the unit `at` until this attempt ends. Has no effect if the
/// unit holds no row.
fn hold(context: &mut Context<'_, Mvto>, attempt: &mut Attempt, at: CellAt) -> Result<(), Abort> {
    // Other writers of the unit are about to wait for this attempt.
    context.yield_to_token()?;
    attempt.held.reserve();
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
                    attempt.held.push(at, cell.word());
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
                    // The unit is not locked, so this attempt has to wait for the pending version
                    // only.
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
        let begin = || wait_to_own(context, at, attempt.held.is_before(at)); // WA1
        match wait.get_or_insert_with(begin).wait() {
            Waited::Again => {}
            waited => break waited,
        }
    };
    if waited == Waited::Handed {
        attempt.held.push(at, at.chain_word());
        return Ok(());
    }
    attempt.held.want(context, at);
    Err(context.conflict(Abort::Locked, at))
}

/// Releases a unit that the attempt holds.
fn release_held(context: &mut Context<'_, Mvto>, at: CellAt, _was: Tid) {
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

/// Returns whether a latched unit's newest version is committed and not absent. Aborted versions
/// are ignored.
fn is_row(cell: &Latched<'_>) -> bool {
    let newest = seen_at(cell.newest(), u64::MAX);
    newest.is_ok_and(|newest| newest.is_some_and(|newest| !newest.stamp().is_absent()))
}

/// Wakes the attempts that wait for the versions that a commit has linked.
#[cold]
fn wake_all(context: &Context<'_, Mvto>, writes: &WriteSet) {
    for item in writes.items() {
        context.engine.parking.wake(settling_place(&item.at, own_id(item)));
    }
}

/// Latches a cell that cannot be dead. Waits without limit, since latches are held only briefly.
fn latch_own(at: &CellAt) -> Latched<'_> {
    let mut spin = Spin::default();
    loop {
        match at.try_latch() {
            Ok(cell) => return cell,
            Err(_) => spin.wait(),
        }
    }
}

/// Returns the newest version of a chain that is not aborted and not later than `time`; `None` if
/// the chain has no such version. If that version is pending, it is returned as the error.
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

/// Returns the version that an attempt sees of the unit `at`. Called if the unit's newest version
/// is pending, a delta, or later than the attempt's time, or if the unit's record is dead.
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
        // At this place the attempt may read a dead record. The record was reaped after the attempt
        // began: the row was deleted before the attempt began, or no open snapshot sees the row.
        let newest = at.newest_linked(word);
        let seen = match seen_at(newest, attempt.time) {
            Ok(seen) => seen,
            // In a snapshot the wait has no limit: this attempt cannot begin anew, and no other
            // attempt waits for this one.
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
            if read_row(context, attempt, at, seen)? {
                return Ok(seen);
            }
            continue;
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
    }
}

/// Makes `seen` a row if it is a delta, so that it can be read. Returns false if the delta has been
/// merged meanwhile (VC5).
fn read_row(
    context: &mut Context<'_, Mvto>,
    attempt: &mut Attempt,
    at: &CellAt,
    seen: Option<Version<'_>>,
) -> Result<bool, Abort> {
    let Some(version) = seen else { return Ok(true) };
    flatten(context, at, version, &mut attempt.image, attempt.reads_settled)?;
    Ok(version.stamp().is_readable())
}

/// Moves the attempt's time forward to the clock's present time. `ts` is a timestamp that the
/// attempt has met; the new time is not below `ts`. Fails if the read set is not valid at the new
/// time.
fn move_on(context: &mut Context<'_, Mvto>, attempt: &mut Attempt, ts: u64) -> Result<(), Abort> {
    let now = context.clock.now_from(ts);
    debug_assert!(attempt.time <= now && ts <= now, "TO5: an attempt's time never falls");
    look_at_all(context, attempt, now + 1, true)?;
    (attempt.time, attempt.has_moved) = (now, true);
    Ok(())
}

/// Validates that every version read is still the last one before the timestamp `before`; pending
/// versions count. `later` is whether `before` is later than the time of the reads. If so, dead
/// records and missed keys are validated, too: their rows may have been inserted since.
fn look_at_all(
    context: &mut Context<'_, Mvto>,
    attempt: &Attempt,
    before: u64,
    later: bool,
) -> Result<(), Abort> {
    let is_reaped = |word| later && is_reaped(word);
    let is_before = |version: &Version<'_>| is_linked_before(version.stamp(), before);
    let changed = attempt.reads.first_with(|at, seen| {
        let word = at.chain_word();
        let newest = at.newest_linked(word);
        let last = || newest.and_then(|newest| newest.and_older().find(is_before));
        is_reaped(word) || !is_seen(newest, seen) && !is_seen(last(), seen)
    });
    if let Some(at) = changed {
        let removed = is_reaped(at.chain_word());
        let abort = if removed { Abort::RecordRemoved } else { Abort::ReadChanged };
        return Err(context.conflict(abort, at));
    }
    // If not `later`, missed keys need no validation. Their inserts draw timestamps after they have
    // linked the record, and so after this attempt began.
    if later { attempt.nodes.validate(context) } else { Ok(()) }
}

/// Returns whether a record was unlinked from its index. Reads of such a record cannot be validated
/// for later times.
#[cfg_attr(not(debug_assertions), inline(always))]
fn is_reaped(word: Tid) -> bool {
    word.has(Tid::DEAD)
}

/// Returns whether `version` is `seen`, the version that was read. `None` and [`VersionId::NONE`]
/// mean that there is no version.
#[cfg_attr(not(debug_assertions), inline(always))]
fn is_seen(version: Option<Version<'_>>, seen: VersionId) -> bool {
    version.map_or(VersionId::NONE, Version::id) == seen
}

/// Returns whether a version's timestamp is before `before` and the version is not aborted. The
/// version may be pending.
#[cfg_attr(not(debug_assertions), inline(always))]
fn is_linked_before(stamp: Stamp, before: u64) -> bool {
    stamp.ts() < before && !stamp.is_aborted()
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

/// Raises the read timestamps of the read set (TO3). The caller issues a fence afterwards.
fn raise_reads(attempt: &Attempt, to: u64) {
    for (at, seen) in attempt.reads.iter() {
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
    Ok(Committed::NOTHING)
}

/// Runs the phases of a commit that writes. Afterwards none of the commit's versions is pending,
/// whether it has succeeded or failed.
fn commit(
    context: &mut Context<'_, Mvto>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    turn: &mut LogTurn<'_>,
) -> Result<Committed, Abort> {
    context.yield_to_token()?;
    context.reserve_for(writes);
    context.reserve_to_park(writes);
    // If the commit fails, its linked versions are retired.
    context.local.retired.reserve(writes.items().len());
    context.sort_writes(writes);
    let part = attempt.part.take().unwrap_or_else(|| context.clock.join());

    // 1 timestamp
    turn.take();
    let ts = draw(context, attempt, &part);
    let committed = commit_at(context, attempt, writes, ts);
    if !matches!(committed, Ok(())) {
        turn.give_up();
        unlink_all(context, writes);
    }
    if context.engine.parking.has_sleepers() {
        wake_all(context, writes);
    }
    if committed.is_err() {
        // The commit may have failed before it waited for the end of the tick.
        context.clock.pass(ts);
    }
    part.rest();
    attempt.part = Some(part);
    // The commit waits for a lock only here. Before this point, other attempts may wait for the
    // commit's versions, and for its end.
    if let (Err(Failure::Outcome(Abort::Locked)), true) = (&committed, attempt.held.is_empty())
        && let Some(at) = writes.items().iter().map(|item| item.at).find(cell_lock::is_locked)
    {
        cell_lock::await_unlocked(context, at);
    }
    match committed {
        Ok(()) => Ok(Committed { version: ts, stamp: ts }),
        Err(Failure::Outcome(abort)) => Err(abort),
        Err(Failure::Panic(panic)) => {
            attempt.held.give_back(context, release_held);
            resume_unwind(panic)
        }
    }
}

/// Runs phases 2 to 6.
#[cfg_attr(not(debug_assertions), inline(always))]
fn commit_at(
    context: &mut Context<'_, Mvto>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    ts: u64,
) -> Result<(), Failure> {
    attempt.held.sort();

    // 2 link
    for index in 0..writes.items().len() {
        link(context, attempt, writes, index, ts).map_err(Failure::Outcome)?;
    }

    // 3 raise, 4 let the tick pass, fence and validate
    raise_observed(attempt, ts);
    for index in 0..writes.items().len() {
        raise_below(context, writes, index, ts).map_err(Failure::Outcome)?;
    }
    context.clock.pass(ts);
    full_fence(); // E1: orders the raised read timestamps before validation
    look_at_all(context, attempt, ts, true).map_err(Failure::Outcome)?;
    for index in 0..writes.items().len() {
        look_below(context, attempt, writes, index, ts).map_err(Failure::Outcome)?;
    }
    context.note_staleness(|| is_stale(attempt, Some(ts)));

    // 5 evaluate
    evaluate(context, writes, ts)?;

    // 6 install: nothing fails any more (TO9)
    for index in 0..writes.items().len() {
        fill_in(writes, index, &context.local.values);
    }
    for item in writes.items_mut() {
        finish(context, item);
    }
    Ok(())
}

/// Draws the timestamp of a commit: phase 1.
#[cfg_attr(not(debug_assertions), inline(always))]
fn draw(context: &Context<'_, Mvto>, attempt: &Attempt, part: &Part) -> u64 {
    let ts = context.clock.next_for(part, attempt.time);
    debug_assert!(attempt.time < ts, "TO5: a timestamp is above the time of its attempt");
    pass(Point::Unlocked);
    ts
}

/// Raises the read timestamps of a commit's read set, once its versions are linked. The caller
/// issues a fence afterwards.
#[cfg_attr(not(debug_assertions), inline(always))]
fn raise_observed(attempt: &Attempt, ts: u64) {
    pass(Point::Locked);
    raise_reads(attempt, 2 * ts);
}

/// Evaluates the operations of a validated commit on the rows below its versions.
#[cfg_attr(not(debug_assertions), inline(always))]
fn evaluate(
    context: &mut Context<'_, Mvto>,
    writes: &mut WriteSet,
    ts: u64,
) -> Result<(), Failure> {
    pass(Point::Validated);
    if !writes.needs_evaluation() && !context.local.values.is_used() {
        return Ok(());
    }
    // The room in the record is not read here: another commit may be copying a row into it.
    let version = |item: &WriteItem| looked_at_below(item).stamp().ts();
    writes.evaluate(|item| Words::Shared(looked_at_below(item).payload()), version)?;
    if context.local.values.is_used() {
        // The values below belong to their versions, which stay for a while (TO12). Nothing reads
        // the timestamps of values, which a copy of a row may write again.
        context.local.values.replace_all(writes, ts, &|_, _| 0);
    }
    Ok(())
}

/// Returns the row below an item's version, which the commit has looked at.
fn looked_at_below(item: &WriteItem) -> Version<'_> {
    row_below(item).expect("the version was read")
}

/// Commits one item's version, or unlinks that version if it changes nothing: phase 6.
#[cfg_attr(not(debug_assertions), inline(always))]
fn finish(context: &mut Context<'_, Mvto>, item: &mut WriteItem) {
    pass(Point::Installing);
    match own(item) {
        Some(version) if !item.untouched => match item.note & HAS_QUEUED != 0 {
            true if version.stamp().is_delta() => version.commit_queued(),
            _ => version.commit(),
        },
        Some(_) => return unlink(context, item),
        None => {}
    }
    if item.note & IS_WATCHED != 0 {
        end_watch(context, item.at);
    }
}

/// Takes WATCHED from a unit of which a commit has just committed a version. The commit's version
/// keeps the record alive.
#[cold]
#[inline(never)]
fn end_watch(context: &mut Context<'_, Mvto>, at: CellAt) {
    let mut cell = latch_own(&at);
    cell.clear(Tid::WATCHED); // WT2
    cell.release();
    context.local.note_changed(class_of(at.address()));
}

/// Returns the version that a commit has linked for an item; `None` if none is linked.
fn own(item: &WriteItem) -> Option<Version<'_>> {
    if item.note == NO_BLOCK { None } else { item.at.linked(own_id(item)) }
}

/// Returns the identity of the version that a commit has linked for an item.
fn own_id(item: &WriteItem) -> VersionId {
    VersionId::of_word(item.note & !(HAS_QUEUED | IS_WATCHED))
}

/// The property that a write requires of the version below its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// No property: the write replaces the unit, whether or not the row exists.
    Anything,
    /// The existence of a row, with any words.
    AnyRow,
    /// The version itself, or, if there is no version, its absence.
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
    // The log takes the results of operations.
    let is_logged = context.local.is_logged;
    let can_wait = item.note != NO_BLOCK
        && !is_logged
        && can_wait(writes, index, below)
        && !context.local.values.may_change(&item); // TO12
    if !can_wait && follows(writes, index) == Follows::ThisRow && is_crowded(below) {
        cell.release();
        return Err(context.conflict(Abort::Locked, at));
    }
    let block = match (!can_wait && collect::has_room(context, &cell), item.note) {
        (true, _) => None,
        (false, NO_BLOCK) => {
            // Another commit has used the space for a version in the record.
            cell.release();
            return Err(context.conflict(Abort::ExistenceChanged, at));
        }
        (false, _) => Some(context.version_block(at.table(), BlockSize::Whole)),
    };
    let stamp = Stamp::pending(ts, item.present);
    let is_first = cell.newest().is_none();
    pass(Point::Linking);
    let version = cell.link(above, block, if can_wait { stamp.of_delta() } else { stamp });
    if above.is_none() {
        note_absence(&mut cell, &at, !item.present);
    }
    let mut note = version.id().word();
    if cell.word().has(Tid::WATCHED) {
        note |= IS_WATCHED; // WT2
    }
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
        note |= if flag == Tid::QUEUED { HAS_QUEUED } else { 0 };
    }
    debug_assert!(
        is_first
            || !item.present && !at.is_first()
            || cell.word().has(Tid::QUEUED | ON_SNAPSHOT_LIST),
        "TO7: a unit with a second version has an entry"
    );
    cell.release();
    let item = &mut writes.items_mut()[index];
    (item.note, item.is_delta) = (note, can_wait);
    Ok(())
}

/// Returns the pending versions from `newest` down to the newest committed row, the newest one
/// first.
fn pending_above_row(newest: Option<Version<'_>>) -> impl Iterator<Item = Version<'_>> {
    let above = newest.into_iter().flat_map(Version::and_older);
    let above = above.take_while(|version| !version.stamp().is_readable());
    above.filter(|version| version.stamp().is_pending())
}

/// Returns whether a commit that needs the row below its version would wait for more than
/// [`PENDING_MAX`] others.
fn is_crowded(below: Option<Version<'_>>) -> bool {
    pending_above_row(below).nth(PENDING_MAX).is_some()
}

/// Returns whether an item's update can be linked as a delta, and applied only when the row is
/// read.
fn can_wait(writes: &WriteSet, index: usize, below: Option<Version<'_>>) -> bool {
    let item = &writes.items()[index];
    let room = item.at.payload_words() + version_chain::SPARE_WORDS;
    // A pending version counts, too: it may become a delta (`holds_changes`).
    let deltas = || {
        let below = below.into_iter().flat_map(Version::and_older);
        below.take_while(|version| !version.stamp().is_readable()).take(DELTAS_MAX).count()
    };
    item.expects == Some(true)
        && item.present
        && !writes.replaces_unit(index)
        && writes.delta_words(index).is_some_and(|words| words <= room)
        && deltas() < DELTAS_MAX
}

/// Latches a cell, once no other attempt holds its unit.
fn latch<'a>(
    context: &mut Context<'_, Mvto>,
    attempt: &Attempt,
    at: &'a CellAt,
) -> Result<Latched<'a>, Abort> {
    let mut wait = Wait::new(&context.engine.parking, at.address(), Wish::Look, patience(false));
    loop {
        match at.try_latch() {
            Ok(cell) if !cell.word().has(Tid::LOCK) || attempt.held.has_sorted(*at) => {
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

/// Returns the oldest version that is later than `ts`.
fn newest_after<'a>(cell: &Latched<'a>, ts: u64) -> Option<Version<'a>> {
    cell.newest()?.and_older().take_while(|version| version.stamp().ts() > ts).last()
}

/// Returns a conflict if the item's version must not be linked above `below` at `ts`: a transaction
/// with a later timestamp has read `below` (TO2), or depends on the existence of the row (TO8).
fn forbids(item: &WriteItem, below: Option<Version<'_>>, ts: u64) -> Option<Abort> {
    // A delete removes the row that later deltas need.
    let takes_away = !item.present;
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
    (existence > Some(2 * ts)).then_some(Abort::ReadChanged)
}

/// Raises the read timestamp of the version, or of the existence, on which one item depends (TO4,
/// TO8): phase 3.
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

/// Waits until the next version below an item's linked version is committed, and returns that next
/// version; `None` if there is none. Aborted versions are ignored. Waits only for versions with
/// smaller timestamps.
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

/// Returns whether a commit may wait for the version `pending` of an item's unit: only if the
/// timestamp of `pending` is smaller than the commit's own (TO9).
fn waits_for(item: &WriteItem, pending: Version<'_>) -> bool {
    own(item).is_some_and(|own| pending.stamp().ts() < own.stamp().ts())
}

/// Validates one item: phase 4. Checks that no transaction with a later timestamp has read the
/// version below the item's own, and that the version below is as the item expects.
fn look_below(
    context: &mut Context<'_, Mvto>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    index: usize,
    ts: u64,
) -> Result<(), Abort> {
    let item = writes.items()[index];
    let at = item.at;
    if let Some(abort) = forbids(&item, own(&item).and_then(Version::older), ts) {
        return Err(context.conflict(abort, at));
    }
    match follows(writes, index) {
        Follows::Anything => return Ok(()),
        Follows::AnyRow => return look_for_row(context, &item),
        Follows::ThisRow => {}
    }
    let below = settled_below(context, &item)?;
    // A version may have been linked after phase 3 and before the fence. This commit has not raised
    // the read timestamp of such a version.
    let rts = below.map_or(at.existence_rts(), Version::rts);
    if rts.load(Ordering::Relaxed) < 2 * ts {
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

/// Returns the committed row below a linked item's version. `None` if the row is absent or still a
/// delta. In the latter case, the item does not depend on the row's words.
fn row_below(item: &WriteItem) -> Option<Version<'_>> {
    let below = own(item)?.older()?.and_older().find(|version| version.stamp().is_committed())?;
    let stamp = below.stamp();
    (stamp.is_readable() && !stamp.is_absent()).then_some(below)
}

/// Fills in the words of one item's version: phase 6.
fn fill_in(writes: &WriteSet, index: usize, values: &Values) {
    let item = &writes.items()[index];
    if let (true, Some(version)) = (item.present, own(item)) {
        if item.is_delta {
            return writes.write_delta(index, version.delta_room());
        }
        if let Some(row) = row_below(item)
            && !writes.replaces_unit(index)
        {
            if holds_changes(writes, index, version, row) && !values.may_change(item) {
                version.become_delta();
                return writes.write_changes(index, version.delta_room());
            }
            version.copy_from(row);
        }
        writes.install(index, version.payload());
    }
}

/// Returns whether the version of an item is to hold only the words that the commit changes, as a
/// delta: if `row`, the row below it, is the only other version. So a unit that is seldom written
/// is not copied, and its row stays where it is (TO10). A unit that is often written is likely to
/// be read before the delta is merged.
fn holds_changes(writes: &WriteSet, index: usize, version: Version<'_>, row: Version<'_>) -> bool {
    let item = &writes.items()[index];
    let room = item.at.payload_words() + version_chain::SPARE_WORDS;
    item.note & HAS_QUEUED != 0
        && item.at.block_of_linked(version).is_some()
        && version.older().is_some_and(|older| older.id() == row.id())
        && row.older().is_none()
        && writes.changed_words(index).is_some_and(|words| words <= room)
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
    let is_absent = cell.newest().map(Version::stamp).is_none_or(Stamp::is_absent);
    note_absence(&mut cell, &item.at, is_absent);
    if is_absent && item.at.is_first() && !cell.word().has(Tid::QUEUED | ON_SNAPSHOT_LIST) {
        cell.raise(Tid::QUEUED); // TO7
        context.local.reap_queue.push(item.at);
    }
    cell.release();
    match item.at.block_of_linked(version) {
        Some(block) => collect::retire_block(context, &item.at, block),
        None => vacate(context, &item.at),
    }
}

/// Notes that the version in the record has left the chain, which the caller has unlinked and
/// released. Does nothing if the record is dead.
#[cold]
fn vacate(context: &Context<'_, Mvto>, at: &CellAt) {
    let stamp = context.engine.epochs.stamp();
    let mut spin = Spin::default();
    loop {
        match at.try_latch() {
            Ok(mut cell) => {
                cell.vacate(stamp);
                return cell.release();
            }
            Err(word) if word.has(Tid::DEAD) => return,
            Err(_) => spin.wait(),
        }
    }
}
