//! The contents of the tables, as found by one of the two ways of reading.

use std::collections::BTreeMap;

use super::knobs::Vacation;
use super::program::Changes;
use super::tables::{Customer, Reservation, Resource, loaded};
use super::task::RESOURCE_KINDS;
use crate::Consistency;

/// The names of what can be reserved.
pub(super) const NAMES: [&str; RESOURCE_KINDS] = ["cars", "flights", "rooms"];

/// A row, and the number of its reservations.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    row: Resource,
    reserved: i64,
}

/// Examines the contents of tables in any store after committed tasks have made `changes`.
pub fn examine(
    knobs: &Vacation,
    seed: u64,
    changes: &Changes,
    resources: impl IntoIterator<Item = (usize, Resource)>,
    customers: impl IntoIterator<Item = Customer>,
    reservations: impl IntoIterator<Item = Reservation>,
) -> Consistency {
    let (mut contents, mut consistency) = (Contents::default(), Consistency::default());
    resources.into_iter().for_each(|(kind, row)| contents.resource(kind, &row));
    customers.into_iter().for_each(|row| contents.customer(&row));
    reservations.into_iter().for_each(|row| contents.reservation(&row, true));
    let account = Account::new(knobs, seed, *changes);
    contents.done().settle("in the end", knobs, &account, &mut consistency);
    consistency
}

/// What was loaded, and what committed transactions have changed.
pub(super) struct Account {
    /// How many cars, flights and rooms there were in total.
    loaded: [i64; RESOURCE_KINDS],
    pub(super) changes: Changes,
}

impl Account {
    /// Returns the account of what was loaded and of `changes` since.
    pub(super) fn new(knobs: &Vacation, seed: u64, changes: Changes) -> Account {
        let total =
            |kind| (1..=knobs.relations).map(|id| loaded(knobs, seed, kind, id).total).sum();
        Account { loaded: [0, 1, 2].map(total), changes }
    }
}

/// The contents of the agency, in a form that does not depend on the order of the rows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    resources: [BTreeMap<u32, Entry>; RESOURCE_KINDS],
    /// The numbers of each customer's reservations: as the row says, and as counted.
    customers: BTreeMap<u32, [i64; 2]>,
    reservations: [i64; RESOURCE_KINDS],
    /// The sum of the prices of all reservations.
    billed: i64,
    /// The number of reservations of something or for a customer that does not exist.
    astray: u64,
    /// The last reservation in the order in which they were read.
    last: Option<(u32, u8, u32)>,
    /// The number of reservations that are not in ascending order.
    disorder: u64,
}

impl Contents {
    pub(super) fn resource(&mut self, kind: usize, row: &Resource) {
        self.resources[kind].insert(row.id, Entry { row: *row, reserved: 0 });
    }

    pub(super) fn customer(&mut self, row: &Customer) {
        self.customers.insert(row.id, [row.bookings, 0]);
    }

    /// Adds a reservation. All rows of the other tables have to be added before. `in_order` says
    /// whether reservations are read in the order of their keys.
    pub(super) fn reservation(&mut self, row: &Reservation, in_order: bool) {
        let &Reservation { customer, kind, id, price } = row;
        let key = (customer, kind, id);
        if in_order && self.last.replace(key).is_some_and(|last| last >= key) {
            self.disorder += 1;
        }
        self.billed += price;
        let kind = usize::from(kind);
        let entry = self.resources.get_mut(kind).and_then(|rows| rows.get_mut(&id));
        let (Some(entry), Some([_, count])) = (entry, self.customers.get_mut(&customer)) else {
            self.astray += 1;
            return;
        };
        entry.reserved += 1;
        *count += 1;
        self.reservations[kind] += 1;
    }

    /// Ends the reading.
    pub(super) fn done(mut self) -> Self {
        self.last = None;
        self
    }

    /// Returns the numbers of cars, flights, rooms and customers, of reservations, and the sum of
    /// their prices.
    pub(super) fn counts(&self) -> [i64; 6] {
        let [cars, flights, rooms] = self.resources.each_ref().map(|rows| rows.len() as i64);
        let reservations = self.reservations.iter().sum();
        [cars, flights, rooms, self.customers.len() as i64, reservations, self.billed]
    }

    /// Examines the contents that one way of reading found.
    pub(super) fn settle(
        &self,
        way: &str,
        knobs: &Vacation,
        account: &Account,
        consistency: &mut Consistency,
    ) {
        for (kind, name) in NAMES.into_iter().enumerate() {
            self.settle_resources(kind, name, way, knobs, account, consistency);
        }
        let (found, relations) = (self.customers.len() as i64, i64::from(knobs.relations));
        let expected = relations + account.changes.customers;
        consistency.expect(found == expected, || {
            format!("{way}: there are {found} customers where {expected} were loaded or committed")
        });
        let strangers =
            self.customers.keys().filter(|&&id| id == 0 || id > knobs.relations).count();
        consistency.expect(strangers == 0, || {
            format!("{way}: {strangers} customers have numbers beyond 1 to {relations}")
        });
        let unlike = self.customers.values().filter(|[bookings, count]| bookings != count).count();
        consistency.expect(unlike == 0, || {
            format!("{way}: {unlike} customers have another number of reservations than is counted")
        });
        consistency.expect(self.astray == 0, || {
            format!(
                "{way}: {} reservations are of or for something that does not exist",
                self.astray
            )
        });
        consistency.expect(self.disorder == 0, || {
            format!("{way}: {} reservations are out of order or occur twice", self.disorder)
        });
    }

    fn settle_resources(
        &self,
        kind: usize,
        name: &str,
        way: &str,
        knobs: &Vacation,
        account: &Account,
        consistency: &mut Consistency,
    ) {
        let rows = || self.resources[kind].values();
        let is_possible = |Resource { price, used, free, total, .. }: &Resource| {
            [price, used, free, total].iter().all(|&&number| number >= 0) && used + free == *total
        };
        let wrong = || rows().filter(|entry| !is_possible(&entry.row)).map(|entry| entry.row);
        consistency.expect(wrong().count() == 0, || {
            let (count, first) = (wrong().count(), wrong().next());
            format!("{way}: {count} {name} do not add up; the first is {first:?}")
        });
        let unlike = rows().filter(|entry| entry.row.used != entry.reserved).count();
        consistency.expect(unlike == 0, || {
            format!("{way}: {unlike} {name} have another number of reservations than is counted")
        });
        let (found, expected) = (self.reservations[kind], account.changes.reserved[kind]);
        consistency.expect(found == expected, || {
            format!(
                "{way}: there are {found} reservations of {name} where {expected} were committed"
            )
        });
        let (found, loaded) = (rows().count() as i64, i64::from(knobs.relations));
        let expected = loaded + account.changes.rows[kind];
        consistency.expect(found == expected, || {
            format!("{way}: there are {found} {name} where {expected} were loaded or committed")
        });
        let total: i64 = rows().map(|entry| entry.row.total).sum();
        let expected = account.loaded[kind] + account.changes.total[kind];
        consistency.expect(total == expected, || {
            format!("{way}: {name} add up to {total} where {expected} were loaded or committed")
        });
    }
}
