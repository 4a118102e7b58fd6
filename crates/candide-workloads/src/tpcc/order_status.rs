//! Order-status: reads the newest order of a customer.

use candide::{Abort, Prefix, Protocol, Tx};

use super::input::OrderStatusInput;
use super::rows::{Customer, Order, OrderLine};
use super::store::Store;

impl<P: Protocol> Store<P> {
    pub(super) fn order_status(
        &self,
        tx: &Tx<'_, P>,
        input: &OrderStatusInput,
    ) -> Result<(), Abort> {
        let &OrderStatusInput { warehouse, district, who } = input;
        let tables = &self.tables;
        let customer = self.customer_of(tx, warehouse, district, who)?;
        let columns = (Customer::FIRST, Customer::MIDDLE, Customer::LAST, Customer::BALANCE);
        std::hint::black_box(tables.customers.read(
            tx,
            &(warehouse, district, customer),
            columns,
        )?);
        let newest =
            tables.customer_orders.scan_rev(tx, Prefix((warehouse, district, customer)), ()).next();
        let Some(((.., order), ())) = newest.transpose()? else { return Ok(()) };
        let columns = (Order::ENTERED, Order::CARRIER);
        std::hint::black_box(tables.orders.read(tx, &(warehouse, district, order), columns)?);
        let columns = (
            OrderLine::ITEM,
            OrderLine::SUPPLIER,
            OrderLine::QUANTITY,
            OrderLine::AMOUNT,
            OrderLine::DELIVERED,
        );
        for line in tables.order_lines.scan(tx, Prefix((warehouse, district, order)), columns) {
            std::hint::black_box(line?);
        }
        Ok(())
    }
}
