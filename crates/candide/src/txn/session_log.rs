//! The session's end of the log: it builds the record of each commit.

#![forbid(unsafe_code)]

use crate::access::Change;
use crate::engine::{Committed, Common, TableCore};
use crate::error::Abort;
use crate::log::{Buffer, Level, Log, LogTurn, Outbox};
use crate::record::RecordAt;
use crate::sync::{Mutant, mutant};
use candide_log::format::commit::{CommitWriter, Head};
use std::sync::{Arc, PoisonError};

/// The number of words that a session may have put into its buffer and the logger not yet on the
/// disk: 8 MiB. Beyond it, the session's next transaction waits for the logger.
const BACKLOG_WORDS_MAX: u64 = 1 << 20;

/// The session's end of the log.
#[derive(Debug)]
pub(crate) struct SessionLog {
    pub(crate) log: Arc<Log>,
    outbox: Arc<Outbox>,
    /// The tables of the database by number, as far as the session has met them.
    tables: Vec<Arc<TableCore>>,
    /// A stamp that is no smaller than those of all commits on which the result of the session's
    /// last transaction rests; zero before anything has been read.
    pub(crate) stamp: u64,
}

impl SessionLog {
    pub(crate) fn new(log: &Arc<Log>) -> SessionLog {
        SessionLog { log: log.clone(), outbox: log.join(), tables: Vec::new(), stamp: 0 }
    }

    /// Begins an attempt: waits until the session may add to its buffer. The session is not pinned,
    /// and holds no lock.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        self.stamp = 0;
        if self.outbox.backlog() > BACKLOG_WORDS_MAX {
            self.await_logger();
        }
    }

    #[cold]
    #[inline(never)]
    fn await_logger(&self) {
        let progress = &self.log.progress;
        progress.wait_until(|| self.outbox.backlog() <= BACKLOG_WORDS_MAX || progress.is_full());
    }

    /// Waits until everything on which the result of the last transaction rests has reached a
    /// level.
    ///
    /// # Errors
    /// [`Abort::LogFailed`].
    pub(crate) fn await_level(&self, level: Level) -> Result<(), Abort> {
        self.log.progress.wait(self.stamp, level)
    }

    /// Returns the parts that a commit needs: the buffer, and the tables that the session knows.
    ///
    /// # Errors
    /// [`Abort::LogFailed`], [`Abort::DiskFull`]: the commit must not write.
    #[inline]
    pub(crate) fn open(&mut self) -> Result<(LogTurn<'_>, Logged<'_>), Abort> {
        self.log.progress.admit()?;
        let SessionLog { log, outbox, tables, stamp } = self;
        Ok((outbox.turn(), Logged { log, outbox, tables, stamp }))
    }

    /// Ends the session's log. What is in the buffer is still written.
    pub(crate) fn close(&self) {
        self.outbox.close();
    }
}

/// The parts of a session's log with which a commit is logged.
pub(crate) struct Logged<'a> {
    log: &'a Log,
    outbox: &'a Outbox,
    tables: &'a mut Vec<Arc<TableCore>>,
    stamp: &'a mut u64,
}

impl Logged<'_> {
    /// Appends the record of a commit to the buffer: `changes` calls its argument with each change.
    /// The commit has released its locks. Ends the turn.
    pub(crate) fn append(
        self,
        turn: LogTurn<'_>,
        engine: &Common,
        committed: Committed,
        changes: impl FnOnce(&mut dyn FnMut(Change<'_>)),
    ) {
        *self.stamp = committed.stamp;
        let mut buffer = turn.into_buffer();
        let Buffer { words, newest, .. } = &mut *buffer;
        let mut record = CommitWriter::begin(words);
        let (tables, mut last) = (self.tables, None);
        changes(&mut |change| {
            if tables.len() <= usize::from(change.at.table()) {
                learn_tables(tables, engine);
            }
            add(&mut record, tables, &mut last, change);
        });
        let added = record.finish(committed.stamp, committed.version) as u64;
        if added > 0 {
            // The stamps of a session's commits do not fall.
            *newest = committed.stamp;
        }
        drop(buffer);
        if added > 0 {
            self.log.note_appended(self.outbox, added);
        }
    }
}

/// Copies the list of tables, which has grown.
#[cold]
fn learn_tables(tables: &mut Vec<Arc<TableCore>>, engine: &Common) {
    tables.clone_from(&engine.tables.read().unwrap_or_else(PoisonError::into_inner));
}

/// Adds a change to the record of a commit, unless its table is not logged. `last` is the row of the
/// change before.
#[inline]
fn add(
    record: &mut CommitWriter<'_>,
    tables: &[Arc<TableCore>],
    last: &mut Option<RecordAt>,
    change: Change<'_>,
) {
    let Change { at, kind, first, words } = change;
    let TableCore { log_number, layout, .. } = &*tables[usize::from(at.table())];
    let Some(number) = log_number.or(mutant(Mutant::IndexEntryLogged).then_some(0)) else { return };
    let first = (layout.placed_units()[at.unit()].start() + first) as u16;
    let head = Head { kind, table: number, first, count: words.len() as u16 };
    let row = at.record();
    let word = |index| words.get(index);
    if last.replace(row) == Some(row) {
        record.change_same_row(head, word);
    } else if layout.packs_keys() {
        let key = layout.unpacked_key(row);
        record.change(head, key.as_slice().len() as u8, |index| key.as_slice()[index], word);
    } else {
        record.change(head, layout.key_words() as u8, |index| row.key_word(index), word);
    }
}
