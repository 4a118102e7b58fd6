//! The tables, how they are filled, and where numbers of bids and purchases come from.

use candide::{Abort, Database, Error, Protocol, Record, Table, TableOptions, Text, Tx};

use super::Rubis;
use crate::counter::Counter;
use crate::{Failure, Loading, Zipf, rng};

/// What every item costs at first, and what has been bid for it.
const FIRST_PRICE: u32 = 50;
pub(super) const FIRST_BID: u32 = 40;

/// Dates at loading are within a year, in seconds; what happens later is later.
pub(super) const YEAR: u32 = 365 * 24 * 60 * 60;

/// Random streams below are those of the threads that run transactions.
const FIRST_STREAM: u64 = 1 << 32;

/// Something for sale. What an auction changes is apart from what describes it.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Item {
    /// The session's number.
    #[key]
    pub id: u64,
    /// Its name.
    pub name: Text<100>,
    /// What there is to say about it.
    pub description: Text<255>,
    /// What it cost at first.
    pub initial_price: u32,
    /// What has to be bid for it to be sold.
    pub reserve_price: u32,
    /// What it costs without an auction.
    pub buy_now: u32,
    /// When its auction began.
    pub start_date: u32,
    /// Who sells it.
    pub seller: u64,
    /// Of which kind it is.
    pub category: u64,
    /// How many there are; fewer than none, if more may be sold than there are.
    #[group(auction)]
    pub quantity: i32,
    /// How many bids there are.
    #[group(auction)]
    pub bids: u32,
    /// The highest of them.
    #[group(auction)]
    pub max_bid: u32,
    /// When its auction ends, or when the last one was bought.
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
    /// The session's number.
    #[key]
    pub id: u64,
    /// The number of pieces.
    pub quantity: u32,
    /// The amount.
    pub bid: u32,
    /// The highest amount to bid.
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
    /// The session's number.
    #[key]
    pub id: u64,
    /// The number of pieces.
    pub quantity: u32,
    /// The date.
    pub date: u32,
}

/// All tables.
pub struct Auction<P: Protocol> {
    /// What is for sale.
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

    /// Puts item number `id` up for sale, with its first bids.
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

/// The text of no characters.
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

/// Where the numbers of bids and purchases come from.
pub(super) struct Numbers {
    pub(super) bids: Counter,
    pub(super) purchases: Counter,
}

impl Numbers {
    /// The numbers after those of the loaded rows.
    pub(super) fn after(knobs: &Rubis) -> Self {
        let bids = knobs.items * u64::from(knobs.bids);
        Numbers { bids: Counter::after(bids), purchases: Counter::after(knobs.purchases) }
    }
}
