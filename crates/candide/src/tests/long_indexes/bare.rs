//! Rows with a text that no index has at first.

use crate::engine::Protocol;
use crate::{Database, Table};
use candide_derive::Record;

#[derive(Debug, Clone, PartialEq, Eq, Record)]
#[record(crate = crate, ordered)]
pub(super) struct Note {
    #[key]
    pub(super) id: u64,
    pub(super) text: String,
    pub(super) number: u32,
}

impl Note {
    /// Returns a note whose text has this length.
    pub(super) fn new(id: u64, length: usize) -> Note {
        Note { id, text: "candide ".chars().cycle().take(length).collect(), number: 0 }
    }
}

pub(super) fn scene<P: Protocol>() -> (Database<P>, Table<Note, P>) {
    let db = Database::<P>::builder().build().unwrap();
    let notes = db.table::<Note>("notes").unwrap();
    (db, notes)
}
