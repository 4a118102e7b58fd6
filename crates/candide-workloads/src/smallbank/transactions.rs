//! The six transactions, and the worker that runs them.

use candide::report::Stats;
use candide::{Abort, Protocol, Row, RunOptions, Session, Tx};

use super::request::Request;
use super::tables::{Account, Balance, Bank, Customer, name_of};
use crate::hottest::probe;
use crate::replay::Replay;
use crate::workload::run_as;
use crate::{Probe, Step, Worker};

/// The penalty for an overdraft, in cents.
const PENALTY: i64 = 100;

/// The worker that runs the transactions of one thread.
pub struct SmallBankWorker<P: Protocol> {
    session: Session<P>,
    bank: Bank<P>,
    requests: Replay<Request>,
    /// The sum that committed transactions have paid in, less the sum that they have paid out.
    brought: i128,
}

impl<P: Protocol> SmallBankWorker<P> {
    pub(super) fn new(session: Session<P>, bank: Bank<P>, requests: Replay<Request>) -> Self {
        SmallBankWorker { session, bank, requests, brought: 0 }
    }

    pub(super) fn brought(&self) -> i128 {
        self.brought
    }
}

impl<P: Protocol> Worker for SmallBankWorker<P> {
    fn step(&mut self) -> Result<Step, Abort> {
        let SmallBankWorker { session, bank, requests, brought } = self;
        let request = &requests.next()[0];
        let only_reads = matches!(request, Request::Balance { .. });
        let options = if only_reads { RunOptions::new().read_only() } else { RunOptions::new() };
        let (end, retries) = run_as(session, options, |tx| bank.carry_out(tx, request));
        let committed = match end {
            Ok(cents) => {
                *brought += i128::from(cents);
                true
            }
            Err(Refusal::NegativeDeposit | Refusal::Engine(Abort::Guard)) => false,
            Err(Refusal::Engine(abort)) => return Err(abort),
        };
        Ok(Step { kind: request.kind(), committed, retries })
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }

    fn hottest(&mut self) -> Option<Box<dyn Probe + '_>> {
        probe(&mut self.session, &self.bank.checking, 0)
    }
}

/// The reason why a transaction was refused.
enum Refusal {
    /// The deposit was negative.
    NegativeDeposit,
    /// The engine's reason. A failed guard means that the account did not hold enough money.
    Engine(Abort),
}

impl From<Abort> for Refusal {
    fn from(abort: Abort) -> Self {
        Refusal::Engine(abort)
    }
}

impl<P: Protocol> Bank<P> {
    /// Runs the transaction that `request` describes. Returns the cents that it paid in; negative
    /// if it paid out.
    fn carry_out(&self, tx: &Tx<'_, P>, request: &Request) -> Result<i64, Refusal> {
        match *request {
            Request::Amalgamate { from, to } => self.amalgamate(tx, from, to)?,
            Request::Balance { customer } => {
                let [savings, checking] = self.balances(tx, customer)?;
                std::hint::black_box(
                    savings.read(Balance::CENTS)? + checking.read(Balance::CENTS)?,
                );
            }
            Request::DepositChecking { customer, cents } => {
                if cents < 0 {
                    return Err(Refusal::NegativeDeposit);
                }
                let id = self.id_of(tx, customer)?;
                self.checking.update(tx, &id, Balance::CENTS.add(cents))?;
                return Ok(cents);
            }
            Request::SendPayment { from, to, cents } => self.send_payment(tx, from, to, cents)?,
            Request::TransactSavings { customer, cents } => {
                let id = self.id_of(tx, customer)?;
                self.savings.update(tx, &id, Balance::CENTS.add(cents).at_least(0))?;
                return Ok(cents);
            }
            Request::WriteCheck { customer, cents } => {
                return Ok(-self.write_check(tx, customer, cents)?);
            }
        }
        Ok(0)
    }

    /// Moves all of one customer's money to another's checking account.
    fn amalgamate(&self, tx: &Tx<'_, P>, from: u64, to: u64) -> Result<(), Abort> {
        self.expect_account(tx, from)?;
        self.expect_account(tx, to)?;
        let saved = self.savings.modify(tx, &from, Balance::CENTS, std::mem::take)?;
        let ready = self.checking.modify(tx, &from, Balance::CENTS, std::mem::take)?;
        self.checking.update(tx, &to, Balance::CENTS.add(saved + ready))
    }

    fn send_payment(&self, tx: &Tx<'_, P>, from: u64, to: u64, cents: i64) -> Result<(), Abort> {
        self.expect_account(tx, from)?;
        self.expect_account(tx, to)?;
        self.checking.update(tx, &from, Balance::CENTS.sub(cents).at_least(0))?;
        self.checking.update(tx, &to, Balance::CENTS.add(cents))
    }

    /// Pays a check, with a penalty if the customer's money does not cover it. Returns the sum that
    /// was paid out.
    fn write_check(&self, tx: &Tx<'_, P>, customer: u64, cents: i64) -> Result<i64, Abort> {
        let [savings, checking] = self.balances(tx, customer)?;
        let covered = savings.read(Balance::CENTS)? + checking.read(Balance::CENTS)? >= cents;
        let taken = if covered { cents } else { cents + PENALTY };
        checking.update(Balance::CENTS.sub(taken))?;
        Ok(taken)
    }

    /// Returns the savings and the checking account of a customer. The customer is looked up by
    /// name. Both accounts are prefetched, so that their cache misses overlap.
    fn balances<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        customer: u64,
    ) -> Result<[Row<'t, Balance, P>; 2], Abort> {
        let id = self.id_of(tx, customer)?;
        let savings = self.savings.find(tx, &id)?;
        savings.prefetch(Balance::CENTS);
        let checking = self.checking.find(tx, &id)?;
        checking.prefetch(Balance::CENTS);
        Ok([savings, checking])
    }

    /// Looks a customer up by name, and returns the customer's number.
    fn id_of(&self, tx: &Tx<'_, P>, customer: u64) -> Result<u64, Abort> {
        self.customers.read(tx, &name_of(customer), Customer::ID)
    }

    /// Looks a customer up by number. Returns an error if there is no such customer.
    fn expect_account(&self, tx: &Tx<'_, P>, id: u64) -> Result<(), Abort> {
        std::hint::black_box(self.accounts.read(tx, &id, Account::NAME)?);
        Ok(())
    }
}
