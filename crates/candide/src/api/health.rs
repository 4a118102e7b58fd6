//! The state of a database, for monitoring.

#![forbid(unsafe_code)]

use super::database::Database;
use super::session::Session;
use super::table::Table;
use crate::engine::{Protocol, VersionTable, Versions};
use crate::epoch::Moment;
use crate::error::Abort;
use crate::schema::Record;
use crate::sync::lock;
use std::sync::{Arc, PoisonError};

/// The state of a database at one moment: what it holds, and which sessions and snapshots hold it
/// back. See [`Database::health`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// The time in milliseconds by which the reclamation bound is behind the epoch. A deleted row
    /// is freed when the bound has passed it, so memory stays unusable for this time after a
    /// delete. All databases of a process share their epochs: a transaction of another database may
    /// hold the bound back. The value, like every age, may be too small by a fiftieth.
    pub epoch_lag_ms: u64,
    /// The number of the process's epochs that a commit has ended because their 16,384 commit
    /// numbers were used up, under a protocol that numbers commits in an epoch. All other epochs
    /// but those of `epochs_asked` last for a millisecond or more. The epochs suffice for as many
    /// milliseconds as there are in eight years.
    pub epochs_used_up: u64,
    /// The number of the process's epochs that an attempt under `occ` has ended because it had met
    /// too many rows written since it began: in the new epoch, all of them belong to an earlier
    /// one. At most one epoch per millisecond ends so.
    pub epochs_asked: u64,
    /// The transaction of this database that has been running for the longest time; `None` if none
    /// is running.
    pub oldest_pin: Option<OldestPin>,
    /// The oldest open [`Snapshot`](crate::Snapshot), or the oldest snapshot that a long read-only
    /// transaction is registered at; `None` if there is neither. The versions that it sees are kept
    /// as long as it is open.
    pub oldest_snapshot: Option<OldestSnapshot>,
    /// The number of objects that wait until no transaction can see them: deleted records, unlinked
    /// blocks, and old versions (under some protocols, units that have old versions).
    pub garbage: usize,
    /// Bytes that tables and indexes have taken, as the memory limit counts them.
    pub reserved_bytes: usize,
    /// Sessions that exist, those included that threads keep for [`Database::run`].
    pub sessions: usize,
}

/// The transaction that has been running for the longest time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OldestPin {
    /// The time since its present attempt began, in milliseconds.
    pub age_ms: u64,
    /// Its session; see [`Session::number`](super::session::Session::number).
    pub session: u64,
}

/// The snapshot that has been open for the longest time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OldestSnapshot {
    /// The time since it was opened, in milliseconds.
    pub age_ms: u64,
    /// Its timestamp; see [`Snapshot::timestamp`](super::snapshot::Snapshot::timestamp).
    pub timestamp: u64,
}

/// The memory that one table takes. See [`Database::tables`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableUse {
    /// The table's name.
    pub name: String,
    /// Bytes taken for its records, free ones included: they serve the same table again.
    pub record_bytes: usize,
    /// Bytes taken for versions that lie apart from their records, free ones included; zero under
    /// protocols that keep one version.
    pub version_bytes: usize,
    /// Bytes taken for the buckets of its index. If a bucket has more keys than it holds, it
    /// overflows into lines of a store that all indexes share; these lines are counted only in
    /// [`Health::reserved_bytes`].
    pub index_bytes: usize,
}

impl<P: Protocol> Database<P> {
    /// Returns the state of the database. Takes the lock that sessions take when they are made and
    /// dropped, and for a moment the lock of each session's garbage; no transaction waits for it.
    /// The figures are read one after another, while transactions go on.
    ///
    /// ```
    /// use candide::{Abort, Database};
    ///
    /// let db = Database::new();
    /// let session = db.session()?;
    /// let health = db.health();
    /// assert_eq!((health.sessions, health.oldest_pin, health.garbage), (1, None, 0));
    /// db.run(|_| {
    ///     assert!(db.health().oldest_pin.is_some_and(|pin| pin.session != session.number()));
    ///     Ok::<_, Abort>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn health(&self) -> Health {
        let inner = &self.inner;
        let (mut sessions, mut garbage, mut oldest) =
            (0, inner.common_garbage(), None::<(u64, u64)>);
        inner.for_each_session(|public| {
            sessions += 1;
            garbage += lock(&public.garbage).len();
            if let Some(epoch) = public.slot.pinned_epoch()
                && oldest.is_none_or(|(smallest, _)| epoch < smallest)
            {
                oldest = Some((epoch, public.session));
            }
        });
        let epochs = &inner.engine.epochs;
        let snapshot = P::Versions::oldest_snapshot(&inner.engine.clock);
        let bound = epochs.bound();
        // A bound at the epoch lags behind nothing, however long the advancer sleeps.
        let lags_since = if bound < epochs.now() { epochs.moment_of(bound) } else { Moment::MAX };
        let since_pin = oldest.map(|(epoch, session)| (epochs.moment_of(epoch), session));
        // Last: nothing seen before is younger.
        let now = epochs.moment();
        let age_ms = |since: Moment| now.saturating_sub(since);
        Health {
            epoch_lag_ms: age_ms(lags_since),
            epochs_used_up: epochs.used_up(),
            epochs_asked: epochs.asked(),
            oldest_pin: since_pin
                .map(|(since, session)| OldestPin { age_ms: age_ms(since), session }),
            garbage,
            oldest_snapshot: snapshot
                .map(|(timestamp, since)| OldestSnapshot { age_ms: age_ms(since), timestamp }),
            reserved_bytes: inner.engine.memory.reserved_bytes(),
            sessions,
        }
    }

    /// Returns the tables and what they take, in the order in which they were created.
    pub fn tables(&self) -> Vec<TableUse> {
        let tables = self.inner.engine.tables.read().unwrap_or_else(PoisonError::into_inner);
        let table_use = tables.iter().map(|table| TableUse {
            name: table.name.to_string(),
            record_bytes: table.records.reserved_bytes(),
            version_bytes: table.versions.as_ref().map_or(0, VersionTable::bytes),
            index_bytes: table.index.bytes(),
        });
        table_use.collect()
    }
}

impl<R: Record, P: Protocol> Table<R, P> {
    /// Returns how many versions of a row there are right now: the longest chain of its column
    /// groups, from the version that a transaction beginning now sees (or one that a commit under
    /// way has linked already) to the oldest that a reader can still come to see, or that has not
    /// been collected yet. 1 under protocols that keep one version; `None` if there is no row.
    ///
    /// A reader of an old version walks the chain down to it; under `mvto` so does a reader of a
    /// row whose updates were put off, each of which is a version, too. So the length of a chain
    /// says what slows reads of a hot row, and what an open snapshot costs.
    ///
    /// It is no transaction: it observes nothing, changes nothing, and is not counted in
    /// [`Session::stats`]. It does not see what transactions have written and not committed, and no
    /// writer makes it fail or wait; under a protocol that runs transactions one after another it
    /// waits for its turn. It takes a lookup and a step for each version, during which no deleted
    /// row is freed.
    ///
    /// ```
    /// use candide::{Abort, Database, Mvcc, Record};
    ///
    /// #[derive(Record, Clone, Copy)]
    /// struct Counter { #[key] id: u64, count: u64 }
    ///
    /// let db = Database::<Mvcc>::builder().build()?;
    /// let counters = db.table::<Counter>("counters")?;
    /// let mut session = db.session()?;
    /// assert_eq!(counters.versions_of(&mut session, &1)?, None);
    /// session.run(|tx| counters.insert(tx, Counter { id: 1, count: 0 }))?;
    /// assert_eq!(counters.versions_of(&mut session, &1)?, Some(1));
    /// let before = db.snapshot();
    /// session.run(|tx| counters.update(tx, &1, Counter::COUNT.add(1)))?;
    /// assert_eq!(counters.versions_of(&mut session, &1)?, Some(2), "the snapshot keeps the first one");
    /// # drop(before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Abort::ForeignTable`] if the session is of another database; [`Abort::Nested`] if this
    /// thread is in a transaction of the same database and would have to wait for itself.
    pub fn versions_of(
        &self,
        session: &mut Session<P>,
        key: &R::Key,
    ) -> Result<Option<usize>, Abort> {
        if !Arc::ptr_eq(self.inner(), session.inner()) {
            return Err(Abort::ForeignTable);
        }
        self.in_words(key, |key| {
            self.core().check_key(key);
            session.versions_of(self.core(), key)
        })
    }
}
