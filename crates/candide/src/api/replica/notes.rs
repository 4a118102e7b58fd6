//! The table of notes of a database that follows another one: its position, which table is which,
//! and the sums of the tables.

#![forbid(unsafe_code)]

use super::made::make;
use crate::api::find_table;
use crate::api::session::Session;
use crate::api::table::Table;
use crate::catalog::{TableOptions, schema_of};
use crate::engine::Protocol;
use crate::error::{Abort, Error};
use crate::handle::Handle;
use crate::schema::column::Whole;
use crate::schema::{Group, Hashed, Meta, Record, RowReader, RowType, RowWriter};
use crate::txn::Tx;
use candide_log::schema::{TABLE_NUMBER_MAX, TableSchema};
use candide_log::sum::table_sum;
use std::collections::BTreeMap;

/// The number of words of a [`Note`].
pub const NOTE_WORDS: usize = 20;

/// What the applier of objects notes with each of them: its position, in words of its own choice.
pub type Note = [u64; NOTE_WORDS];

/// The name of the table of notes, which programs cannot name.
pub(super) const NOTES: &str = "candide.replica";

/// The first word of the row with key zero, beside the generation of the log here.
const IS_WHOLE: u64 = 1;
const IS_TORN: u64 = 2;
const IS_TORN_BEHIND: u64 = 3;
const IS_CHANGING: u64 = 4;
const KIND_BITS: u32 = 8;

/// A row of the table of notes. The row with key zero has the state; the row with the key n has, of
/// the table with the number n of the other database, the number in the log here, the sum of the
/// hashes of its rows, and a hash of its name. A table whose changes are left out has the number 0
/// here.
#[derive(Debug, Clone, Copy)]
struct Row {
    key: u64,
    words: [u64; 1 + NOTE_WORDS],
}

impl Record for Row {
    type Key = u64;
    type Index = Hashed;
    type Image = [u64; 1 + NOTE_WORDS];

    const META: Meta = Meta::new("Note", &[Group::new("words", 1 + NOTE_WORDS)]);

    fn key(&self) -> u64 {
        self.key
    }

    fn store(&self, row: &mut RowWriter<'_>) {
        row.words().copy_from_slice(&self.words);
    }

    fn load(key: &u64, row: &RowReader<'_>) -> Row {
        Row { key: *key, words: row.words().try_into().expect("the words of the group") }
    }
}

/// What is known of a database that follows another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing has been applied.
    Empty,
    /// A snapshot has been taken in in part. The note is that of the last whole state.
    Torn(Option<Note>),
    /// The state after a whole object.
    Whole(Note),
    /// The same, but tables may have got other names, or been dropped, for the next object.
    Changing(Note),
}

impl State {
    /// Returns the note of the last whole state.
    pub(super) fn note(&self) -> Option<Note> {
        match *self {
            State::Empty => None,
            State::Torn(note) => note,
            State::Whole(note) | State::Changing(note) => Some(note),
        }
    }
}

/// What the table of notes says of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TableNote {
    /// The number in the log here.
    pub(super) log_number: u16,
    /// The sum of the hashes of the rows.
    pub(super) sum: u64,
    /// The [hash](name_hash) of the name here.
    pub(super) name: u64,
}

/// Returns the hash of a name.
pub(super) fn name_hash(name: &str) -> u64 {
    table_sum(name, 1)
}

/// What the table of notes had when the database was opened.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) state: State,
    /// The generation of the log here in which the state was noted; 0 if none was.
    pub(super) generation: u64,
    /// By the numbers of the tables in the other database.
    pub(super) tables: BTreeMap<u32, TableNote>,
}

/// The table of notes.
pub(super) struct Notes<P: Protocol> {
    table: Table<Row, P>,
    /// The generation of the log here that is being written.
    generation: u64,
}

/// Returns the generation of the log here that is being written.
pub(super) fn generation_of<P: Protocol>(inner: &Handle<P>) -> u64 {
    inner.store().expect("a database that follows another one lies in files").generation()
}

impl<P: Protocol> Notes<P> {
    /// Opens the table, or makes it in a database without tables.
    pub(super) fn open(
        inner: &Handle<P>,
        session: &mut Session<P>,
    ) -> Result<(Notes<P>, Found), Error> {
        let logged = inner.catalog.logged_tables(&inner.engine.common);
        if !logged.is_empty() && logged.iter().all(|core| *core.name != *NOTES) {
            return Err(Error::NoReplica);
        }
        let row = RowType::of::<Row>();
        if logged.is_empty() {
            // The numbers of other tables are free for those that have them in the other database.
            let schema = TableSchema { number: TABLE_NUMBER_MAX, ..schema_of(NOTES, &row) };
            make(inner, schema)?;
        }
        let core = find_table(inner, NOTES, TableOptions::default(), &row)?;
        let table = Table::<Row, P>::new(inner.clone(), core.clone());
        let keys = session.linked_keys(&core);
        let mut rows = Vec::new();
        session.run_body(&mut |tx| {
            let read = |key: &u64| table.get(tx, *key, Whole).transpose();
            rows = keys.iter().filter_map(read).collect::<Result<_, _>>()?;
            Ok(())
        })?;
        let mut found = Found { state: State::Empty, generation: 0, tables: BTreeMap::new() };
        for Row { key, words: [first, rest @ ..] } in rows {
            if key != 0 {
                let note = TableNote { log_number: first as u16, sum: rest[0], name: rest[1] };
                found.tables.insert(key as u32, note);
                continue;
            }
            found.generation = first >> KIND_BITS;
            found.state = match first % (1 << KIND_BITS) {
                IS_WHOLE => State::Whole(rest),
                IS_CHANGING => State::Changing(rest),
                IS_TORN_BEHIND => State::Torn(Some(rest)),
                _ => State::Torn(None),
            };
        }
        Ok((Notes { table, generation: generation_of(inner) }, found))
    }

    /// Stages the state.
    pub(super) fn put_state(&self, tx: &Tx<'_, P>, state: &State) -> Result<(), Abort> {
        let mut words = [0; 1 + NOTE_WORDS];
        let kind = match state {
            State::Empty | State::Torn(None) => IS_TORN,
            State::Torn(Some(_)) => IS_TORN_BEHIND,
            State::Whole(_) => IS_WHOLE,
            State::Changing(_) => IS_CHANGING,
        };
        words[0] = kind | self.generation << KIND_BITS;
        words[1..].copy_from_slice(&state.note().unwrap_or_default());
        self.table.put(tx, Row { key: 0, words })
    }

    /// Stages what is known of the table with this number in the other database.
    pub(super) fn put_table(
        &self,
        tx: &Tx<'_, P>,
        number: u32,
        note: TableNote,
    ) -> Result<(), Abort> {
        let mut words = [0; 1 + NOTE_WORDS];
        (words[0], words[1], words[2]) = (note.log_number.into(), note.sum, note.name);
        self.table.put(tx, Row { key: number.into(), words })
    }

    /// Stages that there is no table with this number in the other database.
    pub(super) fn delete_table(&self, tx: &Tx<'_, P>, number: u32) -> Result<(), Abort> {
        self.table.delete_if_present(tx, u64::from(number)).map(drop)
    }
}
