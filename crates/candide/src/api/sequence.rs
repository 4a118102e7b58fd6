//! Sequences: numbers for new rows.

#![forbid(unsafe_code)]

use super::database::{Database, find_table};
use super::session::{Session, run_cached};
use super::table::Table;
use crate::catalog::{SEQUENCES, SequenceCore, TableOptions};
use crate::engine::{Protocol, ReadView, TableCore};
use crate::error::{Abort, Error};
use crate::handle::Handle;
use crate::log::Level;
use crate::protocols::DefaultProtocol;
use crate::schema::{
    Column, Group, Hashed, Key, Meta, Record, RowReader, RowType, RowWriter, Text,
};
use crate::txn::{RunOptions, Tx};
use std::fmt;
use std::sync::Arc;

/// The most bytes in the name of a sequence.
const NAME_BYTES: usize = 64;

/// A row of the table of limits.
#[derive(Clone, Copy)]
struct Limit {
    name: Text<NAME_BYTES>,
    limit: u64,
}

impl Limit {
    const LIMIT: Column<Limit, u64> = Column::new(0, 0, "limit");
}

impl Record for Limit {
    type Key = Text<NAME_BYTES>;
    type Index = Hashed;
    type Image = [u64; 1];
    const META: Meta = Meta::new("Sequence", &[Group::new("limit", 1)]);

    fn key(&self) -> Text<NAME_BYTES> {
        self.name
    }

    fn store(&self, row: &mut RowWriter<'_>) {
        row.words()[0] = self.limit;
    }

    fn load(name: &Text<NAME_BYTES>, row: &RowReader<'_>) -> Limit {
        Limit { name: *name, limit: row.words()[0] }
    }
}

/// A sequence of numbers for new rows, each of which is given away once, as returned by
/// [`Database::sequence`].
///
/// A sequence is no row, so transactions that draw from it do not conflict. The price is gaps: a
/// number is used up by the attempt that has drawn it, also if the attempt ends in a conflict or an
/// error. Numbers are drawn in the order of time, but transactions need not commit in that order.
///
/// A `Sequence` is a handle: its clones draw from the same sequence, on any thread.
pub struct Sequence<P: Protocol = DefaultProtocol> {
    inner: Handle<P>,
    core: Arc<SequenceCore>,
}

impl<P: Protocol> Clone for Sequence<P> {
    fn clone(&self) -> Self {
        Sequence { inner: self.inner.clone(), core: self.core.clone() }
    }
}

impl<P: Protocol> fmt::Debug for Sequence<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequence").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl<P: Protocol> Database<P> {
    /// Returns the sequence called `name`, which gives away numbers for new rows. If no such
    /// sequence exists, makes one. Names of sequences and of tables do not meet.
    ///
    /// ```
    /// use candide::{Database, Record};
    ///
    /// #[derive(Record, Clone, Copy)]
    /// struct Order { #[key] id: u64, article: u32 }
    ///
    /// let db = Database::new();
    /// let (orders, numbers) = (db.table::<Order>("orders")?, db.sequence("orders")?);
    /// for article in [7, 9] {
    ///     db.run(|tx| orders.insert(tx, Order { id: numbers.next(tx)?, article }))?;
    /// }
    /// assert_eq!(db.run(|tx| orders.read(tx, 2, Order::ARTICLE)), Ok(9));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// In a database that is [open](Database::open), the first call with a name in each opening
    /// runs a transaction of its own: call it before transactions, as [`Database::table`], and not
    /// within one. A new sequence is durable with the first commit that uses it. A table with the
    /// name `candide.sequences`, which programs cannot open, has a row for each sequence.
    ///
    /// # Errors
    /// [`Error::EmptyTableName`]; [`Error::LongName`] if `name` has more than 64 bytes. In a
    /// database that is open, for the first call with a name, also [`Error::Transaction`], with
    /// [`Abort::Nested`] within a transaction of the same database; with [`Abort::SecondSession`]
    /// under a protocol that allows one session if the program holds it; with [`Abort::LogFailed`],
    /// [`Abort::DiskFull`] or [`Abort::MemoryLimit`]; and [`Error::Files`],
    /// [`Error::TooManyTables`] or [`Error::MemoryLimit`] for the first sequence.
    #[doc(alias = "auto_increment")]
    #[doc(alias = "autoincrement")]
    #[doc(alias = "identity")]
    #[doc(alias = "serial")]
    #[doc(alias = "generate_id")]
    pub fn sequence(&self, name: &str) -> Result<Sequence<P>, Error> {
        Ok(Sequence { inner: self.inner.clone(), core: find_sequence(&self.inner, name)? })
    }
}

impl<P: Protocol> Sequence<P> {
    /// Returns the sequence's name.
    pub fn name(&self) -> &str {
        self.core.name()
    }

    /// Draws the next number: 1 or larger, at most [`i64::MAX`], so that it fits into an `i64`
    /// column, too.
    ///
    /// No other call returns the same number, and the number is larger than all numbers that had
    /// been returned before the call began. By a draw the transaction observes nothing, and
    /// conflicts with no other transaction. If the closure runs again, it draws another number. A
    /// number that is drawn in a [part](Tx::attempt) that is undone may be used after the part.
    ///
    /// In a database that is [open](Database::open), the number is also never returned after a
    /// later opening or a crash, if the transaction is recovered, or if [`run`](Database::run) has
    /// returned at [`Level::Durable`]. The numbers of transactions that a crash has undone, or that
    /// had not committed, may be returned again then; within one opening no number is. After an
    /// opening, numbers begin above all that were used, with a gap of up to a thousand or a few.
    ///
    /// A number that is drawn in an open database mostly costs as much as in memory, where a
    /// sequence is an atomic counter. Some draws also raise the limit up to which the files let
    /// numbers be used, with the transaction's own commit record: at least one of 1,024, and at
    /// most all, while numbers are drawn faster than the log becomes durable. These transactions do
    /// not conflict either, unless [commit-time updates](crate::Builder::commit_time_updates) are
    /// off.
    ///
    /// # Errors
    /// [`Abort::ForeignTable`] if the transaction belongs to another database, [`Abort::ReadOnly`]
    /// in a transaction that only reads, [`Abort::Overflow`] if all numbers have been given away; a
    /// conflict in an attempt that is doomed. In a database that is open, also
    /// [`Abort::MemoryLimit`], under protocols with versions.
    #[doc(alias = "nextval")]
    #[doc(alias = "last_insert_rowid")]
    #[inline]
    pub fn next(&self, tx: &Tx<'_, P>) -> Result<u64, Abort> {
        if self.inner.engine.id != tx.engine.id {
            return Err(Abort::ForeignTable);
        }
        let mut state = tx.state.borrow_mut();
        state.enter(tx.engine)?;
        state.admit_write()?;
        drop(state);
        let drawn = self.core.draw();
        let number = drawn.map_err(|abort| tx.state.borrow_mut().outcome_nowhere(abort))?;
        if let Some((limit, table)) = self.core.limit_to_stage(number) {
            self.raise(tx, table, limit)?;
        }
        Ok(number)
    }

    /// Sets the largest number that has been drawn.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn go_to(&self, last: u64) {
        self.core.go_to(last);
    }

    /// Stages a new limit, without an observation of the present one.
    #[cold]
    #[inline(never)]
    fn raise(&self, tx: &Tx<'_, P>, table: &TableCore, limit: u64) -> Result<(), Abort> {
        let name: Text<NAME_BYTES> =
            Text::new(self.name()).expect("the sequence was made with this name");
        let key = name.words();
        tx.state.borrow_mut().stage_limit(tx.engine, table, key.as_ref(), limit)?;
        let (inner, core) = (Arc::clone(&self.inner), self.core.clone());
        tx.on_commit(move || {
            let stamp = P::last_stamp(&inner.engine.clock, &inner.engine.epochs);
            core.note_committed(limit, stamp);
        });
        Ok(())
    }
}

/// Finds or makes a sequence.
fn find_sequence<P: Protocol>(inner: &Handle<P>, name: &str) -> Result<Arc<SequenceCore>, Error> {
    let sequences = &inner.catalog.sequences;
    if let Some(core) = sequences.get(name) {
        return Ok(core);
    }
    if name.is_empty() {
        return Err(Error::EmptyTableName);
    }
    let key = Text::new(name)
        .map_err(|_| Error::LongName { name: name.to_owned(), bytes_max: NAME_BYTES })?;
    let core = match inner.engine.log.get() {
        None => SequenceCore::in_memory(name),
        Some(log) => {
            let row = RowType::of::<Limit>();
            let table = find_table(inner, SEQUENCES, TableOptions::default(), &row)?;
            let limit = limit_of(inner, &table, key).map_err(Error::Transaction)?;
            SequenceCore::logged(name, limit, log.clone(), table)
        }
    };
    // Of threads that come here at once, the first to add the sequence has found the limit as it
    // was before any draw, and the others get the first one's.
    Ok(sequences.add(core))
}

/// Raises the sequences that the program has asked for to their limits, in a database that has
/// followed another one. The limits are durable.
pub(super) fn raise_sequences<P: Protocol>(
    inner: &Handle<P>,
    session: &mut Session<P>,
) -> Result<(), Error> {
    for core in inner.catalog.sequences.all() {
        let table = inner.catalog.named(&inner.engine.common, SEQUENCES)?;
        let table = Table::<Limit, P>::new(inner.clone(), table);
        let name: Text<NAME_BYTES> =
            Text::new(core.name()).expect("the sequence was made with this name");
        let limit = session.run(|tx| table.get(tx, &name, Limit::LIMIT));
        core.raise_to(limit.map_err(Error::Transaction)?.unwrap_or(0));
    }
    Ok(())
}

/// Returns the limit of a sequence that has not been used since the database was opened. If it has
/// no row, makes one: the commit of each transaction that updates the row rests on that, so it need
/// not be durable before.
fn limit_of<P: Protocol>(
    inner: &Handle<P>,
    table: &Arc<TableCore>,
    name: Text<NAME_BYTES>,
) -> Result<u64, Abort> {
    let table = Table::<Limit, P>::new(inner.clone(), table.clone());
    let options = RunOptions::new().acknowledge(Level::Memory);
    run_cached(inner, &options, ReadView::Current, |tx| {
        let limit = table.get(tx, &name, Limit::LIMIT)?;
        if limit.is_none() {
            table.insert(tx, Limit { name, limit: 0 })?;
        }
        Ok(limit.unwrap_or(0))
    })
}
