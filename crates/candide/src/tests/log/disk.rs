//! A log whose blocks stay in memory, and a database with such a log.

use crate::durable::{CutSource, DatabaseCuts};
use crate::engine::Protocol;
use crate::log::{BlockError, Blocks, Level, Log, Round};
use crate::shared::Inner;
use crate::sync::Duration;
use crate::{Builder, Database};
use candide_log::format::commit::records;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A block of the log.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// The commit records, one after another.
    pub(crate) records: Vec<u64>,
    pub(crate) cut: u64,
}

/// The way in which a disk fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Full,
    Broken,
}

/// The blocks that a log has written. All clones share them. The lock is not part of the state that
/// models explore, and is held for none of their steps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<Written>>);

/// The contents of a disk, and the operations on it.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) blocks: Vec<Block>,
    /// The number of blocks that are durable.
    pub(crate) synced: usize,
    /// The number of confirmations; and, in `closed`, whether the log was closed.
    pub(crate) confirmed: usize,
    pub(crate) closed: bool,
    pub(crate) fault: Option<Fault>,
    /// The acknowledgements to programs while each block was written and not durable yet.
    pub(crate) told: Vec<Told>,
    log: Weak<Log>,
}

/// The acknowledgement possible at one moment: commits up to the stamp `durable` are durable. At
/// that moment `blocks` blocks were.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    pub(crate) durable: u64,
    pub(crate) blocks: usize,
}

impl Disk {
    pub(crate) fn written(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the way in which the disk fails from now on.
    pub(crate) fn fail_by(&self, fault: Option<Fault>) {
        self.written().fault = fault;
    }
}

impl Written {
    fn check(&self) -> Result<(), BlockError> {
        match self.fault {
            None => Ok(()),
            Some(Fault::Full) => Err(BlockError::Full),
            Some(Fault::Broken) => Err(BlockError::Failed(io::Error::other("broken by a test"))),
        }
    }
}

impl Blocks for Disk {
    fn write(&mut self, records: &[&[u64]], cut: u64) -> Result<(), BlockError> {
        let written = &mut *self.written();
        written.check()?;
        assert!(!written.closed, "a block is written after the end of the log");
        assert_eq!(written.synced, written.blocks.len(), "one block at most is in flight");
        written.blocks.push(Block { records: records.concat(), cut });
        Ok(())
    }

    fn has_pending(&self) -> bool {
        let blocks = &self.written().blocks;
        let Some(cut) = blocks.last().map(|block| block.cut) else { return false };
        let mut all = blocks.iter().flat_map(|block| records(&block.records));
        all.any(|record| record.expect("the record is well-formed").stamp > cut)
    }

    fn sync(&mut self) -> Result<(), BlockError> {
        let log = self.written().log.upgrade();
        let durable = log.map_or(0, |log| log.progress.cut(Level::Durable));
        let written = &mut *self.written();
        written.check()?;
        written.told.push(Told { durable, blocks: written.synced });
        written.synced = written.blocks.len();
        Ok(())
    }

    fn confirm(&mut self) -> Result<(), BlockError> {
        self.written().confirmed += 1;
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), BlockError> {
        self.written().check()
    }

    fn close(self: Box<Self>) -> Result<(), BlockError> {
        self.written().closed = true;
        Ok(())
    }
}

/// A database with a log in memory. Transactions of the database do not wait for the log by
/// default.
#[derive(Debug)]
pub(crate) struct Logged<P: Protocol> {
    pub(crate) db: Database<P>,
    pub(crate) disk: Disk,
    pub(crate) log: Arc<Log>,
}

impl<P: Protocol> Logged<P> {
    /// Builds the database. No logger runs: tests make the rounds.
    pub(crate) fn new(builder: Builder<P>) -> Logged<P> {
        let (db, disk) = (builder.build().unwrap(), Disk::default());
        let log =
            Arc::new(Log::new(Box::new(disk.clone()), Duration::from_millis(1), Level::Memory));
        disk.written().log = Arc::downgrade(&log);
        db.inner.set_log(&log);
        Logged { db, disk, log }
    }

    /// Returns the database as its logger sees it.
    pub(crate) fn cuts(&self) -> DatabaseCuts {
        let database: Arc<dyn CutSource> = Arc::<Inner<P>>::clone(&self.db.inner);
        DatabaseCuts(Arc::downgrade(&database))
    }

    /// Makes one round.
    pub(crate) fn round(&self) -> Round {
        self.log.round(&self.cuts())
    }

    /// Makes rounds until no block has to be written any more. Nothing commits meanwhile.
    pub(crate) fn settle(&self) {
        let written = (0..4).take_while(|_| self.round() == Round::Written).count();
        assert!(written < 3, "blocks are written though nothing commits");
    }

    /// Returns the stamp up to which commits are reported as durable.
    pub(crate) fn durable(&self) -> u64 {
        self.log.progress.cut(Level::Durable)
    }

    /// Returns the cuts that are reported at present.
    pub(crate) fn told(&self) -> Told {
        Told { durable: self.durable(), blocks: self.disk.written().synced }
    }
}
