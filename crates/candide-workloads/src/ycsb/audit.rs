//! The check, which reads the whole table and compares it with the tally of committed writes.

use std::cell::RefCell;

use candide::{Protocol, Record, Session, Table};

use super::knobs::{Verify, Ycsb};
use super::layout::{Layout, Value, head};
use super::row::UserRow;
use super::writer::{Tag, Tally};
use crate::read_back::{ReadLong, Way, audit, fingerprint, rows};
use crate::{Consistency, Failure};

impl Verify {
    /// Returns the value that the loader writes into a column. `random` is a random value for the
    /// column.
    pub(super) fn initial<V: Value>(self, random: &V) -> V {
        match self {
            Verify::Counts | Verify::Values => random.clone(),
            Verify::Increment => {
                let bytes = random.bytes();
                V::from_fn(|index| if index < size_of::<u64>() { 0 } else { bytes[index] })
            }
            Verify::Tag => Tag::INITIAL.fill(),
        }
    }

    /// Returns whether `value` is a possible value of a column after loading and the committed
    /// writes in `tally`.
    fn explains(self, slot: usize, bytes: &[u8], tally: &Tally) -> bool {
        match self {
            Verify::Counts | Verify::Values => bytes.iter().all(u8::is_ascii_alphanumeric),
            Verify::Increment => bytes[size_of::<u64>()..].iter().all(u8::is_ascii_alphanumeric),
            Verify::Tag => tally.explains(slot, bytes),
        }
    }
}

/// Compares the table with the knobs by which it was loaded, and with the tally of committed
/// writes.
pub(super) fn check<P: Protocol, L: Layout>(
    table: &Table<UserRow<L>, P>,
    session: &RefCell<Session<P>>,
    knobs: &Ycsb<L>,
    tally: &Tally,
) -> Result<Consistency, Failure> {
    settle(&rows(table, session), knobs, tally, |row, each| {
        (0..).zip(row.columns.as_ref()).for_each(|(column, value)| each(column, value.bytes()));
    })
}

/// Does the work of [`check`] for rows of any type with keys of numbers, of which `columns` passes
/// each column's number and bytes.
pub(super) fn settle<R: Record<Key = u64>, L: Layout>(
    table: &dyn ReadLong<R>,
    knobs: &Ycsb<L>,
    tally: &Tally,
    columns: impl Fn(&R, &mut dyn FnMut(usize, &[u8])),
) -> Result<Consistency, Failure> {
    if knobs.verify == Verify::Counts {
        let mut consistency = Consistency::default();
        let rows = table.by_iteration(&mut |_| {})? as u64;
        consistency
            .expect(rows == knobs.rows, || format!("{rows} rows where {} were loaded", knobs.rows));
        return Ok(consistency);
    }
    let mut consistency = audit(
        |way| {
            let mut counts = Counts::default();
            let visit = &mut |row: &R| {
                counts.rows += 1;
                let key = row.key();
                columns(row, &mut |column, bytes| {
                    let slot = UserRow::<L>::slot(key, column);
                    let is_explained = knobs.verify.explains(slot, bytes, tally);
                    counts.count((key, column), bytes, is_explained);
                });
            };
            match way {
                Way::Transactions => table.by_keys(&mut (0..knobs.rows), visit)?,
                Way::Iteration => _ = table.by_iteration(visit)?,
            }
            Ok(counts)
        },
        |counts, way, consistency| counts.settle(way, knobs, tally, consistency),
        Counts::eq,
        |counts| format!("{counts:?}"),
    )?;
    if knobs.verify == Verify::Tag {
        consistency
            .expect(tally.torn == 0, || format!("{} reads saw a mix of two writes", tally.torn));
    }
    Ok(consistency)
}

/// The contents of the table, in a few numbers that do not depend on the order of the rows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    rows: u64,
    /// The sum of the first words of all columns.
    heads: u64,
    /// The number of columns with values that cannot have been written.
    strange: u64,
    /// The key and column of the first such column; `None` if there is none.
    strange_first: Option<(u64, usize)>,
    fingerprint: u64,
}

impl Counts {
    /// Counts the bytes of a column of a row; `place` is the row's key and the column's number.
    fn count(&mut self, place: (u64, usize), bytes: &[u8], is_explained: bool) {
        let (key, column) = place;
        self.heads = self.heads.wrapping_add(head(bytes));
        self.fingerprint =
            self.fingerprint.wrapping_add(fingerprint(key ^ (column as u64) << 56, bytes));
        if !is_explained {
            self.strange += 1;
            self.strange_first = Some(self.strange_first.map_or(place, |first| first.min(place)));
        }
    }

    /// Examines the counts of one way of reading, as far as the knobs allow.
    fn settle<L: Layout>(
        &self,
        way: &str,
        knobs: &Ycsb<L>,
        tally: &Tally,
        consistency: &mut Consistency,
    ) {
        consistency.expect(self.rows == knobs.rows, || {
            format!("{way}: {} rows where {} were loaded", self.rows, knobs.rows)
        });
        consistency.expect(self.strange == 0, || {
            let (key, column) = self.strange_first.unwrap_or_default();
            format!(
                "{way}: {} columns hold values that no committed transaction left, the first is column {column} of row {key}",
                self.strange
            )
        });
        if knobs.verify == Verify::Increment {
            consistency.expect(self.heads == tally.increments, || {
                format!(
                    "{way}: the counters add up to {}, committed were {} increments",
                    self.heads, tally.increments
                )
            });
        }
    }
}
