//! The worker that runs the transactions in a database.

use candide::report::Stats;
use candide::{Abort, Protocol, Session};

use super::program::{Client, Store};
use super::tables::{Clusters, Found, Job, NEXT};
use crate::stamp::choices::Form;
use crate::workload::run_counted;
use crate::{Probe, Step, Worker, hottest};

/// The program's tables in a database, and a session.
pub(super) struct InDatabase<P: Protocol> {
    pub(super) session: Session<P>,
    pub(super) clusters: Clusters<P>,
    pub(super) form: Form,
}

impl<P: Protocol> Store for InDatabase<P> {
    fn run(&mut self, job: Job<'_>) -> Result<(u64, u64), Abort> {
        let InDatabase { session, clusters, form } = self;
        match form {
            Form::Eager => {
                let (end, retries) = run_counted(session, |tx| clusters.run(tx, job));
                Ok((end?, retries))
            }
            Form::Deferred => {
                let mut attempts = 0;
                let first = session.run_deferred(|tx| {
                    attempts += 1;
                    clusters.defer(tx, job)
                })?;
                Ok((first.unwrap_or(0), attempts - 1))
            }
        }
    }

    fn exchange(&mut self, clusters: u32, next: u64) -> Result<Found, Abort> {
        self.clusters.exchange(&mut self.session, clusters, next)
    }
}

/// The worker that runs the transactions of one thread.
pub struct KmeansWorker<P: Protocol>(pub(super) Client<InDatabase<P>>);

impl<P: Protocol> Worker for KmeansWorker<P> {
    fn step(&mut self) -> Result<Step, Abort> {
        self.0.step()
    }

    fn stats(&self) -> Stats {
        self.0.store.session.stats()
    }

    fn hottest(&mut self) -> Option<Box<dyn Probe + '_>> {
        let InDatabase { session, clusters, .. } = &mut self.0.store;
        hottest::probe(session, &clusters.counters, NEXT)
    }
}
