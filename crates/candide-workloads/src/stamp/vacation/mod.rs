//! vacation: a travel agency, where customers reserve cars, flights and rooms.
//!
//! A task asks for some prices and reserves, for one customer, the most expensive of each kind;
//! or deletes a customer with all reservations; or adds some cars, flights and rooms, or removes
//! some. Tables are ordered, as STAMP's are.
//!
//! In the deferred [form](super::Form), a task that reserves, adds or removes reads nothing: steps
//! find prices, choose, and change the counters, and the keys of reservations follow from their
//! results. Such a task assumes that the rows are there and stay there, and that the customer has
//! no reservation of the same thing. If that is not so, the task is done eagerly. The deletion of a
//! customer reads the customer and the reservations, and leaves the counters to the commit.

mod audit;
mod contents;
mod knobs;
mod program;
mod tables;
mod task;
mod worker;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use candide::{Database, Protocol, Session};

use crate::replay::Stopped;
use crate::workload::lock;
use crate::{Consistency, Failure, Loaded, Loading, Size, Workload};
use contents::Account;
pub use contents::examine;
pub use knobs::{QUERIES_MAX, Vacation};
use program::Sequential;
pub use program::{Best, Changes, removed};
pub use tables::{Agency, Customer, Reservation, Resource, loaded};
pub use task::{ADDED, FLIGHT, Queries, Query, RESOURCE_KINDS, Task, Tasks};
use worker::Tally;
pub use worker::{Measured, VacationWorker};

/// The types of transactions.
const KINDS: [&str; 3] = ["reserve", "delete", "update"];

/// The bytes of a car, a flight, a room and a customer together.
const RELATION_BYTES: u64 = 350;
/// The bytes of the reservations that one thread inserts in a second on a fast machine.
const GROWTH: u64 = 100_000_000;

impl Workload for Vacation {
    type Loaded<P: Protocol> = VacationTables<P>;

    const KINDS: &'static [&'static str] = &KINDS;
    const TABLES: &'static [&'static str] =
        &["cars", "flights", "rooms", "customers", "reservations"];

    fn name(&self) -> String {
        "vacation".to_string()
    }

    fn keys(&self) -> u64 {
        u64::from(self.relations) * 4
    }

    fn size(&self) -> Size {
        Size::of(u64::from(self.relations), "relations", RELATION_BYTES).growing_by(GROWTH)
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn differences(&self) -> Vec<&'static str> {
        vec!["tasks are done until the time is over, on tables that fill with reservations"]
    }

    fn grows(&self) -> bool {
        true
    }

    fn validate(&self) -> Result<(), String> {
        Vacation::validate(self)
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<VacationTables<P>, Failure> {
        let agency = Agency::create(db)?;
        agency.load(db, self, loading)?;
        let (knobs, seed) = (self.clone(), loading.seed);
        let (clients, tally) = (AtomicUsize::new(1), Mutex::default());
        Ok(VacationTables { agency, knobs, seed, clients, tally })
    }
}

/// The filled tables.
pub struct VacationTables<P: Protocol> {
    /// The tables.
    pub agency: Agency<P>,
    knobs: Vacation,
    seed: u64,
    /// The number of workers of the current round.
    clients: AtomicUsize,
    tally: Mutex<Tally>,
}

impl<P: Protocol> VacationTables<P> {
    /// Returns all cars, flights and rooms as the sequential program leaves them after `tasks`
    /// tasks.
    pub fn sequential_resources(&self, tasks: u64) -> Vec<Resource> {
        let mut tables = Sequential::load(&self.knobs, self.seed);
        let mut drawn = Tasks::of_client(&self.knobs, self.seed, 0, 1);
        (0..tasks).for_each(|_| _ = tables.run(&drawn.draw()));
        tables.into_resources()
    }
}

impl<P: Protocol> Loaded<P> for VacationTables<P> {
    type Worker = VacationWorker<P>;

    fn expect_workers(&self, workers: usize) {
        self.clients.store(workers, Ordering::Relaxed);
    }

    fn worker_unless(
        &self,
        session: Session<P>,
        thread: usize,
        _: Stopped<'_>,
    ) -> VacationWorker<P> {
        let clients = self.clients.load(Ordering::Relaxed);
        let tasks = Tasks::of_client(&self.knobs, self.seed, thread, clients);
        VacationWorker::new(session, self.agency.clone(), tasks, self.knobs.form)
    }

    fn absorb(&self, worker: VacationWorker<P>) {
        lock(&self.tally).add(&worker.into_tally());
    }

    fn sequential_tps(&self, committed: u64, stopped: Stopped<'_>) -> Option<f64> {
        let tasks = lock(&self.tally).tasks;
        Measured::kept(&self.knobs, self.seed).tps(tasks.saturating_sub(committed), tasks, stopped)
    }

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        let Tally { tasks, refused, changes } = *lock(&self.tally);
        let account = Account::new(&self.knobs, self.seed, changes);
        let mut consistency = audit::check(&self.agency, session, &self.knobs, &account)?;
        if refused > 0 {
            consistency.notes.push(format!(
                "{refused} of {tasks} tasks were done eagerly, since a row came, went, or was there"
            ));
        }
        Ok(consistency)
    }
}
