//! The three transactions, and the worker that runs them.

use std::sync::Arc;

use candide::report::Stats;
use candide::schema::{Refused, Updater};
use candide::{Abort, Column, Protocol, Session, Tx};

use super::knobs::Rubis;
use super::request::Request;
use super::tables::{Auction, Bid, Item, Numbers, Purchase, YEAR};
use crate::hottest::probe;
use crate::replay::Replay;
use crate::workload::{look_counted, run_counted};
use crate::{Probe, Step, Worker};

/// The number of pieces in a bid or a purchase.
const QUANTITY: u32 = 1;

/// An update that takes one piece of an item, and ends the item's auction if no piece is left. If
/// `CAN_REFUSE`, it refuses when no piece was left before; otherwise it cannot fail.
#[derive(Debug, Clone, Copy)]
struct Sell<const CAN_REFUSE: bool> {
    date: u32,
}

impl<const CAN_REFUSE: bool> Updater<Item> for Sell<CAN_REFUSE> {
    type Target = (Column<Item, i32>, Column<Item, u32>);

    const TOTAL: bool = !CAN_REFUSE;

    fn target(&self) -> Self::Target {
        (Item::QUANTITY, Item::END_DATE)
    }

    fn apply(&self, (quantity, end_date): &mut (i32, u32)) -> Result<(), Refused> {
        if CAN_REFUSE && *quantity < QUANTITY as i32 {
            return Err(Refused);
        }
        *quantity = quantity.wrapping_sub(QUANTITY as i32);
        if *quantity == 0 {
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
                if self.refuse_sold_out {
                    run_counted(session, |tx| auction.buy_now(tx, purchase, Sell::<true> { date }))
                } else {
                    run_counted(session, |tx| auction.buy_now(tx, purchase, Sell::<false> { date }))
                }
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
        // Both updates cannot fail, so they may be deferred.
        let update = (Item::MAX_BID.max(bid.max_bid), Item::BIDS.wrapping_add(1));
        self.items.update(tx, &bid.item, update)?;
        self.bids.insert(tx, bid)
    }

    fn buy_now<const CAN_REFUSE: bool>(
        &self,
        tx: &Tx<'_, P>,
        purchase: Purchase,
        sell: Sell<CAN_REFUSE>,
    ) -> Result<(), Abort> {
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
    use candide::{Database, Mvto};

    use super::*;
    use crate::{Loading, Workload};

    #[test]
    fn the_sale_of_the_last_item_ends_its_auction() {
        let mut item = (2, 7);
        for (date, expected) in [(8, Ok((1, 7))), (9, Ok((0, 9))), (10, Err(Refused))] {
            assert_eq!(Sell::<true> { date }.apply(&mut item).map(|()| item), expected);
        }
        assert_eq!(Sell::<false> { date: 11 }.apply(&mut item), Ok(()));
        assert_eq!(item, (-1, 9));
    }

    #[test]
    fn updaters_of_the_paper_cannot_fail() {
        const {
            assert!(<Sell<false> as Updater<Item>>::TOTAL);
            assert!(!<Sell<true> as Updater<Item>>::TOTAL);
        }
        let db = Database::<Mvto>::builder().build().expect("valid settings");
        let loading = Loading { threads: 1, seed: 1, progress: &|_| {}, stopped: &|| false };
        let knobs = Rubis { items: 1, users: 1, bids: 1, purchases: 1, ..Rubis::published() };
        let auction = knobs.load(&db, &loading).expect("loads").auction;
        let bid =
            |id| Bid { item: 0, user: 1, id, quantity: QUANTITY, bid: 1, max_bid: 1, date: 1 };
        let purchase = |id| Purchase { item: 0, user: 1, id, quantity: QUANTITY, date: 1 };
        db.run(|tx| {
            auction.items.update(tx, 0, (Item::BIDS.set(u32::MAX), Item::QUANTITY.set(i32::MIN)))
        })
        .expect("no other transaction");
        db.run(|tx| {
            auction.place_bid(tx, bid(u64::MAX))?;
            auction.buy_now(tx, purchase(u64::MAX), Sell::<false> { date: 1 })
        })
        .expect("neither counter has an end");
        let row = db.run(|tx| auction.items.read(tx, 0, (Item::BIDS, Item::QUANTITY)));
        assert_eq!(row, Ok((0, i32::MAX)));
    }
}
