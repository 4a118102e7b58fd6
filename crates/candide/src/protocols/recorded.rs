//! Histories: the reads, scans and writes of each transaction, with versions, for a checker.
//!
//! [`Recorded<P>`] is a protocol that runs `P` and records a history.
//! [`Database::take_history`](crate::Database::take_history) returns the history in the form of the
//! crate [`candide_check`]. A database that does not record is a `Database<P>`, and contains no
//! instruction of this file.
//!
//! ```
//! use candide::{Database, Occ, Record, history::Recorded};
//!
//! #[derive(Record, Clone, Copy)]
//! struct Counter { #[key] id: u64, count: u64 }
//!
//! let db = Database::<Recorded<Occ>>::builder().build()?;
//! let counters = db.table::<Counter>("counters")?;
//! db.run(|tx| counters.insert(tx, Counter { id: 1, count: 0 }))?;
//! db.run(|tx| counters.modify(tx, 1, Counter::COUNT, |count| *count += 1))?;
//! let history = db.take_history();
//! assert_eq!(history.events.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A history contains:
//! * Reads, with the version of the unit. If the transaction has written the unit itself, the read
//!   is recorded with the version below these writes, or not at all.
//! * Observations of ranges of numbers, as reads of the last version in which the number was found
//!   to be in the range. (Under most protocols such an observation is a read like others.)
//! * The findings of operations that did nothing: that a key is missing, or that its row exists
//!   already. If the closure ends in such an error, also the assumptions of the writes before it.
//! * Transactions that read in a snapshot. Such a transaction is recorded as begun when the
//!   snapshot was opened. A long read-only transaction that is registered like a snapshot is
//!   recorded as begun at its own begin.
//! * Ranges of keys, as far as they were scanned. An unfinished scan of an unordered table is not
//!   recorded, but the rows that it returned are.
//! * Steps, as reads of the versions that their units have when they run. If the transaction fails
//!   at the commit, the steps that have run are not recorded.
//! * A read outside of transactions, as a transaction of one read.
//! * Under serial protocols, which have no versions: versions that the recorder makes. The recorder
//!   can make versions because no other transaction runs at the same time.
//!
//! The following is not recorded, and so not checked:
//! * The reads of raw iteration, alone or for an export. Raw iteration is no transaction, and no
//!   transaction runs at the same time.
//! * The assumptions of blind writes about existing records: that there is a row to update or to
//!   delete, or no row where one is inserted. A commit checks these assumptions, but only the write
//!   is recorded.
//! * The words on which an update failed at commit, by its guard or by an overflow. Such a
//!   transaction is recorded with its earlier reads, and without writes.

#![forbid(unsafe_code)]

use super::forward::{for_each_function, type_of};
use crate::access::{ChangeSink, Failure, Intent, WriteSet, steps};
use crate::engine::{
    Absence, Applied, Committed, Context, Due, GcOutcome, InPlace, Missing, Parts, Properties,
    Protocol, ReadView, Replaced, Seen, TableCore, Unwatched, Versioned, Versions, Watch,
};
use crate::epoch::{Epoch, Epochs, Moment};
use crate::error::Abort;
use crate::index::{Direction, NodeAt, NodeChange};
use crate::log::LogTurn;
use crate::record::CellAt;
use crate::schema::{Edge, NumberRange, Op, WordRange, Words};
use crate::stats::LockCounters;
use crate::sync::{AtomicU64, Instant, Mutex, Ordering, lock};
use crate::timestamps::Timestamps;
pub use candide_check::{Access, Event, Forgotten, Key, Scan, Transaction};
use crossbeam_utils::CachePadded;
use std::any::Any;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::marker::PhantomData;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// The protocol `P` with a recorder of histories.
#[derive(Debug)]
pub struct Recorded<P>(PhantomData<P>);

/// A part of a history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// The events that ended since the previous batch, in no particular order.
    pub events: Vec<Event>,
    /// Every transaction that began before this time is in this batch or in an earlier one.
    pub complete_before: u64,
}

/// The recorder of a database.
#[doc(hidden)]
#[derive(Debug)]
pub struct Recorder<C> {
    clock: C,
    /// Whether the protocol has versions.
    has_versions: bool,
    time: CachePadded<AtomicU64>,
    /// The events and running attempts, divided by session so that sessions seldom wait for one
    /// another.
    shares: [CachePadded<Mutex<Share>>; SHARES],
    /// The latest versions of deleted rows that still have a record.
    tombstones: Mutex<HashMap<(u16, Key), u64>>,
    /// The versions of all rows, if the protocol has no versions; otherwise empty.
    versions: Mutex<HashMap<(u16, Key), u64>>,
    /// The open snapshots.
    snapshots: Mutex<Vec<Opened>>,
}

/// An open snapshot, and the time at which it was opened. A transaction that reads in the snapshot
/// is recorded as begun at that time.
#[derive(Debug, Clone, Copy)]
struct Opened {
    ts: u64,
    begun: u64,
}

const SHARES: usize = 16;

/// The events and running attempts of some of the sessions.
#[derive(Debug, Default)]
struct Share {
    events: Vec<Event>,
    /// The running attempts: the session of each, and the time at which the attempt began.
    running: Vec<(u64, u64)>,
}

impl<C> Recorder<C> {
    /// Makes a recorder around `clock`, the protocol's part of the database.
    fn around(clock: C, has_versions: bool) -> Recorder<C> {
        Recorder {
            clock,
            has_versions,
            time: CachePadded::new(AtomicU64::new(1)),
            shares: std::array::from_fn(|_| CachePadded::new(Mutex::new(Share::default()))),
            tombstones: Mutex::new(HashMap::new()),
            versions: Mutex::new(HashMap::new()),
            snapshots: Mutex::new(Vec::new()),
        }
    }
}

/// The notes of a session's running attempt.
#[doc(hidden)]
#[derive(Debug)]
pub struct Attempt<A> {
    inner: A,
    /// Whether the protocol has versions.
    has_versions: bool,
    begun: u64,
    /// The timestamp of the attempt's view, if the view is registered as a snapshot.
    registered: Cell<Option<u64>>,
    reads: Vec<Noted>,
    scans: Vec<Passage>,
    /// The writes of the attempt, one after another. Empty if the protocol has versions.
    applied: Vec<Written>,
}

/// A write of a unit that was applied at once.
#[derive(Debug)]
struct Written {
    at: CellAt,
    /// Whether the row exists afterwards.
    present: bool,
    /// The number of entries in the undo log afterwards.
    entries: usize,
}

#[cfg(all(test, not(loom)))]
impl<A> Attempt<A> {
    /// Returns the time at which the attempt began.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }
}

/// A noted read.
#[derive(Debug)]
enum Noted {
    /// A read of a unit. The key is taken from the unit's record at the end of the attempt, since
    /// the record stays until then.
    Unit(CellAt, Seen),
    /// A read of a key that has no record, with the key's table.
    Missing(u16, Key),
}

/// A running scan.
#[derive(Debug)]
struct Passage {
    table: u16,
    from: Bound<Key>,
    to: Bound<Key>,
    direction: Option<Direction>,
    /// The keys of the records that the scan has reached, in the scan's order.
    met: Vec<Key>,
    is_over: bool,
}

impl Passage {
    /// Returns the ranges that were scanned, without those keys in `met` that are not in `read`.
    /// The transaction has written the rows of these keys itself, so it did not read them in the
    /// database.
    fn observed(self, read: &HashSet<(u16, &Key)>) -> Vec<Scan> {
        let Passage { table, mut from, mut to, direction, mut met, is_over } = self;
        if !is_over {
            match (met.last().cloned().map(Bound::Included), direction) {
                (Some(reached), Some(Direction::Forward)) => to = reached,
                (Some(reached), Some(Direction::Reverse)) => from = reached,
                _ => return Vec::new(),
            }
        }
        met.retain(|key| !read.contains(&(table, key)));
        met.sort();
        let mut scans = Vec::new();
        for own in met {
            scans.push(Scan { table, from, to: Bound::Excluded(own.clone()) });
            from = Bound::Excluded(own);
        }
        scans.push(Scan { table, from, to });
        scans
    }
}

impl<C> Recorder<C> {
    /// Returns the next time.
    fn tick(&self) -> u64 {
        // SeqCst: the times of all threads are in one order, which is consistent with the threads'
        // other operations.
        self.time.fetch_add(1, Ordering::SeqCst)
    }

    fn share(&self, session: u64) -> &Mutex<Share> {
        &self.shares[session as usize % SHARES]
    }

    /// Takes the events that have ended since the last call.
    pub(crate) fn take(&self) -> Batch {
        let mut batch = Batch { events: Vec::new(), complete_before: self.tick() };
        // The snapshots are read before the shares. If a snapshot has been closed by now, every
        // transaction that read in the snapshot is in one of the shares.
        let first = lock(&self.snapshots).iter().map(|snapshot| snapshot.begun).min();
        batch.complete_before =
            first.map_or(batch.complete_before, |first| first.min(batch.complete_before));
        for share in &self.shares {
            // An attempt that began before the tick above is in its share as running, or has ended.
            let share = &mut *lock(share);
            batch.events.append(&mut share.events);
            let first = share.running.iter().map(|&(_, begun)| begun).min();
            batch.complete_before =
                first.map_or(batch.complete_before, |first| first.min(batch.complete_before));
        }
        batch
    }

    /// Notes that an attempt of a session begins. Returns the time of the begin.
    fn begins(&self, session: u64) -> u64 {
        let share = &mut *lock(self.share(session));
        let begun = self.tick();
        share.running.push((session, begun));
        begun
    }

    /// Returns the snapshot with timestamp `ts` that was opened first. All snapshots with one
    /// timestamp see the same versions.
    fn opened(&self, ts: u64) -> Opened {
        let snapshots = lock(&self.snapshots);
        *snapshots.iter().find(|snapshot| snapshot.ts == ts).expect("a snapshot in use is open")
    }

    /// Notes the end of an attempt that belongs to no transaction.
    fn lapses(&self, session: u64) {
        lock(self.share(session)).running.retain(|&(running, _)| running != session);
    }

    /// Notes the end of a transaction.
    fn ends(&self, mut transaction: Transaction) {
        let share = &mut *lock(self.share(transaction.session));
        transaction.ended = self.tick();
        share.running.retain(|&(session, _)| session != transaction.session);
        share.events.push(Event::Transaction(transaction));
    }

    /// Notes that the record of a deleted row has been removed.
    fn forgets(&self, session: u64, table: u16, key: Key, version: u64) {
        let share = &mut *lock(self.share(session));
        share.events.push(Event::Forgotten(Forgotten { table, key, version, at: self.tick() }));
    }
}

/// Returns the context for the inner protocol.
fn inner<'a, P: Protocol>(context: &'a mut Context<'_, Recorded<P>>) -> Context<'a, P> {
    Context {
        engine: context.engine,
        clock: &context.clock.clock,
        local: context.local,
        versions: context.versions,
    }
}

fn key_of<P: Protocol>(context: &Context<'_, P>, at: CellAt) -> Key {
    key_in(&context.engine.table(at.table()), at)
}

fn key_in(table: &TableCore, at: CellAt) -> Key {
    at.record().key_words(table.layout.key_words()).as_slice().into()
}

impl<P: Protocol> Recorded<P> {
    /// Notes a read, unless the attempt itself has written the unit in place.
    fn note(attempt: &mut Attempt<P::Attempt>, at: CellAt, seen: Seen) {
        if !attempt.applied.iter().any(|written| written.at.address() == at.address()) {
            attempt.reads.push(Noted::Unit(at, seen));
        }
    }

    /// Notes a write, if the protocol has applied it at once.
    fn note_applied(
        context: &Context<'_, Self>,
        attempt: &mut Attempt<P::Attempt>,
        at: CellAt,
        present: bool,
    ) {
        if !context.clock.has_versions {
            let entries = P::InPlace::applied(&attempt.inner).entries;
            attempt.applied.push(Written { at, present, entries });
        }
    }

    /// Returns the recorded form of a read. Called before the attempt's own writes get their
    /// versions.
    fn told(context: &Context<'_, Self>, noted: Noted) -> Access {
        let (at, seen) = match noted {
            Noted::Unit(at, seen) => (at, seen),
            Noted::Missing(table, key) => {
                return Access { table, key, group: 0, version: None, present: false };
            }
        };
        let (table, group, key) = (at.table(), at.unit() as u8, key_of(context, at));
        let version = if context.clock.has_versions {
            (seen.version != 0).then_some(seen.version)
        } else {
            lock(&context.clock.versions).get(&(table, key.clone())).copied()
        };
        Access { table, key, group, version, present: seen.present }
    }

    /// Notes the end of an attempt.
    fn end(
        context: &Context<'_, Self>,
        attempt: &mut Attempt<P::Attempt>,
        committed: bool,
        written: impl Iterator<Item = (CellAt, u64, bool)>,
    ) {
        if context.local.is_raw {
            context.clock.lapses(context.local.id);
            return;
        }
        let writes = written.map(|(at, version, present)| Access {
            table: at.table(),
            key: key_of(context, at),
            group: at.unit() as u8,
            version: Some(version),
            present,
        });
        let Attempt { inner, reads, .. } = attempt;
        P::loosened(inner, &mut |at, version| {
            reads.push(Noted::Unit(at, Seen { present: true, version }));
        });
        let reads: Vec<Access> =
            attempt.reads.drain(..).map(|noted| Self::told(context, noted)).collect();
        let mut scans = Vec::new();
        if !attempt.scans.is_empty() {
            let read: HashSet<_> = reads.iter().map(|read| (read.table, &read.key)).collect();
            scans.extend(attempt.scans.drain(..).flat_map(|passage| passage.observed(&read)));
        }
        let (begun, as_of) = match context.local.read_view {
            ReadView::Snapshot(ts) => (context.clock.opened(ts).begun, Some(ts)),
            // For a transaction registered like a snapshot, the collector keeps no records of rows
            // that were inserted after the transaction's time.
            ReadView::AtBegin | ReadView::Past(_) => (attempt.begun, attempt.registered.get()),
            ReadView::Current => (attempt.begun, None),
        };
        let transaction = Transaction {
            session: context.local.id,
            begun,
            ended: attempt.begun,
            committed,
            reads,
            scans,
            writes: writes.collect(),
            as_of,
        };
        attempt.applied.clear();
        Self::note_deletes(context, &transaction.writes);
        context.clock.ends(transaction);
    }

    /// Commits by calling `commit`, and records the transaction.
    fn commit_by(
        context: &mut Context<'_, Self>,
        attempt: &mut Attempt<P::Attempt>,
        writes: &mut WriteSet,
        commit: impl FnOnce(
            &mut Context<'_, P>,
            &mut P::Attempt,
            &mut WriteSet,
        ) -> Result<Committed, Abort>,
    ) -> Result<Committed, Abort> {
        let commit = || commit(&mut inner(context), &mut attempt.inner, writes);
        let (result, observed) = steps::observed_by(|| catch_unwind(AssertUnwindSafe(commit)));
        let result = result.unwrap_or_else(|panic| {
            Self::end(context, attempt, true, std::iter::empty());
            resume_unwind(panic)
        });
        match result {
            Ok(Committed { version, .. }) if context.clock.has_versions => {
                for (at, version) in observed {
                    Self::note(attempt, at, Seen { present: true, version });
                }
                let made = writes.items().iter().filter(|item| !item.untouched);
                Self::end(
                    context,
                    attempt,
                    true,
                    made.map(|item| (item.at, version, item.present)),
                );
            }
            Ok(_) => {
                // The last write of a unit counts.
                let mut applied = std::mem::take(&mut attempt.applied);
                let mut met = HashSet::new();
                applied.reverse();
                applied.retain(|written| met.insert(written.at.address()));
                let versions = &context.clock.versions;
                let was_there =
                    |at: CellAt| lock(versions).contains_key(&(at.table(), key_of(context, at)));
                // A row that the transaction itself has inserted and deleted again counts as not
                // written.
                applied.retain(|written| written.present || was_there(written.at));
                let version = context.clock.tick();
                Self::end(
                    context,
                    attempt,
                    true,
                    applied.into_iter().map(|Written { at, present, .. }| (at, version, present)),
                );
            }
            // The commit validates the reads before it returns one of these outcomes, and before an
            // updater can panic.
            Err(Abort::Guard | Abort::Overflow) => {
                Self::end(context, attempt, true, std::iter::empty())
            }
            Err(_) => Self::end(context, attempt, false, std::iter::empty()),
        }
        result
    }

    /// Notes that the tombstone of a deleted row is about to leave its index.
    fn is_dead(context: &Context<'_, Self>, table: &TableCore, first: CellAt) {
        // The collector already holds the lock of the list of tables, so the table is an argument.
        let row = (first.table(), key_in(table, first));
        // A record whose insert never committed has no entry in `tombstones`, and is not noted.
        let version = lock(&context.clock.tombstones).remove(&row);
        if let Some(version) = version {
            context.clock.forgets(context.local.id, row.0, row.1, version);
        }
    }

    /// Notes the versions of deletes, to be recorded when the records of the rows have been
    /// removed. If the protocol has no versions, also notes the versions of other writes.
    fn note_deletes(context: &Context<'_, Self>, writes: &[Access]) {
        for write in writes {
            let (row, version) = ((write.table, write.key.clone()), write.version.unwrap_or(0));
            if !context.clock.has_versions {
                let mut versions = lock(&context.clock.versions);
                if write.present {
                    versions.insert(row, version);
                } else {
                    versions.remove(&row);
                    context.clock.forgets(context.local.id, row.0, row.1, version);
                }
            } else if !write.present {
                let mut tombstones = lock(&context.clock.tombstones);
                let latest = tombstones.entry(row).or_default();
                *latest = version.max(*latest);
            }
        }
    }
}

/// Expands to the argument of the inner protocol for a parameter.
macro_rules! inner_of {
    ($context:ident Context) => {
        &mut inner($context)
    };
    ($clock:ident Clock) => {
        &$clock.clock
    };
    ($attempt:ident Attempt) => {
        &$attempt.inner
    };
    ($attempt:ident AttemptMut) => {
        &mut $attempt.inner
    };
    ($other:ident $type:tt) => {
        $other
    };
}

/// Passes a call on to the inner protocol, unless the recorder takes notes of it.
macro_rules! pass_on {
    ($of:tt begin $($shape:tt)*) => {};
    ($of:tt read $($shape:tt)*) => {};
    ($of:tt read_at_once $($shape:tt)*) => {};
    ($of:tt read_for_update $($shape:tt)*) => {};
    ($of:tt loosen $($shape:tt)*) => {};
    ($of:tt stage $($shape:tt)*) => {};
    ($of:tt stage_new $($shape:tt)*) => {};
    ($of:tt commit $($shape:tt)*) => {};
    ($of:tt commit_late $($shape:tt)*) => {};
    ($of:tt abort $($shape:tt)*) => {};
    ($of:tt validate_without_writes $($shape:tt)*) => {};
    ($of:tt absent $($shape:tt)*) => {};
    ($of:tt reap $($shape:tt)*) => {};
    ($of:tt undo_to $($shape:tt)*) => {};
    ($of:tt hide $($shape:tt)*) => {};
    ($of:tt read_at_mark $($shape:tt)*) => {};
    ($of:tt detach_for_snapshots $($shape:tt)*) => {};
    ($of:tt open_snapshot $($shape:tt)*) => {};
    ($of:tt register_snapshot $($shape:tt)*) => {};
    ($of:tt close_snapshot $($shape:tt)*) => {};
    ([$of:ty] $name:ident $([$($parameter:ident: $type:tt),*])+ $(-> $result:ty)?) => {
        fn $name($($($parameter: type_of!($type),)*)+) $(-> $result)? {
            <$of>::$name($($(inner_of!($parameter $type),)*)+)
        }
    };
}

impl<P: Protocol> Parts for Recorded<P> {
    type Policy = P::Policy;
    type Clock = Recorder<P::Clock>;
    type Attempt = Attempt<P::Attempt>;
    type SessionVersions = P::SessionVersions;
    type Backlog = P::Backlog;
}

#[warn(clippy::missing_trait_methods)]
impl<P: Protocol> Protocol for Recorded<P> {
    const NAME: &'static str = P::NAME;
    const STRICT: bool = P::STRICT;
    const OPAQUE: bool = P::OPAQUE;
    const OPAQUE_BY_LOOKS: bool = P::OPAQUE_BY_LOOKS;
    const ASSUMES_BLINDLY: bool = P::ASSUMES_BLINDLY;
    const CELL_WORDS: usize = P::CELL_WORDS;
    const NODE_WORDS: usize = P::NODE_WORDS;
    const ONE_SESSION: bool = P::ONE_SESSION;
    // The recorder would not notice the end of a single read.
    const SINGLE_READ_COMMITS: bool = false;
    const READABLE_CUT: bool = P::READABLE_CUT;
    const LATE_ROWS: bool = P::LATE_ROWS;
    const TIMESTAMPS: &'static [Timestamps] = P::TIMESTAMPS;
    type Versions = Self;
    type InPlace = Self;

    fn properties(policy: &P::Policy) -> Properties {
        P::properties(policy)
    }

    fn clock(policy: &P::Policy, timestamps: Timestamps, epochs: &Arc<Epochs>) -> Self::Clock {
        Recorder::around(
            P::clock(policy, timestamps, epochs),
            !P::properties(policy).applies_at_once,
        )
    }

    fn table_locks(clock: &Self::Clock) -> Option<Arc<dyn Any + Send + Sync>> {
        P::table_locks(&clock.clock)
    }

    fn attempt(clock: &Self::Clock, counts: &Arc<LockCounters>) -> Self::Attempt {
        let inner = P::attempt(&clock.clock, counts);
        Attempt {
            inner,
            has_versions: clock.has_versions,
            begun: 0,
            registered: Cell::new(None),
            reads: Vec::new(),
            scans: Vec::new(),
            applied: Vec::new(),
        }
    }

    fn begin(context: &mut Context<'_, Self>, attempt: &mut Self::Attempt) {
        attempt.reads.clear();
        attempt.scans.clear();
        attempt.applied.clear();
        attempt.registered.set(None);
        attempt.begun = context.clock.begins(context.local.id);
        P::begin(&mut inner(context), &mut attempt.inner);
    }

    fn read(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        let seen = P::read(&mut inner(context), &mut attempt.inner, at, copy)?;
        Self::note(attempt, at, seen);
        Ok(seen)
    }

    fn read_at_once(
        attempt: &mut Self::Attempt,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Option<Seen> {
        let seen = P::read_at_once(&mut attempt.inner, at, copy)?;
        Self::note(attempt, at, seen);
        Some(seen)
    }

    fn loosen(attempt: &mut Self::Attempt, at: CellAt, range: NumberRange) -> bool {
        let is_loose = P::loosen(&mut attempt.inner, at, range);
        if is_loose {
            // The version is noted at the end of the attempt.
            let read = attempt.reads.pop();
            debug_assert!(
                matches!(read, Some(Noted::Unit(noted, _)) if noted.address() == at.address()),
                "the read that is loosened is the last one"
            );
        }
        is_loose
    }

    fn scan(
        attempt: &mut Self::Attempt,
        table: u16,
        range: &WordRange,
        direction: Option<Direction>,
    ) -> usize {
        let bound = |edge: &Edge| match edge.is_included() {
            true => Bound::Included(edge.words().into()),
            false => Bound::Excluded(edge.words().into()),
        };
        let (from, to) = (bound(&range.lower), bound(&range.upper));
        attempt.scans.push(Passage { table, from, to, direction, met: Vec::new(), is_over: false });
        attempt.scans.len() - 1
    }

    fn scanned(
        context: &Context<'_, Self>,
        attempt: &mut Self::Attempt,
        scan: usize,
        to: impl FnOnce() -> Option<CellAt>,
    ) {
        let passage = &mut attempt.scans[scan];
        match to() {
            Some(at) => passage.met.push(key_of(context, at)),
            None => passage.is_over = true,
        }
    }

    fn read_for_update(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        let seen = P::read_for_update(&mut inner(context), &mut attempt.inner, at, copy)?;
        Self::note(attempt, at, seen);
        Ok(seen)
    }

    fn stage(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort> {
        P::stage(&mut inner(context), &mut attempt.inner, writes, at, intent, op)?;
        Self::note_applied(context, attempt, at, intent != Intent::Delete);
        Ok(())
    }

    fn stage_new(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
        cells: impl Iterator<Item = CellAt> + Clone,
        operand: u32,
    ) -> Result<(), Abort> {
        let staged = cells.clone();
        P::stage_new(&mut inner(context), &mut attempt.inner, writes, staged, operand)?;
        cells.for_each(|at| Self::note_applied(context, attempt, at, true));
        Ok(())
    }

    fn commit(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
        turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort> {
        Self::commit_by(context, attempt, writes, |context, attempt, writes| {
            P::commit(context, attempt, writes, turn)
        })
    }

    fn commit_late(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
        turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort> {
        Self::commit_by(context, attempt, writes, |context, attempt, writes| {
            P::commit_late(context, attempt, writes, turn)
        })
    }

    fn abort(context: &mut Context<'_, Self>, attempt: &mut Self::Attempt, writes: &mut WriteSet) {
        P::abort(&mut inner(context), &mut attempt.inner, writes);
        Self::end(context, attempt, false, std::iter::empty());
    }

    fn validate_without_writes(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &WriteSet,
        images: &mut Vec<u64>,
    ) -> Result<Option<Abort>, Abort> {
        // The closure's error also depends on the rows that its writes assumed. The assumed rows
        // are read only now.
        for item in writes.items() {
            let seen = P::read(&mut inner(context), &mut attempt.inner, item.at, |_| {})?;
            Self::note(attempt, item.at, seen);
        }
        attempt.applied.clear();
        let validate_without_writes =
            || P::validate_without_writes(&mut inner(context), &mut attempt.inner, writes, images);
        catch_unwind(AssertUnwindSafe(validate_without_writes)).unwrap_or_else(|panic| {
            Self::end(context, attempt, true, std::iter::empty());
            resume_unwind(panic)
        })
    }

    for_each_function!(Protocol: pass_on);
}

#[warn(clippy::missing_trait_methods)]
impl<P: Protocol> Absence for Recorded<P> {
    fn absent(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        missing: Missing<'_>,
    ) -> Result<(), Abort> {
        if let Missing { table, key: Some(key), .. } = missing {
            attempt.reads.push(Noted::Missing(table, key.into()));
        }
        P::absent(&mut inner(context), &mut attempt.inner, missing)
    }

    fn reap(
        context: &mut Context<'_, Self>,
        due: &mut Due,
        table: &TableCore,
        units: &[CellAt],
        horizon: Epoch,
    ) -> GcOutcome {
        let outcome = P::reap(&mut inner(context), due, table, units, horizon);
        if outcome == GcOutcome::Dead {
            Self::is_dead(context, table, units[0]);
        }
        outcome
    }

    for_each_function!(Absence: pass_on);
}

#[warn(clippy::missing_trait_methods)]
impl<P: Protocol> InPlace<Recorded<P>> for Recorded<P> {
    const APPLIES_AT_ONCE: bool = P::InPlace::APPLIES_AT_ONCE;

    fn hide(attempt: &mut Attempt<P::Attempt>, at: CellAt) -> Option<Abort> {
        let failure = P::InPlace::hide(&mut attempt.inner, at);
        if !attempt.has_versions && failure.is_none() {
            // The step reads the unit at once.
            Self::note(attempt, at, Seen { present: true, version: 0 });
        }
        failure
    }

    fn undo_to(attempt: &mut Attempt<P::Attempt>, to: Applied) {
        attempt.applied.retain(|written| written.entries <= to.entries);
        P::InPlace::undo_to(&mut attempt.inner, to);
    }

    fn read_at_mark(
        context: &mut Context<'_, Self>,
        attempt: &mut Attempt<P::Attempt>,
        at: CellAt,
        mark: usize,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        let seen =
            P::InPlace::read_at_mark(&mut inner(context), &mut attempt.inner, at, mark, copy)?;
        Self::note(attempt, at, seen);
        Ok(seen)
    }

    for_each_function!(InPlace: pass_on);
}

#[warn(clippy::missing_trait_methods)]
impl<P: Protocol> Versions<Recorded<P>> for Recorded<P> {
    const WORDS: usize = P::Versions::WORDS;
    const SHORT_WORDS: usize = P::Versions::SHORT_WORDS;
    const SPARE_WORDS: usize = P::Versions::SPARE_WORDS;
    const KEEPS_DELETED_INDEX: bool = P::Versions::KEEPS_DELETED_INDEX;

    fn register_snapshot(
        clock: &Recorder<P::Clock>,
        attempt: &Attempt<P::Attempt>,
        since: Moment,
    ) -> Option<u64> {
        let time = P::Versions::register_snapshot(&clock.clock, &attempt.inner, since);
        attempt.registered.set(time);
        time
    }

    fn detach_for_snapshots(
        context: &mut Context<'_, Self>,
        due: &Due,
        table: &TableCore,
        units: &[CellAt],
    ) -> bool {
        let is_dead = P::Versions::detach_for_snapshots(&mut inner(context), due, table, units);
        if is_dead {
            Self::is_dead(context, table, units[0]);
        }
        is_dead
    }

    fn open_snapshot(clock: &Recorder<P::Clock>, since: Moment) -> u64 {
        let mut snapshots = lock(&clock.snapshots);
        let begun = clock.tick();
        let ts = P::Versions::open_snapshot(&clock.clock, since);
        snapshots.push(Opened { ts, begun });
        ts
    }

    fn close_snapshot(clock: &Recorder<P::Clock>, ts: u64, since: Moment) {
        let mut snapshots = lock(&clock.snapshots);
        P::Versions::close_snapshot(&clock.clock, ts, since);
        // Removes the last snapshot with this timestamp, since `opened` returns the first one for
        // all of them.
        let place = snapshots
            .iter()
            .rposition(|snapshot| snapshot.ts == ts)
            .expect("a snapshot is closed once");
        snapshots.remove(place);
    }

    fn leaves_some(session: &P::SessionVersions) -> bool {
        P::Versions::leaves_some(session)
    }

    fn leave_values(session: &mut P::SessionVersions, replaced: &mut Vec<Replaced>) {
        P::Versions::leave_values(session, replaced);
    }

    fn leave_behind(
        session: &mut P::SessionVersions,
        epochs: &Epochs,
        backlog: &mut P::Backlog,
        queued: &mut dyn FnMut() -> (Epoch, u64),
    ) -> usize {
        P::Versions::leave_behind(session, epochs, backlog, queued)
    }

    fn has_to_collect(backlog: &P::Backlog, horizon: Epoch) -> bool {
        P::Versions::has_to_collect(backlog, horizon)
    }

    fn collect(
        context: &mut Context<'_, Self>,
        backlog: &mut P::Backlog,
        tables: &[Arc<TableCore>],
        horizon: Epoch,
        budget: usize,
    ) {
        P::Versions::collect(&mut inner(context), backlog, tables, horizon, budget);
    }

    for_each_function!(Versions: pass_on);
}

impl<P: Versioned> Versioned for Recorded<P> {}
