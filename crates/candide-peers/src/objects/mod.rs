//! A map and a queue within transactions, in Candide and on the software transactional memories
//! `fast-stm` and `stm`.
//!
//! ```text
//! cd crates/candide-peers
//! cargo run --release --no-default-features --bin objects
//! ```
//!
//! | shape | a transaction |
//! |---|---|
//! | `map` | eight operations on a map of at most 100,000 keys: six look a key up, one inserts a key, one removes a key |
//! | `queue` | pushes a number on a queue, or pops one, by turns; each thread has pushed a thousand before |
//!
//! Transfers between accounts are measured by the command `stores`.
//!
//! The peers are **not word-based**: they replace whole values, which they allocate. Their maps
//! have a variable for each possible key in a `HashMap` that does not change, so that an insert
//! cannot conflict with one of another key. Their queues are lists of variables. After each run,
//! what is left is compared with what has been committed.

pub mod cli;
mod memories;
mod own;
mod work;

use std::error::Error;

use candide_harness::results::{grouped, median};
use candide_harness::table;

use crate::command::{build_note, machine, print_head};
use crate::timed::{Failure, Lot, Sample};
use cli::Options;
use work::{Shape, run_map, run_queue};

/// The names of the sides, in the order of the tables.
const SIDES: [&str; 3] = ["candide-occ", "fast-stm", "stm"];

/// Measures what the options select, and prints a table for each shape and number of threads.
///
/// # Errors
/// What was left after a run is not what has been committed.
pub fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    measure_all(options).map_err(|failure| -> Box<dyn Error> { failure })
}

fn measure_all(options: &Options) -> Result<(), Failure> {
    let facts = ["fast-stm and stm are not word-based: they replace whole values".to_string()];
    print_head(&machine(), facts, &build_note().into_iter().collect::<Vec<_>>());
    for &shape in &options.shape {
        for &threads in &options.threads {
            let mut samples = SIDES.map(|side| (side, Vec::new()));
            for _ in 0..options.runs {
                let lot = Lot { threads, duration: options.duration, seed: options.seed };
                for ((_, samples), sample) in samples.iter_mut().zip(turn(shape, options.keys, lot))
                {
                    samples.push(sample?);
                }
            }
            print(shape, threads, &samples);
        }
    }
    Ok(())
}

/// Makes one run of each side.
fn turn(shape: Shape, keys: u64, lot: Lot) -> [Result<Sample, Failure>; 3] {
    match shape {
        Shape::Map => [
            own::Map::new(keys).and_then(|map| run_map(&map, keys, lot)),
            run_map(&memories::fast::Map::new(keys), keys, lot),
            run_map(&memories::plain::Map::new(keys), keys, lot),
        ],
        Shape::Queue => [
            own::Queue::new().and_then(|queue| run_queue(&queue, lot)),
            run_queue(&memories::fast::Queue::new(), lot),
            run_queue(&memories::plain::Queue::new(), lot),
        ],
    }
}

fn print(shape: Shape, threads: usize, samples: &[(&str, Vec<Sample>)]) {
    let plural = if threads == 1 { "" } else { "s" };
    println!("\n{}, {threads} thread{plural}", shape.name());
    let header = ["", "txn/s", "retries per 100"];
    let mut table = table(&header, 1..header.len());
    for (side, samples) in samples {
        let of =
            |figure: fn(&Sample) -> f64| median(&samples.iter().map(figure).collect::<Vec<_>>());
        table.add_row([
            side.to_string(),
            grouped(of(Sample::tps)),
            format!("{:.2}", of(Sample::retries_per_hundred)),
        ]);
    }
    println!("{table}");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_left_is_what_was_committed_on_every_side() {
        let options = Options {
            shape: vec![Shape::Map, Shape::Queue],
            keys: 50,
            threads: vec![1, 3],
            duration: Duration::from_millis(30),
            runs: 1,
            seed: 1,
        };
        run(&options).expect("all agree");
    }
}
