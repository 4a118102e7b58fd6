//! SmallBank, with the semantics of its paper (Alomari, Cahill, Fekete and Röhm, ICDE 2008). Some
//! later harnesses have other semantics, under which money is lost. Balances are in cents.

mod audit;
mod knobs;
mod request;
mod tables;
mod transactions;

use std::sync::Mutex;

use candide::{Database, Protocol, Session};

use crate::hottest::if_hot;
use crate::replay::{Replay, Stopped};
use crate::workload::{lock, require, require_theta, require_transactions, require_weights};
use crate::{Consistency, Failure, Loaded, Loading, Size, Workload, rng};
use knobs::KINDS;
pub use knobs::{Customers, SmallBank};
use request::Request;
pub use tables::{Account, Balance, Bank, Customer};
pub use transactions::SmallBankWorker;

/// The bytes of a customer in all tables.
const ACCOUNT_BYTES: u64 = 500;

impl Workload for SmallBank {
    type Loaded<P: Protocol> = SmallBankTables<P>;

    const KINDS: &'static [&'static str] = &KINDS;
    const TABLES: &'static [&'static str] = &["accounts", "customers", "savings", "checking"];

    fn name(&self) -> String {
        "smallbank".to_string()
    }

    fn keys(&self) -> u64 {
        self.accounts
    }

    fn size(&self) -> Size {
        Size::of(self.accounts, "accounts", ACCOUNT_BYTES).with_inputs::<Request>(self.transactions)
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn differences(&self) -> Vec<&'static str> {
        vec![
            "a thread repeats its inputs when they are used up, in all runs at one bank: some customers run out of money, and \
             their payments are refused",
        ]
    }

    fn hottest(&self) -> Option<&'static str> {
        match self.customers {
            Customers::Theta(theta) => if_hot("checking[0]", self.accounts, theta),
            Customers::Hotspot(size) => if_hot("checking[0]", size, 0.0),
        }
    }

    fn validate(&self) -> Result<(), String> {
        require(self.accounts >= 2, || {
            format!("accounts must be at least 2 (a payment has two ends), not {}", self.accounts)
        })?;
        match self.customers {
            Customers::Theta(theta) => require_theta(theta)?,
            Customers::Hotspot(size) => require((1..self.accounts).contains(&size), || {
                format!(
                    "the hotspot must be smaller than the {} accounts and not empty",
                    self.accounts
                )
            })?,
        }
        require_weights(&self.weights, &KINDS)?;
        require_transactions(self.transactions)
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<SmallBankTables<P>, Failure> {
        let bank = Bank::create(db, self.accounts)?;
        let seed = loading.seed;
        loading.fill(db, self.accounts, |tx, id| bank.enter(tx, id, &mut rng::stream(seed, id)))?;
        let mut money = 0;
        bank.savings.for_each_quiescent(|row| money += i128::from(row.cents))?;
        bank.checking.for_each_quiescent(|row| money += i128::from(row.cents))?;
        Ok(SmallBankTables { bank, knobs: self.clone(), seed, money: Mutex::new(money) })
    }
}

/// The filled tables of the bank.
pub struct SmallBankTables<P: Protocol> {
    /// The tables.
    pub bank: Bank<P>,
    knobs: SmallBank,
    seed: u64,
    /// The sum that should be in the bank: the loaded sum, plus the changes by committed
    /// transactions.
    money: Mutex<i128>,
}

impl<P: Protocol> Loaded<P> for SmallBankTables<P> {
    type Worker = SmallBankWorker<P>;

    fn worker_unless(
        &self,
        session: Session<P>,
        thread: usize,
        stopped: Stopped<'_>,
    ) -> SmallBankWorker<P> {
        let mut rng = rng::stream(self.seed, thread as u64);
        let requests = Request::draw_all(&self.knobs, &mut rng, stopped);
        SmallBankWorker::new(session, self.bank.clone(), Replay::new(requests, 1))
    }

    fn absorb(&self, worker: SmallBankWorker<P>) {
        *lock(&self.money) += worker.brought();
    }

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        audit::check(&self.bank, session, self.knobs.accounts, *lock(&self.money))
    }
}
