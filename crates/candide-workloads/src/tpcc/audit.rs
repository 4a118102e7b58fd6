//! Audit: examines the first four consistency conditions in one transaction, while other
//! transactions run.
//!
//! Conditions on all orders of a district are examined on its newest orders only, since reading all
//! orders would prevent new orders from committing meanwhile.

use std::fmt;

use candide::{Abort, Prefix, Protocol, Tx};

use super::knobs::OrderIds;
use super::rows::{
    DISTRICTS, District, DistrictId, NewOrder, Order, OrderId, Warehouse, WarehouseId,
};
use super::store::Store;

/// The number of newest orders whose lines are counted.
const ORDERS: usize = 50;

impl<P: Protocol> Store<P> {
    /// Examines the conditions on a district. Returns a sentence for each condition that does not
    /// hold.
    pub(super) fn audit(
        &self,
        tx: &Tx<'_, P>,
        warehouse: WarehouseId,
        district: DistrictId,
    ) -> Result<Vec<String>, Abort> {
        let tables = &self.tables;
        let mut failures = Vec::new();

        let ytd = tables.warehouses.read(tx, &warehouse, Warehouse::YTD)?;
        let sum = (1..=DISTRICTS)
            .map(|district| tables.districts.read(tx, &(warehouse, district), District::YTD))
            .sum::<Result<i64, Abort>>()?;
        if ytd != sum {
            failures.push(format!(
                "1 (audited): warehouse {warehouse} has taken {ytd}, and its districts {sum}"
            ));
        }

        let newest = tables
            .orders
            .scan_rev(tx, Prefix((warehouse, district)), Order::ID)
            .next()
            .transpose()?;
        let newest = newest.map_or(0, |(_, id)| id);
        let mut waiting = Waiting::default();
        for new_order in tables.new_orders.scan(tx, Prefix((warehouse, district)), NewOrder::ID) {
            waiting.see(new_order?.1);
        }
        let range = (warehouse, district, waiting.first)..=(warehouse, district, waiting.last);
        let mut undelivered = 0;
        for order in tables.orders.scan(tx, range, Order::CARRIER) {
            undelivered += u32::from(order?.1 == 0);
        }
        // The counter may be ahead of the orders, since a number is drawn before its order is
        // inserted.
        let (next, is_exact) = match self.knobs.order_ids {
            OrderIds::PerAttempt | OrderIds::Once => {
                (self.numbers.next_order(warehouse, district), false)
            }
            OrderIds::District => (
                tables.districts.read(tx, &(warehouse, district), District::NEXT_ORDER)?,
                self.knobs.inserts,
            ),
        };
        let place = || format!("district ({warehouse}, {district})");
        if !numbers_agree(is_exact, next, newest, &waiting) {
            let last = waiting.last;
            failures.push(format!(
                "2 (audited): {}: the next order is {next}, the newest {newest}, the newest new order {last}",
                place()
            ));
        }
        if !waiting.agrees(is_exact, undelivered) {
            failures.push(format!(
                "3 (audited): {}: there are {waiting} new orders, and {undelivered} orders in their range are not delivered",
                place()
            ));
        }

        let (mut expected, mut oldest) = (0, 0);
        for order in tables
            .orders
            .scan_rev(tx, Prefix((warehouse, district)), (Order::ID, Order::LINES))
            .take(ORDERS)
        {
            let (_, (id, lines)) = order?;
            expected += usize::from(lines);
            oldest = id;
        }
        let range = (warehouse, district, oldest, 0)..=(warehouse, district, OrderId::MAX, u8::MAX);
        let mut found = 0;
        for line in tables.order_lines.scan(tx, range, ()) {
            line?;
            found += 1;
        }
        if expected != found {
            failures.push(format!(
                "4 (audited): {}: its orders from {oldest} on state {expected} lines, and have {found}",
                place()
            ));
        }
        Ok(failures)
    }
}

/// The orders of a district that are not delivered yet.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Waiting {
    pub(super) count: u32,
    pub(super) first: OrderId,
    pub(super) last: OrderId,
}

impl Waiting {
    pub(super) fn see(&mut self, id: OrderId) {
        self.first = if self.count == 0 { id } else { self.first.min(id) };
        self.last = self.last.max(id);
        self.count += 1;
    }

    /// Returns whether condition 3 holds. If numbers are drawn outside the database, unused numbers
    /// leave holes. But in any case, there must be as many new orders as undelivered orders. If
    /// `is_exact` is set, there must be no holes either.
    pub(super) fn agrees(&self, is_exact: bool, undelivered: u32) -> bool {
        let span = if self.count == 0 { 0 } else { self.last - self.first + 1 };
        undelivered == self.count && (!is_exact || span == self.count)
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} new orders from {} to {}", self.count, self.first, self.last)
    }
}

/// Returns whether condition 2 holds. If numbers are drawn outside the database, orders may be
/// entered in another order than that of their numbers. So the order with the highest number may be
/// delivered before orders with smaller numbers.
pub(super) fn numbers_agree(
    is_exact: bool,
    next: OrderId,
    newest: OrderId,
    waiting: &Waiting,
) -> bool {
    if is_exact {
        next == newest + 1 && (waiting.count == 0 || waiting.last == newest)
    } else {
        next > newest && newest >= waiting.last
    }
}
