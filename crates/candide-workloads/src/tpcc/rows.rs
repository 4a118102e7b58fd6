//! The rows of the nine tables, and of the two that serve as indexes.
//!
//! What is read by many and hardly ever written is in the group `row`; what most transactions write
//! is in a group of its own. Money is in cents, taxes and discounts are in ten-thousandths. Numbers
//! begin with 1, and zero means that there is none: no carrier, not delivered.

use candide::{Bytes, Key, Record, Text};

/// The number of a warehouse.
pub type WarehouseId = u16;
/// The number of a district within its warehouse.
pub type DistrictId = u8;
/// The number of a customer within his district.
pub type CustomerId = u16;
/// The number of an order within its district.
pub type OrderId = u32;
/// The number of an item.
pub type ItemId = u32;

/// A last name, made of three syllables.
pub type LastName = Text<16>;
/// What a stock prints on the order lines of one district.
pub type DistInfo = Bytes<24>;

/// Districts of a warehouse.
pub const DISTRICTS: DistrictId = 10;
/// Customers that may have one last name in one district; about fifty are expected of the most
/// frequent names.
pub const NAMESAKES_MAX: usize = 128;

/// A warehouse.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Warehouse {
    /// Its number.
    #[key]
    pub id: WarehouseId,
    /// Its name.
    pub name: Text<10>,
    /// The first line of its address.
    pub street_1: Text<20>,
    /// The second line of its address.
    pub street_2: Text<20>,
    /// Its city.
    pub city: Text<20>,
    /// Its state.
    pub state: Bytes<2>,
    /// Its postal code.
    pub zip: Bytes<9>,
    /// Its sales tax.
    pub tax: u16,
    /// What customers have paid it.
    #[group(takings)]
    pub ytd: i64,
}

/// A district of a warehouse.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct District {
    /// Its warehouse.
    #[key]
    pub warehouse: WarehouseId,
    /// Its number.
    #[key]
    pub id: DistrictId,
    /// Its name.
    pub name: Text<10>,
    /// The first line of its address.
    pub street_1: Text<20>,
    /// The second line of its address.
    pub street_2: Text<20>,
    /// Its city.
    pub city: Text<20>,
    /// Its state.
    pub state: Bytes<2>,
    /// Its postal code.
    pub zip: Bytes<9>,
    /// Its sales tax.
    pub tax: u16,
    /// What customers have paid it.
    #[group(takings)]
    pub ytd: i64,
    /// The number of its next order, unless counters outside the database give the numbers.
    #[group(takings)]
    pub next_order: OrderId,
}

/// A customer of a district.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Customer {
    /// His warehouse.
    #[key]
    pub warehouse: WarehouseId,
    /// His district.
    #[key]
    pub district: DistrictId,
    /// His number.
    #[key]
    pub id: CustomerId,
    /// His first name.
    pub first: Text<16>,
    /// Always "OE".
    pub middle: Bytes<2>,
    /// His last name.
    pub last: LastName,
    /// The first line of his address.
    pub street_1: Text<20>,
    /// The second line of his address.
    pub street_2: Text<20>,
    /// His city.
    pub city: Text<20>,
    /// His state.
    pub state: Bytes<2>,
    /// His postal code.
    pub zip: Bytes<9>,
    /// His telephone number.
    pub phone: Bytes<16>,
    /// When he became a customer.
    pub since: u32,
    /// His credit: "GC" is good, "BC" is bad.
    pub credit: Bytes<2>,
    /// How much credit he has.
    pub credit_limit: i64,
    /// His discount.
    pub discount: u16,
    /// What he owes; negative if he has paid in advance.
    #[group(account)]
    pub balance: i64,
    /// What he has paid.
    #[group(account)]
    pub ytd_payment: i64,
    /// How often he has paid.
    #[group(account)]
    pub payments: u32,
    /// How many orders have been delivered to him.
    #[group(account)]
    pub deliveries: u32,
    /// Whatever there is to say about him.
    #[group(account)]
    pub data: Bytes<500>,
}

/// What the customers of one last name are found by.
#[derive(Debug, Clone, Copy, PartialEq, Key)]
pub struct NameKey {
    /// Their warehouse.
    pub warehouse: WarehouseId,
    /// Their district.
    pub district: DistrictId,
    /// Their last name.
    pub last: LastName,
}

/// The customers of one last name; nothing of it ever changes.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Namesakes {
    /// What they are found by.
    #[key]
    pub name: NameKey,
    /// How many they are.
    pub count: u16,
    /// Their numbers.
    pub customers: [CustomerId; NAMESAKES_MAX],
}

/// A payment.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct History {
    /// The customer's warehouse.
    #[key]
    pub customer_warehouse: WarehouseId,
    /// The payment's number among those of the warehouse's customers, perhaps led by the customer's
    /// own.
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
    /// When.
    pub date: u32,
    /// How much.
    pub amount: i64,
    /// The names of the warehouse and of the district that were paid.
    pub data: Text<24>,
}

/// An order that is not delivered yet.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct NewOrder {
    /// Its warehouse.
    #[key]
    pub warehouse: WarehouseId,
    /// Its district.
    #[key]
    pub district: DistrictId,
    /// Its number.
    #[key]
    pub id: OrderId,
}

/// An order.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct Order {
    /// Its warehouse.
    #[key]
    pub warehouse: WarehouseId,
    /// Its district.
    #[key]
    pub district: DistrictId,
    /// Its number.
    #[key]
    pub id: OrderId,
    /// Whose it is.
    pub customer: CustomerId,
    /// When it was entered.
    pub entered: u32,
    /// How many lines it has.
    pub lines: u8,
    /// Whether everything comes from its own warehouse.
    pub all_local: bool,
    /// Who has delivered it.
    #[group(delivery)]
    pub carrier: u8,
}

/// Leads from a customer to his orders.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct CustomerOrder {
    /// His warehouse.
    #[key]
    pub warehouse: WarehouseId,
    /// His district.
    #[key]
    pub district: DistrictId,
    /// His number.
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
    /// What was ordered.
    pub item: ItemId,
    /// Where it comes from.
    pub supplier: WarehouseId,
    /// How many of it.
    pub quantity: u8,
    /// What they cost together.
    pub amount: u32,
    /// What the stock has printed on it.
    pub dist_info: DistInfo,
    /// When it was delivered.
    #[group(delivery)]
    pub delivered: u32,
}

/// Something to buy.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Item {
    /// Its number.
    #[key]
    pub id: ItemId,
    /// The number of its picture.
    pub image: u32,
    /// What one costs.
    pub price: u32,
    /// Its name.
    pub name: Text<24>,
    /// Brand information.
    pub data: Text<50>,
}

/// What a warehouse has of an item.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Stock {
    /// The warehouse.
    #[key]
    pub warehouse: WarehouseId,
    /// The item.
    #[key]
    pub item: ItemId,
    /// What to print on the order lines of each district.
    pub dist: [DistInfo; DISTRICTS as usize],
    /// Brand information.
    pub data: Text<50>,
    /// How many are there.
    #[group(supply)]
    pub quantity: i32,
    /// How many have been ordered, modulo 2³².
    #[group(supply)]
    pub ytd: u32,
    /// How many order lines have asked for it, modulo 2³².
    #[group(supply)]
    pub orders: u32,
    /// How many of those were of orders of other warehouses, modulo 2³².
    #[group(supply)]
    pub remote_orders: u32,
}
