//! Observed transaction vanishes: a reader sees a transaction's writes, and later does not see
//! them.

use super::script::{Anomaly, Index, Op, Promise, T1, T2, T3, TWO_ROWS};

pub(super) const OTV: Anomaly = Anomaly {
    name: "OTV",
    about: "observed transaction vanishes: what one read of a transaction showed, a later one does not",
    breaks: Promise::Serializable,
    index: Index::Hashed,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Set(1, 11)),
        (T1, Op::Set(2, 19)),
        (T2, Op::Set(1, 12)),
        (T1, Op::Commit),
        (T3, Op::Read(1)),
        (T2, Op::Set(2, 18)),
        (T3, Op::Read(2)),
        (T2, Op::Commit),
        (T3, Op::Read(2)),
        (T3, Op::Read(1)),
        (T3, Op::Commit),
    ],
    appears: |run| {
        let seen = run.reads(T3);
        run.committed(&[T3]) && (seen[0] != seen[3] || seen[1] != seen[2])
    },
};
