//! The check: every item against its bids and its purchases.

use std::cell::RefCell;
use std::ops::Bound::{Excluded, Included};

use candide::{Protocol, Session};

use super::contents::Contents;
use super::knobs::Rubis;
use super::tables::{Auction, Bid, Item, Purchase};
use super::transactions::Tally;
use crate::read_back::{Rows, rows};
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
    let loaded = knobs.purchases;
    let mut looked_up = Contents::default();
    items.by_keys(&mut (0..knobs.items), &mut |row| looked_up.item(row))?;
    for item in 0..knobs.items {
        let (first, behind) = (Included((item, 0, 0)), Excluded((item + 1, 0, 0)));
        bids.by_scans(first, behind, &mut |row| looked_up.bid(row))?;
        purchases.by_scans(first, behind, &mut |row| looked_up.purchase(row, loaded))?;
    }

    let mut iterated = Contents::default();
    items.by_iteration(&mut |row| iterated.item(row))?;
    bids.by_iteration(&mut |row| iterated.bid(row))?;
    purchases.by_iteration(&mut |row| iterated.purchase(row, loaded))?;

    let mut consistency = Consistency::default();
    looked_up.settle("read by transactions", knobs, tally, &mut consistency);
    iterated.settle("read by raw iteration", knobs, tally, &mut consistency);
    consistency.expect(looked_up.agrees(&iterated), || {
        let (by_transactions, by_iteration) = (looked_up.counts(), iterated.counts());
        format!("transactions and raw iteration do not read the same: {by_transactions:?} and {by_iteration:?}")
    });
    Ok(consistency)
}
