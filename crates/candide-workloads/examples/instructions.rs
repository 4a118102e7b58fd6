//! Runs a given number of YCSB transactions on one thread, for counting instructions and misses per transaction:
//!
//! ```text
//! cargo build --release --example instructions
//! for n in 10000 20000; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/instructions occ a $n
//! done
//! ```
//!
//! The difference of the two totals, divided by the difference in transactions, is what one transaction takes; loading and
//! drawing the inputs cancel out.

use candide::{Database, GlobalLock, Occ, Protocol, Serial};
use candide_workloads::ycsb::{Mode, Ycsb};
use candide_workloads::{Loaded, Loading, Worker, Workload};

/// Few enough to load quickly under an emulator, with keys as skewed as in the full table.
const ROWS: u64 = 10_000;
/// Inputs, replayed in turn; drawing more would dominate the run.
const INPUTS: usize = 5_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [protocol, mode, transactions] = arguments.as_slice() else {
        return Err("expected three arguments: occ|serial|global-lock a|b|c TRANSACTIONS".into());
    };
    let mode: Mode = mode.parse()?;
    let transactions = transactions.parse()?;
    match protocol.as_str() {
        "occ" => run::<Occ>(mode, transactions),
        "serial" => run::<Serial>(mode, transactions),
        "global-lock" => run::<GlobalLock>(mode, transactions),
        other => Err(format!("no protocol is called {other:?}; expected occ, serial or global-lock").into()),
    }
}

fn run<P: Protocol>(mode: Mode, transactions: u64) -> Result<(), Box<dyn std::error::Error>> {
    let workload = Ycsb { rows: ROWS, transactions: INPUTS, ..Ycsb::published(mode) };
    let db = Database::<P>::builder().seed(1).build()?;
    let loaded = workload.load(&db, &Loading { threads: 1, seed: 1, progress: &|_| {} })?;
    let mut worker = loaded.worker(db.session()?, 0);
    for _ in 0..transactions {
        worker.step()?;
    }
    loaded.absorb(worker);
    Ok(())
}
