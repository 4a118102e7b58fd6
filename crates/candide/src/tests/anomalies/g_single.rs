//! Read skew: a transaction sees one row from before another transaction, and one row from after
//! it.

use super::script::{Anomaly, Index, Op, Promise, T1, T2, TWO_ROWS, Where, rows, value};

pub(super) const G_SINGLE: Anomaly = Anomaly {
    name: "G-single",
    about: "read skew: a transaction sees one row from before another transaction and one from after it",
    breaks: Promise::Serializable,
    index: Index::Hashed,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Read(1)),
        (T2, Op::Read(1)),
        (T2, Op::Read(2)),
        (T2, Op::Set(1, 12)),
        (T2, Op::Set(2, 18)),
        (T2, Op::Commit),
        (T1, Op::Read(2)),
        (T1, Op::Commit),
    ],
    appears: |run| run.committed(&[T1]) && run.reads(T1) == [value(10), value(18)],
};

pub(super) const G_SINGLE_PREDICATE: Anomaly = Anomaly {
    name: "G-single, predicates",
    about: "the same with two scans in place of the reads",
    breaks: Promise::Serializable,
    index: Index::Ordered,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Select(Where::DivisibleBy(5))),
        (T2, Op::AddWhere(Where::Is(10), 2)),
        (T2, Op::Commit),
        (T1, Op::Select(Where::DivisibleBy(3))),
        (T1, Op::Commit),
    ],
    appears: |run| {
        run.committed(&[T1]) && run.reads(T1) == [rows(&[(1, 10), (2, 20)]), rows(&[(1, 12)])]
    },
};

pub(super) const G_SINGLE_WRITE: Anomaly = Anomaly {
    name: "G-single, write predicate",
    about: "the same with a delete by value that no longer finds its row",
    breaks: Promise::Serializable,
    index: Index::Ordered,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Read(1)),
        (T2, Op::Select(Where::All)),
        (T2, Op::Set(1, 12)),
        (T2, Op::Set(2, 18)),
        (T2, Op::Commit),
        (T1, Op::DeleteWhere(Where::Is(20))),
        (T1, Op::Commit),
    ],
    appears: |run| {
        run.committed(&[T1]) && run.reads(T1) == [value(10)] && run.values().contains(&(2, 18))
    },
};
