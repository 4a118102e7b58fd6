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
use std::collections::BTreeMap;

/// The number of words of a [`Note`].
pub const NOTE_WORDS: usize = 12;

/// What the applier of objects notes with each of them: its position, in words of its own choice.
pub type Note = [u64; NOTE_WORDS];

/// The name of the table of notes, which programs cannot name.
pub(super) const NOTES: &str = "candide.replica";

/// The first word of the row with key zero, if the other words are a note; otherwise, rows of a
/// snapshot have been taken in that is not complete.
const IS_WHOLE: u64 = 1;
const IS_TORN: u64 = 2;

/// A row of the table of notes. The row with key zero has the state; the row with the key n has, of
/// the table with the number n of the other database, the number in the log here and the sum of the
/// hashes of its rows. A table whose changes are left out has the number 0 here.
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
    /// A snapshot has been taken in in part.
    Torn,
    /// The state after a whole object.
    Whole(Note),
}

/// What the table of notes says of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TableNote {
    /// The number in the log here.
    pub(super) log_number: u16,
    /// The sum of the hashes of the rows.
    pub(super) sum: u64,
}

/// What the table of notes had when the database was opened.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) state: State,
    /// By the numbers of the tables in the other database.
    pub(super) tables: BTreeMap<u32, TableNote>,
}

/// The table of notes.
pub(super) struct Notes<P: Protocol>(Table<Row, P>);

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
        let mut found = Found { state: State::Empty, tables: BTreeMap::new() };
        for Row { key, words: [first, rest @ ..] } in rows {
            match (key, first) {
                (0, IS_WHOLE) => found.state = State::Whole(rest),
                (0, _) => found.state = State::Torn,
                _ => {
                    let note = TableNote { log_number: first as u16, sum: rest[0] };
                    found.tables.insert(key as u32, note);
                }
            }
        }
        Ok((Notes(table), found))
    }

    /// Stages the state.
    pub(super) fn put_state(&self, tx: &Tx<'_, P>, state: &State) -> Result<(), Abort> {
        let mut words = [0; 1 + NOTE_WORDS];
        match state {
            State::Empty => {}
            State::Torn => words[0] = IS_TORN,
            State::Whole(note) => {
                words[0] = IS_WHOLE;
                words[1..].copy_from_slice(note);
            }
        }
        self.0.put(tx, Row { key: 0, words })
    }

    /// Stages what is known of the table with this number in the other database.
    pub(super) fn put_table(
        &self,
        tx: &Tx<'_, P>,
        number: u32,
        note: TableNote,
    ) -> Result<(), Abort> {
        let mut words = [0; 1 + NOTE_WORDS];
        (words[0], words[1]) = (note.log_number.into(), note.sum);
        self.0.put(tx, Row { key: number.into(), words })
    }

    /// Stages that there is no table with this number in the other database.
    pub(super) fn delete_table(&self, tx: &Tx<'_, P>, number: u32) -> Result<(), Abort> {
        self.0.delete_if_present(tx, u64::from(number)).map(drop)
    }
}
