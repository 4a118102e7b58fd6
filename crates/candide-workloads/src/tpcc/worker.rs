//! The worker, which draws transactions, runs them, and counts their effects.

use std::sync::Arc;

use candide::report::{Conflict, Stats};
use candide::{Abort, Protocol, RunOptions, Session, Tx};

use super::delivery::{Delivered, Hints};
use super::input::Inputs;
use super::knobs::OrderIds;
use super::new_order::Refusal;
use super::rows::{DISTRICTS, ItemId, WarehouseId};
use super::store::Store;
use super::tables::district_index;
use super::tame::{Manner, Tame};
use super::trail::{Announcer, Tracer};
use crate::hottest::probe;
use crate::{Causes, Probe, Step, Worker, rng};

/// The transaction types, numbered as in [`super::knobs::KINDS`].
const NEW_ORDER: usize = 0;
const PAYMENT: usize = 1;
const ORDER_STATUS: usize = 2;
const DELIVERY: usize = 3;
const STOCK_LEVEL: usize = 4;
const AUDIT: usize = 5;

/// The effects of committed transactions, as counted by workers.
#[derive(Debug)]
pub(super) struct Tally {
    /// The number of orders that were entered.
    pub(super) orders: u64,
    /// The number of lines of these orders, and the number of pieces that they took out of stock.
    pub(super) lines: u64,
    pub(super) taken: u64,
    /// The number of payments.
    pub(super) payments: u64,
    /// The sum of the payments.
    pub(super) paid: i64,
    /// The number of orders that were delivered, in each district.
    pub(super) delivered: Vec<u64>,
    /// The number of audits.
    pub(super) audits: usize,
    /// The attempts of deferred transactions.
    pub(super) tame: Tame,
    /// A sentence for each condition that an audit found not to hold.
    pub(super) failures: Vec<String>,
}

impl Tally {
    pub(super) fn new(warehouses: WarehouseId) -> Self {
        let delivered = vec![0; usize::from(warehouses) * usize::from(DISTRICTS)];
        Tally {
            orders: 0,
            lines: 0,
            taken: 0,
            payments: 0,
            paid: 0,
            delivered,
            audits: 0,
            tame: Tame::default(),
            failures: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, other: Tally) {
        self.orders += other.orders;
        self.lines += other.lines;
        self.taken += other.taken;
        self.payments += other.payments;
        self.paid += other.paid;
        self.delivered.iter_mut().zip(other.delivered).for_each(|(sum, more)| *sum += more);
        self.audits += other.audits;
        self.tame.add(other.tame);
        self.failures.extend(other.failures);
    }

    fn deliver(&mut self, warehouse: WarehouseId, delivered: &Delivered) {
        let counts = &mut self.delivered[district_index(warehouse, 1)..];
        counts.iter_mut().zip(delivered).for_each(|(count, &id)| *count += u64::from(id > 0));
    }
}

/// The worker that runs the transactions of one thread.
pub struct TpccWorker<P: Protocol> {
    session: Session<P>,
    store: Arc<Store<P>>,
    inputs: Inputs,
    percentages: [u8; 5],
    /// The warehouses whose queued deliveries the worker executes, and the index of the next
    /// warehouse to check.
    owned: Vec<WarehouseId>,
    looked_at: usize,
    hints: Hints,
    /// The buffer for the items of a stock-level transaction.
    items: Vec<ItemId>,
    until_audit: u64,
    tally: Tally,
    /// The tracer of conflicts; `None` if causes were not requested.
    tracer: Option<Tracer>,
}

impl<P: Protocol> TpccWorker<P> {
    pub(super) fn new(
        session: Session<P>,
        store: Arc<Store<P>>,
        seed: u64,
        thread: usize,
        threads: usize,
    ) -> Self {
        let knobs = &store.knobs;
        TpccWorker {
            inputs: Inputs::new(rng::stream(seed, thread as u64), knobs, thread, threads),
            percentages: knobs.mix.percentages(),
            owned: (1..=knobs.warehouses).skip(thread).step_by(threads).collect(),
            looked_at: 0,
            hints: Hints::new(knobs.warehouses),
            items: Vec::new(),
            until_audit: knobs.audit_every,
            tally: Tally::new(knobs.warehouses),
            tracer: store.trails.as_ref().map(|trails| trails.tracer(thread)),
            session,
            store,
        }
    }

    pub(super) fn into_tally(self) -> Tally {
        self.tally
    }

    /// Looks at the next of the worker's warehouses, and returns it if a delivery is queued there.
    /// One call checks only one warehouse, even if the worker has several.
    fn next_queued(&mut self) -> Option<WarehouseId> {
        let warehouse = *self.owned.get(self.looked_at)?;
        self.looked_at =
            if self.looked_at + 1 == self.owned.len() { 0 } else { self.looked_at + 1 };
        self.store.queues.is_asked(warehouse).then_some(warehouse)
    }

    fn is_audit_due(&mut self) -> bool {
        if self.store.knobs.audit_every == 0 {
            return false;
        }
        self.until_audit -= 1;
        let is_due = self.until_audit == 0;
        if is_due {
            self.until_audit = self.store.knobs.audit_every;
        }
        is_due
    }

    fn new_order(&mut self) -> Result<Step, Abort> {
        let TpccWorker { session, store, inputs, tally, tracer, .. } = self;
        let announcer = Announcer::new(tracer.as_ref());
        let input = inputs.new_order(&store.knobs);
        let manner = Manner::new(inputs.is_deferred(&store.knobs));
        let drawn = match store.knobs.order_ids {
            OrderIds::Once => store.numbers.draw_order(input.warehouse, input.district),
            OrderIds::PerAttempt | OrderIds::District => 0,
        };
        let (end, retries) =
            run_as(session, announcer, NEW_ORDER, (&manner, &mut tally.tame), |tx| {
                store.new_order(tx, &input, drawn, &manner, announcer)
            });
        let committed = match end {
            Ok(total) => {
                std::hint::black_box(total);
                true
            }
            Err(Refusal::UnusedItem) => false,
            Err(Refusal::Engine(abort)) => return Err(abort),
        };
        if committed {
            tally.orders += 1;
            tally.lines += input.lines().len() as u64;
            tally.taken += input.lines().iter().map(|line| u64::from(line.quantity)).sum::<u64>();
        }
        Ok(Step { kind: NEW_ORDER, committed, retries })
    }

    fn payment(&mut self) -> Result<Step, Abort> {
        let TpccWorker { session, store, inputs, tally, tracer, .. } = self;
        let announcer = Announcer::new(tracer.as_ref());
        let input = inputs.payment(&store.knobs);
        let manner = Manner::new(inputs.is_deferred(&store.knobs));
        let number = store.numbers.draw_payment(input.customer_warehouse);
        let (end, retries) =
            run_as(session, announcer, PAYMENT, (&manner, &mut tally.tame), |tx| {
                store.payment(tx, &input, number, &manner, announcer)
            });
        let balance = end?;
        std::hint::black_box(balance.map(|balance| balance.get()).transpose()?);
        tally.payments += 1;
        tally.paid += input.amount;
        Ok(Step { kind: PAYMENT, committed: true, retries })
    }

    fn order_status(&mut self) -> Result<Step, Abort> {
        let TpccWorker { session, store, inputs, tracer, .. } = self;
        let announcer = Announcer::new(tracer.as_ref());
        let input = inputs.order_status(&store.knobs);
        let (end, retries) =
            run(session, announcer, ORDER_STATUS, |tx| store.order_status(tx, &input));
        let () = end?;
        Ok(Step { kind: ORDER_STATUS, committed: true, retries })
    }

    fn delivery(&mut self, warehouse: WarehouseId) -> Result<Step, Abort> {
        let TpccWorker { session, store, inputs, hints, tally, tracer, .. } = self;
        let announcer = Announcer::new(tracer.as_ref());
        let input = inputs.delivery(warehouse);
        let manner = Manner::new(inputs.is_deferred(&store.knobs));
        let (end, retries) =
            run_as(session, announcer, DELIVERY, (&manner, &mut tally.tame), |tx| {
                store.delivery(tx, &input, hints.of(warehouse), &manner, announcer)
            });
        let delivered = end?;
        // The hint is set only after the commit, since an aborted attempt has delivered nothing.
        if store.knobs.deferred_pct.is_some() {
            hints.advance(warehouse, &delivered);
        } else if store.knobs.delivery_hint {
            hints.remember(warehouse, &delivered);
        }
        tally.deliver(warehouse, &delivered);
        Ok(Step { kind: DELIVERY, committed: true, retries })
    }

    fn stock_level(&mut self) -> Result<Step, Abort> {
        let TpccWorker { session, store, inputs, items, tracer, .. } = self;
        let announcer = Announcer::new(tracer.as_ref());
        let input = inputs.stock_level();
        let (end, retries) =
            run(session, announcer, STOCK_LEVEL, |tx| store.stock_level(tx, &input, items));
        std::hint::black_box(end?);
        Ok(Step { kind: STOCK_LEVEL, committed: true, retries })
    }

    fn audit(&mut self) -> Result<Step, Abort> {
        let TpccWorker { session, store, inputs, tally, tracer, .. } = self;
        let announcer = Announcer::new(tracer.as_ref());
        let (warehouse, district) = (inputs.warehouse(), inputs.district());
        let (end, retries) =
            run(session, announcer, AUDIT, |tx| store.audit(tx, warehouse, district));
        tally.failures.extend(end?);
        tally.audits += 1;
        Ok(Step { kind: AUDIT, committed: true, retries })
    }
}

impl<P: Protocol> Worker for TpccWorker<P> {
    fn step(&mut self) -> Result<Step, Abort> {
        loop {
            if let Some(warehouse) = self.next_queued() {
                let step = self.delivery(warehouse)?;
                self.store.queues.done(warehouse);
                return Ok(step);
            }
            if self.is_audit_due() {
                return self.audit();
            }
            match self.inputs.kind(&self.percentages) {
                NEW_ORDER => return self.new_order(),
                PAYMENT => return self.payment(),
                ORDER_STATUS => return self.order_status(),
                STOCK_LEVEL => return self.stock_level(),
                _ => {
                    let warehouse = self.inputs.warehouse();
                    if !self.store.knobs.delivery_queue {
                        return self.delivery(warehouse);
                    }
                    self.store.queues.ask(warehouse);
                }
            }
        }
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }

    fn hottest(&mut self) -> Option<Box<dyn Probe + '_>> {
        probe(&mut self.session, &self.store.tables.warehouses, 1)
    }

    fn take_causes(&mut self) -> Option<Causes> {
        self.tracer.as_ref().map(Tracer::take_causes)
    }
}

/// Executes the deliveries that are still queued, and returns their number.
pub(super) fn drain<P: Protocol>(
    session: &mut Session<P>,
    store: &Store<P>,
    tally: &mut Tally,
) -> Result<u64, Abort> {
    // This stream belongs to no thread.
    let mut inputs = Inputs::new(rng::stream(0, u64::MAX), &store.knobs, 0, 1);
    let hints = Hints::new(store.knobs.warehouses);
    let mut drained = 0;
    for warehouse in 1..=store.knobs.warehouses {
        while store.queues.is_asked(warehouse) {
            let input = inputs.delivery(warehouse);
            let (manner, announcer) = (Manner::new(false), Announcer::new(None));
            let delivered = session
                .run(|tx| store.delivery(tx, &input, hints.of(warehouse), &manner, announcer))?;
            tally.deliver(warehouse, &delivered);
            store.queues.done(warehouse);
            drained += 1;
        }
    }
    Ok(drained)
}

/// Runs a transaction that changes rows, as [`run`] does. Counts its attempts, if it is deferred.
fn run_as<T, E: From<Abort>, P: Protocol>(
    session: &mut Session<P>,
    announcer: Announcer<'_>,
    kind: usize,
    (manner, tame): (&Manner, &mut Tame),
    body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
) -> (Result<T, E>, u64) {
    if !manner.is_deferred {
        return run(session, announcer, kind, body);
    }
    let before = session.stats().locks;
    let (end, retries) = run(session, announcer, kind, body);
    tame.note(manner, retries, &before, &session.stats().locks);
    (end, retries)
}

/// Runs a transaction of type `kind`. Returns its result and the number of its aborted attempts.
fn run<T, E: From<Abort>, P: Protocol>(
    session: &mut Session<P>,
    announcer: Announcer<'_>,
    kind: usize,
    mut body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
) -> (Result<T, E>, u64) {
    let mut attempts = 0;
    let tell = |conflict: &Conflict| announcer.aborted(conflict);
    let options =
        if announcer.is_heard() { RunOptions::new().on_conflict(&tell) } else { RunOptions::new() };
    let options = if matches!(kind, ORDER_STATUS | STOCK_LEVEL | AUDIT) {
        options.read_only()
    } else {
        options
    };
    let end = session.with(options).try_run(|tx| {
        attempts += 1;
        announcer.begin(kind);
        body(tx)
    });
    announcer.end();
    (end, attempts - 1)
}
