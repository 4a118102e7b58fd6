//! The arguments of RUBiS.

use candide_workloads::rubis::Rubis;
use clap::Args;

use super::values::{number, weights, whole};
use super::{Common, Switch, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct RubisArgs {
    /// Items for sale; an item and its bids take about a kilobyte [default: 100000, or 500000 with
    /// --profile paper]
    #[arg(long, value_parser = whole::<u64>, value_name = "COUNT")]
    items: Option<u64>,

    /// Users [default: 20000, or 100000 with --profile paper]
    #[arg(long, value_parser = whole::<u64>, value_name = "COUNT")]
    users: Option<u64>,

    /// Initial number of bids on each item
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT", default_value_t = 10)]
    bids: u32,

    /// Initial number of purchases [default: 100000, or 500000 with --profile paper]
    #[arg(long, value_parser = whole::<u64>, value_name = "COUNT")]
    purchases: Option<u64>,

    /// Initial quantity of each item for sale [default: 10000, or 10 with --profile paper]
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT")]
    stock: Option<u32>,

    /// Skew of the items, from 0 (uniform) to 2
    #[arg(long, value_parser = number, value_name = "THETA", default_value_t = 1.0)]
    theta_items: f64,

    /// Skew of the users, from 0 (uniform) to 2
    #[arg(long, value_parser = number, value_name = "THETA", default_value_t = 0.2)]
    theta_users: f64,

    /// Relative frequencies of the transaction types: place-bid, buy-now, view-item
    #[arg(long, value_parser = weights::<3>, default_value = "30,20,50", allow_hyphen_values = true)]
    weights: [u32; 3],

    /// Draw different amounts for bids, so that bids raise prices. In the published measurements,
    /// bids raise no price [default: on, or off with --profile paper]
    #[arg(long, value_enum)]
    vary_bids: Option<Switch>,

    /// Refuse purchases of items that are sold out. The published measurements sell these items
    /// nevertheless [default: on, or off with --profile paper]
    #[arg(long, value_enum)]
    refuse_sold_out: Option<Switch>,

    /// The index of items is hashed (on) or ordered (off) [default: on, or off with --profile
    /// paper]
    #[arg(long, value_enum)]
    hash_index: Option<Switch>,

    /// Transactions generated per thread beforehand, and replayed
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT", default_value_t = 200_000)]
    transactions: usize,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl RubisArgs {
    pub(crate) fn workload(&self) -> Rubis {
        let profile = self.common.by_profile(Rubis::strict(), Rubis::published());
        Rubis {
            items: self.items.unwrap_or(profile.items),
            users: self.users.unwrap_or(profile.users),
            bids: self.bids,
            purchases: self.purchases.unwrap_or(profile.purchases),
            stock: self.stock.unwrap_or(profile.stock),
            theta_items: self.theta_items,
            theta_users: self.theta_users,
            weights: self.weights,
            vary_bids: self.vary_bids.map_or(profile.vary_bids, Switch::is_on),
            refuse_sold_out: self.refuse_sold_out.map_or(profile.refuse_sold_out, Switch::is_on),
            hash_index: self.hash_index.map_or(profile.hash_index, Switch::is_on),
            transactions: self.transactions,
        }
    }
}
