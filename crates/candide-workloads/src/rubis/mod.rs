//! The core of RUBiS, an auction site: bids, purchases at a fixed price, and views of an item.
//! STOv2 (VLDB 2020) selected these three from the original's 26 pages. The tables of bids and
//! purchases only grow, and only the check reads them.
//!
//! [`Rubis::strict`] sells no more pieces than are in stock, and bids raise the price.
//! [`Rubis::published`] follows the published measurements, which differ in the ways that
//! [`Workload::differences`] names. The dates of loaded rows are in seconds. Later dates count a
//! worker's transactions, from the first second that loading has not used. So all dates follow from
//! the seed.

mod audit;
mod contents;
mod knobs;
mod request;
mod tables;
mod transactions;

use std::sync::{Arc, Mutex};

use candide::{Database, Protocol, Session};

use crate::hottest::if_hot;
use crate::replay::{Replay, Stopped};
use crate::workload::{lock, require_range, require_theta, require_transactions, require_weights};
use crate::{Consistency, Failure, Loaded, Loading, Size, Workload, rng};
use knobs::KINDS;
pub use knobs::Rubis;
use request::Request;
pub use tables::{Auction, Bid, Item, Purchase};
use tables::{Numbers, load};
pub use transactions::RubisWorker;
use transactions::Tally;

/// The bytes of an item without its bids, of a bid, and of a purchase.
const ITEM_BYTES: u64 = 500;
const BID_BYTES: u64 = 100;
const PURCHASE_BYTES: u64 = 130;
/// The bytes of the rows that one thread inserts in a second on a fast machine.
const GROWTH: u64 = 80_000_000;

impl Workload for Rubis {
    type Loaded<P: Protocol> = RubisTables<P>;

    const KINDS: &'static [&'static str] = &KINDS;
    const TABLES: &'static [&'static str] = &["items", "bids", "buy_now"];

    fn name(&self) -> String {
        "rubis".to_string()
    }

    fn keys(&self) -> u64 {
        self.items + self.purchases
    }

    fn size(&self) -> Size {
        let item = ITEM_BYTES + u64::from(self.bids) * BID_BYTES;
        let Size { tables, .. } = Size::of(self.purchases, "purchases", PURCHASE_BYTES);
        let items = Size::of(self.items, "items", item);
        Size { tables: items.tables.saturating_add(tables), ..items }
            .with_inputs::<Request>(self.transactions)
            .growing_by(GROWTH)
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn differences(&self) -> Vec<&'static str> {
        let differences = [
            (
                self.vary_bids,
                "a thread repeats its inputs when they are used up, and no repeated bid is above an item's price",
            ),
            (
                !self.vary_bids,
                "all bids have the same maximum, as published, so none raises a price",
            ),
            (
                !self.refuse_sold_out,
                "items are sold beyond their stock, as published, but with signed numbers",
            ),
            (
                self.refuse_sold_out,
                "purchases of items without stock are refused, rolled back and not counted: the most wanted items sell out within a run",
            ),
            (
                self.stock != Self::published().stock,
                "the stock of each item differs from the published ten",
            ),
        ];
        differences.into_iter().filter(|(differs, _)| *differs).map(|(_, how)| how).collect()
    }

    fn grows(&self) -> bool {
        true
    }

    fn hottest(&self) -> Option<&'static str> {
        if_hot("items[0]", self.items, self.theta_items)
    }

    fn validate(&self) -> Result<(), String> {
        let most = u64::from(u32::MAX);
        require_range("items", 1..=most, self.items)?;
        require_range("users", 1..=most, self.users)?;
        require_range("the stock of each item", 1..=i32::MAX as u32, self.stock)?;
        require_theta(self.theta_items)?;
        require_theta(self.theta_users)?;
        require_weights(&self.weights, &KINDS)?;
        require_transactions(self.transactions)
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<RubisTables<P>, Failure> {
        let auction = Auction::create(db, self)?;
        load(&auction, db, self, loading)?;
        let numbers = Arc::new(Numbers::after(self));
        Ok(RubisTables {
            auction,
            numbers,
            knobs: self.clone(),
            seed: loading.seed,
            tally: Mutex::default(),
        })
    }
}

/// The filled tables of the auction site.
pub struct RubisTables<P: Protocol> {
    /// The tables.
    pub auction: Auction<P>,
    numbers: Arc<Numbers>,
    knobs: Rubis,
    seed: u64,
    tally: Mutex<Tally>,
}

impl<P: Protocol> Loaded<P> for RubisTables<P> {
    type Worker = RubisWorker<P>;

    fn worker_unless(
        &self,
        session: Session<P>,
        thread: usize,
        stopped: Stopped<'_>,
    ) -> RubisWorker<P> {
        let requests =
            Request::draw_all(&self.knobs, &mut rng::stream(self.seed, thread as u64), stopped);
        RubisWorker::new(
            session,
            self.auction.clone(),
            self.numbers.clone(),
            &self.knobs,
            Replay::new(requests, 1),
        )
    }

    fn absorb(&self, worker: RubisWorker<P>) {
        lock(&self.tally).add(&worker.into_tally());
    }

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        audit::check(&self.auction, session, &self.knobs, &lock(&self.tally))
    }
}
