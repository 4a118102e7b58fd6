//! The contract between transactions and concurrency control.

#![forbid(unsafe_code)]

use super::context::Context;
use super::garbage::{Due, Fate, GcOutcome, UndoEntry};
use super::observation::{Committed, Missing, Seen};
use super::table_core::TableCore;
use crate::access::{Intent, WriteSet};
use crate::epoch::{Epoch, Epochs, Moment};
use crate::error::Abort;
use crate::index::{Direction, NodeAt, NodeChange};
use crate::record::CellAt;
use crate::schema::{Op, WordRange, Words};
use crate::sync::Instant;
use crate::timestamps::Timestamps;
use std::fmt::Debug;
use std::sync::Arc;

/// Properties of a protocol's databases, by the policy that they are built with.
#[derive(Debug, Clone, Copy)]
pub struct Properties {
    /// The name on the command line: that of the protocol, or of its policy if it has several.
    pub name: &'static str,
    /// [`Protocol::STRICT`].
    pub strict: bool,
    /// [`Protocol::OPAQUE`].
    pub opaque: bool,
    /// [`Protocol::TIMESTAMPS`].
    pub timestamps: &'static [Timestamps],
    /// Whether there may be only one session at a time.
    pub one_session: bool,
    pub(crate) cell_words: usize,
    pub(crate) node_words: usize,
    pub(crate) version_words: usize,
    pub(crate) short_version_words: usize,
    pub(crate) spare_words: usize,
    #[cfg_attr(not(any(test, feature = "history")), expect(dead_code, reason = "for histories"))]
    pub(crate) has_versions: bool,
    pub(crate) keeps_deleted_index: bool,
    /// [`Protocol::OPAQUE_BY_LOOKS`].
    pub(crate) opaque_by_looks: bool,
}

impl Properties {
    /// Returns the constants of a protocol.
    pub(crate) const fn of<P: Protocol>() -> Properties {
        Properties {
            name: P::NAME,
            strict: P::STRICT,
            opaque: P::OPAQUE,
            timestamps: P::TIMESTAMPS,
            one_session: P::ONE_SESSION,
            cell_words: P::CELL_WORDS,
            node_words: P::NODE_WORDS,
            version_words: P::VERSION_WORDS,
            short_version_words: P::SHORT_VERSION_WORDS,
            spare_words: P::SPARE_WORDS,
            has_versions: P::HAS_VERSIONS,
            keeps_deleted_index: P::KEEPS_DELETED_INDEX,
            opaque_by_looks: P::OPAQUE_BY_LOOKS,
        }
    }
}

/// A protocol that keeps old versions: its databases have [snapshots](crate::Snapshot).
pub trait Versioned: Protocol {
    /// Opens a snapshot of now, which the caller has taken for this moment; gives its timestamp.
    #[doc(hidden)]
    fn open_snapshot(clock: &Self::Clock, since: Moment) -> u64;

    /// Closes a snapshot.
    #[doc(hidden)]
    fn close_snapshot(clock: &Self::Clock, ts: u64, since: Moment);
}

/// One concurrency-control algorithm: `Database<P>` runs its transactions by it.
///
/// # Contract
/// * **C1** The committed attempts are equivalent to one serial order, absent keys included.
/// * **C2** After an error of `commit`, or `abort`, no effect of the attempt is left and nothing is
///   locked.
/// * **C3** An attempt that will abort may read values of different times, never a torn value.
/// * **C4** Nothing is allocated, and no user code runs, between the first lock of a commit and the
///   last release, save updaters between validation and the first install. (What
///   [`Protocol::read_for_update`] locks is held while the closure runs on.)
///
/// The trait is sealed: its functions speak of internals.
///
/// Constants that a protocol chosen at run time ([`Erased`](crate::Erased)) cannot know are true of
/// all protocols there if they are of any; [`Protocol::properties`] has those of one database.
pub trait Protocol: Sized + Send + Sync + Debug + 'static {
    /// The protocol's name, as the command line spells it.
    const NAME: &'static str;

    /// Whether the serial order agrees with real time: a transaction comes after every one that had
    /// ended when it began.
    ///
    /// Without it transactions are serializable all the same, but one may see the database as it
    /// was before another one that had ended, as long as no chain of data leads from the one to the
    /// other.
    const STRICT: bool;

    /// Whether an attempt that is going to fail sees, until it is told, only what some serial order
    /// would show it. Only a strict protocol is called opaque: that order agrees with real time.
    ///
    /// Without it the closure of a doomed attempt may see values of different times (never a torn
    /// one) before it is repeated. What it makes of them, a value, an error or a panic, is never
    /// shown to the caller.
    const OPAQUE: bool;

    /// Whether it is opaque by looking at what has been seen, so that a database can do without
    /// ([`Builder::opaque`](crate::api::Builder::opaque)).
    #[doc(hidden)]
    const OPAQUE_BY_LOOKS: bool = false;

    /// What it can draw timestamps from, as
    /// [`Builder::timestamps`](crate::api::Builder::timestamps) is asked for, the default first;
    /// empty if it draws none.
    const TIMESTAMPS: &'static [Timestamps] = &[];

    /// Words of a cell.
    #[doc(hidden)]
    const CELL_WORDS: usize;
    /// Words kept in each index bucket.
    #[doc(hidden)]
    const NODE_WORDS: usize;
    /// Words of a version before its payload; zero if the protocol keeps one version.
    #[doc(hidden)]
    const VERSION_WORDS: usize = 0;
    /// Words of a block for a version that is said by a few words; zero if all versions have as
    /// many.
    #[doc(hidden)]
    const SHORT_VERSION_WORDS: usize = 0;
    /// Words of a version's block behind its payload.
    #[doc(hidden)]
    const SPARE_WORDS: usize = 0;
    /// Whether there may be only one session at a time.
    #[doc(hidden)]
    const ONE_SESSION: bool = false;
    /// Whether what it says of versions means anything. If not, it applies writes at once, to
    /// records that are one unit, and unlinks what it deletes; and nothing runs at the same time.
    #[doc(hidden)]
    const HAS_VERSIONS: bool = true;
    /// Whether it puts records out of the way that only snapshots see:
    /// [`GcOutcome::MoveToDeletedIndex`].
    #[doc(hidden)]
    const KEEPS_DELETED_INDEX: bool = false;
    /// Whether a unit that [`Protocol::read_at_once`] has read at the beginning of an attempt is
    /// what a transaction of this one read would have committed with: there is nothing left to
    /// validate, to tell others, or to give back.
    #[doc(hidden)]
    const SINGLE_READ_COMMITS: bool = false;

    /// The choice that the protocol leaves when a database is built
    /// ([`Builder::policy`](crate::api::Builder::policy)).
    type Policy: Clone + Default + Debug + Send + Sync;

    /// The part of a database that is the protocol's.
    #[doc(hidden)]
    type Clock: Send + Sync + Debug;
    /// The part of a session that is the protocol's.
    #[doc(hidden)]
    type Attempt: Send;

    /// Returns the properties of databases that are built with a policy.
    fn properties(_policy: &Self::Policy) -> Properties {
        Properties::of::<Self>()
    }

    /// Makes a new database's part, which draws timestamps from there, if it draws any.
    #[doc(hidden)]
    fn clock(policy: &Self::Policy, timestamps: Timestamps, epochs: &Arc<Epochs>) -> Self::Clock;

    /// Makes a new session's part.
    #[doc(hidden)]
    fn attempt(clock: &Self::Clock) -> Self::Attempt;

    /// Waits for the right to run a transaction, until `until` at most if it is given, before the
    /// session is pinned; paired with [`Protocol::leave`].
    ///
    /// # Errors
    /// [`Abort::Nested`] if this thread would wait for itself, [`Abort::DeadlinePassed`] if it is
    /// too late.
    #[doc(hidden)]
    #[inline(always)]
    fn enter(_clock: &Self::Clock, _until: Option<Instant>) -> Result<(), Abort> {
        Ok(())
    }

    /// Gives back the right to run a transaction, after its commit or abort.
    #[doc(hidden)]
    #[inline(always)]
    fn leave(_clock: &Self::Clock) {}

    /// Starts an attempt. The session is pinned.
    #[doc(hidden)]
    fn begin(context: &mut Context<'_, Self>, attempt: &mut Self::Attempt);

    /// Whether an update has failed that the attempt has applied at once: then it can only end in
    /// that.
    #[doc(hidden)]
    #[inline(always)]
    fn has_failed(_attempt: &Self::Attempt) -> bool {
        false
    }

    /// Observes a unit: calls `copy` with its words, perhaps several times; what the last call
    /// copied belongs together.
    #[doc(hidden)]
    fn read(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort>;

    /// As [`Protocol::read`], and as [`Protocol::read_at_mark`] at any mark, of a unit that the
    /// attempt's write set does not hold, if it takes no waiting and nothing out of the way;
    /// otherwise nothing, and nothing has been observed. What `copy` then has done means nothing.
    /// (So the words need not be where a function that is called could find them.)
    #[doc(hidden)]
    #[inline(always)]
    fn read_at_once(
        _attempt: &mut Self::Attempt,
        _at: CellAt,
        _copy: impl FnMut(Words<'_>),
    ) -> Option<Seen> {
        None
    }

    /// As [`Protocol::read`], by a transaction that means to write the unit: a protocol that can
    /// keeps others from writing it until the attempt ends, while readers pass. An absent row is
    /// observed and no more. By default a read, which is all there is to do where transactions do
    /// not overlap.
    #[doc(hidden)]
    #[inline]
    fn read_for_update(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        Self::read(context, attempt, at, copy)
    }

    /// Locks a unit as [`Protocol::read_for_update`] does, and observes nothing. Returns whether
    /// the unit is locked: only a row that is there is. By default there is nothing to lock.
    #[doc(hidden)]
    fn hold(
        _context: &mut Context<'_, Self>,
        _attempt: &mut Self::Attempt,
        _at: CellAt,
    ) -> Result<bool, Abort> {
        Ok(false)
    }

    /// Whether the row exists right now, without observing it.
    #[doc(hidden)]
    fn peek(attempt: &Self::Attempt, at: CellAt) -> bool;

    /// Whether the row exists, or does not, as the closure is going to be told without observing
    /// it. If not, the row has to be observed.
    #[doc(hidden)]
    #[inline(always)]
    fn assumes(
        _context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        exists: bool,
    ) -> Result<bool, Abort> {
        Ok(Self::peek(attempt, at) == exists)
    }

    /// Whether a unit's newest version is later than what the attempt sees, of a protocol that
    /// [puts records out of the way](Self::KEEPS_DELETED_INDEX).
    #[doc(hidden)]
    fn is_older(_attempt: &Self::Attempt, _at: CellAt) -> bool {
        unreachable!("nothing is out of the way")
    }

    /// How many versions of a unit its chain holds right now, those included of commits that are
    /// under way; nothing if there is no row. Observes nothing, and does not wait. `attempt` is
    /// not running.
    #[doc(hidden)]
    fn chain_length(_clock: &Self::Clock, attempt: &Self::Attempt, at: CellAt) -> Option<usize> {
        Self::peek(attempt, at).then_some(1)
    }

    /// Takes note of a scan that begins, which will [get through](Protocol::scanned) a range of
    /// keys bit by bit, in their order if there is a direction; gives its number in the attempt.
    #[doc(hidden)]
    #[inline(always)]
    fn scan(
        _attempt: &mut Self::Attempt,
        _table: u16,
        _range: &WordRange,
        _direction: Option<Direction>,
    ) -> usize {
        0
    }

    /// Takes note that a scan has got to a record, or to the end of its range. (Observing what it
    /// goes through is a matter of [`Protocol::absent`] and [`Protocol::read`].)
    #[doc(hidden)]
    #[inline(always)]
    fn scanned(
        _context: &Context<'_, Self>,
        _attempt: &mut Self::Attempt,
        _scan: usize,
        _to: impl FnOnce() -> Option<CellAt>,
    ) {
    }

    /// What a scan that begins now may look back to, of an attempt that applies its writes at once.
    #[doc(hidden)]
    fn mark(_attempt: &mut Self::Attempt) -> usize {
        0
    }

    /// As [`Protocol::read`], of a unit that the attempt's write set did not hold at a mark:
    /// without the writes that the attempt has applied since.
    #[doc(hidden)]
    #[inline(always)]
    fn read_at_mark(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        _mark: usize,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        Self::read(context, attempt, at, copy)
    }

    /// Observes that keys have no record.
    #[doc(hidden)]
    fn absent(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        missing: Missing<'_>,
    ) -> Result<(), Abort>;

    /// Makes room for a record of a table that is about to be written as a whole: what is staged
    /// then is not refused.
    ///
    /// # Errors
    /// [`Abort::MemoryLimit`].
    #[doc(hidden)]
    #[inline(always)]
    fn make_room(
        _context: &mut Context<'_, Self>,
        _attempt: &Self::Attempt,
        _table: &TableCore,
    ) -> Result<(), Abort> {
        Ok(())
    }

    /// Takes note of a write.
    #[doc(hidden)]
    #[inline(always)]
    fn stage(
        _context: &mut Context<'_, Self>,
        _attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort> {
        writes.stage(at, intent, op);
        Ok(())
    }

    /// Takes note of the insertion of a row whose record the attempt has just linked, so that none
    /// of its units is in the write set. `cells` are all of them; their words are operands, one
    /// unit's after another's. By default into the shared write set, as
    /// [`Protocol::stage`]: a protocol that overrides that overrides this.
    #[doc(hidden)]
    #[inline(always)]
    fn stage_new(
        _context: &mut Context<'_, Self>,
        _attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
        cells: impl Iterator<Item = CellAt> + Clone,
        operand: u32,
    ) -> Result<(), Abort> {
        writes.stage_new(cells, operand);
        Ok(())
    }

    /// Looks whether the attempt is still bound to succeed as far as its reads go, so that a doomed
    /// one ends early.
    #[doc(hidden)]
    fn revalidate(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &WriteSet,
    ) -> Result<(), Abort>;

    /// Commits. After an error the attempt has ended as by [`Protocol::abort`].
    #[doc(hidden)]
    fn commit(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
    ) -> Result<Committed, Abort>;

    /// Ends the attempt without effect.
    #[doc(hidden)]
    fn abort(context: &mut Context<'_, Self>, attempt: &mut Self::Attempt, writes: &mut WriteSet);

    /// Prepares for the closure's error to be shown: observes what the writes assumed, collecting
    /// the words they would have been applied to, unit after unit. A commit without the writes then
    /// validates everything. A protocol that has applied them already takes them back and says
    /// which of them failed; if an updater has panicked, the attempt ends here, in that panic.
    #[doc(hidden)]
    fn validate_without_writes(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &WriteSet,
        images: &mut Vec<u64>,
    ) -> Result<Option<Abort>, Abort> {
        for item in writes.items() {
            let (start, count) = (images.len(), item.at.payload_words());
            images.resize(start + count, 0);
            let image = &mut images[start..];
            let copy = |words: Words<'_>| words.copy(0, count, |word, value| image[word] = value);
            if !item.accepts(Self::read(context, attempt, item.at, copy)?.present) {
                return Err(context.conflict(Abort::ExistenceChanged, item.at));
            }
        }
        Ok(None)
    }

    /// Writes the cells of a record that is about to be linked: the row is absent, and always was.
    /// The record can be found before [`Protocol::inherit_from_node`] has run; a protocol whose
    /// records inherit something keeps them locked until then.
    #[doc(hidden)]
    fn init_absent_cell(clock: &Self::Clock, at: CellAt);

    /// Lets a record inherit from the node it has just been linked in; called for every unit under
    /// the node's lock.
    #[doc(hidden)]
    #[inline(always)]
    fn inherit_from_node(_clock: &Self::Clock, _node: NodeAt, _at: CellAt) {}

    /// The attempt itself has linked a record with this first unit, taking `node` from one version
    /// to another. What vouched for the absence of keys in that node now is the new version, and
    /// for this key, the record.
    #[doc(hidden)]
    fn linked(attempt: &mut Self::Attempt, node: NodeAt, before: u64, after: u64, first: CellAt);

    /// The attempt itself has divided or moved a node: what vouched for keys there now is all of
    /// its successors.
    #[doc(hidden)]
    fn divided(attempt: &mut Self::Attempt, change: &NodeChange);

    /// Called when an attempt ends for every record it has linked: true if it was left absent and
    /// the caller has to queue it for burial.
    #[doc(hidden)]
    fn enqueue_if_absent(clock: &Self::Clock, first: CellAt) -> bool;

    /// Returns a lower bound of the begin timestamps of all transactions that pin in a later epoch
    /// than one that is read after this.
    #[doc(hidden)]
    #[inline(always)]
    fn time(_clock: &Self::Clock) -> u64 {
        0
    }

    /// Up to when, as the protocol's time goes, others may have seen what there is in a node now.
    #[doc(hidden)]
    #[inline(always)]
    fn node_seen_until(_clock: &Self::Clock, _node: NodeAt) -> u64 {
        0
    }

    /// Has what there is in a node now seen up to a time; says whether it was not yet.
    #[doc(hidden)]
    #[inline(always)]
    fn see_node_until(_clock: &Self::Clock, _node: NodeAt, _time: u64) -> bool {
        false
    }

    /// The same of a unit: up to when it may have been seen.
    #[doc(hidden)]
    #[inline(always)]
    fn seen_until(_clock: &Self::Clock, _at: CellAt) -> u64 {
        0
    }

    /// Makes sure that the attempt sees what there was at a time of the protocol's.
    ///
    /// # Errors
    /// A conflict, or [`Abort::NoIndex`] if it is to see what there was before.
    #[doc(hidden)]
    #[inline(always)]
    fn reach(
        _context: &mut Context<'_, Self>,
        _attempt: &mut Self::Attempt,
        _time: u64,
        _table: u16,
    ) -> Result<(), Abort> {
        Ok(())
    }

    /// Keeps what a running attempt sees that only reads, as for a snapshot that was opened at this
    /// moment: its time; or none, if the protocol keeps no versions.
    #[doc(hidden)]
    fn register_snapshot(
        _clock: &Self::Clock,
        _attempt: &Self::Attempt,
        _since: Moment,
    ) -> Option<u64> {
        None
    }

    /// Ends that.
    #[doc(hidden)]
    fn unregister_snapshot(_clock: &Self::Clock, _time: u64, _since: Moment) {}

    /// The timestamp of the oldest open snapshot, and the moment at which it was made.
    #[doc(hidden)]
    fn oldest_snapshot(_clock: &Self::Clock) -> Option<(u64, Moment)> {
        None
    }

    /// The session begins to look at what it has queued; what it has put aside may be freed that
    /// was replaced up to `until`.
    #[doc(hidden)]
    #[inline(always)]
    fn begin_collecting(_context: &mut Context<'_, Self>, _until: u64) {}

    /// Looks at what was put aside of a table in an epoch that the horizon had passed when the
    /// session began to look.
    #[doc(hidden)]
    fn look_at(_context: &mut Context<'_, Self>, _put: &UndoEntry, _table: &TableCore) -> Fate {
        unreachable!("nothing is put aside")
    }

    /// The session has looked at what was put aside, or has buried.
    #[doc(hidden)]
    #[inline(always)]
    fn end_looking(_context: &mut Context<'_, Self>) {}

    /// The session, which has just been pinned anew, begins to bury, and looks through chains for
    /// that, if the protocol does, until [`end_looking`](Protocol::end_looking).
    #[doc(hidden)]
    #[inline(always)]
    fn begin_burying(_context: &mut Context<'_, Self>) {}

    /// Prefetches words `first..first + count` of a unit, from where the next read or update of
    /// them takes them.
    #[doc(hidden)]
    #[inline(always)]
    fn prefetch(_clock: &Self::Clock, at: CellAt, first: usize, count: usize) {
        at.prefetch(first, count);
    }

    /// Brings nearer what [`Protocol::reap`] will look at. The caller is pinned, and the entries
    /// are its own.
    #[doc(hidden)]
    fn approach(_clock: &Self::Clock, due: impl Iterator<Item = CellAt> + Clone) {
        due.for_each(|at| at.prefetch_cell());
    }

    /// Does what is queued: tries to make an absent record dead, or collects old versions. `units`
    /// are all of the record, the first one first. The horizon of epochs has passed the entry's
    /// epoch.
    #[doc(hidden)]
    fn reap(
        context: &mut Context<'_, Self>,
        due: &mut Due,
        table: &TableCore,
        units: &[CellAt],
        horizon: Epoch,
    ) -> GcOutcome;

    /// Makes a record dead that is [`GcOutcome::MoveToDeletedIndex`], and is in the index of
    /// deleted records by now, unless an insert has locked it since; returns whether it did.
    #[doc(hidden)]
    fn detach_for_snapshots(
        _context: &mut Context<'_, Self>,
        _due: &Due,
        _table: &TableCore,
        _units: &[CellAt],
    ) -> bool {
        unreachable!("what snapshots see stays where it is")
    }

    /// Leaves to the node what must outlive a dead record; called for every unit under the node's
    /// lock.
    #[doc(hidden)]
    fn merge_into_node(_clock: &Self::Clock, _node: NodeAt, _at: CellAt) {}
}
