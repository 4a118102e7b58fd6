//! Dirty reads: a transaction sees values that another transaction has not committed.

use super::script::{Anomaly, Index, Op, Promise, T1, T2, TWO_ROWS, value};

pub(super) const G1A: Anomaly = Anomaly {
    name: "G1a",
    about: "aborted read: a transaction sees what another one wrote before it was rolled back",
    breaks: Promise::Serializable,
    index: Index::Hashed,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Set(1, 101)),
        (T2, Op::Read(1)),
        (T1, Op::Rollback),
        (T2, Op::Read(1)),
        (T2, Op::Commit),
    ],
    appears: |run| run.committed(&[T2]) && run.reads(T2).contains(&value(101)),
};

pub(super) const G1B: Anomaly = Anomaly {
    name: "G1b",
    about: "intermediate read: a transaction sees a value that its writer went on to replace",
    breaks: Promise::Serializable,
    index: Index::Hashed,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Set(1, 101)),
        (T2, Op::Read(1)),
        (T1, Op::Set(1, 11)),
        (T1, Op::Commit),
        (T2, Op::Read(1)),
        (T2, Op::Commit),
    ],
    appears: |run| run.committed(&[T2]) && run.reads(T2).contains(&value(101)),
};

pub(super) const G1C: Anomaly = Anomaly {
    name: "G1c",
    about: "circular information flow: of two transactions, each sees what the other one wrote",
    breaks: Promise::Serializable,
    index: Index::Hashed,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Set(1, 11)),
        (T2, Op::Set(2, 22)),
        (T1, Op::Read(2)),
        (T2, Op::Read(1)),
        (T1, Op::Commit),
        (T2, Op::Commit),
    ],
    appears: |run| {
        run.committed(&[T1, T2]) && run.reads(T1) == [value(22)] && run.reads(T2) == [value(11)]
    },
};
