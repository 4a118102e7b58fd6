//! Histories: what each transaction read, went through and wrote, in which version, for a checker
//! to judge.
//!
//! [`Recorded<P>`] is a protocol that runs `P` and takes notes, which
//! [`Database::take_history`](crate::api::Database::take_history) hands over in the form of the
//! crate [`candide_check`]. A database that does not record is a `Database<P>`, in which no
//! instruction of this file exists.
//!
//! ```
//! use candide::{Abort, Database, Occ, Record, history::Recorded};
//!
//! #[derive(Record, Clone, Copy)]
//! struct Counter { #[key] id: u64, count: u64 }
//!
//! let db = Database::<Recorded<Occ>>::builder().build()?;
//! let counters = db.table::<Counter>("counters")?;
//! db.run(|tx| counters.insert(tx, Counter { id: 1, count: 0 }))?;
//! db.run(|tx| counters.modify(tx, &1, Counter::COUNT, |count| *count += 1))?;
//! let history = db.take_history();
//! assert_eq!(history.events.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is noted:
//! * Reads in the version of their unit. A unit that the transaction has written itself is read
//!   below its writes, if at all.
//! * What an operation found out that did nothing, too: that a key is missing, or that its row is
//!   there already; and what the writes before it assumed, if the closure ends in its error.
//! * What reads by a snapshot, as begun when that was opened. A transaction that only reads, and
//!   whose view is kept like a snapshot's because it takes long, has begun when it began.
//! * Ranges as far as they were gone through. A scan of a table without order that was given up is
//!   not among them; the rows it gave are.
//! * A row that is read outside of transactions as what it is here: a transaction of one read.
//! * Serial protocols have no versions; there the versions are made here, as nothing else can run
//!   meanwhile.
//!
//! What is not noted, so that no checker can judge it:
//! * What raw iteration reads, by itself or for an export: it is no transaction, and none runs
//!   beside it.
//! * What blind writes assume of a record that is there, and a commit checks: that there is a row
//!   to update or to delete, or none where one is inserted. Only what was written is noted.
//! * On what an update failed at commit, by its guard or by an overflow: such a transaction is
//!   noted with what it has read before, and without writes.

#![forbid(unsafe_code)]

use crate::access::{Intent, WriteSet};
use crate::engine::{
    Committed, Context, Due, Fate, GcOutcome, Missing, Properties, Protocol, ReadView, Seen,
    TableCore, UndoEntry, Versioned,
};
use crate::epoch::{Epoch, Epochs, Moment};
use crate::error::Abort;
use crate::index::{Direction, NodeAt, NodeChange};
use crate::record::CellAt;
use crate::schema::{Edge, Op, WordRange, Words};
use crate::sync::{AtomicU64, Instant, Mutex, Ordering, lock};
use crate::timestamps::Timestamps;
pub use candide_check::{Access, Event, Forgotten, Key, Scan, Transaction};
use crossbeam_utils::CachePadded;
use std::collections::{HashMap, HashSet};
use std::marker::PhantomData;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Runs transactions by `P` and records their histories.
#[derive(Debug)]
pub struct Recorded<P>(PhantomData<P>);

/// A part of a history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// What has ended since the batch before, in no particular order.
    pub events: Vec<Event>,
    /// Every transaction that began before this time is in this batch or in an earlier one.
    pub complete_before: u64,
}

/// What a recorded database keeps.
#[derive(Debug)]
pub struct Recorder<C> {
    clock: C,
    /// Whether the protocol has versions.
    has_versions: bool,
    time: CachePadded<AtomicU64>,
    /// By session, so that sessions do not wait for one another.
    shares: [CachePadded<Mutex<Share>>; SHARES],
    /// The latest versions that deleted rows of which there is a record still.
    tombstones: Mutex<HashMap<(u16, Key), u64>>,
    /// The versions of all rows, where the protocol has none.
    versions: Mutex<HashMap<(u16, Key), u64>>,
    /// Open snapshots.
    snapshots: Mutex<Vec<Opened>>,
}

/// A snapshot, and when it was opened: what reads by it is noted as begun then.
#[derive(Debug, Clone, Copy)]
struct Opened {
    ts: u64,
    begun: u64,
}

const SHARES: usize = 16;

/// What some of the sessions have to tell.
#[derive(Debug, Default)]
struct Share {
    events: Vec<Event>,
    /// When the running attempts began, by session.
    running: Vec<(u64, u64)>,
}

impl<C> Recorder<C> {
    /// Makes a recorder around the part that is the protocol's.
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

/// What a session has noted of its running attempt.
#[derive(Debug)]
pub struct Attempt<A> {
    inner: A,
    begun: u64,
    reads: Vec<Noted>,
    scans: Vec<Passage>,
    /// What it has applied already, and whether it left a row there; where the protocol has no
    /// versions.
    applied: Vec<(CellAt, bool)>,
}

/// A read.
#[derive(Debug)]
enum Noted {
    /// Of a unit: whose it is can be told in the end, as its record stays until then.
    Unit(CellAt, Seen),
    /// Of a key of a table that has no record.
    Missing(u16, Key),
}

/// A scan on its way.
#[derive(Debug)]
struct Passage {
    table: u16,
    from: Bound<Key>,
    to: Bound<Key>,
    direction: Option<Direction>,
    /// The keys whose records it has met, in this order.
    met: Vec<Key>,
    is_over: bool,
}

impl Passage {
    /// What it has gone through without the keys it has met and not read: the transaction has
    /// written them itself, so it did not look at what the database has there.
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
    /// The next moment.
    fn tick(&self) -> u64 {
        // SeqCst: the moments of all threads are one order, which agrees with what else they do.
        self.time.fetch_add(1, Ordering::SeqCst)
    }

    fn share(&self, session: u64) -> &Mutex<Share> {
        &self.shares[session as usize % SHARES]
    }

    /// What has ended since the last call.
    pub(crate) fn take(&self) -> Batch {
        let mut batch = Batch { events: Vec::new(), complete_before: self.tick() };
        // Before the shares: who reads by a snapshot that is closed by now is in one of them.
        let first = lock(&self.snapshots).iter().map(|snapshot| snapshot.begun).min();
        batch.complete_before =
            first.map_or(batch.complete_before, |first| first.min(batch.complete_before));
        for share in &self.shares {
            // An attempt that has begun before that tick is noted here as running, or has been
            // and has ended.
            let share = &mut *lock(share);
            batch.events.append(&mut share.events);
            let first = share.running.iter().map(|&(_, begun)| begun).min();
            batch.complete_before =
                first.map_or(batch.complete_before, |first| first.min(batch.complete_before));
        }
        batch
    }

    /// Notes that an attempt begins; gives the time.
    fn begins(&self, session: u64) -> u64 {
        let share = &mut *lock(self.share(session));
        let begun = self.tick();
        share.running.push((session, begun));
        begun
    }

    /// The first snapshot with this timestamp: all of them see the same.
    fn opened(&self, ts: u64) -> Opened {
        let snapshots = lock(&self.snapshots);
        *snapshots.iter().find(|snapshot| snapshot.ts == ts).expect("it is open while it is used")
    }

    /// Notes that an attempt which was no transaction's has ended.
    fn lapses(&self, session: u64) {
        lock(self.share(session)).running.retain(|&(running, _)| running != session);
    }

    /// Notes that an attempt has ended.
    fn ends(&self, mut transaction: Transaction) {
        let share = &mut *lock(self.share(transaction.session));
        transaction.ended = self.tick();
        share.running.retain(|&(session, _)| session != transaction.session);
        share.events.push(Event::Transaction(transaction));
    }

    /// Notes that a deleted row leaves no trace.
    fn forgets(&self, session: u64, table: u16, key: Key, version: u64) {
        let share = &mut *lock(self.share(session));
        share.events.push(Event::Forgotten(Forgotten { table, key, version, at: self.tick() }));
    }
}

/// The context for the protocol that does the work.
fn inner<'a, P: Protocol>(context: &'a mut Context<'_, Recorded<P>>) -> Context<'a, P> {
    Context { engine: context.engine, clock: &context.clock.clock, local: context.local }
}

fn key_of<P: Protocol>(context: &Context<'_, P>, at: CellAt) -> Key {
    key_in(&context.engine.table(at.table()), at)
}

fn key_in(table: &TableCore, at: CellAt) -> Key {
    at.record().key_words(table.layout.key_words()).as_slice().into()
}

impl<P: Protocol> Recorded<P> {
    /// Notes a read.
    fn note(attempt: &mut Attempt<P::Attempt>, at: CellAt, seen: Seen) {
        if !attempt.applied.iter().any(|(applied, _)| applied.address() == at.address()) {
            attempt.reads.push(Noted::Unit(at, seen));
        }
    }

    /// A read in full, before the attempt's writes have versions.
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
        let reads: Vec<Access> =
            attempt.reads.drain(..).map(|noted| Self::told(context, noted)).collect();
        let mut scans = Vec::new();
        if !attempt.scans.is_empty() {
            let read: HashSet<_> = reads.iter().map(|read| (read.table, &read.key)).collect();
            scans.extend(attempt.scans.drain(..).flat_map(|passage| passage.observed(&read)));
        }
        let (begun, as_of) = match context.local.read_view {
            ReadView::Snapshot(ts) => (context.clock.opened(ts).begun, Some(ts)),
            // Kept like what a snapshot sees, what it sees does not keep records of rows that came
            // later.
            ReadView::AtBegin => (attempt.begun, context.local.kept.map(|(time, _)| time)),
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

    /// Notes that what says of a row that it was deleted is about to leave its index.
    fn is_dead(context: &Context<'_, Self>, table: &TableCore, first: CellAt) {
        // Who collects has the list of tables, and may not ask for it again.
        let row = (first.table(), key_in(table, first));
        // A record that was never committed is not remembered.
        let version = lock(&context.clock.tombstones).remove(&row);
        if let Some(version) = version {
            context.clock.forgets(context.local.id, row.0, row.1, version);
        }
    }

    /// Notes which versions deleted rows, for when they are forgotten.
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

impl<P: Protocol> Protocol for Recorded<P> {
    const NAME: &'static str = P::NAME;
    const STRICT: bool = P::STRICT;
    const OPAQUE: bool = P::OPAQUE;
    const OPAQUE_BY_LOOKS: bool = P::OPAQUE_BY_LOOKS;
    const CELL_WORDS: usize = P::CELL_WORDS;
    const NODE_WORDS: usize = P::NODE_WORDS;
    const VERSION_WORDS: usize = P::VERSION_WORDS;
    const SHORT_VERSION_WORDS: usize = P::SHORT_VERSION_WORDS;
    const SPARE_WORDS: usize = P::SPARE_WORDS;
    const KEEPS_DELETED_INDEX: bool = P::KEEPS_DELETED_INDEX;
    const ONE_SESSION: bool = P::ONE_SESSION;
    const HAS_VERSIONS: bool = P::HAS_VERSIONS;
    // Who reads alone does not say when that is over.
    const SINGLE_READ_COMMITS: bool = false;
    const TIMESTAMPS: &'static [Timestamps] = P::TIMESTAMPS;
    type Policy = P::Policy;
    type Clock = Recorder<P::Clock>;
    type Attempt = Attempt<P::Attempt>;

    fn properties(policy: &P::Policy) -> Properties {
        P::properties(policy)
    }

    fn clock(policy: &P::Policy, timestamps: Timestamps, epochs: &Arc<Epochs>) -> Self::Clock {
        Recorder::around(P::clock(policy, timestamps, epochs), P::properties(policy).has_versions)
    }

    fn attempt(clock: &Self::Clock) -> Self::Attempt {
        let inner = P::attempt(&clock.clock);
        Attempt { inner, begun: 0, reads: Vec::new(), scans: Vec::new(), applied: Vec::new() }
    }

    fn enter(clock: &Self::Clock, until: Option<Instant>) -> Result<(), Abort> {
        P::enter(&clock.clock, until)
    }

    fn leave(clock: &Self::Clock) {
        P::leave(&clock.clock);
    }

    fn begin(context: &mut Context<'_, Self>, attempt: &mut Self::Attempt) {
        attempt.reads.clear();
        attempt.scans.clear();
        attempt.applied.clear();
        attempt.begun = context.clock.begins(context.local.id);
        P::begin(&mut inner(context), &mut attempt.inner);
    }

    fn has_failed(attempt: &Self::Attempt) -> bool {
        P::has_failed(&attempt.inner)
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

    fn mark(attempt: &mut Self::Attempt) -> usize {
        P::mark(&mut attempt.inner)
    }

    fn read_at_mark(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        mark: usize,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        let seen = P::read_at_mark(&mut inner(context), &mut attempt.inner, at, mark, copy)?;
        Self::note(attempt, at, seen);
        Ok(seen)
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

    fn hold(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        at: CellAt,
    ) -> Result<bool, Abort> {
        P::hold(&mut inner(context), &mut attempt.inner, at)
    }

    fn peek(attempt: &Self::Attempt, at: CellAt) -> bool {
        P::peek(&attempt.inner, at)
    }

    fn assumes(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        exists: bool,
    ) -> Result<bool, Abort> {
        P::assumes(&mut inner(context), &mut attempt.inner, at, exists)
    }

    fn is_older(attempt: &Self::Attempt, at: CellAt) -> bool {
        P::is_older(&attempt.inner, at)
    }

    fn chain_length(clock: &Self::Clock, attempt: &Self::Attempt, at: CellAt) -> Option<usize> {
        P::chain_length(&clock.clock, &attempt.inner, at)
    }

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

    fn make_room(
        context: &mut Context<'_, Self>,
        attempt: &Self::Attempt,
        table: &TableCore,
    ) -> Result<(), Abort> {
        P::make_room(&mut inner(context), &attempt.inner, table)
    }

    fn stage(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort> {
        if !context.clock.has_versions {
            attempt.applied.retain(|(applied, _)| applied.address() != at.address());
            attempt.applied.push((at, intent != Intent::Delete));
        }
        P::stage(&mut inner(context), &mut attempt.inner, writes, at, intent, op)
    }

    fn stage_new(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
        cells: impl Iterator<Item = CellAt> + Clone,
        operand: u32,
    ) -> Result<(), Abort> {
        if !context.clock.has_versions {
            for at in cells.clone() {
                attempt.applied.retain(|(applied, _)| applied.address() != at.address());
                attempt.applied.push((at, true));
            }
        }
        P::stage_new(&mut inner(context), &mut attempt.inner, writes, cells, operand)
    }

    fn revalidate(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &WriteSet,
    ) -> Result<(), Abort> {
        P::revalidate(&mut inner(context), &mut attempt.inner, writes)
    }

    fn commit(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
    ) -> Result<Committed, Abort> {
        let commit = || P::commit(&mut inner(context), &mut attempt.inner, writes);
        let result = catch_unwind(AssertUnwindSafe(commit)).unwrap_or_else(|panic| {
            Self::end(context, attempt, true, std::iter::empty());
            resume_unwind(panic)
        });
        match result {
            Ok(Committed { version }) if context.clock.has_versions => {
                let made = writes.items().iter().filter(|item| !item.untouched);
                Self::end(
                    context,
                    attempt,
                    true,
                    made.map(|item| (item.at, version, item.present)),
                );
            }
            Ok(_) => {
                let mut applied = std::mem::take(&mut attempt.applied);
                let versions = &context.clock.versions;
                let was_there =
                    |at: CellAt| lock(versions).contains_key(&(at.table(), key_of(context, at)));
                // What came and went again has not been written.
                applied.retain(|&(at, present)| present || was_there(at));
                let version = context.clock.tick();
                Self::end(
                    context,
                    attempt,
                    true,
                    applied.into_iter().map(|(at, present)| (at, version, present)),
                );
            }
            // What these outcomes rest on has been validated, like what an updater panics on.
            Err(Abort::Guard | Abort::Overflow) => {
                Self::end(context, attempt, true, std::iter::empty())
            }
            Err(_) => Self::end(context, attempt, false, std::iter::empty()),
        }
        result
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
        // What is observed only now is part of what the error is based on.
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

    fn init_absent_cell(clock: &Self::Clock, at: CellAt) {
        P::init_absent_cell(&clock.clock, at);
    }

    fn inherit_from_node(clock: &Self::Clock, node: NodeAt, at: CellAt) {
        P::inherit_from_node(&clock.clock, node, at);
    }

    fn linked(attempt: &mut Self::Attempt, node: NodeAt, before: u64, after: u64, first: CellAt) {
        P::linked(&mut attempt.inner, node, before, after, first);
    }

    fn divided(attempt: &mut Self::Attempt, change: &NodeChange) {
        P::divided(&mut attempt.inner, change);
    }

    fn enqueue_if_absent(clock: &Self::Clock, first: CellAt) -> bool {
        P::enqueue_if_absent(&clock.clock, first)
    }

    fn time(clock: &Self::Clock) -> u64 {
        P::time(&clock.clock)
    }

    fn node_seen_until(clock: &Self::Clock, node: NodeAt) -> u64 {
        P::node_seen_until(&clock.clock, node)
    }

    fn see_node_until(clock: &Self::Clock, node: NodeAt, time: u64) -> bool {
        P::see_node_until(&clock.clock, node, time)
    }

    fn seen_until(clock: &Self::Clock, at: CellAt) -> u64 {
        P::seen_until(&clock.clock, at)
    }

    fn reach(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        time: u64,
        table: u16,
    ) -> Result<(), Abort> {
        P::reach(&mut inner(context), &mut attempt.inner, time, table)
    }

    fn register_snapshot(
        clock: &Self::Clock,
        attempt: &Self::Attempt,
        since: Moment,
    ) -> Option<u64> {
        P::register_snapshot(&clock.clock, &attempt.inner, since)
    }

    fn unregister_snapshot(clock: &Self::Clock, time: u64, since: Moment) {
        P::unregister_snapshot(&clock.clock, time, since);
    }

    fn oldest_snapshot(clock: &Self::Clock) -> Option<(u64, Moment)> {
        P::oldest_snapshot(&clock.clock)
    }

    fn begin_collecting(context: &mut Context<'_, Self>, until: u64) {
        P::begin_collecting(&mut inner(context), until);
    }

    fn begin_burying(context: &mut Context<'_, Self>) {
        P::begin_burying(&mut inner(context));
    }

    fn look_at(context: &mut Context<'_, Self>, put: &UndoEntry, table: &TableCore) -> Fate {
        P::look_at(&mut inner(context), put, table)
    }

    fn end_looking(context: &mut Context<'_, Self>) {
        P::end_looking(&mut inner(context));
    }

    fn prefetch(clock: &Self::Clock, at: CellAt, first: usize, count: usize) {
        P::prefetch(&clock.clock, at, first, count);
    }

    fn approach(clock: &Self::Clock, due: impl Iterator<Item = CellAt> + Clone) {
        P::approach(&clock.clock, due);
    }

    fn reap(
        context: &mut Context<'_, Self>,
        due: &mut Due,
        table: &TableCore,
        units: &[CellAt],
        horizon: Epoch,
    ) -> GcOutcome {
        let burial = P::reap(&mut inner(context), due, table, units, horizon);
        if burial == GcOutcome::Dead {
            Self::is_dead(context, table, units[0]);
        }
        burial
    }

    fn detach_for_snapshots(
        context: &mut Context<'_, Self>,
        due: &Due,
        table: &TableCore,
        units: &[CellAt],
    ) -> bool {
        let is_dead = P::detach_for_snapshots(&mut inner(context), due, table, units);
        if is_dead {
            Self::is_dead(context, table, units[0]);
        }
        is_dead
    }

    fn merge_into_node(clock: &Self::Clock, node: NodeAt, at: CellAt) {
        P::merge_into_node(&clock.clock, node, at);
    }
}

impl<P: Versioned> Versioned for Recorded<P> {
    fn open_snapshot(clock: &Self::Clock, since: Moment) -> u64 {
        let mut snapshots = lock(&clock.snapshots);
        let begun = clock.tick();
        let ts = P::open_snapshot(&clock.clock, since);
        snapshots.push(Opened { ts, begun });
        ts
    }

    fn close_snapshot(clock: &Self::Clock, ts: u64, since: Moment) {
        let mut snapshots = lock(&clock.snapshots);
        P::close_snapshot(&clock.clock, ts, since);
        // The last: what was read by the others was noted with the first.
        let place = snapshots
            .iter()
            .rposition(|snapshot| snapshot.ts == ts)
            .expect("a snapshot is closed once");
        snapshots.remove(place);
    }
}
