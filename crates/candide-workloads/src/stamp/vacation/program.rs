//! The program: once without transactions, for one thread, and once with them, for any number.

use std::collections::BTreeMap;
use std::hint::black_box;

use candide::{Abort, Later, Prefix, Protocol, Tx};

use super::knobs::Vacation;
use super::tables::{Agency, Customer, Reservation, Resource, ids, loaded};
use super::task::{ADDED, FLIGHT, Queries, Query, RESOURCE_KINDS, Task};
use crate::stamp::choices::Form;

/// What a task has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// By how many there are more reservations, of each kind.
    pub reserved: [i64; RESOURCE_KINDS],
    /// By how many there are more cars, flights and rooms in total.
    pub total: [i64; RESOURCE_KINDS],
    /// By how many the tables of cars, flights and rooms have more rows.
    pub rows: [i64; RESOURCE_KINDS],
    /// By how many there are more customers.
    pub customers: i64,
}

impl Changes {
    /// Adds the changes of another task.
    pub fn add(&mut self, other: &Changes) {
        for kind in 0..RESOURCE_KINDS {
            self.reserved[kind] += other.reserved[kind];
            self.total[kind] += other.total[kind];
            self.rows[kind] += other.rows[kind];
        }
        self.customers += other.customers;
    }
}

/// The most expensive of each kind, with its price.
#[derive(Debug, Clone, Copy, Default)]
pub struct Best([Option<(i64, u32)>; RESOURCE_KINDS]);

impl Best {
    /// Takes what `query` asks for, at `price`, if it is the most expensive of its kind so far.
    pub fn consider(&mut self, query: Query, price: i64) {
        let best = &mut self.0[usize::from(query.kind)];
        if best.is_none_or(|(most, _)| price > most) {
            *best = Some((price, query.id));
        }
    }

    /// Returns the kind, the price and the number of each kind that was found.
    pub fn found(&self) -> impl Iterator<Item = (usize, i64, u32)> + '_ {
        let found =
            |(kind, best): (usize, &Option<(i64, u32)>)| best.map(|(price, id)| (kind, price, id));
        self.0.iter().enumerate().filter_map(found)
    }
}

/// The tables of the sequential program.
pub(super) struct Sequential {
    resources: [BTreeMap<u32, Resource>; RESOURCE_KINDS],
    /// Each customer's reservations: kind, number and price, in this order.
    customers: BTreeMap<u32, Vec<(u8, u32, i64)>>,
}

impl Sequential {
    /// Fills the tables as those of a database.
    pub(super) fn load(knobs: &Vacation, seed: u64) -> Sequential {
        let ids = ids(knobs, seed);
        let resources = [0, 1, 2].map(|kind| {
            ids.iter().map(|&id| (id, loaded(knobs, seed, kind, id))).collect::<BTreeMap<_, _>>()
        });
        Sequential { resources, customers: ids.iter().map(|&id| (id, Vec::new())).collect() }
    }

    /// Returns all cars, then all flights, then all rooms.
    pub(super) fn into_resources(self) -> Vec<Resource> {
        self.resources.into_iter().flat_map(BTreeMap::into_values).collect()
    }

    /// Does a task, without a transaction. Returns what it has changed.
    pub(super) fn run(&mut self, task: &Task) -> Changes {
        let mut changes = Changes::default();
        match task {
            Task::Reserve(customer, queries) => self.reserve(*customer, queries, &mut changes),
            Task::Delete(customer) => self.delete(*customer, &mut changes),
            Task::Update(queries) => self.update(queries, &mut changes),
        }
        changes
    }

    fn reserve(&mut self, customer: u32, queries: &Queries, changes: &mut Changes) {
        let mut best = Best::default();
        for query in queries.iter() {
            if let Some(row) = self.resources[usize::from(query.kind)].get(&query.id) {
                best.consider(query, row.price);
            }
        }
        if best.found().next().is_none() {
            return;
        }
        let customer = self.customers.entry(customer).or_insert_with(|| {
            changes.customers += 1;
            Vec::new()
        });
        for (kind, price, id) in best.found() {
            let row = self.resources[kind].get_mut(&id).expect("was found");
            let key = (kind as u8, id);
            let place = customer.binary_search_by_key(&key, |&(kind, id, _)| (kind, id));
            if row.free >= 1
                && let Err(place) = place
            {
                customer.insert(place, (key.0, id, price));
                (row.used, row.free) = (row.used + 1, row.free - 1);
                changes.reserved[kind] += 1;
            }
        }
    }

    fn delete(&mut self, customer: u32, changes: &mut Changes) {
        let Some(reservations) = self.customers.remove(&customer) else { return };
        changes.customers -= 1;
        let mut bill = 0;
        for (kind, id, price) in reservations {
            bill += price;
            let row = self.resources[usize::from(kind)].get_mut(&id).expect("is reserved");
            (row.used, row.free) = (row.used - 1, row.free + 1);
            changes.reserved[usize::from(kind)] -= 1;
        }
        black_box(bill);
    }

    fn update(&mut self, queries: &Queries, changes: &mut Changes) {
        for Query { kind, id, price } in queries.iter() {
            let kind = usize::from(kind);
            let rows = &mut self.resources[kind];
            match (rows.get_mut(&id), price.map(i64::from)) {
                (None, Some(price)) => {
                    rows.insert(id, Resource { id, price, used: 0, free: ADDED, total: ADDED });
                    changes.rows[kind] += 1;
                    changes.total[kind] += ADDED;
                }
                (Some(row), Some(price)) => {
                    (row.free, row.total, row.price) = (row.free + ADDED, row.total + ADDED, price);
                    changes.total[kind] += ADDED;
                }
                (Some(row), None) => {
                    let removed = removed(kind, row.used, row.free, row.total);
                    changes.total[kind] -= removed;
                    (row.free, row.total) = (row.free - removed, row.total - removed);
                    if removed > 0 && row.total == 0 {
                        rows.remove(&id);
                        changes.rows[kind] -= 1;
                    }
                }
                (None, None) => {}
            }
        }
    }
}

/// Returns how many are removed where there are as many in use, free and in total: a flight is
/// cancelled as a whole if it has no reservation; of cars and rooms, a fixed number is removed if
/// as many are free.
pub fn removed(kind: usize, used: i64, free: i64, total: i64) -> i64 {
    match kind {
        FLIGHT if used == 0 => total,
        FLIGHT => 0,
        _ if free >= ADDED => ADDED,
        _ => 0,
    }
}

impl<P: Protocol> Agency<P> {
    /// Does a task, whose transaction reads what it changes. Returns what it has changed.
    pub(super) fn run(&self, tx: &Tx<'_, P>, task: &Task) -> Result<Changes, Abort> {
        let mut changes = Changes::default();
        match task {
            Task::Reserve(customer, queries) => self.reserve(tx, *customer, queries, &mut changes),
            Task::Delete(customer) => self.delete(tx, *customer, Form::Eager, &mut changes),
            Task::Update(queries) => self.change(tx, queries, &mut changes),
        }?;
        Ok(changes)
    }

    /// Does a task, and leaves what it can to the commit. Only the deletion of a customer reads.
    ///
    /// # Errors
    /// An outcome if the task inserts or removes rows of cars, flights, rooms or customers, or
    /// reserves something twice: [`Abort::NotFound`], [`Abort::Duplicate`] or [`Abort::Guard`].
    pub(super) fn defer(&self, tx: &Tx<'_, P>, task: &Task) -> Result<Later<Changes>, Abort> {
        match task {
            Task::Reserve(customer, queries) => self.defer_reserve(tx, *customer, queries),
            Task::Delete(customer) => {
                let mut changes = Changes::default();
                self.delete(tx, *customer, Form::Deferred, &mut changes)?;
                Ok(Later::ready(changes))
            }
            Task::Update(queries) => self.defer_change(tx, queries),
        }
    }

    fn reserve(
        &self,
        tx: &Tx<'_, P>,
        customer: u32,
        queries: &Queries,
        changes: &mut Changes,
    ) -> Result<(), Abort> {
        let mut best = Best::default();
        for query in queries.iter() {
            let rows = &self.resources[usize::from(query.kind)];
            // STAMP looks at the free ones, too, and does not use what it sees.
            let found = rows.get(tx, query.id, (Resource::FREE, Resource::PRICE))?;
            if let Some((_, price)) = found {
                best.consider(query, price);
            }
        }
        if best.found().next().is_none() {
            return Ok(());
        }
        if self.customers.insert_if_absent(tx, Customer { id: customer, bookings: 0 })? {
            changes.customers += 1;
        }
        for (kind, price, id) in best.found() {
            let rows = &self.resources[kind];
            let reservation = Reservation { customer, kind: kind as u8, id, price };
            let (used, free) = rows.read(tx, id, (Resource::USED, Resource::FREE))?;
            if free < 1 || !self.reservations.insert_if_absent(tx, reservation)? {
                continue;
            }
            changes.reserved[kind] += 1;
            rows.update(tx, id, (Resource::USED.set(used + 1), Resource::FREE.set(free - 1)))?;
            self.customers.update(tx, customer, Customer::BOOKINGS.add(1))?;
        }
        Ok(())
    }

    /// Steps find the prices, then take the most expensive of each kind; so the commit knows the
    /// keys of the reservations.
    fn defer_reserve(
        &self,
        tx: &Tx<'_, P>,
        customer: u32,
        queries: &Queries,
    ) -> Result<Later<Changes>, Abort> {
        let is_same = |one: Query, other: Query| (one.kind, one.id) == (other.kind, other.id);
        // Of several queries for the same thing, the first counts.
        let first = |(place, query): &(usize, Query)| {
            !queries.iter().take(*place).any(|before| is_same(before, *query))
        };
        let asked = || queries.iter().enumerate().filter(first).map(|(_, query)| query);
        let mut best = Later::ready(Best::default());
        for query in asked() {
            let rows = &self.resources[usize::from(query.kind)];
            let price = rows.defer(tx, query.id, Resource::PRICE, (), |price, ()| *price)?;
            best = best.zip(&price).map(move |&(mut best, price)| {
                best.consider(query, price);
                best
            });
        }
        let mut changes = Later::ready(Changes::default());
        for query in asked() {
            let Query { kind, id, .. } = query;
            let of_kind = usize::from(kind);
            let columns = (Resource::USED, Resource::FREE);
            let take = move |(used, free): &mut (i64, i64), best: &Best| {
                let (price, best) = best.0[of_kind]?;
                if best != id || *free < 1 {
                    return None;
                }
                (*used, *free) = (*used + 1, *free - 1);
                Some(price)
            };
            let taken = self.resources[of_kind].defer(tx, id, columns, &best, take)?;
            let key = taken.map(move |taken| taken.map(|_| (customer, kind, id)));
            let row = taken.map(move |price| {
                let price = price.unwrap_or_default();
                Reservation { customer, kind, id, price }
            });
            self.reservations.defer_insert_at(tx, &key, row)?;
            changes = changes.zip(&taken).map(move |&(mut changes, taken)| {
                changes.reserved[of_kind] += i64::from(taken.is_some());
                changes
            });
        }
        let book = |bookings: &mut i64, changes: &Changes| {
            *bookings += changes.reserved.iter().sum::<i64>();
        };
        self.customers.defer(tx, customer, Customer::BOOKINGS, &changes, book)?;
        Ok(changes)
    }

    fn delete(
        &self,
        tx: &Tx<'_, P>,
        customer: u32,
        form: Form,
        changes: &mut Changes,
    ) -> Result<(), Abort> {
        if !self.customers.delete_if_present(tx, customer)? {
            return Ok(());
        }
        changes.customers -= 1;
        let mut bill = 0;
        for row in self.reservations.scan(tx, Prefix((customer,)), Reservation::PRICE) {
            let ((_, kind, id), price) = row?;
            bill += price;
            self.reservations.delete(tx, (customer, kind, id))?;
            let kind = usize::from(kind);
            changes.reserved[kind] -= 1;
            let rows = &self.resources[kind];
            match form {
                Form::Eager => {
                    let columns = (Resource::USED, Resource::FREE);
                    rows.modify(tx, id, columns, |(used, free)| {
                        (*used, *free) = (*used - 1, *free + 1)
                    })
                }
                Form::Deferred => {
                    rows.update(tx, id, (Resource::USED.sub(1), Resource::FREE.add(1)))
                }
            }?;
        }
        black_box(bill);
        Ok(())
    }

    fn change(
        &self,
        tx: &Tx<'_, P>,
        queries: &Queries,
        changes: &mut Changes,
    ) -> Result<(), Abort> {
        for Query { kind, id, price } in queries.iter() {
            let kind = usize::from(kind);
            match price {
                Some(price) => self.add(tx, kind, id, i64::from(price), changes)?,
                None => self.remove(tx, kind, id, changes)?,
            }
        }
        Ok(())
    }

    fn add(
        &self,
        tx: &Tx<'_, P>,
        kind: usize,
        id: u32,
        price: i64,
        changes: &mut Changes,
    ) -> Result<(), Abort> {
        let rows = &self.resources[kind];
        changes.total[kind] += ADDED;
        let row = Resource { id, price, used: 0, free: ADDED, total: ADDED };
        if rows.insert_if_absent(tx, row)? {
            changes.rows[kind] += 1;
            return Ok(());
        }
        let columns = (Resource::FREE, Resource::TOTAL, Resource::PRICE);
        rows.modify(tx, id, columns, |row| *row = (row.0 + ADDED, row.1 + ADDED, price))
    }

    fn remove(
        &self,
        tx: &Tx<'_, P>,
        kind: usize,
        id: u32,
        changes: &mut Changes,
    ) -> Result<(), Abort> {
        let rows = &self.resources[kind];
        let columns = (Resource::USED, Resource::FREE, Resource::TOTAL);
        let Some((used, free, total)) = rows.get(tx, id, columns)? else { return Ok(()) };
        let removed = removed(kind, used, free, total);
        if removed == 0 {
            return Ok(());
        }
        changes.total[kind] -= removed;
        if removed == total {
            changes.rows[kind] -= 1;
            return rows.delete(tx, id);
        }
        let (free, total) = (free - removed, total - removed);
        rows.update(tx, id, (Resource::FREE.set(free), Resource::TOTAL.set(total)))
    }

    /// Changes rows that are there, and removes none.
    fn defer_change(&self, tx: &Tx<'_, P>, queries: &Queries) -> Result<Later<Changes>, Abort> {
        let mut changes = Later::ready(Changes::default());
        for Query { kind, id, price } in queries.iter() {
            let kind = usize::from(kind);
            let rows = &self.resources[kind];
            if let Some(price) = price {
                let more = (Resource::FREE.add(ADDED), Resource::TOTAL.add(ADDED));
                rows.update(tx, id, (more.0, more.1, Resource::PRICE.set(i64::from(price))))?;
                changes = changes.map(move |&(mut changes)| {
                    changes.total[kind] += ADDED;
                    changes
                });
                continue;
            }
            let columns = (Resource::USED, Resource::FREE, Resource::TOTAL);
            let take = move |(used, free, total): &mut (i64, i64, i64), ()| {
                let removed = removed(kind, *used, *free, *total);
                (*free, *total) = (*free - removed, *total - removed);
                (removed, *total)
            };
            let left = rows.defer(tx, id, columns, (), take)?;
            tx.require(&left.map(|&(removed, total)| removed == 0 || total > 0))?;
            changes = changes.zip(&left).map(move |&(mut changes, (removed, _))| {
                changes.total[kind] -= removed;
                changes
            });
        }
        Ok(changes)
    }
}
