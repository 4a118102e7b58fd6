//! The check: every item against its bids and its purchases.

use candide::{Abort, Prefix, Protocol, Session, Whole};

use super::Rubis;
use super::books::Books;
use super::tables::Auction;
use super::transactions::Tally;
use crate::read_back::by_transactions;
use crate::{Consistency, Failure};

/// Compares the tables with one another, with what was loaded and with what was committed.
pub(super) fn check<P: Protocol>(
    auction: &Auction<P>,
    mut session: Session<P>,
    knobs: &Rubis,
    tally: &Tally,
) -> Result<Consistency, Failure> {
    let loaded = knobs.purchases;
    let mut looked_up = Books::default();
    by_transactions(&mut session, &auction.items, knobs.items, |row| looked_up.item(row))?;
    for item in 0..knobs.items {
        let (bids, purchases) = session.run(|tx| {
            let bids = auction.bids.scan(tx, Prefix((item,)), Whole).map(|row| Ok(row?.1));
            let bids = bids.collect::<Result<Vec<_>, Abort>>()?;
            let purchases = auction.purchases.scan(tx, Prefix((item,)), Whole).map(|row| Ok(row?.1));
            Ok::<_, Abort>((bids, purchases.collect::<Result<Vec<_>, Abort>>()?))
        })?;
        bids.iter().for_each(|row| looked_up.bid(row));
        purchases.iter().for_each(|row| looked_up.purchase(row, loaded));
    }

    let mut iterated = Books::default();
    auction.items.for_each_quiescent(|row| iterated.item(row))?;
    auction.bids.for_each_quiescent(|row| iterated.bid(row))?;
    auction.purchases.for_each_quiescent(|row| iterated.purchase(row, loaded))?;

    let mut consistency = Consistency::default();
    looked_up.settle("read by transactions", knobs, tally, &mut consistency);
    iterated.settle("read by raw iteration", knobs, tally, &mut consistency);
    consistency.expect(looked_up.agrees(&iterated), || {
        let (by_transactions, by_iteration) = (looked_up.counts(), iterated.counts());
        format!("transactions and raw iteration do not read the same: {by_transactions:?} and {by_iteration:?}")
    });
    Ok(consistency)
}
