//! The records of a shop: e-mail addresses, identifiers, dates and money. The second version of the
//! program has other rows, and migrates those of the first.
//!
//! `cargo run -p candide --example shop --features text,uuid,jiff,rust_decimal`

use candide::{
    Database, Error, Field, LogOptions, Migration, Record, Sequence, Table, Tables, Text, Whole,
};
use jiff::civil::Date;
use rust_decimal::Decimal;
use std::path::Path;
use uuid::Uuid;

/// The rows as the first version of the program had them.
mod first {
    use super::{Date, Record, Text, Uuid};

    #[derive(Record, Clone, Copy)]
    pub(super) struct Customer {
        #[key]
        pub(super) id: Uuid,
        #[unique]
        pub(super) email: Text<24>,
        pub(super) since: Date,
    }

    #[derive(Record, Clone, Copy)]
    pub(super) struct Order {
        #[key]
        pub(super) number: u64,
        pub(super) customer: Uuid,
        pub(super) placed: Date,
        pub(super) cents: u32,
    }
}

#[derive(Field, Clone, Copy, Debug, PartialEq, Default)]
struct Address {
    street: Text<32>,
    zip: Text<8>,
    country: [char; 2],
}

/// Longer addresses of e-mail, one column with another name, and two new ones.
#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Customer {
    #[key]
    id: Uuid,
    #[unique]
    email: Text<64>,
    #[renamed = "since"]
    joined: Date,
    #[default]
    address: Address,
    #[default = 0]
    #[group(points)]
    points: u32,
}

#[derive(Field, Clone, Copy, Debug, PartialEq)]
enum State {
    Placed,
    Paid { on: Date, amount: Decimal },
}

/// Money as a decimal number, and a state with data. A function makes these rows of the old ones.
#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Order {
    #[key]
    number: u64,
    #[index]
    customer: Uuid,
    placed: Date,
    total: Decimal,
    state: State,
}

impl From<first::Order> for Order {
    fn from(old: first::Order) -> Order {
        let total = Decimal::new(old.cents.into(), 2);
        let first::Order { number, customer, placed, .. } = old;
        Order { number, customer, placed, total, state: State::Placed }
    }
}

/// The tables of the program.
#[derive(Tables)]
struct Shop {
    customers: Table<Customer>,
    orders: Table<Order>,
    numbers: Sequence,
}

/// Opens the database, and migrates what the first version has left.
fn open(directory: &Path) -> Result<(Database, Shop), Error> {
    let builder = Database::builder()
        .migration(Migration::Apply)
        .migrate::<first::Order, Order>("orders", Order::from);
    let db = builder.open(directory, LogOptions::new())?;
    let shop = Shop::open(&db)?;
    Ok((db, shop))
}

/// Runs the first version of the program.
fn first_year(directory: &Path) -> Result<(), Error> {
    let db = Database::open(directory)?;
    let customers = db.table::<first::Customer>("customers")?;
    let orders = db.table::<first::Order>("orders")?;
    let numbers = db.sequence("numbers")?;
    let since = Date::constant(2025, 11, 28);
    let filled = db.run(|tx| {
        for (id, email) in [(1, "ann@example.org"), (2, "bob@example.org")] {
            let (id, email) = (Uuid::from_u128(id), Text::new(email)?);
            customers.insert(tx, first::Customer { id, email, since })?;
            let number = numbers.next(tx)?;
            let cents = 1_999;
            orders.insert(tx, first::Order { number, customer: id, placed: since, cents })?;
        }
        Ok(())
    });
    Ok(filled?)
}

fn main() -> Result<(), Error> {
    let directory = std::env::temp_dir().join(format!("candide-shop-{}", std::process::id()));
    first_year(&directory)?;
    let (db, shop) = open(&directory)?;
    let by_email = shop.customers.index(Customer::BY_EMAIL);
    let today = Date::constant(2026, 11, 28);
    let number = db.run(|tx| {
        let customer = by_email.read(tx, "ann@example.org", Customer::ID)?;
        let street = Text::new("Rue de la Paix 7")?;
        let address = Address { street, zip: Text::new("75002")?, country: ['F', 'R'] };
        shop.customers.update(tx, customer, Customer::ADDRESS.set(address))?;
        let number = shop.numbers.next(tx)?;
        let total = Decimal::new(12_50, 2);
        let placed = Order { number, customer, placed: today, total, state: State::Placed };
        shop.orders.insert(tx, placed)?;
        Ok(number)
    })?;
    // The payment arrives: the state and the points change together.
    db.run(|tx| {
        let (customer, amount) = shop.orders.read(tx, number, (Order::CUSTOMER, Order::TOTAL))?;
        let paid = State::Paid { on: today, amount };
        shop.orders.update(tx, number, Order::STATE.set(paid))?;
        shop.customers.update(tx, customer, Customer::POINTS.add(1))
    })?;
    let (customer, order) = db.run(|tx| {
        let customer = by_email.read(tx, "ann@example.org", Whole)?;
        Ok((customer, shop.orders.read(tx, number, Whole)?))
    })?;
    println!("{customer:?}\n{order:?}\n");
    assert_eq!((customer.points, customer.joined), (1, Date::constant(2025, 11, 28)));
    println!("the orders, as `candide dump` prints them:");
    assert_eq!(shop.orders.export_json(&mut std::io::stdout())?, 3);
    drop((db, shop, by_email));
    std::fs::remove_dir_all(directory).expect("the directory is ours");
    Ok(())
}
