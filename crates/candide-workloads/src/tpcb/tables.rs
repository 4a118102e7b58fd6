//! The tables, with rows as long as the standard requires. In each row with a balance, the balance
//! has its own column group.

use candide::{Abort, Bytes, Database, Error, Protocol, Record, Table, TableOptions, Tx};

use super::knobs::TpcB;

/// The number of tellers of a branch.
pub const TELLERS: u64 = 10;

/// A branch.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Branch {
    /// The branch's number.
    #[key]
    pub id: u64,
    /// The sum paid in, less the sum paid out.
    #[group(money)]
    pub balance: i64,
    /// Filler up to the standard's length.
    pub filler: Bytes<84>,
}

/// A teller of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Teller {
    /// The teller's number.
    #[key]
    pub id: u64,
    /// The teller's branch.
    pub branch: u64,
    /// The sum paid in, less the sum paid out.
    #[group(money)]
    pub balance: i64,
    /// Filler up to the standard's length.
    pub filler: Bytes<76>,
}

/// An account.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Account {
    /// The account's number.
    #[key]
    pub id: u64,
    /// The account's branch.
    pub branch: u64,
    /// The balance.
    #[group(money)]
    pub balance: i64,
    /// Filler up to the standard's length.
    pub filler: Bytes<76>,
}

/// A payment.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct History {
    /// The worker that inserted the row.
    #[key]
    pub worker: u64,
    /// The number of the worker's transaction, from 0.
    #[key]
    pub number: u64,
    /// The account.
    pub account: u64,
    /// The teller.
    pub teller: u64,
    /// The teller's branch.
    pub branch: u64,
    /// The amount.
    pub amount: i64,
    /// The date.
    pub time: u64,
    /// Filler up to the standard's length.
    pub filler: Bytes<22>,
}

/// All tables.
pub struct Bank<P: Protocol> {
    /// Branches.
    pub branches: Table<Branch, P>,
    /// Tellers.
    pub tellers: Table<Teller, P>,
    /// Accounts.
    pub accounts: Table<Account, P>,
    /// The history of payments.
    pub history: Table<History, P>,
}

impl<P: Protocol> Clone for Bank<P> {
    fn clone(&self) -> Self {
        Bank {
            branches: self.branches.clone(),
            tellers: self.tellers.clone(),
            accounts: self.accounts.clone(),
            history: self.history.clone(),
        }
    }
}

impl<P: Protocol> Bank<P> {
    /// Creates the tables.
    pub(super) fn create(db: &Database<P>, knobs: &TpcB) -> Result<Self, Error> {
        let room = |rows: u64| TableOptions::default().capacity(rows as usize);
        Ok(Bank {
            branches: db.table_with("branches", room(knobs.branches))?,
            tellers: db.table_with("tellers", room(knobs.branches * TELLERS))?,
            accounts: db.table_with("accounts", room(knobs.accounts_in_all()))?,
            history: db.table("history")?,
        })
    }

    /// Inserts a branch with its tellers.
    pub(super) fn open_branch(&self, tx: &Tx<'_, P>, id: u64) -> Result<(), Abort> {
        self.branches.insert(tx, Branch { id, balance: 0, filler: blank() })?;
        (0..TELLERS).try_for_each(|teller| {
            let teller =
                Teller { id: id * TELLERS + teller, branch: id, balance: 0, filler: blank() };
            self.tellers.insert(tx, teller)
        })
    }

    /// Inserts an account.
    pub(super) fn open_account(&self, tx: &Tx<'_, P>, id: u64, branch: u64) -> Result<(), Abort> {
        self.accounts.insert(tx, Account { id, branch, balance: 0, filler: blank() })
    }
}

/// Returns a filler of spaces.
pub(super) fn blank<const N: usize>() -> Bytes<N> {
    Bytes::new([b' '; N])
}
