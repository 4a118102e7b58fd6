//! The rows of TPC-C's nine tables, and of the two tables that serve as indexes.
//!
//! Columns that many transactions read and hardly any transaction writes are in the group `row`.
//! Columns that most transactions write are in separate groups. Money is in cents; taxes and
//! discounts are in ten-thousandths. Numbers begin with 1. Zero stands for no carrier, or for not
//! delivered.

use candide::{Bytes, Key, Record, Text};

/// The number of a warehouse.
pub type WarehouseId = u16;
/// The number of a district within its warehouse.
pub type DistrictId = u8;
/// The number of a customer within its district.
pub type CustomerId = u16;
/// The number of an order within its district.
pub type OrderId = u32;
/// The number of an item.
pub type ItemId = u32;

/// A last name, made of three syllables.
pub type LastName = Text<16>;
/// The text that a stock prints on the order lines of one district.
pub type DistInfo = Bytes<24>;

/// The number of districts of a warehouse.
pub const DISTRICTS: DistrictId = 10;
/// The largest number of customers with the same last name in one district. The most frequent names
/// are expected to have about fifty customers.
pub const NAMESAKES_MAX: usize = 128;

/// A warehouse.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Warehouse {
    /// The warehouse's number.
    #[key]
    pub id: WarehouseId,
    /// The warehouse's name.
    pub name: Text<10>,
    /// The first line of the warehouse's address.
    pub street_1: Text<20>,
    /// The second line of the warehouse's address.
    pub street_2: Text<20>,
    /// The warehouse's city.
    pub city: Text<20>,
    /// The warehouse's state.
    pub state: Bytes<2>,
    /// The warehouse's postal code.
    pub zip: Bytes<9>,
    /// The warehouse's sales tax.
    pub tax: u16,
    /// The sum that customers have paid to the warehouse.
    #[group(takings)]
    pub ytd: i64,
}

/// A district of a warehouse.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct District {
    /// The district's warehouse.
    #[key]
    pub warehouse: WarehouseId,
    /// The district's number.
    #[key]
    pub id: DistrictId,
    /// The district's name.
    pub name: Text<10>,
    /// The first line of the district's address.
    pub street_1: Text<20>,
    /// The second line of the district's address.
    pub street_2: Text<20>,
    /// The district's city.
    pub city: Text<20>,
    /// The district's state.
    pub state: Bytes<2>,
    /// The district's postal code.
    pub zip: Bytes<9>,
    /// The district's sales tax.
    pub tax: u16,
    /// The sum that customers have paid to the district.
    #[group(takings)]
    pub ytd: i64,
    /// The number of the district's next order; not used if counters outside the database give the
    /// numbers.
    #[group(takings)]
    pub next_order: OrderId,
}

/// A customer of a district.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Customer {
    /// The customer's warehouse.
    #[key]
    pub warehouse: WarehouseId,
    /// The customer's district.
    #[key]
    pub district: DistrictId,
    /// The customer's number.
    #[key]
    pub id: CustomerId,
    /// The customer's first name.
    pub first: Text<16>,
    /// Always "OE".
    pub middle: Bytes<2>,
    /// The customer's last name.
    pub last: LastName,
    /// The first line of the customer's address.
    pub street_1: Text<20>,
    /// The second line of the customer's address.
    pub street_2: Text<20>,
    /// The customer's city.
    pub city: Text<20>,
    /// The customer's state.
    pub state: Bytes<2>,
    /// The customer's postal code.
    pub zip: Bytes<9>,
    /// The customer's telephone number.
    pub phone: Bytes<16>,
    /// The date on which the customer was registered.
    pub since: u32,
    /// The customer's credit: "GC" is good, "BC" is bad.
    pub credit: Bytes<2>,
    /// The customer's credit limit.
    pub credit_limit: i64,
    /// The customer's discount.
    pub discount: u16,
    /// The sum that the customer owes; negative if the customer has paid in advance.
    #[group(account)]
    pub balance: i64,
    /// The sum that the customer has paid.
    #[group(account)]
    pub ytd_payment: i64,
    /// The number of the customer's payments.
    #[group(account)]
    pub payments: u32,
    /// The number of the customer's delivered orders.
    #[group(account)]
    pub deliveries: u32,
    /// Any text about the customer.
    #[group(account)]
    pub data: Bytes<500>,
}

/// The key of the customers of one last name.
#[derive(Debug, Clone, Copy, PartialEq, Key)]
pub struct NameKey {
    /// The customers' warehouse.
    pub warehouse: WarehouseId,
    /// The customers' district.
    pub district: DistrictId,
    /// The customers' last name.
    pub last: LastName,
}

/// The list of the customers with one last name. It never changes.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Namesakes {
    /// The key of the list.
    #[key]
    pub name: NameKey,
    /// The number of the customers.
    pub count: u16,
    /// The numbers of the customers, followed by zeros.
    pub customers: [CustomerId; NAMESAKES_MAX],
}

/// A payment.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct History {
    /// The customer's warehouse.
    #[key]
    pub customer_warehouse: WarehouseId,
    /// The payment's number among the payments of the warehouse's customers. The district and the
    /// customer may precede this number, in the upper bits.
    #[key]
    pub id: u64,
    /// The customer.
    pub customer: CustomerId,
    /// The customer's district.
    pub customer_district: DistrictId,
    /// The district that was paid.
    pub district: DistrictId,
    /// The warehouse that was paid.
    pub warehouse: WarehouseId,
    /// The date of the payment.
    pub date: u32,
    /// The sum that was paid.
    pub amount: i64,
    /// The names of the warehouse and of the district that were paid.
    pub data: Text<24>,
}

/// An order that is not delivered yet.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct NewOrder {
    /// The order's warehouse.
    #[key]
    pub warehouse: WarehouseId,
    /// The order's district.
    #[key]
    pub district: DistrictId,
    /// The order's number.
    #[key]
    pub id: OrderId,
}

/// An order.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct Order {
    /// The order's warehouse.
    #[key]
    pub warehouse: WarehouseId,
    /// The order's district.
    #[key]
    pub district: DistrictId,
    /// The order's number.
    #[key]
    pub id: OrderId,
    /// The customer.
    pub customer: CustomerId,
    /// The date on which the order was entered.
    pub entered: u32,
    /// The number of the order's lines.
    pub lines: u8,
    /// Whether all items come from the order's own warehouse.
    pub all_local: bool,
    /// The number of the carrier that delivered the order; 0 if it is not delivered.
    #[group(delivery)]
    pub carrier: u8,
}

/// An entry that leads from a customer to an order.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct CustomerOrder {
    /// The customer's warehouse.
    #[key]
    pub warehouse: WarehouseId,
    /// The customer's district.
    #[key]
    pub district: DistrictId,
    /// The customer's number.
    #[key]
    pub customer: CustomerId,
    /// The order's number.
    #[key]
    pub order: OrderId,
}

/// A line of an order.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct OrderLine {
    /// The order's warehouse.
    #[key]
    pub warehouse: WarehouseId,
    /// The order's district.
    #[key]
    pub district: DistrictId,
    /// The order's number.
    #[key]
    pub order: OrderId,
    /// The line's number.
    #[key]
    pub number: u8,
    /// The item ordered.
    pub item: ItemId,
    /// The warehouse that supplies the item.
    pub supplier: WarehouseId,
    /// The number of pieces.
    pub quantity: u8,
    /// The price of all pieces together.
    pub amount: u32,
    /// The text that the stock prints on the line.
    pub dist_info: DistInfo,
    /// The date of the line's delivery; 0 if it is not delivered.
    #[group(delivery)]
    pub delivered: u32,
}

/// An item for sale.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Item {
    /// The item's number.
    #[key]
    pub id: ItemId,
    /// The number of the item's picture.
    pub image: u32,
    /// The price of one piece.
    pub price: u32,
    /// The item's name.
    pub name: Text<24>,
    /// Brand information.
    pub data: Text<50>,
}

/// The stock of an item in a warehouse.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Stock {
    /// The warehouse.
    #[key]
    pub warehouse: WarehouseId,
    /// The item.
    #[key]
    pub item: ItemId,
    /// The text to print on the order lines of each district.
    pub dist: [DistInfo; DISTRICTS as usize],
    /// Brand information.
    pub data: Text<50>,
    /// The number of pieces in stock.
    #[group(supply)]
    pub quantity: i32,
    /// The number of pieces ordered, modulo 2³².
    #[group(supply)]
    pub ytd: u32,
    /// The number of order lines that have asked for the item, modulo 2³².
    #[group(supply)]
    pub orders: u32,
    /// The number of these lines that belong to orders of other warehouses, modulo 2³².
    #[group(supply)]
    pub remote_orders: u32,
}
