//! The tables, and their loading.

use candide::policy::Policy;
use candide::{Abort, Database, Error, Protocol, Record, Table, Tx};

use super::knobs::Vacation;
use super::task::{RESOURCE_KINDS, draw_price};
use crate::{Failure, Loading, rng};

/// The first random stream of the loader. Lower streams belong to the clients.
const FIRST_STREAM: u64 = 1 << 32;

/// A car, flight or room that can be reserved several times. The counters have a column group of
/// their own, so that a reservation does not conflict with a look at the price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(ordered)]
pub struct Resource {
    /// The number, from 1.
    #[key]
    pub id: u32,
    /// The price of a reservation.
    pub price: i64,
    /// How many are reserved.
    #[group(counters)]
    pub used: i64,
    /// How many are free.
    #[group(counters)]
    pub free: i64,
    /// How many there are.
    #[group(counters)]
    pub total: i64,
}

/// A customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(ordered)]
pub struct Customer {
    /// The number, from 1.
    #[key]
    pub id: u32,
    /// How many reservations there are of the customer, whose list they are in STAMP.
    pub bookings: i64,
}

/// A reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(ordered)]
pub struct Reservation {
    /// The customer.
    #[key]
    pub customer: u32,
    /// 0 for a car, 1 for a flight, 2 for a room.
    #[key]
    pub kind: u8,
    /// The number of the car, flight or room.
    #[key]
    pub id: u32,
    /// The price.
    pub price: i64,
}

/// All tables.
pub struct Agency<P: Protocol> {
    /// Cars, flights and rooms.
    pub resources: [Table<Resource, P>; RESOURCE_KINDS],
    /// Customers.
    pub customers: Table<Customer, P>,
    /// Reservations, by customer.
    pub reservations: Table<Reservation, P>,
}

impl<P: Protocol> Clone for Agency<P> {
    fn clone(&self) -> Self {
        Agency {
            resources: self.resources.clone(),
            customers: self.customers.clone(),
            reservations: self.reservations.clone(),
        }
    }
}

/// Returns the resource with this kind and number, as it is loaded.
pub fn loaded(knobs: &Vacation, seed: u64, kind: usize, id: u32) -> Resource {
    let number = kind as u64 * u64::from(knobs.relations) + u64::from(id);
    let mut rng = rng::stream(seed, FIRST_STREAM + number);
    let total = 100 * rng.i64(1..=5);
    Resource { id, price: i64::from(draw_price(&mut rng)), used: 0, free: total, total }
}

/// Returns all ids in the random order in which they are inserted.
pub(super) fn ids(knobs: &Vacation, seed: u64) -> Vec<u32> {
    let mut ids: Vec<u32> = (1..=knobs.relations).collect();
    rng::stream(seed, FIRST_STREAM).shuffle(&mut ids);
    ids
}

impl<P: Protocol> Agency<P> {
    /// Creates the tables.
    pub(super) fn create(db: &Database<P>) -> Result<Self, Error> {
        let [cars, flights, rooms] = ["cars", "flights", "rooms"].map(|name| db.table(name));
        let agency = Agency {
            resources: [cars?, flights?, rooms?],
            customers: db.table("customers")?,
            reservations: db.table("reservations")?,
        };
        if agency.customers.policy() == Policy::Pipelined {
            // The keys of reservations follow from prices, and from what is free.
            agency.resources.iter().try_for_each(|table| table.set_rank(1))?;
            agency.customers.set_rank(1)?;
            agency.reservations.set_rank(2)?;
        }
        Ok(agency)
    }

    /// Fills the tables.
    pub(super) fn load(
        &self,
        db: &Database<P>,
        knobs: &Vacation,
        loading: &Loading<'_>,
    ) -> Result<(), Failure> {
        let (ids, seed, relations) = (ids(knobs, loading.seed), loading.seed, knobs.relations);
        let insert = |tx: &Tx<'_, P>, key: u64| -> Result<(), Abort> {
            let (kind, place) = (key / u64::from(relations), key % u64::from(relations));
            let (kind, id) = (kind as usize, ids[place as usize]);
            match self.resources.get(kind) {
                Some(table) => table.insert(tx, loaded(knobs, seed, kind, id)),
                None => self.customers.insert(tx, Customer { id, bookings: 0 }),
            }
        };
        loading.fill(db, u64::from(relations) * (RESOURCE_KINDS as u64 + 1), insert)
    }
}
