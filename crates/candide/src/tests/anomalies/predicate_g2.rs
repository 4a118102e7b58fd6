//! Write skew on ranges of keys.

use super::script::{Anomaly, Index, Op, Promise, T1, T2, rows};

pub(super) const PREDICATE_G2: Anomaly = Anomaly {
    name: "predicate G2",
    about: "two transactions each scan one range and insert into the range of the other",
    breaks: Promise::Serializable,
    index: Index::Ordered,
    rows: &[(10, 1), (20, 2), (30, 3)],
    script: &[
        (T1, Op::Scan(11, 19)),
        (T2, Op::Scan(31, 39)),
        (T1, Op::Insert(35, 4)),
        (T2, Op::Insert(15, 5)),
        (T1, Op::Commit),
        (T2, Op::Commit),
    ],
    appears: |run| {
        run.committed(&[T1, T2]) && run.reads(T1) == [rows(&[])] && run.reads(T2) == [rows(&[])]
    },
};
