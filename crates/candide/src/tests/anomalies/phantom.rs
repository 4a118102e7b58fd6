//! Phantoms: rows that appear where a transaction has searched and found no row.

use super::script::{Anomaly, Index, Op, Promise, T1, T2, T3, TWO_ROWS};

pub(super) const PHANTOM_RANGE: Anomaly = Anomaly {
    name: "phantom by range",
    about: "a second scan of the same keys finds one more",
    breaks: Promise::Serializable,
    index: Index::Ordered,
    rows: &[(10, 1), (20, 2), (30, 3)],
    script: &[
        (T1, Op::Scan(11, 29)),
        (T2, Op::Insert(15, 9)),
        (T2, Op::Commit),
        (T1, Op::Scan(11, 29)),
        (T1, Op::Commit),
    ],
    appears: |run| run.sees_a_change(T1),
};

pub(super) const PHANTOM_ABSENT: Anomaly = Anomaly {
    name: "phantom by absent key",
    about: "a key that was not there is there when it is read again",
    breaks: Promise::Serializable,
    index: Index::Ordered,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Read(3)),
        (T2, Op::Insert(3, 30)),
        (T2, Op::Commit),
        (T1, Op::Read(3)),
        (T1, Op::Commit),
    ],
    appears: |run| run.sees_a_change(T1),
};

pub(super) const PHANTOM_ABSENT_HASHED: Anomaly = Anomaly {
    name: "phantom by absent key, hashed",
    about: "the same in a table without order",
    index: Index::Hashed,
    ..PHANTOM_ABSENT
};

pub(super) const PHANTOM_DELETED: Anomaly = Anomaly {
    name: "phantom by deleted key",
    about: "the same with a key that had been there before",
    breaks: Promise::Serializable,
    index: Index::Hashed,
    rows: TWO_ROWS,
    script: &[
        (T1, Op::Delete(2)),
        (T1, Op::Commit),
        (T2, Op::Read(2)),
        (T3, Op::Insert(2, 30)),
        (T3, Op::Commit),
        (T2, Op::Read(2)),
        (T2, Op::Commit),
    ],
    appears: |run| run.sees_a_change(T2),
};

pub(super) const PHANTOM_NEXT: Anomaly = Anomaly {
    name: "phantom by next key",
    about: "the first row from a key on is another one the next time",
    breaks: Promise::Serializable,
    index: Index::Ordered,
    rows: &[(10, 1), (20, 2), (30, 3)],
    script: &[
        (T1, Op::First(11)),
        (T2, Op::Insert(15, 9)),
        (T2, Op::Commit),
        (T1, Op::First(11)),
        (T1, Op::Commit),
    ],
    appears: |run| run.sees_a_change(T1),
};

pub(super) const PHANTOM_PREVIOUS: Anomaly = Anomaly {
    name: "phantom by next key, backwards",
    about: "the last row up to a key is another one the next time",
    breaks: Promise::Serializable,
    index: Index::Ordered,
    rows: &[(10, 1), (20, 2), (30, 3)],
    script: &[
        (T1, Op::Last(29)),
        (T2, Op::Insert(25, 9)),
        (T2, Op::Commit),
        (T1, Op::Last(29)),
        (T1, Op::Commit),
    ],
    appears: |run| run.sees_a_change(T1),
};

/// The rows nearly fill a leaf of the index. The scanning transaction's own inserts split that
/// leaf. The phantom is in the other half of the leaf.
pub(super) const PHANTOM_OWN_SPLIT: Anomaly = Anomaly {
    name: "phantom by range, own split",
    about: "the same after inserts of the transaction itself have divided what it had scanned",
    breaks: Promise::Serializable,
    index: Index::Ordered,
    rows: &[
        (10, 1),
        (20, 1),
        (30, 1),
        (40, 1),
        (50, 1),
        (60, 1),
        (70, 1),
        (80, 1),
        (90, 1),
        (100, 1),
        (110, 1),
        (120, 1),
    ],
    script: &[
        (T1, Op::Scan(111, 119)),
        (T1, Op::Insert(51, 2)),
        (T1, Op::Insert(52, 2)),
        (T1, Op::Insert(53, 2)),
        (T1, Op::Insert(54, 2)),
        (T1, Op::Insert(55, 2)),
        (T1, Op::Insert(56, 2)),
        (T2, Op::Insert(115, 3)),
        (T2, Op::Commit),
        (T1, Op::Scan(111, 119)),
        (T1, Op::Commit),
    ],
    appears: |run| run.sees_a_change(T1),
};
