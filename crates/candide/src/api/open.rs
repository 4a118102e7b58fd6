//! Opening a database that lies in files.

#![forbid(unsafe_code)]

use super::database::{Builder, Database};
use super::log_options::LogOptions;
use super::recovery::Recovery;
use crate::catalog::files_error;
use crate::durable::{CutSource, Durable, RemoteReplies};
use crate::engine::Protocol;
use crate::error::{Abort, Error};
use crate::log::{BlockError, Blocks, Level, Log};
use crate::protocols::DefaultProtocol;
use crate::shared::Inner;
use crate::sync::is_in_step;
use candide_log::disk::{Disk, RealDisk};
use candide_log::store::{BackedUp, Checkpointed};
use candide_log::{LogWriter, OpenError, Store, StoreOptions, WriteError};
use std::io;
use std::path::Path;
use std::sync::Arc;

impl Database<DefaultProtocol> {
    /// Opens the database in the directory `path`, or makes one there if the directory is empty or
    /// does not exist. Everything that was durable is in the database again: the state is that
    /// after a prefix of the serial order of all transactions.
    ///
    /// [`Database::run`] then waits until its result is durable: on the disk, so that it survives a
    /// loss of power. The wait lasts as long as the disk takes to write and sync, from some
    /// microseconds to some milliseconds, while other threads continue and share the sync.
    /// [`Database::run_logged`] does not wait, and [`LogOptions::acknowledge`] changes the default.
    ///
    /// ```
    /// use candide::{Database, Record, Whole};
    ///
    /// #[derive(Record, Clone, Copy, Debug, PartialEq)]
    /// struct Account { #[key] id: u64, cents: i64 }
    ///
    /// # let directory = std::env::temp_dir().join(format!("candide-doc-open-{}", std::process::id()));
    /// # let path = directory.join("shop.candide");
    /// {
    ///     let db = Database::open(&path)?;
    ///     let accounts = db.table::<Account>("accounts")?;
    ///     db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 50 }))?;
    /// }
    /// let db = Database::open(&path)?;
    /// let accounts = db.table::<Account>("accounts")?;
    /// assert_eq!(db.run(|tx| accounts.get(tx, 1, Whole))?, Some(Account { id: 1, cents: 50 }));
    /// # drop((db, accounts));
    /// # std::fs::remove_dir_all(directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`OpenError`]: the directory is in use, contains something else, is damaged, or cannot be
    /// read or written. Nothing has changed then.
    pub fn open(path: impl AsRef<Path>) -> Result<Database<DefaultProtocol>, OpenError> {
        Database::<DefaultProtocol>::builder().open(path, LogOptions::new())
    }
}

impl<P: Protocol> Builder<P> {
    /// Opens the database in the directory `path` as [`Database::open`] does, with these options
    /// and under protocol `P`. The files do not depend on the protocol, nor on timestamp splitting.
    ///
    /// Under [`TicToc`](crate::TicToc) the state is not always that after a prefix of the serial
    /// order of all transactions. With each transaction that is there, all those are there whose
    /// writes it has read or replaced, and all that were acknowledged; they have a serial order.
    ///
    /// # Errors
    /// As [`Database::open`]; and, in [`OpenError::Target`], those of [`Builder::build`], and
    /// [`Error::OptionTooLarge`] if an option is above its largest value.
    pub fn open(
        self,
        path: impl AsRef<Path>,
        options: LogOptions,
    ) -> Result<Database<P>, OpenError> {
        options.check().map_err(|error| OpenError::Target(Box::new(error)))?;
        let path = path.as_ref();
        let disk = RealDisk::create(path)
            .map_err(|source| OpenError::Io { file: path.display().to_string(), source })?;
        self.open_on(Arc::new(disk), options)
    }

    /// Opens the database on a disk, which may be a simulated one.
    #[doc(hidden)]
    pub fn open_on(
        self,
        disk: Arc<dyn Disk>,
        options: LogOptions,
    ) -> Result<Database<P>, OpenError> {
        let refused = |error: Error| OpenError::Target(Box::new(error));
        options.check().map_err(refused)?;
        let db = self.build().map_err(refused)?;
        let properties = &db.inner.engine.properties;
        if options.remote.is_some() && !properties.readable_cut {
            return Err(refused(Error::NoReadableCut { protocol: properties.name }));
        }
        let one_session = properties.one_session;
        let store_options = StoreOptions {
            segment_bytes: options.segment_bytes,
            checkpoint_log_bytes: options.checkpoint_bytes,
            checkpoint_rate: options.checkpoint_rate,
            recovery_threads: if one_session { 1 } else { options.recovery_threads },
            remote: options.remote.clone(),
        };
        let report = |progress| {
            if let Some(report) = &options.progress {
                report(progress);
            }
        };
        let target = Recovery::new(&db.inner);
        let (store, writer, _) = Store::open(disk, &store_options, &target, &report)?;
        let writer = Box::new(LogBlocks(writer));
        let log = Log::new(writer, options.flush_every, options.acknowledge);
        let database: Arc<dyn CutSource> = Arc::<Inner<P>>::clone(&db.inner);
        let log = match options.remote {
            None => log,
            Some(remote) => {
                let log = log.with_remote(remote.clone());
                let progress = log.progress.clone();
                let replies = RemoteReplies { progress, database: Arc::downgrade(&database) };
                store.begin_remote(Arc::new(replies))?;
                log
            }
        };
        let log = Arc::new(log);
        db.inner.make_durable(Durable::start(log, Arc::new(store), database));
        Ok(db)
    }
}

/// The writer of the log's blocks in files.
#[derive(Debug)]
struct LogBlocks(LogWriter);

fn failed(error: WriteError) -> BlockError {
    match error {
        WriteError::Full(_) => BlockError::Full,
        WriteError::Failed(error) => BlockError::Failed(io::Error::new(error.kind(), error)),
    }
}

impl Blocks for LogBlocks {
    fn write(&mut self, records: &[&[u64]], cut: u64) -> Result<(), BlockError> {
        self.0.write(records, cut).map_err(failed)
    }

    fn has_pending(&self) -> bool {
        self.0.has_pending()
    }

    fn sync(&mut self) -> Result<(), BlockError> {
        self.0.sync().map_err(failed)
    }

    fn confirm(&mut self) -> Result<(), BlockError> {
        self.0.confirm().map_err(failed)
    }

    fn prepare(&mut self) -> Result<(), BlockError> {
        self.0.prepare().map_err(failed)
    }

    fn close(self: Box<Self>) -> Result<(), BlockError> {
        self.0.close().map_err(failed)
    }
}

/// The state of a database in files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Durability {
    /// The stamp up to which commits are [written](Level::Written), and the one up to which they
    /// are [durable](Level::Durable). Stamps are numbers that grow along the serial order; they
    /// have no meaning beyond the present opening of the database.
    pub written: u64,
    /// See `written`.
    pub durable: u64,
    /// The bytes of all commit records since the database was opened, whether they are in the files
    /// yet or not.
    pub recorded_bytes: u64,
    /// The bytes of the log that a recovery would read.
    pub log_bytes: u64,
    /// Whether the disk has no room for the log, so that transactions cannot write.
    pub is_full: bool,
    /// The failure of the last checkpoint that began by itself; `None` if that checkpoint has not
    /// failed.
    pub checkpoint_failure: Option<String>,
    /// The reason why the copy of the log elsewhere ([`LogOptions::remote`]) has not got the last
    /// checkpoint; `None` if it has, or there is no copy. It gets the next one, and keeps the log
    /// until then.
    pub remote_checkpoint_failure: Option<String>,
}

/// Refuses to wait for the logger inside a step, for whose transaction the logger may wait.
fn refuse_in_step() -> Result<(), Error> {
    if is_in_step() { Err(Error::Transaction(Abort::Nested)) } else { Ok(()) }
}

impl<P: Protocol> Database<P> {
    /// Waits until every transaction that has ended before the call is durable. In a database
    /// without a log it returns at once.
    ///
    /// # Errors
    /// [`Error::Transaction`] with [`Abort::LogFailed`], or with
    /// [`Abort::DiskFull`] if the disk has no room for the log. In the latter case nothing is lost,
    /// and the call can be repeated. With [`Abort::Nested`] if this thread is inside a step
    /// ([`Table::defer`](crate::Table::defer)).
    pub fn sync(&self) -> Result<(), Error> {
        refuse_in_step()?;
        let Some(log) = self.inner.engine.log.get() else { return Ok(()) };
        let stamp = self.inner.last_stamp();
        log.progress.wait_while_room(stamp, Level::Durable).map_err(Error::Transaction)
    }

    /// Makes a checkpoint: writes all rows, as they are in the log up to now, and gives back the
    /// part of the log that is not needed any more. A later [`open`](Database::open) then reads
    /// less. Transactions continue meanwhile. Checkpoints also begin by themselves
    /// ([`LogOptions::checkpoint_bytes`]).
    ///
    /// # Errors
    /// [`Error::NotDurable`], [`Error::Transaction`] with [`Abort::LogFailed`],
    /// [`Abort::DiskFull`] or, in a step, [`Abort::Nested`]; [`Error::Files`]. The checkpoint before
    /// is still in force, and nothing is lost.
    pub fn checkpoint(&self) -> Result<Checkpointed, Error> {
        match self.sync() {
            // The checkpoint may make room.
            Ok(()) | Err(Error::Transaction(Abort::DiskFull)) => {}
            Err(failure) => return Err(failure),
        }
        let store = self.inner.store().ok_or(Error::NotDurable)?;
        store.checkpoint().map_err(files_error)
    }

    /// Copies the database, while it is in use, to the directory `path`, which must be empty or not
    /// exist. The copy contains every transaction that has ended before the call, and is one moment
    /// of the serial order. The copy can be opened like the original.
    ///
    /// # Errors
    /// As [`Database::checkpoint`], and [`Error::NoReadableCut`] under [`TicToc`](crate::TicToc).
    /// After an error the directory may contain files, but no database.
    pub fn backup(&self, path: impl AsRef<Path>) -> Result<BackedUp, Error> {
        let path = path.as_ref();
        let disk = RealDisk::create(path)
            .map_err(|error| Error::Files { problem: format!("{}: {error}", path.display()) })?;
        self.backup_to(Arc::new(disk))
    }

    /// Copies the database to a disk, which may be a simulated one.
    #[doc(hidden)]
    pub fn backup_to(&self, disk: Arc<dyn Disk>) -> Result<BackedUp, Error> {
        let properties = &self.inner.engine.properties;
        let store = self.inner.store().ok_or(Error::NotDurable)?;
        if !properties.readable_cut {
            return Err(Error::NoReadableCut { protocol: properties.name });
        }
        self.sync()?;
        store.backup(disk).map_err(files_error)
    }

    /// Returns the reason for which the log has failed; `None` if it has not. After a failure
    /// each transaction that writes ends in [`Abort::LogFailed`](crate::Abort::LogFailed).
    pub fn log_failure(&self) -> Option<Arc<io::Error>> {
        self.inner.engine.log.get()?.progress.failure()
    }

    /// Returns the state of the database's files; `None` if the database has none.
    pub fn durability(&self) -> Option<Durability> {
        let durable = self.inner.durable()?;
        let log = durable.log();
        Some(Durability {
            written: log.progress.cut(Level::Written),
            durable: log.progress.cut(Level::Durable),
            recorded_bytes: log.appended_words() * size_of::<u64>() as u64,
            log_bytes: durable.store().log_bytes(),
            is_full: log.progress.is_full(),
            checkpoint_failure: durable.checkpoint_failure(),
            remote_checkpoint_failure: log.progress.remote().and_then(|it| it.checkpoint_failure()),
        })
    }
}
