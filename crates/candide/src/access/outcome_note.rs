//! Outcomes of operations, before the names of their rows and columns are looked up.

#![forbid(unsafe_code)]

use crate::error::Abort;
use crate::record::CellAt;
use crate::schema::Undecoded;

/// The cause and the place of an outcome, before the names are looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutcomeNote {
    pub(crate) cause: Abort,
    /// The table; `None` if the outcome belongs to no table.
    pub(crate) table: Option<u16>,
    /// The first words of the row's key, as the table keeps them; `None` if the outcome belongs to
    /// no row, or to a key that no row can have.
    pub(crate) key: Option<[u64; OutcomeNote::KEY_WORDS]>,
    /// The number that an update has computed, or the column that it sets: its unit, its word
    /// there, and its first bit.
    pub(crate) number: Option<(u8, u16, u8)>,
}

impl OutcomeNote {
    pub(crate) const KEY_WORDS: usize = 4;

    /// Returns an outcome that belongs to no table.
    pub(crate) fn nowhere(cause: Abort) -> OutcomeNote {
        OutcomeNote { cause, table: None, key: None, number: None }
    }

    /// Returns an outcome of the row with a key, in the words that its table keeps.
    pub(crate) fn of_key(cause: Abort, table: u16, key: &[u64]) -> OutcomeNote {
        let word = |index| key.get(index).copied().unwrap_or(0);
        let (table, key) = (Some(table), Some(std::array::from_fn(word)));
        OutcomeNote { cause, table, key, number: None }
    }

    /// Returns an outcome of the row to which a unit belongs.
    pub(crate) fn at(cause: Abort, at: CellAt) -> OutcomeNote {
        let (table, key) = (Some(at.table()), Some(at.key_prefix()));
        OutcomeNote { cause, table, key, number: None }
    }
}

/// The last two outcomes of a session.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    last: Option<OutcomeNote>,
    before: Option<OutcomeNote>,
    /// The value that the last outcome has refused, and the reason, if that is
    /// [`Abort::Undecodable`], [`Abort::TextTooLong`] or [`Abort::KeyTooLong`] and the column is
    /// known.
    undecoded: Option<Undecoded>,
}

impl Outcomes {
    /// Notes an outcome.
    #[cold]
    pub(crate) fn note(&mut self, note: OutcomeNote) {
        self.before = self.last.replace(note);
        self.undecoded = None;
    }

    /// Notes that the value of a column was refused.
    #[cold]
    pub(crate) fn note_undecoded(&mut self, note: OutcomeNote, undecoded: Undecoded) {
        self.note(note);
        self.undecoded = Some(undecoded);
    }

    /// Returns what the last outcome has refused.
    pub(crate) fn undecoded(&self) -> Option<&Undecoded> {
        self.undecoded.as_ref()
    }

    /// Forgets the last outcome, which came after the one that counts.
    pub(crate) fn forget_last(&mut self) {
        self.last = self.before.take();
    }

    /// Returns the last outcome.
    pub(crate) fn last(&self) -> Option<OutcomeNote> {
        self.last
    }
}
