//! The loader of the tables.

use candide::{Bytes, Database, Protocol, Record, Session, Table};
use fastrand::Rng;

use super::input::LINES_MAX;
use super::knobs::Tpcc;
use super::payment::history_id;
use super::rows::{
    Customer, CustomerId, CustomerOrder, DISTRICTS, District, DistrictId, History, Item, ItemId,
    NAMESAKES_MAX, NameKey, Namesakes, NewOrder, Order, OrderId, OrderLine, Stock, Warehouse,
    WarehouseId,
};
use super::tables::Tables;
use super::text;
use crate::load::run_unmeasured;
use crate::{Failure, Loading, rng};

/// The number of items, or of stocks of one warehouse, that a loader thread inserts as one part.
const CHUNK: ItemId = 1000;
/// The number of rows of about a kilobyte, or orders with lines, that one transaction inserts.
const BATCH: usize = 16;
/// The first random stream of the loader. Lower streams belong to the threads that run
/// transactions.
const FIRST_STREAM: u64 = 1 << 32;

/// The sum that each customer has paid before the run, in cents.
pub(super) const FIRST_PAYMENT: i64 = 1000;
/// The date of loading.
const DATE: u32 = 1;

/// Returns the number of keys that loaders report: one for each item, stock, customer and order.
pub(super) fn keys(knobs: &Tpcc) -> u64 {
    let people = u64::from(DISTRICTS) * u64::from(knobs.customers) * 2;
    u64::from(knobs.items) + u64::from(knobs.warehouses) * (u64::from(knobs.items) + people)
}

/// Fills the tables from several threads. The contents of a row depend only on the seed.
pub(super) fn load<P: Protocol>(
    db: &Database<P>,
    tables: &Tables<P>,
    knobs: &Tpcc,
    loading: &Loading<'_>,
) -> Result<(), Failure> {
    let parts = Part::all(knobs);
    loading.share(db, parts.len(), |session, number| {
        let rng = rng::stream(loading.seed, FIRST_STREAM + number as u64);
        let mut loader = Loader { session, tables, knobs, rng, loading };
        match parts[number] {
            Part::Warehouse(warehouse) => loader.warehouse(warehouse),
            Part::District(warehouse, district) => loader.district(warehouse, district),
            Part::Stocks(warehouse, first) => loader.stocks(warehouse, first),
            Part::Items(first) => loader.items(first),
        }
    })
}

/// A part of the rows, which one loader thread inserts.
#[derive(Clone, Copy)]
enum Part {
    Warehouse(WarehouseId),
    District(WarehouseId, DistrictId),
    Stocks(WarehouseId, ItemId),
    Items(ItemId),
}

impl Part {
    /// Returns all parts, the largest first, so that all loaders end at about the same time.
    fn all(knobs: &Tpcc) -> Vec<Part> {
        let warehouses = 1..=knobs.warehouses;
        let firsts = || (1..=knobs.items).step_by(CHUNK as usize);
        let districts = warehouses
            .clone()
            .flat_map(|id| (1..=DISTRICTS).map(move |district| Part::District(id, district)));
        let stocks =
            warehouses.clone().flat_map(|id| firsts().map(move |first| Part::Stocks(id, first)));
        districts
            .chain(stocks)
            .chain(firsts().map(Part::Items))
            .chain(warehouses.map(Part::Warehouse))
            .collect()
    }
}

/// The loader of one part.
struct Loader<'a, P: Protocol> {
    session: &'a mut Session<P>,
    tables: &'a Tables<P>,
    knobs: &'a Tpcc,
    rng: Rng,
    loading: &'a Loading<'a>,
}

impl<P: Protocol> Loader<'_, P> {
    /// Reports the number of inserted rows. Returns an error if loading is to stop.
    fn loaded(&self, rows: usize) -> Result<(), Failure> {
        (self.loading.progress)(rows as u64);
        self.loading.go_on()
    }

    fn warehouse(&mut self, id: WarehouseId) -> Result<(), Failure> {
        let rng = &mut self.rng;
        let row = Warehouse {
            id,
            name: text::letters(rng, 6, 10),
            street_1: text::letters(rng, 10, 20),
            street_2: text::letters(rng, 10, 20),
            city: text::letters(rng, 10, 20),
            state: text::state(rng),
            zip: text::zip(rng),
            tax: rng.u16(0..=2000),
            ytd: FIRST_PAYMENT * i64::from(self.knobs.customers) * i64::from(DISTRICTS),
        };
        Ok(run_unmeasured(self.session, &mut |tx| self.tables.warehouses.insert(tx, row))?)
    }

    /// Inserts, for each item of the chunk that begins at `first`, the result of `row`.
    fn chunk<R: Record + Copy>(
        &mut self,
        table: &Table<R, P>,
        first: ItemId,
        row: impl Fn(&mut Rng, ItemId) -> R,
    ) -> Result<(), Failure> {
        let ids: Vec<ItemId> = (first..=self.knobs.items.min(first + CHUNK - 1)).collect();
        for ids in ids.chunks(BATCH) {
            let rows: Vec<R> = ids.iter().map(|&id| row(&mut self.rng, id)).collect();
            run_unmeasured(self.session, &mut |tx| table.insert_many(tx, rows.iter().copied()))?;
            self.loaded(rows.len())?;
        }
        Ok(())
    }

    fn items(&mut self, first: ItemId) -> Result<(), Failure> {
        let tables = self.tables;
        self.chunk(&tables.items, first, |rng, id| Item {
            id,
            image: rng.u32(1..=10_000),
            price: rng.u32(100..=10_000),
            name: text::letters(rng, 14, 24),
            data: text::brand_data(rng),
        })
    }

    fn stocks(&mut self, warehouse: WarehouseId, first: ItemId) -> Result<(), Failure> {
        let tables = self.tables;
        self.chunk(&tables.stocks, first, |rng, item| Stock {
            warehouse,
            item,
            dist: std::array::from_fn(|_| text::full_letters(rng)),
            data: text::brand_data(rng),
            quantity: rng.i32(10..=100),
            ytd: 0,
            orders: 0,
            remote_orders: 0,
        })
    }

    /// Inserts a district, its orders, and its customers with one payment each.
    fn district(&mut self, warehouse: WarehouseId, id: DistrictId) -> Result<(), Failure> {
        let rng = &mut self.rng;
        let row = District {
            warehouse,
            id,
            name: text::letters(rng, 6, 10),
            street_1: text::letters(rng, 10, 20),
            street_2: text::letters(rng, 10, 20),
            city: text::letters(rng, 10, 20),
            state: text::state(rng),
            zip: text::zip(rng),
            tax: rng.u16(0..=2000),
            ytd: FIRST_PAYMENT * i64::from(self.knobs.customers),
            next_order: OrderId::from(self.knobs.customers) + 1,
        };
        run_unmeasured(self.session, &mut |tx| self.tables.districts.insert(tx, row))?;
        self.customers(warehouse, id)?;
        self.orders(warehouse, id)
    }

    fn customers(&mut self, warehouse: WarehouseId, district: DistrictId) -> Result<(), Failure> {
        let mut names: Vec<Vec<Customer>> = vec![Vec::new(); usize::from(self.knobs.names())];
        let ids: Vec<CustomerId> = (1..=self.knobs.customers).collect();
        for ids in ids.chunks(BATCH) {
            let mut rows = Vec::with_capacity(BATCH);
            for &id in ids {
                let name = self.name_of(id);
                let row = customer(&mut self.rng, warehouse, district, id, name);
                names[usize::from(name)].push(row);
                let number =
                    u64::from(district - 1) * u64::from(self.knobs.customers) + u64::from(id);
                let history = History {
                    customer_warehouse: warehouse,
                    id: history_id(self.knobs.history_keys, district, id, number),
                    customer: id,
                    customer_district: district,
                    district,
                    warehouse,
                    date: DATE,
                    amount: FIRST_PAYMENT,
                    data: text::letters(&mut self.rng, 12, 24),
                };
                rows.push((row, history));
            }
            run_unmeasured(self.session, &mut |tx| {
                self.tables.customers.insert_many(tx, rows.iter().map(|(row, _)| *row))?;
                self.tables.history.insert_many(tx, rows.iter().map(|(_, history)| *history))
            })?;
            self.loaded(rows.len())?;
        }
        let rows: Vec<Namesakes> =
            (0..).zip(names).map(|(name, people)| namesakes(self.knobs, name, people)).collect();
        for rows in rows.chunks(BATCH) {
            run_unmeasured(self.session, &mut |tx| {
                self.tables.namesakes.insert_many(tx, rows.iter().copied())
            })?;
            self.loading.go_on()?;
        }
        Ok(())
    }

    /// Returns the number of the last name of customer `id`. At least one customer has each name.
    fn name_of(&mut self, id: CustomerId) -> u16 {
        let names = self.knobs.names();
        if id <= names { id - 1 } else { text::name_given(&mut self.rng, names) }
    }

    fn orders(&mut self, warehouse: WarehouseId, district: DistrictId) -> Result<(), Failure> {
        let mut customers: Vec<CustomerId> = (1..=self.knobs.customers).collect();
        self.rng.shuffle(&mut customers);
        let orders: Vec<(OrderId, CustomerId)> = (1..).zip(customers).collect();
        for orders in orders.chunks(BATCH) {
            let (mut rows, mut lines) =
                (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH * LINES_MAX));
            for &(id, customer) in orders {
                let is_delivered = id <= self.knobs.delivered();
                let rng = &mut self.rng;
                let order = Order {
                    warehouse,
                    district,
                    id,
                    customer,
                    entered: DATE,
                    lines: rng.u8(5..=LINES_MAX as u8),
                    all_local: true,
                    carrier: if is_delivered { rng.u8(1..=10) } else { 0 },
                };
                rows.push(order);
                lines.extend((1..=order.lines).map(|number| OrderLine {
                    warehouse,
                    district,
                    order: id,
                    number,
                    item: rng.u32(1..=self.knobs.items),
                    supplier: warehouse,
                    quantity: 5,
                    amount: if is_delivered { 0 } else { rng.u32(1..=999_999) },
                    dist_info: text::full_letters(rng),
                    delivered: if is_delivered { DATE } else { 0 },
                }));
            }
            let waiting = rows.iter().filter(|order| order.carrier == 0);
            let new_orders: Vec<_> =
                waiting.map(|order| NewOrder { warehouse, district, id: order.id }).collect();
            run_unmeasured(self.session, &mut |tx| {
                self.tables.orders.insert_many(tx, rows.iter().copied())?;
                self.tables.new_orders.insert_many(tx, new_orders.iter().copied())?;
                for &Order { customer, id: order, .. } in &rows {
                    self.tables
                        .customer_orders
                        .insert(tx, CustomerOrder { warehouse, district, customer, order })?;
                }
                self.tables.order_lines.insert_many(tx, lines.iter().copied())
            })?;
            self.loaded(rows.len())?;
        }
        Ok(())
    }
}

/// Returns the list of the customers of a name. There is at least one.
fn namesakes(knobs: &Tpcc, name: u16, mut people: Vec<Customer>) -> Namesakes {
    if knobs.sorted_names {
        people.sort_by_key(|person| (person.first, person.id));
    } else {
        people.reverse();
    }
    // The most frequent names have about fifty customers, and [`NAMESAKES_MAX`] is more than
    // ten standard deviations above that.
    assert!(people.len() <= NAMESAKES_MAX, "{} customers have one name", people.len());
    let mut customers = [0; NAMESAKES_MAX];
    customers.iter_mut().zip(&people).for_each(|(id, person)| *id = person.id);
    let Customer { warehouse, district, .. } = people[0];
    let name = NameKey { warehouse, district, last: text::last_name(name) };
    Namesakes { name, count: people.len() as u16, customers }
}

/// Returns a customer as it is before the run.
fn customer(
    rng: &mut Rng,
    warehouse: WarehouseId,
    district: DistrictId,
    id: CustomerId,
    name: u16,
) -> Customer {
    Customer {
        warehouse,
        district,
        id,
        first: text::letters(rng, 8, 16),
        middle: Bytes::new(*b"OE"),
        last: text::last_name(name),
        street_1: text::letters(rng, 10, 20),
        street_2: text::letters(rng, 10, 20),
        city: text::letters(rng, 10, 20),
        state: text::state(rng),
        zip: text::zip(rng),
        phone: text::phone(rng),
        since: DATE,
        credit: Bytes::new(if rng.u32(..10) == 0 { *b"BC" } else { *b"GC" }),
        credit_limit: 5_000_000,
        discount: rng.u16(0..=5000),
        balance: -FIRST_PAYMENT,
        ytd_payment: FIRST_PAYMENT,
        payments: 1,
        deliveries: 0,
        data: text::padded_letters(rng, 300),
    }
}
