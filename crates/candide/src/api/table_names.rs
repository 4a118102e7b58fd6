//! Renaming tables.

#![forbid(unsafe_code)]

use super::database::Database;
use crate::catalog::check_name;
use crate::engine::Protocol;
use crate::error::Error;
use crate::sync::lock;

impl<P: Protocol> Database<P> {
    /// Gives the table called `name` the name `new`, which no table has. Rows and indexes stay, and
    /// so do the handles: they have the new name from now on. A table of the former name can be
    /// made again.
    ///
    /// Transactions are not delayed. In a database that is [open](Database::open), the new name is
    /// durable when the call returns; a table need not have been named with its row type before.
    ///
    /// ```
    /// use candide::{Database, Error, Record};
    ///
    /// #[derive(Record, Clone, Copy)]
    /// struct User { #[key] id: u64, visits: u64 }
    ///
    /// let db = Database::new();
    /// let users = db.table::<User>("users")?;
    /// db.run(|tx| users.insert(tx, User { id: 7, visits: 1 }))?;
    /// db.rename_table("users", "visitors")?;
    /// assert_eq!(users.name(), "visitors");
    /// let visitors = db.table::<User>("visitors")?;
    /// assert_eq!(db.run(|tx| visitors.get(tx, 7, User::VISITS))?, Some(1));
    /// let unknown = db.rename_table("users", "persons").unwrap_err();
    /// assert_eq!(unknown.to_string(), r#"there is no table "users"; the tables are "visitors""#);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoTable`], [`Error::TableExists`], [`Error::EmptyTableName`],
    /// [`Error::ReservedName`] if one of the names begins with `candide.`; [`Error::Transaction`]
    /// with [`Abort::Nested`](crate::Abort::Nested) within a transaction of this thread. In a
    /// database that is open, [`Error::Files`] or [`Error::Transaction`] if the name cannot be
    /// written: then the table has its former name, unless the process ends before the next table
    /// is added or renamed; after that it may have either name.
    pub fn rename_table(&self, name: &str, new: &str) -> Result<(), Error> {
        check_name(name)?;
        check_name(new)?;
        self.inner.engine.epochs.refuse_inside()?;
        // A table that is given its row type, and an index that is added, are named by the table's
        // name.
        let _no_adoption = lock(&self.inner.adoptions);
        let _no_new_index = lock(&self.inner.index_changes);
        let files = self.inner.store().map(|store| &**store);
        self.inner.catalog.rename((&self.inner.engine.common, files), name, new)
    }
}
