//! The tables, and the source of the numbers of orders and payments.

use std::any::TypeId;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use candide::policy::Policy;
use candide::{Abort, Database, Error, Protocol, Record, Row, Table, TableOptions, Tx};

use super::knobs::{Splits, Tpcc};
use super::rows::{
    Customer, CustomerOrder, DISTRICTS, District, DistrictId, History, Item, Namesakes, NewOrder,
    Order, OrderId, OrderLine, Stock, Warehouse, WarehouseId,
};

/// The tables of all warehouses.
pub struct Tables<P: Protocol> {
    /// Warehouses.
    pub warehouses: Table<Warehouse, P>,
    /// Districts.
    pub districts: Table<District, P>,
    /// Customers.
    pub customers: Table<Customer, P>,
    /// Customers by last name.
    pub namesakes: Table<Namesakes, P>,
    /// Payments.
    pub history: Table<History, P>,
    /// Orders that are not delivered.
    pub new_orders: Table<NewOrder, P>,
    /// Orders.
    pub orders: Table<Order, P>,
    /// Orders by customer.
    pub customer_orders: Table<CustomerOrder, P>,
    /// Lines of orders.
    pub order_lines: Table<OrderLine, P>,
    /// The items that can be ordered.
    pub items: Table<Item, P>,
    /// The stock of each item in each warehouse.
    pub stocks: Table<Stock, P>,
}

impl<P: Protocol> Tables<P> {
    /// Creates the tables, with room for the rows that will be loaded.
    pub(super) fn create(db: &Database<P>, knobs: &Tpcc) -> Result<Self, Error> {
        let warehouses = usize::from(knobs.warehouses);
        let districts = warehouses * usize::from(DISTRICTS);
        let customers = districts * usize::from(knobs.customers);
        let hashed = |rows| {
            let options = TableOptions::default().capacity(rows);
            if knobs.hash_index { options } else { options.ordered() }
        };
        let split = |options: TableOptions, is_split| match knobs.splits {
            Splits::Database => options,
            Splits::DistrictsAndCustomers => options.timestamp_splitting(is_split),
        };
        let (fine, coarse) =
            (|options| split(options, db.splitting()), |options| split(options, false));
        // In the published measurements, the knob has no effect on order lines and orders by
        // customer: their keys are always contention-aware.
        let orders = || TableOptions::default().contention_aware_keys(knobs.contention_aware_keys);
        // What deferred transactions read before their commits never changes.
        let is_deferred = knobs.deferred_pct.is_some();
        let kept = |options: TableOptions| if is_deferred { options.permanent() } else { options };
        let fixed = |options: TableOptions| if is_deferred { options.frozen() } else { options };
        Ok(Tables {
            warehouses: db.table_with("warehouses", kept(split(hashed(warehouses), true)))?,
            districts: db.table_with("districts", kept(fine(hashed(districts))))?,
            customers: db.table_with("customers", kept(fine(hashed(customers))))?,
            namesakes: db.table_with(
                "namesakes",
                fixed(coarse(hashed(districts * usize::from(knobs.names())))),
            )?,
            history: db.table_with("history", kept(coarse(TableOptions::default())))?,
            new_orders: db.table_with("new_orders", coarse(orders()))?,
            orders: db.table_with("orders", kept(coarse(orders())))?,
            customer_orders: db
                .table_with("customer_orders", kept(coarse(TableOptions::default())))?,
            order_lines: db.table_with("order_lines", kept(coarse(TableOptions::default())))?,
            items: db.table_with("items", fixed(coarse(hashed(knobs.items as usize))))?,
            stocks: db
                .table_with("stocks", kept(coarse(hashed(knobs.items as usize * warehouses))))?,
        })
    }

    /// Prepares the loaded tables for deferred transactions, if there are any. Freezes the columns
    /// that these read. Under the policy `pipelined`, sets the order in which they lock rows: that
    /// of the flow of data, from the number of a district's next order to the keys of its rows.
    pub(super) fn prepare(&self, knobs: &Tpcc) -> Result<(), Error> {
        if knobs.deferred_pct.is_none() {
            return Ok(());
        }
        if self.districts.policy() == Policy::Pipelined {
            self.districts.set_rank(1)?;
            self.stocks.set_rank(2)?;
            self.new_orders.set_rank(3)?;
            self.orders.set_rank(4)?;
            self.customer_orders.set_rank(5)?;
            self.order_lines.set_rank(6)?;
            self.customers.set_rank(7)?;
        }
        self.warehouses.freeze(Warehouse::TAX)?;
        self.districts.freeze(District::TAX)?;
        self.customers.freeze(Customer::CREDIT)?;
        self.orders.freeze(Order::LINES)?;
        self.order_lines.freeze(OrderLine::AMOUNT)?;
        self.stocks.freeze(Stock::DATA)
    }

    /// Returns the name of each table, and the type of its rows.
    pub(super) fn names(&self) -> Vec<(String, TypeId)> {
        fn name<R: Record, P: Protocol>(table: &Table<R, P>) -> (String, TypeId) {
            (table.name().to_string(), TypeId::of::<R>())
        }
        vec![
            name(&self.warehouses),
            name(&self.districts),
            name(&self.customers),
            name(&self.namesakes),
            name(&self.history),
            name(&self.new_orders),
            name(&self.orders),
            name(&self.customer_orders),
            name(&self.order_lines),
            name(&self.items),
            name(&self.stocks),
        ]
    }
}

/// Finds the rows of `keys`, of which there are from one to `N`, with overlapping cache misses.
/// Calls `each` with the index of each key and its row. If there are fewer than `N` keys, the last
/// key is looked up repeatedly; its row is in the cache by then.
pub(super) fn find_up_to<'t, const N: usize, R: Record, P: Protocol, E: From<Abort>>(
    table: &'t Table<R, P>,
    tx: &'t Tx<'_, P>,
    keys: &[R::Key],
    mut each: impl FnMut(usize, &Row<'t, R, P>) -> Result<(), E>,
) -> Result<(), E> {
    let rows = table
        .find_many(tx, &std::array::from_fn::<_, N, _>(|index| keys[index.min(keys.len() - 1)]))?;
    rows.iter().take(keys.len()).enumerate().try_for_each(|(index, row)| each(index, row))
}

/// A counter with its own cache lines.
#[repr(align(128))]
struct Counter<T>(T);

/// Numbers drawn outside of concurrency control. A drawn number is used up, whether its transaction
/// commits or not.
pub(super) struct Numbers {
    orders: Box<[Counter<AtomicU32>]>,
    payments: Box<[Counter<AtomicU64>]>,
}

impl Numbers {
    /// Creates counters that continue after `loaded` orders in each district and after the same
    /// number of payments of each district's customers.
    pub(super) fn after(warehouses: WarehouseId, loaded: OrderId) -> Self {
        let districts = usize::from(warehouses) * usize::from(DISTRICTS);
        let payments = u64::from(loaded) * u64::from(DISTRICTS);
        Numbers {
            orders: (0..districts).map(|_| Counter(AtomicU32::new(loaded + 1))).collect(),
            payments: (0..warehouses).map(|_| Counter(AtomicU64::new(payments + 1))).collect(),
        }
    }

    /// Draws the number of a new order.
    pub(super) fn draw_order(&self, warehouse: WarehouseId, district: DistrictId) -> OrderId {
        self.orders_of(warehouse, district).fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number that the next order of a district will have.
    pub(super) fn next_order(&self, warehouse: WarehouseId, district: DistrictId) -> OrderId {
        self.orders_of(warehouse, district).load(Ordering::Relaxed)
    }

    fn orders_of(&self, warehouse: WarehouseId, district: DistrictId) -> &AtomicU32 {
        &self.orders[district_index(warehouse, district)].0
    }

    /// Draws the number of a payment by a customer of a warehouse.
    pub(super) fn draw_payment(&self, warehouse: WarehouseId) -> u64 {
        self.payments[usize::from(warehouse) - 1].0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Returns the index of a district in a list of all districts.
pub(super) fn district_index(warehouse: WarehouseId, district: DistrictId) -> usize {
    (usize::from(warehouse) - 1) * usize::from(DISTRICTS) + usize::from(district) - 1
}

/// Returns the district at index `place` of a list of all districts.
pub(super) fn district_at(place: usize) -> (WarehouseId, DistrictId) {
    let districts = usize::from(DISTRICTS);
    ((place / districts) as WarehouseId + 1, (place % districts) as DistrictId + 1)
}
