//! TPC-C: a company with warehouses takes orders, delivers the ordered items and receives payments.
//! The module has the five transactions of the standard and its consistency conditions. It has no
//! terminals, no thinking times of users and no durability. So the figures measured here are not
//! results of the Transaction Processing Performance Council.
//!
//! [`Tpcc::strict`] follows the standard. [`Tpcc::published`] follows the papers on engines like
//! this one, which differ from the standard in the ways that [`Workload::differences`] names.
//!
//! Dates count a worker's transactions instead of seconds, and all inputs follow from the seed. So
//! one thread leaves the same final state under every protocol.
//!
//! # Which transactions meet
//! With [`Tpcc::causes`], workers find out, for each attempt aborted by a conflict, the place of
//! the conflict and the types of transactions that the attempt met
//! ([`Worker::take_causes`](crate::Worker::take_causes)). The engine reports the place and the
//! reason. An aborted attempt *met* every attempt that overlapped with it in time and wrote the
//! same column group of the same row, whether the other attempt committed or not. If the conflict
//! was about an absent key, the aborted attempt met every overlapping attempt that inserted into
//! the same table. A transaction of one of the met types caused the conflict. If no attempt was
//! met, the cause is unknown. The three cases: The engine itself removed a deleted row or an empty
//! leaf. Or the aborted attempt yielded to an attempt that had failed too often. Or the aborted
//! attempt took so long that the overlapping attempts are no longer remembered. If an attempt has
//! several conflicts, only the first that the engine finds is reported. So if a new order finds
//! both its warehouse and its district changed, only the warehouse is reported.
//!
//! With one warehouse and with numbers of orders from outside the database, under protocols that
//! validate reads:
//!
//! | aborted, met | neither splitting nor commit-time updates | both |
//! |---|---|---|
//! | new-order, payment | the warehouse; the district and the customer, if they are the same | never |
//! | payment, payment | the warehouse; the same district or customer | the same customer, whose balance is read; locks |
//! | new-order, new-order | the same item's stock | locks |
//! | payment, delivery | the same customer | the same customer |
//! | delivery, payment | the same customer | locks |
//! | delivery, new-order | the head of the district's new orders | the same |
//! | delivery, delivery | always, hence the queue | the same |
//! | order-status, any | the customer's balance, its newest order and its lines | the same |
//! | stock-level, new-order | the district's latest lines, the stock of their items | the same |
//! | stock-level, delivery | the district's latest lines | never |
//!
//! *Locks*: a transaction that updates without reading does not conflict with the writes of others,
//! but has to wait for the lock of the row. The attempt is aborted if the wait is too long, as when
//! the lock's owner has lost the processor. A new order that rolls back reads the rows that it
//! would have updated.

mod audit;
mod condition;
mod conditions;
mod contents;
mod delivery;
mod gather;
mod input;
mod knobs;
mod loader;
mod new_order;
mod number;
mod order_status;
mod payment;
mod queues;
mod rows;
mod stock_level;
mod store;
mod tables;
mod tame;
mod text;
mod trail;
mod worker;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use candide::policy::Policy;
use candide::{Database, Protocol, Session};

use crate::hottest::if_hot;
use crate::replay::Stopped;
use crate::workload::{lock, require, require_range};
use crate::{Consistency, Failure, Loaded, Loading, Size, Workload};
use knobs::KINDS;
pub use knobs::{HistoryKeys, Homes, Mix, OrderIds, Splits, Tpcc};
use queues::Queues;
pub use rows::{
    Customer, CustomerId, CustomerOrder, DISTRICTS, DistInfo, District, DistrictId, History, Item,
    ItemId, LastName, NAMESAKES_MAX, NameKey, Namesakes, NewOrder, Order, OrderId, OrderLine,
    Stock, Warehouse, WarehouseId,
};
use store::Store;
use tables::Numbers;
pub use tables::Tables;
use trail::Trails;
use worker::Tally;
pub use worker::TpccWorker;

/// The bytes of a customer together with its loaded orders, and the bytes of a stock. A warehouse
/// of the standard takes 200 MB in all.
const CUSTOMER_BYTES: u64 = 4_500;
const STOCK_BYTES: u64 = 650;
/// The bytes of the rows that one thread inserts in a second on a fast machine.
const GROWTH: u64 = 250_000_000;

impl Workload for Tpcc {
    type Loaded<P: Protocol> = TpccTables<P>;

    const KINDS: &'static [&'static str] = &KINDS;
    const TABLES: &'static [&'static str] = &[
        "warehouses",
        "districts",
        "customers",
        "namesakes",
        "history",
        "new_orders",
        "orders",
        "customer_orders",
        "order_lines",
        "items",
        "stocks",
    ];

    fn name(&self) -> String {
        match self.mix {
            Mix::Full => "tpcc".to_string(),
            mix => format!("tpcc-{}", mix.name()),
        }
    }

    fn keys(&self) -> u64 {
        loader::keys(self)
    }

    fn size(&self) -> Size {
        let customers = u64::from(DISTRICTS) * u64::from(self.customers) * CUSTOMER_BYTES;
        let stocks = u64::from(self.items) * STOCK_BYTES;
        let growth = if self.inserts { GROWTH } else { 0 };
        Size::of(u64::from(self.warehouses), "warehouses", customers + stocks).growing_by(growth)
    }

    fn unchecked(&self) -> Option<&'static str> {
        (!self.inserts).then_some(
            "only sums of orders and payments are checked, since no rows of them are inserted",
        )
    }

    fn differences(&self) -> Vec<&'static str> {
        self.departures()
    }

    fn grows(&self) -> bool {
        self.inserts
    }

    fn hottest(&self) -> Option<&'static str> {
        if_hot("warehouses[1]", u64::from(self.warehouses), 0.0)
    }

    fn validate(&self) -> Result<(), String> {
        require(self.warehouses > 0, || "there must be at least one warehouse".to_string())?;
        let needs_rows = matches!(self.mix, Mix::Full | Mix::Three);
        require(self.inserts || !needs_rows && self.order_ids == OrderIds::District, || {
            "without inserts the mix must be two, even or new-order, and the numbers of orders the district's"
                .to_string()
        })?;
        // With fewer customers, a district would have last names without customers, or no order to
        // deliver.
        require_range("customers per district", 10..=3000, self.customers)?;
        require_range("items", 20..=1_000_000, self.items)?;
        require(self.deferred_pct.is_none() || self.delivery_queue, || {
            "with deferred transactions, deliveries must be queued for one thread".to_string()
        })?;
        let percentages = [
            ("transactions that are deferred", self.deferred_pct.unwrap_or(0)),
            ("items from other warehouses", self.remote_item_pct),
            ("payments by customers of other warehouses", self.remote_payment_pct),
            ("new orders that roll back", self.rollback_pct),
        ];
        percentages.iter().try_for_each(|(what, percentage)| {
            require(*percentage <= 100, || {
                format!("the percentage of {what} must be at most 100, not {percentage}")
            })
        })
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<TpccTables<P>, Failure> {
        let tables = Tables::create(db, self)?;
        loader::load(db, &tables, self, loading)?;
        tables.prepare(self)?;
        let store = Store {
            trails: self.causes.then(|| Arc::new(Trails::new(tables.names()))),
            tables,
            numbers: Numbers::after(self.warehouses, OrderId::from(self.customers)),
            queues: Queues::new(self.warehouses),
            knobs: self.clone(),
        };
        let (tally, workers) = (Mutex::new(Tally::new(self.warehouses)), AtomicUsize::new(1));
        // Otherwise, blind updates read, or reads of frozen columns are observed.
        let can_be_tame = db.commit_time_updates() && db.splitting() && db.properties().opaque;
        let is_pipelined = store.tables.stocks.policy() == Policy::Pipelined;
        let has_tame = can_be_tame && is_pipelined && self.deferred_pct.is_some();
        let store = Arc::new(store);
        Ok(TpccTables { store, seed: loading.seed, tally, workers, has_tame })
    }
}

/// The filled tables, and the account of the finished workers.
pub struct TpccTables<P: Protocol> {
    store: Arc<Store<P>>,
    seed: u64,
    /// The tally of all workers that have finished.
    tally: Mutex<Tally>,
    /// The number of workers in this round. This number is written between rounds, and workers read
    /// it when they start.
    workers: AtomicUsize,
    /// Whether deferred transactions are tame.
    has_tame: bool,
}

impl<P: Protocol> TpccTables<P> {
    /// Returns the tables.
    pub fn tables(&self) -> &Tables<P> {
        &self.store.tables
    }
}

impl<P: Protocol> Loaded<P> for TpccTables<P> {
    type Worker = TpccWorker<P>;

    fn expect_workers(&self, workers: usize) {
        self.workers.store(workers, Ordering::Relaxed);
    }

    fn worker_unless(
        &self,
        session: Session<P>,
        thread: usize,
        _stopped: Stopped<'_>,
    ) -> TpccWorker<P> {
        let workers = self.workers.load(Ordering::Relaxed).max(thread + 1);
        TpccWorker::new(session, self.store.clone(), self.seed, thread, workers)
    }

    fn absorb(&self, worker: TpccWorker<P>) {
        lock(&self.tally).add(worker.into_tally());
    }

    /// Executes the deliveries that are still queued, and then examines the consistency conditions.
    fn check(&self, mut session: Session<P>) -> Result<Consistency, Failure> {
        let mut tally = lock(&self.tally);
        let drained = worker::drain(&mut session, &self.store, &mut tally)?;
        let mut consistency = conditions::check(&self.store, session, &tally)?;
        if self.has_tame {
            tally.tame.check(&mut consistency);
        }
        if drained > 0 {
            consistency.notes.push(format!(
                "{drained} deliveries were still queued at the end, and made before the check"
            ));
        }
        Ok(consistency)
    }
}
