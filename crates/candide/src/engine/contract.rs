//! The contract between transactions and concurrency control.

#![forbid(unsafe_code)]

use super::absence::Absence;
use super::context::Context;
use super::in_place::InPlace;
use super::observation::{Committed, Seen};
use super::own_thread;
use super::properties::Properties;
use super::versions::Versions;
use super::watch::{Unwatched, Watch};
use crate::access::{ChangeSink, Intent, WriteSet};
use crate::epoch::Epochs;
use crate::error::Abort;
use crate::index::Direction;
use crate::log::LogTurn;
use crate::record::{CellAt, Tid};
use crate::schema::{NumberRange, Op, WordRange, Words};
use crate::stats::LockCounters;
use crate::sync::{Ordering, full_fence};
use crate::timestamps::Timestamps;
use std::any::Any;
use std::sync::Arc;

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
            version_words: P::Versions::WORDS,
            short_version_words: P::Versions::SHORT_WORDS,
            spare_words: P::Versions::SPARE_WORDS,
            applies_at_once: P::InPlace::APPLIES_AT_ONCE,
            keeps_deleted_index: P::Versions::KEEPS_DELETED_INDEX,
            opaque_by_looks: P::OPAQUE_BY_LOOKS,
            commits_stale: P::COMMITS_STALE,
            readable_cut: P::READABLE_CUT,
            late_rows: P::LATE_ROWS,
        }
    }

    /// Returns whether transactions may commit that OCC would abort, so that
    /// [`Stats::stale_commits`](crate::report::Stats::stale_commits) can be more than zero.
    #[cfg(any(test, feature = "experiments"))]
    pub fn commits_stale(&self) -> bool {
        self.commits_stale
    }

    /// Returns whether updates that cannot fail may be deferred, as deltas, in databases without a
    /// log.
    #[cfg(any(test, feature = "experiments"))]
    pub fn has_deltas(&self) -> bool {
        self.spare_words > 0
    }

    /// Returns the sources from which timestamps can be drawn, the default first; empty if the
    /// protocol draws no timestamps.
    #[cfg(any(test, feature = "experiments"))]
    pub fn timestamps(&self) -> &'static [Timestamps] {
        self.timestamps
    }
}

/// A protocol that keeps old versions: its databases have [snapshots](crate::Snapshot).
pub trait Versioned: Protocol {}

/// A protocol whose timestamps are the serial order and the stamps of its log, so that a database
/// under it can [follow](crate::replica) another one: [`Mvcc`](crate::Mvcc).
pub trait Replicable: Versioned {}

/// A concurrency-control algorithm `P`, by which the transactions of a `Database<P>` run.
///
/// # Contract
/// * **C1** The committed attempts are equivalent to one serial order, reads of absent keys
///   included.
/// * **C2** After an error of `commit`, or after `abort`, no effect of the attempt is left, and the
///   attempt holds no lock.
/// * **C3** An attempt that will abort may read values of different times, but never a torn value.
/// * **C4** Between the first lock of a commit and its last release, nothing is allocated and no
///   user code runs. The only exceptions are updaters, which run between validation and the first
///   install. (Locks taken by [`Protocol::read_for_update`] are held while the closure continues.)
///
/// The trait is sealed, because its functions take internal types.
///
/// A protocol chosen at run time ([`Erased`](crate::any::Erased)) does not have some constants. For
/// [`Erased`](crate::any::Erased), such a constant is true if it is true for at least one protocol.
/// [`Protocol::properties`] returns the actual properties of one database.
pub trait Protocol: Absence {
    /// The protocol's name, as the command line spells it.
    const NAME: &'static str;

    /// Whether the serial order agrees with real time: if transaction A ended before transaction B
    /// began, then A precedes B.
    ///
    /// If not, transactions are still serializable. But B may then see the database as it was
    /// before A, as long as no chain of data leads from A to B.
    const STRICT: bool;

    /// Whether every attempt, even one that is going to fail, sees only what some serial order
    /// would show it. Only a strict protocol is called opaque, so that this order agrees with real
    /// time.
    ///
    /// If not, the closure of an attempt that is going to fail may see values of different times
    /// (but never a torn value), before the next attempt repeats the closure. The result of such a
    /// closure (a value, an error or a panic) is never shown to the caller.
    const OPAQUE: bool;

    /// Whether the protocol is opaque because it validates repeatedly what an attempt has seen. A
    /// database can turn these validations off ([`Builder::opaque`](crate::Builder::opaque)).
    #[doc(hidden)]
    const OPAQUE_BY_LOOKS: bool = false;

    /// Whether [`Protocol::assumes_blindly`] may return true.
    #[doc(hidden)]
    const ASSUMES_BLINDLY: bool = false;

    /// The sources from which the protocol can draw timestamps, the default first; empty if the
    /// protocol draws no timestamps.
    #[doc(hidden)]
    const TIMESTAMPS: &'static [Timestamps] = &[];

    /// Whether an attempt may commit although a version that it has read was replaced before. The
    /// protocol then calls [`Context::note_staleness`].
    #[doc(hidden)]
    const COMMITS_STALE: bool = false;

    /// Whether there is one serial order of all transactions, those that only read included, in
    /// which the commits up to any cut are a prefix. Otherwise the commits up to a cut are only a
    /// state to which the database can be recovered.
    #[doc(hidden)]
    const READABLE_CUT: bool = true;

    /// Whether a commit may compute the keys of rows ([`Protocol::commit_late`]).
    #[doc(hidden)]
    const LATE_ROWS: bool = false;

    /// The number of words in a cell.
    #[doc(hidden)]
    const CELL_WORDS: usize;
    /// The number of words that the protocol keeps in each index bucket.
    #[doc(hidden)]
    const NODE_WORDS: usize;
    /// Whether there may be only one session at a time.
    #[doc(hidden)]
    const ONE_SESSION: bool = false;
    /// Whether an attempt that consists of one successful [`Protocol::read_at_once`] has thereby
    /// committed. Nothing then remains to be validated, published to other transactions, or
    /// released.
    #[doc(hidden)]
    const SINGLE_READ_COMMITS: bool = false;

    /// The protocol's old versions: [`NoVersions`](super::NoVersions), or a type of the protocol.
    #[doc(hidden)]
    type Versions: Versions<Self>;
    /// The way in which writes are applied: at the commit ([`Deferred`](super::Deferred)), or in
    /// place.
    #[doc(hidden)]
    type InPlace: InPlace<Self>;

    /// Returns the properties of databases that are built with the given policy.
    fn properties(_policy: &Self::Policy) -> Properties {
        Properties::of::<Self>()
    }

    /// Creates the protocol's part of a new database. `timestamps` is the source of timestamps, if
    /// the protocol draws any.
    #[doc(hidden)]
    fn clock(policy: &Self::Policy, timestamps: Timestamps, epochs: &Arc<Epochs>) -> Self::Clock;

    /// Returns the catalog's data on the locks of tables; `None` if all tables are locked alike.
    #[doc(hidden)]
    fn table_locks(_clock: &Self::Clock) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// Creates the protocol's part of a new session. `counts` are the session's counts of locks.
    #[doc(hidden)]
    fn attempt(clock: &Self::Clock, counts: &Arc<LockCounters>) -> Self::Attempt;

    /// Starts an attempt. The session is pinned.
    #[doc(hidden)]
    fn begin(context: &mut Context<'_, Self>, attempt: &mut Self::Attempt);

    /// Observes a unit. Calls `copy` with the unit's words, perhaps several times; the words of the
    /// last call belong together (C3).
    #[doc(hidden)]
    fn read(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort>;

    /// Reads a unit that the write set does not hold, if the read needs neither waiting nor an old
    /// version. Otherwise returns `None` and has observed nothing; the caller must then ignore the
    /// words with which `copy` was called. (Since this function is inlined, the copied words need
    /// not be in memory.)
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read_at_once(
        _attempt: &mut Self::Attempt,
        _at: CellAt,
        _copy: impl FnMut(Words<'_>),
    ) -> Option<Seen> {
        None
    }

    /// Reads a unit like [`Protocol::read`], for a transaction that means to write the unit. If the
    /// protocol can, it keeps other transactions from writing the unit until the attempt ends;
    /// readers are not held up. An absent row is only observed. The default is a plain read, which
    /// is enough if transactions do not overlap.
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

    /// Locks a unit as [`Protocol::read_for_update`] does, but observes nothing. Returns whether
    /// the unit is now locked; a unit of an absent row never is. By default nothing is locked.
    #[doc(hidden)]
    fn hold(
        _context: &mut Context<'_, Self>,
        _attempt: &mut Self::Attempt,
        _at: CellAt,
    ) -> Result<bool, Abort> {
        Ok(false)
    }

    /// Lets the observation that [`Protocol::read`] has just made, of the unit `at`, hold as long
    /// as a number of the unit is in `range`. Returns whether it has. By default the observation
    /// stays one of a version, which conflicts more often.
    #[doc(hidden)]
    fn loosen(_attempt: &mut Self::Attempt, _at: CellAt, _range: NumberRange) -> bool {
        false
    }

    /// Calls `each` for each observation of the attempt that [`Protocol::loosen`] has loosened:
    /// with the unit, and the number of the last version in which the number was in the range. For
    /// histories.
    #[doc(hidden)]
    fn loosened(_attempt: &Self::Attempt, _each: &mut dyn FnMut(CellAt, u64)) {}

    /// Takes the lock by policy of a unit, for writing or for reading, before the closure runs. By
    /// default nothing is locked.
    ///
    /// # Errors
    /// If the attempt must abort by the policy. The attempt then continues without the lock.
    #[doc(hidden)]
    fn lock_ahead(
        _context: &mut Context<'_, Self>,
        _attempt: &mut Self::Attempt,
        _at: CellAt,
        _writes: bool,
    ) -> Result<(), Abort> {
        Ok(())
    }

    /// Returns where sessions sleep until the lock of the unit `at` is released; `None` if no
    /// session holds it, or one of the same thread, which cannot continue meanwhile. The session
    /// holds nothing.
    #[doc(hidden)]
    fn lock_place(
        context: &mut Context<'_, Self>,
        _attempt: &Self::Attempt,
        at: CellAt,
    ) -> Option<u64> {
        let tid = Tid(at.cell_word(0).load(Ordering::Relaxed));
        let is_locked = tid.has(Tid::LOCK) && !tid.has(Tid::DEAD);
        let is_anothers = is_locked && !own_thread::is_held_by_another(at, context.local.id);
        is_anothers.then(|| at.address())
    }

    /// Called before the attempt links a record while another session holds the token. If the
    /// attempt need not end, waits for the token and returns true.
    #[doc(hidden)]
    fn waits_to_link(
        _context: &mut Context<'_, Self>,
        _attempt: &Self::Attempt,
        _table: u16,
    ) -> bool {
        false
    }

    /// Returns whether the commit of the attempt can compute the key of a row of this table from
    /// the results of steps. By default the closure's operation computes it.
    #[doc(hidden)]
    fn finds_keys_late(
        _context: &mut Context<'_, Self>,
        _attempt: &Self::Attempt,
        _table: u16,
    ) -> bool {
        false
    }

    /// Returns whether [`Protocol::assumes`] may answer for the row of a unit without a look at it.
    /// Before an operation returns the answer to the closure as a value, the row is observed.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn assumes_blindly(_context: &mut Context<'_, Self>, _at: CellAt) -> bool {
        false
    }

    /// Returns whether the row of a unit exists for ever, from the attempt's place in the serial
    /// order on. The row is not observed. By default no row does.
    #[doc(hidden)]
    fn is_permanent(
        _context: &mut Context<'_, Self>,
        _attempt: &mut Self::Attempt,
        _at: CellAt,
    ) -> Result<bool, Abort> {
        Ok(false)
    }

    /// Called when the session has waited at the place that [`Protocol::lock_place`] has returned
    /// for the unit `at`, with or without success. The session has been pinned all the time.
    #[doc(hidden)]
    fn end_wait(_context: &mut Context<'_, Self>, _at: CellAt) {}

    /// Returns whether the row exists right now. The row is not observed.
    #[doc(hidden)]
    fn is_present(attempt: &Self::Attempt, at: CellAt) -> bool;

    /// Returns whether an operation may return, without observing the row, that the row exists (if
    /// `exists`) or is absent. If `false`, the caller has to observe the row.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn assumes(
        _context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        exists: bool,
    ) -> Result<bool, Abort> {
        Ok(Self::is_present(attempt, at) == exists)
    }

    /// Notes the beginning of a scan over a range of keys. [`Protocol::scanned`] will report the
    /// scan's progress. With a direction, the scan visits the keys in order. Returns the number of
    /// the scan within the attempt.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn scan(
        _attempt: &mut Self::Attempt,
        _table: u16,
        _range: &WordRange,
        _direction: Option<Direction>,
    ) -> usize {
        0
    }

    /// Notes that a scan has reached a record, or the end of its range (`None`). (What the scan
    /// visits is observed by [`Protocol::absent`] and [`Protocol::read`].)
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn scanned(
        _context: &Context<'_, Self>,
        _attempt: &mut Self::Attempt,
        _scan: usize,
        _to: impl FnOnce() -> Option<CellAt>,
    ) {
    }

    /// Notes a write of the unit `at` in the write set.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
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

    /// Notes the insertion of a row whose record the attempt has just linked; no unit of the record
    /// is in the write set yet. `cells` are all units of the record. The words of the units are
    /// operands, unit after unit. By default the insertion goes to the shared write set, as in
    /// [`Protocol::stage`]; a protocol that overrides `stage` also overrides this function.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
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

    /// Checks whether the attempt's reads still allow it to commit, so that an attempt that is
    /// going to fail ends early.
    #[doc(hidden)]
    fn revalidate(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &WriteSet,
    ) -> Result<(), Abort>;

    /// Commits if everything that the attempt observed and wrote fits into the serial order (C1).
    /// After an error the attempt has ended as by [`Protocol::abort`] (C2).
    ///
    /// A commit that writes takes the session's turn to log (`turn`) after it has been granted its
    /// last lock and before it takes its stamp. The session does not wait for another transaction's
    /// closure while it has the turn.
    #[doc(hidden)]
    fn commit(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
        turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort>;

    /// Commits as [`Protocol::commit`] does, a write set with rows whose keys are known only when
    /// the commit has locked other rows. Only called if the protocol has [`Protocol::LATE_ROWS`] or
    /// [`Protocol::finds_keys_late`].
    #[doc(hidden)]
    fn commit_late(
        _context: &mut Context<'_, Self>,
        _attempt: &mut Self::Attempt,
        _writes: &mut WriteSet,
        _turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort> {
        unreachable!("the protocol has no late rows")
    }

    /// Passes every change that the attempt, which has just committed, has made to `sink`.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn changes(attempt: &Self::Attempt, writes: &WriteSet, sink: &mut impl ChangeSink) {
        let _ = attempt;
        writes.changes(sink);
    }

    /// Returns a cut: the stamp of each commit that takes its turn to log after this call is
    /// larger. By default, stamps are epochs, and this call ends the current one.
    #[doc(hidden)]
    fn cut(_clock: &Self::Clock, epochs: &Epochs) -> u64 {
        let epoch = epochs.now();
        epochs.end_epoch(epoch);
        epoch
    }

    /// Returns a stamp that is no smaller than those of all commits that have ended before the
    /// call. By default, stamps are epochs.
    #[doc(hidden)]
    fn last_stamp(_clock: &Self::Clock, epochs: &Epochs) -> u64 {
        epochs.now()
    }

    /// Returns a stamp that is no smaller than those of all commits that the attempt, which has
    /// been validated, has seen.
    #[doc(hidden)]
    fn seen_stamp(clock: &Self::Clock, epochs: &Epochs, _attempt: &Self::Attempt) -> u64 {
        Self::last_stamp(clock, epochs)
    }

    /// Returns the number of observations that the attempt has noted for validation: units and
    /// index nodes. After a commit, the number is still that of the committed attempt.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read_set_size(_attempt: &Self::Attempt) -> usize {
        0
    }

    /// Ends the attempt without effect.
    #[doc(hidden)]
    fn abort(context: &mut Context<'_, Self>, attempt: &mut Self::Attempt, writes: &mut WriteSet);

    /// Prepares to show the closure's error to the caller. Observes what the writes assumed, and
    /// appends to `images` the words to which the writes would have been applied, unit after unit.
    /// A commit without the writes then validates all observations. A protocol that has already
    /// applied the writes undoes them, and returns the outcome of the update that failed. If an
    /// updater has panicked, the attempt ends here with that panic.
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
            if Self::ASSUMES_BLINDLY
                && item.expects == Some(true)
                && !writes.may_fail(item)
                && Self::is_permanent(context, attempt, item.at)?
            {
                // What the operations have told the closure is true.
                continue;
            }
            let image = &mut images[start..];
            let copy = |words: Words<'_>| words.copy(0, count, |word, value| image[word] = value);
            if !item.accepts(Self::read(context, attempt, item.at, copy)?.present) {
                return Err(context.conflict(Abort::ExistenceChanged, item.at));
            }
        }
        Ok(None)
    }

    /// Watches everything that the attempt has observed. The attempt has been validated and has
    /// ended, and its session is still pinned, and still excludes other transactions if the
    /// protocol does so (WT5).
    ///
    /// # Errors
    /// If the session must not sleep for the lock. Such a session need not be woken.
    #[doc(hidden)]
    fn watch(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        watch: &mut Watch<'_>,
    ) -> Result<(), Unwatched>;

    /// Returns a lower bound on begin timestamps, and passes a full fence. If an epoch is read
    /// after this call, the bound holds for all transactions that pin in a later epoch, and the
    /// epoch is a stamp (EP2).
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn begin_ts_bound(_clock: &Self::Clock) -> u64 {
        full_fence(); // E10
        0
    }

    /// Makes sure that the attempt sees the state at `time`, or a later state. `time` is a time of
    /// the protocol's clock.
    ///
    /// # Errors
    /// A conflict; [`Abort::NoIndex`] if the attempt must see an earlier state.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn reach(
        _context: &mut Context<'_, Self>,
        _attempt: &mut Self::Attempt,
        _time: u64,
        _table: u16,
    ) -> Result<(), Abort> {
        Ok(())
    }

    /// Prefetches the words `first..first + count` of a unit, from the place where the next read or
    /// update of these words will look.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn prefetch(_clock: &Self::Clock, at: CellAt, first: usize, count: usize) {
        at.prefetch(first, count);
    }
}
