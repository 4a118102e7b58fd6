//! A stale read: a transaction does not see the write of a transaction that had ended before it
//! began.

use super::script::{Anomaly, Index, Op, Promise, T1, T2, T3, T4, T5, T6, value};

/// The first three transactions matter only under protocols that order by timestamps. These
/// transactions extend the validity of row 1's version beyond the timestamp that the last
/// transaction's commit gets.
pub(super) const STALE_READ: Anomaly = Anomaly {
    name: "stale read in real time",
    about: "a transaction sees one update, and not another one that had ended before that one began",
    breaks: Promise::Strict,
    index: Index::Hashed,
    rows: &[(1, 10), (2, 20), (3, 0)],
    script: &[
        (T1, Op::Add(3, 1)),
        (T1, Op::Commit),
        (T2, Op::Add(3, 1)),
        (T2, Op::Commit),
        (T3, Op::Read(1)),
        (T3, Op::Read(3)),
        (T3, Op::Commit),
        (T4, Op::Read(1)),
        (T5, Op::Set(1, 11)),
        (T5, Op::Commit),
        (T6, Op::Set(2, 22)),
        (T6, Op::Commit),
        (T4, Op::Read(2)),
        (T4, Op::Commit),
    ],
    appears: |run| run.committed(&[T4, T5, T6]) && run.reads(T4) == [value(10), value(22)],
};
