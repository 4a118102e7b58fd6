//! SurrealMX: versions in a radix tree, with keys of bytes, in memory, and with a log if wanted.

use std::path::Path;
use std::time::Duration;

use surrealmx::{
    AolMode, Database, DatabaseOptions, Error, FsyncMode, PersistenceOptions, Transaction,
};

use crate::Role;
use crate::stores::durability::{Durable, Waiting};
use crate::stores::{
    Done, Failure, Peer, Place, Read, Reading, Session, Size, Stopped, Store, Value, Write,
    Writing, failed, repeat, there,
};

/// SurrealMX.
pub(crate) struct SurrealMx;

impl Peer for SurrealMx {
    const NAME: &'static str = "surrealmx";
    const CRATE: Option<&'static str> = Some("surrealmx");
    const USE: &'static str = "transaction(true), strictly serializable, and transaction(false), which reads a snapshot; the \
                               table is the first byte of a key; conflicts are repeated at once";
    const ROLE: Role = Role::Peer;
    type Store<V: Value> = Rows;
}

impl Durable for SurrealMx {
    const NAME: &'static str = "surrealmx";
    const CRATE: Option<&'static str> = Some("surrealmx");
    const USE: &'static str = "AolMode::SynchronousOnCommit, FsyncMode::EveryAppend, where commits that come together share a sync; \
                               no snapshots; transaction(true), strictly serializable; conflicts are repeated after 200 microseconds";
    const ROLE: Role = Role::Peer;
    type Store = Rows;
    type Committer<'s> = Waiting<&'s Rows>;

    fn open(directory: &Path, _: Size) -> Result<Rows, Failure> {
        let persistence = PersistenceOptions::new(directory)
            .with_aol_mode(AolMode::SynchronousOnCommit)
            .with_fsync_mode(FsyncMode::EveryAppend);
        let database = Database::new_with_persistence(DatabaseOptions::default(), persistence)?;
        Ok(Rows { database, pause: PAUSE })
    }

    fn committer(store: &Rows) -> Result<Waiting<&Rows>, Failure> {
        Ok(Waiting(store))
    }
}

/// The pause after a conflict of durable transactions. The other transaction stays in the way until
/// its sync has ended. Without a pause, it is met repeatedly until then.
const PAUSE: Duration = Duration::from_micros(200);

/// A database.
pub(crate) struct Rows {
    database: Database,
    /// The pause after a conflict.
    pause: Duration,
}

/// The number of rows that are loaded in one transaction.
const PORTION: usize = 1000;

/// Returns the key of a row in the store's single space of keys.
fn key_of(place: Place) -> [u8; 9] {
    let mut key = [place.table as u8; 9];
    key[1..].copy_from_slice(&place.key.to_be_bytes());
    key
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Stopped {
        match error {
            Error::KeyReadConflict | Error::KeyWriteConflict => Stopped::Conflict,
            error => failed(error),
        }
    }
}

impl<V: Value> Store<V> for Rows {
    type Session<'s> = &'s Rows;

    fn open(_: Size) -> Result<Self, Failure> {
        Ok(Rows { database: Database::new(), pause: Duration::ZERO })
    }

    fn load(&mut self, table: usize, rows: impl Iterator<Item = (u64, V)>) -> Result<(), Failure> {
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let mut tx = self.database.transaction(true);
            for (key, value) in rows.by_ref().take(PORTION) {
                tx.put(key_of(Place { table, key }), value.to_bytes().as_ref())?;
            }
            tx.commit()?;
        }
        Ok(())
    }

    fn session(&self) -> Result<&Rows, Failure> {
        Ok(self)
    }
}

impl<V: Value> Session<V> for &Rows {
    fn read<W: Reading<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        repeat(self.pause, || {
            let mut tx = self.database.transaction(false);
            let output = work.run(&mut tx)?;
            tx.cancel()?;
            Ok(output)
        })
    }

    fn write<W: Writing<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        repeat(self.pause, || {
            let mut tx = self.database.transaction(true);
            let output = work.run(&mut tx)?;
            tx.commit()?;
            Ok(output)
        })
    }
}

impl<V: Value> Read<V> for Transaction {
    #[inline]
    fn get(&mut self, place: Place) -> Result<V, Stopped> {
        there(self.with_value(key_of(place), V::from_bytes)?, place)
    }
}

impl<V: Value> Write<V> for Transaction {
    #[inline]
    fn put(&mut self, place: Place, value: V) -> Result<(), Stopped> {
        Ok(self.set(key_of(place), value.to_bytes().as_ref())?)
    }
}
