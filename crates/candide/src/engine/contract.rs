//! The contract between transactions and concurrency control.

#![forbid(unsafe_code)]

use super::absence::Absence;
use super::context::Context;
use super::in_place::InPlace;
use super::observation::{Committed, Seen};
use super::properties::Properties;
use super::versions::Versions;
use crate::access::{Intent, WriteSet};
use crate::epoch::Epochs;
use crate::error::Abort;
use crate::index::Direction;
use crate::record::CellAt;
use crate::schema::{Op, WordRange, Words};
use crate::timestamps::Timestamps;
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
        }
    }

    /// Returns the sources that timestamps can be drawn from, the default first; empty if none are
    /// drawn.
    #[cfg(any(test, feature = "experiments"))]
    pub fn timestamps(&self) -> &'static [Timestamps] {
        self.timestamps
    }
}

/// A protocol that keeps old versions: its databases have [snapshots](crate::Snapshot).
pub trait Versioned: Protocol {}

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
pub trait Protocol: Absence {
    /// The protocol's name, as the command line spells it.
    const NAME: &'static str;

    /// Whether the serial order agrees with real time: a transaction comes after every one that had
    /// ended when it began.
    ///
    /// If not, transactions are still serializable, but a transaction may see the database as it
    /// was before another transaction that had already ended, as long as no chain of reads and
    /// writes leads from that one to it.
    const STRICT: bool;

    /// Whether an attempt that is going to fail sees, until it is aborted, only values that some
    /// serial order would show it. Only a strict protocol is called opaque: that order agrees with
    /// real time.
    ///
    /// If not, the closure of a doomed attempt may see values of different times (never a torn
    /// value) before it is repeated. The caller never sees the value, the error or the panic of
    /// such an attempt.
    const OPAQUE: bool;

    /// Whether the protocol is opaque by revalidations while the closure runs, which a database can
    /// switch off ([`Builder::opaque`](crate::Builder::opaque)).
    #[doc(hidden)]
    const OPAQUE_BY_LOOKS: bool = false;

    /// The sources from which the protocol can draw timestamps, the default first; empty if it
    /// draws none.
    #[doc(hidden)]
    const TIMESTAMPS: &'static [Timestamps] = &[];

    /// Words of a cell.
    #[doc(hidden)]
    const CELL_WORDS: usize;
    /// Words kept in each index bucket.
    #[doc(hidden)]
    const NODE_WORDS: usize;
    /// Whether there may be only one session at a time.
    #[doc(hidden)]
    const ONE_SESSION: bool = false;
    /// Whether an attempt whose only observation is the unit that [`Protocol::read_at_once`] has
    /// read at its beginning may end without a commit: it has nothing to validate, to publish, or
    /// to release.
    #[doc(hidden)]
    const SINGLE_READ_COMMITS: bool = false;

    /// The protocol's old versions: [`NoVersions`](super::NoVersions), or a type of its own.
    #[doc(hidden)]
    type Versions: Versions<Self>;
    /// The way in which writes are applied: [`Deferred`](super::Deferred) to the commit, or in
    /// place.
    #[doc(hidden)]
    type InPlace: InPlace<Self>;

    /// Returns the properties of databases that are built with a policy.
    fn properties(_policy: &Self::Policy) -> Properties {
        Properties::of::<Self>()
    }

    /// Makes the protocol's part of a new database, which draws timestamps from `timestamps`, if it
    /// draws any.
    #[doc(hidden)]
    fn clock(policy: &Self::Policy, timestamps: Timestamps, epochs: &Arc<Epochs>) -> Self::Clock;

    /// Makes a new session's part.
    #[doc(hidden)]
    fn attempt(clock: &Self::Clock) -> Self::Attempt;

    /// Starts an attempt. The session is pinned.
    #[doc(hidden)]
    fn begin(context: &mut Context<'_, Self>, attempt: &mut Self::Attempt);

    /// Observes a unit: calls `copy` with its words, perhaps several times. The words that the last
    /// call copied belong to one version (C3).
    #[doc(hidden)]
    fn read(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort>;

    /// Reads a unit that the attempt's write set does not hold, if that takes no waiting and no
    /// old version; otherwise returns `None`, and has observed nothing. What `copy` then has done
    /// means nothing.
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

    /// Returns whether the row exists right now, without observing it.
    #[doc(hidden)]
    fn is_present(attempt: &Self::Attempt, at: CellAt) -> bool;

    /// Returns whether the closure may be told, without observing the row, that it exists or does
    /// not. If not, the row has to be observed.
    #[doc(hidden)]
    #[inline(always)]
    fn assumes(
        _context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        exists: bool,
    ) -> Result<bool, Abort> {
        Ok(Self::is_present(attempt, at) == exists)
    }

    /// Notes the beginning of a scan over a range of keys, in ascending or descending order if a
    /// direction is given. The scan reports its progress by [`Protocol::scanned`]. Returns the
    /// scan's number in the attempt.
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

    /// Notes that a scan has reached a record, or the end of its range. (The scan observes records
    /// and nodes by [`Protocol::read`] and [`Protocol::absent`].)
    #[doc(hidden)]
    #[inline(always)]
    fn scanned(
        _context: &Context<'_, Self>,
        _attempt: &mut Self::Attempt,
        _scan: usize,
        _to: impl FnOnce() -> Option<CellAt>,
    ) {
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

    /// Commits, if all that was observed and written fits into the serial order (C1). After an
    /// error the attempt has ended as by [`Protocol::abort`] (C2).
    #[doc(hidden)]
    fn commit(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
    ) -> Result<Committed, Abort>;

    /// Ends the attempt without effect.
    #[doc(hidden)]
    fn abort(context: &mut Context<'_, Self>, attempt: &mut Self::Attempt, writes: &mut WriteSet);

    /// Prepares for the closure's error to be shown: observes what the writes assumed, and
    /// collects, unit after unit, the words to which they would have been applied. A commit without
    /// the writes then validates these observations. A protocol that has applied the writes already
    /// undoes them and returns the one that failed. If an updater has panicked, the attempt ends
    /// here with that panic.
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

    /// Returns a lower bound of the begin timestamps of all transactions that pin in a later epoch
    /// than one that is read after this.
    #[doc(hidden)]
    #[inline(always)]
    fn begin_ts_bound(_clock: &Self::Clock) -> u64 {
        0
    }

    /// Makes sure that the attempt sees the database as it was at `time`, a time of the protocol.
    ///
    /// # Errors
    /// A conflict, or [`Abort::NoIndex`] if the attempt has to read at an earlier time.
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

    /// Prefetches words `first..first + count` of a unit, from where the next read or update of
    /// them takes them.
    #[doc(hidden)]
    #[inline(always)]
    fn prefetch(_clock: &Self::Clock, at: CellAt, first: usize, count: usize) {
        at.prefetch(first, count);
    }
}
