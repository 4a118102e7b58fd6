//! What an anomaly is made of: an interleaving as a list of steps, and what shows that it has gone
//! wrong.
//!
//! Steps are data, so that one script is carried out by every protocol, by the models without any,
//! and by the judge.

use crate::sync::Point;
use std::collections::BTreeMap;

/// An interleaving of a few transactions that goes wrong if nothing prevents it.
#[derive(Debug)]
pub(super) struct Anomaly {
    /// What the literature calls it.
    pub(super) name: &'static str,
    /// One sentence for the documentation.
    pub(super) about: &'static str,
    /// The weakest promise that a protocol breaks by letting it appear.
    pub(super) breaks: Promise,
    /// How the rows are found.
    pub(super) index: Index,
    /// Keys and values that are there before.
    pub(super) rows: &'static [(u64, i64)],
    /// Which transaction does what, in this order. A step of a transaction that has ended is left
    /// out.
    pub(super) script: &'static [(Who, Op)],
    /// Whether it has gone wrong.
    pub(super) appears: fn(&Run) -> bool,
}

/// What the literature's examples begin with.
pub(super) const TWO_ROWS: &[(u64, i64)] = &[(1, 10), (2, 20)];
/// What every row has in its second group at first.
pub(super) const COLD: i64 = 100;

/// What a protocol may promise. Each includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Promise {
    /// One order of the transactions that end well explains what they saw and what they left.
    Serializable,
    /// And it agrees with real time.
    Strict,
    /// And the attempts that fail have their place in it, too.
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

/// A step. Rows have a key, a value, and a second value in a group of its own, which is called
/// cold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    /// Begins; what a transaction's first step does anyhow.
    Begin,
    /// Reads the value of a key.
    Read(u64),
    /// Reads the value of a key, which it is going to write.
    ReadForUpdate(u64),
    /// Reads the cold value of a key.
    ReadCold(u64),
    /// Writes the value of a key without reading it.
    Set(u64, i64),
    /// Writes the cold value of a key without reading it.
    SetCold(u64, i64),
    /// Adds to the value of a key without reading it.
    Add(u64, i64),
    /// Inserts a row unless there is one.
    Insert(u64, i64),
    /// Deletes a row if there is one.
    Delete(u64),
    /// Scans everything for the values of a kind.
    Select(Where),
    /// Adds to the values of a kind.
    AddWhere(Where, i64),
    /// Deletes the rows with values of a kind.
    DeleteWhere(Where),
    /// Scans the keys from one to another, both included.
    Scan(u64, u64),
    /// The first row from a key on.
    First(u64),
    /// The last row up to a key.
    Last(u64),
    /// Commits as far as a point of the commit, where it stops until the next step. What has no
    /// such point commits whole.
    Until(Point),
    /// Commits.
    Commit,
    /// Ends without effect, as the program wishes.
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

/// What a step saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    Value(Option<i64>),
    Rows(Vec<(u64, i64)>),
    /// Of a write: whether there was something for it to do.
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

/// What has come of a script.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) parts: Vec<Part>,
    /// The rows in the end.
    pub(super) rows: Rows,
    /// Whether a transaction could not begin before another one had ended.
    pub(super) excluded: bool,
}

/// What has come of one transaction.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// When it was begun: after everything that has ended at a lower number.
    pub(super) begun: usize,
    /// When it had ended.
    pub(super) ended: usize,
    pub(super) end: End,
    /// The steps that it got through.
    pub(super) seen: Vec<(Op, Seen)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Committed,
    RolledBack,
    Conflict,
}

impl Run {
    /// Whether all of these have committed.
    pub(super) fn committed(&self, whom: &[Who]) -> bool {
        whom.iter().all(|who| self.parts[who.0].end == End::Committed)
    }

    /// What a transaction's reads and scans saw, whatever has become of it.
    pub(super) fn reads(&self, who: Who) -> Vec<Seen> {
        let seen = self.parts[who.0].seen.iter().map(|(_, seen)| seen);
        seen.filter(|seen| !matches!(seen, Seen::Done(_))).cloned().collect()
    }

    /// The keys and values in the end.
    pub(super) fn values(&self) -> Vec<(u64, i64)> {
        self.rows.iter().map(|(&key, &(value, _))| (key, value)).collect()
    }
}
