//! Counts of aborts by the transaction's name, the table and the reason, under the feature
//! `histograms`.

#![forbid(unsafe_code)]

use crate::error::Abort;
use crate::sync::{Mutex, lock};
use std::collections::BTreeMap;

/// The attempts of the transactions with one name that have ended for one reason, about one table.
/// See [`Database::named_aborts`](crate::Database::named_aborts).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedAborts {
    /// The transactions' name; `"(other)"` for all names that came when the database had 256 names.
    pub name: &'static str,
    /// The name of the table of the conflict. `None` if the reason is no conflict, or if the
    /// transaction yielded to another one, which had failed too often.
    pub table: Option<String>,
    /// The reason.
    pub reason: Abort,
    /// The number of attempts; of transactions, for reasons that are no conflicts.
    pub count: u64,
}

/// A count, with the number of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CountedAbort {
    pub(crate) name: &'static str,
    pub(crate) table: Option<u16>,
    pub(crate) reason: Abort,
    pub(crate) count: u64,
}

/// Counts by the table's number and the reason's.
type Counts = BTreeMap<(Option<u16>, u8), u64>;

/// A session's counts of the aborts of one name. No other session takes the lock, and a reader
/// holds it while it copies the counts.
#[derive(Debug, Default)]
pub(super) struct AbortCounts(Mutex<Counts>);

impl AbortCounts {
    pub(super) fn count(&self, table: Option<u16>, reason: Abort) {
        *lock(&self.0).entry((table, reason as u8)).or_default() += 1;
    }

    pub(super) fn add_to(&self, sum: &mut SummedAborts) {
        for (&place, &count) in lock(&self.0).iter() {
            *sum.0.entry(place).or_default() += count;
        }
    }
}

/// The aborts of one name in several sessions.
#[derive(Debug, Default, Clone)]
pub(super) struct SummedAborts(Counts);

impl SummedAborts {
    pub(super) fn of(self, name: &'static str) -> impl Iterator<Item = CountedAbort> {
        self.0.into_iter().map(move |((table, reason), count)| {
            let reason = Abort::ALL[usize::from(reason)];
            CountedAbort { name, table, reason, count }
        })
    }
}
