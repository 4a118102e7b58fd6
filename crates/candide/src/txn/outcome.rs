//! Outcomes of operations, with names.

#![forbid(unsafe_code)]

use super::conflict::KeyNames;
use super::state::State;
use crate::access::{OutcomeNote, Outcomes};
use crate::engine::{Common, IndexCore, Protocol, TableCore, TooLong};
use crate::error::Abort;
use crate::record::CellAt;
use crate::schema::{
    Key, LONG_BYTES_MAX, LongColumn, Pinned, Place, Projection, Record, Undecoded,
};
use std::fmt;

/// An outcome, and the row and the column to which it belongs.
///
/// As text it is one line: `guard on accounts.cents, key id: 7`. For [`Abort::Undecodable`] the
/// reason of the [codec](crate::Codec) follows.
///
/// ```
/// use candide::{Abort, Database, Record};
///
/// #[derive(Record, Clone, Copy)]
/// struct Account {
///     #[key]
///     id: u64,
///     cents: i64,
/// }
///
/// let db = Database::new();
/// let accounts = db.table::<Account>("accounts")?;
/// let mut session = db.session()?;
/// session.run(|tx| accounts.insert(tx, Account { id: 7, cents: 50 }))?;
/// let take = Account::CENTS.sub(80).at_least(0);
/// assert_eq!(session.run(|tx| accounts.update(tx, 7, take)), Err(Abort::Guard));
/// let outcome = session.last_outcome().expect("the update has failed");
/// assert_eq!(outcome.to_string(), "guard on accounts.cents, key id: 7");
/// # Ok::<(), candide::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The outcome: [`Abort::NotFound`], [`Abort::Duplicate`], [`Abort::Guard`],
    /// [`Abort::Overflow`], [`Abort::Undecodable`], [`Abort::Unencodable`], [`Abort::NotUnique`],
    /// [`Abort::TextTooLong`], [`Abort::KeyTooLong`], or another one, which belongs to no row.
    pub cause: Abort,
    /// The table's name; for [`Abort::NotUnique`], with that of the index, to whose keys `key`
    /// belongs then. `None` if the outcome belongs to no row.
    pub table: Option<String>,
    /// The column whose update has failed, whose codec has refused a value, or whose value is too
    /// long. `None` if the
    /// outcome belongs to a whole row or to a program's own updater, or if the row type does not
    /// describe its fields ([`RowMeta::FIELDS`](crate::schema::RowMeta::FIELDS)).
    pub column: Option<&'static str>,
    /// The first words of the row's key, as in a [`Conflict`](super::Conflict). `None` if the
    /// outcome belongs to no row, or to a key that no row can have.
    pub key: Option<Vec<u64>>,
    /// Whether the row's key has more words than `key` holds.
    pub key_is_longer: bool,
    /// The words of `key` as text, as in a [`Conflict`](super::Conflict).
    pub key_text: Option<String>,
    /// The parts of the key by name, as in a [`Conflict`](super::Conflict).
    pub named_key: Option<String>,
    /// The reason why the column has no such value, as its codec gives it; the lengths of a value
    /// that is too long.
    pub problem: Option<String>,
}

impl Outcome {
    /// Looks up the names of the table, the column and the key of the last outcome.
    #[cold]
    pub(crate) fn last(engine: &Common, outcomes: &Outcomes) -> Option<Outcome> {
        let OutcomeNote { cause, table, key, number } = outcomes.last()?;
        let table = table.map(|number| engine.table(number));
        let names = table.as_ref().zip(key).map(|(table, key)| KeyNames::of(table, &key));
        let column = table.as_ref().zip(number).and_then(|(table, (unit, word, shift))| {
            let field = table.column_at(unit, word, shift)?;
            Some(field.name())
        });
        let (refused, problem) =
            outcomes.undecoded().map(|its| (its.column, its.problem.clone())).unzip();
        let KeyNames { key, key_is_longer, key_text, named_key } = names.unwrap_or_default();
        Some(Outcome {
            cause,
            table: table.map(|table| table.name.to_string()),
            column: refused.or(column),
            key,
            key_is_longer,
            key_text,
            named_key,
            problem,
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.cause.name())?;
        let Some(table) = &self.table else { return Ok(()) };
        write!(f, " on {table}")?;
        if let Some(column) = self.column {
            write!(f, ".{column}")?;
        }
        if let Some(key) = self.named_key.as_ref().or(self.key_text.as_ref()) {
            write!(f, ", key {key}")?;
        }
        self.problem.as_ref().map_or(Ok(()), |problem| write!(f, ": {problem}"))
    }
}

impl<P: Protocol> State<P> {
    /// Returns the value of columns that have been read.
    ///
    /// # Errors
    /// [`Abort::Undecodable`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn value_of<R: Record, Pr: Projection<R>>(
        &mut self,
        table: &TableCore,
        key: &R::Key,
        projection: &Pr,
        words: &Pr::Words,
    ) -> Result<Pr::Value, Abort> {
        if !Pr::CODED {
            return Ok(projection.value(key, words, Pinned::by(self)));
        }
        let decoded = projection.decode(key, words, Pinned::by(self));
        decoded.map_err(|undecoded| self.refuse_undecoded(table, key, undecoded))
    }

    /// Notes that a row has a value that a codec has refused, and returns the outcome.
    #[cold]
    pub(crate) fn refuse_undecoded<K: Key>(
        &mut self,
        table: &TableCore,
        key: &K,
        undecoded: Undecoded,
    ) -> Abort {
        let note = table.layout.in_kept_words(key.words().as_ref(), |key| {
            OutcomeNote::of_key(Abort::Undecodable, table.number, key)
        });
        self.writes.outcomes.note_undecoded(note, undecoded);
        Abort::Undecodable
    }

    /// Notes that bytes for a column are more than it can have, and returns the outcome.
    #[cold]
    pub(crate) fn refuse_too_long(
        &mut self,
        note: OutcomeNote,
        column: LongColumn,
        bytes: usize,
    ) -> Abort {
        let problem = format!("a value of {bytes} bytes; at most {LONG_BYTES_MAX} are possible");
        self.refuse_value(note, column, problem)
    }

    /// Notes that a column cannot have a value, for the reason `problem`, and returns the outcome.
    #[cold]
    pub(crate) fn refuse_value(
        &mut self,
        note: OutcomeNote,
        column: LongColumn,
        problem: String,
    ) -> Abort {
        self.writes.outcomes.note_undecoded(note, Undecoded { column: column.name, problem });
        note.cause
    }

    /// Notes that a value of the row with a key, in the words that the table keeps, is longer than
    /// an index keeps, and returns the outcome.
    #[cold]
    pub(crate) fn refuse_key(
        &mut self,
        table: &TableCore,
        index: &IndexCore,
        key: &[u64],
        TooLong { column, length, length_max }: TooLong,
    ) -> Abort {
        let note = OutcomeNote::of_key(Abort::KeyTooLong, table.number, key);
        let name = &index.name;
        let problem = format!("a value of {length} bytes; index {name} keeps at most {length_max}");
        self.writes.outcomes.note_undecoded(note, Undecoded { column, problem });
        note.cause
    }

    /// Notes an outcome of the row to which a unit belongs, and returns it.
    #[cold]
    pub(crate) fn outcome_at(&mut self, cause: Abort, at: CellAt) -> Abort {
        self.writes.outcomes.note(OutcomeNote::at(cause, at));
        cause
    }

    /// Notes an outcome of the row with a key, in the words that the table keeps, and returns it.
    #[cold]
    pub(crate) fn outcome_of(&mut self, cause: Abort, table: &TableCore, key: &[u64]) -> Abort {
        self.writes.outcomes.note(OutcomeNote::of_key(cause, table.number, key));
        cause
    }

    /// Notes that a column of the row with a key, in the words that the table keeps, cannot have a
    /// value, and returns the outcome.
    #[cold]
    pub(crate) fn outcome_of_column(
        &mut self,
        cause: Abort,
        table: &TableCore,
        (key, column): (&[u64], Place),
    ) -> Abort {
        let number = Some(table.number_at(column));
        let note = OutcomeNote::of_key(cause, table.number, key);
        self.writes.outcomes.note(OutcomeNote { number, ..note });
        cause
    }

    /// Notes an outcome of a table, but of no row that it could have, and returns it.
    #[cold]
    pub(crate) fn outcome_in(&mut self, cause: Abort, table: &TableCore) -> Abort {
        let table = Some(table.number);
        self.writes.outcomes.note(OutcomeNote { table, ..OutcomeNote::nowhere(cause) });
        cause
    }

    /// Notes an outcome of no table, and returns it.
    #[cold]
    pub(crate) fn outcome_nowhere(&mut self, cause: Abort) -> Abort {
        self.writes.outcomes.note(OutcomeNote::nowhere(cause));
        cause
    }

    /// Notes that a transaction has ended in an outcome, unless it was noted with its place. The
    /// rows that wait for entries of unique indexes still do.
    #[cold]
    pub(super) fn settle_outcome(&mut self, cause: Abort) {
        let is_noted = || self.writes.outcomes.last().is_some_and(|note| note.cause == cause);
        if let (Abort::NotUnique, Some(entry)) = (cause, self.deferred.first()) {
            self.outcome_at(cause, entry);
        } else if cause.is_outcome() && !is_noted() {
            self.outcome_nowhere(cause);
        }
    }
}
