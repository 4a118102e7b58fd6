//! Counts of transactions by name.

#![forbid(unsafe_code)]

use super::count;
#[cfg(feature = "histograms")]
use super::latency::{Latency, LatencyCounts, Merged};
#[cfg(feature = "histograms")]
use super::named_aborts::{AbortCounts, CountedAbort, SummedAborts};
#[cfg(feature = "histograms")]
use crate::error::Abort;
#[cfg(feature = "histograms")]
use crate::sync::Duration;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crossbeam_utils::CachePadded;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of names that a database counts apart.
const NAMES_MAX: usize = 256;
/// The name under which the transactions of all further names are counted.
const OTHER: &str = "(other)";
/// The number of addresses of names that a session remembers. A name can lie at several addresses.
const ADDRESSES_MAX: usize = 4 * NAMES_MAX;

/// Counts of the transactions that have been given one name, by
/// [`RunOptions::named`](crate::RunOptions::named).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedStats {
    /// The name; `"(other)"` for all names that came when the database had 256 names.
    pub name: &'static str,
    /// Transactions that committed.
    pub commits: u64,
    /// The number of attempts that were made because the previous attempt had a conflict.
    pub retries: u64,
    /// Transactions that ended in an error or a panic.
    pub errors: u64,
}

/// The counts about the transactions of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedCount {
    Commit,
    Retry,
    Error,
}

/// The counts of a name, in the order of [`NamedCount`].
type Counts = [u64; 3];

/// The sums of several sessions for one name.
#[derive(Debug, Default, Clone)]
struct Sums {
    counts: Counts,
    #[cfg(feature = "histograms")]
    latencies: Merged,
    #[cfg(feature = "histograms")]
    aborts: SummedAborts,
}

/// The names of a database, each with the sums of ended sessions.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<BTreeMap<&'static str, Sums>>);

impl Names {
    /// Returns the name under which transactions called `name` are counted. The result is `name`,
    /// unless the database has too many other names.
    fn admit(&self, name: &'static str) -> &'static str {
        let mut past = lock(&self.0);
        let own = past.contains_key(name) || past.len() < NAMES_MAX;
        let counted = if own { name } else { OTHER };
        past.entry(counted).or_default();
        counted
    }

    /// Keeps the counts of a session that ends.
    pub(crate) fn keep(&self, session: &SessionNames) {
        let mut past = lock(&self.0);
        session.add_to(&mut past);
    }

    /// Returns the sums of each name, of ended sessions and of `sessions`, in the order of the
    /// names.
    fn sums<'a>(
        &self,
        sessions: impl Iterator<Item = &'a SessionNames>,
    ) -> BTreeMap<&'static str, Sums> {
        let mut sums = lock(&self.0).clone();
        sessions.for_each(|session| session.add_to(&mut sums));
        sums
    }

    /// Returns the counts of each name, in the order of the names: those of ended sessions, and
    /// those of `sessions`.
    pub(crate) fn read<'a>(
        &self,
        sessions: impl Iterator<Item = &'a SessionNames>,
    ) -> Vec<NamedStats> {
        let stats = |(name, sums): (_, Sums)| {
            let [commits, retries, errors] = sums.counts;
            NamedStats { name, commits, retries, errors }
        };
        self.sums(sessions).into_iter().map(stats).collect()
    }

    /// Returns the latencies of each name, in the order of the names.
    #[cfg(feature = "histograms")]
    pub(crate) fn latencies<'a>(
        &self,
        sessions: impl Iterator<Item = &'a SessionNames>,
    ) -> Vec<Latency> {
        let sums = self.sums(sessions).into_iter();
        sums.map(|(name, sums)| sums.latencies.named(name)).collect()
    }

    /// Returns the counts of aborts of each name, in the order of the names, of the tables' numbers
    /// and of the reasons.
    #[cfg(feature = "histograms")]
    pub(crate) fn aborts<'a>(
        &self,
        sessions: impl Iterator<Item = &'a SessionNames>,
    ) -> Vec<CountedAbort> {
        let sums = self.sums(sessions).into_iter();
        sums.flat_map(|(name, sums)| sums.aborts.of(name)).collect()
    }
}

/// A session's counts by name, which any thread may read.
#[derive(Debug, Default)]
pub(crate) struct SessionNames(Mutex<Vec<Arc<Part>>>);

impl SessionNames {
    fn add_to(&self, sums: &mut BTreeMap<&'static str, Sums>) {
        for part in lock(&self.0).iter() {
            let sums = sums.entry(part.name).or_default();
            for (sum, count) in sums.counts.iter_mut().zip(part.counts.iter()) {
                *sum += count.load(Ordering::Relaxed);
            }
            #[cfg(feature = "histograms")]
            part.latencies.add_to(&mut sums.latencies);
            #[cfg(feature = "histograms")]
            part.aborts.add_to(&mut sums.aborts);
        }
    }

    /// Returns the counts of `name`.
    fn part(&self, name: &'static str) -> Arc<Part> {
        let mut parts = lock(&self.0);
        if let Some(part) = parts.iter().find(|part| part.name == name) {
            return part.clone();
        }
        let part = Arc::new(Part::of(name));
        parts.push(part.clone());
        part
    }
}

/// A session's counts of one name. Only the session's thread writes them.
#[derive(Debug)]
struct Part {
    name: &'static str,
    counts: CachePadded<[AtomicU64; 3]>,
    #[cfg(feature = "histograms")]
    latencies: LatencyCounts,
    #[cfg(feature = "histograms")]
    aborts: AbortCounts,
}

impl Part {
    fn of(name: &'static str) -> Part {
        Part {
            name,
            counts: CachePadded::default(),
            #[cfg(feature = "histograms")]
            latencies: LatencyCounts::default(),
            #[cfg(feature = "histograms")]
            aborts: AbortCounts::default(),
        }
    }
}

/// The counts by name as their session finds them: by the address and the length of the name.
#[derive(Debug, Default)]
pub(crate) struct NamesByAddress(BTreeMap<(usize, usize), Arc<Part>>);

impl NamesByAddress {
    /// Returns whether the session has run no transaction with a name.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts a transaction called `name`. `session` has the session's counts, `names` the names of
    /// the database.
    pub(crate) fn count(
        &mut self,
        names: &Names,
        session: &SessionNames,
        name: &'static str,
        what: NamedCount,
    ) {
        self.with_part(names, session, name, |part| count(&part.counts[what as usize], 1));
    }

    /// Records the time that a transaction called `name` has taken.
    #[cfg(feature = "histograms")]
    pub(crate) fn record(
        &mut self,
        names: &Names,
        session: &SessionNames,
        name: &'static str,
        latency: Duration,
    ) {
        self.with_part(names, session, name, |part| part.latencies.record(latency));
    }

    /// Counts an attempt of a transaction called `name` that has ended in `reason`, about a table
    /// with this number, or about none.
    #[cfg(feature = "histograms")]
    pub(crate) fn count_abort(
        &mut self,
        names: &Names,
        session: &SessionNames,
        name: &'static str,
        (table, reason): (Option<u16>, Abort),
    ) {
        self.with_part(names, session, name, |part| part.aborts.count(table, reason));
    }

    /// Calls `then` with the session's counts of `name`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn with_part(
        &mut self,
        names: &Names,
        session: &SessionNames,
        name: &'static str,
        then: impl Fn(&Part),
    ) {
        let address = (name.as_ptr().addr(), name.len());
        if let Some(part) = self.0.get(&address) {
            return then(part);
        }
        let part = session.part(names.admit(name));
        then(&part);
        if self.0.len() < ADDRESSES_MAX {
            self.0.insert(address, part);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn leaked(number: usize) -> &'static str {
        Box::leak(format!("name {number:04}").into_boxed_str())
    }

    #[test]
    fn names_are_distinguished_by_text_and_counted_together_beyond_the_maximum() {
        let (names, session) = (Names::default(), SessionNames::default());
        let mut by_address = NamesByAddress::default();
        let mut count = |name, what| by_address.count(&names, &session, name, what);
        for number in 0..300 {
            count(leaked(number), NamedCount::Commit);
            count(leaked(number), NamedCount::Retry);
        }
        let stats = names.read([&session].into_iter());
        assert_eq!(stats.len(), NAMES_MAX + 1);
        let other = NamedStats { name: OTHER, commits: 44, retries: 44, errors: 0 };
        assert_eq!(stats[0], other);
        assert!(stats[1..].iter().all(|stats| (stats.commits, stats.retries) == (1, 1)));
    }

    #[test]
    fn a_prefix_of_a_name_at_the_same_address_has_its_own_counts() {
        let (names, session) = (Names::default(), SessionNames::default());
        let mut by_address = NamesByAddress::default();
        let long = "payment";
        by_address.count(&names, &session, long, NamedCount::Commit);
        by_address.count(&names, &session, &long[..3], NamedCount::Error);
        let of = |name, commits, errors| NamedStats { name, commits, retries: 0, errors };
        let both = vec![of("pay", 0, 1), of("payment", 1, 0)];
        assert_eq!(names.read([&session].into_iter()), both);
        names.keep(&session);
        assert_eq!(names.read([].into_iter()), both, "the counts of ended sessions stay");
    }

    #[test]
    fn a_session_remembers_a_bounded_number_of_addresses() {
        let (names, session) = (Names::default(), SessionNames::default());
        let mut by_address = NamesByAddress::default();
        for _ in 0..2 * ADDRESSES_MAX {
            by_address.count(&names, &session, leaked(0), NamedCount::Commit);
        }
        assert_eq!(by_address.0.len(), ADDRESSES_MAX);
        let commits = 2 * ADDRESSES_MAX as u64;
        let stats = NamedStats { name: leaked(0), commits, retries: 0, errors: 0 };
        assert_eq!(names.read([&session].into_iter()), [stats]);
    }
}
