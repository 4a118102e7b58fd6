//! Reading all tables into contents, in two ways that must agree.

use std::cell::RefCell;
use std::ops::Bound::Unbounded;

use candide::{Protocol, Session};

use super::contents::Contents;
use super::knobs::Tpcc;
use super::rows::{
    Customer, CustomerOrder, DISTRICTS, District, History, Item, NameKey, Namesakes, NewOrder,
    Order, OrderId, OrderLine, Stock, Warehouse,
};
use super::tables::Tables;
use super::text;
use crate::Failure;
use crate::read_back::{Rows, rows};

/// The tables, by means that do not depend on the protocol.
pub(super) struct Reader<'a> {
    items: Rows<'a, Item>,
    stocks: Rows<'a, Stock>,
    warehouses: Rows<'a, Warehouse>,
    districts: Rows<'a, District>,
    customers: Rows<'a, Customer>,
    namesakes: Rows<'a, Namesakes>,
    history: Rows<'a, History>,
    orders: Rows<'a, Order>,
    new_orders: Rows<'a, NewOrder>,
    customer_orders: Rows<'a, CustomerOrder>,
    order_lines: Rows<'a, OrderLine>,
}

/// Reads the contents by transactions and by raw iteration.
pub(super) fn read<P: Protocol>(
    tables: &Tables<P>,
    session: Session<P>,
    knobs: &Tpcc,
    orders: OrderId,
) -> Result<(Contents, Contents), Failure> {
    let session = &RefCell::new(session);
    let reader = Reader {
        items: rows(&tables.items, session),
        stocks: rows(&tables.stocks, session),
        warehouses: rows(&tables.warehouses, session),
        districts: rows(&tables.districts, session),
        customers: rows(&tables.customers, session),
        namesakes: rows(&tables.namesakes, session),
        history: rows(&tables.history, session),
        orders: rows(&tables.orders, session),
        new_orders: rows(&tables.new_orders, session),
        customer_orders: rows(&tables.customer_orders, session),
        order_lines: rows(&tables.order_lines, session),
    };
    Ok((reader.looked_up(knobs, orders)?, reader.iterated(knobs, orders)?))
}

impl Reader<'_> {
    /// Reads by transactions: by key if a table is hashed, by scans if it is ordered.
    fn looked_up(&self, knobs: &Tpcc, orders: OrderId) -> Result<Contents, Failure> {
        let mut contents = Contents::new(knobs, orders);
        let warehouses = || 1..=knobs.warehouses;
        let districts =
            || warehouses().flat_map(|id| (1..=DISTRICTS).map(move |district| (id, district)));
        let mut customers = districts().flat_map(|(id, district)| {
            (1..=knobs.customers).map(move |customer| (id, district, customer))
        });
        let mut names = districts().flat_map(|(warehouse, district)| {
            (0..knobs.names()).map(move |name| NameKey {
                warehouse,
                district,
                last: text::last_name(name),
            })
        });
        let mut stocks = warehouses().flat_map(|id| (1..=knobs.items).map(move |item| (id, item)));
        self.items.by_keys(&mut (1..=knobs.items), &mut |row| contents.item(row))?;
        self.stocks.by_keys(&mut stocks, &mut |row| contents.stock(row))?;
        self.warehouses.by_keys(&mut warehouses(), &mut |row| contents.warehouse(row))?;
        self.districts.by_keys(&mut districts(), &mut |row| contents.district(row))?;
        self.customers.by_keys(&mut customers, &mut |row| contents.customer(row))?;
        self.namesakes.by_keys(&mut names, &mut |row| contents.namesakes(row))?;
        self.history.by_scans(Unbounded, Unbounded, &mut |row| contents.history(row))?;
        self.orders.by_scans(Unbounded, Unbounded, &mut |row| contents.order(row))?;
        self.new_orders.by_scans(Unbounded, Unbounded, &mut |row| contents.new_order(row))?;
        self.customer_orders
            .by_scans(Unbounded, Unbounded, &mut |row| contents.customer_order(row))?;
        self.order_lines.by_scans(Unbounded, Unbounded, &mut |row| contents.order_line(row))?;
        contents.close();
        Ok(contents)
    }

    /// Reads by raw iteration, which also finds rows that no lookup finds.
    fn iterated(&self, knobs: &Tpcc, orders: OrderId) -> Result<Contents, Failure> {
        let mut contents = Contents::new(knobs, orders);
        self.items.by_iteration(&mut |row| contents.item(row))?;
        self.stocks.by_iteration(&mut |row| contents.stock(row))?;
        self.warehouses.by_iteration(&mut |row| contents.warehouse(row))?;
        self.districts.by_iteration(&mut |row| contents.district(row))?;
        self.customers.by_iteration(&mut |row| contents.customer(row))?;
        self.namesakes.by_iteration(&mut |row| contents.namesakes(row))?;
        self.history.by_iteration(&mut |row| contents.history(row))?;
        self.orders.by_iteration(&mut |row| contents.order(row))?;
        self.new_orders.by_iteration(&mut |row| contents.new_order(row))?;
        self.customer_orders.by_iteration(&mut |row| contents.customer_order(row))?;
        self.order_lines.by_iteration(&mut |row| contents.order_line(row))?;
        contents.close();
        Ok(contents)
    }
}
