//! Transfers of money from one account to another.

use fastrand::Rng;

use super::{Workload, sum_of_positive};
use crate::stores::{Done, Failure, Place, Session, Stopped, Write, Writing};

/// The initial balance of an account.
const INITIAL: i64 = 1000;

/// The largest amount of a transfer.
const AMOUNT_MAX: i64 = 100;

/// The workload over `accounts` accounts.
pub(crate) struct Transfer {
    pub(crate) accounts: u64,
}

/// The inputs of a transfer.
pub(crate) struct Order {
    from: u64,
    to: u64,
    amount: i64,
}

impl Workload for Transfer {
    type Value = i64;
    type Request = Order;
    const TABLES: usize = 1;

    fn name(&self) -> &'static str {
        "transfer"
    }

    fn rows(&self) -> u64 {
        self.accounts
    }

    fn initial(&self, _: usize, _: u64) -> i64 {
        INITIAL
    }

    fn draw(&self, rng: &mut Rng) -> Order {
        let from = rng.u64(..self.accounts);
        let other = rng.u64(..self.accounts - 1);
        let to = if other < from { other } else { other + 1 };
        Order { from, to, amount: rng.i64(1..=AMOUNT_MAX) }
    }

    fn carry_out<S: Session<i64>>(
        &self,
        order: &Order,
        session: &mut S,
    ) -> Result<Done<i64>, Failure> {
        let done = session.write(order)?;
        Ok(Done { output: 0, retries: done.retries })
    }

    fn examine(&self, _: usize, first: u64, balances: &[i64]) -> Result<i128, String> {
        sum_of_positive(first, balances)
    }
}

fn account(key: u64) -> Place {
    Place { table: 0, key }
}

impl Writing<i64> for Order {
    type Output = ();

    fn places(&self) -> impl Iterator<Item = Place> {
        [account(self.from), account(self.to)].into_iter()
    }

    /// Moves the amount, or the whole balance if the balance is less than the amount. Both accounts
    /// are always written.
    fn run<X: Write<i64>>(&self, tx: &mut X) -> Result<(), Stopped> {
        let moved = tx.modify(account(self.from), |balance| {
            let moved = self.amount.min(*balance);
            *balance -= moved;
            moved
        })?;
        tx.modify(account(self.to), |balance| *balance += moved)
    }
}
