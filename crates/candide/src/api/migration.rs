//! Migrations: the rows of a table in the files become rows of another type, in a new table that
//! replaces the old one.
//!
//! No transaction can use either table meanwhile: the program has named neither. The rows go
//! through ordinary transactions, in pieces, and are logged like others. The files know the new
//! table as unfinished until it has all rows and they are durable; then one change gives it the
//! name. Before that, each opening drops it.

#![forbid(unsafe_code)]

use super::quiescent::copy_unit;
use super::row_values::{insert_row, take_values};
use super::session::Session;
use super::table_end::{await_durable, retire};
use crate::catalog::{How, NewRow, Rewrite, TableCopy, TableOptions, files_error, schema_of};
use crate::engine::{IndexCore, Protocol, Stage, TableCore, Versions};
use crate::error::{Abort, Error};
use crate::handle::Handle;
use crate::index::{Found, Place};
use crate::log::Level;
use crate::record::KeptBytes;
use crate::schema::{Pinned, RowType, Shown, Unit, Words, image_words};
use candide_log::format::long_row::{LongRow, append_value};
use candide_log::{LongColumns, Store};
use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The number of rows that one transaction inserts.
const ROWS_AT_ONCE: usize = 256;
/// The number of rows that are looked up at once, so that their cache misses overlap.
const LOOKUPS_AT_ONCE: usize = 8;
/// The number of words of values from which on a transaction reads no more rows.
const VALUE_WORDS_AT_ONCE: usize = 1 << 17;

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
    session.acknowledge_at(Level::Memory);
    let common = &inner.engine.common;
    let copy = inner.catalog.begin_copy((common, store), options, row, rewrite)?;
    let long = LongColumns::of(&schema_of(&rewrite.schema.name, row));
    let work = Work { inner, old: core, new: &copy.core, long, row, rewrite };
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
            Ok(new)
        }
        Err(error) => {
            if store.settle().is_err() {
                // The next opening may find either table, so neither can be written until then.
                core.set_owner(None);
            }
            discard(inner, store, &mut session, &copy);
            Err(error)
        }
    }
}

/// Drops a copy that is not finished. If the files cannot be changed, the next opening drops it.
fn discard<P: Protocol>(
    inner: &Handle<P>,
    store: &Store,
    session: &mut Session<P>,
    copy: &TableCopy,
) {
    copy.core.set_owner(None);
    if let Some(number) = copy.core.log_number.get()
        && await_durable(inner).is_ok()
    {
        let _ = store.drop_table(number.into());
    }
    if let Some(former) = copy.former() {
        retire(session, &copy.core, former);
    }
}

/// Rows as files have them.
struct Rows {
    key_words: usize,
    row_words: usize,
    keys: Vec<u64>,
    words: Vec<u64>,
    /// The words of the values of all rows, and the ends of those of each.
    values: Vec<u64>,
    value_ends: Vec<usize>,
}

impl Rows {
    fn new(key_words: usize, row_words: usize) -> Rows {
        let (keys, words, values) = (Vec::new(), Vec::new(), Vec::new());
        Rows { key_words, row_words, keys, words, values, value_ends: Vec::new() }
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.words.clear();
        self.values.clear();
        self.value_ends.clear();
    }

    fn push(&mut self, row: &NewRow) {
        self.keys.extend_from_slice(&row.key);
        self.words.extend_from_slice(&row.words);
        self.values.extend_from_slice(&row.values);
        self.value_ends.push(self.values.len());
    }

    fn count(&self) -> usize {
        self.value_ends.len()
    }

    fn get(&self, place: usize) -> LongRow<'_> {
        let (key, words) = (place * self.key_words, place * self.row_words);
        let begin = place.checked_sub(1).map_or(0, |before| self.value_ends[before]);
        let values = &self.values[begin..self.value_ends[place]];
        let (key, words) =
            (&self.keys[key..key + self.key_words], &self.words[words..words + self.row_words]);
        LongRow::of(key, words, values).expect("the values of a row")
    }
}

/// The reason why rows were not inserted, and the place among them of the one in question.
struct NotInserted {
    place: usize,
    reason: Reason,
}

enum Reason {
    Abort(Abort),
    /// The text of a panic of the program's code.
    Panic(String),
}

/// The work on one table.
struct Work<'a, P: Protocol> {
    inner: &'a Handle<P>,
    old: &'a TableCore,
    new: &'a TableCore,
    /// The columns of any length of the new table.
    long: LongColumns,
    row: &'a RowType,
    rewrite: &'a Rewrite,
}

impl<P: Protocol> Work<'_, P> {
    /// Copies all rows.
    fn copy_rows(&self, session: &mut Session<P>) -> Result<(), Error> {
        let key_words = self.old.layout.key_words();
        let keys = session.linked_keys(self.old);
        let mut old = Rows::new(key_words, image_words(self.old.groups));
        let mut new = Rows::new(self.row.key_words, self.row.image_words);
        let mut converted = NewRow::default();
        let mut kept = KeptBytes::new(self.inner.engine.long_memory());
        let mut rest = &keys[..];
        while !rest.is_empty() {
            let next = &rest[..rest.len().min(ROWS_AT_ONCE * key_words)];
            let count = self.read(session, next, &mut old)?;
            rest = &rest[count * key_words..];
            new.clear();
            for place in 0..old.count() {
                let done = self.convert(old.get(place), &mut kept, &mut converted);
                kept.clear();
                done?;
                new.push(&converted);
            }
            self.insert(session, &new, 0..new.count())
                .map_err(|reason| self.refused(session, (&old, &new), reason))?;
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
                let table = self.rewrite.schema.name.clone();
                Err(Error::Migration { table, key: String::new(), problem: problem.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Reads the rows with these keys, or with the first of them, if they have many values. Returns
    /// the number of these keys.
    fn read(
        &self,
        session: &mut Session<P>,
        keys: &[u64],
        rows: &mut Rows,
    ) -> Result<usize, Error> {
        let table = self.old;
        let key_words = table.layout.key_words();
        let mut keys_read = 0;
        let read = session.run_body(&mut |tx| {
            rows.clear();
            keys_read = 0;
            let state = &mut *tx.state.borrow_mut();
            state.admit(tx.engine, table)?;
            for keys in keys.chunks(LOOKUPS_AT_ONCE * key_words) {
                if rows.values.len() >= VALUE_WORDS_AT_ONCE {
                    break;
                }
                let count = keys.len() / key_words;
                let key = |place: usize| &keys[place * key_words..][..key_words];
                // Behind the last key comes that key again.
                let wanted = std::array::from_fn(|place| key(place.min(count - 1)));
                let found = table.index.find_many::<LOOKUPS_AT_ONCE, _>(&wanted, key_words);
                for (place, found) in found.into_iter().take(count).enumerate() {
                    let Found::Record(record) = found else { continue };
                    let first = rows.words.len();
                    rows.words.resize(first + rows.row_words, 0);
                    let to = &mut rows.words[first..];
                    let copy = &mut |unit: Unit, from: Words<'_>| copy_unit(table, unit, from, to);
                    let units = table.layout.units();
                    if state.read_units(tx.engine, table, (record, units), copy)? {
                        let places = table.layout.named_places();
                        take_values(places, &mut rows.words[first..], tx, &mut rows.values);
                        rows.value_ends.push(rows.values.len());
                        rows.keys.extend_from_slice(key(place));
                    } else {
                        rows.words.truncate(first);
                    }
                }
                keys_read += count;
            }
            Ok(())
        });
        read.map(|()| keys_read).map_err(Error::Transaction)
    }

    /// Converts a row.
    fn convert(
        &self,
        old: LongRow<'_>,
        kept: &mut KeptBytes<'_>,
        new: &mut NewRow,
    ) -> Result<(), Error> {
        new.values.clear();
        let converted = match &self.rewrite.how {
            How::ByNames(conversion) => {
                let value = |place| old.values().find(|value| value.place == place)?.bytes();
                let NewRow { key, words, values } = &mut *new;
                let mut last = None;
                let new_value =
                    &mut |place, bytes: &[u8]| append_value(values, &mut last, place, bytes);
                conversion.convert((old.key, old.words), &value, (key, words), new_value)
            }
            How::By(function) => {
                new.key.clear();
                new.words.clear();
                let convert = || (function.convert)(old, kept, new);
                catch_unwind(AssertUnwindSafe(convert)).unwrap_or_else(|panic| {
                    let text = text_of(&*panic);
                    Err(format!("the function of the migration has panicked: {text}"))
                })
            }
        };
        let key_words = self.row.key_words;
        let checked = converted.and_then(|()| match new.key.len() {
            words if words == key_words => Ok(()),
            words => {
                Err(format!("its new key has {words} words, and its type declares {key_words}"))
            }
        });
        checked.map_err(|problem| self.failed(old, problem))
    }

    /// Inserts rows in one transaction.
    fn insert(
        &self,
        session: &mut Session<P>,
        rows: &Rows,
        places: Range<usize>,
    ) -> Result<(), NotInserted> {
        let mut place = 0;
        let inserting = || {
            session.run_body(&mut |tx| {
                let mut near = Place::default();
                for number in places.clone() {
                    place = number;
                    if !insert_row(tx, (self.new, &self.long), rows.get(number), &mut near)? {
                        return Err(Abort::Duplicate);
                    }
                }
                Ok(())
            })
        };
        // The keys of indexes are made by the program's code.
        let reason = match catch_unwind(AssertUnwindSafe(inserting)) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(abort)) => Reason::Abort(abort),
            Err(panic) => Reason::Panic(text_of(&*panic).to_owned()),
        };
        Err(NotInserted { place, reason })
    }

    /// Returns the error of rows that were refused, with the key of the row that is in the way.
    fn refused(
        &self,
        session: &mut Session<P>,
        (old, new): (&Rows, &Rows),
        mut refused: NotInserted,
    ) -> Error {
        if let Reason::Abort(Abort::Duplicate | Abort::NotUnique) = refused.reason {
            // A transaction may be refused at its end. One at a time, the first row that is in the
            // way shows itself.
            let mut one_at_a_time = 0..new.count();
            let first =
                one_at_a_time.find_map(|place| self.insert(session, new, place..place + 1).err());
            refused = first.unwrap_or(refused);
        }
        let (row, new) = (old.get(refused.place), new.get(refused.place));
        let problem = match refused.reason {
            Reason::Abort(Abort::Duplicate) => {
                format!("another row has got the key {}, too", self.shown(new.key))
            }
            Reason::Abort(Abort::NotUnique) => match self.unique_index_with(new) {
                Some(index) => format!(
                    "another row has the same key in the unique index {:?}{}",
                    index.name,
                    self.columns_of(index)
                ),
                None => "another row has the same key in a unique index".to_owned(),
            },
            Reason::Abort(Abort::MemoryLimit) => self.inner.engine.memory_limit_error().to_string(),
            Reason::Abort(other) => return Error::Transaction(other),
            Reason::Panic(text) => format!("the code of an index has panicked: {text}"),
        };
        self.failed(row, problem)
    }

    /// Returns the unique index that has the key of this row already.
    fn unique_index_with(&self, row: LongRow<'_>) -> Option<&IndexCore> {
        // An index with limits needs the bytes of the values, which are freed.
        let unique =
            self.new.indexes.kept().filter(|index| index.unique && !index.key.has_limits());
        let mut with_key = unique.filter(|index| {
            let mut entry = Vec::new();
            let is_made = self.new.layout.in_kept_words(row.key, |key| {
                index.entry_key(key, row.words, Pinned::by(self), &mut entry)
            });
            is_made.is_ok()
                && self.new.indexes.is_at(index, Stage::Enforced)
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
    fn failed(&self, row: LongRow<'_>, problem: String) -> Error {
        let schema = &self.rewrite.schema;
        let key = match schema.key_values(row.key) {
            Ok(values) if !values.is_empty() => {
                let values = values.iter().map(|(name, value)| format!("{name}: {value}"));
                values.collect::<Vec<_>>().join(", ")
            }
            _ => format!("the key {:x?}", row.key),
        };
        Error::Migration { table: schema.name.clone(), key, problem }
    }
}

/// Returns the text of a panic.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no text)")
}
