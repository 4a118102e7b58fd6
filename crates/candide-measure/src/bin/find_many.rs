//! Measures the benefit of overlapping cache misses: ten random rows are read by one call of
//! `find_many`, or by ten calls of `find`.
//!
//! ```text
//! cargo run --release -p candide-measure --bin find_many [ROWS]
//! ```
//!
//! The table is many times larger than the last-level cache. The two ways alternate, and medians
//! are compared.

use candide::{Bytes, Database, Record, TableOptions};
use std::hint::black_box;
use std::time::Instant;

/// The number of rows looked up in one transaction.
const KEYS: usize = 10;
/// The number of transactions in a measurement.
const TRANSACTIONS: usize = 100_000;
/// The number of measurements of each kind.
const ROUNDS: usize = 9;

#[derive(Record, Clone, Copy)]
struct Row {
    #[key]
    key: u64,
    value: Bytes<100>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows = std::env::args().nth(1).map_or(Ok(10_000_000), |rows| rows.parse())?;
    let db = Database::new();
    let table = db.table_with::<Row>("rows", TableOptions::default().capacity(rows as usize))?;
    let mut session = db.session()?;
    for first in (0..rows).step_by(100) {
        session.run(|tx| {
            (first..rows.min(first + 100))
                .try_for_each(|key| table.insert(tx, Row { key, value: Bytes::new([1; 100]) }))
        })?;
    }
    println!("{rows} rows, {} MiB", table.memory_bytes() >> 20);
    let mut random = fastrand::Rng::with_seed(1);
    let keys: Vec<[u64; KEYS]> =
        (0..TRANSACTIONS).map(|_| std::array::from_fn(|_| random.u64(..rows))).collect();

    for reads in [false, true] {
        let mut nanos = [Vec::new(), Vec::new()];
        for round in 0..2 * ROUNDS {
            let begun = Instant::now();
            for keys in &keys {
                session.run(|tx| {
                    if round % 2 == 0 {
                        for key in keys {
                            let row = table.find(tx, key)?;
                            if reads {
                                black_box(row.read(Row::VALUE)?);
                            }
                            black_box(row);
                        }
                    } else {
                        let found = table.find_many(tx, keys)?;
                        if reads {
                            found.iter().for_each(|row| row.prefetch(Row::VALUE));
                            for row in &found {
                                black_box(row.read(Row::VALUE)?);
                            }
                        }
                        black_box(found);
                    }
                    Ok(())
                })?;
            }
            nanos[round % 2].push(begun.elapsed().as_nanos() / TRANSACTIONS as u128);
        }
        nanos.iter_mut().for_each(|nanos| nanos.sort_unstable());
        let [find, many] = [nanos[0][ROUNDS / 2], nanos[1][ROUNDS / 2]];
        let what = if reads { "found and read" } else { "found" };
        println!(
            "{KEYS} rows {what}: find {find} ns, find_many {many} ns, ratio {:.2}",
            many as f64 / find as f64
        );
    }
    Ok(())
}
