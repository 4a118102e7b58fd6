//! The knobs.

use serde::Serialize;

/// The transaction types, in the order of the weights.
pub(super) const KINDS: [&str; 3] = ["place-bid", "buy-now", "view-item"];

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct Rubis {
    /// The number of items for sale, which are numbered from 0.
    pub items: u64,
    /// The number of users. Users are numbered from 1. Users have no table.
    pub users: u64,
    /// The number of loaded bids on each item.
    pub bids: u32,
    /// The number of loaded purchases at a fixed price. These purchases do not count against the
    /// stock of their items.
    pub purchases: u64,
    /// The number of pieces of each item that are for sale.
    pub stock: u32,
    /// The skew of the items: 0 is uniform. Items with smaller numbers are drawn more often.
    pub theta_items: f64,
    /// The skew of the users.
    pub theta_users: f64,
    /// The frequency of each transaction type, relative to the others.
    pub weights: [u32; KINDS.len()],
    /// Whether bids vary, so that they raise an item's price. In the published code, bids do not
    /// vary.
    pub vary_bids: bool,
    /// Whether a purchase of a sold-out item is refused. The published code does not refuse such
    /// purchases.
    pub refuse_sold_out: bool,
    /// Whether the table of items is hashed. If not, it is ordered like the other tables.
    pub hash_index: bool,
    /// The number of transactions that are generated per thread beforehand and replayed in a cycle.
    pub transactions: usize,
}

impl Rubis {
    /// Returns the knobs of the measurements: half a million items, with ten bids on each.
    pub fn published() -> Self {
        Rubis {
            items: 500_000,
            users: 100_000,
            bids: 10,
            purchases: 500_000,
            stock: 10,
            theta_items: 1.0,
            theta_users: 0.2,
            weights: [30, 20, 50],
            vary_bids: false,
            refuse_sold_out: false,
            hash_index: false,
            transactions: 200_000,
        }
    }

    /// Returns a fifth of the published items, without overselling. Items have so much stock that
    /// only the most popular ones sell out within seconds.
    pub fn strict() -> Self {
        Rubis {
            items: 100_000,
            users: 20_000,
            purchases: 100_000,
            stock: 10_000,
            vary_bids: true,
            refuse_sold_out: true,
            hash_index: true,
            ..Self::published()
        }
    }
}
