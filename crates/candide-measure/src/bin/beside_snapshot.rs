//! Measures the throughput that a writer loses to a thread that repeatedly reads a whole table from
//! a snapshot. The writer runs TPC-C's mix on one thread: alone, and while another thread
//! repeatedly takes a snapshot and reads all order lines.
//!
//! ```text
//! cargo run --release -p candide-measure --bin beside_snapshot [ROUNDS [mvcc|mvto]]
//! ```
//!
//! A delivery searches for the oldest order of a district. The search passes all rows deleted since
//! the snapshot, since the snapshot keeps them. So there are two kinds of company. In one kind,
//! deliveries remember where to begin the search.
//!
//! Two cores share memory and caches, whatever runs on them. So there is a third kind of turn, in
//! which the other thread reads the order lines of another company, in a separate database.
//!
//! Tables grow from turn to turn, and a turn may have to collect the garbage of the previous one.
//! So six rounds take the three kinds of turn in all six orders. Ratios are between turns of the
//! same round.

use candide::{Abort, Database, Mvcc, Mvto, Protocol, Snapshot, Versioned};
use candide_workloads::tpcc::{OrderLine, Tpcc, TpccTables, TpccWorker};
use candide_workloads::{Loaded, Loading, Worker, Workload};
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The duration of a turn.
const TURN: Duration = Duration::from_secs(1);

/// The activity beside the writer.
#[derive(Debug, Clone, Copy)]
enum Beside {
    Nothing,
    Snapshots,
    OtherSnapshots,
}

/// The orders in which rounds take their turns.
const ORDERS: [[Beside; 3]; 6] = {
    use Beside::{Nothing as N, OtherSnapshots as O, Snapshots as S};
    [[N, S, O], [O, S, N], [S, N, O], [O, N, S], [N, O, S], [S, O, N]]
};

/// A company of TPC-C, and its database.
struct Company<P: Protocol> {
    db: Database<P>,
    loaded: TpccTables<P>,
}

/// The progress of a thread that scans the order lines.
#[derive(Default)]
struct Scanned {
    tables: u64,
    rows: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(12), |rounds| rounds.parse())?;
    match std::env::args().nth(2).as_deref() {
        None | Some(Mvcc::NAME) => compare_both::<Mvcc>(rounds),
        Some(Mvto::NAME) => compare_both::<Mvto>(rounds),
        Some(other) => {
            Err(format!("{other} is no protocol with snapshots; there are mvcc and mvto").into())
        }
    }
}

fn compare_both<P: Versioned>(rounds: usize) -> Result<(), Box<dyn Error>> {
    for delivery_hint in [true, false] {
        println!(
            "deliveries {}",
            if delivery_hint {
                "remember from where on to look"
            } else {
                "look from the beginning"
            }
        );
        compare::<P>(&Tpcc { audit_every: 0, delivery_hint, ..Tpcc::strict() }, rounds)?;
    }
    Ok(())
}

fn compare<P: Versioned>(knobs: &Tpcc, rounds: usize) -> Result<(), Box<dyn Error>> {
    let (company, other) = (Company::<P>::found(knobs, 1)?, Company::<P>::found(knobs, 2)?);
    let mut worker = company.loaded.worker(company.db.session()?, 0);
    work(&mut worker, TURN)?;
    let (mut same, mut separate) = (Vec::new(), Vec::new());
    for order in ORDERS.iter().cycle().take(rounds) {
        let (mut alone, mut beside, mut control, mut scanned) = (0.0, 0.0, 0.0, Scanned::default());
        for turn in order {
            match turn {
                Beside::Nothing => alone = work(&mut worker, TURN)?,
                Beside::Snapshots => (beside, scanned) = company.scanned_beside(&mut worker)?,
                Beside::OtherSnapshots => (control, _) = other.scanned_beside(&mut worker)?,
            }
        }
        println!(
            "alone {alone:.0}/s; beside snapshots {beside:.0}/s, {:.3} of it ({} scans, {} rows); beside those of another database \
             {control:.0}/s, {:.3}",
            beside / alone,
            scanned.tables,
            scanned.rows,
            control / alone
        );
        same.push(beside / alone);
        separate.push(control / alone);
    }
    for (what, ratios) in
        [("of the same database", &mut same), ("of another database", &mut separate)]
    {
        ratios.sort_unstable_by(f64::total_cmp);
        let quarter = |number| ratios[(ratios.len() - 1) * number / 4];
        println!(
            "snapshots {what}: median ratio {:.3}, half of them from {:.3} to {:.3}",
            quarter(2),
            quarter(1),
            quarter(3)
        );
    }
    Ok(())
}

impl<P: Versioned> Company<P> {
    fn found(knobs: &Tpcc, seed: u64) -> Result<Company<P>, Box<dyn Error>> {
        let db = Database::<P>::builder().build()?;
        let loaded = knobs
            .load(&db, &Loading { threads: 2, seed, progress: &|_| {}, stopped: &|| false })?;
        loaded.expect_workers(1);
        Ok(Company { db, loaded })
    }

    /// Returns the transactions per second of `worker` while a thread reads this company's order
    /// lines, and the number of tables and rows that this thread read.
    fn scanned_beside(&self, worker: &mut TpccWorker<P>) -> Result<(f64, Scanned), Box<dyn Error>> {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let scanner = scope.spawn(|| {
                let mut scanned = Scanned::default();
                while !over.load(Ordering::Relaxed) {
                    // Reading a snapshot never fails, so nothing has to be retried.
                    scanned.rows += self.scan(&self.db.snapshot())?;
                    scanned.tables += 1;
                }
                Ok::<_, Abort>(scanned)
            });
            let rate = work(worker, TURN);
            over.store(true, Ordering::Relaxed);
            let scanned = scanner.join().expect("the scanner does not panic")?;
            Ok((rate?, scanned))
        })
    }

    /// Adds up the amounts of all order lines. Returns the number of rows.
    fn scan(&self, snapshot: &Snapshot<P>) -> Result<u64, Abort> {
        let mut cents = 0;
        let lines = &self.loaded.tables().order_lines;
        let rows = snapshot
            .for_each(lines, .., OrderLine::AMOUNT, |_, amount| cents += u64::from(amount))?;
        std::hint::black_box(cents);
        Ok(rows as u64)
    }
}

/// Runs transactions for `time`. Returns the transactions per second.
fn work<P: Protocol>(worker: &mut TpccWorker<P>, time: Duration) -> Result<f64, Abort> {
    let (begun, mut transactions) = (Instant::now(), 0u64);
    while begun.elapsed() < time {
        for _ in 0..100 {
            worker.step()?;
        }
        transactions += 100;
    }
    Ok(transactions as f64 / begun.elapsed().as_secs_f64())
}
