//! Predicate-many-preceders: a transaction evaluates a predicate twice, and different rows satisfy
//! it.

use super::script::{Anomaly, Index, Op, Promise, T1, T2, TWO_ROWS, Where, rows};

pub(super) const PMP: Anomaly = Anomaly {
    name: "PMP",
    about: "predicate-many-preceders: a second scan finds a row that came after the first",
    breaks: Promise::Serializable,
    index: Index::Ordered,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Select(Where::Is(30))),
        (T2, Op::Insert(3, 30)),
        (T2, Op::Commit),
        (T1, Op::Select(Where::DivisibleBy(3))),
        (T1, Op::Commit),
    ],
    appears: |run| run.committed(&[T1]) && run.reads(T1) == [rows(&[]), rows(&[(3, 30)])],
};

pub(super) const PMP_WRITE: Anomaly = Anomaly {
    name: "PMP for write predicates",
    about: "a transaction deletes the rows of a value and still finds one, which another one has made",
    breaks: Promise::Serializable,
    index: Index::Ordered,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::AddWhere(Where::All, 10)),
        (T2, Op::DeleteWhere(Where::Is(20))),
        (T1, Op::Commit),
        (T2, Op::Select(Where::Is(20))),
        (T2, Op::Commit),
    ],
    appears: |run| run.committed(&[T1, T2]) && run.reads(T2) == [rows(&[(1, 20)])],
};
