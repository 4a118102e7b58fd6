//! The process that is killed.
//!
//! Worker `w` runs transactions with the numbers 1, 2, 3, …. Transaction `k` sets the worker's
//! counter to `k`, adds one to the cell `k mod CELLS` of the worker, and moves a random amount from
//! one account to another.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread;

use candide::any::{Chosen, Erased};
use candide::{Abort, Database, Level, LogOptions, Record, Session, Table, Whole};

use super::told::OPENED;
use crate::failure::Failure;
use crate::registry::Choice;

/// The order for a process.
#[derive(Debug)]
pub struct Child {
    /// The directory of the database.
    pub place: PathBuf,
    /// The level for which transactions wait.
    pub level: Level,
    /// The protocol of the database.
    pub protocol: Choice,
    /// The number of threads that run transactions.
    pub workers: usize,
    /// The seed of the transfers.
    pub seed: u64,
    /// Whether the process only reports the contents of the database.
    pub only_looks: bool,
}

/// The number of cells of a worker.
const CELLS: u64 = 16;
const ACCOUNTS: u64 = 32;
/// The amount in each account at first.
const AMOUNT: i64 = 1_000;

/// The last transaction of a worker.
#[derive(Record, Clone, Copy)]
struct Counter {
    #[key]
    worker: u64,
    last: u64,
}

/// The number of a worker's transactions that went to a cell.
#[derive(Record, Clone, Copy)]
struct Cell {
    #[key]
    worker: u64,
    #[key]
    cell: u64,
    count: u64,
}

/// An account, whose amount may be negative.
#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    id: u64,
    amount: i64,
}

/// The tables.
struct Tables {
    counters: Table<Counter, Erased>,
    cells: Table<Cell, Erased>,
    accounts: Table<Account, Erased>,
}

/// Opens the database, checks it, and reports its contents. Then runs transactions for ever, unless
/// the process only reports.
///
/// # Errors
/// The database does not open, an invariant does not hold, or a transaction fails.
pub fn run(order: &Child) -> Result<(), Failure> {
    let Child { place, level, protocol, workers, seed, only_looks } = order;
    let policy: Chosen = protocol.erased();
    // Small files, so that segments follow one another and checkpoints are made.
    let options = LogOptions::new()
        .acknowledge(*level)
        .segment_bytes(64 << 10)
        .checkpoint_bytes(512 << 10)
        .recovery_threads(NonZeroUsize::MIN);
    let db = Database::<Erased>::builder().policy(policy).open(place, options)?;
    let tables = Tables {
        counters: db.table("counters")?,
        cells: db.table("cells")?,
        accounts: db.table("accounts")?,
    };
    let mut session = db.session()?;
    tables.fill(&mut session)?;
    let found = tables.check(&mut session).map_err(|what| Failure::Run(what.into()))?;
    drop(session);
    for (worker, last) in &found {
        tell(&format!("found {worker} {last}.\n"))?;
    }
    tell(&format!("{OPENED}\n"))?;
    if *only_looks {
        return Ok(());
    }
    let sessions: Vec<_> = (0..*workers).map(|_| db.session()).collect::<Result<_, _>>()?;
    let failure = OnceLock::new();
    thread::scope(|scope| {
        let (tables, failure) = (&tables, &failure);
        for (worker, session) in (0..).zip(sessions) {
            let last = found.iter().find(|(found, _)| *found == worker);
            let last = last.map_or(0, |(_, last)| *last);
            let draws = fastrand::Rng::with_seed(seed.wrapping_mul(1_000_003) ^ worker);
            scope.spawn(move || {
                let work = Work { tables, session, worker, draws };
                if let Err(what) = work.run(last, &|| failure.get().is_some()) {
                    failure.get_or_init(|| what);
                }
            });
        }
    });
    match failure.into_inner() {
        Some(what) => Err(Failure::Run(what.into())),
        None => Ok(()),
    }
}

/// Writes a line to standard output, as a whole.
fn tell(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()
}

impl Tables {
    /// Makes the accounts, in one transaction, unless they are there.
    fn fill(&self, session: &mut Session<Erased>) -> Result<(), Abort> {
        session.run(|tx| {
            if self.accounts.get(tx, 0, Whole)?.is_some() {
                return Ok(());
            }
            (0..ACCOUNTS)
                .try_for_each(|id| self.accounts.insert(tx, Account { id, amount: AMOUNT }))
        })
    }

    /// Checks the invariants. Returns the last transaction of each worker.
    fn check(&self, session: &mut Session<Erased>) -> Result<Vec<(u64, u64)>, String> {
        let failed = |error: candide::Error| error.to_string();
        let mut found = Vec::new();
        self.counters
            .for_each_quiescent(|row| found.push((row.worker, row.last)))
            .map_err(failed)?;
        let mut cells = Vec::new();
        self.cells.for_each_quiescent(|row| cells.push(*row)).map_err(failed)?;
        for row in &cells {
            let last = found.iter().find(|(worker, _)| *worker == row.worker);
            let last = last.map_or(0, |(_, last)| *last);
            let count = (1..=last).filter(|number| number % CELLS == row.cell).count() as u64;
            if row.count != count {
                return Err(format!(
                    "cell {} of worker {} has {} transactions, and should have {count} after transaction {last}",
                    row.cell, row.worker, row.count
                ));
            }
        }
        for (worker, last) in &found {
            let cells = cells.iter().filter(|row| row.worker == *worker).count() as u64;
            if cells != CELLS.min(*last) {
                return Err(format!("worker {worker} has {cells} cells after transaction {last}"));
            }
        }
        let sum = session
            .run(|tx| {
                (0..ACCOUNTS).try_fold(0, |sum, id| {
                    let account = self.accounts.get(tx, &id, Whole)?;
                    Ok(sum + account.map_or(0, |account| account.amount))
                })
            })
            .map_err(|abort: Abort| abort.to_string())?;
        let expected = ACCOUNTS as i64 * AMOUNT;
        if sum != expected {
            return Err(format!("the accounts add up to {sum}, and should add up to {expected}"));
        }
        Ok(found)
    }
}

/// A worker.
struct Work<'a> {
    tables: &'a Tables,
    session: Session<Erased>,
    worker: u64,
    draws: fastrand::Rng,
}

impl Work<'_> {
    /// Runs the transactions after number `last`, and reports each, until `is_over` returns true.
    fn run(mut self, last: u64, is_over: &dyn Fn() -> bool) -> Result<(), String> {
        for number in last + 1.. {
            if is_over() {
                break;
            }
            self.transact(number).map_err(|abort| abort.to_string())?;
            tell(&format!("done {} {number}.\n", self.worker))
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn transact(&mut self, number: u64) -> Result<(), Abort> {
        let Work { tables, session, worker, draws } = self;
        let Tables { counters, cells, accounts } = tables;
        let (from, to) = (draws.u64(0..ACCOUNTS), draws.u64(0..ACCOUNTS));
        let (worker, amount) = (*worker, draws.i64(1..100));
        session.run(|tx| {
            counters.put(tx, Counter { worker, last: number })?;
            let key = (worker, number % CELLS);
            match cells.get(tx, &key, Whole)? {
                Some(_) => cells.update(tx, &key, Cell::COUNT.add(1))?,
                None => cells.insert(tx, Cell { worker, cell: key.1, count: 1 })?,
            }
            accounts.update(tx, &from, Account::AMOUNT.sub(amount))?;
            accounts.update(tx, &to, Account::AMOUNT.add(amount))
        })
    }
}
