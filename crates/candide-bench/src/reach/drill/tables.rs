//! The tables of the drill, and what must hold of them.
//!
//! Worker `w` runs transactions with the numbers 1, 2, 3, …. Transaction `k` sets the worker's
//! counter to `k`, draws a number from a sequence, and moves an amount from one account to another.
//! It also enters an order with some lines into a district, as in TPC-C, and delivers the oldest
//! one if there are many. So the orders of a district have numbers without gaps, each has all its
//! lines, and the district has the sum of their amounts.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use candide::{
    Abort, Database, Error, Level, Mvcc, Record, RunOptions, Sequence, Table, Tx, Whole,
};

const ACCOUNTS: u64 = 32;
/// The amount in each account at first.
const AMOUNT: i64 = 1_000;
const DISTRICTS: u64 = 4;
/// The orders of a district that are not delivered.
const ORDERS: u64 = 20;

/// The last transaction of a worker.
#[derive(Record, Clone, Copy, Hash)]
pub(super) struct Counter {
    #[key]
    worker: u64,
    last: u64,
}

/// An account, whose amount may be negative.
#[derive(Record, Clone, Copy, Hash)]
pub(super) struct Account {
    #[key]
    id: u64,
    amount: i64,
}

/// A district, with the numbers of its oldest order and of the next one.
#[derive(Record, Clone, Copy, Debug, Hash)]
pub(super) struct District {
    #[key]
    id: u64,
    oldest: u64,
    next: u64,
    amount: i64,
}

/// An order, with the number of its lines.
#[derive(Record, Clone, Copy, Hash)]
pub(super) struct Order {
    #[key]
    district: u64,
    #[key]
    number: u64,
    lines: u64,
}

/// A line of an order.
#[derive(Record, Clone, Copy, Hash)]
pub(super) struct Line {
    #[key]
    district: u64,
    #[key]
    number: u64,
    #[key]
    line: u64,
    amount: i64,
}

/// The last transaction of each worker.
pub(super) type Lasts = BTreeMap<u64, u64>;

/// The tables.
#[derive(Clone)]
pub(super) struct Tables {
    pub(super) db: Database<Mvcc>,
    counters: Table<Counter, Mvcc>,
    accounts: Table<Account, Mvcc>,
    districts: Table<District, Mvcc>,
    orders: Table<Order, Mvcc>,
    lines: Table<Line, Mvcc>,
}

/// Returns options of transactions that wait until the place has them.
pub(super) fn replicated() -> RunOptions<'static> {
    RunOptions::new().acknowledge(Level::Replicated)
}

impl Tables {
    /// Names the tables of a database. Those of a standby may not be there yet.
    pub(super) fn of(db: &Database<Mvcc>) -> Result<Tables, Error> {
        let (counters, accounts) = (db.table("counters")?, db.table("accounts")?);
        let (districts, orders) = (db.table("districts")?, db.table("orders")?);
        let lines = db.table("lines")?;
        Ok(Tables { db: db.clone(), counters, accounts, districts, orders, lines })
    }

    /// Makes the accounts and districts, in one transaction, unless they are there.
    pub(super) fn fill(&self) -> Result<(), Abort> {
        self.db.with(replicated()).run(|tx| {
            if self.accounts.contains(tx, 0)? {
                return Ok(());
            }
            for id in 0..DISTRICTS {
                self.districts.insert(tx, District { id, oldest: 1, next: 1, amount: 0 })?;
            }
            (0..ACCOUNTS)
                .try_for_each(|id| self.accounts.insert(tx, Account { id, amount: AMOUNT }))
        })
    }

    /// Runs transaction `number` of a worker. Returns the number that it has drawn when the place
    /// has the transaction.
    pub(super) fn transact(
        &self,
        numbers: &Sequence<Mvcc>,
        (worker, number): (u64, u64),
        draws: &mut fastrand::Rng,
    ) -> Result<u64, Abort> {
        let (from, to) = (draws.u64(0..ACCOUNTS), draws.u64(0..ACCOUNTS));
        let amount = draws.i64(1..100);
        let (district, lines) = (draws.u64(0..DISTRICTS), draws.u64(1..5));
        self.db.with(replicated()).run(|tx| {
            self.counters.put(tx, Counter { worker, last: number })?;
            self.accounts.update(tx, from, Account::AMOUNT.sub(amount))?;
            self.accounts.update(tx, to, Account::AMOUNT.add(amount))?;
            self.order(tx, district, lines, amount)?;
            numbers.next(tx)
        })
    }

    /// Enters an order, and delivers the oldest one if there are many.
    fn order(
        &self,
        tx: &Tx<'_, Mvcc>,
        district: u64,
        lines: u64,
        amount: i64,
    ) -> Result<(), Abort> {
        let mut row = self.districts.read(tx, district, Whole)?;
        let number = row.next;
        row.next += 1;
        self.orders.insert(tx, Order { district, number, lines })?;
        for line in 0..lines {
            row.amount += amount;
            self.lines.insert(tx, Line { district, number, line, amount })?;
        }
        if row.next - row.oldest > ORDERS {
            let number = row.oldest;
            row.oldest += 1;
            let Order { lines, .. } = self.orders.read(tx, (district, number), Whole)?;
            self.orders.delete(tx, (district, number))?;
            for line in 0..lines {
                row.amount -= self.lines.read(tx, (district, number, line), Line::AMOUNT)?;
                self.lines.delete(tx, (district, number, line))?;
            }
        }
        self.districts.put(tx, row)
    }

    /// Returns the last transaction of each worker, and a hash of all rows, if the accounts add up
    /// and the districts have their orders. A database that follows may not have the rows yet.
    pub(super) fn look(&self, tx: &Tx<'_, Mvcc>) -> Result<Result<(Lasts, u64), String>, Abort> {
        let (mut lasts, mut hash, mut sum, mut count) = (Lasts::new(), 0_u64, 0, 0);
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        self.counters.for_each(tx, Whole, |(_, row)| {
            lasts.insert(row.worker, row.last);
            hash = hash.wrapping_add(hasher.hash_one(row));
        })?;
        self.accounts.for_each(tx, Whole, |(_, row)| {
            (count, sum) = (count + 1, sum + row.amount);
            hash = hash.wrapping_add(hasher.hash_one(("account", row)));
        })?;
        let expected = if count == 0 { 0 } else { ACCOUNTS as i64 * AMOUNT };
        if sum != expected {
            return Ok(Err(format!(
                "the accounts add up to {sum}, and should add up to {expected}"
            )));
        }
        let (mut districts, mut counted) = (BTreeMap::new(), BTreeMap::<u64, District>::new());
        self.districts.for_each(tx, Whole, |(_, row)| {
            districts.insert(row.id, row);
            hash = hash.wrapping_add(hasher.hash_one(("district", row)));
        })?;
        let mut lines = BTreeMap::<(u64, u64), u64>::new();
        self.orders.for_each(tx, Whole, |(_, row)| {
            let id = row.district;
            let first = District { id, oldest: row.number, next: row.number, amount: 0 };
            let of = counted.entry(id).or_insert(first);
            (of.oldest, of.next) = (of.oldest.min(row.number), of.next.max(row.number + 1));
            lines.insert((id, row.number), row.lines);
            hash = hash.wrapping_add(hasher.hash_one(("order", row)));
        })?;
        let orders = lines.len() as u64;
        let mut strangers = 0;
        self.lines.for_each(tx, Whole, |(_, row)| {
            match lines.get_mut(&(row.district, row.number)).filter(|left| **left > 0) {
                Some(left) => *left -= 1,
                None => strangers += 1,
            }
            if let Some(of) = counted.get_mut(&row.district) {
                of.amount += row.amount;
            }
            hash = hash.wrapping_add(hasher.hash_one(("line", row)));
        })?;
        let missing: u64 = lines.values().sum();
        let numbers: u64 = districts.values().map(|row: &District| row.next - row.oldest).sum();
        let wrong = districts.values().find(|row| {
            // A district without orders has no sum.
            let empty = District { amount: 0, ..**row };
            let of = counted.get(&row.id).unwrap_or(&empty);
            (of.oldest, of.next, of.amount) != (row.oldest, row.next, row.amount)
        });
        if orders != numbers || strangers + missing > 0 || wrong.is_some() {
            return Ok(Err(format!(
                "there are {orders} orders and {numbers} numbers of orders, {missing} lines are \
                 missing and {strangers} have no order, {wrong:?} is not what its orders say"
            )));
        }
        Ok(Ok((lasts, hash)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_that_lack_something_are_noticed() {
        let db = Database::<Mvcc>::builder().build().unwrap();
        let tables = Tables::of(&db).unwrap();
        let look = || db.run(|tx| tables.look(tx)).unwrap();
        assert!(look().is_ok());
        db.run(|tx| tables.districts.insert(tx, District { id: 0, oldest: 1, next: 1, amount: 0 }))
            .unwrap();
        for amount in 1..=2 * ORDERS as i64 {
            db.run(|tx| tables.order(tx, 0, 3, amount)).unwrap();
            assert!(look().is_ok());
        }
        let line = (0, 2 * ORDERS, 1);
        let amount = db.run(|tx| tables.lines.read(tx, line, Line::AMOUNT)).unwrap();
        db.run(|tx| tables.lines.delete(tx, line)).unwrap();
        let missing = look().unwrap_err();
        assert!(missing.contains("1 lines are missing and 0 have no order"), "{missing}");
        db.run(|tx| {
            let row = Line { district: 0, number: 2 * ORDERS, line: 1, amount: amount + 1 };
            tables.lines.insert(tx, row)
        })
        .unwrap();
        assert!(look().unwrap_err().contains("is not what its orders say"));
        db.run(|tx| tables.lines.update(tx, line, Line::AMOUNT.sub(1))).unwrap();
        assert!(look().is_ok());
        db.run(|tx| tables.orders.delete(tx, (0, ORDERS + 5))).unwrap();
        assert!(look().unwrap_err().contains("3 have no order"));
    }
}
