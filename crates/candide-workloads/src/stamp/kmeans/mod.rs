//! kmeans: points are assigned to the nearest of some centres, which move to the means of their
//! points, until few points change their clusters.
//!
//! Threads claim points by threes. For each point there is a transaction that adds it to its
//! centre: a centre is one row, and one operation adds the point in all dimensions. Another
//! transaction claims the next points, and at the end of each iteration every thread adds the
//! number of its points that have changed their clusters. Then the threads meet, and one of them
//! computes the new centres. When a clustering has ended, the same one begins anew.
//!
//! STAMP adds up floating-point numbers, whose sums depend on their order. Here coordinates are
//! multiples of 1/65536, and their sums are whole numbers. So every iteration must end with the
//! centres of the sequential program, whatever the number of threads.
//!
//! In the deferred [form](super::Form) no transaction reads anything: a step adds a point to its
//! centre in all dimensions, and another one advances the next point and returns where it was.

mod audit;
mod clustering;
mod findings;
mod knobs;
mod points;
mod program;
mod tables;
mod worker;

use std::sync::Arc;

use candide::{Database, Protocol, Session};

use crate::replay::Stopped;
use crate::{Consistency, Failure, Loaded, Loading, Size, Workload};
pub use knobs::Kmeans;
pub use program::{Client, Program, Store};
pub use tables::{
    AddPoint, CHANGED, CHUNK, Centre, Clusters, Counter, DIMENSIONS_MAX, Found, Job, NEXT,
};
use worker::InDatabase;
pub use worker::KmeansWorker;

/// The types of transactions.
const KINDS: [&str; 3] = ["point", "claim", "end"];

/// The bytes of a centre.
const CENTRE_BYTES: u64 = 400;

impl Workload for Kmeans {
    type Loaded<P: Protocol> = KmeansTables<P>;

    const KINDS: &'static [&'static str] = &KINDS;
    const TABLES: &'static [&'static str] = &["centres", "counters"];

    fn name(&self) -> String {
        "kmeans".to_string()
    }

    fn keys(&self) -> u64 {
        u64::from(self.clusters) + 2
    }

    fn size(&self) -> Size {
        let point = (self.dimensions as u64 + 1) * 4;
        Size::of(u64::from(self.clusters), "clusters", CENTRE_BYTES).and(self.points as u64 * point)
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn differences(&self) -> Vec<&'static str> {
        vec!["coordinates are multiples of 1/65536, and the same clustering is repeated"]
    }

    fn hottest(&self) -> Option<&'static str> {
        Some("counters[0]")
    }

    fn validate(&self) -> Result<(), String> {
        Kmeans::validate(self)
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<KmeansTables<P>, Failure> {
        let program = Program::new(self, loading.seed, loading.stopped).ok_or(Failure::Stopped)?;
        let clusters = self.clusters;
        let tables = Clusters::create(db, clusters)?;
        loading.fill(db, self.keys(), |tx, key| tables.insert(tx, key as u32, clusters))?;
        Ok(KmeansTables { tables, knobs: self.clone(), program: Arc::new(program) })
    }
}

/// The filled tables.
pub struct KmeansTables<P: Protocol> {
    /// The tables.
    pub tables: Clusters<P>,
    knobs: Kmeans,
    program: Arc<Program>,
}

impl<P: Protocol> KmeansTables<P> {
    /// Returns how many clusterings have ended.
    pub fn clusterings(&self) -> u64 {
        self.program.clusterings()
    }
}

impl<P: Protocol> Loaded<P> for KmeansTables<P> {
    type Worker = KmeansWorker<P>;

    fn worker_unless(&self, session: Session<P>, _: usize, _: Stopped<'_>) -> KmeansWorker<P> {
        let (clusters, form) = (self.tables.clone(), self.knobs.form);
        KmeansWorker(Client::join(&self.program, InDatabase { session, clusters, form }))
    }

    fn absorb(&self, worker: KmeansWorker<P>) {
        worker.0.leave();
    }

    fn sequential_tps(&self, _: u64, _: Stopped<'_>) -> Option<f64> {
        Some(self.program.sequential_tps())
    }

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        audit::check(&self.tables, session, self.knobs.clusters, &self.program)
    }
}
