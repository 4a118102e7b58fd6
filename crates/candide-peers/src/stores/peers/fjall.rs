//! fjall: a log-structured merge tree with optimistic transactions.

use std::path::Path;
use std::time::Duration;

use fjall::{
    KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, OptimisticWriteTx,
    PersistMode, Readable,
};

use crate::Role;
use crate::stores::durability::{Durable, Waiting};
use crate::stores::scratch::Scratch;
use crate::stores::{
    Done, Failure, Peer, Place, Read, Reading, Session, Size, Stopped, Store, Value, Write,
    Writing, failed, repeat, there,
};

/// fjall.
pub(crate) struct Fjall;

impl Peer for Fjall {
    const NAME: &'static str = "fjall";
    const CRATE: Option<&'static str> = Some("fjall");
    const USE: &'static str = "OptimisticTxDatabase, serializable, files on /dev/shm, if it is there; \
                               manual_journal_persist, so that a commit leaves its journal in the process; read_tx to \
                               read; conflicts are repeated at once";
    const ROLE: Role = Role::Peer;
    type Store<V: Value> = Keyspaces;
}

impl Durable for Fjall {
    const NAME: &'static str = "fjall";
    const CRATE: Option<&'static str> = Some("fjall");
    const USE: &'static str = "OptimisticTxDatabase, serializable; each transaction has durability SyncAll, which syncs the journal \
                               in its commit; conflicts are repeated at once";
    const ROLE: Role = Role::Peer;
    type Store = Keyspaces;
    type Committer<'s> = Waiting<&'s Keyspaces>;

    fn open(directory: &Path, size: Size) -> Result<Keyspaces, Failure> {
        let database = OptimisticTxDatabase::builder(directory.join("db")).open()?;
        Keyspaces::new(database, size, Some(PersistMode::SyncAll), None)
    }

    fn committer(store: &Keyspaces) -> Result<Waiting<&Keyspaces>, Failure> {
        Ok(Waiting(store))
    }
}

/// The number of rows that are loaded in one transaction.
const PORTION: usize = 1000;

/// A database and a keyspace for each table.
pub(crate) struct Keyspaces {
    // Fields drop in this order, so the database is closed before its folder is removed.
    database: OptimisticTxDatabase,
    keyspaces: Vec<OptimisticTxKeyspace>,
    /// The step that a commit takes with its journal; `None` leaves the journal in the process.
    durability: Option<PersistMode>,
    _folder: Option<Scratch>,
}

impl Keyspaces {
    fn new(
        database: OptimisticTxDatabase,
        size: Size,
        durability: Option<PersistMode>,
        folder: Option<Scratch>,
    ) -> Result<Keyspaces, Failure> {
        let keyspace =
            |number| database.keyspace(&format!("table-{number}"), KeyspaceCreateOptions::default);
        let keyspaces = (0..size.tables).map(keyspace).collect::<Result<_, _>>()?;
        Ok(Keyspaces { database, keyspaces, durability, _folder: folder })
    }

    fn write_tx(&self) -> fjall::Result<OptimisticWriteTx> {
        Ok(self.database.write_tx()?.durability(self.durability))
    }
}

impl<V: Value> Store<V> for Keyspaces {
    type Session<'s> = &'s Keyspaces;

    fn open(size: Size) -> Result<Self, Failure> {
        let folder = Scratch::in_memory()?;
        let database = OptimisticTxDatabase::builder(folder.path().join("db"))
            .manual_journal_persist(true)
            .open()?;
        Keyspaces::new(database, size, None, Some(folder))
    }

    fn load(&mut self, table: usize, rows: impl Iterator<Item = (u64, V)>) -> Result<(), Failure> {
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let mut tx = self.write_tx()?;
            for (key, value) in rows.by_ref().take(PORTION) {
                tx.insert(&self.keyspaces[table], key.to_be_bytes(), value.to_bytes().as_ref());
            }
            tx.commit()??;
        }
        Ok(())
    }

    fn session(&self) -> Result<&Keyspaces, Failure> {
        Ok(self)
    }
}

impl<V: Value> Session<V> for &Keyspaces {
    fn read<W: Reading<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        repeat(Duration::ZERO, || {
            work.run(&mut Running { tx: self.database.read_tx(), keyspaces: &self.keyspaces })
        })
    }

    fn write<W: Writing<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        repeat(Duration::ZERO, || {
            let tx = self.write_tx().map_err(failed)?;
            let mut running = Running { tx, keyspaces: &self.keyspaces };
            let output = work.run(&mut running)?;
            match running.tx.commit().map_err(failed)? {
                Ok(()) => Ok(output),
                Err(fjall::Conflict) => Err(Stopped::Conflict),
            }
        })
    }
}

/// A running transaction: a snapshot, or a transaction that may write.
struct Running<'s, T> {
    tx: T,
    keyspaces: &'s [OptimisticTxKeyspace],
}

impl<V: Value, T: Readable> Read<V> for Running<'_, T> {
    #[inline]
    fn get(&mut self, place: Place) -> Result<V, Stopped> {
        let found =
            self.tx.get(&self.keyspaces[place.table], place.key.to_be_bytes()).map_err(failed)?;
        there(found.map(|bytes| V::from_bytes(&bytes)), place)
    }
}

impl<V: Value> Write<V> for Running<'_, OptimisticWriteTx> {
    #[inline]
    fn put(&mut self, place: Place, value: V) -> Result<(), Stopped> {
        self.tx.insert(
            &self.keyspaces[place.table],
            place.key.to_be_bytes(),
            value.to_bytes().as_ref(),
        );
        Ok(())
    }
}
