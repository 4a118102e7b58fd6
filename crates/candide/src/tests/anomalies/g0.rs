//! Dirty writes: two transactions write the same rows, and each loses one of its writes to the
//! other.

use super::script::{Anomaly, Index, Op, Promise, T1, T2, TWO_ROWS};

pub(super) const G0: Anomaly = Anomaly {
    name: "G0",
    about: "write cycle: of two transactions that write the same two rows, each prevails in one",
    breaks: Promise::Serializable,
    index: Index::Hashed,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Set(1, 11)),
        (T2, Op::Set(1, 12)),
        (T2, Op::Set(2, 22)),
        (T1, Op::Set(2, 21)),
        (T1, Op::Commit),
        (T2, Op::Commit),
    ],
    appears: |run| {
        let left = run.values();
        run.committed(&[T1, T2]) && (left == [(1, 12), (2, 21)] || left == [(1, 11), (2, 22)])
    },
};
