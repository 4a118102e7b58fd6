//! Delivery: the oldest undelivered order of each district of a warehouse is delivered.

use candide::{Abort, Protocol, Tx};

use super::input::DeliveryInput;
use super::rows::{
    Customer, DISTRICTS, DistrictId, NewOrder, Order, OrderId, OrderLine, WarehouseId,
};
use super::store::Store;
use super::tables::{district_index, find_up_to};
use super::tame::Manner;
use super::trail::Announcer;

/// The order that was delivered in each district; 0 if the district had none.
pub(super) type Delivered = [OrderId; DISTRICTS as usize];

/// For each district, the order number from which to search for the next order; 0 is the beginning.
pub(super) struct Hints(Vec<OrderId>);

impl Hints {
    /// Creates hints that all point to the beginning.
    pub(super) fn new(warehouses: WarehouseId) -> Self {
        Hints(vec![0; usize::from(warehouses) * usize::from(DISTRICTS)])
    }

    /// Returns the hints for the districts of a warehouse.
    pub(super) fn of(&self, warehouse: WarehouseId) -> &[OrderId] {
        &self.0[district_index(warehouse, 1)..][..usize::from(DISTRICTS)]
    }

    /// Remembers, after a committed delivery, the numbers behind those of the orders that it found.
    /// In a district in which it found none, the number stays. So an order that was entered late is
    /// found when the order with that number is not there.
    pub(super) fn advance(&mut self, warehouse: WarehouseId, delivered: &Delivered) {
        let hints = &mut self.0[district_index(warehouse, 1)..];
        let found = hints.iter_mut().zip(delivered).filter(|(_, id)| **id > 0);
        found.for_each(|(hint, &id)| *hint = (*hint).max(id + 1));
    }

    /// Remembers the orders that a committed delivery found. In a district in which the delivery
    /// found no order, the next search starts at the beginning.
    pub(super) fn remember(&mut self, warehouse: WarehouseId, delivered: &Delivered) {
        self.0[district_index(warehouse, 1)..][..usize::from(DISTRICTS)].copy_from_slice(delivered);
    }
}

impl<P: Protocol> Store<P> {
    /// Delivers the oldest order of each district. The search starts at the district's hint. A
    /// deferred delivery takes the order with the hint as its number, and searches from the
    /// beginning only if there is none: then it is not tame.
    pub(super) fn delivery(
        &self,
        tx: &Tx<'_, P>,
        input: &DeliveryInput,
        hints: &[OrderId],
        manner: &Manner,
        announcer: Announcer<'_>,
    ) -> Result<Delivered, Abort> {
        let &DeliveryInput { warehouse, carrier, date } = input;
        let tables = &self.tables;
        let mut delivered = Delivered::default();
        for ((district, &hint), found) in (1..).zip(hints).zip(&mut delivered) {
            let expected = match hint > 0 && manner.is_deferred {
                true => self.expected(tx, (warehouse, district, hint))?,
                false => None,
            };
            let key = match expected {
                Some(key) => key,
                None => {
                    manner.read();
                    let from = if self.knobs.deferred_pct.is_some() { 0 } else { hint };
                    let range = (warehouse, district, from)..=(warehouse, district, OrderId::MAX);
                    match tables.new_orders.scan(tx, range, ()).next().transpose()? {
                        Some((key, ())) => key,
                        None => continue,
                    }
                }
            };
            announcer.writes(|writes| {
                writes.delete::<NewOrder>(&key);
                writes.update::<Order>(&key, "delivery");
            });
            tables.new_orders.delete(tx, &key)?;
            let order = tables.orders.find(tx, &key)?;
            let (customer, count) = order.read((Order::CUSTOMER, Order::LINES))?;
            order.update(Order::CARRIER.set(carrier))?;
            let (.., id) = key;
            let mut lines = [(warehouse, district, id, 0); 15];
            (1..).zip(&mut lines).for_each(|(number, (.., last))| *last = number);
            let lines = &lines[..usize::from(count)];
            announcer.writes(|writes| {
                lines.iter().for_each(|line| writes.update::<OrderLine>(line, "delivery"));
                writes.update::<Customer>(&(warehouse, district, customer), "account");
            });
            let mut sum = 0;
            let mut deliver = |_, line: &candide::Row<'_, OrderLine, P>| -> Result<(), Abort> {
                sum += i64::from(line.read(OrderLine::AMOUNT)?);
                line.update(OrderLine::DELIVERED.set(date))
            };
            match count {
                0..=5 => find_up_to::<5, _, _, _>(&tables.order_lines, tx, lines, &mut deliver)?,
                6..=10 => find_up_to::<10, _, _, _>(&tables.order_lines, tx, lines, &mut deliver)?,
                _ => find_up_to::<15, _, _, _>(&tables.order_lines, tx, lines, &mut deliver)?,
            }
            let update =
                (Customer::BALANCE.wrapping_add(sum), Customer::DELIVERIES.wrapping_add(1));
            tables.customers.update(tx, &(warehouse, district, customer), update)?;
            *found = id;
            self.knobs.think.work();
        }
        Ok(delivered)
    }

    /// Returns `key` if there is an order with this key. Only one thread delivers the orders of a
    /// warehouse, and it has not delivered this one.
    fn expected(
        &self,
        tx: &Tx<'_, P>,
        key: (WarehouseId, DistrictId, OrderId),
    ) -> Result<Option<(WarehouseId, DistrictId, OrderId)>, Abort> {
        Ok(self.tables.orders.get(tx, &key, Order::LINES)?.map(|_| key))
    }
}
