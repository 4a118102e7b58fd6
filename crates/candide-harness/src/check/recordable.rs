//! Workloads that can be recorded. Only what is in this file is compiled for each workload and protocol that records.

use candide::history::{Batch, Recorded};
use candide::{Database, Protocol};
use candide_workloads::{Loading, Workload};

use crate::registry::{Choice, Job};
use crate::subject::{FillError, Filled, Site};

/// A workload whose transactions can be recorded, whichever it is.
pub trait Recordable: Sync {
    /// Returns its name.
    fn name(&self) -> String;

    /// Says which knob is out of range and which values it may have.
    fn validate(&self) -> Result<(), String>;

    /// Sets up a database that records what it does under a protocol, creates the tables and fills them.
    fn fill(&self, protocol: Choice, loading: &Loading<'_>) -> Result<Box<dyn RecordedSite>, FillError>;
}

/// A filled database that records what its transactions do.
pub trait RecordedSite: Site {
    /// Takes what has ended since the last call.
    fn take_history(&self) -> Batch;
}

/// Makes a workload recordable under every protocol, all of which it is compiled for.
pub fn recordable<W: Workload + 'static>(workload: W) -> Box<dyn Recordable> {
    Box::new(Known(workload))
}

/// The only kind of [`Recordable`].
struct Known<W>(W);

impl<W: Workload + 'static> Recordable for Known<W> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn validate(&self) -> Result<(), String> {
        self.0.validate()
    }

    fn fill(&self, protocol: Choice, loading: &Loading<'_>) -> Result<Box<dyn RecordedSite>, FillError> {
        protocol.run(Fill { workload: &self.0, loading })
    }
}

struct Fill<'a, W> {
    workload: &'a W,
    loading: &'a Loading<'a>,
}

impl<W: Workload + 'static> Job for Fill<'_, W> {
    type Output = Result<Box<dyn RecordedSite>, FillError>;

    fn run<P: Protocol>(self) -> Self::Output {
        let db = Database::<Recorded<P>>::builder().build()?;
        let loaded = self.workload.load(&db, self.loading)?;
        Ok(Box::new(Filled::<Recorded<P>, W> { db, loaded }))
    }
}

impl<P: Protocol, W: Workload> RecordedSite for Filled<Recorded<P>, W> {
    fn take_history(&self) -> Batch {
        self.db.take_history()
    }
}
