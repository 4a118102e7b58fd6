//! Two readers disagree on the order of two writers.

use super::script::{Anomaly, Index, Op, Promise, T1, T2, T3, T4, TWO_ROWS, value};

pub(super) const LONG_FORK: Anomaly = Anomaly {
    name: "long fork",
    about: "two transactions see the updates of two others in opposite orders",
    breaks: Promise::Serializable,
    index: Index::Hashed,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Read(1)),
        (T2, Op::Set(1, 11)),
        (T2, Op::Commit),
        (T3, Op::Read(1)),
        (T3, Op::Read(2)),
        (T4, Op::Set(2, 22)),
        (T4, Op::Commit),
        (T1, Op::Read(2)),
        (T1, Op::Commit),
        (T3, Op::Commit),
    ],
    appears: |run| {
        run.committed(&[T1, T3])
            && run.reads(T1) == [value(10), value(22)]
            && run.reads(T3) == [value(11), value(20)]
    },
};
