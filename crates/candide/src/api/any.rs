//! Databases whose protocol is chosen at run time.

#![forbid(unsafe_code)]

use super::database::Database;
use super::index::Index;
use super::log_options::LogOptions;
use super::sequence::Sequence;
use super::session::Session;
use super::table::Table;
use crate::error::Error;
use crate::protocols::{Chosen, Erased};
use crate::txn::Tx;
use std::path::Path;

/// A database whose protocol is chosen at run time, by name, for a whole program.
///
/// ```
/// use candide::any::{AnyDatabase, AnyTable};
/// use candide::{Error, Record};
///
/// #[derive(Record, Clone, Copy)]
/// struct Account { #[key] id: u64, cents: i64 }
///
/// struct Bank {
///     db: AnyDatabase,
///     accounts: AnyTable<Account>,
/// }
///
/// fn open(protocol: &str) -> Result<Bank, Error> {
///     let db = AnyDatabase::choose(protocol)?;
///     let accounts = db.table("accounts")?;
///     Ok(Bank { db, accounts })
/// }
///
/// let Bank { db, accounts } = open("mvcc")?; // from a configuration file, or a command line
/// assert_eq!(db.properties().name, "mvcc");
/// db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 50 }))?;
/// assert_eq!(db.read_view(|tx| accounts.read(tx, 1, Account::CENTS)), Ok(50));
/// let error = open("mvvc").err().expect("a typo").to_string();
/// assert!(error.starts_with("no protocol is called \"mvvc\"; there are occ, 2pl-no-wait, "));
/// # Ok::<(), Error>(())
/// ```
///
/// [`AnyDatabase::open_as`](Database::open_as) opens one in a directory. Other options are those of
/// the builder: `AnyDatabase::builder().policy("mvcc".parse::<Chosen>()?)` (see [`Chosen`]), and
/// `build()`, or `open(path, LogOptions::new())`.
///
/// # Costs
/// Transactions are compiled once, for [`Erased`]. Each step that a protocol takes (to begin, to
/// read a group, to stage a write, to validate and commit) is a call through a table of functions,
/// which the compiler cannot inline: some 60 instructions more for a read. Tables, indexes and
/// rows are the same, and so are the guarantees. There are no [snapshots](crate::Snapshot) as
/// values; [`Database::read_view`] reads in a snapshot if the chosen protocol has any.
pub type AnyDatabase = Database<Erased>;

/// A table of an [`AnyDatabase`].
pub type AnyTable<R> = Table<R, Erased>;

/// A secondary index of a table of an [`AnyDatabase`].
pub type AnyIndex<R, K, I> = Index<R, K, I, Erased>;

/// A sequence of an [`AnyDatabase`].
pub type AnySequence = Sequence<Erased>;

/// A transaction of an [`AnyDatabase`].
pub type AnyTx<'s> = Tx<'s, Erased>;

/// A session of an [`AnyDatabase`].
pub type AnySession = Session<Erased>;

impl Database<Erased> {
    /// Makes a database under the protocol, or the policy of a protocol, that is called `name`,
    /// with the defaults of all other options.
    ///
    /// # Errors
    /// [`Error::UnknownName`] if there is none. The error lists the names.
    #[inline]
    pub fn choose(name: &str) -> Result<AnyDatabase, Error> {
        Database::builder().policy(name.parse::<Chosen>()?).build()
    }

    /// Opens the database in the directory `path`, as [`Database::open`] does, under the protocol,
    /// or the policy of a protocol, that is called `name`. The protocol need not be that of the
    /// last opening.
    ///
    /// # Errors
    /// [`Error::UnknownName`] if there is no such protocol; [`Error::Open`] with the reasons of
    /// [`Database::open`].
    pub fn open_as(name: &str, path: impl AsRef<Path>) -> Result<AnyDatabase, Error> {
        let builder = Database::builder().policy(name.parse::<Chosen>()?);
        Ok(builder.open(path, LogOptions::new())?)
    }
}
