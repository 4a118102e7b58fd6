//! STO's micro-benchmark of predicates. A transaction checks whether a balance is above ten. If so,
//! the transaction subtracts one; otherwise it adds a thousand.

use std::cell::RefCell;
use std::hint::black_box;
use std::ops::RangeInclusive;
use std::sync::Mutex;

use candide::report::Stats;
use candide::{Abort, Database, Protocol, Record, Session, Table, TableOptions};
use fastrand::Rng;
use serde::Serialize;

use crate::hottest::{if_hot, probe};
use crate::read_back::{Rows, rows};
use crate::replay::{Replay, Stopped, draw_all};
use crate::workload::{lock, require_range, require_share, require_theta, require_transactions};
use crate::{
    Consistency, Failure, Loaded, Loading, Probe, Size, Step, Worker, Workload, Zipf, rng,
};

/// The loaded balance.
const INITIAL: i64 = 1000;
/// The bound above which a balance is decremented.
const ENOUGH: i64 = 10;
/// The sum that is added to a balance that is not above [`ENOUGH`].
const REFILL: i64 = 1000;
/// The range of possible balances.
const POSSIBLE: RangeInclusive<i64> = ENOUGH..=ENOUGH + REFILL;

/// The bytes of a balance.
const BALANCE_BYTES: u64 = 70;

/// A balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
pub struct Balance {
    /// The balance's number.
    #[key]
    pub id: u64,
    /// The amount.
    pub amount: i64,
}

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct Predicate {
    /// The number of balances, which are numbered from 0.
    pub rows: u64,
    /// The share of transactions that only check the balance.
    pub read_only: f64,
    /// The skew with which balances are drawn: 0 is uniform.
    pub theta: f64,
    /// The number of transactions that are generated per thread beforehand and replayed in a cycle.
    pub transactions: usize,
}

impl Predicate {
    /// Returns STO's knobs: a uniform distribution, and every transaction writes. STO takes the
    /// number of balances as an argument; here there are a thousand.
    pub fn published() -> Self {
        Predicate { rows: 1000, read_only: 0.0, theta: 0.0, transactions: 200_000 }
    }
}

impl Workload for Predicate {
    type Loaded<P: Protocol> = PredicateTables<P>;

    const KINDS: &'static [&'static str] = &["look", "change"];
    const TABLES: &'static [&'static str] = &["balances"];

    fn name(&self) -> String {
        "predicate".to_string()
    }

    fn keys(&self) -> u64 {
        self.rows
    }

    fn size(&self) -> Size {
        Size::of(self.rows, "rows", BALANCE_BYTES).with_inputs::<Look>(self.transactions)
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn hottest(&self) -> Option<&'static str> {
        if_hot("balances[0]", self.rows, self.theta)
    }

    fn validate(&self) -> Result<(), String> {
        require_range("rows", 1..=u64::from(u32::MAX), self.rows)?;
        require_share(self.read_only)?;
        require_theta(self.theta)?;
        require_transactions(self.transactions)
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<PredicateTables<P>, Failure> {
        let table =
            db.table_with("balances", TableOptions::default().capacity(self.rows as usize))?;
        loading.fill(db, self.rows, |tx, id| table.insert(tx, Balance { id, amount: INITIAL }))?;
        let due = Mutex::new(i128::from(self.rows) * i128::from(INITIAL));
        Ok(PredicateTables { table, knobs: self.clone(), seed: loading.seed, due })
    }
}

/// The balances.
pub struct PredicateTables<P: Protocol> {
    /// The only table.
    pub table: Table<Balance, P>,
    knobs: Predicate,
    seed: u64,
    /// The sum that all balances together should have: the loaded sum, plus the changes by
    /// committed transactions.
    due: Mutex<i128>,
}

/// One transaction: a balance, and whether it may be changed.
#[derive(Debug, Clone, Copy)]
struct Look {
    id: u32,
    change: bool,
}

impl Look {
    fn draw_all(knobs: &Predicate, rng: &mut Rng, stopped: Stopped<'_>) -> Vec<Look> {
        let zipf = Zipf::new(knobs.rows, knobs.theta);
        let draw = || Look { id: zipf.sample(rng) as u32, change: rng.f64() >= knobs.read_only };
        draw_all(knobs.transactions, stopped, draw)
    }
}

impl<P: Protocol> Loaded<P> for PredicateTables<P> {
    type Worker = PredicateWorker<P>;

    fn worker_unless(
        &self,
        session: Session<P>,
        thread: usize,
        stopped: Stopped<'_>,
    ) -> PredicateWorker<P> {
        let looks =
            Look::draw_all(&self.knobs, &mut rng::stream(self.seed, thread as u64), stopped);
        PredicateWorker {
            session,
            table: self.table.clone(),
            looks: Replay::new(looks, 1),
            brought: 0,
        }
    }

    fn absorb(&self, worker: PredicateWorker<P>) {
        *lock(&self.due) += worker.brought;
    }

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        settle(&rows(&self.table, &RefCell::new(session)), self.knobs.rows, *lock(&self.due))
    }
}

fn settle(table: &Rows<'_, Balance>, rows: u64, due: i128) -> Result<Consistency, Failure> {
    let (mut looked_up, mut iterated) = (Sum::default(), Sum::default());
    table.by_keys(&mut (0..rows), &mut |row| looked_up.count(row))?;
    table.by_iteration(&mut |row| iterated.count(row))?;
    let mut consistency = Consistency::default();
    looked_up.settle("read by transactions", rows, due, &mut consistency);
    iterated.settle("read by raw iteration", rows, due, &mut consistency);
    Ok(consistency)
}

/// The number of balances, and their sum.
#[derive(Debug, Default)]
struct Sum {
    rows: u64,
    amount: i128,
    /// The number of balances that no sequence of transactions produces.
    impossible: u64,
}

impl Sum {
    fn count(&mut self, row: &Balance) {
        self.rows += 1;
        self.amount += i128::from(row.amount);
        self.impossible += u64::from(!POSSIBLE.contains(&row.amount));
    }

    fn settle(&self, way: &str, rows: u64, due: i128, consistency: &mut Consistency) {
        consistency.expect(self.rows == rows, || {
            format!("{way}: {} rows where {rows} were loaded", self.rows)
        });
        consistency.expect(self.amount == due, || {
            format!(
                "{way}: the balances add up to {}, and by the committed transactions to {due}",
                self.amount
            )
        });
        consistency.expect(self.impossible == 0, || {
            let (low, high) = (POSSIBLE.start(), POSSIBLE.end());
            format!("{way}: {} balances are not from {low} to {high}", self.impossible)
        });
    }
}

/// The worker that runs the transactions of one thread.
pub struct PredicateWorker<P: Protocol> {
    session: Session<P>,
    table: Table<Balance, P>,
    looks: Replay<Look>,
    /// The sum that committed transactions have added to balances, less the sum that they have
    /// subtracted.
    brought: i128,
}

impl<P: Protocol> Worker for PredicateWorker<P> {
    fn step(&mut self) -> Result<Step, Abort> {
        let PredicateWorker { session, table, looks, brought } = self;
        let Look { id, change } = looks.next()[0];
        let mut attempts = 0;
        let amount = session.run(|tx| {
            attempts += 1;
            let row = table.find(tx, &u64::from(id))?;
            let is_enough = black_box(row.read(Balance::AMOUNT)? > ENOUGH);
            let amount = match (change, is_enough) {
                (false, _) => return Ok(0),
                (true, true) => -1,
                (true, false) => REFILL,
            };
            row.update(Balance::AMOUNT.add(amount))?;
            Ok(amount)
        })?;
        *brought += i128::from(amount);
        Ok(Step { kind: usize::from(change), committed: true, retries: attempts - 1 })
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }

    fn hottest(&mut self) -> Option<Box<dyn Probe + '_>> {
        probe(&mut self.session, &self.table, 0)
    }
}
