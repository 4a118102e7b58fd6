//! Write skew between two commits that overlap. One commit must not treat a row as unchanged if the
//! other has locked the row and not yet written it.

use super::script::{Anomaly, Index, Op, Promise, T1, T2, TWO_ROWS, value};
use crate::sync::Point;

pub(super) const OVERLAPPING_COMMITS: Anomaly = Anomaly {
    name: "write skew, overlapping commits",
    about: "of two transactions that each write what the other has read, one commits amid the commit of the other",
    breaks: Promise::Serializable,
    index: Index::Hashed,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Read(2)),
        (T2, Op::Read(1)),
        (T1, Op::Set(1, 11)),
        (T2, Op::Set(2, 21)),
        (T1, Op::Until(Point::Validated)),
        (T2, Op::Commit),
        (T1, Op::Commit),
    ],
    appears: |run| {
        run.committed(&[T1, T2]) && run.reads(T1) == [value(20)] && run.reads(T2) == [value(10)]
    },
};

pub(super) const HELD_ROW: Anomaly = Anomaly {
    name: "write skew, row held for update",
    about: "the same with a first transaction that has read for update what it writes",
    breaks: Promise::Serializable,
    index: Index::Hashed,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::ReadForUpdate(1)),
        (T1, Op::Read(2)),
        (T2, Op::Read(1)),
        (T1, Op::Set(1, 11)),
        (T2, Op::Set(2, 21)),
        (T1, Op::Until(Point::Validated)),
        (T2, Op::Commit),
        (T1, Op::Commit),
    ],
    appears: |run| {
        run.committed(&[T1, T2])
            && run.reads(T1) == [value(10), value(20)]
            && run.reads(T2) == [value(10)]
    },
};
