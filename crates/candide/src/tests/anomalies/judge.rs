//! The judge, which decides whether a run has kept a promise, by trying all serial orders.

use super::script::{COLD, End, Op, Part, Promise, Rows, Run, Seen};

impl Op {
    /// Does a step on `rows`, which no other transaction uses. Returns the result of the step.
    pub(super) fn alone(self, rows: &mut Rows) -> Seen {
        let found = |rows: &Rows, holds: &dyn Fn(u64, i64) -> bool| {
            let all = rows.iter().map(|(&key, &(value, _))| (key, value));
            all.filter(|&(key, value)| holds(key, value)).collect::<Vec<_>>()
        };
        let mut change = |key: u64, change: &dyn Fn(&mut (i64, i64))| {
            let row = rows.get_mut(&key);
            let there = row.is_some();
            row.into_iter().for_each(change);
            Seen::Done(there)
        };
        match self {
            Op::Begin | Op::Until(_) | Op::Commit | Op::Rollback => Seen::Done(true),
            Op::Read(key) | Op::ReadForUpdate(key) => Seen::Value(rows.get(&key).map(|row| row.0)),
            Op::ReadCold(key) => Seen::Value(rows.get(&key).map(|row| row.1)),
            Op::Set(key, value) => change(key, &|row| row.0 = value),
            Op::SetCold(key, value) => change(key, &|row| row.1 = value),
            Op::Add(key, summand) => change(key, &|row| row.0 += summand),
            Op::Insert(key, value) => {
                let is_new = !rows.contains_key(&key);
                rows.entry(key).or_insert((value, COLD));
                Seen::Done(is_new)
            }
            Op::Delete(key) => Seen::Done(rows.remove(&key).is_some()),
            Op::Select(kind) => Seen::Rows(found(rows, &|_, value| kind.holds(value))),
            Op::AddWhere(kind, summand) => {
                let rows = rows.values_mut().filter(|row| kind.holds(row.0));
                Seen::Done(rows.map(|row| row.0 += summand).count() > 0)
            }
            Op::DeleteWhere(kind) => {
                let before = rows.len();
                rows.retain(|_, row| !kind.holds(row.0));
                Seen::Done(rows.len() < before)
            }
            Op::Scan(lower, upper) => {
                Seen::Rows(found(rows, &|key, _| (lower..=upper).contains(&key)))
            }
            Op::First(lower) => {
                Seen::Rows(found(rows, &|key, _| key >= lower).into_iter().take(1).collect())
            }
            Op::Last(upper) => {
                Seen::Rows(found(rows, &|key, _| key <= upper).into_iter().rev().take(1).collect())
            }
        }
    }
}

/// Returns whether a run keeps a promise. A run keeps a promise if some serial order of its
/// transactions explains their reads and the final rows. Transactions that were rolled back leave
/// nothing. Attempts that failed leave nothing either, and only [`Promise::Opaque`] covers their
/// reads.
pub(super) fn keeps(run: &Run, before: &Rows, promise: Promise) -> bool {
    let parts =
        run.parts.iter().filter(|part| promise == Promise::Opaque || part.end != End::Conflict);
    let search = Search { in_real_time: promise != Promise::Serializable, after: &run.rows };
    search.explains(before, &parts.collect::<Vec<_>>())
}

struct Search<'a> {
    in_real_time: bool,
    after: &'a Rows,
}

impl Search<'_> {
    /// Returns whether some order of the transactions in `rest` leads from `rows` to the final
    /// rows.
    fn explains(&self, rows: &Rows, rest: &[&Part]) -> bool {
        if rest.is_empty() {
            return rows == self.after;
        }
        rest.iter().enumerate().any(|(index, part)| {
            if self.in_real_time && rest.iter().any(|other| other.ended < part.begun) {
                return false;
            }
            let mut after = rows.clone();
            let saw_that = part.seen.iter().all(|(op, seen)| op.alone(&mut after) == *seen);
            let others = [&rest[..index], &rest[index + 1..]].concat();
            saw_that
                && self.explains(if part.end == End::Committed { &after } else { rows }, &others)
        })
    }
}
