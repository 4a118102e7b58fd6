//! New-order: a customer orders five to fifteen items.

use candide::schema::{Refused, Updater};
use candide::{Abort, Column, Protocol, Row, Tx};

use super::input::{Line, NewOrderInput};
use super::knobs::OrderIds;
use super::number::{Number, draw};
use super::rows::{
    Customer, CustomerOrder, DistInfo, District, DistrictId, Item, NewOrder, Order, OrderId,
    OrderLine, Stock, Warehouse,
};
use super::store::Store;
use super::tame::Manner;
use super::text::BRAND;
use super::trail::Announcer;

/// The reason why a new order was not entered.
pub(super) enum Refusal {
    /// An item does not exist.
    UnusedItem,
    /// The engine's reason.
    Engine(Abort),
}

impl From<Abort> for Refusal {
    fn from(abort: Abort) -> Self {
        Refusal::Engine(abort)
    }
}

/// An update that takes pieces of an item out of stock, and restocks the item before it runs out.
#[derive(Debug, Clone, Copy)]
struct Take {
    quantity: i32,
    is_remote: bool,
}

impl Updater<Stock> for Take {
    type Target = (Column<Stock, i32>, Column<Stock, u32>, Column<Stock, u32>, Column<Stock, u32>);

    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        (Stock::QUANTITY, Stock::YTD, Stock::ORDERS, Stock::REMOTE_ORDERS)
    }

    fn apply(
        &self,
        (quantity, ytd, orders, remote_orders): &mut (i32, u32, u32, u32),
    ) -> Result<(), Refused> {
        let rest = quantity.wrapping_sub(self.quantity);
        *quantity = if rest >= 10 { rest } else { rest.wrapping_add(91) };
        *ytd = ytd.wrapping_add(self.quantity as u32);
        *orders = orders.wrapping_add(1);
        *remote_orders = remote_orders.wrapping_add(u32::from(self.is_remote));
        Ok(())
    }
}

impl<P: Protocol> Store<P> {
    /// Enters an order and returns its price. `drawn` is the order's number under
    /// [`OrderIds::Once`]; otherwise it is not used.
    pub(super) fn new_order(
        &self,
        tx: &Tx<'_, P>,
        input: &NewOrderInput,
        drawn: OrderId,
        manner: &Manner,
        announcer: Announcer<'_>,
    ) -> Result<i64, Refusal> {
        let &NewOrderInput { warehouse, district, customer, date, .. } = input;
        let tables = &self.tables;
        let home = tables.warehouses.find(tx, &warehouse)?;
        let place = tables.districts.find(tx, &(warehouse, district))?;
        let buyer = tables.customers.find(tx, &(warehouse, district, customer))?;
        buyer.prefetch((Customer::DISCOUNT, Customer::LAST, Customer::CREDIT));
        let tax = i64::from(home.read(Warehouse::TAX)?) + i64::from(place.read(District::TAX)?);
        let number = match self.knobs.order_ids {
            OrderIds::PerAttempt => Number::Known(self.numbers.draw_order(warehouse, district)),
            OrderIds::Once => Number::Known(drawn),
            OrderIds::District => {
                announcer
                    .writes(|writes| writes.update::<District>(&(warehouse, district), "takings"));
                if manner.is_deferred {
                    Number::late(&place)?
                } else {
                    manner.read();
                    Number::Known(place.modify(District::NEXT_ORDER, draw)?)
                }
            }
        };
        self.knobs.think.work();
        let (discount, last, credit) =
            buyer.read((Customer::DISCOUNT, Customer::LAST, Customer::CREDIT))?;
        std::hint::black_box((last, credit));

        let lines = input.lines();
        let all_local = lines.iter().all(|line| line.supplier == warehouse);
        let count = lines.len() as u8;
        // A number that comes later is announced as 0.
        let id = number.known();
        let order = Order {
            warehouse,
            district,
            id,
            customer,
            entered: date,
            lines: count,
            all_local,
            carrier: 0,
        };
        announcer.writes(|writes| {
            if self.knobs.inserts {
                writes.insert::<Order>(&(warehouse, district, id));
                writes.insert::<NewOrder>(&(warehouse, district, id));
                writes.insert::<CustomerOrder>(&(warehouse, district, customer, id));
            }
            for (number, line) in (1..).zip(lines) {
                writes.update::<Stock>(&(line.supplier, line.item), "supply");
                if self.knobs.inserts {
                    writes.insert::<OrderLine>(&(warehouse, district, id, number));
                }
            }
        });
        if self.knobs.inserts {
            let entered = number.insert(tx, &tables.orders, order, |row, id| row.id = id);
            if number.is_early() || entered.is_err() {
                manner.read();
            }
            entered?;
            let waiting = NewOrder { warehouse, district, id };
            number.insert(tx, &tables.new_orders, waiting, |row, id| row.id = id)?;
            let entry = CustomerOrder { warehouse, district, customer, order: id };
            number.insert(tx, &tables.customer_orders, entry, |row, id| row.order = id)?;
        }
        let sum = match count {
            0..=5 => self.enter_lines::<5>(tx, &order, &number, lines)?,
            6..=10 => self.enter_lines::<10>(tx, &order, &number, lines)?,
            _ => self.enter_lines::<15>(tx, &order, &number, lines)?,
        };
        // Both factors are in ten-thousandths.
        Ok(sum * (10_000 - i64::from(discount)) / 10_000 * (10_000 + tax) / 10_000)
    }

    /// Enters the lines of an order, of which there are at most `N`. Returns their price.
    fn enter_lines<const N: usize>(
        &self,
        tx: &Tx<'_, P>,
        order: &Order,
        number: &Number,
        lines: &[Line],
    ) -> Result<i64, Refusal> {
        // Unused places repeat the last line. Looking up its keys again costs little.
        let padded: [Line; N] = std::array::from_fn(|index| lines[index.min(lines.len() - 1)]);
        let items = self.tables.items.find_many(tx, &padded.map(|line| line.item))?;
        let stocks =
            self.tables.stocks.find_many(tx, &padded.map(|line| (line.supplier, line.item)))?;
        let info = Stock::DIST.at(usize::from(order.district) - 1);
        for (item, stock) in items.iter().zip(&stocks) {
            item.prefetch((Item::IMAGE, Item::PRICE, Item::NAME, Item::DATA));
            stock.prefetch((info, Stock::DATA, Stock::QUANTITY, Stock::YTD));
        }
        let mut entered = [OrderLine {
            warehouse: order.warehouse,
            district: order.district,
            order: order.id,
            number: 0,
            item: 0,
            supplier: 0,
            quantity: 0,
            amount: 0,
            dist_info: DistInfo::new([0; 24]),
            delivered: 0,
        }; N];
        let mut sum = 0;
        let mut refusal = None;
        let mut count = 0;
        for (index, line) in lines.iter().enumerate() {
            let row = &mut entered[index];
            let is_remote = line.supplier != order.warehouse;
            let (price, dist_info) =
                match self.take(&items[index], &stocks[index], line, order.district, is_remote) {
                    Ok(taken) => taken,
                    // The lines before this one are already entered. These lines are undone with
                    // the rest of the order.
                    Err(Refusal::UnusedItem) => {
                        refusal = Some(Refusal::UnusedItem);
                        break;
                    }
                    Err(other) => return Err(other),
                };
            count += 1;
            row.number = count;
            (row.item, row.supplier, row.quantity) = (line.item, line.supplier, line.quantity);
            (row.amount, row.dist_info) = (price * u32::from(line.quantity), dist_info);
            sum += i64::from(row.amount);
        }
        if self.knobs.inserts {
            let (table, mut entered) =
                (&self.tables.order_lines, entered.into_iter().take(usize::from(count)));
            match number {
                Number::Known(_) => table.insert_many(tx, entered)?,
                Number::Late(..) => entered.try_for_each(|line| {
                    number.insert(tx, table, line, |line, id| line.order = id)
                })?,
            }
        }
        refusal.map_or(Ok(sum), Err)
    }

    /// Takes the items of one line out of stock. Returns the price of one piece and the text to
    /// print on the line.
    fn take(
        &self,
        item: &Row<'_, Item, P>,
        stock: &Row<'_, Stock, P>,
        line: &Line,
        district: DistrictId,
        is_remote: bool,
    ) -> Result<(u32, DistInfo), Refusal> {
        let found = item.get((Item::IMAGE, Item::PRICE, Item::NAME, Item::DATA))?;
        let (image, price, name, item_data) = found.ok_or(Refusal::UnusedItem)?;
        let (dist_info, stock_data) =
            stock.read((Stock::DIST.at(usize::from(district) - 1), Stock::DATA))?;
        stock.update_with(Take { quantity: i32::from(line.quantity), is_remote })?;
        self.knobs.think.work();
        if self.knobs.full_output {
            std::hint::black_box(
                item_data.as_str().contains(BRAND) && stock_data.as_str().contains(BRAND),
            );
        }
        std::hint::black_box((image, name, item_data, stock_data));
        Ok((price, dist_info))
    }
}
