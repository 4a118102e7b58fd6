//! The session's end of the log: it builds the record of each commit.

#![forbid(unsafe_code)]

use crate::access::Change;
use crate::engine::{Committed, Common, TableCore};
use crate::error::Abort;
use crate::log::{Log, LogTurn, Outbox};
use crate::record::{Layout, RecordAt};
use crate::schema::Words;
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
    /// last transaction rests; or [`SEEN`] or [`NOW`].
    pub(crate) stamp: u64,
}

/// The stamp of a transaction that has written nothing. The protocol can tell its stamp from what the
/// attempt has seen, which only matters if something waits for it.
pub(crate) const SEEN: u64 = u64::MAX;

/// The stamp of a transaction that has failed at the commit, or whose updater has panicked. It rests
/// on what it has seen at the commit, too.
pub(crate) const NOW: u64 = u64::MAX - 1;

impl SessionLog {
    pub(crate) fn new(log: &Arc<Log>) -> SessionLog {
        SessionLog { log: log.clone(), outbox: log.join(), tables: Vec::new(), stamp: 0 }
    }

    /// Waits until the session may add to its buffer. The session is not pinned, and holds no lock.
    #[inline(always)]
    pub(crate) fn await_room(&self) {
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

    /// Returns the parts that a commit needs: the buffer, and the tables that the session knows.
    ///
    /// # Errors
    /// [`Abort::LogFailed`], [`Abort::DiskFull`]: the commit must not write.
    #[inline]
    pub(crate) fn open(&mut self) -> Result<(LogTurn<'_>, Logged<'_>), Abort> {
        let SessionLog { log, outbox, tables, stamp } = self;
        *stamp = 0;
        log.progress.admit()?;
        *stamp = NOW;
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
    /// Appends the record of a commit to the buffer: `changes` adds the changes. The commit has
    /// released its locks. Ends the turn.
    #[inline(always)]
    pub(crate) fn append(
        self,
        turn: LogTurn<'_>,
        engine: &Common,
        committed: Committed,
        changes: impl FnOnce(&mut Record<'_>),
    ) {
        *self.stamp = committed.stamp;
        let mut buffer = turn.into_buffer();
        let added = {
            let writer = CommitWriter::begin(&mut buffer.words);
            let mut record = Record { writer, tables: self.tables, engine, last: None };
            changes(&mut record);
            record.writer.finish(committed.stamp, committed.version) as u64
        };
        drop(buffer);
        if added > 0 {
            self.log.note_appended(self.outbox, added);
        }
    }
}

/// The record of a commit that is being appended.
pub(crate) struct Record<'a> {
    writer: CommitWriter<'a>,
    tables: &'a mut Vec<Arc<TableCore>>,
    engine: &'a Common,
    /// The row of the change before.
    last: Option<RecordAt>,
}

impl Record<'_> {
    /// Adds a change, unless its table is not logged.
    #[inline(always)]
    pub(crate) fn add(&mut self, change: Change<'_>) {
        let Change { at, kind, first, words } = change;
        if self.tables.len() <= usize::from(at.table()) {
            self.learn_tables();
        }
        let TableCore { log_number, layout, .. } = &*self.tables[usize::from(at.table())];
        let logs_all = mutant(Mutant::IndexEntryLogged).then_some(1);
        let Some(number) = log_number.or(logs_all) else { return };
        let first = (layout.placed_units()[at.unit()].start() + first) as u16;
        let head = Head { kind, table: number, first, count: words.len() as u16 };
        let row = at.record();
        let is_same = self.last.replace(row) == Some(row);
        match words {
            Words::Own(words) if is_same => self.writer.change_same_row_slice(head, words),
            Words::Own(words) if !layout.packs_keys() => {
                let key = |index| row.key_word(index);
                self.writer.change_slice(head, layout.key_words() as u8, key, words);
            }
            words => add_slowly(&mut self.writer, layout, (row, is_same), head, words),
        }
    }

    /// Copies the list of tables, which has grown.
    #[cold]
    fn learn_tables(&mut self) {
        let tables = self.engine.tables.read().unwrap_or_else(PoisonError::into_inner);
        self.tables.clone_from(&tables);
    }
}

/// Adds a change whose words are in the row, or whose key is packed.
#[inline(never)]
fn add_slowly(
    writer: &mut CommitWriter<'_>,
    layout: &Layout,
    (row, is_same): (RecordAt, bool),
    head: Head,
    words: Words<'_>,
) {
    let word = |index| words.get(index);
    if is_same {
        writer.change_same_row(head, word);
    } else {
        let key = layout.unpacked_key(row);
        let key = key.as_slice();
        writer.change(head, key.len() as u8, |index| key[index], word);
    }
}
