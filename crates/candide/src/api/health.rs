//! The state of a database, for monitoring.

#![forbid(unsafe_code)]

use super::database::Database;
use super::session::Session;
use super::table::Table;
use crate::engine::{Protocol, VersionTable, Versions};
use crate::epoch::Moment;
use crate::error::Abort;
use crate::schema::Record;
use std::sync::PoisonError;

/// The state of a database at one moment: the memory that it has taken, and the sessions and
/// snapshots that delay the freeing of memory. See [`Database::health`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// The time in milliseconds by which the reclamation bound is behind the epoch. A deleted row
    /// is freed when the bound has passed the epoch of the delete, so the row's memory stays
    /// unusable for this time. All databases of a process share their epochs, so a transaction of
    /// another database may hold the bound back. This time, like every age in this type, may be too
    /// small by a fiftieth.
    pub epoch_lag_ms: u64,
    /// The number of epochs of this process that a commit has ended because their 16,384 commit
    /// numbers were used up. Only protocols that number commits within an epoch end epochs so. All
    /// other epochs, except those in `epochs_asked`, last for a millisecond or more. If every epoch
    /// lasted for a millisecond, the epochs would suffice for eight years.
    pub epochs_used_up: u64,
    /// The number of epochs of this process that an attempt under `occ` has ended because it had
    /// read too many rows written since it began. Once the new epoch has begun, all these rows
    /// belong to earlier epochs. At most eight epochs between two passes of the advancer end this
    /// way.
    pub epochs_asked: u64,
    /// The transaction of this database that has been running for the longest time; `None` if none
    /// is running.
    pub oldest_pin: Option<OldestPin>,
    /// The oldest open [`Snapshot`](crate::Snapshot), or the oldest snapshot that a long read-only
    /// transaction is registered at; `None` if there is neither. The versions that this snapshot
    /// shows are kept as long as the snapshot is open.
    pub oldest_snapshot: Option<OldestSnapshot>,
    /// The number of objects that wait until no transaction can see them: deleted records, unlinked
    /// blocks, and old versions (under some protocols, units that have old versions).
    pub garbage: usize,
    /// The number of bytes that tables and indexes have taken, as the memory limit counts them.
    pub reserved_bytes: usize,
    /// The number of existing sessions, including those that threads keep for [`Database::run`].
    pub sessions: usize,
}

/// The transaction that has been running for the longest time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OldestPin {
    /// The time since the transaction's present attempt began, in milliseconds.
    pub age_ms: u64,
    /// The number of the transaction's session; see
    /// [`Session::number`](super::session::Session::number).
    pub session: u64,
}

/// The snapshot that has been open for the longest time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OldestSnapshot {
    /// The time since the snapshot was opened, in milliseconds.
    pub age_ms: u64,
    /// The snapshot's timestamp; see [`Snapshot::timestamp`](super::snapshot::Snapshot::timestamp).
    pub timestamp: u64,
}

/// The memory that one table takes. See [`Database::tables`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableUse {
    /// The table's name.
    pub name: String,
    /// Bytes taken for the table's records, including free records, which the same table uses
    /// again.
    pub record_bytes: usize,
    /// Bytes taken for versions that lie outside the records, including free ones; zero under
    /// protocols that keep one version.
    pub version_bytes: usize,
    /// Bytes taken for the buckets or nodes of the table's index. A bucket with too many keys
    /// overflows into lines of a store that all indexes share. These lines are counted only in
    /// [`Health::reserved_bytes`].
    pub index_bytes: usize,
}

impl<P: Protocol> Database<P> {
    /// Returns the state of the database. Takes the lock that sessions take when they are made and
    /// dropped; no transaction waits for that lock. Also takes, for a moment, the lock of each
    /// session's garbage. The figures are read one after another, while transactions continue.
    ///
    /// ```
    /// use candide::Database;
    ///
    /// let db = Database::new();
    /// let session = db.session()?;
    /// let health = db.health();
    /// assert_eq!((health.sessions, health.oldest_pin, health.garbage), (1, None, 0));
    /// db.run(|_| {
    ///     assert!(db.health().oldest_pin.is_some_and(|pin| pin.session != session.number()));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn health(&self) -> Health {
        let inner = &self.inner;
        let (mut sessions, mut garbage, mut oldest) =
            (0, inner.common_garbage(), None::<(u64, u64)>);
        inner.for_each_session(|public| {
            sessions += 1;
            garbage += public.garbage(&inner.engine.epochs).len();
            if let Some(epoch) = public.slot.pinned_epoch()
                && oldest.is_none_or(|(smallest, _)| epoch < smallest)
            {
                oldest = Some((epoch, public.session));
            }
        });
        let epochs = &inner.engine.epochs;
        let snapshot = P::Versions::oldest_snapshot(&inner.engine.clock);
        let bound = epochs.bound();
        // A bound that equals the epoch has no lag, however long the advancer sleeps.
        let lags_since = if bound < epochs.now() { epochs.moment_of(bound) } else { Moment::MAX };
        let since_pin = oldest.map(|(epoch, session)| (epochs.moment_of(epoch), session));
        // The present moment is read last, so no moment read above is later.
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

    /// Returns the memory use of each table, secondary indexes included, in the order in which they
    /// were created. In a database in files that has sequences, their table `candide.sequences` is
    /// one of them.
    pub fn tables(&self) -> Vec<TableUse> {
        let tables = self.inner.engine.tables.read().unwrap_or_else(PoisonError::into_inner);
        let in_use = tables.iter().filter(|table| !table.owner.is_none());
        let table_use = in_use.map(|table| TableUse {
            name: table.name.to_string(),
            record_bytes: table.records.reserved_bytes(),
            version_bytes: table.versions.as_ref().map_or(0, VersionTable::bytes),
            index_bytes: table.index.bytes(),
        });
        table_use.collect()
    }
}

impl<R: Record, P: Protocol> Table<R, P> {
    /// Returns the number of versions of a row: the length of the longest version chain among its
    /// column groups. A chain begins at the version that a transaction beginning now sees, or at a
    /// version that a commit under way has already linked. The count ends at the oldest version
    /// that a reader can still see or that has not been collected yet. The number is 1 under
    /// protocols that keep one version. `None` if there is no row with this key.
    ///
    /// A reader of an old version walks down the chain to that version. Under `mvto`, each deferred
    /// update is a version too, and a reader of the row walks down these versions. So the length of
    /// the chain shows the reason of slow reads of a hot row, and the cost of an open snapshot.
    ///
    /// The call is no transaction: it observes nothing, changes nothing, and does not count in
    /// [`Session::stats`]. The call does not see uncommitted writes, and no writer makes it fail or
    /// wait. But under a protocol that runs transactions one after another, the call waits for its
    /// turn. The call takes one lookup, and one step for each version; meanwhile no deleted row is
    /// freed.
    ///
    /// ```
    /// use candide::{Database, Mvcc, Record};
    ///
    /// #[derive(Record, Clone, Copy)]
    /// struct Counter { #[key] id: u64, count: u64 }
    ///
    /// let db = Database::<Mvcc>::default();
    /// let counters = db.table::<Counter>("counters")?;
    /// let mut session = db.session()?;
    /// assert_eq!(counters.versions_of(&mut session, &1)?, None);
    /// session.run(|tx| counters.insert(tx, Counter { id: 1, count: 0 }))?;
    /// assert_eq!(counters.versions_of(&mut session, &1)?, Some(1));
    /// let before = db.snapshot();
    /// session.run(|tx| counters.update(tx, 1, Counter::COUNT.add(1)))?;
    /// assert_eq!(counters.versions_of(&mut session, &1)?, Some(2), "the snapshot keeps the first one");
    /// # drop(before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Abort::ForeignTable`] if the session belongs to another database; [`Abort::Nested`] if
    /// this thread is in a transaction of the same database and would have to wait for itself.
    pub fn versions_of(
        &self,
        session: &mut Session<P>,
        key: &R::Key,
    ) -> Result<Option<usize>, Abort> {
        self.in_words(key, |key| session.versions_of(self.inner(), self.core(), key))
    }
}
