//! The check: every item against its bids and its purchases.

use std::cell::RefCell;
use std::ops::Bound::{Excluded, Included};

use candide::{Protocol, Session};

use super::contents::Contents;
use super::knobs::Rubis;
use super::tables::{Auction, Bid, Item, Purchase};
use super::transactions::Tally;
use crate::read_back::{Rows, Way, audit, rows};
use crate::{Consistency, Failure};

/// Compares the tables with one another, with the loaded rows and with the tally of committed
/// transactions.
pub(super) fn check<P: Protocol>(
    auction: &Auction<P>,
    session: Session<P>,
    knobs: &Rubis,
    tally: &Tally,
) -> Result<Consistency, Failure> {
    let session = &RefCell::new(session);
    let items = &rows(&auction.items, session);
    settle(items, &rows(&auction.bids, session), &rows(&auction.purchases, session), knobs, tally)
}

fn settle(
    items: &Rows<'_, Item>,
    bids: &Rows<'_, Bid>,
    purchases: &Rows<'_, Purchase>,
    knobs: &Rubis,
    tally: &Tally,
) -> Result<Consistency, Failure> {
    let read = |way| {
        let mut contents = Contents::default();
        items.read(way, &mut (0..knobs.items), &mut |row| contents.item(row))?;
        if way == Way::Iteration {
            bids.by_iteration(&mut |row| contents.bid(row))?;
            purchases.by_iteration(&mut |row| contents.purchase(row, knobs.purchases))?;
            return Ok(contents);
        }
        for item in 0..knobs.items {
            let (first, behind) = (Included((item, 0, 0)), Excluded((item + 1, 0, 0)));
            bids.by_scans(first, behind, &mut |row| contents.bid(row))?;
            purchases
                .by_scans(first, behind, &mut |row| contents.purchase(row, knobs.purchases))?;
        }
        Ok(contents)
    };
    audit(
        read,
        |contents, way, consistency| contents.settle(way, knobs, tally, consistency),
        Contents::agrees,
        |contents| format!("{:?}", contents.counts()),
    )
}
