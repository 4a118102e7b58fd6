//! Fractured reads: the groups of a row are read one by one, and are not from one version of the
//! row.

use super::script::{Anomaly, Index, NOTHING, Op, Promise, T1, T2, TWO_ROWS, value};

pub(super) const FRACTURED: Anomaly = Anomaly {
    name: "read fractured across groups",
    about: "one group of a row is from before an update of both, the other one from after it",
    breaks: Promise::Serializable,
    index: Index::Hashed,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Read(1)),
        (T2, Op::Set(1, 11)),
        (T2, Op::SetCold(1, 111)),
        (T2, Op::Commit),
        (T1, Op::ReadCold(1)),
        (T1, Op::Commit),
    ],
    appears: |run| run.committed(&[T1]) && run.reads(T1) == [value(10), value(111)],
};

pub(super) const FRACTURED_DELETE: Anomaly = Anomaly {
    name: "read fractured across groups, delete",
    about: "one group of a row is from before its delete, the other one is gone",
    breaks: Promise::Serializable,
    index: Index::Hashed,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::ReadCold(1)),
        (T2, Op::Delete(1)),
        (T2, Op::Commit),
        (T1, Op::Read(1)),
        (T1, Op::Commit),
    ],
    appears: |run| run.committed(&[T1]) && run.reads(T1) == [value(100), NOTHING],
};
