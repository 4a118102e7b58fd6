//! Recovering a state that a crash has left, and checking it.

use super::draws::Draws;
use super::found::{Found, open};
use super::model::Loss;
use super::place::Place;
use super::plan::Plan;
use super::script::Script;
use super::write::{Contents, Write, append};
use crate::disk::{CrashOptions, CrashState, SimDisk};
use candide_log::format::commit::ChangeKind;
use candide_log::{OpenError, TableSchema};
use std::ops::AddAssign;

/// An engine above the store.
pub trait WholeEngine: Sync {
    /// Opens the database on a disk, and returns its rows. `tables` are the tables of the files.
    ///
    /// # Errors
    /// The error describes the fault, such as an index that differs from its table.
    fn rows(&self, disk: SimDisk, tables: &[TableSchema]) -> Result<Contents, String>;
}

/// The numbers of judged states.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// The scripts.
    pub scripts: u64,
    /// The states that losses of power could leave.
    pub crashes: u64,
    /// The states that ends of the process could leave.
    pub kills: u64,
    /// The states that losses of power could leave during recoveries, or after them.
    pub recoveries: u64,
    /// The states that the whole engine opened.
    pub engines: u64,
}

impl Counts {
    /// Returns the number of all states. The states that the whole engine opened are among the
    /// others.
    pub fn states(&self) -> u64 {
        self.crashes + self.kills + self.recoveries
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.scripts += other.scripts;
        self.crashes += other.crashes;
        self.kills += other.kills;
        self.recoveries += other.recoveries;
        self.engines += other.engines;
    }
}

/// The judge of the states that crashes of one script can leave.
pub(super) struct Judge<'a> {
    script: &'a Script<'a>,
    plan: &'a Plan,
    engine: Option<&'a dyn WholeEngine>,
    draws: Draws,
    counts: Counts,
}

/// A state that is wrong, and the description of the error.
pub(super) type Wrong = (Place, String);

impl<'a> Judge<'a> {
    pub(super) fn new(
        script: &'a Script<'a>,
        plan: &'a Plan,
        engine: Option<&'a dyn WholeEngine>,
        seed: u64,
    ) -> Judge<'a> {
        Judge { script, plan, engine, draws: Draws::new(!seed), counts: Counts::default() }
    }

    /// Judges all states. Returns their number.
    pub(super) fn all(mut self) -> Result<Counts, Box<Wrong>> {
        let last = self.script.disk.position();
        for position in 0..=last {
            self.killed(position)?;
        }
        for state in self.script.disk.crash_states(&self.plan.crashes) {
            self.crashed(&state)?;
        }
        self.counts.scripts = 1;
        Ok(self.counts)
    }

    /// Judges the state that a crash of the machine has left.
    pub(super) fn crashed(&mut self, state: &CrashState) -> Result<(), Box<Wrong>> {
        let id = state.id();
        self.state(state.disk(), Loss::OfPower, id.position)
            .map_err(|what| Box::new((Place::Crash(id), what)))
    }

    /// Judges the state that the end of the process has left, after this number of operations.
    pub(super) fn killed(&mut self, position: usize) -> Result<(), Box<Wrong>> {
        self.state(self.script.disk.at(position), Loss::OfProcess, position)
            .map_err(|what| Box::new((Place::Killed(position), what)))
    }

    fn state(&mut self, disk: SimDisk, loss: Loss, position: usize) -> Result<(), String> {
        match loss {
            Loss::OfProcess => self.counts.kills += 1,
            Loss::OfPower => self.counts.crashes += 1,
        }
        let wants_engine = self.engine.is_some() && self.draws.share(self.plan.engine_share);
        let begin = disk.position();
        // The engine opens the same state as `Rows` does.
        let untouched = wants_engine.then(|| disk.at(begin));
        let found =
            self.recover(&disk).map_err(|error| format!("the database does not open: {error}"))?;
        self.script.model.check(&found, loss, position)?;
        let mut tables = found.tables.iter().enumerate();
        if let Some((_, table)) = tables.find(|(index, table)| **table != self.plan.table(*index)) {
            return Err(format!("no such table was added: {table:?}"));
        }
        let again = self.recover(&disk).map_err(|error| format!("opened twice: {error}"))?;
        if !found.is_same(&again) {
            return Err(differ("at the second opening", &found, &again));
        }
        if let (Some(engine), Some(untouched)) = (self.engine, untouched) {
            self.counts.engines += 1;
            let rows = engine.rows(untouched, &found.tables)?;
            if rows != found.rows {
                return Err(format!(
                    "the engine recovers\n{rows:?}\nand the files contain\n{:?}",
                    found.rows
                ));
            }
        }
        if self.draws.share(self.plan.recovery_share) {
            self.crash_recovery(&disk, begin, &found, position)?;
        }
        if self.draws.share(self.plan.recovery_share) {
            self.go_on(&disk, &found)?;
        }
        Ok(())
    }

    fn recover(&self, disk: &SimDisk) -> Result<Found, OpenError> {
        Found::recover(disk, &self.script.options)
    }

    /// Judges crashes during the two recoveries, which began after `begin` operations. `position`
    /// is the position of the first crash.
    fn crash_recovery(
        &mut self,
        disk: &SimDisk,
        begin: usize,
        found: &Found,
        position: usize,
    ) -> Result<(), String> {
        let end = disk.position();
        for state in disk.crash_states(&self.few(begin + 1)) {
            self.counts.recoveries += 1;
            let id = state.id();
            let after = self
                .recover(&state.disk())
                .map_err(|error| format!("after a crash in recovery at {id}: {error}"))?;
            // Until the recovery has ended, the changes that the end of a process has left may get
            // lost.
            if begin > 0 && id.position < end {
                self.script
                    .model
                    .check(&after, Loss::OfPower, position)
                    .map_err(|what| format!("after a crash in recovery at {id}: {what}"))?;
            } else if !found.is_same(&after) {
                let when = format!("after a crash in recovery at {id}");
                return Err(differ(&when, found, &after));
            }
        }
        Ok(())
    }

    /// Opens the database, commits once, and judges the crashes around that.
    fn go_on(&mut self, disk: &SimDisk, found: &Found) -> Result<(), String> {
        let failed = |error: String| format!("the opened database cannot be written: {error}");
        let (store, mut log, _) =
            open(disk, &self.script.options).map_err(|error| failed(error.to_string()))?;
        let mut tables = found.tables.clone();
        if tables.is_empty() {
            let added = store.add_table(self.plan.table(0));
            added.map_err(|error| failed(error.to_string()))?;
            tables = store.tables();
        }
        let table = 1 + self.draws.below(tables.len() as u64) as u32;
        let row_words = self.plan.schema.row_words();
        let words = vec![u64::MAX; row_words];
        let write = Write { kind: ChangeKind::Put, table, key: u64::MAX, first: 0, words };
        let mut record = Vec::new();
        append(&mut record, 1, 1, std::slice::from_ref(&write));
        let before = disk.position();
        let written = log.write(&[&record], 1).and_then(|()| log.sync());
        written.map_err(|error| failed(error.to_string()))?;
        let acknowledged = disk.position();
        drop((store, log));
        let mut rows = found.rows.clone();
        write.apply(&mut rows, row_words);
        for state in disk.crash_states(&self.few(before)) {
            self.counts.recoveries += 1;
            let id = state.id();
            let after = self
                .recover(&state.disk())
                .map_err(|error| format!("after one more commit and a crash at {id}: {error}"))?;
            let has_it = after.rows == rows;
            let is_as_before = id.position < acknowledged && after.rows == found.rows;
            if !has_it && !is_as_before {
                let when = format!("after one more commit and a crash at {id}");
                return Err(differ(&when, found, &after));
            }
        }
        Ok(())
    }

    /// Returns which crashes of a recovery are judged: few, and from `first` on.
    fn few(&self, first: usize) -> CrashOptions {
        CrashOptions { first, exhaustive: 3, pieces: 3, samples: 2, ..self.plan.crashes.clone() }
    }
}

fn differ(when: &str, found: &Found, after: &Found) -> String {
    format!(
        "{when}, the database has cut {} of generation {}\n{:?}\nand had before cut {} of generation {}\n{:?}",
        after.cut, after.generation, after.rows, found.cut, found.generation, found.rows
    )
}

impl std::fmt::Debug for Judge<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judge").field("counts", &self.counts).finish_non_exhaustive()
    }
}
