//! Lost updates.

use super::script::{Anomaly, Index, Op, Promise, T1, T2, TWO_ROWS, value};

pub(super) const P4: Anomaly = Anomaly {
    name: "P4",
    about: "lost update: two transactions replace the same value, each by one that was computed from it",
    breaks: Promise::Serializable,
    index: Index::Hashed,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Read(1)),
        (T2, Op::Read(1)),
        (T1, Op::Set(1, 11)),
        (T2, Op::Set(1, 12)),
        (T1, Op::Commit),
        (T2, Op::Commit),
    ],
    appears: |run| {
        run.committed(&[T1, T2]) && run.reads(T1) == [value(10)] && run.reads(T2) == [value(10)]
    },
};
