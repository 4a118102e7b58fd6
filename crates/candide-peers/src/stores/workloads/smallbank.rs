//! SmallBank, with the semantics of its paper (Alomari, Cahill, Fekete and Röhm, ICDE 2008) and the
//! scale and mix of BenchBase. Balances are in cents. Customers are given by number: the
//! benchmark's table from names to numbers is never written, and is left out here.

use fastrand::Rng;

use super::{Workload, sum_of_positive};
use crate::stores::{Done, Failure, Place, Read, Reading, Session, Stopped, Write, Writing};

/// The tables.
const SAVINGS: usize = 0;
const CHECKING: usize = 1;

/// The initial value of each balance.
const INITIAL: i64 = 10_000;

/// The amounts that customers move in BenchBase, in cents.
const DEPOSIT: i64 = 130;
const SAVING: i64 = 2020;
const CHECK: i64 = 500;
const PAYMENT: i64 = 500;

/// The penalty for an uncovered check.
const PENALTY: i64 = 1;

/// The percentage of each type, in the order of [`Request`].
const WEIGHTS: [u32; 6] = [15, 15, 15, 25, 15, 15];

/// The workload over `accounts` accounts.
pub(crate) struct SmallBank {
    pub(crate) accounts: u64,
}

/// A transaction's inputs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request {
    /// Moves all money of customer `from` to the checking account of customer `to`.
    Amalgamate { from: u64, to: u64 },
    /// Reads both balances of a customer.
    Balance { customer: u64 },
    /// Pays money into the checking account.
    DepositChecking { customer: u64, cents: i64 },
    /// Moves money between checking accounts, if the balance of `from` suffices.
    SendPayment { from: u64, to: u64, cents: i64 },
    /// Pays money into the savings account if `cents` is positive. Otherwise pays money out, if the
    /// balance suffices.
    TransactSavings { customer: u64, cents: i64 },
    /// Pays money out of the checking account, with a penalty if both balances together do not
    /// suffice.
    WriteCheck { customer: u64, cents: i64 },
}

fn savings(key: u64) -> Place {
    Place { table: SAVINGS, key }
}

fn checking(key: u64) -> Place {
    Place { table: CHECKING, key }
}

impl Workload for SmallBank {
    type Value = i64;
    type Request = Request;
    const TABLES: usize = 2;

    fn name(&self) -> &'static str {
        "smallbank"
    }

    fn rows(&self) -> u64 {
        self.accounts
    }

    fn initial(&self, _: usize, _: u64) -> i64 {
        INITIAL
    }

    fn draw(&self, rng: &mut Rng) -> Request {
        let customer = rng.u64(..self.accounts);
        let other = rng.u64(..self.accounts - 1);
        let to = if other < customer { other } else { other + 1 };
        let mut lot = rng.u32(..100);
        let kind = WEIGHTS.iter().position(|&weight| {
            let drawn = lot < weight;
            lot -= if drawn { 0 } else { weight };
            drawn
        });
        match kind {
            Some(0) => Request::Amalgamate { from: customer, to },
            Some(1) => Request::Balance { customer },
            Some(2) => Request::DepositChecking { customer, cents: DEPOSIT },
            Some(3) => Request::SendPayment { from: customer, to, cents: PAYMENT },
            // Both signs occur equally often, so that savings neither drain nor grow over a long
            // run.
            Some(4) => Request::TransactSavings {
                customer,
                cents: if rng.bool() { SAVING } else { -SAVING },
            },
            _ => Request::WriteCheck { customer, cents: CHECK },
        }
    }

    fn carry_out<S: Session<i64>>(
        &self,
        request: &Request,
        session: &mut S,
    ) -> Result<Done<i64>, Failure> {
        match *request {
            Request::Balance { customer } => {
                let done = session.read(&BalanceOf(customer))?;
                std::hint::black_box(done.output);
                Ok(Done { output: 0, retries: done.retries })
            }
            _ => session.write(request),
        }
    }

    /// Checking accounts may be overdrawn, but savings accounts may not.
    fn examine(&self, table: usize, first: u64, balances: &[i64]) -> Result<i128, String> {
        match table {
            SAVINGS => sum_of_positive(first, balances),
            _ => Ok(balances.iter().map(|&balance| i128::from(balance)).sum()),
        }
    }
}

/// Reads both balances of a customer.
struct BalanceOf(u64);

impl Reading<i64> for BalanceOf {
    type Output = i64;

    fn places(&self) -> impl Iterator<Item = Place> {
        [savings(self.0), checking(self.0)].into_iter()
    }

    fn run<X: Read<i64>>(&self, tx: &mut X) -> Result<i64, Stopped> {
        Ok(tx.get(savings(self.0))? + tx.get(checking(self.0))?)
    }
}

impl Writing<i64> for Request {
    /// The cents that were paid in.
    type Output = i64;

    fn places(&self) -> impl Iterator<Item = Place> {
        let (places, count) = match *self {
            Request::Amalgamate { from, to } => ([savings(from), checking(from), checking(to)], 3),
            Request::SendPayment { from, to, .. } => {
                ([checking(from), checking(to), checking(to)], 2)
            }
            Request::DepositChecking { customer, .. } => ([checking(customer); 3], 1),
            Request::TransactSavings { customer, .. } => ([savings(customer); 3], 1),
            Request::Balance { customer } | Request::WriteCheck { customer, .. } => {
                ([savings(customer), checking(customer), checking(customer)], 2)
            }
        };
        places.into_iter().take(count)
    }

    fn run<X: Write<i64>>(&self, tx: &mut X) -> Result<i64, Stopped> {
        match *self {
            Request::Amalgamate { from, to } => {
                let all = tx.modify(savings(from), std::mem::take)?
                    + tx.modify(checking(from), std::mem::take)?;
                tx.modify(checking(to), |balance| *balance += all)?;
                Ok(0)
            }
            Request::Balance { customer } => BalanceOf(customer).run(tx).map(|_| 0),
            Request::DepositChecking { customer, cents } => {
                tx.modify(checking(customer), |balance| *balance += cents)?;
                Ok(cents)
            }
            Request::SendPayment { from, to, cents } => {
                let balance = tx.get(checking(from))?;
                if balance >= cents {
                    tx.put(checking(from), balance - cents)?;
                    tx.modify(checking(to), |balance| *balance += cents)?;
                }
                Ok(0)
            }
            Request::TransactSavings { customer, cents } => {
                let balance = tx.get(savings(customer))?;
                if balance + cents < 0 {
                    return Ok(0);
                }
                tx.put(savings(customer), balance + cents)?;
                Ok(cents)
            }
            Request::WriteCheck { customer, cents } => {
                let saved = tx.get(savings(customer))?;
                tx.modify(checking(customer), |balance| {
                    let covered = saved + *balance >= cents;
                    let out = if covered { cents } else { cents + PENALTY };
                    *balance -= out;
                    -out
                })
            }
        }
    }
}
