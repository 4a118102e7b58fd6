//! Renaming and dropping tables.

#![forbid(unsafe_code)]

use super::database::Database;
use super::session::Session;
use super::table_end::{await_durable, retire, with_table};
use crate::catalog::{check_name, files_error};
use crate::engine::{Protocol, TableCore};
use crate::error::Error;
use crate::handle::Handle;
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
        let inner = &self.inner;
        inner.engine.epochs.refuse_inside()?;
        if inner.engine.following().is_some() {
            return Err(Error::Follows { call: "another name of a table" });
        }
        rename_named(inner, name, new)
    }

    /// Drops the table called `name`, with its rows and indexes. Operations on handles that are
    /// left fail with [`Abort::TableDropped`](crate::Abort::TableDropped), in snapshots as well. A
    /// table of the name can be made again, with rows of any type; the former handles do not belong
    /// to it.
    ///
    /// The call waits for the transactions of this process that run when it begins, and returns
    /// about two milliseconds after the last of them; if there is none, it does not wait. Meanwhile
    /// others are refused the table already. In a database that is [open](Database::open), the
    /// table is gone for good when the call returns, and everything that was committed before it is
    /// durable; the program need not have named the table's row type.
    ///
    /// The rows are deleted before the call returns. When no transaction and no snapshot sees them
    /// any more, at the latest some milliseconds after the last of these, a later table with the
    /// same row type and options takes over the memory, even if handles are left. The memory of a
    /// table whose row type the program has not named comes back when the database is opened again.
    ///
    /// ```
    /// use candide::{Abort, Database, Error, Record};
    ///
    /// #[derive(Record, Clone, Copy)]
    /// struct User { #[key] id: u64, visits: u64 }
    ///
    /// let db = Database::new();
    /// let users = db.table::<User>("users")?;
    /// db.run(|tx| users.insert(tx, User { id: 7, visits: 1 }))?;
    /// db.drop_table("users")?;
    /// assert_eq!(db.run(|tx| users.get(tx, 7, User::VISITS)), Err(Abort::TableDropped));
    /// let others = db.table::<User>("users")?;
    /// assert_eq!(db.run(|tx| others.get(tx, 7, User::VISITS))?, None);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoTable`]; [`Error::ReservedName`] if the name begins with `candide.`;
    /// [`Error::Busy`] if a transaction does not end within ten seconds; [`Error::SecondSession`];
    /// [`Error::Transaction`] with [`Abort::Nested`](crate::Abort::Nested) within a transaction of
    /// this thread. In a database that is open, [`Error::Files`] or [`Error::Transaction`] if the
    /// log or the files cannot be written. After an error the table is as it was; but if the files
    /// can no longer be written at all, so that the next opening may find the table or not, it
    /// stays refused.
    pub fn drop_table(&self, name: &str) -> Result<(), Error> {
        check_name(name)?;
        let inner = &self.inner;
        inner.engine.epochs.refuse_inside()?;
        if inner.engine.following().is_some() {
            return Err(Error::Follows { call: "a drop of a table" });
        }
        drop_named(inner, &mut Session::new(inner)?, name)
    }
}

/// Gives the table called `name` another name.
pub(super) fn rename_named<P: Protocol>(
    inner: &Handle<P>,
    name: &str,
    new: &str,
) -> Result<(), Error> {
    // A table that is given its row type, and an index that is added, are named by the table's
    // name.
    with_table(inner, name, |_| {
        let _no_new_index = lock(&inner.index_changes);
        let files = inner.store().map(|store| &**store);
        inner.catalog.rename((&inner.engine.common, files), name, new)
    })
}

/// Drops the table called `name`. The session deletes its rows.
pub(super) fn drop_named<P: Protocol>(
    inner: &Handle<P>,
    session: &mut Session<P>,
    name: &str,
) -> Result<(), Error> {
    with_table(inner, name, |core| {
        let _no_new_index = lock(&inner.index_changes);
        {
            // A change of the policy must not come to a later table of the same number.
            let locks = inner.catalog.locks();
            let _no_new_policy = locks.map(|locks| lock(&locks.policies.changes));
            core.set_owner(None);
        }
        match drop_everywhere(inner, core) {
            Ok(()) => {}
            Err(NotDropped { error, is_settled }) => {
                if is_settled {
                    core.set_owner(Some(inner.engine.id));
                }
                return Err(error);
            }
        }
        // Without a use for the memory, the rows stay there.
        if let Some(former) = inner.catalog.forget(name, core) {
            retire(session, core, former);
        }
        Ok(())
    })
}

/// The reason why a table was not dropped.
struct NotDropped {
    error: Error,
    /// Whether the next opening finds the table.
    is_settled: bool,
}

/// Waits until no transaction uses a table that has no owner any more, and drops it in the files.
fn drop_everywhere<P: Protocol>(inner: &Handle<P>, core: &TableCore) -> Result<(), NotDropped> {
    let settled = |error| NotDropped { error, is_settled: true };
    inner.engine.epochs.wait_for_others().map_err(settled)?;
    // Sessions that sleep until the table changes are refused it. Those that were about to sleep
    // when the table lost its owner sleep now.
    inner.engine.watchers.wake_all();
    let (Some(store), Some(number)) = (inner.store(), core.log_number.get()) else {
        return Ok(());
    };
    await_durable(inner).map_err(settled)?;
    store.drop_table(number.into()).map_err(|error| NotDropped {
        error: files_error(error),
        is_settled: store.settle().is_ok(),
    })
}
