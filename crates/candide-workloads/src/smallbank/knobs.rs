//! The knobs.

use serde::Serialize;

/// The six transaction types, in the order of the weights.
pub(super) const KINDS: [&str; 6] = [
    "amalgamate",
    "balance",
    "deposit-checking",
    "send-payment",
    "transact-savings",
    "write-check",
];

/// The share of customers that are drawn from the hotspot, if there is a hotspot.
pub(super) const HOT_SHARE: f64 = 0.9;

/// The distribution of customers.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Customers {
    /// A Zipf distribution with this exponent; 0 is uniform.
    Theta(f64),
    /// The number of hot accounts. Nine in ten customers are drawn from these first accounts, and
    /// the others from the remaining accounts.
    Hotspot(u64),
}

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct SmallBank {
    /// The number of accounts, which are numbered from 0.
    pub accounts: u64,
    /// The distribution of customers.
    pub customers: Customers,
    /// The frequency of each transaction type, relative to the others.
    pub weights: [u32; KINDS.len()],
    /// The number of transactions that are generated per thread beforehand and replayed in a cycle.
    pub transactions: usize,
}

impl SmallBank {
    /// Returns the paper's scale: 18,000 customers, with nine in ten transactions on a thousand of
    /// these. The paper's five types are equally frequent. `send-payment` was added by later
    /// authors.
    pub fn published() -> Self {
        SmallBank {
            accounts: 18_000,
            customers: Customers::Hotspot(1000),
            weights: [1, 1, 1, 0, 1, 1],
            ..Self::bench_base()
        }
    }

    /// Returns BenchBase's scale and mix: a million customers, drawn uniformly.
    pub fn bench_base() -> Self {
        SmallBank {
            accounts: 1_000_000,
            customers: Customers::Theta(0.0),
            weights: [15, 15, 15, 25, 15, 15],
            transactions: 200_000,
        }
    }
}
