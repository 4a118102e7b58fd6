//! Runs a given number of transactions on one thread, so that instructions and cache misses per
//! transaction can be counted:
//!
//! ```text
//! cargo build --release -p candide-measure --bin instructions
//! for n in 10000 20000; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/instructions occ a $n
//! done
//! ```
//!
//! The difference between the two totals, divided by the difference between the numbers of
//! transactions, is the cost of one transaction. The costs of loading and of drawing the inputs
//! cancel out. With the options `--cache-sim=yes --D1=49152,12,64 --LL=2097152,16,64`, callgrind
//! also counts the misses of the first cache and of a last one of 2 MiB.
//!
//! The second argument is a mix of YCSB or one of the following. `tpcc` runs the transactions of
//! TPC-C in a small company. A mix of YCSB and `tpcc` take a fourth argument, `full`: then tables
//! have the size that `candide bench` gives them. With `logged` in the place of `full`, the
//! database lies in files, and transactions do not wait for the log: the counts are those of the
//! sessions' work for the log, as long as there are at most 4,096 transactions. `rubis`,
//! `wikipedia` and `smallbank` always have that size. `empty` runs transactions that do nothing, in
//! an explicit session; `empty-cached` runs them in the session that `Database::run` keeps for the
//! thread. The next three use an ordered table with 8-byte keys, which were inserted in random
//! order: `find-10` reads a word of each of ten random rows, and `scan-10` and `scan-1000` read a
//! word of each of 10 or 1000 neighbouring rows. `insert` inserts the ten lines of an order of
//! TPC-C one by one, and `insert-many` inserts them together.

use candide::{
    Abort, Builder, Bytes, Database, Exclusion, Level, LogOptions, Mvcc, Mvto, Occ, Protocol,
    Record, Serial, TicToc, Tx,
};
use candide_workloads::rubis::Rubis;
use candide_workloads::smallbank::SmallBank;
use candide_workloads::tpcc::Tpcc;
use candide_workloads::wikipedia::Wikipedia;
use candide_workloads::ycsb::{Mode, Ycsb};
use candide_workloads::{Loaded, Loading, Worker, Workload};
use std::hint::black_box;
use std::time::Duration;

/// The number of rows: few enough to load quickly under an emulator. Keys are as skewed as in the
/// full table.
const ROWS: u64 = 10_000;
/// The number of rows of YCSB in `candide bench`.
const FULL_ROWS: u64 = 1_000_000;
/// The number of inputs, which are replayed in a cycle. Drawing more inputs would dominate the run.
const INPUTS: usize = 5_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (protocol, mode, transactions, kind) = match arguments.as_slice() {
        [protocol, mode, transactions] => (protocol, mode, transactions, Kind::Small),
        [protocol, mode, transactions, size] if size == "full" => {
            (protocol, mode, transactions, Kind::Full)
        }
        [protocol, mode, transactions, size] if size == "logged" => {
            (protocol, mode, transactions, Kind::Logged)
        }
        _ => {
            return Err("expected arguments: occ|tictoc|mvcc|mvto|serial|global-lock \
                 a|b|c|tpcc|rubis|wikipedia|smallbank|empty|empty-cached|find-10|scan-10|scan-1000|\
                 insert|insert-many TRANSACTIONS [full|logged]"
                .into());
        }
    };
    let transactions = transactions.parse()?;
    match protocol.as_str() {
        "occ" => run(&Database::<Occ>::builder(), mode, transactions, kind),
        "tictoc" => run(&Database::<TicToc>::builder(), mode, transactions, kind),
        "mvcc" => run(&Database::<Mvcc>::builder(), mode, transactions, kind),
        "mvto" => run(&Database::<Mvto>::builder(), mode, transactions, kind),
        "serial" => run(&Database::<Serial>::builder(), mode, transactions, kind),
        "global-lock" => {
            let builder = Database::<Serial>::builder().policy(Exclusion::GlobalLock);
            run(&builder, mode, transactions, kind)
        }
        other => {
            Err(format!("no protocol is called {other:?}; expected occ, tictoc, mvcc, mvto, serial or global-lock")
                .into())
        }
    }
}

/// What the database is like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Small,
    /// Tables have the size that `candide bench` gives them.
    Full,
    /// Tables are small, and commits are logged.
    Logged,
}

fn run<P: Protocol>(
    builder: &Builder<P>,
    mode: &str,
    transactions: u64,
    kind: Kind,
) -> Result<(), Box<dyn std::error::Error>> {
    match mode {
        "empty" => {
            let mut session = builder.clone().build()?.session()?;
            (0..transactions).try_for_each(|_| session.run(nothing))?;
            return Ok(());
        }
        "empty-cached" => {
            let db = builder.clone().build()?;
            (0..transactions).try_for_each(|_| db.run(nothing))?;
            return Ok(());
        }
        "find-10" => {
            return on_pairs(builder, transactions, |pairs, tx, random| {
                find(pairs, tx, random, 10)
            });
        }
        "scan-10" => {
            return on_pairs(builder, transactions, |pairs, tx, random| {
                scan(pairs, tx, random, 10)
            });
        }
        "scan-1000" => {
            return on_pairs(builder, transactions, |pairs, tx, random| {
                scan(pairs, tx, random, 1_000)
            });
        }
        "insert" => {
            return enter_lines(builder, transactions, |lines, tx, new| {
                for line in new {
                    lines.insert(tx, line)?;
                }
                Ok(())
            });
        }
        "insert-many" => {
            return enter_lines(builder, transactions, |lines, tx, new| lines.insert_many(tx, new));
        }
        "rubis" => return repeat(builder, &Rubis::strict(), transactions, kind),
        "wikipedia" => return repeat(builder, &Wikipedia::strict(), transactions, kind),
        "smallbank" => return repeat(builder, &SmallBank::bench_base(), transactions, kind),
        "tpcc" => {
            let full_company = Tpcc { audit_every: 0, ..Tpcc::strict() };
            let small = Tpcc { customers: 300, items: 10_000, ..full_company.clone() };
            let company = if kind == Kind::Full { &full_company } else { &small };
            return repeat(builder, company, transactions, kind);
        }
        _ => {}
    }
    let mode: Mode = mode.parse()?;
    let rows = if kind == Kind::Full { FULL_ROWS } else { ROWS };
    let workload = Ycsb { rows, transactions: INPUTS, ..Ycsb::published(mode) };
    repeat(builder, &workload, transactions, kind)
}

fn repeat<P: Protocol, W: Workload>(
    builder: &Builder<P>,
    workload: &W,
    transactions: u64,
    kind: Kind,
) -> Result<(), Box<dyn std::error::Error>> {
    let builder = builder.clone().seed(1);
    let directory = std::env::temp_dir().join(format!("instructions-{}", std::process::id()));
    let db = match kind {
        Kind::Logged => {
            let options = LogOptions::new().acknowledge(Level::Memory);
            builder.open(&directory, options.flush_every(Duration::from_secs(3600)))?
        }
        Kind::Small | Kind::Full => builder.build()?,
    };
    let loaded = workload
        .load(&db, &Loading { threads: 1, seed: 1, progress: &|_| {}, stopped: &|| false })?;
    db.sync()?;
    let mut worker = loaded.worker(db.session()?, 0);
    for _ in 0..transactions {
        worker.step()?;
    }
    loaded.absorb(worker);
    if kind == Kind::Logged {
        // The logger's work is not counted, so it does not write what is left.
        std::fs::remove_dir_all(directory)?;
        std::process::exit(0);
    }
    Ok(())
}

/// Runs a transaction that does nothing, without letting the compiler see this.
fn nothing<P: Protocol>(tx: &Tx<'_, P>) -> Result<(), Abort> {
    black_box(tx);
    Ok(())
}

/// A row of two words.
#[derive(Record, Clone, Copy)]
#[record(ordered)]
struct Pair {
    #[key]
    id: u64,
    value: u64,
}

type Pairs<P> = candide::Table<Pair, P>;

/// Runs `transactions` transactions with `body` on an ordered table of [`ROWS`] rows.
fn on_pairs<P: Protocol>(
    builder: &Builder<P>,
    transactions: u64,
    body: impl Fn(&Pairs<P>, &Tx<'_, P>, &mut fastrand::Rng) -> Result<u64, Abort>,
) -> Result<(), Box<dyn std::error::Error>> {
    let db = builder.clone().seed(1).build()?;
    let pairs = db.table::<Pair>("pairs")?;
    let mut random = fastrand::Rng::with_seed(1);
    let mut ids: Vec<u64> = (0..ROWS).collect();
    random.shuffle(&mut ids);
    let mut session = db.session()?;
    for id in ids {
        session.run(|tx| pairs.insert(tx, Pair { id, value: id }))?;
    }
    for _ in 0..transactions {
        black_box(session.run(|tx| body(&pairs, tx, &mut random))?);
    }
    Ok(())
}

/// Reads the values of `count` random rows, and returns their sum.
fn find<P: Protocol>(
    pairs: &Pairs<P>,
    tx: &Tx<'_, P>,
    random: &mut fastrand::Rng,
    count: u64,
) -> Result<u64, Abort> {
    (0..count).map(|_| pairs.read(tx, &random.u64(..ROWS), Pair::VALUE)).sum()
}

/// Reads the values of `count` neighbouring rows, and returns their sum.
fn scan<P: Protocol>(
    pairs: &Pairs<P>,
    tx: &Tx<'_, P>,
    random: &mut fastrand::Rng,
    count: u64,
) -> Result<u64, Abort> {
    let first = random.u64(..ROWS - count);
    let mut sum = 0;
    for row in pairs.scan(tx, first..first + count, Pair::VALUE) {
        sum += row?.1;
    }
    Ok(sum)
}

/// An order line of TPC-C.
#[derive(Record, Clone, Copy)]
#[record(ordered)]
struct Line {
    #[key]
    warehouse: u32,
    #[key]
    district: u8,
    #[key]
    order: u32,
    #[key]
    number: u8,
    item: u32,
    supplier: u32,
    #[group(delivery)]
    delivered: u64,
    quantity: u32,
    cents: u32,
    info: Bytes<24>,
}

/// Runs `transactions` transactions. Each inserts an order of ten lines by `enter`, in a random one
/// of a hundred districts.
fn enter_lines<P: Protocol>(
    builder: &Builder<P>,
    transactions: u64,
    enter: impl Fn(
        &candide::Table<Line, P>,
        &Tx<'_, P>,
        &mut dyn Iterator<Item = Line>,
    ) -> Result<(), Abort>,
) -> Result<(), Box<dyn std::error::Error>> {
    let db = builder.clone().seed(1).build()?;
    let lines = db.table::<Line>("lines")?;
    let mut random = fastrand::Rng::with_seed(1);
    let mut session = db.session()?;
    let mut next = [[1; 10]; 10];
    for _ in 0..transactions {
        let (warehouse, district) = (random.usize(..10), random.usize(..10));
        let order = next[warehouse][district];
        next[warehouse][district] += 1;
        let line = |number| Line {
            warehouse: warehouse as u32,
            district: district as u8,
            order,
            number,
            item: 1,
            supplier: 1,
            delivered: 0,
            quantity: 5,
            cents: 100,
            info: Bytes::new([b'x'; 24]),
        };
        session.run(|tx| enter(&lines, tx, &mut (0..10).map(line)))?;
    }
    Ok(())
}
