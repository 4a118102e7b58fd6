//! SQLite, in memory or in a file, through rusqlite.
//!
//! The peer has one connection behind a mutex, since a database in memory belongs to its
//! connection. Several connections could share a database by a shared cache. But SQLite's
//! documentation discourages a shared cache, and a shared cache locks whole tables, so it would
//! gain nothing. In a file, too, one connection writes at a time; the others would sleep and look
//! again, which takes longer than to be woken by the mutex.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, OptionalExtension, ToSql, Transaction, TransactionBehavior};

use crate::Role;
use crate::stores::durability::{Durable, Waiting};
use crate::stores::{
    Done, Failure, Peer, Place, Read, Reading, Session, Size, Stopped, Store, Value, Write,
    Writing, failed, once, there,
};

/// SQLite.
pub(crate) struct Sqlite;

impl Peer for Sqlite {
    const NAME: &'static str = "sqlite";
    const CRATE: Option<&'static str> = Some("rusqlite");
    const USE: &'static str = ":memory:, one connection behind a mutex, since a database in memory belongs to its connection; \
                               statements are prepared once; serializable";
    const ROLE: Role = Role::Peer;
    type Store<V: Value> = Locked;
}

impl Durable for Sqlite {
    const NAME: &'static str = "sqlite";
    const CRATE: Option<&'static str> = Some("rusqlite");
    const USE: &'static str = "journal_mode WAL, synchronous FULL, which syncs the log in each commit; one connection behind a \
                               mutex, since one transaction writes at a time; statements are prepared once";
    const ROLE: Role = Role::Peer;
    type Store = Locked;
    type Committer<'s> = Waiting<&'s Locked>;

    fn open(directory: &Path, size: Size) -> Result<Locked, Failure> {
        let path = directory.join("rows.sqlite");
        let connection = Connection::open_with_flags(path, FLAGS | OpenFlags::SQLITE_OPEN_CREATE)?;
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        if mode != "wal" {
            return Err(format!("the journal's mode is {mode} instead of wal").into());
        }
        connection.pragma_update(None, "synchronous", "FULL")?;
        Locked::with_tables(connection, size)
    }

    fn committer(store: &Locked) -> Result<Waiting<&Locked>, Failure> {
        Ok(Waiting(store))
    }
}

/// Flags for a connection. The mutex around the connection replaces SQLite's own mutex.
const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// The statements for one table.
struct Statements {
    create: &'static str,
    insert: &'static str,
    select: &'static str,
    update: &'static str,
}

const TABLES: [Statements; 2] = [
    Statements {
        create: "CREATE TABLE IF NOT EXISTS t0 (id INTEGER PRIMARY KEY, value NOT NULL)",
        insert: "INSERT INTO t0 (id, value) VALUES (?1, ?2)",
        select: "SELECT value FROM t0 WHERE id = ?1",
        update: "UPDATE t0 SET value = ?2 WHERE id = ?1",
    },
    Statements {
        create: "CREATE TABLE IF NOT EXISTS t1 (id INTEGER PRIMARY KEY, value NOT NULL)",
        insert: "INSERT INTO t1 (id, value) VALUES (?1, ?2)",
        select: "SELECT value FROM t1 WHERE id = ?1",
        update: "UPDATE t1 SET value = ?2 WHERE id = ?1",
    },
];

/// The connection and its lock.
pub(crate) struct Locked(Mutex<Connection>);

impl Locked {
    /// Creates the tables that do not exist yet.
    fn with_tables(connection: Connection, size: Size) -> Result<Locked, Failure> {
        for table in &TABLES[..size.tables] {
            connection.execute(table.create, ())?;
        }
        Ok(Locked(Mutex::new(connection)))
    }
}

impl<V: Value> Store<V> for Locked {
    type Session<'s> = &'s Locked;

    fn open(size: Size) -> Result<Self, Failure> {
        let connection = Connection::open_in_memory_with_flags(FLAGS)?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        Locked::with_tables(connection, size)
    }

    fn load(&mut self, table: usize, rows: impl Iterator<Item = (u64, V)>) -> Result<(), Failure> {
        let tx = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).transaction()?;
        let mut insert = tx.prepare(TABLES[table].insert)?;
        for (key, value) in rows {
            insert.execute((key as i64, Given::<V>(value.to_bytes())))?;
        }
        drop(insert);
        tx.commit()?;
        Ok(())
    }

    fn session(&self) -> Result<&Locked, Failure> {
        Ok(self)
    }
}

impl<V: Value> Session<V> for &Locked {
    fn read<W: Reading<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tx = connection.transaction()?;
        let done = once(|| work.run(&mut tx))?;
        tx.commit()?;
        Ok(done)
    }

    fn write<W: Writing<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = once(|| work.run(&mut tx))?;
        tx.commit()?;
        Ok(done)
    }
}

impl<V: Value> Read<V> for Transaction<'_> {
    fn get(&mut self, place: Place) -> Result<V, Stopped> {
        let mut select = self.prepare_cached(TABLES[place.table].select).map_err(failed)?;
        let found =
            select.query_row((place.key as i64,), |row| row.get::<_, Stored<V>>(0)).optional();
        Ok(there(found.map_err(failed)?, place)?.0)
    }
}

impl<V: Value> Write<V> for Transaction<'_> {
    fn put(&mut self, place: Place, value: V) -> Result<(), Stopped> {
        let mut update = self.prepare_cached(TABLES[place.table].update).map_err(failed)?;
        let changed =
            update.execute((place.key as i64, Given::<V>(value.to_bytes()))).map_err(failed)?;
        there((changed == 1).then_some(()), place)
    }
}

/// Returns whether values of type `V` are numbers: whether they have the size of a number.
const fn is_number<V: Value>() -> bool {
    size_of::<V>() == size_of::<i64>()
}

/// A value to pass to SQL, as an integer or a blob.
struct Given<V: Value>(V::Bytes);

impl<V: Value> ToSql for Given<V> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let bytes = self.0.as_ref();
        Ok(ToSqlOutput::Borrowed(match bytes.first_chunk() {
            Some(&number) if is_number::<V>() => ValueRef::Integer(i64::from_le_bytes(number)),
            _ => ValueRef::Blob(bytes),
        }))
    }
}

/// A value read from SQL.
struct Stored<V>(V);

impl<V: Value> FromSql for Stored<V> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Stored<V>> {
        if is_number::<V>() {
            return Ok(Stored(V::from_bytes(&value.as_i64()?.to_le_bytes())));
        }
        Ok(Stored(V::from_bytes(value.as_blob()?)))
    }
}
