//! Counts of the sessions' transactions and operations.

#![forbid(unsafe_code)]

#[cfg(feature = "histograms")]
mod latency;
mod named;
#[cfg(feature = "histograms")]
mod named_aborts;

use crate::error::Abort;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crossbeam_utils::CachePadded;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

#[cfg(feature = "histograms")]
pub use latency::Latency;
pub use named::NamedStats;
pub(crate) use named::{NamedCount, Names, NamesByAddress, SessionNames};
#[cfg(feature = "histograms")]
pub(crate) use named_aborts::CountedAbort;
#[cfg(feature = "histograms")]
pub use named_aborts::NamedAborts;

/// Counts of the transactions and operations of one session, or of all sessions of a database.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Transactions that committed.
    pub commits: u64,
    /// Transactions that ended in an error or a panic of their closure, or in the panic of an
    /// updater.
    pub user_errors: u64,
    /// The number of attempts that were made because the previous attempt had a conflict.
    pub retries: u64,
    /// The number of entries in the read sets of all committed transactions: the column groups
    /// (whole rows, without timestamp splitting) and the index nodes whose versions the protocol
    /// noted in order to validate them. A group that is read twice has two entries, also if the
    /// second read is that of an update without [commit-time
    /// updates](crate::Builder::commit_time_updates). Reads of a transaction's own writes have no
    /// entry, and the assumptions of blind writes have none either. The average is this number
    /// divided by `commits`.
    ///
    /// A protocol that validates nothing ([`Serial`](crate::Serial)) notes nothing. The protocols
    /// with versions note nothing in read-only transactions and in snapshots, and
    /// [`Mvcc`](crate::Mvcc) notes nothing more once a transaction has read an old version.
    pub read_set: u64,
    /// The number of entries in the write sets of all committed transactions: the column groups
    /// (or whole rows) that they wrote, each counted once in a transaction, entries of secondary
    /// indexes included. [`Serial`](crate::Serial) writes in place and counts none.
    pub write_set: u64,
    /// The number of committed transactions that optimistic concurrency control would have aborted
    /// because of their reads. When such a transaction was validated, a column group (or whole row)
    /// that it had read had a newer version, or another commit was installing a newer version. Or
    /// an index node that it had searched without success had changed. OCC as in Silo validates
    /// exactly this, also for transactions that only read. Versions that the transaction itself
    /// wrote do not count.
    ///
    /// Counted under [`TicToc`](crate::TicToc), [`Mvcc`](crate::Mvcc) and [`Mvto`](crate::Mvto),
    /// and only if the database was built to (`Builder::count_stale_commits`, with the feature
    /// `experiments`); otherwise zero.
    pub stale_commits: u64,
    /// Locks on rows by the [policies](crate::policy::Policy) of tables. The locks that every
    /// commit takes on its write set do not count.
    pub locks: LockStats,
    /// One count for each reason, in the order of [`Abort::ALL`]. A conflict is counted for each
    /// attempt that ended in it, and so is an update's [`Abort::Guard`] or [`Abort::Overflow`].
    /// [`Abort::AttemptsExhausted`] and [`Abort::DeadlinePassed`] are counted for each transaction
    /// given up. Other refusals are counted if the engine itself refused to begin or commit. An
    /// outcome that a closure returns is one of the `user_errors`.
    pub aborts: [u64; Abort::ALL.len()],
}

impl Default for Stats {
    fn default() -> Stats {
        Stats {
            commits: 0,
            user_errors: 0,
            retries: 0,
            read_set: 0,
            write_set: 0,
            stale_commits: 0,
            locks: LockStats::default(),
            aborts: [0; Abort::ALL.len()],
        }
    }
}

impl Stats {
    /// Returns the name and the count of every reason, in the order of [`Abort::ALL`].
    pub fn abort_reasons(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Abort::ALL.iter().map(|abort| abort.name()).zip(self.aborts)
    }

    /// Returns the number of attempts that ended in a conflict of any kind. Outcomes and refusals
    /// do not count.
    pub fn total_aborts(&self) -> u64 {
        Abort::ALL
            .iter()
            .zip(self.aborts)
            .filter(|(abort, _)| abort.is_conflict())
            .map(|(_, count)| count)
            .sum()
    }

    pub(crate) fn add(&mut self, other: &Stats) {
        self.commits += other.commits;
        self.user_errors += other.user_errors;
        self.retries += other.retries;
        self.read_set += other.read_set;
        self.write_set += other.write_set;
        self.stale_commits += other.stale_commits;
        self.locks.add(other.locks);
        for (sum, count) in self.aborts.iter_mut().zip(other.aborts) {
            *sum += count;
        }
    }
}

/// Writes the reasons that have been counted, by their names, and none of the others.
impl fmt::Debug for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Reasons<'a>(&'a Stats);
        impl fmt::Debug for Reasons<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_map()
                    .entries(self.0.abort_reasons().filter(|&(_, count)| count > 0))
                    .finish()
            }
        }
        f.debug_struct("Stats")
            .field("commits", &self.commits)
            .field("user_errors", &self.user_errors)
            .field("retries", &self.retries)
            .field("read_set", &self.read_set)
            .field("write_set", &self.write_set)
            .field("stale_commits", &self.stale_commits)
            .field("locks", &self.locks)
            .field("aborts", &Reasons(self))
            .finish()
    }
}

/// Counts of locks on rows by the [policies](crate::policy::Policy) of tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockStats {
    /// Locks that were taken.
    pub taken: u64,
    /// Locks for which an attempt waited, successfully or not.
    pub waited: u64,
    /// Attempts that aborted because of a lock that they did not get.
    pub died: u64,
    /// Attempts that aborted because another transaction, of higher precedence, asked them to.
    pub killed: u64,
    /// Locks that a policy asked for, and without which the attempt continued.
    pub forgone: u64,
    /// Locks taken before the closure ran, because the attempt before had failed
    /// ([`Policy::Mocc`](crate::policy::Policy::Mocc) and
    /// [`Policy::Hybrid`](crate::policy::Policy::Hybrid)). These locks also count as taken.
    pub retrospective: u64,
    /// The number of times that an attempt has released locks in order to wait for a lock that
    /// comes before them in the order of locks, under the same policies.
    pub restored: u64,
    /// The number of times that a row has become hot, under
    /// [`Policy::Mocc`](crate::policy::Policy::Mocc).
    pub heated: u64,
    /// The number of times that a hot row has become cold.
    pub cooled: u64,
    /// Locks that a commit has taken over from another one that had not ended, under
    /// [`Policy::Pipelined`](crate::policy::Policy::Pipelined).
    pub taken_over: u64,
    /// Locks before which a commit waited because a commit before it was not as far, under the same
    /// policy.
    pub gated: u64,
    /// Attempts under the same policy that have failed after they had locked.
    pub nullified: u64,
    /// Attempts under the same policy whose commits waited for the ends of those before them, and
    /// were validated then (*wild*), since they had read rows.
    pub wild_reads: u64,
    /// Wild attempts that had read no rows, but that keys are absent, or ranges of keys.
    pub wild_keys: u64,
    /// Wild attempts that had read nothing, but replaced [`Boxed`](crate::objects::Boxed) values;
    /// and all others in the last 2^20 epochs.
    pub wild_others: u64,
    /// Attempts that have written a row under the same policy and locked it as under
    /// [`Policy::Optimistic`](crate::policy::Policy::Optimistic), since they had locked a row for
    /// update, or had a lock by another policy.
    pub unchained_holds: u64,
    /// The same, of attempts whose commits drew numbers of rows in sequences.
    pub unchained_late: u64,
    /// The same, for another reason: the attempt ran inside the commit of another transaction, the
    /// transaction had failed to get locks too often, or a rank was being changed.
    pub unchained_others: u64,
}

impl LockStats {
    /// Returns the counts since `earlier`, a former reading of the same counters.
    #[must_use]
    pub fn since(self, earlier: LockStats) -> LockStats {
        LockStats {
            taken: self.taken - earlier.taken,
            waited: self.waited - earlier.waited,
            died: self.died - earlier.died,
            killed: self.killed - earlier.killed,
            forgone: self.forgone - earlier.forgone,
            retrospective: self.retrospective - earlier.retrospective,
            restored: self.restored - earlier.restored,
            heated: self.heated - earlier.heated,
            cooled: self.cooled - earlier.cooled,
            taken_over: self.taken_over - earlier.taken_over,
            gated: self.gated - earlier.gated,
            nullified: self.nullified - earlier.nullified,
            wild_reads: self.wild_reads - earlier.wild_reads,
            wild_keys: self.wild_keys - earlier.wild_keys,
            wild_others: self.wild_others - earlier.wild_others,
            unchained_holds: self.unchained_holds - earlier.unchained_holds,
            unchained_late: self.unchained_late - earlier.unchained_late,
            unchained_others: self.unchained_others - earlier.unchained_others,
        }
    }

    fn add(&mut self, other: LockStats) {
        self.taken += other.taken;
        self.waited += other.waited;
        self.died += other.died;
        self.killed += other.killed;
        self.forgone += other.forgone;
        self.retrospective += other.retrospective;
        self.restored += other.restored;
        self.heated += other.heated;
        self.cooled += other.cooled;
        self.taken_over += other.taken_over;
        self.gated += other.gated;
        self.nullified += other.nullified;
        self.wild_reads += other.wild_reads;
        self.wild_keys += other.wild_keys;
        self.wild_others += other.wild_others;
        self.unchained_holds += other.unchained_holds;
        self.unchained_late += other.unchained_late;
        self.unchained_others += other.unchained_others;
    }
}

/// A session's counters of locks by policy. Only the session's thread writes them.
#[derive(Debug, Default)]
pub struct LockCounters(CachePadded<[AtomicU64; 18]>);

/// The counts about locks by policy, in the order of the fields of [`LockStats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockCount {
    Taken,
    Waited,
    Died,
    Killed,
    Forgone,
    Retrospective,
    Restored,
    Heated,
    Cooled,
    TakenOver,
    Gated,
    Nullified,
    WildReads,
    WildKeys,
    WildOthers,
    UnchainedHolds,
    UnchainedLate,
    UnchainedOthers,
}

impl LockCounters {
    pub(crate) fn count(&self, what: LockCount) {
        count(&self.0[what as usize], 1);
    }

    fn read(&self) -> LockStats {
        let read = |what: LockCount| self.0[what as usize].load(Ordering::Relaxed);
        LockStats {
            taken: read(LockCount::Taken),
            waited: read(LockCount::Waited),
            died: read(LockCount::Died),
            killed: read(LockCount::Killed),
            forgone: read(LockCount::Forgone),
            retrospective: read(LockCount::Retrospective),
            restored: read(LockCount::Restored),
            heated: read(LockCount::Heated),
            cooled: read(LockCount::Cooled),
            taken_over: read(LockCount::TakenOver),
            gated: read(LockCount::Gated),
            nullified: read(LockCount::Nullified),
            wild_reads: read(LockCount::WildReads),
            wild_keys: read(LockCount::WildKeys),
            wild_others: read(LockCount::WildOthers),
            unchained_holds: read(LockCount::UnchainedHolds),
            unchained_late: read(LockCount::UnchainedLate),
            unchained_others: read(LockCount::UnchainedOthers),
        }
    }
}

/// A session's counters, on cache lines of their own. Only the session's thread writes the
/// counters. Any thread may read them, and may see slightly old values.
#[derive(Debug)]
pub(crate) struct Counters(CachePadded<Words>);

#[derive(Debug)]
struct Words {
    commits: AtomicU64,
    read_set: AtomicU64,
    write_set: AtomicU64,
    stale_commits: AtomicU64,
    locks: Arc<LockCounters>,
    user_errors: AtomicU64,
    retries: AtomicU64,
    aborts: [AtomicU64; Abort::ALL.len()],
}

impl Counters {
    pub(crate) fn new() -> Counters {
        Counters(CachePadded::new(Words {
            commits: AtomicU64::new(0),
            read_set: AtomicU64::new(0),
            write_set: AtomicU64::new(0),
            stale_commits: AtomicU64::new(0),
            locks: Arc::default(),
            user_errors: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            aborts: std::array::from_fn(|_| AtomicU64::new(0)),
        }))
    }

    #[inline]
    pub(crate) fn committed(&self) {
        count(&self.0.commits, 1);
    }

    /// Adds the sizes of a committed transaction's read set and write set.
    #[inline]
    pub(crate) fn observed_and_wrote(&self, read_set: usize, write_set: usize) {
        count(&self.0.read_set, read_set as u64);
        count(&self.0.write_set, write_set as u64);
    }

    /// Counts a commit that OCC would have aborted.
    pub(crate) fn stale_commit(&self) {
        count(&self.0.stale_commits, 1);
    }

    /// Returns the session's counts of locks by policy.
    pub(crate) fn locks(&self) -> &Arc<LockCounters> {
        &self.0.locks
    }

    pub(crate) fn user_error(&self) {
        count(&self.0.user_errors, 1);
    }

    pub(crate) fn retried(&self) {
        count(&self.0.retries, 1);
    }

    pub(crate) fn aborted(&self, abort: Abort) {
        count(&self.0.aborts[abort as usize], 1);
    }

    pub(crate) fn read(&self) -> Stats {
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        Stats {
            commits: read(&self.0.commits),
            user_errors: read(&self.0.user_errors),
            retries: read(&self.0.retries),
            read_set: read(&self.0.read_set),
            write_set: read(&self.0.write_set),
            stale_commits: read(&self.0.stale_commits),
            locks: self.0.locks.read(),
            aborts: std::array::from_fn(|index| read(&self.0.aborts[index])),
        }
    }
}

/// A number that is the sum of one part per session. Each session changes only its own part, so no
/// session waits for another.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<Parts>);

#[derive(Debug, Default)]
struct Parts {
    /// The sum of the parts of ended sessions.
    past: u64,
    /// The parts of present sessions, by session number.
    present: BTreeMap<u64, Arc<TallyPart>>,
}

/// One session's part of a [`Tally`]. Only the session's thread writes it.
#[derive(Debug)]
pub(crate) struct TallyPart(CachePadded<AtomicU64>);

impl Tally {
    /// Adds a new part, for the session with the number `session`, and returns the part.
    pub(crate) fn join(&self, session: u64) -> Arc<TallyPart> {
        let part = Arc::new(TallyPart(CachePadded::new(AtomicU64::new(0))));
        lock(&self.0).present.insert(session, part.clone());
        part
    }

    /// Adds the part of an ending session to the sum of past parts.
    pub(crate) fn leave(&self, session: u64) {
        let mut parts = lock(&self.0);
        let part = parts.present.remove(&session).map_or(0, |part| part.read());
        parts.past = parts.past.wrapping_add(part);
    }

    /// Returns the number. Changes in progress may be missing from the result.
    pub(crate) fn sum(&self) -> u64 {
        let parts = lock(&self.0);
        let sum =
            parts.present.values().fold(parts.past, |sum, part| sum.wrapping_add(part.read()));
        // Parts are read one after another. So the sum may lack an addition in one part but contain
        // its subtraction in another part, and may then be negative.
        if sum > i64::MAX as u64 { 0 } else { sum }
    }
}

impl TallyPart {
    /// Adds one if `up`, otherwise subtracts one. A part may fall below zero and wrap; only the sum
    /// of all parts has a meaning.
    #[inline]
    pub(crate) fn count(&self, up: bool) {
        self.0.store(self.read().wrapping_add(if up { 1 } else { u64::MAX }), Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Adds `more`. The caller is the only writer, so no read-modify-write is needed.
#[cfg_attr(not(debug_assertions), inline(always))]
fn count(word: &AtomicU64, more: u64) {
    word.store(word.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}
