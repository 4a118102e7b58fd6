//! The contents of the tables, gathered so that the conditions between them can be examined.

use super::audit::Waiting;
use super::condition::Condition;
use super::knobs::Tpcc;
use super::rows::{
    Customer, CustomerId, CustomerOrder, DISTRICTS, DistInfo, District, DistrictId, History, Item,
    ItemId, LastName, NameKey, Namesakes, NewOrder, Order, OrderId, OrderLine, Stock, Warehouse,
    WarehouseId,
};
use super::tables::{district_at, district_index};

/// The contents of all tables, in a form that does not depend on the order of the rows within a
/// table. Items, stocks and customers must be read before the rows that refer to them.
#[derive(Debug, PartialEq)]
pub(super) struct Contents {
    pub(super) warehouses: Vec<Takings>,
    pub(super) districts: Vec<DistrictBook>,
    pub(super) customers: Vec<CustomerBook>,
    pub(super) stocks: Vec<StockBook>,
    /// The price of each item; 0 if it is missing.
    prices: Vec<u32>,
    /// The number of payments.
    pub(super) payments: u64,
    /// The condition that the key of every row is possible, and that no row is missing.
    pub(super) places: Condition,
    /// The condition that customers are found by their last names.
    pub(super) names: Condition,
    /// The condition that order lines agree with items and stocks.
    pub(super) lines: Condition,
    size: Size,
}

/// The sizes of the tables.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Size {
    customers: CustomerId,
    items: ItemId,
    /// A bound above the numbers of all orders.
    orders: OrderId,
    /// The number of the last loaded order.
    loaded: OrderId,
}

impl Size {
    /// Returns the key of the customer at an index in the list of all customers.
    fn customer(&self, place: usize) -> (WarehouseId, DistrictId, CustomerId) {
        let (district, customer) =
            (place / usize::from(self.customers), place % usize::from(self.customers));
        let (warehouse, district) = district_at(district);
        (warehouse, district, customer as CustomerId + 1)
    }
}

/// The sum of the payments received: as stored in the receiver's row (`ytd`), and as computed from
/// the payments (`paid`).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Takings {
    pub(super) is_there: bool,
    pub(super) ytd: i64,
    pub(super) paid: i64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct DistrictBook {
    pub(super) takings: Takings,
    pub(super) next_order: OrderId,
    pub(super) waiting: Waiting,
    /// The orders by their number. The place at index 0 is empty.
    pub(super) orders: Vec<OrderBook>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct OrderBook {
    pub(super) is_there: bool,
    pub(super) is_new: bool,
    pub(super) customer: CustomerId,
    pub(super) lines: u8,
    pub(super) carrier: u8,
    /// The number of entries of the index by customer that lead to this order, and the customer of
    /// the last such entry.
    pub(super) leads: u8,
    pub(super) led_from: CustomerId,
    /// The number of lines found, their numbers (one bit for each), and the number of undelivered
    /// lines.
    pub(super) found: u8,
    pub(super) numbers: u16,
    pub(super) undelivered: u8,
    /// The price of the delivered lines.
    pub(super) amount: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct CustomerBook {
    pub(super) is_there: bool,
    pub(super) balance: i64,
    pub(super) ytd_payment: i64,
    pub(super) payments: u32,
    pub(super) deliveries: u32,
    /// The sum of the customer's payments.
    pub(super) paid: i64,
    pub(super) payments_found: u32,
    last: Option<LastName>,
    /// The number of lists of namesakes with this customer.
    pub(super) named: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct StockBook {
    pub(super) is_there: bool,
    pub(super) quantity: i32,
    pub(super) counts: StockCounts,
    /// The counts as computed from the order lines.
    pub(super) found: StockCounts,
    dist: [Option<DistInfo>; DISTRICTS as usize],
}

/// The counts of a stock, all modulo 2³².
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct StockCounts {
    pub(super) ytd: u32,
    pub(super) orders: u32,
    pub(super) remote_orders: u32,
}

impl Contents {
    /// Creates empty contents, for orders with numbers below `orders`.
    pub(super) fn new(knobs: &Tpcc, orders: OrderId) -> Self {
        let warehouses = usize::from(knobs.warehouses);
        let districts = warehouses * usize::from(DISTRICTS);
        let loaded = OrderId::from(knobs.customers);
        Contents {
            warehouses: vec![Takings::default(); warehouses],
            districts: vec![DistrictBook::default(); districts],
            customers: vec![CustomerBook::default(); districts * usize::from(knobs.customers)],
            stocks: vec![StockBook::default(); warehouses * knobs.items as usize],
            prices: vec![0; knobs.items as usize],
            payments: 0,
            places: Condition::new("rows"),
            names: Condition::new("names"),
            lines: Condition::new("18"),
            size: Size { customers: knobs.customers, items: knobs.items, orders, loaded },
        }
    }

    pub(super) fn warehouse(&mut self, row: &Warehouse) {
        if let Some(book) = self.warehouse_of(row.id) {
            (book.is_there, book.ytd) = (true, row.ytd);
        } else {
            self.places.fail(|| format!("there is an unexpected warehouse {}", row.id));
        }
    }

    pub(super) fn district(&mut self, row: &District) {
        if let Some(book) = self.district_of(row.warehouse, row.id) {
            (book.takings.is_there, book.takings.ytd, book.next_order) =
                (true, row.ytd, row.next_order);
        } else {
            self.places.fail(|| {
                format!("there is an unexpected district ({}, {})", row.warehouse, row.id)
            });
        }
    }

    pub(super) fn customer(&mut self, row: &Customer) {
        if let Some(book) = self.customer_of(row.warehouse, row.district, row.id) {
            (book.is_there, book.last) = (true, Some(row.last));
            (book.balance, book.ytd_payment) = (row.balance, row.ytd_payment);
            (book.payments, book.deliveries) = (row.payments, row.deliveries);
        } else {
            self.places.fail(|| {
                format!(
                    "there is an unexpected customer ({}, {}, {})",
                    row.warehouse, row.district, row.id
                )
            });
        }
    }

    pub(super) fn namesakes(&mut self, row: &Namesakes) {
        let NameKey { warehouse, district, last } = row.name;
        for &id in &row.customers[..usize::from(row.count)] {
            let book = self.customer_of(warehouse, district, id);
            let is_right = book.as_ref().is_some_and(|book| book.last == Some(last));
            if let Some(book) = book {
                book.named = book.named.saturating_add(1);
            }
            self.names.expect(is_right, || {
                format!(
                    "the list of the name {last} has customer ({warehouse}, {district}, {id}), but no \
                     customer of this name has these numbers"
                )
            });
        }
    }

    pub(super) fn history(&mut self, row: &History) {
        self.payments += 1;
        let payer = self.customer_of(row.customer_warehouse, row.customer_district, row.customer);
        let mut is_placed = payer.is_some();
        if let Some(book) = payer {
            book.paid += row.amount;
            book.payments_found += 1;
        }
        let taken = self.district_of(row.warehouse, row.district);
        is_placed &= taken.is_some();
        if let Some(book) = taken {
            book.takings.paid += row.amount;
        }
        if let Some(book) = self.warehouse_of(row.warehouse) {
            book.paid += row.amount;
        }
        self.places.expect(is_placed, || {
            let payer = (row.customer_warehouse, row.customer_district, row.customer);
            format!(
                "there is an unexpected payment of customer {payer:?} to district ({}, {})",
                row.warehouse, row.district
            )
        });
    }

    pub(super) fn order(&mut self, row: &Order) {
        if let Some(book) = self.order_of(row.warehouse, row.district, row.id) {
            book.is_there = true;
            (book.customer, book.lines, book.carrier) = (row.customer, row.lines, row.carrier);
        } else {
            self.places.fail(|| {
                format!(
                    "there is an unexpected order ({}, {}, {})",
                    row.warehouse, row.district, row.id
                )
            });
        }
    }

    pub(super) fn new_order(&mut self, row: &NewOrder) {
        if let Some(book) = self.order_of(row.warehouse, row.district, row.id) {
            book.is_new = true;
            self.districts[district_index(row.warehouse, row.district)].waiting.see(row.id);
        } else {
            self.places.fail(|| {
                format!(
                    "there is an unexpected new order ({}, {}, {})",
                    row.warehouse, row.district, row.id
                )
            });
        }
    }

    pub(super) fn customer_order(&mut self, row: &CustomerOrder) {
        if let Some(book) = self.order_of(row.warehouse, row.district, row.order) {
            book.leads = book.leads.saturating_add(1);
            book.led_from = row.customer;
        } else {
            self.places.fail(|| {
                format!(
                    "an index entry leads customer ({}, {}, {}) to the unexpected order {}",
                    row.warehouse, row.district, row.customer, row.order
                )
            });
        }
    }

    pub(super) fn order_line(&mut self, row: &OrderLine) {
        let OrderLine { warehouse, district, order, number, .. } = *row;
        let key = (warehouse, district, order, number);
        let bit = number.checked_sub(1).and_then(|place| 1u16.checked_shl(u32::from(place)));
        match (self.order_of(warehouse, district, order), bit) {
            (Some(book), Some(bit)) => {
                book.found = book.found.saturating_add(1);
                book.numbers |= bit;
                book.undelivered += u8::from(row.delivered == 0);
                book.amount += if row.delivered == 0 { 0 } else { i64::from(row.amount) };
            }
            _ => return self.places.fail(|| format!("there is an unexpected order line {key:?}")),
        }
        if order <= self.size.loaded {
            return;
        }
        let Some(book) = self.stock_of(row.supplier, row.item) else {
            return self.lines.fail(|| {
                format!(
                    "order line {key:?} is of the unexpected stock ({}, {})",
                    row.supplier, row.item
                )
            });
        };
        book.found.ytd = book.found.ytd.wrapping_add(u32::from(row.quantity));
        book.found.orders = book.found.orders.wrapping_add(1);
        book.found.remote_orders =
            book.found.remote_orders.wrapping_add(u32::from(row.supplier != warehouse));
        let printed = book.dist[usize::from(district) - 1];
        self.lines.expect(printed == Some(row.dist_info), || {
            format!(
                "order line {key:?} has dist_info {:?}, but its stock has {printed:?}",
                row.dist_info
            )
        });
        let price = self.prices[row.item as usize - 1];
        self.lines.expect(
            u64::from(row.amount) == u64::from(row.quantity) * u64::from(price),
            || {
                format!(
                    "order line {key:?} costs {}, for {} items of {price}",
                    row.amount, row.quantity
                )
            },
        );
    }

    pub(super) fn item(&mut self, row: &Item) {
        match (row.id as usize).checked_sub(1).and_then(|place| self.prices.get_mut(place)) {
            Some(price) => *price = row.price,
            None => self.places.fail(|| format!("there is an unexpected item {}", row.id)),
        }
    }

    pub(super) fn stock(&mut self, row: &Stock) {
        if let Some(book) = self.stock_of(row.warehouse, row.item) {
            (book.is_there, book.quantity, book.dist) = (true, row.quantity, row.dist.map(Some));
            book.counts =
                StockCounts { ytd: row.ytd, orders: row.orders, remote_orders: row.remote_orders };
        } else {
            self.places
                .fail(|| format!("there is an unexpected stock ({}, {})", row.warehouse, row.item));
        }
    }

    /// Records the missing rows of the tables of constant size.
    pub(super) fn close(&mut self) {
        let there = |is_there: bool| u64::from(is_there);
        let missing = [
            ("warehouses", self.warehouses.iter().map(|book| 1 - there(book.is_there)).sum()),
            ("districts", self.districts.iter().map(|book| 1 - there(book.takings.is_there)).sum()),
            ("customers", self.customers.iter().map(|book| 1 - there(book.is_there)).sum()),
            ("items", self.prices.iter().map(|&price| there(price == 0)).sum()),
            ("stocks", self.stocks.iter().map(|book| 1 - there(book.is_there)).sum::<u64>()),
        ];
        for (what, count) in missing {
            self.places.expect(count == 0, || format!("{count} {what} are missing"));
        }
        for (place, book) in self.customers.iter().enumerate() {
            self.names.expect(book.named == 1, || {
                format!(
                    "customer {:?} is in {} lists of namesakes",
                    self.size.customer(place),
                    book.named
                )
            });
        }
    }

    /// Returns the key of the customer at an index in the list of all customers.
    pub(super) fn customer_at(&self, place: usize) -> (WarehouseId, DistrictId, CustomerId) {
        self.size.customer(place)
    }

    /// Returns the key of the stock at an index in the list of all stocks.
    pub(super) fn stock_at(&self, place: usize) -> (WarehouseId, ItemId) {
        let items = self.size.items as usize;
        ((place / items) as WarehouseId + 1, (place % items) as ItemId + 1)
    }

    fn warehouse_of(&mut self, id: WarehouseId) -> Option<&mut Takings> {
        self.warehouses.get_mut(usize::from(id).checked_sub(1)?)
    }

    fn has_district(&self, warehouse: WarehouseId, id: DistrictId) -> bool {
        (1..=self.warehouses.len()).contains(&usize::from(warehouse))
            && (1..=DISTRICTS).contains(&id)
    }

    fn district_of(&mut self, warehouse: WarehouseId, id: DistrictId) -> Option<&mut DistrictBook> {
        self.has_district(warehouse, id).then(|| &mut self.districts[district_index(warehouse, id)])
    }

    fn customer_of(
        &mut self,
        warehouse: WarehouseId,
        district: DistrictId,
        id: CustomerId,
    ) -> Option<&mut CustomerBook> {
        let customers = self.size.customers;
        let is_placed = self.has_district(warehouse, district) && (1..=customers).contains(&id);
        let place =
            || district_index(warehouse, district) * usize::from(customers) + usize::from(id) - 1;
        is_placed.then(|| &mut self.customers[place()])
    }

    fn order_of(
        &mut self,
        warehouse: WarehouseId,
        district: DistrictId,
        id: OrderId,
    ) -> Option<&mut OrderBook> {
        if id == 0 || id >= self.size.orders {
            return None;
        }
        let orders = &mut self.district_of(warehouse, district)?.orders;
        let place = id as usize;
        if orders.len() <= place {
            orders.resize(place + 1, OrderBook::default());
        }
        Some(&mut orders[place])
    }

    fn stock_of(&mut self, warehouse: WarehouseId, item: ItemId) -> Option<&mut StockBook> {
        let items = self.size.items;
        let is_placed = (1..=self.warehouses.len()).contains(&usize::from(warehouse))
            && (1..=items).contains(&item);
        is_placed.then(|| {
            &mut self.stocks[(usize::from(warehouse) - 1) * items as usize + item as usize - 1]
        })
    }
}
