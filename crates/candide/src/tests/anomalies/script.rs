//! The parts of an anomaly: an interleaving as a list of steps, and the condition that shows the
//! anomaly.
//!
//! Steps are data, so that every protocol, the models without concurrency control, and the judge
//! can run the same script.

use crate::sync::Point;
use std::collections::BTreeMap;

/// An interleaving of a few transactions. The anomaly appears if nothing prevents it.
#[derive(Debug)]
pub(super) struct Anomaly {
    /// The anomaly's name in the literature.
    pub(super) name: &'static str,
    /// A description in one sentence, for the documentation.
    pub(super) about: &'static str,
    /// The weakest promise that a protocol breaks if the anomaly appears under it.
    pub(super) breaks: Promise,
    /// The kind of index of the rows.
    pub(super) index: Index,
    /// The keys and values of the rows that exist at first.
    pub(super) rows: &'static [(u64, i64)],
    /// The steps in their order, each with the transaction that does it. A step of a transaction
    /// that has ended is left out.
    pub(super) script: &'static [(Who, Op)],
    /// Returns whether the anomaly appears in a run.
    pub(super) appears: fn(&Run) -> bool,
}

/// The initial rows of the examples in the literature.
pub(super) const TWO_ROWS: &[(u64, i64)] = &[(1, 10), (2, 20)];
/// The initial cold value of every row.
pub(super) const COLD: i64 = 100;

/// A promise that a protocol may make. Each promise includes the promises before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Promise {
    /// A serial order of the transactions that did not fail explains their reads and the final
    /// rows.
    Serializable,
    /// In addition, that order agrees with real time.
    Strict,
    /// In addition, the attempts that failed have a place in that order, too.
    Opaque,
}

impl Promise {
    pub(super) const ALL: [Promise; 3] = [Promise::Serializable, Promise::Strict, Promise::Opaque];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    Hashed,
    Ordered,
}

/// A transaction of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Who(pub(super) usize);

pub(super) const T1: Who = Who(0);
pub(super) const T2: Who = Who(1);
pub(super) const T3: Who = Who(2);
pub(super) const T4: Who = Who(3);
pub(super) const T5: Who = Who(4);
pub(super) const T6: Who = Who(5);

/// A step. Rows have a key, a value, and a second value in a separate group, which is called the
/// cold value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    /// Begins the transaction. Without this step, the transaction begins with its first other step.
    Begin,
    /// Reads the value of a key.
    Read(u64),
    /// Reads the value of a key for update.
    ReadForUpdate(u64),
    /// Reads the cold value of a key.
    ReadCold(u64),
    /// Writes the value of a key without reading it.
    Set(u64, i64),
    /// Writes the cold value of a key without reading it.
    SetCold(u64, i64),
    /// Adds to the value of a key without reading it.
    Add(u64, i64),
    /// Inserts a row, unless the key has a row.
    Insert(u64, i64),
    /// Deletes the row of a key, if the key has a row.
    Delete(u64),
    /// Scans all rows, and returns those with values of a kind.
    Select(Where),
    /// Adds to the values of a kind.
    AddWhere(Where, i64),
    /// Deletes the rows with values of a kind.
    DeleteWhere(Where),
    /// Scans the keys from the first number to the second, both included.
    Scan(u64, u64),
    /// Reads the first row whose key is not below this key.
    First(u64),
    /// Reads the last row whose key is not above this key.
    Last(u64),
    /// Runs the commit up to a point, where the commit stops until the transaction's next step. A
    /// commit that does not pass this point runs to its end.
    Until(Point),
    /// Commits.
    Commit,
    /// Rolls back: the closure ends the transaction without effect.
    Rollback,
}

/// A kind of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    All,
    Is(i64),
    DivisibleBy(i64),
}

impl Where {
    pub(super) fn holds(self, value: i64) -> bool {
        match self {
            Where::All => true,
            Where::Is(wanted) => value == wanted,
            Where::DivisibleBy(divisor) => value % divisor == 0,
        }
    }
}

/// The result that a step saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    Value(Option<i64>),
    Rows(Vec<(u64, i64)>),
    /// For a write: whether it changed a row.
    Done(bool),
}

pub(super) const fn value(value: i64) -> Seen {
    Seen::Value(Some(value))
}

pub(super) const NOTHING: Seen = Seen::Value(None);

pub(super) fn rows(rows: &[(u64, i64)]) -> Seen {
    Seen::Rows(rows.to_vec())
}

/// Rows by key, each with its value and its cold value.
pub(super) type Rows = BTreeMap<u64, (i64, i64)>;

pub(super) fn rows_of(values: &[(u64, i64)]) -> Rows {
    values.iter().map(|&(key, value)| (key, (value, COLD))).collect()
}

/// The result of a script.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) parts: Vec<Part>,
    /// The rows at the end of the run.
    pub(super) rows: Rows,
    /// Whether a transaction could not begin before another one had ended.
    pub(super) excluded: bool,
}

/// The result of one transaction.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// The time at which the transaction was begun. Every transaction with an `ended` below this
    /// number had ended before.
    pub(super) begun: usize,
    /// The time at which the transaction had ended.
    pub(super) ended: usize,
    pub(super) end: End,
    /// The steps that the transaction completed, each with its result.
    pub(super) seen: Vec<(Op, Seen)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Committed,
    RolledBack,
    Conflict,
}

impl Run {
    /// Returns whether all transactions in `whom` have committed.
    pub(super) fn committed(&self, whom: &[Who]) -> bool {
        whom.iter().all(|who| self.parts[who.0].end == End::Committed)
    }

    /// Returns the results of a transaction's reads and scans, whether or not the transaction
    /// committed.
    pub(super) fn reads(&self, who: Who) -> Vec<Seen> {
        let seen = self.parts[who.0].seen.iter().map(|(_, seen)| seen);
        seen.filter(|seen| !matches!(seen, Seen::Done(_))).cloned().collect()
    }

    /// Returns whether a transaction has committed although its second read differs from its first.
    pub(super) fn sees_a_change(&self, who: Who) -> bool {
        let seen = self.reads(who);
        self.committed(&[who]) && seen[0] != seen[1]
    }

    /// Returns the keys and values at the end of the run.
    pub(super) fn values(&self) -> Vec<(u64, i64)> {
        self.rows.iter().map(|(&key, &(value, _))| (key, value)).collect()
    }
}
