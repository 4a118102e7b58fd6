//! A warehouse: products with a unique SKU, orders of several lines that are taken whole or not at
//! all, an index that is added while orders run, and a copy of everything through a stream.
//!
//! ```sh
//! cargo run --release -p candide --example inventory
//! ```

use candide::{
    Abort, Database, IndexOptions, Key, Prefix, Record, Session, Table, Text, Tx, Whole,
};
use std::sync::atomic::{AtomicBool, Ordering};

const PRODUCTS: u32 = 60;
const FIRST_STOCK: u32 = 300;
const RESTOCKED: u32 = 10;
const CUSTOMERS: u32 = 40;
const THREADS: u64 = 3;
const ORDERS_PER_THREAD: u64 = 2_000;

#[derive(Key, Clone, Copy, Debug, PartialEq)]
enum Category {
    Tools,
    Seeds,
    Books,
}

/// A product. Orders change the stock and nothing else, so it is a group of its own: lists and
/// price changes do not meet them.
#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[index(columns(category, price))]
struct Product {
    #[key]
    id: u32,
    #[unique]
    sku: Text<12>,
    category: Category,
    price: u32,
    #[group(stock)]
    stock: u32,
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Order {
    #[key]
    id: u64,
    customer: u32,
    lines: u8,
}

/// A line of an order. The key is `(order, number)`; in an ordered table an order's lines are a
/// prefix.
#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[record(ordered)]
struct Line {
    #[key]
    order: u64,
    #[key]
    number: u8,
    product: u32,
    quantity: u32,
}

/// Why an order was not taken.
#[derive(Debug, PartialEq)]
enum OrderError {
    /// Of at least one line.
    OutOfStock,
    Engine(Abort),
}

impl From<Abort> for OrderError {
    fn from(abort: Abort) -> OrderError {
        if abort == Abort::Guard { OrderError::OutOfStock } else { OrderError::Engine(abort) }
    }
}

/// All rows of all tables.
type Contents = (Vec<Product>, Vec<Order>, Vec<Line>);

struct Shop {
    products: Table<Product>,
    orders: Table<Order>,
    lines: Table<Line>,
}

impl Shop {
    fn open(db: &Database) -> Result<Shop, candide::Error> {
        Ok(Shop {
            products: db.table("products")?,
            orders: db.table("orders")?,
            lines: db.table("lines")?,
        })
    }

    /// Adds a product; false if the SKU is taken. That would be found at the end of the
    /// transaction; in an attempt, it is found at the end of the attempt, and does not end the
    /// transaction.
    fn add(&self, tx: &Tx<'_>, product: Product) -> Result<bool, Abort> {
        match tx.attempt(|tx| self.products.insert(tx, product)) {
            Ok(()) => Ok(true),
            Err(Abort::NotUnique) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Takes an order. Not one row is read: the guards are checked at commit, and if one fails
    /// nothing has happened.
    fn order(
        &self,
        tx: &Tx<'_>,
        id: u64,
        customer: u32,
        wanted: &[(u32, u32)],
    ) -> Result<(), OrderError> {
        for (product, quantity) in wanted {
            self.products.update(tx, product, Product::STOCK.sub(*quantity).at_least(0))?;
        }
        self.orders.insert(tx, Order { id, customer, lines: wanted.len() as u8 })?;
        let lines = (1..).zip(wanted).map(|(number, &(product, quantity))| Line {
            order: id,
            number,
            product,
            quantity,
        });
        self.lines.insert_many(tx, lines)?;
        Ok(())
    }

    /// The products of a category, the cheapest first.
    fn list(
        &self,
        tx: &Tx<'_>,
        category: Category,
        limit: usize,
    ) -> Result<Vec<(u32, Text<12>)>, Abort> {
        let by_category_price = self.products.index(Product::BY_CATEGORY_PRICE);
        let products =
            by_category_price.scan(tx, Prefix((category,)), (Product::PRICE, Product::SKU));
        products.take(limit).map(|row| Ok(row?.1)).collect()
    }

    /// Everything, in order.
    fn contents(&self, tx: &Tx<'_>) -> Result<Contents, Abort> {
        let mut products: Vec<_> =
            self.products.iter(tx, Whole).map(|row| Ok(row?.1)).collect::<Result<_, Abort>>()?;
        let mut orders: Vec<_> =
            self.orders.iter(tx, Whole).map(|row| Ok(row?.1)).collect::<Result<_, Abort>>()?;
        let lines =
            self.lines.iter(tx, Whole).map(|row| Ok(row?.1)).collect::<Result<_, Abort>>()?;
        products.sort_by_key(|product| product.id);
        orders.sort_by_key(|order| order.id);
        Ok((products, orders, lines))
    }
}

/// One thread's orders: at least a certain number, and until `stop`. Gives how many were taken and
/// how many refused.
fn sell(
    shop: &Shop,
    session: &mut Session,
    seed: u64,
    stop: &AtomicBool,
) -> Result<(u64, u64), Abort> {
    let mut random = seed;
    let mut below = |bound: u32| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as u32 % bound
    };
    let (mut taken, mut refused) = (0, 0);
    while taken + refused < ORDERS_PER_THREAD || !stop.load(Ordering::Relaxed) {
        let wanted: Vec<_> = (0..1 + below(4)).map(|_| (below(PRODUCTS), 1 + below(5))).collect();
        let (id, customer) = (seed << 32 | (taken + refused), below(CUSTOMERS));
        match session.try_run(|tx| shop.order(tx, id, customer, &wanted)) {
            Ok(()) => taken += 1,
            Err(OrderError::OutOfStock) => refused += 1,
            Err(OrderError::Engine(abort)) => return Err(abort),
        }
    }
    Ok((taken, refused))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Database::new();
    let shop = &Shop::open(&db)?;
    let categories = [Category::Tools, Category::Seeds, Category::Books];
    for (id, category) in (0..PRODUCTS).zip(categories.into_iter().cycle()) {
        let sku = Text::new(&format!("{category:?}-{id:03}"))?;
        let product = Product { id, sku, category, price: 500 + id * 37 % 101, stock: FIRST_STOCK };
        assert!(db.run(|tx| shop.add(tx, product))?);
    }
    let twin = Product {
        id: 1_000,
        sku: Text::new("Seeds-001")?,
        category: Category::Books,
        price: 1,
        stock: 0,
    };
    assert!(!db.run(|tx| shop.add(tx, twin))?, "two products cannot have one SKU");
    let by_sku = shop.products.index(Product::BY_SKU);
    assert_eq!(
        db.run(|tx| by_sku.read(tx, twin.sku, (Product::ID, Product::CATEGORY))),
        Ok((1, Category::Seeds))
    );

    // Orders run while products are restocked and an index on the customers of orders is built.
    let stop = &AtomicBool::new(false);
    let (by_customer, sold) = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for seed in 1..=THREADS {
            let mut session = db.session()?;
            threads.push(scope.spawn(move || sell(shop, &mut session, seed, stop)));
        }
        let restock = |id| db.run(|tx| shop.products.update(tx, id, Product::STOCK.add(RESTOCKED)));
        let restocked = (0..PRODUCTS).try_for_each(restock);
        let by_customer =
            shop.orders.create_index("by_customer", Order::CUSTOMER, IndexOptions::ordered());
        stop.store(true, Ordering::Relaxed);
        let mut sold = (0, 0);
        for thread in threads {
            let (taken, refused) = thread.join().expect("no thread panics")?;
            sold = (sold.0 + taken, sold.1 + refused);
        }
        restocked?;
        Ok::<_, Box<dyn std::error::Error>>((by_customer?, sold))
    })?;
    println!(
        "{} orders taken, {} refused; {} attempts met conflicts",
        sold.0,
        sold.1,
        db.stats().total_aborts()
    );

    let (products, orders, lines) = db.run(|tx| shop.contents(tx))?;
    assert_eq!(orders.len() as u64, sold.0, "an order is there if it was taken, and only then");
    assert_eq!(
        lines.len(),
        orders.iter().map(|order| usize::from(order.lines)).sum::<usize>(),
        "orders are whole"
    );
    for product in &products {
        let ordered: u32 =
            lines.iter().filter(|line| line.product == product.id).map(|line| line.quantity).sum();
        assert_eq!(product.stock + ordered, FIRST_STOCK + RESTOCKED, "{product:?}");
    }
    let theirs = db.run(|tx| {
        by_customer.rows(tx, 7, ()).map(|row| Ok(row?.0)).collect::<Result<Vec<u64>, Abort>>()
    })?;
    let searched = orders.iter().filter(|order| order.customer == 7);
    assert!(
        searched.clone().all(|order| theirs.contains(&order.id))
            && searched.count() == theirs.len()
    );
    println!("customer 7 has placed {} orders; lines of the first:", theirs.len());
    for line in lines.iter().filter(|line| line.order == theirs[0]) {
        println!("  {} of product {}", line.quantity, line.product);
    }
    let cheapest = db.run(|tx| shop.list(tx, Category::Seeds, 3))?;
    assert!(cheapest.len() == 3 && cheapest.is_sorted());
    println!("the cheapest seeds: {cheapest:?}");

    // A copy through streams. Export wants the database for itself.
    let mut bytes = Vec::new();
    shop.products.export(&mut bytes)?;
    shop.orders.export(&mut bytes)?;
    shop.lines.export(&mut bytes)?;
    let (copy, mut stream) = (Database::new(), &bytes[..]);
    let copied = Shop::open(&copy)?;
    copied.products.import(&mut stream)?;
    copied.orders.import(&mut stream)?;
    copied.lines.import(&mut stream)?;
    assert_eq!(copy.run(|tx| copied.contents(tx))?, (products, orders, lines), "the copy is equal");
    println!("copied through a stream of {} bytes", bytes.len());
    Ok(())
}
