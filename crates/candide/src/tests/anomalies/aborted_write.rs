//! An aborted write: an effect remains of a transaction that was rolled back.

use super::script::{Anomaly, Index, Op, Promise, T1, T2, TWO_ROWS, Where, rows};

pub(super) const ABORTED_WRITE: Anomaly = Anomaly {
    name: "leaked aborted write",
    about: "an update, an insert and a delete that were rolled back are there all the same",
    breaks: Promise::Serializable,
    index: Index::Ordered,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Begin),
        (T2, Op::Set(1, 99)),
        (T2, Op::Insert(3, 30)),
        (T2, Op::Delete(2)),
        (T2, Op::Rollback),
        (T1, Op::Select(Where::All)),
        (T1, Op::Commit),
    ],
    appears: |run| {
        run.reads(T1) != [rows(&[(1, 10), (2, 20)])] || run.values() != [(1, 10), (2, 20)]
    },
};
