//! Serial execution: a transaction owns the database, applies each operation at once, and keeps an
//! undo log.
//!
//! # Guarantee
//! Serializable, strictly and opaquely: transactions run one after another. Under
//! [`Exclusion::OneSession`] there is only one session. Under [`Exclusion::GlobalLock`] there may
//! be any number of sessions, and each transaction holds a lock.
//!
//! # Source
//! None. The protocol is the baseline: it has the same tables, indexes and API, but not a word of
//! concurrency control. So the difference to another protocol is the cost of that protocol's
//! concurrency control.
//!
//! # Phases
//! An operation saves the old words and writes the new ones. A commit unlinks the records of
//! deleted rows. An abort undoes the log backwards. A step runs when it is staged, in place; until
//! the commit, reads of its unit are refused, as under every protocol.
//!
//! # Cell
//! None. Timestamp splitting therefore has no effect; a record is one unit.
//!
//! # Invariants
//! * **SE1** Between `begin` and the end of an attempt no other transaction of the database runs.
//! * **SE2** A linked record is a row, unless the record is in `deleted` of the running attempt.
//! * **SE3** Undoing the log backwards restores every word and every link to its state before the
//!   attempt. Undoing the end of the log restores every word and every row to its state at that
//!   moment; records that were linked since stay linked, in `deleted`.
//!
//! # Stamps and cuts
//! The stamp of a commit, and its version, is its number among the commits of the database. The
//! logger's cut is the last number. Commits are numbered in the serial order, within their calls
//! (SE1). So every commit whose writes a commit has read or replaced, and every commit that had
//! ended when it began, has a smaller stamp; and Prefix(c) is the database between two
//! transactions, as a reader there sees it.
//!
//! # Example
//! T's closure returns an error (`tests/timelines`).
//! ```text
//! T                                U                     x   z      log of T
//! takes the lock (SE1)                                   0   none   empty
//! sets x: 1, in place              waits for the lock    1          x was 0
//! inserts z: links its record                                1      x was 0, z was not linked
//! returns an error
//! unlinks z (SE3)                                            none   x was 0
//! puts back x (SE3)                                      0          empty
//! releases the lock
//!                                  takes the lock (SE1)
//!                                  reads x: 0, no z
//!                                  commits
//! ```
//!
//! # Waiting
//! A session that waits for the lock sleeps. The first release after half a millisecond hands the
//! lock over to the session (`sync/parking.rs`), so a busy thread does not keep others out. If a
//! transaction's deadline passes during the wait, the transaction is refused then. Threads may hold
//! the locks of several databases. If a wait would close a circle of threads that wait for one
//! another, the waiting thread gets `Nested` instead.
//!
//! # Aborts
//! Only outcomes, since transactions never conflict.
//!
//! # Costs
//! The throughput is that of one core, on any number of cores.

#![forbid(unsafe_code)]

use crate::access::{
    AddressMap, ByAddress, Change, ChangeKind, ChangeSink, Failure, Intent, WriteSet,
};
use crate::engine::{
    Absence, Applied, Committed, Context, Due, EVERYWHERE, GcOutcome, InPlace, Missing, NoVersions,
    Parts, Properties, Protocol, Seen, TableCore, Unwatched, Values, Watch, word_in,
};
use crate::epoch::{Epoch, Epochs};
use crate::error::Abort;
use crate::index::{NodeAt, NodeChange};
use crate::log::LogTurn;
use crate::record::CellAt;
use crate::schema::{Op, Words};
use crate::stats::LockCounters;
use crate::sync::{self, AtomicU64, Instant, Ordering, Refusal, step};
use crate::timestamps::Timestamps;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::Arc;

/// The protocol that runs transactions one after another, and writes in place.
#[derive(Debug)]
pub struct Serial;

/// The way in which transactions are kept from running at the same time (SE1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusion {
    /// The database has only one session, so no two transactions run at the same time.
    OneSession,
    /// Any number of sessions may exist, and each transaction holds the database's lock.
    GlobalLock,
}

impl Default for Exclusion {
    /// Returns [`Exclusion::OneSession`].
    fn default() -> Exclusion {
        #[cfg(test)]
        if in_tests::are_locked() {
            return Exclusion::GlobalLock;
        }
        Exclusion::OneSession
    }
}

/// The exclusion of a database's transactions, and the number of its commits.
#[doc(hidden)]
#[derive(Debug)]
pub struct Lock {
    /// `None` if the database has only one session.
    exclusive: Option<sync::Exclusive>,
    /// The number of commits so far that have changed something, which only a transaction changes
    /// (SE1). The number is the stamp of the last of these commits.
    commits: AtomicU64,
}

/// The changes of an attempt, and its failures.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Attempt {
    log: Vec<Undo>,
    /// The log entries by record, from the first mark of a scan on; `None` before that mark.
    trail: Option<Trail>,
    scratch: Vec<u64>,
    /// Old words, in the order of the log.
    words: Vec<u64>,
    /// Linked records that are no rows (SE2).
    deleted: Deleted,
    /// The first failure of an update, after which the transaction cannot commit. If no update has
    /// failed: [`Abort::NotYet`] if the attempt has run steps, and otherwise `None`.
    failed: Option<Abort>,
    /// The length of the log at the first failure.
    failed_at: usize,
    hidden: Hidden,
    /// The first failed update of each record, by the record's address, with the length of the log
    /// at the failure.
    failures: AddressMap<(Abort, usize)>,
    /// The payload of the first panic of an updater. The commit resumes this panic.
    panic: Option<Box<dyn Any + Send>>,
}

/// The steps of an attempt, whose results are hidden until the commit.
#[derive(Debug, Default)]
struct Hidden {
    /// The places in the log of the steps of each record, by the record's address.
    places: AddressMap<VecDeque<usize>>,
    /// The addresses of the records of all steps, hidden or shown, with the steps' places in the
    /// log. The places ascend.
    steps: Vec<(u64, usize)>,
    /// The first failure of a step, or of an update of a record on which a step has run. Only the
    /// commit looks at it.
    failure: Option<HiddenFailure>,
}

/// A failure of which the closure does not know.
#[derive(Debug)]
struct HiddenFailure {
    /// The outcome that the closure sees: [`Abort::Panicked`] if there is a panic.
    abort: Abort,
    panic: Option<Box<dyn Any + Send>>,
    /// The address of the record.
    address: u64,
    /// The length of the log at the failure.
    place: usize,
}

impl Hidden {
    /// Adds a step at place `place` of the log, behind all other steps.
    fn add(&mut self, at: CellAt, place: usize) {
        self.places.entry(at.address()).or_default().push_back(place);
        self.steps.push((at.address(), place));
    }

    /// Returns whether a step has run on a record before place `mark` of the log.
    fn has(&self, at: CellAt, mark: usize) -> bool {
        let places = self.places.get(&at.address());
        places.and_then(|places| places.front()).is_some_and(|&first| first < mark)
    }

    /// Shows what the first step on a record has done. Returns the step's place in the log.
    fn show_first(&mut self, at: CellAt) -> Option<usize> {
        let places = self.places.get_mut(&at.address())?;
        let shown = places.pop_front();
        if places.is_empty() {
            self.places.remove(&at.address());
        }
        shown
    }

    /// Returns the failure, if the closure may know of it: if all steps of its record before it
    /// have been shown.
    fn take_shown(&mut self) -> Option<HiddenFailure> {
        let places = &self.places;
        self.failure.take_if(|failure| {
            let first = places.get(&failure.address).and_then(VecDeque::front);
            first.is_none_or(|&first| first > failure.place)
        })
    }

    /// Forgets everything from place `place` of the log on.
    fn undo_to(&mut self, place: usize) {
        while let Some((address, step)) = self.steps.pop_if(|&mut (_, step)| step >= place) {
            let Some(places) = self.places.get_mut(&address) else { continue };
            if places.back() == Some(&step) {
                places.pop_back();
            }
            if places.is_empty() {
                self.places.remove(&address);
            }
        }
        self.failure.take_if(|failure| failure.place >= place);
    }

    /// Returns whether the attempt has run a step, or has a hidden failure.
    fn is_used(&self) -> bool {
        !self.steps.is_empty() || self.failure.is_some()
    }

    fn clear(&mut self) {
        self.places.clear();
        self.steps.clear();
        self.failure = None;
    }
}

/// A set of records, in no order.
#[derive(Debug, Default)]
struct Deleted {
    cells: Vec<CellAt>,
    places: ByAddress,
}

impl Deleted {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn place(&self, at: CellAt) -> Option<usize> {
        if self.cells.is_empty() { None } else { self.place_among(at) }
    }

    fn place_among(&self, at: CellAt) -> Option<usize> {
        self.places.find(&self.cells, |cell| cell.address(), at.address())
    }

    /// Adds a record that is not in the set.
    fn push(&mut self, at: CellAt) {
        debug_assert!(self.place(at).is_none(), "SE2: a record is deleted once");
        self.cells.push(at);
        self.places.added(&self.cells, self.cells.len() - 1, |cell| cell.address());
    }

    fn remove(&mut self, at: CellAt) {
        let Some(place) = self.place(at) else { return };
        self.cells.swap_remove(place);
        self.places.swap_removed(&self.cells, place, |cell| cell.address(), at.address());
    }

    fn clear(&mut self) {
        if !self.cells.is_empty() {
            self.places.clear(self.cells.len());
            self.cells.clear();
        }
    }
}

/// The log entries by record. With them, a scan that rebuilds a record as it was at a mark visits
/// no entries of other records.
#[derive(Debug, Default)]
struct Trail {
    steps: Vec<Step>,
    /// The last step of each record, by the record's address.
    last: AddressMap<usize>,
    /// The last mark.
    marked: usize,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    /// The place of the step's entry in the log. The words that the entry keeps begin at place
    /// `words` of the attempt's words.
    place: usize,
    words: usize,
    /// The previous step of the same record, if any.
    before: Option<usize>,
}

impl Trail {
    fn push(&mut self, at: CellAt, place: usize, words: usize) {
        let before = self.last.insert(at.address(), self.steps.len());
        self.steps.push(Step { place, words, before });
    }

    /// Removes the last step of a record, if it belongs to the log's entry `place` or a later one.
    fn pop(&mut self, at: CellAt, place: usize) {
        let Some(step) = self.steps.pop_if(|step| step.place >= place) else { return };
        match step.before {
            Some(before) => self.last.insert(at.address(), before),
            None => self.last.remove(&at.address()),
        };
    }

    /// Returns the steps of a record from the end of the log back to place `to`, the last step
    /// first.
    fn back(&self, at: CellAt, to: usize) -> impl Iterator<Item = Step> {
        let last = self.last.get(&at.address()).map(|&step| self.steps[step]);
        let steps =
            std::iter::successors(last, |step| step.before.map(|before| self.steps[before]));
        steps.take_while(move |step| step.place >= to)
    }
}

#[derive(Debug, Clone, Copy)]
enum Undo {
    /// Restore these words of a record. The words are a whole row if `is_put`.
    Words { at: CellAt, first: u16, count: u16, is_put: bool },
    /// Unlink the record.
    Link { at: CellAt },
    /// Remove the row. The next entry is of the same record.
    Row,
    /// Restore the deleted row.
    Delete { at: CellAt },
    /// The entry was undone, and stays because a mark of a scan lies behind it.
    Undone,
}

impl Parts for Serial {
    type Policy = Exclusion;
    type Clock = Lock;
    type Attempt = Attempt;
    type SessionVersions = ();
    type Backlog = ();
}

impl Protocol for Serial {
    const NAME: &'static str = "serial";
    const STRICT: bool = true;
    const OPAQUE: bool = true;
    const CELL_WORDS: usize = 0;
    const NODE_WORDS: usize = 0;
    const ONE_SESSION: bool = true;
    type Versions = NoVersions;
    type InPlace = Self;

    fn properties(policy: &Exclusion) -> Properties {
        let alone = Properties::of::<Serial>();
        match policy {
            Exclusion::OneSession => alone,
            Exclusion::GlobalLock => {
                Properties { name: "global-lock", one_session: false, ..alone }
            }
        }
    }

    fn clock(policy: &Exclusion, _timestamps: Timestamps, _epochs: &Arc<Epochs>) -> Lock {
        let exclusive = (*policy == Exclusion::GlobalLock).then(sync::Exclusive::default);
        Lock { exclusive, commits: AtomicU64::new(0) }
    }

    fn attempt(_lock: &Lock, _counts: &Arc<LockCounters>) -> Attempt {
        Attempt::default()
    }

    #[inline]
    fn begin(_context: &mut Context<'_, Self>, attempt: &mut Attempt) {
        attempt.clear();
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read(
        _context: &mut Context<'_, Self>,
        attempt: &mut Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        let present = attempt.has(at);
        if present {
            attempt.check(at, usize::MAX)?;
            copy(Words::Shared(at.payload()));
        }
        Ok(Seen { present, version: 0 })
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read_at_once(
        attempt: &mut Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Option<Seen> {
        let may_look_back = attempt.trail.as_ref().is_some_and(|trail| !trail.steps.is_empty());
        let is_simple = !may_look_back && attempt.failed.is_none() && attempt.has(at);
        if is_simple {
            copy(Words::Shared(at.payload()));
        }
        is_simple.then_some(Seen { present: true, version: 0 })
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_present(attempt: &Attempt, at: CellAt) -> bool {
        attempt.has(at)
    }

    #[inline]
    fn stage(
        _context: &mut Context<'_, Self>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort> {
        let was_row = attempt.has(at);
        let is_row = match intent {
            Intent::Delete => false,
            Intent::Insert | Intent::Put => true,
            Intent::Update => was_row,
        };
        if was_row != is_row {
            match is_row {
                true => {
                    attempt.deleted.remove(at);
                    attempt.note(at, Undo::Row);
                }
                false => {
                    attempt.deleted.push(at);
                    attempt.note(at, Undo::Delete { at });
                }
            }
        }
        if intent != Intent::Delete {
            attempt.apply(writes, at, intent, op);
        }
        Ok(())
    }

    fn stage_new(
        context: &mut Context<'_, Self>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        mut cells: impl Iterator<Item = CellAt> + Clone,
        mut operand: u32,
    ) -> Result<(), Abort> {
        cells.try_for_each(|at| {
            let words = at.payload_words();
            let op = Op { operand, ..Op::set_words(0, words as u16) };
            operand += words as u32;
            Self::stage(context, attempt, writes, at, Intent::Insert, op)
        })
    }

    fn revalidate(_: &mut Context<'_, Self>, _: &mut Attempt, _: &WriteSet) -> Result<(), Abort> {
        Ok(())
    }

    fn commit(
        context: &mut Context<'_, Self>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort> {
        if attempt.failed.is_some()
            && let Err(failure) = attempt.verdict()
        {
            Self::abort(context, attempt, writes);
            return match failure {
                Failure::Outcome(abort) => Err(abort),
                Failure::Panic(panic) => resume_unwind(panic),
            };
        }
        turn.take();
        let mut stamp = 0;
        if !attempt.log.is_empty() {
            // Relaxed: no other transaction runs (SE1). The logger's load is ordered by the turn.
            stamp = context.clock.commits.load(Ordering::Relaxed) + 1;
            context.clock.commits.store(stamp, Ordering::Relaxed);
            if !context.engine.watchers.is_empty() {
                context.local.note_changed(EVERYWHERE);
            }
            if context.local.values.is_used() {
                attempt.replace_values(&mut context.local.values, stamp);
            }
        }
        for index in 0..attempt.deleted.cells.len() {
            unlink(context, attempt.deleted.cells[index]);
        }
        Ok(Committed { version: stamp, stamp })
    }

    /// Walks the undo log: the words in place are those of the last change.
    fn changes(attempt: &Attempt, _writes: &WriteSet, sink: &mut impl ChangeSink) {
        let mut linked = Deleted::default();
        for undo in &attempt.log {
            match *undo {
                Undo::Words { at, first, count, is_put } if attempt.has(at) && count > 0 => {
                    let (first, end) = (usize::from(first), usize::from(first + count));
                    let kind = if is_put { ChangeKind::Put } else { ChangeKind::Update };
                    let words = Words::Shared(&at.payload()[first..end]);
                    sink.add(Change { at, kind, first, words });
                }
                Undo::Link { at } if !attempt.has(at) => linked.push(at),
                _ => {}
            }
        }
        for &at in attempt.deleted.cells.iter().filter(|&&at| linked.place(at).is_none()) {
            sink.add(Change::delete(at));
        }
    }

    fn cut(lock: &Lock, _epochs: &Epochs) -> u64 {
        // Relaxed: a commit that takes its turn after the logger's visit counts on from here.
        lock.commits.load(Ordering::Relaxed)
    }

    fn last_stamp(lock: &Lock, _epochs: &Epochs) -> u64 {
        // Acquire is not needed: the caller has ended a transaction, which the lock ordered after
        // all commits that the transaction has seen.
        lock.commits.load(Ordering::Relaxed)
    }

    fn abort(context: &mut Context<'_, Self>, attempt: &mut Attempt, _writes: &mut WriteSet) {
        attempt.undo(context);
    }

    fn watch(
        _context: &mut Context<'_, Self>,
        _attempt: &mut Attempt,
        watch: &mut Watch<'_>,
    ) -> Result<(), Unwatched> {
        watch.add_everything();
        Ok(())
    }

    fn validate_without_writes(
        context: &mut Context<'_, Self>,
        attempt: &mut Attempt,
        _writes: &WriteSet,
        _images: &mut Vec<u64>,
    ) -> Result<Option<Abort>, Abort> {
        let (mut failed, mut panic) = (attempt.failure(), attempt.panic.take());
        if let Some(shown) = attempt.hidden.take_shown()
            && (failed.is_none() || shown.place < attempt.failed_at)
        {
            (failed, panic) = (Some(shown.abort), shown.panic);
        }
        attempt.undo(context);
        match panic {
            None => Ok(failed),
            Some(panic) => resume_unwind(panic),
        }
    }
}

impl Absence for Serial {
    fn absent(_: &mut Context<'_, Self>, _: &mut Attempt, _: Missing<'_>) -> Result<(), Abort> {
        Ok(())
    }

    fn init_absent_cell(_lock: &Lock, _at: CellAt, _flags: u64) {}

    fn linked(attempt: &mut Attempt, _node: NodeAt, _before: u64, _after: u64, first: CellAt) {
        attempt.note(first, Undo::Link { at: first });
        attempt.deleted.push(first);
    }

    fn divided(_attempt: &mut Attempt, _change: &NodeChange) {}

    fn each_row(_lock: &Lock, at: CellAt, each: &mut dyn FnMut(&[AtomicU64])) {
        each(at.payload()); // SE2
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn may_be_reaped(_lock: &Lock, _first: CellAt) -> bool {
        false
    }

    fn keep(_: &mut Context<'_, Self>, _first: CellAt) -> Result<bool, Abort> {
        Ok(true)
    }

    fn enqueue_if_absent(_lock: &Lock, _first: CellAt) -> bool {
        false
    }

    fn reap(
        _context: &mut Context<'_, Self>,
        _due: &mut Due,
        _table: &TableCore,
        _units: &[CellAt],
        _horizon: Epoch,
    ) -> GcOutcome {
        unreachable!("no record is ever queued: a commit unlinks what it deleted")
    }
}

impl InPlace<Serial> for Serial {
    const APPLIES_AT_ONCE: bool = true;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn enter(lock: &Lock, until: Option<Instant>) -> Result<(), Abort> {
        let Some(lock) = &lock.exclusive else { return Ok(()) };
        // SE1
        lock.acquire(until).map_err(|refusal| match refusal {
            Refusal::Nested => Abort::Nested,
            Refusal::TooLate => Abort::DeadlinePassed,
        })
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn leave(lock: &Lock) {
        if let Some(lock) = &lock.exclusive {
            lock.release();
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn has_failed(attempt: &Attempt) -> bool {
        attempt.failed.is_some()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn has_changed(attempt: &Attempt) -> bool {
        !attempt.log.is_empty()
    }

    fn mark(attempt: &mut Attempt) -> usize {
        attempt.trail.get_or_insert_default().marked = attempt.log.len();
        attempt.log.len()
    }

    fn applied(attempt: &Attempt) -> Applied {
        Applied {
            entries: attempt.log.len(),
            has_failed: attempt.failure().is_some(),
            has_panicked: attempt.panic.is_some(),
        }
    }

    fn failure_since(attempt: &mut Attempt, since: Applied) -> Result<(), Failure> {
        if let Some(panic) = attempt.panic.take_if(|_| !since.has_panicked) {
            return Err(Failure::Panic(panic));
        }
        match attempt.failure() {
            Some(abort) if !since.has_failed => Err(Failure::Outcome(abort)),
            _ => Ok(()),
        }
    }

    fn fail(attempt: &mut Attempt, abort: Abort) -> bool {
        attempt.note_failure(abort, attempt.log.len());
        true
    }

    fn hide(attempt: &mut Attempt, at: CellAt) -> Option<Abort> {
        let hidden = attempt.hidden.failure.as_ref().map(|failure| failure.abort);
        let known = attempt.panic.as_ref().map(|_| Abort::Panicked).or(attempt.failure());
        attempt.failed.get_or_insert(Abort::NotYet);
        attempt.hidden.add(at, attempt.log.len());
        hidden.or(known)
    }

    fn show(attempt: &mut Attempt, at: CellAt) -> Result<(), Failure> {
        let Some(shown) = attempt.hidden.show_first(at) else { return Ok(()) };
        match attempt.hidden.failure.take_if(|failure| failure.place == shown) {
            None => Ok(()),
            Some(HiddenFailure { abort, panic, place, .. }) => {
                attempt.note_failure(abort, place);
                Err(panic.map_or(Failure::Outcome(abort), Failure::Panic))
            }
        }
    }

    fn undo_to(attempt: &mut Attempt, to: Applied) {
        attempt.undo_to(to.entries);
        if !to.has_panicked {
            attempt.panic = None;
        }
        if attempt.failed.is_none() {
            return;
        }
        attempt.failures.retain(|_, &mut (_, place)| place < to.entries);
        attempt.hidden.undo_to(to.entries);
        // The failure of an earlier step may have been shown since.
        let is_undone = !to.has_failed && attempt.failed_at >= to.entries;
        if is_undone || attempt.failure().is_none() {
            attempt.failed = attempt.hidden.is_used().then_some(Abort::NotYet);
        }
    }

    fn read_at_mark(
        context: &mut Context<'_, Self>,
        attempt: &mut Attempt,
        at: CellAt,
        mark: usize,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        if attempt.trail.as_ref().is_none_or(|trail| trail.back(at, mark).next().is_none()) {
            return Self::read(context, attempt, at, copy);
        }
        let present = attempt.look_back(at, mark);
        if present {
            copy(Words::Own(&attempt.scratch));
            attempt.check(at, mark)?;
        }
        Ok(Seen { present, version: 0 })
    }
}

fn unlink(context: &mut Context<'_, Serial>, at: CellAt) {
    let table = context.engine.table(at.table());
    context.unlink(at.record(), &table, |_| {});
}

impl Attempt {
    fn clear(&mut self) {
        self.log.clear();
        self.words.clear();
        self.deleted.clear();
        if self.failed.take().is_some() {
            self.failures.clear();
            self.hidden.clear();
        }
        self.panic = None;
        if self.trail.is_some() {
            self.trail = None;
        }
    }

    /// Adds an entry for a record to the log. The entry's old words are already the last in
    /// `words`.
    #[inline]
    fn note(&mut self, at: CellAt, undo: Undo) {
        if let Some(trail) = &mut self.trail {
            let count = if let Undo::Words { count, .. } = undo { usize::from(count) } else { 0 };
            trail.push(at, self.log.len(), self.words.len() - count);
        }
        self.log.push(undo);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn has(&self, at: CellAt) -> bool {
        self.deleted.place(at).is_none()
    }

    /// Returns the first failure of an update, apart from hidden ones.
    fn failure(&self) -> Option<Abort> {
        self.failed.filter(|&abort| abort != Abort::NotYet)
    }

    /// Returns the failure in which the attempt ends. As under the other protocols, that is the
    /// first one in program order if the attempt has steps, and otherwise a panic, if there is one.
    fn verdict(&mut self) -> Result<(), Failure> {
        let known = self.failure();
        let is_first = |hidden: &HiddenFailure| known.is_none() || hidden.place < self.failed_at;
        if let Some(hidden) = self.hidden.failure.take_if(|hidden| is_first(hidden)) {
            return Err(hidden.panic.map_or(Failure::Outcome(hidden.abort), Failure::Panic));
        }
        let is_outcome = known != Some(Abort::Panicked) && !self.hidden.steps.is_empty();
        match (self.panic.take().filter(|_| !is_outcome), known) {
            (Some(panic), _) => Err(Failure::Panic(panic)),
            (None, Some(abort)) => Err(Failure::Outcome(abort)),
            (None, None) => Ok(()),
        }
    }

    /// Notes that an operation at place `place` of the log has failed.
    fn note_failure(&mut self, abort: Abort, place: usize) {
        if self.failure().is_none() || place < self.failed_at {
            (self.failed, self.failed_at) = (Some(abort), place);
        }
    }

    /// Keeps the failure of an update or of a step. Adds an entry without words to the log, so that
    /// the failure has a place in the log.
    fn fail(&mut self, at: CellAt, abort: Abort, panic: Option<Box<dyn Any + Send>>) {
        let place = self.log.len();
        if self.hidden.has(at, usize::MAX) {
            let address = at.address();
            self.hidden.failure.get_or_insert(HiddenFailure { abort, panic, address, place });
        } else {
            self.note_failure(abort, place);
            self.panic = self.panic.take().or(panic);
        }
        self.failures.entry(at.address()).or_insert((abort, place));
        self.note(at, Undo::Words { at, first: 0, count: 0, is_put: false });
    }

    /// Returns an error if an update of this record has failed, or a step has run on it, before
    /// place `mark` of the log.
    fn check(&self, at: CellAt, mark: usize) -> Result<(), Abort> {
        if self.failed.is_none() {
            return Ok(());
        }
        if self.hidden.has(at, mark) {
            return Err(Abort::NotYet);
        }
        match self.failures.get(&at.address()) {
            Some(&(abort, place)) if place < mark => Err(abort),
            _ => Ok(()),
        }
    }

    /// Rebuilds in `scratch` the words that a record had when the log had `mark` entries. Returns
    /// whether the record was a row at that mark.
    fn look_back(&mut self, at: CellAt, mark: usize) -> bool {
        let mut present = self.has(at);
        self.scratch.clear();
        self.scratch.extend(at.payload().iter().map(|word| word.load(Ordering::Relaxed)));
        for entry in self.trail.iter().flat_map(|trail| trail.back(at, mark)) {
            step();
            match self.log[entry.place] {
                Undo::Words { first, count, .. } => {
                    let old = &self.words[entry.words..][..usize::from(count)];
                    self.scratch[usize::from(first)..][..old.len()].copy_from_slice(old);
                }
                Undo::Link { .. } | Undo::Row => present = false,
                Undo::Delete { .. } => present = true,
                Undo::Undone => {}
            }
        }
        present
    }

    /// Notes the values that the attempt, which commits, has replaced: for each record that was a
    /// row before the attempt, those that the row named then and does not name now.
    #[cold]
    fn replace_values(&self, values: &mut Values, stamp: u64) {
        // The words before the attempt, of all records one after another: zero if there was no row,
        // and `None` as long as the word has not changed.
        let (mut records, mut firsts) = (Deleted::default(), Vec::new());
        let mut before = Vec::<Option<u64>>::new();
        let mut words = self.words.as_slice();
        for undo in &self.log {
            let mut old: &[u64] = &[];
            let (at, first, was_row) = match *undo {
                Undo::Words { at, first, count, .. } => {
                    (old, words) = words.split_at(count.into());
                    (at, usize::from(first), true)
                }
                Undo::Link { at } => (at, 0, false),
                Undo::Delete { at } => (at, 0, true),
                Undo::Row | Undo::Undone => continue,
            };
            if !values.is_noted(at.table()) {
                continue;
            }
            let place = records.place(at).unwrap_or_else(|| {
                records.push(at);
                firsts.push(before.len());
                before.extend(values.words_of(at.table(), at.unit()).map(|_| None));
                firsts.len() - 1
            });
            let before = before[firsts[place]..].iter_mut();
            for (word, before) in values.words_of(at.table(), at.unit()).zip(before) {
                let changed = word.checked_sub(first).and_then(|word| old.get(word)).copied();
                *before = before.or(if was_row { changed } else { Some(0) });
            }
        }
        let mut named = Vec::new();
        for (&at, first) in records.cells.iter().zip(firsts) {
            named.clear();
            named.extend(values.words_of(at.table(), at.unit()));
            for (&word, old) in named.iter().zip(&before[first..]) {
                let now = word_in(at.payload(), word);
                values.replace(old.unwrap_or(now), if self.has(at) { now } else { 0 }, stamp);
            }
        }
    }

    /// Undoes all changes (SE3).
    fn undo(&mut self, context: &mut Context<'_, Serial>) {
        while let Some(undo) = self.log.pop() {
            match undo {
                Undo::Words { at, first, count, .. } => self.put_back(at, first, count),
                Undo::Link { at } => unlink(context, at),
                Undo::Row | Undo::Delete { .. } | Undo::Undone => {}
            }
        }
        debug_assert!(self.words.is_empty(), "SE3: every word that was kept is back");
        self.clear();
    }

    /// Puts back the last `count` old words into a record, from its word `first` on.
    fn put_back(&mut self, at: CellAt, first: u16, count: u16) {
        let kept = self.words.len() - usize::from(count);
        let payload = &at.payload()[usize::from(first)..];
        for (word, &old) in payload.iter().zip(&self.words[kept..]) {
            word.store(old, Ordering::Relaxed);
        }
        self.words.truncate(kept);
    }

    /// Undoes the changes from the log's entry `place` on, but leaves records linked (SE3).
    fn undo_to(&mut self, place: usize) {
        let (mut linked, mut last) = (Vec::new(), None);
        while self.log.len() > place
            && let Some(undo) = self.log.pop()
        {
            let at = match undo {
                Undo::Words { at, first, count, .. } => {
                    self.put_back(at, first, count);
                    at
                }
                Undo::Link { at } => {
                    linked.push(at);
                    at
                }
                Undo::Row => {
                    let at = last.expect("the words of a new row are logged behind it");
                    self.deleted.push(at);
                    at
                }
                Undo::Delete { at } => {
                    self.deleted.remove(at);
                    at
                }
                Undo::Undone => continue,
            };
            if let Some(trail) = &mut self.trail {
                trail.pop(at, self.log.len());
            }
            last = Some(at);
        }
        let marked = self.trail.as_ref().map_or(0, |trail| trail.marked);
        self.log.resize(marked.max(self.log.len()), Undo::Undone);
        linked.into_iter().rev().for_each(|at| self.note(at, Undo::Link { at }));
    }

    /// Applies one operation. If the operation fails, the failure is kept. As under every protocol,
    /// the commit and later reads of this record report the failure.
    #[inline]
    fn apply(&mut self, writes: &mut WriteSet, at: CellAt, intent: Intent, op: Op) {
        let item = writes.stage(at, intent, op);
        match writes.evaluate(|item| Words::Shared(item.at.payload()), |_| 0) {
            Ok(()) => {
                let range = usize::from(op.word)..usize::from(op.word + op.words);
                self.words
                    .extend(at.payload()[range].iter().map(|word| word.load(Ordering::Relaxed)));
                let is_put = matches!(intent, Intent::Insert | Intent::Put);
                self.note(at, Undo::Words { at, first: op.word, count: op.words, is_put });
                writes.install(item, at.payload());
            }
            Err(Failure::Outcome(abort)) => {
                if self.failure().is_some() {
                    writes.outcomes.forget_last();
                }
                self.fail(at, abort, None);
            }
            Err(Failure::Panic(panic)) => self.fail(at, Abort::Panicked, Some(panic)),
        }
        writes.clear();
    }
}

#[cfg(all(test, not(shuttle)))]
pub(crate) use in_tests::under_a_lock;

/// Support for repeating other tests under the global lock.
#[cfg(test)]
mod in_tests {
    use std::cell::Cell;

    thread_local! {
        static LOCKED: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn are_locked() -> bool {
        LOCKED.get()
    }

    /// Runs `body`. Databases of [`Serial`](super::Serial) that `body` builds on this thread have a
    /// lock, unless `body` sets another policy.
    pub(crate) fn under_a_lock<T>(body: impl FnOnce() -> T) -> T {
        LOCKED.set(true);
        let result = body();
        LOCKED.set(false);
        result
    }
}
