//! The tables, their loading, and the counters for the numbers of bids and purchases.

use candide::{Abort, Database, Error, Protocol, Record, Table, TableOptions, Text, Tx};

use super::knobs::Rubis;
use crate::counter::Counter;
use crate::{Failure, Loading, Zipf, rng};

/// The initial price of every item, and the amount of its highest loaded bid.
const FIRST_PRICE: u32 = 50;
pub(super) const FIRST_BID: u32 = 40;

/// The seconds of a year. The dates of loaded rows are within this year, and later dates are beyond
/// it.
pub(super) const YEAR: u32 = 365 * 24 * 60 * 60;

/// The first random stream of the loader. Lower streams belong to the threads that run
/// transactions.
const FIRST_STREAM: u64 = 1 << 32;

/// An item for sale. The columns that an auction changes are in another group than the item's
/// description.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Item {
    /// The item's number.
    #[key]
    pub id: u64,
    /// The item's name.
    pub name: Text<100>,
    /// The item's description.
    pub description: Text<255>,
    /// The initial price.
    pub initial_price: u32,
    /// The lowest bid for which the item is sold.
    pub reserve_price: u32,
    /// The fixed price at which a user buys the item without bidding.
    pub buy_now: u32,
    /// The date on which the item's auction began.
    pub start_date: u32,
    /// The user that sells the item.
    pub seller: u64,
    /// The category of the item.
    pub category: u64,
    /// The number of pieces left; negative if more pieces were sold than there were.
    #[group(auction)]
    pub quantity: i32,
    /// The number of bids.
    #[group(auction)]
    pub bids: u32,
    /// The highest bid.
    #[group(auction)]
    pub max_bid: u32,
    /// The date on which the item's auction ends, or on which the last piece was bought.
    #[group(auction)]
    pub end_date: u32,
}

/// A bid.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct Bid {
    /// The item.
    #[key]
    pub item: u64,
    /// The user.
    #[key]
    pub user: u64,
    /// The bid's number.
    #[key]
    pub id: u64,
    /// The number of pieces.
    pub quantity: u32,
    /// The amount.
    pub bid: u32,
    /// The highest amount that the user is willing to bid.
    pub max_bid: u32,
    /// The date.
    pub date: u32,
}

/// A purchase at the fixed price.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct Purchase {
    /// The item.
    #[key]
    pub item: u64,
    /// The user.
    #[key]
    pub user: u64,
    /// The purchase's number.
    #[key]
    pub id: u64,
    /// The number of pieces.
    pub quantity: u32,
    /// The date.
    pub date: u32,
}

/// All tables.
pub struct Auction<P: Protocol> {
    /// Items for sale.
    pub items: Table<Item, P>,
    /// Bids, by item and user.
    pub bids: Table<Bid, P>,
    /// Purchases, by item and user.
    pub purchases: Table<Purchase, P>,
}

impl<P: Protocol> Clone for Auction<P> {
    fn clone(&self) -> Self {
        Auction {
            items: self.items.clone(),
            bids: self.bids.clone(),
            purchases: self.purchases.clone(),
        }
    }
}

impl<P: Protocol> Auction<P> {
    /// Creates the tables.
    pub(super) fn create(db: &Database<P>, knobs: &Rubis) -> Result<Self, Error> {
        let room = TableOptions::default().capacity(knobs.items as usize);
        let items = if knobs.hash_index { room } else { room.ordered() };
        Ok(Auction {
            items: db.table_with("items", items)?,
            bids: db.table("bids")?,
            purchases: db.table("buy_now")?,
        })
    }

    /// Inserts item number `id` with its first bids.
    fn offer(
        &self,
        tx: &Tx<'_, P>,
        id: u64,
        knobs: &Rubis,
        users: &Zipf,
        seed: u64,
    ) -> Result<(), Abort> {
        let mut rng = rng::stream(seed, FIRST_STREAM + id);
        let start_date = rng.u32(..YEAR);
        let item = Item {
            id,
            name: nothing(),
            description: nothing(),
            initial_price: FIRST_PRICE,
            reserve_price: FIRST_PRICE,
            buy_now: 0,
            start_date,
            seller: users.sample(&mut rng) + 1,
            category: 0,
            quantity: knobs.stock as i32,
            bids: knobs.bids,
            max_bid: if knobs.bids > 0 { FIRST_BID } else { 0 },
            end_date: rng.u32(start_date..YEAR),
        };
        self.items.insert(tx, item)?;
        for number in 0..knobs.bids {
            let bid = Bid {
                item: id,
                user: users.sample(&mut rng) + 1,
                id: id * u64::from(knobs.bids) + u64::from(number) + 1,
                quantity: 1,
                bid: FIRST_BID,
                max_bid: FIRST_BID,
                date: rng.u32(..YEAR),
            };
            self.bids.insert(tx, bid)?;
        }
        Ok(())
    }
}

/// Returns the empty text.
fn nothing<const N: usize>() -> Text<N> {
    Text::new("").expect("nothing always fits")
}

/// Fills the tables.
pub(super) fn load<P: Protocol>(
    auction: &Auction<P>,
    db: &Database<P>,
    knobs: &Rubis,
    loading: &Loading<'_>,
) -> Result<(), Failure> {
    let seed = loading.seed;
    let (items, users) =
        (Zipf::new(knobs.items, knobs.theta_items), Zipf::new(knobs.users, knobs.theta_users));
    loading.fill(db, knobs.items, |tx, id| auction.offer(tx, id, knobs, &users, seed))?;
    loading.fill(db, knobs.purchases, |tx, number| {
        let mut rng = rng::stream(seed, FIRST_STREAM + knobs.items + number);
        let (item, user) = (items.sample(&mut rng), users.sample(&mut rng) + 1);
        let purchase = Purchase { item, user, id: number + 1, quantity: 1, date: rng.u32(..YEAR) };
        auction.purchases.insert(tx, purchase)
    })
}

/// The counters for the numbers of bids and purchases.
pub(super) struct Numbers {
    pub(super) bids: Counter,
    pub(super) purchases: Counter,
}

impl Numbers {
    /// Creates counters that continue after the numbers of the loaded rows.
    pub(super) fn after(knobs: &Rubis) -> Self {
        let bids = knobs.items * u64::from(knobs.bids);
        Numbers { bids: Counter::after(bids), purchases: Counter::after(knobs.purchases) }
    }
}
