//! Closing a database, and the handles that may prevent it.

#![forbid(unsafe_code)]

use super::database::Database;
use crate::engine::Protocol;
use crate::error::Error;
use crate::handle::NotClosed;
use crate::protocols::DefaultProtocol;
use std::sync::Arc;
use std::{fmt, io};

impl<P: Protocol> Database<P> {
    /// Closes the database, whose last handle this is, as dropping the handle does, and returns the
    /// errors that dropping it cannot return.
    ///
    /// Handles are databases and their clones, tables, indexes, sequences, sessions, snapshots, and
    /// the [`Pending`](crate::Pending) of a database with a log. The sessions that threads keep for
    /// [`Database::run`] are not handles, and neither are [objects](crate::objects). A handle
    /// within a [`Boxed`](crate::objects::Boxed) value of the database keeps it open, too: delete
    /// such values before. When the call has returned, everything that was
    /// committed, also at [`Level::Memory`](crate::Level::Memory), is written and synced, another
    /// process can open the directory, and no thread of this process touches it. A checkpoint that
    /// is being made ends before. All this holds of the drop of the last handle, too, on whichever
    /// thread it is.
    ///
    /// A database without files has nothing to write: only other handles can prevent its closing.
    ///
    /// ```
    /// use candide::{CloseError, Database, Record};
    ///
    /// #[derive(Record, Clone, Copy)]
    /// struct Account { #[key] id: u64, cents: i64 }
    ///
    /// # let directory = std::env::temp_dir().join(format!("candide-doc-close-{}", std::process::id()));
    /// let db = Database::open(&directory)?;
    /// let accounts = db.table::<Account>("accounts")?;
    /// db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 50 }))?;
    /// let Err(CloseError::InUse { handles: 1, database }) = db.close() else { panic!("of the table") };
    /// drop(accounts);
    /// database.close()?;
    /// # std::fs::remove_dir_all(directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CloseError::InUse`] if there are other handles: nothing is closed, and the error gives the
    /// database back. [`CloseError::Failed`] if the last write or sync has failed, or the log had
    /// failed before: the database is closed, and the directory can be opened again.
    pub fn close(self) -> Result<(), CloseError<P>> {
        if self.inner.has_values() {
            // Values that are due may contain handles. The first transaction takes over what its
            // session has left, and the second one drops it at its end.
            let _ = self.run(|_| Ok(()));
            self.inner.engine.epochs.pass();
            let _ = self.run(|_| Ok(()));
        }
        self.inner.close().map_err(|not_closed| match not_closed {
            NotClosed::HasHandles(handles, inner) => {
                CloseError::InUse { handles, database: Database { inner } }
            }
            NotClosed::Failed(failure) => CloseError::Failed(failure),
        })
    }
}

/// The reason why [`Database::close`] has failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum CloseError<P: Protocol = DefaultProtocol> {
    /// Other handles of the database exist. Nothing is closed. Drop them, and close `database`.
    InUse {
        /// The number of the other handles.
        handles: usize,
        /// The database, which is open.
        database: Database<P>,
    },
    /// The last write or sync has failed, or the log had failed before. The database is closed.
    /// Transactions that had not been acknowledged as durable may be lost: open the database again
    /// to find out. The error is of the kind [`StorageFull`](io::ErrorKind::StorageFull) if only
    /// room on the disk was missing: [`Database::sync`] reports that before, while nothing is lost.
    Failed(Arc<io::Error>),
}

impl<P: Protocol> fmt::Display for CloseError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CloseError::InUse { handles, .. } => Error::HandlesLeft { handles: *handles }.fmt(f),
            CloseError::Failed(failure) => {
                write!(f, "the database is closed, and its last commits may be lost: {failure}")
            }
        }
    }
}

impl<P: Protocol> std::error::Error for CloseError<P> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CloseError::InUse { .. } => None,
            CloseError::Failed(failure) => Some(&**failure),
        }
    }
}

impl<P: Protocol> From<CloseError<P>> for Error {
    /// The database in [`CloseError::InUse`] is dropped.
    fn from(error: CloseError<P>) -> Error {
        match error {
            CloseError::InUse { handles, .. } => Error::HandlesLeft { handles },
            failed => Error::Files { problem: failed.to_string() },
        }
    }
}
