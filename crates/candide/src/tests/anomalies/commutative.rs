//! Lost commutative updates: of two updates that commute, one is lost.

use super::script::{Anomaly, Index, Op, Promise, T1, T2, TWO_ROWS};
use crate::sync::Point;

pub(super) const LOST_COMMUTATIVE: Anomaly = Anomaly {
    name: "lost commutative update",
    about: "two transactions add to the same value without reading it, and one sum is missing",
    breaks: Promise::Serializable,
    index: Index::Hashed,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Add(1, 1)),
        (T2, Op::Add(1, 100)),
        (T1, Op::Until(Point::Unlocked)),
        (T2, Op::Commit),
        (T1, Op::Commit),
    ],
    appears: |run| run.committed(&[T1, T2]) && run.values()[0] != (1, 111),
};
