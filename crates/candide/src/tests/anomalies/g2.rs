//! Write skew: each of two transactions writes a row that the other one has read.

use super::script::{Anomaly, Index, Op, Promise, T1, T2, T3, TWO_ROWS, Where, rows, value};

pub(super) const G2_ITEM: Anomaly = Anomaly {
    name: "G2-item",
    about: "write skew: two transactions read the same two rows, and each writes one of them",
    breaks: Promise::Serializable,
    index: Index::Hashed,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Read(1)),
        (T1, Op::Read(2)),
        (T2, Op::Read(1)),
        (T2, Op::Read(2)),
        (T1, Op::Set(1, 11)),
        (T2, Op::Set(2, 21)),
        (T1, Op::Commit),
        (T2, Op::Commit),
    ],
    appears: |run| {
        run.committed(&[T1, T2])
            && [T1, T2].iter().all(|&who| run.reads(who) == [value(10), value(20)])
    },
};

pub(super) const G2: Anomaly = Anomaly {
    name: "G2",
    about: "anti-dependency cycle: two scans find nothing, and each transaction inserts what the other one looked for",
    breaks: Promise::Serializable,
    index: Index::Ordered,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Select(Where::DivisibleBy(3))),
        (T2, Op::Select(Where::DivisibleBy(3))),
        (T1, Op::Insert(3, 30)),
        (T2, Op::Insert(4, 42)),
        (T1, Op::Commit),
        (T2, Op::Commit),
    ],
    appears: |run| {
        run.committed(&[T1, T2]) && run.reads(T1) == [rows(&[])] && run.reads(T2) == [rows(&[])]
    },
};

pub(super) const G2_TWO_EDGES: Anomaly = Anomaly {
    name: "G2, two anti-dependencies",
    about: "a scan sees an update and not the one that had to come before it",
    breaks: Promise::Serializable,
    index: Index::Ordered,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Select(Where::All)),
        (T2, Op::Add(2, 5)),
        (T2, Op::Commit),
        (T3, Op::Select(Where::All)),
        (T3, Op::Commit),
        (T1, Op::Set(1, 0)),
        (T1, Op::Commit),
    ],
    appears: |run| {
        run.committed(&[T1, T2, T3])
            && run.reads(T1) == [rows(&[(1, 10), (2, 20)])]
            && run.reads(T3) == [rows(&[(1, 10), (2, 25)])]
    },
};
