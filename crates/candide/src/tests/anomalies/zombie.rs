//! A zombie read: a doomed attempt sees a state that never existed.

use super::script::{Anomaly, Index, Op, Promise, T1, T2, TWO_ROWS, value};
use crate::sync::Point;

/// The writer has begun to commit when the reader begins. So the reader has to see the writer's
/// writes even under protocols that order by timestamps.
pub(super) const ZOMBIE: Anomaly = Anomaly {
    name: "zombie read",
    about: "an attempt that is going to fail sees one row from before another transaction and one from after it",
    breaks: Promise::Opaque,
    index: Index::Hashed,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Set(1, 11)),
        (T1, Op::Set(2, 22)),
        (T1, Op::Until(Point::Unlocked)),
        (T2, Op::Begin),
        (T2, Op::Read(1)),
        (T1, Op::Commit),
        (T2, Op::Read(2)),
        (T2, Op::Commit),
    ],
    appears: |run| run.reads(T2) == [value(10), value(22)],
};
