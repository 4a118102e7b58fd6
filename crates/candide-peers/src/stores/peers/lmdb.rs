//! LMDB, through heed: a memory-mapped copy-on-write B-tree with one writer at a time.

#![expect(unsafe_code, reason = "opening a file that is mapped is unsafe: others could change it")]

use heed::byteorder::BigEndian;
use heed::types::{Bytes, U64};
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoTxn, RwTxn};

use crate::Role;
use crate::stores::scratch::Scratch;
use crate::stores::{
    Done, Failure, Peer, Place, Read, Reading, Session, Size, Stopped, Store, Value, Write,
    Writing, failed, once, there,
};

/// LMDB.
pub(crate) struct Lmdb;

impl Peer for Lmdb {
    const NAME: &'static str = "lmdb";
    const CRATE: Option<&'static str> = Some("heed");
    const USE: &'static str = "a file on /dev/shm, if it is there, NO_SYNC; write_txn, of which there is one at a time, \
                               and read_txn, which reads a snapshot: serializable";
    const ROLE: Role = Role::Peer;
    type Store<V: Value> = Environment;
}

/// The number of bytes of address space that are mapped in addition to the space for the rows.
const SPARE: usize = 1 << 30;

/// An environment and its folder.
pub(crate) struct Environment {
    // Fields drop in this order, so the environment is closed before its folder is removed.
    env: Env,
    tables: usize,
    _folder: Scratch,
}

type Table<'s> = Database<'s, U64<BigEndian>, Bytes>;

impl Environment {
    /// Returns the database of each table. A missing database is created.
    fn databases(&self) -> Result<Vec<Table<'_>>, Failure> {
        let database = |number: usize| {
            let created =
                self.env.create_databases_and_commit(self.env.write_txn()?, |opener, tx| {
                    let created = opener.create_database(tx, Some(&number.to_string()))?;
                    Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(created))
                })?;
            Ok(created.unwrap_commit())
        };
        (0..self.tables).map(database).collect()
    }
}

impl<V: Value> Store<V> for Environment {
    type Session<'s> = Databases<'s>;

    fn open(size: Size) -> Result<Self, Failure> {
        let folder = Scratch::in_memory()?;
        let bytes = size.tables * size.rows as usize * (size_of::<V>() + 64) * 4 + SPARE;
        let mut options = EnvOpenOptions::new();
        options.map_size(bytes.next_multiple_of(1 << 20)).max_dbs(size.tables as u32);
        // SAFETY: without synchronization, data can be lost only if the system crashes. Then this
        // process ends, too.
        unsafe { options.flags(EnvFlags::NO_SYNC) };
        // SAFETY: the folder is new and only this process uses it, so no other process opens or
        // changes the file.
        let env = unsafe { options.open(folder.path()) }?;
        Ok(Environment { env, tables: size.tables, _folder: folder })
    }

    fn load(&mut self, table: usize, rows: impl Iterator<Item = (u64, V)>) -> Result<(), Failure> {
        let databases = self.databases()?;
        let mut tx = self.env.write_txn()?;
        for (key, value) in rows {
            databases[table].put(&mut tx, &key, value.to_bytes().as_ref())?;
        }
        tx.commit()?;
        Ok(())
    }

    fn session(&self) -> Result<Databases<'_>, Failure> {
        Ok(Databases { env: &self.env, databases: self.databases()? })
    }
}

/// The open databases.
pub(crate) struct Databases<'s> {
    env: &'s Env,
    databases: Vec<Table<'s>>,
}

impl<V: Value> Session<V> for Databases<'_> {
    fn read<W: Reading<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        let tx = self.env.read_txn()?;
        once(|| work.run(&mut Reader { tx: &tx, databases: &self.databases }))
    }

    fn write<W: Writing<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        let mut tx = self.env.write_txn()?;
        let done = once(|| work.run(&mut Writer { tx: &mut tx, databases: &self.databases }))?;
        tx.commit()?;
        Ok(done)
    }
}

#[inline]
fn get<V: Value>(tx: &RoTxn<'_>, databases: &[Table<'_>], place: Place) -> Result<V, Stopped> {
    there(databases[place.table].get(tx, &place.key).map_err(failed)?.map(V::from_bytes), place)
}

/// A transaction that only reads.
struct Reader<'t, 's> {
    tx: &'t RoTxn<'s>,
    databases: &'t [Table<'s>],
}

impl<V: Value> Read<V> for Reader<'_, '_> {
    #[inline]
    fn get(&mut self, place: Place) -> Result<V, Stopped> {
        get(self.tx, self.databases, place)
    }
}

/// A transaction that may write.
struct Writer<'t, 's> {
    tx: &'t mut RwTxn<'s>,
    databases: &'t [Table<'s>],
}

impl<V: Value> Read<V> for Writer<'_, '_> {
    #[inline]
    fn get(&mut self, place: Place) -> Result<V, Stopped> {
        get(self.tx, self.databases, place)
    }
}

impl<V: Value> Write<V> for Writer<'_, '_> {
    #[inline]
    fn put(&mut self, place: Place, value: V) -> Result<(), Stopped> {
        self.databases[place.table]
            .put(self.tx, &place.key, value.to_bytes().as_ref())
            .map_err(failed)
    }
}
