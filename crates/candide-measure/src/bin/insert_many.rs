//! Measures the benefit of keeping the position in an ordered index between inserts: the ten lines
//! of an order are inserted by one call of `insert_many`, or by ten calls of `insert`.
//!
//! ```text
//! cargo run --release -p candide-measure --bin insert_many [ORDERS]
//! ```
//!
//! Each order is inserted in a separate transaction, into a random district of the ten in each of
//! ten warehouses. The two ways alternate and use separate tables. Medians are compared, both of
//! the calls alone and of whole transactions.

use candide::{Bytes, Database, Record};
use std::time::Instant;

/// The number of lines of an order.
const LINES: u8 = 10;
/// The number of measurements of each kind.
const ROUNDS: usize = 9;

/// An order line of TPC-C.
#[derive(Record, Clone, Copy)]
#[record(ordered)]
struct OrderLine {
    #[key]
    warehouse: u32,
    #[key]
    district: u8,
    #[key]
    order: u32,
    #[key]
    line: u8,
    item: u32,
    supplier: u32,
    #[group(delivery)]
    delivered: u64,
    quantity: u32,
    cents: u32,
    info: Bytes<24>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orders = std::env::args().nth(1).map_or(Ok(20_000), |orders| orders.parse())?;
    let db = Database::new();
    let tables = [db.table::<OrderLine>("one by one")?, db.table::<OrderLine>("many")?];
    let mut session = db.session()?;
    let mut random = fastrand::Rng::with_seed(1);
    let mut next = [[1u32; 10]; 10];
    let mut calls = [Vec::new(), Vec::new()];
    let mut whole = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let orders: Vec<(u32, u8, u32)> = (0..orders)
            .map(|_| {
                let (warehouse, district) = (random.usize(..10), random.usize(..10));
                next[warehouse][district] += 1;
                (warehouse as u32, district as u8, next[warehouse][district])
            })
            .collect();
        for (way, table) in tables.iter().enumerate() {
            let (begun, mut inserting) = (Instant::now(), 0);
            for &(warehouse, district, order) in &orders {
                let line = |line| OrderLine {
                    warehouse,
                    district,
                    order,
                    line,
                    item: 1,
                    supplier: warehouse,
                    delivered: 0,
                    quantity: 5,
                    cents: 100,
                    info: Bytes::new([b'x'; 24]),
                };
                session.run(|tx| {
                    let begun = Instant::now();
                    if way == 0 {
                        (0..LINES).try_for_each(|number| table.insert(tx, line(number)))?;
                    } else {
                        table.insert_many(tx, (0..LINES).map(line))?;
                    }
                    inserting += begun.elapsed().as_nanos();
                    Ok(())
                })?;
            }
            calls[way].push(inserting / orders.len() as u128);
            whole[way].push(begun.elapsed().as_nanos() / orders.len() as u128);
        }
    }
    let counts = [0, 1].map(|way| tables[way].for_each_quiescent(|_| {}));
    println!("{counts:?} lines, {} MiB", tables[0].memory_bytes() >> 20);
    for (what, mut nanos) in [("calls", calls), ("whole transactions", whole)] {
        nanos.iter_mut().for_each(|nanos| nanos.sort_unstable());
        let [one, many] = [nanos[0][ROUNDS / 2], nanos[1][ROUNDS / 2]];
        println!(
            "{what}: {LINES} inserts {one} ns, insert_many {many} ns, ratio {:.2}",
            many as f64 / one as f64
        );
    }
    Ok(())
}
