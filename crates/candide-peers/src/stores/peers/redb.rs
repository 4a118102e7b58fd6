//! redb: a copy-on-write B-tree with one writer at a time.

use std::path::Path;

use redb::backends::InMemoryBackend;
use redb::{
    Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable, Table, TableDefinition,
};

use crate::Role;
use crate::stores::durability::{Durable, Waiting};
use crate::stores::{
    Done, Failure, Peer, Place, Read, Reading, Session, Size, Stopped, Store, Value, Write,
    Writing, failed, once, there,
};

/// redb.
pub(crate) struct Redb;

impl Peer for Redb {
    const NAME: &'static str = "redb";
    const CRATE: Option<&'static str> = Some("redb");
    const USE: &'static str = "InMemoryBackend, Durability::None; begin_write, of which there is one at a time, and begin_read, \
                               which reads a snapshot: serializable";
    const ROLE: Role = Role::Peer;
    type Store<V: Value> = Tables;
}

impl Durable for Redb {
    const NAME: &'static str = "redb";
    const CRATE: Option<&'static str> = Some("redb");
    const USE: &'static str =
        "a file, Durability::Immediate; begin_write, of which there is one at a time";
    const ROLE: Role = Role::Peer;
    type Store = Tables;
    type Committer<'s> = Waiting<&'s Tables>;

    fn open(directory: &Path, size: Size) -> Result<Tables, Failure> {
        let database = Database::create(directory.join("rows.redb"))?;
        Ok(Tables::new(database, size, Durability::Immediate))
    }

    fn committer(store: &Tables) -> Result<Waiting<&Tables>, Failure> {
        Ok(Waiting(store))
    }
}

/// The tables by number.
const TABLES: [TableDefinition<u64, &[u8]>; 2] =
    [TableDefinition::new("0"), TableDefinition::new("1")];

/// A database with the tables of the workload: the first ones of `TABLES`.
pub(crate) struct Tables {
    database: Database,
    tables: &'static [TableDefinition<'static, u64, &'static [u8]>],
    /// The durability of the transactions of sessions.
    durability: Durability,
}

impl Tables {
    fn new(database: Database, size: Size, durability: Durability) -> Tables {
        Tables { database, tables: &TABLES[..size.tables], durability }
    }
}

impl<V: Value> Store<V> for Tables {
    type Session<'s> = &'s Tables;

    fn open(size: Size) -> Result<Self, Failure> {
        let database = Database::builder().create_with_backend(InMemoryBackend::new())?;
        Ok(Tables::new(database, size, Durability::None))
    }

    fn load(&mut self, table: usize, rows: impl Iterator<Item = (u64, V)>) -> Result<(), Failure> {
        let tx = self.database.begin_write()?;
        let mut table = tx.open_table(self.tables[table])?;
        for (key, value) in rows {
            table.insert(key, value.to_bytes().as_ref())?;
        }
        drop(table);
        tx.commit()?;
        Ok(())
    }

    fn session(&self) -> Result<&Tables, Failure> {
        Ok(self)
    }
}

impl<V: Value> Session<V> for &Tables {
    fn read<W: Reading<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        let tx = self.database.begin_read()?;
        let open = |table: &TableDefinition<_, _>| tx.open_table(*table);
        let mut tables =
            self.tables.iter().map(open).collect::<Result<Vec<ReadOnlyTable<_, _>>, _>>()?;
        once(|| work.run(&mut Running(&mut tables)))
    }

    fn write<W: Writing<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        let mut tx = self.database.begin_write()?;
        tx.set_durability(self.durability)?;
        let open = |table: &TableDefinition<'static, _, _>| tx.open_table(*table);
        let mut tables =
            self.tables.iter().map(open).collect::<Result<Vec<Table<'_, _, _>>, _>>()?;
        let done = once(|| work.run(&mut Running(&mut tables)))?;
        drop(tables);
        tx.commit()?;
        Ok(done)
    }
}

/// The open tables of a transaction.
struct Running<'t, T>(&'t mut [T]);

impl<V: Value, T: ReadableTable<u64, &'static [u8]>> Read<V> for Running<'_, T> {
    #[inline]
    fn get(&mut self, place: Place) -> Result<V, Stopped> {
        let found = self.0[place.table].get(place.key).map_err(failed)?;
        there(found.map(|bytes| V::from_bytes(bytes.value())), place)
    }
}

impl<V: Value> Write<V> for Running<'_, Table<'_, u64, &'static [u8]>> {
    #[inline]
    fn put(&mut self, place: Place, value: V) -> Result<(), Stopped> {
        self.0[place.table].insert(place.key, value.to_bytes().as_ref()).map_err(failed)?;
        Ok(())
    }
}
