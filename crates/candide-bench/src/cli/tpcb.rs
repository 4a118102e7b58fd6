//! The arguments of TPC-B.

use candide_workloads::tpcb::TpcB;
use clap::Args;

use super::values::{percent, whole};
use super::{Common, Switch, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct TpcBArgs {
    /// Branches [default: 10, or 100 with --profile paper]
    #[arg(long, value_parser = whole::<u64>, value_name = "COUNT")]
    branches: Option<u64>,

    /// Accounts of each branch; a multiple of ten, since a branch has ten tellers. An account takes
    /// about 200 bytes
    #[arg(long, value_parser = whole::<u64>, value_name = "COUNT", default_value_t = 100_000)]
    accounts: u64,

    /// Percentage of customers that come to a teller of another branch [default: 15, or 0 with
    /// --profile paper]
    #[arg(long, value_parser = percent, value_name = "PERCENT")]
    remote: Option<u32>,

    /// A transaction changes the account's balance and then reads it [default: on, or off with
    /// --profile paper]
    #[arg(long, value_enum)]
    observe_balance: Option<Switch>,

    /// Transactions generated per thread beforehand, and replayed
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT", default_value_t = 200_000)]
    transactions: usize,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl TpcBArgs {
    pub(crate) fn workload(&self) -> TpcB {
        let profile = self.common.by_profile(TpcB::strict(), TpcB::published());
        TpcB {
            branches: self.branches.unwrap_or(profile.branches),
            accounts: self.accounts,
            remote_pct: self.remote.unwrap_or(profile.remote_pct),
            // If --remote is given, the teller is drawn before the account.
            account_first: profile.account_first && self.remote.is_none(),
            observe_balance: self.observe_balance.map_or(profile.observe_balance, Switch::is_on),
            transactions: self.transactions,
        }
    }
}
