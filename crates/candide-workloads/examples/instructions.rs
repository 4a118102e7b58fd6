//! Runs a given number of transactions on one thread, for counting instructions and misses per transaction:
//!
//! ```text
//! cargo build --release --example instructions
//! for n in 10000 20000; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/instructions occ a $n
//! done
//! ```
//!
//! The difference of the two totals, divided by the difference in transactions, is what one transaction takes; loading and
//! drawing the inputs cancel out. In place of a mix, `tpcc` runs the transactions of TPC-C in a small company, `empty` runs
//! transactions that do nothing by a session of one's own, and `empty-cached` by the one that `Database::run` keeps for the
//! thread.

use candide::{Abort, Database, GlobalLock, Mvcc, Occ, Protocol, Serial, TicToc, Tx};
use candide_workloads::tpcc::Tpcc;
use candide_workloads::ycsb::{Mode, Ycsb};
use candide_workloads::{Loaded, Loading, Worker, Workload};
use std::hint::black_box;

/// Few enough to load quickly under an emulator, with keys as skewed as in the full table.
const ROWS: u64 = 10_000;
/// Inputs, replayed in turn; drawing more would dominate the run.
const INPUTS: usize = 5_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [protocol, mode, transactions] = arguments.as_slice() else {
        return Err(
            "expected three arguments: occ|tictoc|mvcc|serial|global-lock a|b|c|tpcc|empty|empty-cached TRANSACTIONS"
                .into(),
        );
    };
    let transactions = transactions.parse()?;
    match protocol.as_str() {
        "occ" => run::<Occ>(mode, transactions),
        "tictoc" => run::<TicToc>(mode, transactions),
        "mvcc" => run::<Mvcc>(mode, transactions),
        "serial" => run::<Serial>(mode, transactions),
        "global-lock" => run::<GlobalLock>(mode, transactions),
        other => {
            Err(format!("no protocol is called {other:?}; expected occ, tictoc, mvcc, serial or global-lock").into())
        }
    }
}

fn run<P: Protocol>(mode: &str, transactions: u64) -> Result<(), Box<dyn std::error::Error>> {
    match mode {
        "empty" => {
            let mut session = Database::<P>::builder().build()?.session()?;
            (0..transactions).try_for_each(|_| session.run(nothing))?;
            return Ok(());
        }
        "empty-cached" => {
            let db = Database::<P>::builder().build()?;
            (0..transactions).try_for_each(|_| db.run(nothing))?;
            return Ok(());
        }
        _ => {}
    }
    if mode == "tpcc" {
        let company = Tpcc { customers: 300, items: 10_000, audit_every: 0, ..Tpcc::strict() };
        return repeat::<P, _>(&company, transactions);
    }
    let mode: Mode = mode.parse()?;
    repeat::<P, _>(&Ycsb { rows: ROWS, transactions: INPUTS, ..Ycsb::published(mode) }, transactions)
}

fn repeat<P: Protocol, W: Workload>(workload: &W, transactions: u64) -> Result<(), Box<dyn std::error::Error>> {
    let db = Database::<P>::builder().seed(1).build()?;
    let loaded = workload.load(&db, &Loading { threads: 1, seed: 1, progress: &|_| {} })?;
    let mut worker = loaded.worker(db.session()?, 0);
    for _ in 0..transactions {
        worker.step()?;
    }
    loaded.absorb(worker);
    Ok(())
}

/// A transaction that does nothing, which the compiler does not know.
fn nothing<P: Protocol>(tx: &Tx<'_, P>) -> Result<(), Abort> {
    black_box(tx);
    Ok(())
}
