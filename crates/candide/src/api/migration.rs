//! Migrations: the rows of a table in the files become rows of another type, in a new table that
//! replaces the old one.
//!
//! No transaction can use either table meanwhile: the program has named neither. The rows go
//! through ordinary transactions, in pieces, and are logged like others. The files know the new
//! table as unfinished until it has all rows and they are durable; then one change gives it the
//! name. Before that, each opening drops it.

#![forbid(unsafe_code)]

use super::quiescent::copy_unit;
use super::session::Session;
use super::table_end::{await_durable, empty};
use crate::catalog::{How, Rewrite, TableCopy, TableOptions, files_error};
use crate::engine::{IndexCore, Protocol, Stage, TableCore, Versions};
use crate::error::{Abort, Error};
use crate::handle::Handle;
use crate::index::Found;
use crate::log::Level;
use crate::schema::{RowType, Shown, Unit, Words, image_words};
use crate::txn::{InsertTarget, Tx};
use candide_log::Store;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The number of rows that one transaction inserts.
const ROWS_AT_ONCE: usize = 256;

/// Makes a table of rows of a program's type from a recovered one, and returns it. The caller has
/// locked the adoption of the old one.
///
/// # Errors
/// [`Error::Migration`], [`Error::SecondSession`], [`Error::Busy`], [`Error::Transaction`],
/// [`Error::Files`], and those of making a table.
#[cold]
#[inline(never)]
pub(super) fn migrate<P: Protocol>(
    inner: &Handle<P>,
    core: &Arc<TableCore>,
    options: TableOptions,
    row: &RowType,
    rewrite: &Rewrite,
) -> Result<Arc<TableCore>, Error> {
    inner.engine.epochs.refuse_inside()?;
    let store = &**inner.store().expect("a table that was recovered lies in files");
    let mut session = Session::new(inner)?;
    session.set_acknowledge(Level::Memory);
    let common = &inner.engine.common;
    let copy = inner.catalog.begin_copy((common, store), options, row, rewrite)?;
    let work = Work { inner, old: core, new: &copy.core, row, rewrite };
    let number = copy.core.log_number.get().expect("the copy is logged");
    let finished = work
        .copy_rows(&mut session)
        .and_then(|()| work.await_older())
        .and_then(|()| await_durable(inner))
        .and_then(|()| store.finish_table(number.into()).map_err(files_error));
    match finished {
        Ok(()) => {
            let new = copy.core.clone();
            inner.catalog.finish_copy(copy);
            core.set_owner(None);
            empty(&mut session, core);
            Ok(new)
        }
        Err(error) => {
            if store.settle().is_err() {
                // The next opening may find either table, so neither can be written until then.
                core.set_owner(None);
            }
            discard(inner, store, &mut session, copy);
            Err(error)
        }
    }
}

/// Drops a copy that is not finished. If the files cannot be changed, the next opening drops it.
fn discard<P: Protocol>(
    inner: &Handle<P>,
    store: &Store,
    session: &mut Session<P>,
    copy: TableCopy,
) {
    copy.core.set_owner(None);
    if let Some(number) = copy.core.log_number.get()
        && await_durable(inner).is_ok()
    {
        let _ = store.drop_table(number.into());
    }
    if empty(session, &copy.core) {
        inner.catalog.retire_copy(copy);
    }
}

/// A row as words: its key, and the rest.
#[derive(Default)]
struct Row {
    key: Vec<u64>,
    words: Vec<u64>,
}

/// The reason why rows were not inserted, and the place among them of the one in question.
struct NotInserted {
    place: usize,
    abort: Abort,
}

/// The work on one table.
struct Work<'a, P: Protocol> {
    inner: &'a Handle<P>,
    old: &'a TableCore,
    new: &'a TableCore,
    row: &'a RowType,
    rewrite: &'a Rewrite,
}

impl<P: Protocol> Work<'_, P> {
    /// Copies all rows.
    fn copy_rows(&self, session: &mut Session<P>) -> Result<(), Error> {
        let key_words = self.old.layout.key_words();
        let keys = session.linked_keys(self.old);
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for keys in keys.chunks(ROWS_AT_ONCE * key_words) {
            self.read(session, keys, &mut old)?;
            new.resize_with(old.len(), Row::default);
            for (old, new) in old.iter().zip(&mut new) {
                self.convert(old, new)?;
            }
            if let Err(NotInserted { place, abort }) = self.insert(session, &new)? {
                return Err(self.refused(session, (&old, &new), place, abort));
            }
        }
        Ok(())
    }

    /// Waits until no transaction reads at a time at which the new rows were not all there.
    fn await_older(&self) -> Result<(), Error> {
        let engine = &self.inner.engine;
        if engine.properties.version_words == 0 {
            return Ok(());
        }
        let time = P::begin_ts_bound(&engine.clock);
        engine.epochs.wait_for_others()?;
        match P::Versions::oldest_snapshot(&engine.clock) {
            Some((oldest, _)) if oldest < time => {
                let problem = "a snapshot from before the migration is open, and has no new rows";
                Err(self.failed(None, problem.to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Reads the rows with these keys.
    fn read(
        &self,
        session: &mut Session<P>,
        keys: &[u64],
        rows: &mut Vec<Row>,
    ) -> Result<(), Error> {
        let table = self.old;
        let row_words = image_words(table.groups);
        let read = session.run_body(&mut |tx| {
            rows.clear();
            for key in keys.chunks(table.layout.key_words()) {
                let state = &mut *tx.state.borrow_mut();
                let Found::Record(record) = state.find(tx.engine, table, key)? else { continue };
                let mut words = vec![0; row_words];
                let copy =
                    &mut |unit: Unit, from: Words<'_>| copy_unit(table, unit, from, &mut words);
                let units = table.layout.units();
                if state.read_units(tx.engine, table, (record, units), copy)? {
                    let key = table.layout.unpacked_key(record).as_slice().to_vec();
                    rows.push(Row { key, words });
                }
            }
            Ok(())
        });
        read.map_err(Error::Transaction)
    }

    /// Converts a row.
    fn convert(&self, old: &Row, new: &mut Row) -> Result<(), Error> {
        let (to_key, to_words) = (&mut new.key, &mut new.words);
        let converted = match &self.rewrite.how {
            How::ByNames(conversion) => {
                conversion.convert((&old.key, &old.words), (to_key, to_words))
            }
            How::By(function) => {
                to_key.clear();
                to_words.clear();
                let convert = || (function.convert)(&old.key, &old.words, to_key, to_words);
                catch_unwind(AssertUnwindSafe(convert)).map_err(|panic| {
                    format!("the function of the migration has panicked: {}", text_of(&*panic))
                })
            }
        };
        converted.map_err(|problem| self.failed(Some(old), problem))
    }

    /// Inserts rows in one transaction.
    fn insert(
        &self,
        session: &mut Session<P>,
        rows: &[Row],
    ) -> Result<Result<(), NotInserted>, Error> {
        let mut place = 0;
        let inserting = || {
            session.run_body(&mut |tx| {
                for (number, row) in rows.iter().enumerate() {
                    place = number;
                    if !self.insert_row(tx, row)? {
                        return Err(Abort::Duplicate);
                    }
                }
                Ok(())
            })
        };
        // The keys of indexes are made by the program's code.
        match catch_unwind(AssertUnwindSafe(inserting)) {
            Ok(inserted) => Ok(inserted.map_err(|abort| NotInserted { place, abort })),
            Err(panic) => {
                let panic = text_of(&*panic);
                Err(self.failed(None, format!("the code of an index has panicked: {panic}")))
            }
        }
    }

    /// Inserts a row, unless there is one with its key. Returns whether it was inserted.
    fn insert_row(&self, tx: &Tx<'_, P>, row: &Row) -> Result<bool, Abort> {
        let (state, table) = (&mut *tx.state.borrow_mut(), self.new);
        table.layout.in_kept_words(&row.key, |key| {
            let InsertTarget { record, is_new } = state.record_for(tx.engine, table, key)?;
            if !is_new {
                return state.insert_again(tx.engine, table, record, &row.words);
            }
            if !table.indexes.is_empty() {
                state.add_entries(tx.engine, table, record, &row.words)?;
            }
            state.stage_new_words(tx.engine, table, record, &row.words)?;
            Ok(true)
        })
    }

    /// Returns the error of rows that were refused, with the key of the row that is in the way.
    fn refused(
        &self,
        session: &mut Session<P>,
        (old, new): (&[Row], &[Row]),
        place: usize,
        abort: Abort,
    ) -> Error {
        match abort {
            Abort::Duplicate => {
                let key = self.shown(&new[place].key);
                self.failed(Some(&old[place]), format!("another row has got the key {key}, too"))
            }
            Abort::NotUnique => {
                // One at a time, the first one that is refused shows itself.
                let twin = (0..new.len()).find(|place| {
                    let inserted = self.insert(session, std::slice::from_ref(&new[*place]));
                    !matches!(inserted, Ok(Ok(())))
                });
                let index = twin.and_then(|place| self.unique_index_with(&new[place]));
                let problem = match index {
                    Some(index) => format!(
                        "another row has the same key in the unique index {:?}{}",
                        index.name,
                        self.columns_of(index)
                    ),
                    None => "another row has the same key in a unique index".to_owned(),
                };
                self.failed(twin.map(|place| &old[place]), problem)
            }
            Abort::MemoryLimit => {
                let limit = self.inner.engine.memory_limit_error();
                self.failed(Some(&old[place]), limit.to_string())
            }
            other => Error::Transaction(other),
        }
    }

    /// Returns the unique index that has the key of this row already.
    fn unique_index_with(&self, row: &Row) -> Option<&IndexCore> {
        let unique = self.new.indexes.kept().filter(|index| index.unique);
        let mut with_key = unique.filter(|index| {
            let mut entry = Vec::new();
            self.new
                .layout
                .in_kept_words(&row.key, |key| index.entry_key(key, &row.words, &mut entry));
            self.new.indexes.is_at(index, Stage::Enforced)
                && matches!(index.entries.index.find(&entry), Found::Record(_))
        });
        with_key.next()
    }

    /// Returns the columns of a declared index as a part of a sentence.
    fn columns_of(&self, index: &IndexCore) -> String {
        let spec = self.row.indexes.iter().find(|spec| *spec.name == *index.name);
        let fields = spec.into_iter().flat_map(|spec| spec.fields);
        let names: Vec<_> = fields
            .filter_map(|field| self.row.fields.get(usize::from(*field)))
            .map(|field| format!("`{}`", field.name))
            .collect();
        if names.is_empty() { String::new() } else { format!(" of {}", names.join(", ")) }
    }

    /// Returns a key of the new table as text.
    fn shown(&self, key: &[u64]) -> String {
        Shown { words: key, show: self.row.show_key }.to_string()
    }

    /// Returns the error of a row of the old table.
    fn failed(&self, row: Option<&Row>, problem: String) -> Error {
        let schema = &self.rewrite.schema;
        let key = row.map_or(String::new(), |row| match schema.key_values(&row.key) {
            Ok(values) if !values.is_empty() => {
                let values = values.iter().map(|(name, value)| format!("{name}: {value}"));
                values.collect::<Vec<_>>().join(", ")
            }
            _ => format!("the key {:x?}", row.key),
        });
        Error::Migration { table: schema.name.clone(), key, problem }
    }
}

/// Returns the text of a panic.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no text)")
}
