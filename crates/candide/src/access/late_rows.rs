//! Late rows: rows whose keys the commit computes.
//!
//! A late row is appended to a sequence, whose rows have consecutive numbers as keys. The number of
//! the next row is a number in a unit of another row, the *base*. The transaction adds to that
//! number without reading it. Its commit finds the key of the late row when it has locked the base:
//! the number that it finds there, and what the transaction has added to it before the row.
//!
//! A late row is *settled* when the transaction itself has to know its key: the base is observed,
//! and the row is staged as any other row. The rows of one base are settled together, so those that
//! are settled are older than those that are not.

#![forbid(unsafe_code)]

use super::item::Intent;
use super::item::NONE;
use super::late_row::LateRow;
use super::user_codes::UserCode;
use super::write_set::WriteSet;
use crate::record::{CellAt, PlacedUnit};
use crate::schema::Op;

impl WriteSet {
    /// Keeps a row whose key the commit computes.
    pub(crate) fn push_late_row(&mut self, table: u16, base: CellAt, before: i64, image: &[u64]) {
        let image = self.push_operands(image.iter().copied());
        let row = LateRow { base, before, table, image, older: NONE, is_settled: false };
        self.operations.users_mut().push_late(row);
    }

    /// Returns the number of rows whose keys the commit computes.
    pub(crate) fn late_row_count(&self) -> usize {
        self.operations.users().late()
    }

    /// Returns the rows whose keys the commit computes, in the order of the program.
    pub(crate) fn late_rows(&self) -> impl Iterator<Item = &LateRow> {
        self.operations.users().late_rows().filter(|row| !row.is_settled)
    }

    /// Returns the number of rows of one base whose keys the commit computes.
    pub(crate) fn late_row_count_on(&self, base: CellAt) -> usize {
        self.operations.users().late_on(base)
    }

    /// Returns the rows of one base whose keys the commit computes, the newest first, with their
    /// numbers.
    pub(crate) fn late_rows_on(&self, base: CellAt) -> impl Iterator<Item = (usize, &LateRow)> {
        self.operations.users().late_rows_on(base).take_while(|(_, row)| !row.is_settled)
    }

    /// Returns whether the newest late row of a base has been settled, so that the transaction has
    /// observed the base.
    pub(crate) fn has_settled_on(&self, base: CellAt) -> bool {
        self.operations
            .users()
            .late_rows_on(base)
            .next()
            .is_some_and(|(_, newest)| newest.is_settled)
    }

    /// Returns whether the commit computes a key from the number in this unit.
    pub(super) fn is_base(&self, at: CellAt) -> bool {
        self.operations.has_users() && self.operations.users().late_on(at) > 0
    }

    /// Notes that the late row with this number has been staged with its key.
    pub(crate) fn settle(&mut self, number: usize) {
        self.operations.users_mut().settle(number);
    }

    /// Notes that rows have been settled together, of which the oldest has the number `oldest`.
    /// This is undone with the part of the transaction.
    pub(crate) fn note_settled(&mut self, oldest: usize) {
        self.operations.push_user(UserCode::Settled(oldest));
    }

    /// Returns whether the transaction has appended rows.
    pub(crate) fn may_have_late_rows(&self) -> bool {
        self.operations.has_users()
    }

    /// Returns the words of a late row.
    pub(crate) fn late_image(&self, row: &LateRow, words: usize) -> &[u64] {
        self.operations.operands(row.image, words)
    }

    /// Makes room for the items of late rows, which have `units` units in all, so that a commit
    /// adds them without an allocation (C4).
    pub(crate) fn reserve_late(&mut self, units: usize) {
        self.items.reserve(units);
        self.operations.reserve(units);
        self.places.reserve(self.items.len() + units);
    }

    /// Adds the item of a unit of a late row, whose record has been found. Returns the item's
    /// number.
    pub(crate) fn stage_late(&mut self, row: &LateRow, unit: PlacedUnit, at: CellAt) -> usize {
        let operand = row.image + unit.start() as u32;
        let op = Op { operand, ..Op::set_words(0, at.payload_words() as u16) };
        self.stage(at, Intent::Put, op)
    }
}
