//! The three transactions, and the worker that runs them.

use std::sync::Arc;

use candide::{Abort, Column, Protocol, Refused, Session, Stats, Tx, Updater};

use super::Rubis;
use super::request::Request;
use super::tables::{Auction, Bid, Item, Numbers, Purchase, YEAR};
use crate::hottest::probe;
use crate::replay::Replay;
use crate::workload::{look_counted, run_counted};
use crate::{Probe, Step, Worker};

/// The number of pieces in a bid or a purchase.
const QUANTITY: u32 = 1;

/// An update that takes one piece of an item, and ends the item's auction if no piece is left.
#[derive(Debug, Clone, Copy)]
struct Sell {
    date: u32,
    refuse_sold_out: bool,
}

impl Updater<Item> for Sell {
    type Target = (Column<Item, i32>, Column<Item, u32>);

    fn target(&self) -> Self::Target {
        (Item::QUANTITY, Item::END_DATE)
    }

    fn apply(&self, (quantity, end_date): &mut (i32, u32)) -> Result<(), Refused> {
        let left = quantity.checked_sub(QUANTITY as i32).ok_or(Refused)?;
        if self.refuse_sold_out && left < 0 {
            return Err(Refused);
        }
        *quantity = left;
        if left == 0 {
            *end_date = self.date;
        }
        Ok(())
    }
}

/// The numbers of bids and purchases of committed transactions.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) bids: u64,
    pub(super) purchases: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Tally) {
        self.bids += other.bids;
        self.purchases += other.purchases;
    }
}

/// The worker that runs the transactions of one thread.
pub struct RubisWorker<P: Protocol> {
    session: Session<P>,
    auction: Auction<P>,
    numbers: Arc<Numbers>,
    requests: Replay<Request>,
    refuse_sold_out: bool,
    date: u32,
    tally: Tally,
}

impl<P: Protocol> RubisWorker<P> {
    pub(super) fn new(
        session: Session<P>,
        auction: Auction<P>,
        numbers: Arc<Numbers>,
        knobs: &Rubis,
        requests: Replay<Request>,
    ) -> Self {
        let refuse_sold_out = knobs.refuse_sold_out;
        RubisWorker {
            session,
            auction,
            numbers,
            requests,
            refuse_sold_out,
            date: YEAR,
            tally: Tally::default(),
        }
    }

    pub(super) fn into_tally(self) -> Tally {
        self.tally
    }
}

impl<P: Protocol> Worker for RubisWorker<P> {
    fn step(&mut self) -> Result<Step, Abort> {
        let RubisWorker { session, auction, numbers, requests, tally, .. } = self;
        let request = requests.next()[0];
        self.date = self.date.checked_add(1).unwrap_or(YEAR + 1);
        let date = self.date;
        let (end, retries) = match request {
            Request::PlaceBid { item, user, bid, max_bid } => {
                let (item, user, id) = (u64::from(item), u64::from(user), numbers.bids.draw());
                let bid = Bid { item, user, id, quantity: QUANTITY, bid, max_bid, date };
                run_counted(session, |tx| auction.place_bid(tx, bid))
            }
            Request::BuyNow { item, user } => {
                let (item, user, id) = (u64::from(item), u64::from(user), numbers.purchases.draw());
                let purchase = Purchase { item, user, id, quantity: QUANTITY, date };
                let sell = Sell { date, refuse_sold_out: self.refuse_sold_out };
                run_counted(session, |tx| auction.buy_now(tx, purchase, sell))
            }
            Request::ViewItem { item } => {
                look_counted(session, |tx| auction.view_item(tx, u64::from(item)))
            }
        };
        let committed = match end {
            Ok(()) => true,
            // [`Sell`] is the only update that may refuse.
            Err(Abort::Guard) => false,
            Err(abort) => return Err(abort),
        };
        match request {
            Request::PlaceBid { .. } => tally.bids += u64::from(committed),
            Request::BuyNow { .. } => tally.purchases += u64::from(committed),
            Request::ViewItem { .. } => {}
        }
        Ok(Step { kind: request.kind(), committed, retries })
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }

    fn hottest(&mut self) -> Option<Box<dyn Probe + '_>> {
        probe(&mut self.session, &self.auction.items, 0)
    }
}

impl<P: Protocol> Auction<P> {
    fn place_bid(&self, tx: &Tx<'_, P>, bid: Bid) -> Result<(), Abort> {
        self.items.update(tx, &bid.item, (Item::MAX_BID.max(bid.max_bid), Item::BIDS.add(1)))?;
        self.bids.insert(tx, bid)
    }

    fn buy_now(&self, tx: &Tx<'_, P>, purchase: Purchase, sell: Sell) -> Result<(), Abort> {
        self.items.update_with(tx, &purchase.item, sell)?;
        self.purchases.insert(tx, purchase)
    }

    fn view_item(&self, tx: &Tx<'_, P>, item: u64) -> Result<(), Abort> {
        std::hint::black_box(self.items.read(
            tx,
            &item,
            (Item::QUANTITY, Item::BIDS, Item::MAX_BID, Item::END_DATE),
        )?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sale_ends_the_auction() {
        let mut item = (2, 7);
        for (date, refuse_sold_out, expected) in [
            (8, true, Ok((1, 7))),
            (9, true, Ok((0, 9))),
            (10, true, Err(Refused)),
            (11, false, Ok((-1, 9))),
        ] {
            let end = Sell { date, refuse_sold_out }.apply(&mut item);
            assert_eq!(end.map(|()| item), expected);
        }
    }
}
