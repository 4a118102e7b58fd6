//! The knobs.

use serde::Serialize;

/// The number of accounts of a branch in the standard.
pub(super) const ACCOUNTS: u64 = 100_000;

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct TpcB {
    /// The number of branches. Each branch has ten tellers.
    pub branches: u64,
    /// The number of accounts of each branch. The standard has 100,000.
    pub accounts: u64,
    /// The percentage of customers that go to a teller of another branch. Ignored with only one
    /// branch.
    pub remote_pct: u32,
    /// Whether an account is drawn first, and its teller follows from the account. If not, a teller
    /// is drawn first and then an account.
    pub account_first: bool,
    /// Whether a transaction returns the account's balance and therefore reads it.
    pub observe_balance: bool,
    /// The number of transactions that are generated per thread beforehand and replayed in a cycle.
    pub transactions: usize,
}

impl TpcB {
    /// Returns the standard's transaction, for ten branches.
    pub fn strict() -> Self {
        TpcB {
            branches: 10,
            accounts: ACCOUNTS,
            remote_pct: 15,
            account_first: false,
            observe_balance: true,
            transactions: 200_000,
        }
    }

    /// Returns the knobs of FOEDUS's measurements: a hundred branches, and updates that read
    /// nothing.
    pub fn published() -> Self {
        TpcB {
            branches: 100,
            remote_pct: 0,
            account_first: true,
            observe_balance: false,
            ..Self::strict()
        }
    }

    pub(super) fn accounts_in_all(&self) -> u64 {
        self.branches * self.accounts
    }
}
