//! Sequences: values under consecutive numbers, with numbers for their ends.

#![forbid(unsafe_code)]

use super::cell::Cell;
use super::cells::{CellTable, Cells};
use super::directory::unnamed_cells;
use super::elements::ElementTable;
use super::map::TMap;
use super::maps::MapTable;
use super::stored::Stored;
use crate::api::{Database, Table, find_table};
use crate::catalog::{OBJECT_TABLES, TableOptions};
use crate::engine::Protocol;
use crate::error::{Abort, Error};
use crate::handle::Handle;
use crate::index::Found;
use crate::record::CellAt;
use crate::schema::{Column, Hashed};
use crate::txn::Tx;
use std::ops::RangeBounds;

/// The column of the number of an end.
pub(super) const NUMBER: Column<Cell<i64>, i64> = Cell::<i64>::VALUE;

/// Values under consecutive numbers. Each end has a cell, which is a unit of conflict of its own.
pub(super) struct Sequence<V: Stored, P: Protocol> {
    elements: TMap<u64, V, P, Hashed>,
    ends: Cells<Table<Cell<i64>, P>, P>,
}

impl<V: Stored, P: Protocol> Clone for Sequence<V, P> {
    fn clone(&self) -> Self {
        Sequence { elements: self.elements.clone(), ends: self.ends.clone() }
    }
}

impl<V: Stored, P: Protocol> Sequence<V, P> {
    /// Makes a sequence without a name, with this number of ends, all zero.
    pub(super) fn new(db: &Database<P>, ends: u64) -> Result<Sequence<V, P>, Error> {
        Ok(Sequence { elements: TMap::new(db)?, ends: unnamed_cells(db, ends, &|_| 0)? })
    }

    /// Returns the sequence with a name. If there is none, makes one whose ends are zero.
    pub(super) fn named(
        db: &Database<P>,
        name: &str,
        kind: &str,
        ends: u64,
    ) -> Result<Sequence<V, P>, Error> {
        let type_name = format!("{kind}<{}>", V::type_name().0);
        let table = table_of_ends(db, <V::Map<u64, Hashed, P>>::VOLATILE)?;
        let zeros = || std::iter::repeat_n(0, ends as usize);
        let (elements, first) =
            TMap::named_with_cells(db, name, (&type_name, ends), &mut |tx, first| {
                Cells::fill(&table, tx, first, zeros())
            })?;
        Ok(Sequence { elements, ends: Cells::new(table, (first, ends), None) })
    }

    /// Returns the number of an end.
    pub(super) fn number(&self, tx: &Tx<'_, P>, end: u64) -> Result<i64, Abort> {
        self.ends.row(tx, end)?.read(NUMBER)
    }

    /// Returns whether the number of an end is in `range`, and observes only that if the protocol
    /// can ([`Table::is_within`]).
    pub(super) fn is_within(
        &self,
        tx: &Tx<'_, P>,
        end: u64,
        range: impl RangeBounds<i64>,
    ) -> Result<bool, Abort> {
        self.ends.row(tx, end)?.is_within(NUMBER, range)
    }

    /// Adds to the number of an end.
    pub(super) fn add(&self, tx: &Tx<'_, P>, end: u64, summand: i64) -> Result<(), Abort> {
        self.ends.row(tx, end)?.update(NUMBER.add(summand))
    }

    /// Appends a value at an end: under its number, which is one more afterwards.
    pub(super) fn append(&self, tx: &Tx<'_, P>, end: u64, value: V::Value) -> Result<(), Abort> {
        match self.base(tx, end) {
            Ok(base) => self.elements.table.append(tx, base, value),
            Err(refusal) => self.refuse(tx, value).and(Err(refusal)),
        }
    }

    /// Takes a value that an operation has refused. It is dropped after the transaction.
    pub(super) fn refuse(&self, tx: &Tx<'_, P>, value: V::Value) -> Result<(), Abort> {
        self.elements.table.refuse(tx, value)
    }

    /// Returns the number of values that the transaction has appended at an end, and whose numbers
    /// it does not know.
    pub(super) fn late(&self, tx: &Tx<'_, P>, end: u64) -> Result<i64, Abort> {
        if !tx.state.borrow().may_have_late_rows() {
            return Ok(0);
        }
        let base = self.base(tx, end)?;
        Ok(tx.state.borrow().late_rows_on(base) as i64)
    }

    /// Observes the number of an end, so that the transaction knows the numbers of all values that
    /// it has appended there.
    pub(super) fn settle(&self, tx: &Tx<'_, P>, end: u64) -> Result<(), Abort> {
        if !tx.state.borrow().may_have_late_rows() {
            return Ok(());
        }
        let base = self.base(tx, end)?;
        tx.state.borrow_mut().settle(tx.engine, base)
    }

    /// Returns the unit of an end.
    fn base(&self, tx: &Tx<'_, P>, end: u64) -> Result<CellAt, Abort> {
        let table = &self.ends.table;
        let state = &mut *tx.state.borrow_mut();
        let record = table.in_words(&(self.ends.first + end), |key| {
            match state.find(tx.engine, table.core(), key)? {
                Found::Record(record) => Ok(Some(record)),
                Found::Nothing { .. } => state.find_again(tx.engine, table.core(), key),
            }
        })?;
        let first = record.map(|record| table.core().layout.first_of(record));
        first.ok_or_else(|| state.outcome_in(Abort::NotFound, table.core()))
    }

    /// Returns the value under a number. The transaction has observed that there is one.
    pub(super) fn read<'t>(&'t self, tx: &'t Tx<'_, P>, number: i64) -> Result<V::Seen<'t>, Abort> {
        self.elements.table.read(tx, number as u64)
    }

    /// Replaces the value under a number. The transaction has observed that there is one.
    pub(super) fn set(&self, tx: &Tx<'_, P>, number: i64, value: V::Value) -> Result<(), Abort> {
        self.elements.table.set(tx, number as u64, value)
    }

    /// Deletes the value under a number. The transaction has observed that there is one.
    pub(super) fn delete(&self, tx: &Tx<'_, P>, number: i64) -> Result<(), Abort> {
        self.elements.table.delete(tx, number as u64)
    }
}

/// Returns the table of the ends of sequences with names.
fn table_of_ends<P: Protocol>(
    db: &Database<P>,
    is_volatile: bool,
) -> Result<Table<Cell<i64>, P>, Error> {
    if !is_volatile {
        return CellTable::open(db, true);
    }
    let name = format!("{OBJECT_TABLES}volatile.ends");
    let options = TableOptions::default().volatile();
    let core = find_table(&db.inner, &name, options, &Cell::<i64>::row_type())?;
    Ok(Table::new(Handle::of_memory(&db.inner), core))
}
