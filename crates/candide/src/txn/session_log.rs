//! The session's part of the log, which builds the record of each commit.

#![forbid(unsafe_code)]

use crate::access::{Change, ChangeKind, ChangeSink};
use crate::engine::{Committed, Common, TableCore, Values};
use crate::error::Abort;
use crate::log::{Awaited, Level, Log, LogTurn, Outbox};
use crate::memory::OutOfMemory;
use crate::record::value::names_value;
use crate::record::{RecordAt, long};
use crate::schema::Words;
use crate::sync::is_in_step;
use candide_log::format::commit::{CommitWriter, Head};
use std::sync::{Arc, PoisonError};

/// The number of words that a session may have put into its buffer and the logger not yet on the
/// disk: 8 MiB. From it on, the session's next transaction waits for the logger.
const BACKLOG_WORDS_MAX: u64 = 1 << 20;

/// The session's part of the log.
#[derive(Debug)]
pub(crate) struct SessionLog {
    pub(crate) log: Arc<Log>,
    /// The level for which the session's transactions wait by default.
    pub(crate) acknowledge: Level,
    outbox: Arc<Outbox>,
    /// The number of words from which on an attempt has to wait for the logger; zero while the
    /// session reads the view of a database that follows another one.
    backlog_words_max: u64,
    /// The tables of the database by number, as far as the session has met them.
    tables: Vec<Arc<TableCore>>,
    /// A stamp that is no smaller than those of all commits on which the result of the session's
    /// last transaction rests; or [`SEEN`] or [`NOW`]. Zero before the attempt's commit.
    pub(crate) stamp: u64,
}

/// The stamp of a transaction that has written nothing. The protocol computes the stamp from the
/// versions that the attempt has seen, and only if a call waits for the stamp.
pub(crate) const SEEN: u64 = u64::MAX;

/// The stamp of a transaction that has failed at the commit, or whose updater has panicked. Such a
/// transaction also depends on what it has seen at the commit: on any commit so far.
pub(crate) const NOW: u64 = u64::MAX - 1;

impl SessionLog {
    /// Returns the log of a new session, which only reads a view if the database `follows` another
    /// one.
    pub(crate) fn new(log: &Arc<Log>, follows: bool) -> SessionLog {
        SessionLog {
            log: log.clone(),
            acknowledge: log.acknowledge,
            outbox: log.join(),
            backlog_words_max: if follows { 0 } else { BACKLOG_WORDS_MAX },
            tables: Vec::new(),
            stamp: 0,
        }
    }

    /// Returns what the acknowledgement of the last transaction awaits, whose result rests on
    /// `stamp`.
    pub(crate) fn awaited(&self, stamp: u64) -> Awaited {
        let has_written = !matches!(self.stamp, 0 | SEEN | NOW);
        Awaited { stamp, append: if has_written { 0 } else { self.log.progress.next_append() } }
    }

    /// Returns whether the log has failed: no transaction can write any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.log.progress.has_failed()
    }

    /// Begins an attempt: waits until the session may add to its buffer. The session is not pinned,
    /// and holds no lock. Returns whether the attempt is to read the view of a database that
    /// follows another one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn begin(&mut self) -> bool {
        self.stamp = 0;
        self.outbox.backlog() >= self.backlog_words_max && self.await_logger()
    }

    #[cold]
    #[inline(never)]
    fn await_logger(&self) -> bool {
        if self.reads_view() {
            return true;
        }
        // The logger may wait for the turn of the step's transaction. The attempt will be refused.
        if !is_in_step() {
            let progress = &self.log.progress;
            progress.wait_until(|| self.outbox.backlog() < BACKLOG_WORDS_MAX || progress.is_full());
        }
        false
    }

    /// Returns whether the session's attempts read the view of a database that follows another one.
    pub(super) fn reads_view(&self) -> bool {
        self.backlog_words_max == 0
    }

    /// Lets the session's attempts write.
    pub(crate) fn admit_writes(&mut self) {
        self.backlog_words_max = BACKLOG_WORDS_MAX;
    }

    /// Returns the parts that a commit needs: the buffer, and the tables that the session knows.
    ///
    /// # Errors
    /// [`Abort::LogFailed`], [`Abort::DiskFull`], [`Abort::MemoryLimit`]: the commit must not write.
    #[inline]
    pub(crate) fn open(&mut self, values: &mut Values) -> Result<(LogTurn<'_>, Logged<'_>), Abort> {
        let SessionLog { log, outbox, tables, stamp, .. } = self;
        *stamp = 0;
        log.progress.admit()?;
        if values.count() > 0 {
            reserve(outbox, values)?;
        }
        *stamp = NOW;
        Ok((outbox.turn(), Logged { log, outbox, tables, stamp }))
    }

    /// Ends the session's log. The records in the buffer are still written.
    pub(crate) fn close(&self) {
        self.outbox.close();
    }
}

/// Makes room for the bytes of values that a commit is about to log.
#[cold]
#[inline(never)]
fn reserve(outbox: &Outbox, values: &mut Values) -> Result<(), Abort> {
    outbox.reserve(values.prepare_to_log()).map_err(|OutOfMemory| Abort::MemoryLimit)
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
    /// released its locks. Ends the turn (LG1).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn append(
        self,
        turn: LogTurn<'_>,
        (engine, values): (&Common, &Values),
        committed: Committed,
        changes: impl FnOnce(&mut Record<'_>),
    ) {
        *self.stamp = committed.stamp;
        let mut buffer = turn.into_buffer();
        let added = {
            let writer = CommitWriter::begin(&mut buffer.records);
            let nothing =
                LoggedTable { number: None, of_long: None, key_words: 0, is_packed: false };
            let mut record = Record {
                writer,
                tables: self.tables,
                engine,
                values,
                table: u32::MAX,
                logged: nothing,
                last: None,
            };
            changes(&mut record);
            record.writer.finish(committed.stamp, committed.version) as u64
        };
        buffer.use_reserved();
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
    /// The values that the commit has staged.
    values: &'a Values,
    /// The table of the change before, and how its changes are logged.
    table: u32,
    logged: LoggedTable,
    /// The row of the change before, the kind of that change, and the word behind it.
    last: Option<(RecordAt, ChangeKind, u16)>,
}

/// How changes of a table are logged.
#[derive(Clone, Copy)]
struct LoggedTable {
    /// The number of the table in the log; `None` if it is not logged, or has columns of any
    /// length.
    number: Option<u16>,
    /// The number of a table with columns of any length.
    of_long: Option<u16>,
    key_words: u8,
    /// Whether records keep their keys packed.
    is_packed: bool,
}

impl ChangeSink for Record<'_> {
    /// Adds a change, unless its table is not logged.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn add(&mut self, change: Change<'_>) {
        let Change { at, kind, first, words } = change;
        if u32::from(at.table()) != self.table {
            self.go_to(at.table());
        }
        let LoggedTable { number: Some(table), key_words, is_packed, .. } = self.logged else {
            return self.add_long(change);
        };
        let first = (at.start_in_row(key_words.into()) + first) as u16;
        let head = Head { kind, table, first, count: words.len() as u16 };
        let row = at.record();
        let before = self.last.replace((row, kind, first + head.count));
        let is_same = before.is_some_and(|(before, ..)| before == row);
        match words {
            // The units of a new row, for example.
            Words::Own(words) if before == Some((row, kind, first)) => {
                self.writer.extend_last(words);
            }
            Words::Own(words) if is_same => self.writer.change_same_row_slice(head, words),
            Words::Own(words) if !is_packed => {
                self.writer.change_slice(head, key_words, |index| row.key_word(index), words);
            }
            words => self.add_slowly((row, is_same), head, words),
        }
    }
}

impl Record<'_> {
    /// Adds a change whose words are in the row, or whose key is packed.
    #[inline(never)]
    fn add_slowly(&mut self, (row, is_same): (RecordAt, bool), head: Head, words: Words<'_>) {
        let word = |index| words.get(index);
        if is_same {
            self.writer.change_same_row(head, word);
        } else {
            let key = self.tables[self.table as usize].layout.unpacked_key(row);
            let key = key.as_slice();
            self.writer.change(head, key.len() as u8, |index| key[index], word);
        }
    }

    /// Adds a change of a table with columns of any length, unless the table is not logged: the
    /// words of such columns as zeros, and behind them the bytes of the values that the change
    /// sets. An update that repeats the word of a block has not set it.
    #[cold]
    #[inline(never)]
    fn add_long(&mut self, change: Change<'_>) {
        let LoggedTable { of_long: Some(table), key_words, .. } = self.logged else { return };
        let Change { at, kind, first, words } = change;
        let start = at.start_in_row(key_words.into());
        let core = Arc::clone(&self.tables[self.table as usize]);
        let of_unit =
            core.layout.named().iter().filter(|named| usize::from(named.unit) == at.unit());
        let places = of_unit.map(|named| usize::from(named.word));
        let places = places.filter(|place| (first..first + words.len()).contains(place));
        let is_long = |place| places.clone().any(|long| long == place);
        let count = words.len() as u16;
        let head = Head { kind, table, first: (start + first) as u16, count };
        let row = at.record();
        let before = self.last.replace((row, kind, head.first + count));
        let word = |index: usize| match is_long(first + index) {
            true => 0,
            false => words.get(index),
        };
        if before.is_some_and(|(before, ..)| before == row) {
            self.writer.change_same_row(head, word);
        } else {
            let key = core.layout.unpacked_key(row);
            let key = key.as_slice();
            self.writer.change(head, key.len() as u8, |index| key[index], word);
        }
        for place in places {
            let (word, at) = (words.get(place - first), (start + place) as u16);
            if word == long::NOTHING {
                self.writer.value(at, None);
            } else if kind != ChangeKind::Update
                || !names_value(word)
                || self.values.has_staged(word)
            {
                // The attempt is pinned (BL2).
                long::with_bytes(word, self.values, |bytes| self.writer.value(at, Some(bytes)));
            }
        }
    }

    /// Looks up how changes of a table are logged.
    #[inline(never)]
    fn go_to(&mut self, number: u16) {
        let known = self.tables.get(usize::from(number));
        if known.is_none_or(|table| table.owner.is_none()) {
            // The list has grown, or another table has the number of a dropped one.
            let tables = self.engine.tables.read().unwrap_or_else(PoisonError::into_inner);
            self.tables.clone_from(&tables);
        }
        let TableCore { log_number, layout, has_values, .. } = &*self.tables[usize::from(number)];
        self.table = number.into();
        let number_in_log = log_number.get();
        let has_long = !layout.named().is_empty() && !has_values;
        self.logged = LoggedTable {
            number: number_in_log.filter(|_| !has_long),
            of_long: number_in_log.filter(|_| has_long),
            key_words: layout.key_words() as u8,
            is_packed: layout.packs_keys(),
        };
    }
}
