//! TPC-B: a bank's tellers move money in and out of accounts, one small update after another. The
//! module has the transaction and the consistency conditions of the standard (revision 2.0),
//! without terminals and durability. So the figures measured here are not results of the
//! Transaction Processing Performance Council.
//!
//! [`TpcB::strict`] follows the standard. [`TpcB::published`] follows the measurements of FOEDUS
//! (SIGMOD 2015), which differ in the ways that [`Workload::differences`] names. The standard's
//! history has no key. Here the key is the worker and the number of the worker's transaction, so
//! each worker inserts at a separate place.

mod audit;
mod contents;
mod knobs;
mod request;
mod tables;
mod worker;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use candide::{Database, Protocol, Session};

use crate::hottest::if_hot;
use crate::replay::{Replay, Stopped};
use crate::workload::{lock, require, require_transactions};
use crate::{Consistency, Failure, Loaded, Loading, Size, Workload, rng};
use knobs::ACCOUNTS;
pub use knobs::TpcB;
use request::Request;
pub use tables::{Account, Bank, Branch, History, TELLERS, Teller};
use worker::Tally;
pub use worker::TpcBWorker;

/// The only transaction type.
const KINDS: [&str; 1] = ["deposit"];

/// The bytes of an account.
const ACCOUNT_BYTES: u64 = 200;
/// The bytes of the rows that one thread inserts in a second on a fast machine.
const GROWTH: u64 = 250_000_000;

impl Workload for TpcB {
    type Loaded<P: Protocol> = TpcBTables<P>;

    const KINDS: &'static [&'static str] = &KINDS;
    const TABLES: &'static [&'static str] = &["branches", "tellers", "accounts", "history"];

    fn name(&self) -> String {
        "tpcb".to_string()
    }

    fn keys(&self) -> u64 {
        self.branches + self.accounts_in_all()
    }

    fn size(&self) -> Size {
        Size::of(self.accounts_in_all(), "accounts", ACCOUNT_BYTES)
            .with_inputs::<Request>(self.transactions)
            .growing_by(GROWTH)
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn differences(&self) -> Vec<&'static str> {
        let differences = [
            (
                self.account_first,
                "tellers follow from accounts, where TPC-B draws them and 15 % come from other branches",
            ),
            (
                !self.account_first && self.remote_pct != 15,
                "the share of customers at tellers of other branches is not the 15 % of TPC-B",
            ),
            (!self.observe_balance, "the account's balance is not returned"),
            (self.accounts < ACCOUNTS, "there are fewer accounts to a branch than TPC-B has"),
        ];
        differences.into_iter().filter(|(differs, _)| *differs).map(|(_, how)| how).collect()
    }

    fn grows(&self) -> bool {
        true
    }

    fn hottest(&self) -> Option<&'static str> {
        if_hot("branches[0]", self.branches, 0.0)
    }

    fn validate(&self) -> Result<(), String> {
        let most = u64::from(u32::MAX);
        require(self.branches > 0, || "there must be at least one branch".to_string())?;
        require(self.accounts > 0 && self.accounts.is_multiple_of(TELLERS), || {
            format!(
                "accounts of a branch must be a multiple of its {TELLERS} tellers, not {}",
                self.accounts
            )
        })?;
        require(
            self.branches.checked_mul(self.accounts).is_some_and(|accounts| accounts <= most),
            || format!("branches times accounts must be at most {most}"),
        )?;
        require(self.remote_pct <= 100, || {
            format!(
                "the percentage of customers of other branches must be at most 100, not {}",
                self.remote_pct
            )
        })?;
        require_transactions(self.transactions)
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<TpcBTables<P>, Failure> {
        let bank = Bank::create(db, self)?;
        loading.fill(db, self.branches, |tx, id| bank.open_branch(tx, id))?;
        loading.fill(db, self.accounts_in_all(), |tx, id| {
            bank.open_account(tx, id, id / self.accounts)
        })?;
        let (tally, workers) = (Mutex::default(), AtomicU64::new(0));
        Ok(TpcBTables { bank, knobs: self.clone(), seed: loading.seed, tally, workers })
    }
}

/// The filled tables of the bank.
pub struct TpcBTables<P: Protocol> {
    /// The tables.
    pub bank: Bank<P>,
    knobs: TpcB,
    seed: u64,
    tally: Mutex<Tally>,
    /// The number of workers so far. Each worker writes its history under a different number.
    workers: AtomicU64,
}

impl<P: Protocol> Loaded<P> for TpcBTables<P> {
    type Worker = TpcBWorker<P>;

    fn worker_unless(
        &self,
        session: Session<P>,
        thread: usize,
        stopped: Stopped<'_>,
    ) -> TpcBWorker<P> {
        let requests =
            Request::draw_all(&self.knobs, &mut rng::stream(self.seed, thread as u64), stopped);
        let number = self.workers.fetch_add(1, Ordering::Relaxed);
        let observe_balance = self.knobs.observe_balance;
        TpcBWorker::new(
            session,
            self.bank.clone(),
            number,
            Replay::new(requests, 1),
            observe_balance,
        )
    }

    fn absorb(&self, worker: TpcBWorker<P>) {
        lock(&self.tally).add(&worker.into_tally());
    }

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        let workers = self.workers.load(Ordering::Relaxed);
        audit::check(&self.bank, session, &self.knobs, workers, &lock(&self.tally))
    }
}
