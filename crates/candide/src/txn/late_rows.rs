//! Rows that a transaction appends to a sequence, and whose keys the commit computes if the
//! protocol can (`access/late_rows.rs`).

#![forbid(unsafe_code)]

use super::state::State;
use crate::access::Intent;
use crate::engine::{Context, Engine, Protocol, TableCore};
use crate::error::Abort;
use crate::record::CellAt;
use crate::schema::{Code, Op};

/// The place of the number in a base: its word, its first bit, and its bits.
const NUMBER: (u16, u8, u64) = (0, 0, u64::MAX);

impl<P: Protocol> State<P> {
    /// Puts a row into a table under the key that is the number in `base`, the unit of another row,
    /// and adds one to that number. The number is not observed, unless the protocol has no late
    /// rows or the transaction has changed the number otherwise than by appending. `image` are the
    /// words of the row outside its key, which has one word.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if the row of the base does not exist; [`Abort::ReadOnly`], a conflict,
    /// or [`Abort::MemoryLimit`].
    pub(crate) fn append(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        base: CellAt,
        image: &[u64],
    ) -> Result<(), Abort> {
        self.admit_write()?;
        self.admit_update(engine, base)?;
        match self.appended(engine, base) {
            Some(before) => {
                self.make_room(engine, table)?;
                self.writes.push_late_row(table.number, base, before, image);
                self.note_deferred();
            }
            None => {
                let mut number = 0;
                if !self.read(engine, base, |words| number = words.get(0))? {
                    return Err(self.outcome_at(Abort::NotFound, base));
                }
                table.layout.in_kept_words(&[number], |key| self.put(engine, table, key, image))?;
            }
        }
        let operand = self.writes.push_operands([1, 0, 0].into_iter());
        let op = Op { code: Code::Add, signed: true, operand, ..Op::set_words(0, 1) };
        self.stage(engine, base, Intent::Update, op)
    }

    /// Returns what the transaction has added to the number in a base, if a row may be appended
    /// that gets its key at the commit.
    fn appended(&mut self, engine: &Engine<P>, base: CellAt) -> Option<i64> {
        if !engine.properties.late_rows || self.writes.has_settled_on(base) {
            return None;
        }
        let Some(item) = self.writes.find(base) else { return Some(0) };
        let sums = self.writes.sums_on(item, NUMBER)?;
        if sums.least < 0 { None } else { i64::try_from(sums.all).ok() }
    }

    /// Returns whether there may be rows whose keys only the commit computes.
    pub(crate) fn may_have_late_rows(&self) -> bool {
        self.writes.may_have_late_rows()
    }

    /// Returns the number of rows of this base whose keys only the commit computes.
    pub(crate) fn late_rows_on(&self, base: CellAt) -> usize {
        self.writes.late_row_count_on(base)
    }

    /// Settles the late rows of a base: observes the number in the base, and puts each row under
    /// its key.
    ///
    /// # Errors
    /// A conflict, or [`Abort::MemoryLimit`].
    #[inline(never)]
    pub(crate) fn settle(&mut self, engine: &Engine<P>, base: CellAt) -> Result<(), Abort> {
        let late: Vec<_> = self.writes.late_rows_on(base).map(|(at, row)| (at, *row)).collect();
        let Some(&(oldest, _)) = late.last() else { return Ok(()) };
        let mut first = 0;
        if !self.observe(engine, base, |words| first = words.get(0))? {
            let context = &mut Context::new(engine, &mut self.worker);
            let abort = context.conflict(Abort::ExistenceChanged, base);
            return Err(self.doom(abort));
        }
        let settled = late.into_iter().rev().try_for_each(|(number, row)| {
            let table = engine.table(row.table);
            let words = table.layout.unit_words().sum();
            let image = self.writes.late_image(&row, words).to_vec();
            table.layout.in_kept_words(&[row.key_after(first)], |key| {
                self.put(engine, &table, key, &image)
            })?;
            self.writes.settle(number);
            Ok(())
        });
        self.writes.note_settled(oldest);
        self.note_deferred();
        settled
    }
}
