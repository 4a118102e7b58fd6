//! The transaction, and the worker that runs it.

use candide::report::Stats;
use candide::{Abort, Protocol, Session, Tx};

use super::request::Request;
use super::tables::{Account, Bank, Branch, History, Teller, blank};
use crate::hottest::probe;
use crate::replay::Replay;
use crate::workload::run_counted;
use crate::{Probe, Step, Worker};

/// The number of committed transactions, and the sum of their amounts.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) transactions: u64,
    pub(super) amount: i128,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Tally) {
        self.transactions += other.transactions;
        self.amount += other.amount;
    }
}

/// The worker that runs the transactions of one thread.
pub struct TpcBWorker<P: Protocol> {
    session: Session<P>,
    bank: Bank<P>,
    number: u64,
    requests: Replay<Request>,
    observe_balance: bool,
    tally: Tally,
}

impl<P: Protocol> TpcBWorker<P> {
    pub(super) fn new(
        session: Session<P>,
        bank: Bank<P>,
        number: u64,
        requests: Replay<Request>,
        observe_balance: bool,
    ) -> Self {
        TpcBWorker { session, bank, number, requests, observe_balance, tally: Tally::default() }
    }

    pub(super) fn into_tally(self) -> Tally {
        self.tally
    }
}

impl<P: Protocol> Worker for TpcBWorker<P> {
    fn step(&mut self) -> Result<Step, Abort> {
        let TpcBWorker { session, bank, number, requests, observe_balance, tally } = self;
        let request = requests.next()[0];
        let row = History {
            worker: *number,
            number: tally.transactions,
            account: u64::from(request.account),
            teller: u64::from(request.teller),
            branch: u64::from(request.branch),
            amount: i64::from(request.amount),
            time: tally.transactions,
            filler: blank(),
        };
        let (end, retries) = run_counted(session, |tx| bank.deposit(tx, row, *observe_balance));
        std::hint::black_box(end?);
        tally.transactions += 1;
        tally.amount += i128::from(row.amount);
        Ok(Step { kind: 0, committed: true, retries })
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }

    fn hottest(&mut self) -> Option<Box<dyn Probe + '_>> {
        probe(&mut self.session, &self.bank.branches, 0)
    }
}

impl<P: Protocol> Bank<P> {
    /// Makes the payment that `row` describes. Returns the account's balance if `observe_balance`
    /// is set.
    fn deposit(
        &self,
        tx: &Tx<'_, P>,
        row: History,
        observe_balance: bool,
    ) -> Result<Option<i64>, Abort> {
        let History { account, teller, branch, amount, .. } = row;
        let account = self.accounts.find(tx, &account)?;
        account.update(Account::BALANCE.add(amount))?;
        let balance = if observe_balance { Some(account.read(Account::BALANCE)?) } else { None };
        self.history.insert(tx, row)?;
        // All transactions write these columns, and no transaction reads them. An addition cannot
        // fail, so it may be deferred.
        self.tellers.update(tx, &teller, Teller::BALANCE.wrapping_add(amount))?;
        self.branches.update(tx, &branch, Branch::BALANCE.wrapping_add(amount))?;
        Ok(balance)
    }
}
