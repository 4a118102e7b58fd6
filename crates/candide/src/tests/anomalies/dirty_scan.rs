//! Scans beside uncommitted inserts, deletes and updates.

use super::script::{Anomaly, Index, Op, Promise, T1, T2, rows};

pub(super) const DIRTY_SCAN: Anomaly = Anomaly {
    name: "dirty scan",
    about: "a scan shows what another transaction has inserted, deleted and updated and not committed",
    breaks: Promise::Serializable,
    index: Index::Ordered,
    rows: &[(10, 1), (20, 2), (30, 3)],
    script: &[
        (T1, Op::Insert(15, 9)),
        (T1, Op::Delete(20)),
        (T1, Op::Set(30, 7)),
        (T2, Op::Scan(10, 30)),
        (T1, Op::Rollback),
        (T2, Op::Commit),
    ],
    appears: |run| run.committed(&[T2]) && run.reads(T2) != [rows(&[(10, 1), (20, 2), (30, 3)])],
};

pub(super) const SKIPPED_INSERT: Anomaly = Anomaly {
    name: "dirty scan, insert passed over",
    about: "a scan passes over an insert of a transaction that then commits, and has to come first",
    breaks: Promise::Serializable,
    index: Index::Ordered,
    rows: &[(10, 1), (20, 2), (30, 3)],
    script: &[
        (T1, Op::Insert(15, 9)),
        (T1, Op::Read(10)),
        (T2, Op::Scan(10, 30)),
        (T2, Op::Set(10, 8)),
        (T1, Op::Commit),
        (T2, Op::Commit),
    ],
    appears: |run| {
        run.committed(&[T1, T2]) && run.reads(T2) == [rows(&[(10, 1), (20, 2), (30, 3)])]
    },
};
