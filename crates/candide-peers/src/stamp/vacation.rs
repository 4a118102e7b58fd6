//! vacation on `fast-stm`.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::{Arc, Mutex};

use candide_workloads::stamp::vacation::{
    ADDED, Best, Changes, Customer, Measured, Queries, Query, RESOURCE_KINDS, Reservation,
    Resource, Task, Tasks, Vacation, examine, loaded, removed,
};
use fast_stm::{StmClosureResult, TVar, Transaction, atomically};

use crate::timed::{Failure, Lot, Sample, drive, expect};

/// How many are in use, how many are free, and how many there are.
type Counters = (i64, i64, i64);

/// A car, flight or room.
struct Place {
    /// The price; `None` if there is no row with this number.
    price: TVar<Option<i64>>,
    counters: TVar<Counters>,
}

/// A customer's reservations, by kind and number, with their prices.
type Reservations = BTreeMap<(u8, u32), i64>;

/// The variables. Every number that can occur has some.
struct Variables {
    places: [BTreeMap<u32, Place>; RESOURCE_KINDS],
    customers: BTreeMap<u32, TVar<Option<Arc<Reservations>>>>,
}

impl Variables {
    fn new(knobs: &Vacation, seed: u64) -> Variables {
        let place = |kind, id| {
            let Resource { price, used, free, total, .. } = loaded(knobs, seed, kind, id);
            (id, Place { price: TVar::new(Some(price)), counters: TVar::new((used, free, total)) })
        };
        let ids = || 1..=knobs.relations;
        Variables {
            places: [0, 1, 2].map(|kind| ids().map(|id| place(kind, id)).collect()),
            customers: ids().map(|id| (id, TVar::new(Some(Arc::default())))).collect(),
        }
    }

    /// Does a task. Returns what it has changed, and the number of attempts before the last one.
    fn run(&self, task: &Task) -> (Changes, u64) {
        let attempts = Cell::new(0);
        let changes = atomically(|tx| {
            attempts.set(attempts.get() + 1);
            let mut changes = Changes::default();
            match task {
                Task::Reserve(customer, queries) => {
                    self.reserve(tx, *customer, queries, &mut changes)
                }
                Task::Delete(customer) => self.delete(tx, *customer, &mut changes),
                Task::Update(queries) => self.update(tx, queries, &mut changes),
            }?;
            Ok(changes)
        });
        (changes, attempts.get() - 1)
    }

    fn reserve(
        &self,
        tx: &mut Transaction,
        customer: u32,
        queries: &Queries,
        changes: &mut Changes,
    ) -> StmClosureResult<()> {
        let mut best = Best::default();
        for query in queries.iter() {
            let place = &self.places[usize::from(query.kind)][&query.id];
            if let Some(price) = tx.read(&place.price)? {
                best.consider(query, price);
            }
        }
        if best.found().next().is_none() {
            return Ok(());
        }
        let customer = &self.customers[&customer];
        let found = tx.read(customer)?;
        changes.customers += i64::from(found.is_none());
        let mut reservations = Reservations::clone(&found.unwrap_or_default());
        for (kind, price, id) in best.found() {
            let counters = &self.places[kind][&id].counters;
            let (used, free, total) = tx.read(counters)?;
            if free >= 1 && !reservations.contains_key(&(kind as u8, id)) {
                reservations.insert((kind as u8, id), price);
                tx.write(counters, (used + 1, free - 1, total))?;
                changes.reserved[kind] += 1;
            }
        }
        tx.write(customer, Some(Arc::new(reservations)))
    }

    fn delete(
        &self,
        tx: &mut Transaction,
        customer: u32,
        changes: &mut Changes,
    ) -> StmClosureResult<()> {
        let customer = &self.customers[&customer];
        let Some(reservations) = tx.read(customer)? else { return Ok(()) };
        tx.write(customer, None)?;
        changes.customers -= 1;
        let mut bill = 0;
        for (&(kind, id), price) in &*reservations {
            bill += price;
            let kind = usize::from(kind);
            let counters = &self.places[kind][&id].counters;
            let (used, free, total) = tx.read(counters)?;
            tx.write(counters, (used - 1, free + 1, total))?;
            changes.reserved[kind] -= 1;
        }
        black_box(bill);
        Ok(())
    }

    fn update(
        &self,
        tx: &mut Transaction,
        queries: &Queries,
        changes: &mut Changes,
    ) -> StmClosureResult<()> {
        for Query { kind, id, price } in queries.iter() {
            let kind = usize::from(kind);
            let Place { price: there, counters } = &self.places[kind][&id];
            let is_there = tx.read(there)?.is_some();
            let (used, free, total) = if is_there { tx.read(counters)? } else { (0, 0, 0) };
            if let Some(price) = price {
                tx.write(counters, (used, free + ADDED, total + ADDED))?;
                tx.write(there, Some(i64::from(price)))?;
                changes.rows[kind] += i64::from(!is_there);
                changes.total[kind] += ADDED;
                continue;
            }
            let removed = removed(kind, used, free, total);
            if removed == 0 {
                continue;
            }
            changes.total[kind] -= removed;
            tx.write(counters, (used, free - removed, total - removed))?;
            if removed == total {
                tx.write(there, None)?;
                changes.rows[kind] -= 1;
            }
        }
        Ok(())
    }

    /// Examines all variables after all threads have ended.
    fn examine(&self, knobs: &Vacation, seed: u64, changes: &Changes) -> Result<(), Failure> {
        let of_kind = |(kind, places): (usize, &BTreeMap<u32, Place>)| {
            let there = places.iter().filter_map(move |(&id, place)| {
                let price = place.price.read_atomic()?;
                let (used, free, total) = place.counters.read_atomic();
                Some((kind, Resource { id, price, used, free, total }))
            });
            there.collect::<Vec<_>>()
        };
        let resources = self.places.iter().enumerate().flat_map(of_kind);
        let customers = || {
            let all = self.customers.iter();
            all.filter_map(|(&id, reservations)| Some((id, reservations.read_atomic()?)))
        };
        let reservations = customers().flat_map(|(customer, reservations)| {
            let of_customer = reservations.iter().map(|(&(kind, id), &price)| Reservation {
                customer,
                kind,
                id,
                price,
            });
            of_customer.collect::<Vec<_>>()
        });
        let customers = customers().map(|(id, reservations)| {
            let bookings = reservations.len() as i64;
            Customer { id, bookings }
        });
        expect(&examine(knobs, seed, changes, resources, customers, reservations))
    }
}

/// Makes a run.
pub(crate) fn run(knobs: &Vacation, lot: Lot) -> Result<Sample, Failure> {
    let (variables, all) = (Variables::new(knobs, lot.seed), Mutex::new(Changes::default()));
    let threads = (0..lot.threads).map(|thread| {
        let (variables, all) = (&variables, &all);
        move |running: &dyn Fn() -> bool| -> Result<(u64, u64), Failure> {
            let mut tasks = Tasks::of_client(knobs, lot.seed, thread, lot.threads);
            let (mut changes, mut committed, mut retries) = (Changes::default(), 0, 0);
            while running() {
                let (changed, repeated) = variables.run(&tasks.draw());
                changes.add(&changed);
                retries += repeated;
                committed += 1;
            }
            all.lock().expect("no thread panics while counting").add(&changes);
            Ok((committed, retries))
        }
    });
    let mut sample = drive(threads, lot.duration)?;
    let changes = *all.lock().expect("no thread panics while counting");
    variables.examine(knobs, lot.seed, &changes)?;
    let tps = Measured::kept(knobs, lot.seed).tps(0, sample.committed, &|| false);
    sample.sequential_tps = tps.unwrap_or(f64::NAN);
    Ok(sample)
}
