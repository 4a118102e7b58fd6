//! RocksDB's two transaction databases: one with locks, and one with optimistic transactions. Both
//! give only snapshot isolation, unless reads are declared as reads for update. Here all reads are
//! declared so.

use std::time::Duration;

use rocksdb::{
    DBAccess, Error, ErrorKind, OptimisticTransactionDB, OptimisticTransactionOptions, Options,
    SnapshotWithThreadMode, Transaction, TransactionDB, TransactionDBOptions, TransactionOptions,
    WriteBatchWithTransaction, WriteOptions,
};

use crate::Role;
use crate::stores::scratch::Scratch;
use crate::stores::{
    Done, Failure, Peer, Place, Read, Reading, Session, Size, Stopped, Store, Value, Write,
    Writing, failed, repeat, there,
};

/// The peer that locks each row that is read or written.
pub(crate) struct Pessimistic;

impl Peer for Pessimistic {
    const NAME: &'static str = "rocksdb-locks";
    const CRATE: Option<&'static str> = Some("rocksdb");
    const USE: &'static str = "TransactionDB, files on /dev/shm, if it is there, no write-ahead log; get_for_update for \
                               every read of a transaction that may write, which makes it serializable; deadlocks are \
                               detected; others read a snapshot; the table is the first byte of a key; conflicts are \
                               repeated at once";
    const ROLE: Role = Role::Peer;
    type Store<V: Value> = Opened<TransactionDB>;
}

/// The peer that checks at commit the rows that were read or written.
pub(crate) struct Optimistic;

impl Peer for Optimistic {
    const NAME: &'static str = "rocksdb-occ";
    const CRATE: Option<&'static str> = Some("rocksdb");
    const USE: &'static str = "OptimisticTransactionDB, otherwise as rocksdb-locks: get_for_update makes it check \
                               reads, too";
    const ROLE: Role = Role::Peer;
    type Store<V: Value> = Opened<OptimisticTransactionDB>;
}

/// The common operations of the two databases.
pub(crate) trait Database: DBAccess + Sized + Sync {
    fn open(folder: &Scratch, options: &Options) -> Result<Self, Error>;
    fn write(
        &self,
        batch: WriteBatchWithTransaction<true>,
        options: &WriteOptions,
    ) -> Result<(), Error>;
    fn begin(&self, options: &WriteOptions) -> Transaction<'_, Self>;
}

impl Database for TransactionDB {
    fn open(folder: &Scratch, options: &Options) -> Result<Self, Error> {
        TransactionDB::open(options, &TransactionDBOptions::default(), folder.path())
    }

    fn write(
        &self,
        batch: WriteBatchWithTransaction<true>,
        options: &WriteOptions,
    ) -> Result<(), Error> {
        self.write_opt(batch, options)
    }

    fn begin(&self, options: &WriteOptions) -> Transaction<'_, Self> {
        let mut transaction = TransactionOptions::default();
        transaction.set_deadlock_detect(true);
        self.transaction_opt(options, &transaction)
    }
}

impl Database for OptimisticTransactionDB {
    fn open(folder: &Scratch, options: &Options) -> Result<Self, Error> {
        OptimisticTransactionDB::open(options, folder.path())
    }

    fn write(
        &self,
        batch: WriteBatchWithTransaction<true>,
        options: &WriteOptions,
    ) -> Result<(), Error> {
        self.write_opt(batch, options)
    }

    fn begin(&self, options: &WriteOptions) -> Transaction<'_, Self> {
        self.transaction_opt(options, &OptimisticTransactionOptions::default())
    }
}

/// The number of rows that are loaded at once.
const PORTION: usize = 1000;

/// A database and its folder.
pub(crate) struct Opened<D> {
    // Fields drop in this order, so the database is closed before its folder is removed.
    database: D,
    _folder: Scratch,
}

/// Returns the key of a row in the database's single space of keys.
fn key_of(place: Place) -> [u8; 9] {
    let mut key = [place.table as u8; 9];
    key[1..].copy_from_slice(&place.key.to_be_bytes());
    key
}

/// Returns options without a log, since no data has to outlive the process.
fn unlogged() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.disable_wal(true);
    options
}

/// Converts an error. Conflicts, deadlocks and timeouts of locks become [`Stopped::Conflict`].
fn stopped(error: Error) -> Stopped {
    match error.kind() {
        ErrorKind::Busy | ErrorKind::TryAgain | ErrorKind::TimedOut => Stopped::Conflict,
        _ => failed(error),
    }
}

impl<V: Value, D: Database + 'static> Store<V> for Opened<D> {
    type Session<'s> = Sessions<'s, D>;

    fn open(_: Size) -> Result<Self, Failure> {
        let folder = Scratch::in_memory()?;
        let mut options = Options::default();
        options.create_if_missing(true);
        Ok(Opened { database: D::open(&folder, &options)?, _folder: folder })
    }

    fn load(&mut self, table: usize, rows: impl Iterator<Item = (u64, V)>) -> Result<(), Failure> {
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let mut batch = WriteBatchWithTransaction::default();
            for (key, value) in rows.by_ref().take(PORTION) {
                batch.put(key_of(Place { table, key }), value.to_bytes());
            }
            self.database.write(batch, &unlogged())?;
        }
        Ok(())
    }

    fn session(&self) -> Result<Sessions<'_, D>, Failure> {
        Ok(Sessions { database: &self.database, options: unlogged() })
    }
}

/// A thread's session.
pub(crate) struct Sessions<'s, D> {
    database: &'s D,
    options: WriteOptions,
}

impl<V: Value, D: Database> Session<V> for Sessions<'_, D> {
    fn read<W: Reading<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        repeat(Duration::ZERO, || work.run(&mut Reader(SnapshotWithThreadMode::new(self.database))))
    }

    fn write<W: Writing<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        repeat(Duration::ZERO, || {
            let tx = self.database.begin(&self.options);
            let output = work.run(&mut Writer(&tx))?;
            tx.commit().map_err(stopped)?;
            Ok(output)
        })
    }
}

/// A snapshot from which a transaction reads.
struct Reader<'s, D: DBAccess>(SnapshotWithThreadMode<'s, D>);

impl<V: Value, D: DBAccess> Read<V> for Reader<'_, D> {
    fn get(&mut self, place: Place) -> Result<V, Stopped> {
        let found = self.0.get(key_of(place)).map_err(stopped)?;
        there(found.map(|bytes| V::from_bytes(&bytes)), place)
    }
}

/// A transaction that may write.
struct Writer<'t, 's, D>(&'t Transaction<'s, D>);

impl<V: Value, D> Read<V> for Writer<'_, '_, D> {
    fn get(&mut self, place: Place) -> Result<V, Stopped> {
        let found = self.0.get_for_update(key_of(place), true).map_err(stopped)?;
        there(found.map(|bytes| V::from_bytes(&bytes)), place)
    }
}

impl<V: Value, D> Write<V> for Writer<'_, '_, D> {
    fn put(&mut self, place: Place, value: V) -> Result<(), Stopped> {
        self.0.put(key_of(place), value.to_bytes()).map_err(stopped)
    }
}
