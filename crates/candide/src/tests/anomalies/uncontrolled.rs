//! Three ways to run transactions without concurrency control, each in a few lines. These models
//! show that a script's anomaly can appear: a test that cannot fail proves nothing.

use super::script::{Anomaly, End, Op, Part, Rows, Run, Seen, rows_of};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Uncontrolled {
    /// Every step takes effect at once, and no effect is ever undone.
    InPlace,
    /// Reads see the rows that are committed at the time of the read. Writes are evaluated at once
    /// and take effect at the commit. The commit checks nothing.
    ReadCommitted,
    /// Like [`Uncontrolled::ReadCommitted`], but reads see the rows that were committed when the
    /// transaction began.
    Snapshots,
}

impl Uncontrolled {
    pub(super) const ALL: [Uncontrolled; 3] =
        [Uncontrolled::InPlace, Uncontrolled::ReadCommitted, Uncontrolled::Snapshots];

    pub(super) fn name(self) -> &'static str {
        match self {
            Uncontrolled::InPlace => "in place",
            Uncontrolled::ReadCommitted => "read committed",
            Uncontrolled::Snapshots => "snapshots",
        }
    }

    /// Runs a script, step after step.
    pub(super) fn run(self, anomaly: &Anomaly) -> Run {
        let mut committed = rows_of(anomaly.rows);
        let mut running: BTreeMap<usize, Running> = BTreeMap::new();
        let mut parts = BTreeMap::new();
        for (time, &(who, op)) in anomaly.script.iter().enumerate() {
            let part = Part { begun: time, ended: time, end: End::Committed, seen: Vec::new() };
            let beginning =
                || Running { part, snapshot: committed.clone(), writes: BTreeMap::new() };
            let transaction = running.entry(who.0).or_insert_with(beginning);
            transaction.part.ended = time;
            match op {
                Op::Commit => {
                    let Running { part, writes, .. } =
                        running.remove(&who.0).expect("it has begun");
                    install(&writes, &mut committed);
                    parts.insert(who.0, part);
                }
                Op::Rollback => {
                    let Running { part, .. } = running.remove(&who.0).expect("it has begun");
                    parts.insert(who.0, Part { end: End::RolledBack, ..part });
                }
                _ => {
                    let seen = match self {
                        Uncontrolled::InPlace => op.alone(&mut committed),
                        Uncontrolled::ReadCommitted => transaction.aside(op, committed.clone()),
                        Uncontrolled::Snapshots => {
                            transaction.aside(op, transaction.snapshot.clone())
                        }
                    };
                    transaction.part.seen.push((op, seen));
                }
            }
        }
        assert!(running.is_empty(), "{}: every script ends what it begins", anomaly.name);
        Run { parts: parts.into_values().collect(), rows: committed, excluded: false }
    }
}

struct Running {
    part: Part,
    snapshot: Rows,
    /// The rows as they will be after the commit; `None` for a row that will be deleted.
    writes: BTreeMap<u64, Option<(i64, i64)>>,
}

impl Running {
    /// Does a step on `rows` as the transaction sees them, that is, with its own writes. Adds the
    /// changes of the step to the transaction's writes.
    fn aside(&mut self, op: Op, mut rows: Rows) -> Seen {
        install(&self.writes, &mut rows);
        let before = rows.clone();
        let seen = op.alone(&mut rows);
        for &key in before.keys().chain(rows.keys()) {
            if before.get(&key) != rows.get(&key) {
                self.writes.insert(key, rows.get(&key).copied());
            }
        }
        seen
    }
}

fn install(writes: &BTreeMap<u64, Option<(i64, i64)>>, rows: &mut Rows) {
    for (&key, &write) in writes {
        match write {
            Some(row) => rows.insert(key, row),
            None => rows.remove(&key),
        };
    }
}
