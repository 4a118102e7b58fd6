//! The contents of the tables, item by item, as found by one of the two ways of reading.

use std::collections::HashMap;

use super::knobs::Rubis;
use super::tables::{Bid, FIRST_BID, Item, Purchase, YEAR};
use super::transactions::Tally;
use crate::Consistency;
use crate::read_back::fingerprint;

/// All items, and the sums over their bids and purchases.
#[derive(Debug, Default)]
pub(super) struct Contents {
    items: HashMap<u64, Account>,
    bids: u64,
    purchases: u64,
    /// The number of bids and purchases of items that do not exist.
    astray: u64,
    fingerprint: u64,
}

/// An item's columns, and the values computed from its bids and purchases (`_found`, `bought`).
#[derive(Debug)]
struct Account {
    quantity: i64,
    bids: u32,
    max_bid: u32,
    end_date: u32,
    bids_found: u32,
    max_bid_found: u32,
    bought: i64,
    /// Whether a purchase has the date on which the auction ended.
    is_ended_by_purchase: bool,
}

impl Contents {
    /// Adds an item. Items have to be added before their bids and purchases.
    pub(super) fn item(&mut self, row: &Item) {
        let &Item { id, quantity, bids, max_bid, end_date, .. } = row;
        self.print(
            id,
            0,
            [quantity as u64, u64::from(bids), u64::from(max_bid), u64::from(end_date)],
        );
        let account = Account {
            quantity: i64::from(quantity),
            bids,
            max_bid,
            end_date,
            bids_found: 0,
            max_bid_found: 0,
            bought: 0,
            is_ended_by_purchase: false,
        };
        self.items.insert(id, account);
    }

    pub(super) fn bid(&mut self, row: &Bid) {
        self.print(row.id, 1, [row.item, row.user, u64::from(row.bid), u64::from(row.date)]);
        self.bids += 1;
        match self.items.get_mut(&row.item) {
            Some(item) => {
                item.bids_found += 1;
                item.max_bid_found = item.max_bid_found.max(row.max_bid);
            }
            None => self.astray += 1,
        }
    }

    /// Adds a purchase. `loaded` is the number of the last loaded purchase.
    pub(super) fn purchase(&mut self, row: &Purchase, loaded: u64) {
        self.print(row.id, 2, [row.item, row.user, u64::from(row.quantity), u64::from(row.date)]);
        self.purchases += 1;
        match self.items.get_mut(&row.item) {
            Some(item) if row.id > loaded => {
                item.bought += i64::from(row.quantity);
                item.is_ended_by_purchase |= item.end_date == row.date;
            }
            Some(_) => {}
            None => self.astray += 1,
        }
    }

    fn print(&mut self, id: u64, table: u64, values: [u64; 4]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.fingerprint = self.fingerprint.wrapping_add(fingerprint(id ^ table << 62, &bytes));
    }

    /// Returns whether two ways of reading have found the same rows.
    pub(super) fn agrees(&self, other: &Contents) -> bool {
        self.counts() == other.counts()
    }

    /// Returns the number of rows of the three tables, and the sum of their fingerprints.
    pub(super) fn counts(&self) -> [u64; 4] {
        [self.items.len() as u64, self.bids, self.purchases, self.fingerprint]
    }

    /// Examines the contents that one way of reading found.
    pub(super) fn settle(
        &self,
        way: &str,
        knobs: &Rubis,
        tally: &Tally,
        consistency: &mut Consistency,
    ) {
        let Rubis { items, purchases, stock, .. } = *knobs;
        let rows = [self.items.len() as u64, self.bids, self.purchases];
        let expected =
            [items, items * u64::from(knobs.bids) + tally.bids, purchases + tally.purchases];
        consistency.expect(rows == expected, || {
            format!("{way}: items, bids, purchases have {rows:?} rows where {expected:?} were loaded or committed")
        });
        consistency.expect(self.astray == 0, || {
            format!("{way}: {} bids or purchases are of items that are not there", self.astray)
        });
        let mut each = |what: &str, holds: &dyn Fn(&Account) -> bool| {
            let wrong = self.items.iter().filter(|(_, item)| !holds(item));
            let (count, first) = (wrong.clone().count(), wrong.min_by_key(|(id, _)| **id));
            consistency.expect(count == 0, || {
                format!("{way}: {count} items {what}; the first is {first:?}")
            });
        };
        each("have a wrong number of bids", &|item| item.bids == item.bids_found);
        let first = if knobs.bids > 0 { FIRST_BID } else { 0 };
        each("have a wrong highest bid", &|item| item.max_bid == item.max_bid_found.max(first));
        each("have a stock that contradicts their purchases", &|item| {
            item.quantity == i64::from(stock) - item.bought
        });
        each("have been sold more often than their stock allows", &|item| {
            !knobs.refuse_sold_out || item.quantity >= 0
        });
        // Purchases take one piece at a time, so an item with a negative quantity once had none
        // left.
        each("ended neither at the planned time nor by the last purchase", &|item| {
            if item.quantity <= 0 {
                item.end_date > YEAR && item.is_ended_by_purchase
            } else {
                item.end_date < YEAR
            }
        });
    }
}
