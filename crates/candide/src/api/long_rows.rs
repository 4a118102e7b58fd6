//! Rows with columns of any length, as operations store them.

#![forbid(unsafe_code)]

use super::row_values::insert_rows;
use super::table::Table;
use crate::access::OutcomeNote;
use crate::catalog::schema_of;
use crate::engine::Protocol;
use crate::error::Abort;
use crate::index::Place;
use crate::schema::column::undecoded_in;
use crate::schema::{
    Buffer, Key, LONG_BYTES_MAX, LongColumn, LongSink, Pinned, Record, RowMeta, RowType, store_in,
};
use crate::txn::{InsertTarget, Tx};
use candide_log::LongColumns;

/// The keeper of the bytes of a row that an operation is about to insert or to put. It borrows the
/// transaction only between calls of the row's own code.
struct Keeper<'a, R: Record, P: Protocol> {
    table: &'a Table<R, P>,
    tx: &'a Tx<'a, P>,
    key: R::Key,
}

impl<R: Record, P: Protocol> LongSink for Keeper<'_, R, P> {
    fn keep(&mut self, column: LongColumn, bytes: &[u8]) -> Result<u64, Abort> {
        let (state, core) = (&mut *self.tx.state.borrow_mut(), self.table.core());
        if bytes.len() > LONG_BYTES_MAX {
            return Err(state.refuse_too_long(self.note(Abort::TextTooLong), column, bytes.len()));
        }
        state.stage_long(self.tx.engine, core, bytes)
    }

    fn refuse(&mut self, column: LongColumn, problem: String) -> Abort {
        let note = self.note(Abort::Unencodable);
        self.tx.state.borrow_mut().refuse_value(note, column, problem)
    }
}

impl<R: Record, P: Protocol> Keeper<'_, R, P> {
    /// Returns an outcome of the row.
    fn note(&self, cause: Abort) -> OutcomeNote {
        let core = self.table.core();
        core.layout.in_kept_words(self.key.words().as_ref(), |key| {
            OutcomeNote::of_key(cause, core.number, key)
        })
    }
}

/// [`Table::keep_row`].
type KeepRow<R, P> = for<'a> fn(
    &Table<R, P>,
    &Tx<'_, P>,
    &R,
    &'a mut <R as Record>::Image,
) -> Result<&'a [u64], Abort>;

/// [`Table::insert_words_of_long`].
type InsertWords<R, P> = fn(&Table<R, P>, &Tx<'_, P>, &[u64]) -> Result<(), Abort>;

/// [`Table::insert_long`].
type InsertLong<R, P> = fn(&Table<R, P>, &Tx<'_, P>, &R, &mut Place) -> Result<bool, Abort>;

impl<R: Record, P: Protocol> Table<R, P> {
    /// The function that keeps the bytes of a row; `None` if rows have no columns of any length, so
    /// that it is not compiled for them.
    pub(super) const KEEP_ROW: Option<KeepRow<R, P>> =
        if R::LONG.is_empty() { None } else { Some(Table::keep_row) };

    /// Returns the function that inserts a row with columns of any length, as
    /// [`Table::KEEP_ROW`].
    pub(super) const fn insert_of_long<const TELLS: bool>() -> Option<InsertLong<R, P>> {
        if R::LONG.is_empty() { None } else { Some(Table::insert_long::<TELLS>) }
    }

    /// The function that inserts rows from outside, as [`Table::KEEP_ROW`].
    pub(super) const INSERT_WORDS_OF_LONG: Option<InsertWords<R, P>> =
        if R::LONG.is_empty() { None } else { Some(Table::insert_words_of_long) };

    /// Does the work of [`Table::insert_words`] for rows with columns of any length.
    #[inline(never)]
    fn insert_words_of_long(&self, tx: &Tx<'_, P>, rows: &[u64]) -> Result<(), Abort> {
        let schema = schema_of(&self.core().name, &RowType::of::<R>());
        let table = (self.core(), &LongColumns::of(&schema));
        insert_rows(
            tx,
            table,
            rows,
            &|key, words| match undecoded_in::<R>(words, Pinned::by(words)) {
                Some(undecoded) if R::CODED => {
                    let mut state = tx.state.borrow_mut();
                    Err(state.refuse_undecoded(self.core(), &R::Key::from_words(key), undecoded))
                }
                _ => Ok(()),
            },
        )
    }

    /// Keeps the bytes of a row until the attempt ends, and returns the words of the row. Nothing
    /// is linked or staged before.
    ///
    /// # Errors
    /// [`Abort::TextTooLong`], [`Abort::MemoryLimit`].
    #[inline(never)]
    fn keep_row<'a>(
        &self,
        tx: &Tx<'_, P>,
        row: &R,
        image: &'a mut R::Image,
    ) -> Result<&'a [u64], Abort> {
        tx.state.borrow_mut().note_value_write(tx.engine, self.core())?;
        store_in(row, image, &mut Keeper { table: self, tx, key: row.key() })
    }

    /// Does the work of [`Table::insert_unless`] for a row with columns of any length. If possible,
    /// links the record at `place`.
    #[inline(never)]
    fn insert_long<const TELLS: bool>(
        &self,
        tx: &Tx<'_, P>,
        row: &R,
        place: &mut Place,
    ) -> Result<bool, Abort> {
        let mut image = R::Image::ZERO;
        let words = self.keep_row(tx, row, &mut image)?;
        let (state, core, engine) = (&mut *tx.state.borrow_mut(), self.core(), tx.engine);
        let key = row.key();
        let target = core
            .layout
            .in_kept_words(key.words().as_ref(), |key| state.link(engine, core, key, place));
        let InsertTarget { record, is_new } = target?;
        if is_new {
            if !core.indexes.is_empty() {
                state.add_entries(engine, core, record, words)?;
            }
            state.stage_new_words(engine, core, record, words)?;
            return Ok(true);
        }
        let first = core.layout.first_of(record);
        if TELLS && P::ASSUMES_BLINDLY && state.learn_existence(engine, first, false)? {
            return Ok(false);
        }
        state.insert_again(engine, core, record, words)
    }
}
