//! A database in files, and three ways to acknowledge its transactions: to wait for the disk each
//! time, to have many transactions wait together, and not to wait.
//!
//! ```text
//! cargo run --release -p candide --example durable [DIRECTORY]
//! ```

use candide::{Abort, Database, Level, Pending, Record, RunOptions};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A counter of visits.
#[derive(Record, Clone, Copy)]
struct Page {
    #[key]
    id: u64,
    visits: u64,
}

/// The number of pages.
const PAGES: u64 = 100;
/// The number of results that wait at the same time, in the second way.
const PENDING_MAX: usize = 1000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args_os().nth(1).map_or_else(
        || std::env::temp_dir().join(format!("candide-durable-{}", std::process::id())),
        Into::into,
    );
    let visits = visit(&directory)?;

    // Everything is there again, also after a loss of power: each way has waited in the end.
    let begun = Instant::now();
    let db = Database::open(&directory)?;
    let pages = db.table::<Page>("pages")?;
    let counted = db.run(|tx| {
        let visits = (0..PAGES).map(|id| pages.read(tx, id, Page::VISITS));
        visits.sum::<Result<u64, Abort>>()
    })?;
    println!("opened again in {:.1?}: {counted} visits", begun.elapsed());
    assert_eq!(counted, visits);
    drop((db, pages));
    if std::env::args_os().nth(1).is_none() {
        std::fs::remove_dir_all(directory)?;
    }
    Ok(())
}

/// Counts visits in the three ways, and returns how many there are.
fn visit(directory: &std::path::Path) -> Result<u64, Box<dyn std::error::Error>> {
    let db = Database::open(directory)?;
    let pages = db.table::<Page>("pages")?;
    db.run(|tx| (0..PAGES).try_for_each(|id| pages.put(tx, Page { id, visits: 0 })))?;
    let mut visits = 0;

    // 1. Each call returns when its transaction is durable. One thread gets one transaction from
    //   each sync of the disk; many threads would share the syncs.
    visits += rate("waiting each time", |number| {
        db.run(|tx| pages.update(tx, number % PAGES, Page::VISITS.add(1)))
    })?;

    // 2. Each call returns at once, and the oldest of many results is waited for. A server would
    // answer its client at that point, or `.await` the result.
    let mut waiting: VecDeque<Pending<()>> = VecDeque::new();
    visits += rate("a thousand at a time", |number| {
        waiting
            .push_back(db.run_logged(|tx| pages.update(tx, number % PAGES, Page::VISITS.add(1))));
        if waiting.len() < PENDING_MAX { Ok(()) } else { waiting.pop_front().unwrap().wait() }
    })?;
    waiting.into_iter().try_for_each(Pending::wait)?;

    // 3. No call waits. A crash may lose the last milliseconds, and never anything else: what is
    //   left is as if the program had stopped a little earlier.
    let memory = RunOptions::new().acknowledge(Level::Memory);
    visits += rate("not waiting", |number| {
        db.with(memory).run(|tx| pages.update(tx, number % PAGES, Page::VISITS.add(1)))
    })?;
    db.sync()?;
    Ok(visits)
}

/// Runs transactions for a fifth of a second, prints their rate, and returns their number.
fn rate(name: &str, mut run: impl FnMut(u64) -> Result<(), Abort>) -> Result<u64, Abort> {
    let begun = Instant::now();
    let mut count = 0;
    while begun.elapsed() < Duration::from_millis(200) {
        run(count)?;
        count += 1;
    }
    println!("{name}: {:.0} transactions/s", count as f64 / begun.elapsed().as_secs_f64());
    Ok(count)
}
