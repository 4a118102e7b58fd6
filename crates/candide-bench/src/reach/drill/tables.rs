//! The tables of the drill, and what must hold of them.
//!
//! Worker `w` runs transactions with the numbers 1, 2, 3, …. Transaction `k` sets the worker's
//! counter to `k`, draws a number from a sequence, and moves an amount from one account to another.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use candide::{
    Abort, Database, Error, Level, Mvcc, Record, RunOptions, Sequence, Table, Tx, Whole,
};

const ACCOUNTS: u64 = 32;
/// The amount in each account at first.
const AMOUNT: i64 = 1_000;

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

/// The last transaction of each worker.
pub(super) type Lasts = BTreeMap<u64, u64>;

/// The tables.
#[derive(Clone)]
pub(super) struct Tables {
    pub(super) db: Database<Mvcc>,
    counters: Table<Counter, Mvcc>,
    accounts: Table<Account, Mvcc>,
}

/// Returns options of transactions that wait until the place has them.
pub(super) fn replicated() -> RunOptions<'static> {
    RunOptions::new().acknowledge(Level::Replicated)
}

impl Tables {
    /// Names the tables of a database. Those of a standby may not be there yet.
    pub(super) fn of(db: &Database<Mvcc>) -> Result<Tables, Error> {
        let (counters, accounts) = (db.table("counters")?, db.table("accounts")?);
        Ok(Tables { db: db.clone(), counters, accounts })
    }

    /// Makes the accounts, in one transaction, unless they are there.
    pub(super) fn fill(&self) -> Result<(), Abort> {
        self.db.with(replicated()).run(|tx| {
            if self.accounts.contains(tx, 0)? {
                return Ok(());
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
        self.db.with(replicated()).run(|tx| {
            self.counters.put(tx, Counter { worker, last: number })?;
            self.accounts.update(tx, from, Account::AMOUNT.sub(amount))?;
            self.accounts.update(tx, to, Account::AMOUNT.add(amount))?;
            numbers.next(tx)
        })
    }

    /// Returns the last transaction of each worker, and a hash of all rows, if the accounts add up.
    /// A database that follows may not have the accounts yet.
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
        Ok(Ok((lasts, hash)))
    }
}
