//! A database that follows another one.
//!
//! The rows and tables of the other database come in *objects* (`engine/following.rs`): tables that
//! have changed, and commit records, in the order of the serial order. Each is applied by ordinary
//! transactions, as many as it takes, which maintain indexes and are logged. The last of them also
//! notes the position, so a recovery finds rows and position of the same moment. The numbers of
//! tables here are not those there; a row of the table of notes says which table is which, and
//! has the sum of the hashes of the table's rows ([`candide_log::sum`]).

#![forbid(unsafe_code)]

mod error;
mod foreign;
mod made;
mod notes;
mod rows;
mod tables;

pub use error::{ChangedElsewhere, ReplicaError};
pub use notes::{NOTE_WORDS, Note};
pub use tables::is_own_table;

use super::database::{Builder, Database};
use super::index_turn::move_view;
use super::log_options::LogOptions;
use super::sequence::raise_sequences;
use super::session::Session;
use crate::catalog::Migration;
use crate::engine::{Following, Replicable, Stopped, Versions};
use crate::error::Error;
use crate::log::Level;
use candide_log::OpenError;
use candide_log::disk::{Disk, RealDisk};
use candide_log::format::commit::CommitRecord;
use candide_log::format::long_row::LongRow;
use candide_log::schema::TableSchema;
use notes::{Notes, State};
use rows::Applier;
use std::fmt::{self, Formatter};
use std::path::Path;
use std::sync::Arc;
use tables::Tables;

/// A database that follows another one, and what applies the other one's commits to it.
///
/// The program reads the [`database`](Replica::database): its tables, once the other database has
/// them, with indexes of its own. Each transaction, snapshot and `read_view` sees the state after a
/// whole object, and never fails because of what is being applied. Every write of the program is
/// refused ([`Abort::ReadOnly`](crate::Abort::ReadOnly), [`Error::Follows`]) until
/// [`promote`](Replica::promote).
pub struct Replica<P: Replicable> {
    db: Database<P>,
    applier: Applier<P>,
    has_ended: bool,
}

impl<P: Replicable> Builder<P> {
    /// Opens the database in the directory `path` as one that follows another, or makes one there.
    /// Rows of another type than the program's are never migrated.
    ///
    /// # Errors
    /// As [`Builder::open`]; and, in [`OpenError::Target`], [`Error::NoReplica`] and
    /// [`ChangedElsewhere`].
    pub fn follow(
        self,
        path: impl AsRef<Path>,
        options: LogOptions,
    ) -> Result<Replica<P>, OpenError> {
        let path = path.as_ref();
        let disk = RealDisk::create(path)
            .map_err(|source| OpenError::Io { file: path.display().to_string(), source })?;
        self.follow_on(Arc::new(disk), options)
    }

    /// As [`Builder::follow`], on a disk, which may be a simulated one.
    ///
    /// # Errors
    /// As [`Builder::follow`].
    #[doc(hidden)]
    pub fn follow_on(
        mut self,
        disk: Arc<dyn Disk>,
        options: LogOptions,
    ) -> Result<Replica<P>, OpenError> {
        self.migrations.wanted = Migration::Refuse;
        let db = self.open_on(disk, options)?;
        let replica = Replica::of(db).map_err(|error| OpenError::Target(Box::new(error)))?;
        replica.map_err(|changed| OpenError::Target(Box::new(changed)))
    }
}

impl<P: Replicable> Replica<P> {
    /// Returns the replica of a database that has just been opened.
    fn of(db: Database<P>) -> Result<Result<Replica<P>, ChangedElsewhere>, Error> {
        let inner = &db.inner;
        let mut session = Session::new(inner)?;
        session.acknowledge_at(Level::Memory);
        let (notes, found) = Notes::open(inner, &mut session)?;
        if let Some(what) = foreign::difference(inner, &mut session, &found)? {
            return Ok(Err(ChangedElsewhere { what, note: found.state.note() }));
        }
        let tables = Tables::find(inner, &mut session, &found)?;
        let since = inner.engine.epochs.moment();
        let ts = P::Versions::open_snapshot(&inner.engine.clock, since);
        let following = Box::new(Following::at((ts, since)));
        assert!(inner.engine.following.set(following).is_ok(), "a database is opened once");
        let applier = Applier::new(inner.clone(), session, notes, tables, found.state);
        Ok(Ok(Replica { db, applier, has_ended: false }))
    }

    /// Returns the database, which the program reads. Until the first object or snapshot has been
    /// applied, or if the last opening ended within a snapshot ([`Replica::note`] is `None`), its
    /// rows are no state of the other database.
    pub fn database(&self) -> &Database<P> {
        &self.db
    }

    /// Returns the note of the last whole object or snapshot; `None` if there is none, so that the
    /// replica has to begin with a snapshot, or with the other database's first object.
    pub fn note(&self) -> Option<Note> {
        match *self.applier.state() {
            State::Whole(note) | State::Changing(note) => Some(note),
            State::Empty | State::Torn(_) => None,
        }
    }

    /// Returns the note of the last whole object or snapshot, also if rows of another snapshot have
    /// been taken in since; `None` if there has been none.
    pub fn last_note(&self) -> Option<Note> {
        self.applier.state().note()
    }

    /// Returns whether rows of a snapshot have been taken in that is not complete.
    pub fn is_torn(&self) -> bool {
        matches!(self.applier.state(), State::Torn(_))
    }

    /// Returns the sum over all rows, as far as they have been applied ([`candide_log::sum`]).
    pub fn sum(&self) -> u64 {
        self.applier.sum()
    }

    /// Applies an object: the tables that have changed since the one before, as they are now, and
    /// commit records in the order in which they are to be applied. `note` is what
    /// [`Replica::note`] returns afterwards.
    ///
    /// # Errors
    /// [`ReplicaError`]; [`ReplicaError::Damaged`], which does not end the replica, if it
    /// [is torn](Replica::is_torn).
    pub fn apply(
        &mut self,
        tables: &[TableSchema],
        records: &[CommitRecord<'_>],
        note: &Note,
    ) -> Result<(), ReplicaError> {
        self.apply_all((tables, false), records, note)
    }

    /// As [`Replica::apply`], for an object with all tables that there are: others are dropped.
    ///
    /// # Errors
    /// [`ReplicaError`].
    pub fn apply_with_all(
        &mut self,
        tables: &[TableSchema],
        records: &[CommitRecord<'_>],
        note: &Note,
    ) -> Result<(), ReplicaError> {
        self.apply_all((tables, true), records, note)
    }

    /// Applies an object. The flag says that `tables` are all that there are.
    fn apply_all(
        &mut self,
        tables: (&[TableSchema], bool),
        records: &[CommitRecord<'_>],
        note: &Note,
    ) -> Result<(), ReplicaError> {
        if self.is_torn() && !self.has_ended {
            let what = "rows of a snapshot are here that is not complete; begin with one";
            return Err(ReplicaError::Damaged(what.to_owned()));
        }
        self.begin()?;
        let applied = self.applier.apply_all(tables, records, note);
        self.end(applied)
    }

    /// Begins with a snapshot that has these tables. [`Replica::rows`] gives its rows. Until
    /// [`Replica::end_snapshot`], readers see what they have seen before.
    ///
    /// # Errors
    /// [`ReplicaError`].
    pub fn begin_snapshot(&mut self, tables: &[TableSchema]) -> Result<(), ReplicaError> {
        if !self.applier.is_loading() {
            self.begin()?;
        }
        let begun = self.applier.begin_loading(tables);
        self.check_ended(begun)
    }

    /// Takes in rows of the snapshot, each with the number of its table.
    ///
    /// # Errors
    /// [`ReplicaError`].
    ///
    /// # Panics
    /// If no snapshot has begun.
    pub fn rows<'a>(
        &mut self,
        rows: impl IntoIterator<Item = (u32, LongRow<'a>)>,
    ) -> Result<(), ReplicaError> {
        if self.has_ended {
            return Err(ReplicaError::Ended);
        }
        let loaded = self.applier.load(&mut rows.into_iter());
        self.check_ended(loaded)
    }

    /// Ends the rows of the snapshot: those that it does not have are deleted. Then the
    /// [sum](Replica::sum) is that of the snapshot, and readers see what they have seen before.
    ///
    /// # Errors
    /// [`ReplicaError`].
    ///
    /// # Panics
    /// If no snapshot has begun.
    pub fn end_rows(&mut self) -> Result<(), ReplicaError> {
        if self.has_ended {
            return Err(ReplicaError::Ended);
        }
        let ended = self.applier.end_rows();
        self.check_ended(ended)
    }

    /// Ends the snapshot: rows that it does not have are deleted.
    ///
    /// # Errors
    /// [`ReplicaError`].
    ///
    /// # Panics
    /// If no snapshot has begun.
    pub fn end_snapshot(&mut self, note: &Note) -> Result<(), ReplicaError> {
        if self.has_ended {
            return Err(ReplicaError::Ended);
        }
        let ended = self.applier.end_loading(note);
        self.end(ended)
    }

    /// Ends following: the program writes from now on, by the handles that it has. Everything that
    /// has been applied is durable then. Sequences go on above the numbers that the other database
    /// can have used.
    ///
    /// # Errors
    /// [`Error::FollowingEnded`] if the replica has ended by an error, or is not at a whole object;
    /// and those of [`Database::sync`]. The database follows no more, and the program cannot write
    /// to it.
    pub fn promote(self) -> Result<Database<P>, Error> {
        self.promote_with(&mut |_| Ok(()))
    }

    /// As [`Replica::promote`]. Calls `ready` when everything that has been applied is durable, and
    /// nothing has been written since. Its argument says whether each table has the number in the
    /// log here that it has in the other database.
    ///
    /// # Errors
    /// As [`Replica::promote`], and that of `ready`.
    pub fn promote_with(
        mut self,
        ready: &mut dyn FnMut(bool) -> Result<(), Error>,
    ) -> Result<Database<P>, Error> {
        if self.has_ended || self.applier.is_loading() || self.note().is_none() {
            return Err(Error::FollowingEnded);
        }
        self.begin().map_err(|_| Error::FollowingEnded)?;
        let inner = &self.db.inner;
        let is_ready = self.db.sync().and_then(|()| ready(self.applier.has_same_numbers()));
        let raised = is_ready.and_then(|()| raise_sequences(inner, self.applier.session()));
        if let Err(error) = raised {
            self.following().give_back(true);
            return Err(error);
        }
        let clock = &inner.engine.clock;
        let following = inner.engine.following.get().expect("the replica follows");
        following.end(|ts, since| P::Versions::close_snapshot(clock, ts, since));
        following.give_back(false);
        Ok(self.db.clone())
    }

    fn following(&self) -> &Following {
        self.db.inner.engine.following.get().expect("the replica follows")
    }

    /// Waits for the turn of an object.
    fn begin(&mut self) -> Result<(), ReplicaError> {
        if self.has_ended || self.applier.is_loading() {
            return Err(ReplicaError::Ended);
        }
        self.following().begin_object().map_err(|Stopped| ReplicaError::Ended)
    }

    /// Shows a whole object, and ends its turn; or ends the replica after an error.
    fn end(&mut self, applied: Result<(), ReplicaError>) -> Result<(), ReplicaError> {
        self.check_ended(applied)?;
        let following = self.following();
        move_view(&self.db.inner, following); // FW2
        following.give_back(false);
        Ok(())
    }

    /// Ends the replica after an error.
    fn check_ended(&mut self, done: Result<(), ReplicaError>) -> Result<(), ReplicaError> {
        if done.is_err() {
            self.has_ended = true;
            self.following().give_back(true);
        }
        done
    }
}

impl<P: Replicable> Drop for Replica<P> {
    fn drop(&mut self) {
        if self.applier.is_loading() && !self.has_ended {
            self.following().give_back(true);
        }
    }
}

impl<P: Replicable> fmt::Debug for Replica<P> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replica").field("state", self.applier.state()).finish_non_exhaustive()
    }
}
