//! Workloads whose transactions can be recorded. Only the code of this file is compiled for each
//! workload. The code is compiled once for all protocols, since the protocol is chosen at run time.

use candide::Database;
use candide::any::Erased;
use candide::history::{Batch, Recorded};
use candide::report::Stats;
use candide_workloads::{Loading, Workload};

use super::DatabaseOptions;
use crate::any_workload::{FillError, Filled, LoadedDatabase};
use crate::registry::Choice;

/// A workload of any type whose transactions can be recorded.
pub trait Recordable: Sync {
    /// Returns the workload's name.
    fn name(&self) -> String;

    /// Returns the names of the workload's tables.
    fn tables(&self) -> &'static [&'static str];

    /// Checks that all knobs are in range. The error names the knob that is not, and the values
    /// allowed.
    fn validate(&self) -> Result<(), String>;

    /// Sets up a database under `protocol` that records its history, creates the tables and fills
    /// them.
    fn fill(
        &self,
        protocol: Choice,
        options: DatabaseOptions,
        loading: &Loading<'_>,
    ) -> Result<Box<dyn RecordedSite>, FillError>;
}

/// A filled database that records the history of its transactions.
pub trait RecordedSite: LoadedDatabase {
    /// Takes the events of the transactions that have ended since the last call.
    fn take_history(&self) -> Batch;

    /// Returns the counts of all sessions together.
    fn stats(&self) -> Stats;
}

/// Returns `workload` as a trait object that can be recorded under every protocol.
pub fn recordable<W: Workload + 'static>(workload: W) -> Box<dyn Recordable> {
    Box::new(Known(workload))
}

/// The only kind of [`Recordable`].
struct Known<W>(W);

impl<W: Workload + 'static> Recordable for Known<W> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn tables(&self) -> &'static [&'static str] {
        W::TABLES
    }

    fn validate(&self) -> Result<(), String> {
        self.0.validate()
    }

    fn fill(
        &self,
        protocol: Choice,
        options: DatabaseOptions,
        loading: &Loading<'_>,
    ) -> Result<Box<dyn RecordedSite>, FillError> {
        let builder =
            Database::<Recorded<Erased>>::builder().policy(protocol.for_tables(W::TABLES).erased());
        let db = options.build(builder)?;
        let loaded = self.0.load(&db, loading)?;
        Ok(Box::new(Filled::<Recorded<Erased>, W> { db, loaded, directory: None }))
    }
}

impl<W: Workload> RecordedSite for Filled<Recorded<Erased>, W> {
    fn take_history(&self) -> Batch {
        self.db.take_history()
    }

    fn stats(&self) -> Stats {
        self.db.stats()
    }
}
