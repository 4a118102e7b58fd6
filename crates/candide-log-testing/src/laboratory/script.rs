//! A random script: the operations of a program on a database.
//!
//! Commits run one after the other, each with the epoch as its stamp and the next number as its
//! version. Each belongs to a session and lies in the session's buffer until a round takes the
//! buffer. A round reads the cut, lets the epoch pass, and takes the buffers one after the other,
//! while commits of the next epoch continue: so some records of a block are above its cut, and the
//! versions in it are not in order.

use super::draws::Draws;
use super::found::{Found, open};
use super::model::{Loss, Model};
use super::plan::Plan;
use super::write::{Contents, Write, append};
use crate::disk::{CrashOptions, Fault, SimDisk};
use candide_log::format::commit::ChangeKind;
use candide_log::{LogWriter, OpenError, Store, StoreError, StoreOptions, WriteError};
use std::mem;
use std::sync::Arc;

const SESSIONS: usize = 3;
/// The number of keys of each table: few, so that rows are changed repeatedly.
const KEYS: u64 = 6;
/// The largest number of faults of a script.
const FAULTS_MAX: u64 = 2;
/// The operations within which the first fault comes.
const FAULT_WITHIN: u64 = 120;

/// A script that is running, or has run.
#[derive(Debug)]
pub(super) struct Script<'a> {
    plan: &'a Plan,
    pub(super) disk: SimDisk,
    pub(super) options: StoreOptions,
    pub(super) model: Model,
    draws: Draws,
    opened: Option<(Store, LogWriter)>,
    /// The present contents of the tables.
    rows: Contents,
    epoch: u64,
    version: u64,
    buffers: [Vec<u64>; SESSIONS],
    faults: usize,
}

impl<'a> Script<'a> {
    /// Runs the script of a seed.
    ///
    /// # Errors
    /// The failure of an operation that no fault of the disk has caused.
    pub(super) fn run(seed: u64, plan: &'a Plan) -> (Script<'a>, Result<(), String>) {
        let mut draws = Draws::new(seed);
        let segment_bytes = [12 << 10, 16 << 10, 40 << 10][draws.below(3) as usize];
        let mut script = Script {
            plan,
            disk: SimDisk::new(),
            options: StoreOptions {
                segment_bytes,
                checkpoint_log_bytes: 4 * segment_bytes,
                ..StoreOptions::default()
            },
            model: Model::new(plan.schema.row_words()),
            draws,
            opened: None,
            rows: Contents::new(),
            epoch: 1,
            version: 0,
            buffers: Default::default(),
            faults: 0,
        };
        let ended = script.steps();
        // The files are closed without a further operation.
        script.opened = None;
        (script, ended)
    }

    fn steps(&mut self) -> Result<(), String> {
        if self.draws.percent(self.plan.faults_percent) {
            self.ask_for_faults();
        }
        self.reopen()?;
        for _ in 0..self.plan.steps {
            let ended = match self.draws.below(100) {
                _ if self.model.tables() == 0 => self.add_table(),
                0..8 => self.add_table(),
                8..15 => self.checkpoint(),
                15..20 => self.reopen().map(|()| true),
                20..27 => self.log(LogWriter::confirm),
                27..30 => self.backup(),
                _ => self.round(),
            };
            if !ended? {
                self.reopen()?;
            }
        }
        Ok(())
    }

    fn ask_for_faults(&mut self) {
        let mut n = 0;
        for _ in 0..=self.draws.below(FAULTS_MAX) {
            n += 1 + self.draws.below(FAULT_WITHIN);
            let fault = match self.draws.below(5) {
                0 => Fault::Error,
                1 => Fault::ShortWrite { bytes: self.draws.below(9_000) },
                2 => Fault::StorageFull,
                _ => Fault::SyncLoses,
            };
            self.disk.fail(n, fault);
            self.faults += 1;
        }
    }

    /// Returns whether a fault has occurred by now.
    fn has_failed(&self) -> bool {
        self.disk.pending_faults() < self.faults
    }

    /// Says that an error has no reason, unless a fault has occurred.
    fn excuse(&self, error: impl ToString, what: &str) -> Result<(), String> {
        if self.has_failed() { Ok(()) } else { Err(format!("{what} fails: {}", error.to_string())) }
    }

    fn opened(&mut self) -> &mut (Store, LogWriter) {
        self.opened.as_mut().expect("the database is open between steps")
    }

    /// Has the log do something. Returns whether the database can still be written.
    fn log(
        &mut self,
        act: impl FnOnce(&mut LogWriter) -> Result<(), WriteError>,
    ) -> Result<bool, String> {
        match act(&mut self.opened().1) {
            Ok(()) | Err(WriteError::Full(_)) => Ok(true),
            Err(error) => self.excuse(error, "the log").map(|()| false),
        }
    }

    fn add_table(&mut self) -> Result<bool, String> {
        let schema = self.plan.table(self.model.tables());
        match self.opened().0.add_table(schema) {
            Ok(_) => self.model.add_table(self.disk.position()),
            // The next opening shows whether the table exists.
            Err(StoreError::Failed(error)) => {
                return self.excuse(error, "adding a table").map(|()| false);
            }
            Err(error) => self.excuse(error, "adding a table")?,
        }
        Ok(true)
    }

    fn checkpoint(&mut self) -> Result<bool, String> {
        match self.opened().0.checkpoint() {
            Ok(_) => Ok(true),
            Err(StoreError::Full { .. } | StoreError::Io { .. }) if self.has_failed() => Ok(true),
            Err(error) => self.excuse(error, "a checkpoint").map(|()| false),
        }
    }

    /// Makes a backup, and checks it after a loss of power.
    fn backup(&mut self) -> Result<bool, String> {
        let copy = SimDisk::new();
        let made = self.opened().0.backup(Arc::new(copy.clone()));
        let made = match made {
            Ok(made) => made,
            Err(error) => return self.excuse(error, "a backup").map(|()| true),
        };
        let last = copy.position();
        let few = CrashOptions { first: last, last, exhaustive: 3, ..self.plan.crashes.clone() };
        for state in copy.crash_states(&few) {
            let found = Found::recover(&state.disk(), &self.options)
                .map_err(|error| format!("a backup does not open: {error}"))?;
            if (found.generation, found.cut) != (made.generation, made.cut) {
                return Err(format!("a backup differs from its report: {made:?}"));
            }
            // The copy begins after everything that was acknowledged by now.
            let position = self.disk.position();
            self.model
                .check(&found, Loss::OfPower, position)
                .map_err(|what| format!("in a backup {what}"))?;
        }
        Ok(true)
    }

    /// Runs a transaction in a session.
    fn commit(&mut self, session: usize) {
        self.version += 1;
        let row_words = self.plan.schema.row_words() as u64;
        let count = if self.draws.below(200) == 0 { 400 } else { 1 + self.draws.below(3) };
        let mut writes = Vec::new();
        for _ in 0..count {
            let table = 1 + self.draws.below(self.model.tables() as u64) as u32;
            let key = self.draws.below(KEYS);
            let is_there = self.rows.contains_key(&(table, vec![key]));
            let (kind, first, count) = match self.draws.below(4) {
                0 if is_there => (ChangeKind::Delete, 0, 0),
                1 | 2 if is_there => {
                    let first = self.draws.below(row_words);
                    (ChangeKind::Update, first, 1 + self.draws.below(row_words - first))
                }
                // A new row is written whole, as the engine does.
                _ => (ChangeKind::Put, 0, row_words),
            };
            let words = (0..count).map(|word| self.version << 8 | word).collect();
            let write = Write { kind, table, key, first: first as u16, words };
            write.apply(&mut self.rows, row_words as usize);
            writes.push(write);
        }
        append(&mut self.buffers[session], self.epoch, self.version, &writes);
        self.model.commit(self.epoch, self.version, writes);
    }

    fn some_commits(&mut self, most: u64) {
        for _ in 0..self.draws.below(most + 1) {
            let session = self.draws.below(SESSIONS as u64) as usize;
            self.commit(session);
        }
    }

    /// Runs some transactions, and hands them to the log in a round that is made durable. Returns
    /// whether the log can still be written.
    fn round(&mut self) -> Result<bool, String> {
        self.some_commits(4);
        let cut = self.epoch;
        self.epoch += 1;
        let mut payload = Vec::new();
        for session in 0..SESSIONS {
            payload.push(mem::take(&mut self.buffers[session]));
            self.some_commits(1);
        }
        payload.retain(|buffer| !buffer.is_empty());
        let records: Vec<&[u64]> = payload.iter().map(|buffer| &buffer[..]).collect();
        // A part of the block may reach the disk even if the write fails.
        self.model.close(cut);
        match self.opened().1.write(&records, cut) {
            Ok(()) => {}
            Err(WriteError::Full(error)) => {
                // The full disk has not written the block, so the next round has these records,
                // too.
                self.buffers[0].splice(0..0, payload.concat());
                return self.excuse(error, "a write").map(|()| true);
            }
            Err(error) => return self.excuse(error, "a write").map(|()| false),
        }
        self.model.acknowledge(cut, Loss::OfProcess, self.disk.position());
        if !self.log(LogWriter::sync)? {
            return Ok(false);
        }
        self.model.acknowledge(cut, Loss::OfPower, self.disk.position());
        self.log(LogWriter::prepare)
    }

    /// Closes the database, or drops it like a killed process, and opens it again.
    fn reopen(&mut self) -> Result<(), String> {
        if let Some((_, log)) = self.opened.take()
            && self.draws.percent(50)
            && let Err(error) = log.close()
        {
            self.excuse(error, "closing")?;
        }
        let before = self.disk.position();
        let (store, log, found) = loop {
            let left = self.disk.pending_faults();
            match open(&self.disk, &self.options) {
                Ok(opened) => break opened,
                Err(OpenError::Io { .. }) if self.disk.pending_faults() < left => {}
                Err(error) => return Err(format!("reopening the database fails: {error}")),
            }
        };
        self.model
            .check(&found, Loss::OfProcess, before)
            .map_err(|what| format!("after reopening, {what}"))?;
        self.model.open(found.begun, &found, self.disk.position());
        self.rows = found.rows;
        (self.epoch, self.version) = (1, 0);
        self.buffers = Default::default();
        self.opened = Some((store, log));
        Ok(())
    }
}
