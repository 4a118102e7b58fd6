//! Tests of bytes outside of records: each block is freed once, when nothing sees it any more.
//!
//! The rows of these tests have the words themselves as columns, which no program's rows have. So a
//! test can store any word that an operation of the engine may store.

mod attempts;
mod lives;
mod snapshots;
mod threads;

use super::blocks::settled;
use crate::engine::Protocol;
use crate::record::long::{self, NOTHING};
use crate::record::value::names_value;
use crate::{Abort, Database, Table, TableOptions, Tx, Whole};
use candide_derive::Record;
use std::collections::BTreeSet;

/// A row with two words that may name blocks, and a number beside the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate)]
pub(super) struct Note {
    #[key]
    id: u64,
    #[group(first)]
    first: u64,
    #[group(first)]
    count: i64,
    #[group(second)]
    second: u64,
}

/// The numbers of the words that may name blocks.
const WORDS: &[u16] = &[0, 2];

/// A row with its texts.
type Texts = (Vec<u8>, i64, Vec<u8>);

pub(super) struct Scene<P: Protocol> {
    pub(super) db: Database<P>,
    pub(super) notes: Table<Note, P>,
}

/// The lengths of the texts of [`text`].
const LENGTHS: [usize; 8] = [100, 8, 7, 20, 0, 300, 1, 5_000];

/// Returns a text that tells its number.
pub(super) fn text(number: u64) -> Vec<u8> {
    let length = match number % 61 {
        60 => 70_000,
        _ => LENGTHS[number as usize % LENGTHS.len()],
    };
    number.to_le_bytes().into_iter().cycle().take(length).collect()
}

/// Returns a text that has a block.
fn block(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(5)
}

impl<P: Protocol> Scene<P> {
    pub(super) fn new(splitting: bool) -> Scene<P> {
        Scene::over(Database::<P>::builder().build().unwrap(), splitting)
    }

    fn over(db: Database<P>, splitting: bool) -> Scene<P> {
        let options = TableOptions::default().long_words(WORDS).timestamp_splitting(splitting);
        let notes = db.table_with("notes", options).unwrap();
        Scene { db, notes }
    }

    /// Returns a word with these bytes, which is about to be stored.
    pub(super) fn stage(&self, tx: &Tx<'_, P>, bytes: &[u8]) -> Result<u64, Abort> {
        let (state, core) = (&mut *tx.state.borrow_mut(), self.notes.core());
        state.note_value_write(tx.engine, core)?;
        if bytes.is_empty() { Ok(NOTHING) } else { state.stage_long(tx.engine, core, bytes) }
    }

    pub(super) fn note(&self, tx: &Tx<'_, P>, id: u64, texts: [&[u8]; 2]) -> Result<Note, Abort> {
        let [first, second] = texts.map(|text| self.stage(tx, text));
        Ok(Note { id, first: first?, count: id as i64, second: second? })
    }

    pub(super) fn insert(&self, tx: &Tx<'_, P>, id: u64, texts: [&[u8]; 2]) -> Result<(), Abort> {
        self.notes.insert(tx, self.note(tx, id, texts)?)
    }

    pub(super) fn put(&self, tx: &Tx<'_, P>, id: u64, texts: [&[u8]; 2]) -> Result<(), Abort> {
        self.notes.put(tx, self.note(tx, id, texts)?)
    }

    pub(super) fn set_first(&self, tx: &Tx<'_, P>, id: u64, bytes: &[u8]) -> Result<(), Abort> {
        let word = self.stage(tx, bytes)?;
        self.notes.update(tx, id, Note::FIRST.set(word))
    }

    fn set_second(&self, tx: &Tx<'_, P>, id: u64, bytes: &[u8]) -> Result<(), Abort> {
        let word = self.stage(tx, bytes)?;
        self.notes.update(tx, id, Note::SECOND.set(word))
    }

    /// Adds one to the number, by an update that is data.
    fn count(&self, tx: &Tx<'_, P>, id: u64) -> Result<(), Abort> {
        self.notes.update(tx, id, Note::COUNT.wrapping_add(1))
    }

    pub(super) fn get(&self, tx: &Tx<'_, P>, id: u64) -> Result<Option<Texts>, Abort> {
        Ok(self.notes.get(tx, id, Whole)?.map(|note| self.texts(tx, note)))
    }

    pub(super) fn texts(&self, tx: &Tx<'_, P>, note: Note) -> Texts {
        let [first, second] = [note.first, note.second].map(|word| {
            let mut bytes = Vec::new();
            long::append(word, tx, &mut bytes);
            bytes
        });
        (first, note.count, second)
    }

    /// Waits until the blocks in use are exactly those that the rows name, and returns their
    /// number.
    pub(super) fn settle(&self) -> usize {
        settled(&self.db, || {
            let mut named = BTreeSet::new();
            self.db
                .run(|tx| {
                    named.clear();
                    for row in self.notes.iter(tx, Whole) {
                        let (_, note) = row?;
                        let words = [note.first, note.second].into_iter();
                        named.extend(words.filter(|&word| names_value(word)));
                    }
                    Ok(())
                })
                .unwrap();
            named.len()
        })
    }
}
