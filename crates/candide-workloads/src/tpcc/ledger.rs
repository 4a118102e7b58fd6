//! Reading all tables into books, in the two ways that must agree.

use std::ops::Bound;

use candide::{Abort, Ordered, Protocol, Record, Session, Table, Whole};

use super::books::Books;
use super::rows::{DISTRICTS, NameKey, OrderId};
use super::{Store, text};
use crate::Failure;

/// Rows per reading transaction.
const BATCH: usize = 64;

/// By transactions: by key where tables are hashed, by scans where they are ordered.
pub(super) fn looked_up<P: Protocol>(
    store: &Store<P>,
    session: &mut Session<P>,
    orders: OrderId,
) -> Result<Books, Failure> {
    let (tables, knobs) = (&store.tables, &store.knobs);
    let mut books = Books::new(knobs, orders);
    let warehouses = || 1..=knobs.warehouses;
    let districts = || warehouses().flat_map(|id| (1..=DISTRICTS).map(move |district| (id, district)));
    let customers =
        districts().flat_map(|(id, district)| (1..=knobs.customers).map(move |customer| (id, district, customer)));
    let names = districts().flat_map(|(warehouse, district)| {
        (0..knobs.names()).map(move |name| NameKey { warehouse, district, last: text::last_name(name) })
    });
    let stocks = warehouses().flat_map(|id| (1..=knobs.items).map(move |item| (id, item)));
    by_keys(session, &tables.items, 1..=knobs.items, |row| books.item(row))?;
    by_keys(session, &tables.stocks, stocks, |row| books.stock(row))?;
    by_keys(session, &tables.warehouses, warehouses(), |row| books.warehouse(row))?;
    by_keys(session, &tables.districts, districts(), |row| books.district(row))?;
    by_keys(session, &tables.customers, customers, |row| books.customer(row))?;
    by_keys(session, &tables.namesakes, names, |row| books.namesakes(row))?;
    by_scans(session, &tables.history, |row| books.history(row))?;
    by_scans(session, &tables.orders, |row| books.order(row))?;
    by_scans(session, &tables.new_orders, |row| books.new_order(row))?;
    by_scans(session, &tables.customer_orders, |row| books.customer_order(row))?;
    by_scans(session, &tables.order_lines, |row| books.order_line(row))?;
    books.close();
    Ok(books)
}

/// By raw iteration, which also meets what no lookup finds.
pub(super) fn iterated<P: Protocol>(store: &Store<P>, orders: OrderId) -> Result<Books, Failure> {
    let tables = &store.tables;
    let mut books = Books::new(&store.knobs, orders);
    tables.items.for_each_quiescent(|row| books.item(row))?;
    tables.stocks.for_each_quiescent(|row| books.stock(row))?;
    tables.warehouses.for_each_quiescent(|row| books.warehouse(row))?;
    tables.districts.for_each_quiescent(|row| books.district(row))?;
    tables.customers.for_each_quiescent(|row| books.customer(row))?;
    tables.namesakes.for_each_quiescent(|row| books.namesakes(row))?;
    tables.history.for_each_quiescent(|row| books.history(row))?;
    tables.orders.for_each_quiescent(|row| books.order(row))?;
    tables.new_orders.for_each_quiescent(|row| books.new_order(row))?;
    tables.customer_orders.for_each_quiescent(|row| books.customer_order(row))?;
    tables.order_lines.for_each_quiescent(|row| books.order_line(row))?;
    books.close();
    Ok(books)
}

/// Shows the rows of those keys that have one.
fn by_keys<R: Record, P: Protocol>(
    session: &mut Session<P>,
    table: &Table<R, P>,
    keys: impl IntoIterator<Item = R::Key>,
    mut visit: impl FnMut(&R),
) -> Result<(), Abort> {
    let mut keys = keys.into_iter();
    loop {
        let batch: Vec<R::Key> = keys.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            return Ok(());
        }
        let rows: Vec<Option<R>> =
            session.run(|tx| batch.iter().map(|key| table.get(tx, key, Whole)).collect::<Result<_, Abort>>())?;
        rows.iter().flatten().for_each(&mut visit);
    }
}

/// Shows all rows of an ordered table.
fn by_scans<R: Record<Index = Ordered>, P: Protocol>(
    session: &mut Session<P>,
    table: &Table<R, P>,
    mut visit: impl FnMut(&R),
) -> Result<(), Abort> {
    let mut after = Bound::Unbounded;
    loop {
        let rows: Vec<R> = session.run(|tx| {
            let rows = table.scan(tx, (after, Bound::Unbounded), Whole).take(BATCH);
            rows.map(|row| Ok(row?.1)).collect::<Result<_, Abort>>()
        })?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Bound::Excluded(last.key());
        rows.iter().for_each(&mut visit);
    }
}
