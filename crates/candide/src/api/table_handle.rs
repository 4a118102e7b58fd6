//! Handles that a database opens by name: what `#[derive(Tables)]` uses.

#![forbid(unsafe_code)]

use super::database::Database;
use super::sequence::Sequence;
use super::table::Table;
use crate::engine::Protocol;
use crate::error::Error;
use crate::schema::Record;

/// A handle that a database opens by a name: a [`Table`] or a [`Sequence`].
/// [`Tables`](macro@crate::Tables) opens the handles of a struct.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handle that a database opens by its name",
    label = "expected `Table<R, P>` or `Sequence<P>`",
    note = "an index is not opened: `table.index(Row::BY_COLUMN)` makes a handle of it, and `table.scan_by` needs none"
)]
pub trait TableHandle: Sized {
    /// The protocol of the database.
    type Protocol: Protocol;

    /// Returns the handle of what has this name, which is made if it does not exist.
    ///
    /// # Errors
    /// Those of [`Database::table`] and [`Database::sequence`].
    fn open_in(db: &Database<Self::Protocol>, name: &str) -> Result<Self, Error>;
}

impl<R: Record, P: Protocol> TableHandle for Table<R, P> {
    type Protocol = P;

    fn open_in(db: &Database<P>, name: &str) -> Result<Self, Error> {
        db.table(name)
    }
}

impl<P: Protocol> TableHandle for Sequence<P> {
    type Protocol = P;

    fn open_in(db: &Database<P>, name: &str) -> Result<Self, Error> {
        db.sequence(name)
    }
}
