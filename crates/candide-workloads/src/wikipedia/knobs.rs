//! The knobs, and the constants of the published code.

use serde::Serialize;

/// The transaction types, in the order of the weights.
pub(super) const KINDS: [&str; 6] = [
    "add-watch",
    "remove-watch",
    "update-page",
    "list-namespace",
    "get-page-anonymous",
    "get-page-authenticated",
];

/// The skew of the pages.
pub(super) const THETA_PAGES: f64 = 1.0001;
/// The skew of the number of pages that a user watches at first, and the largest such number.
pub(super) const THETA_WATCHES: f64 = 1.75;
pub(super) const WATCHES_MAX: u64 = 1000;

/// The place of the bytes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Texts {
    /// A column of the text's row.
    Whole,
    /// Rows of 2 KiB in a table of their own.
    Parts,
}

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct Wikipedia {
    /// The number of users. Users are numbered from 1.
    pub users: u64,
    /// The number of pages, which are numbered from 1. Pages with smaller numbers are drawn more
    /// often. Each page takes about 200 KB with its texts.
    pub pages: u64,
    /// The frequency of each transaction type, relative to the others.
    pub weights: [u32; KINDS.len()],
    /// Whether a user that watches an article is also listed among those that watch its talk page,
    /// and unlisted when the user stops watching the article. In the published code, the user is
    /// not listed, and never stops watching the talk page.
    pub index_talk: bool,
    /// Whether tables that are not scanned are hashed; if not, all are ordered.
    pub hash_index: bool,
    /// The place of the bytes of texts.
    pub texts: Texts,
    /// The number of transactions that are generated per thread beforehand and replayed in a cycle.
    pub transactions: usize,
}

impl Wikipedia {
    /// Returns the knobs of the measurements: ten times OLTP-Bench's unit.
    pub fn published() -> Self {
        Wikipedia {
            users: 20_000,
            pages: 10_000,
            weights: [700, 700, 46_725, 474_218, 468_438, 9_219],
            index_talk: false,
            hash_index: false,
            texts: Texts::Whole,
            transactions: 200_000,
        }
    }

    /// Returns OLTP-Bench's unit.
    pub fn strict() -> Self {
        Wikipedia {
            users: 2_000,
            pages: 1_000,
            index_talk: true,
            hash_index: true,
            ..Self::published()
        }
    }
}
