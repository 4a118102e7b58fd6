//! The anomaly that shows only in the results of a read-only transaction [FE04].

use super::script::{Anomaly, Index, Op, Promise, T1, T2, T3, value};

pub(super) const READ_ONLY: Anomaly = Anomaly {
    name: "read-only transaction anomaly",
    about: "a withdrawal is charged for missing a deposit, and a statement shows the deposit without it",
    breaks: Promise::Serializable,
    index: Index::Hashed,
    rows: &[(1, 0), (2, 0)],
    script: &[
        (T1, Op::Read(1)),
        (T1, Op::Read(2)),
        (T2, Op::Read(2)),
        (T2, Op::Set(2, 20)),
        (T2, Op::Commit),
        (T3, Op::Read(1)),
        (T3, Op::Read(2)),
        (T3, Op::Commit),
        (T1, Op::Set(1, -11)),
        (T1, Op::Commit),
    ],
    appears: |run| {
        run.committed(&[T1, T2, T3])
            && run.reads(T1) == [value(0), value(0)]
            && run.reads(T3) == [value(0), value(20)]
    },
};
