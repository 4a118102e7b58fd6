//! Measures the memory that rows take under each protocol: at rest, and while two threads update
//! them.
//!
//! ```text
//! cargo run --release -p candide-measure --bin bytes_per_row
//! ```
//!
//! The result is the number of bytes per row that the table has taken for its records and for
//! separate versions. Under load, it is the largest of several readings. Keys, headers and
//! timestamps are included; the index is not. No snapshot is open, so old versions are kept only
//! for milliseconds.

use candide::{
    Abort, Bytes, Database, Mvcc, Mvto, Occ, Protocol, Record, Serial, Session, Table, TicToc,
};
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const ROWS: u64 = 1_000_000;
/// The time for which rows are updated, and the number of times that memory is read meanwhile.
const LOAD: Duration = Duration::from_secs(3);
const LOOKS: u32 = 30;

/// A row of sixteen bytes.
#[derive(Record, Clone, Copy)]
struct Counter {
    #[key]
    key: u64,
    count: u64,
}

/// A row of a hundred bytes, in two groups.
#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    key: u64,
    count: u64,
    #[group(rest)]
    rest: Bytes<84>,
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("bytes per row, {ROWS} rows: at rest, under load");
    under::<Serial>()?;
    under::<Occ>()?;
    under::<TicToc>()?;
    under::<Mvcc>()?;
    under::<Mvto>()
}

fn under<P: Protocol>() -> Result<(), Box<dyn Error>> {
    let counters = measure::<P, Counter>(
        |key| Counter { key, count: 0 },
        |table, tx, key| table.update(tx, &key, Counter::COUNT.add(1)),
    )?;
    let accounts = measure::<P, Account>(
        |key| Account { key, count: 0, rest: Bytes::new([0; 84]) },
        |table, tx, key| table.update(tx, &key, Account::COUNT.add(1)),
    )?;
    println!(
        "{:8} a key and a word: {counters}; a hundred bytes in two groups: {accounts}",
        P::NAME
    );
    Ok(())
}

/// Measures the memory of a table whose rows `row` creates and `update` updates, at rest and under
/// load.
fn measure<P: Protocol, R: Record>(
    row: impl Fn(u64) -> R,
    update: impl Fn(&Table<R, P>, &candide::Tx<'_, P>, u64) -> Result<(), Abort> + Sync,
) -> Result<String, Box<dyn Error>> {
    let db = Database::<P>::builder().build()?;
    let table = db.table::<R>("rows")?;
    for first in (0..ROWS).step_by(1_000) {
        db.run(|tx| (first..first + 1_000).try_for_each(|key| table.insert(tx, row(key))))?;
    }
    let bytes = || {
        let table = &db.tables()[0];
        table.record_bytes + table.version_bytes
    };
    let at_rest = bytes();
    let over = AtomicBool::new(false);
    let threads = if P::NAME == Serial::NAME { 1 } else { 2 };
    let sessions = (0..threads).map(|_| db.session()).collect::<Result<Vec<_>, _>>()?;
    let repeat = |mut session: Session<P>, seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        while !over.load(Ordering::Relaxed) {
            let keys: [u64; 10] = std::array::from_fn(|_| random.u64(..ROWS));
            session.run(|tx| keys.iter().try_for_each(|&key| update(&table, tx, key)))?;
        }
        Ok::<_, Abort>(())
    };
    let most = thread::scope(|scope| {
        let repeat = &repeat;
        let workers: Vec<_> = (1..)
            .zip(sessions)
            .map(|(seed, session)| scope.spawn(move || repeat(session, seed)))
            .collect();
        let looks = (0..LOOKS).map(|_| {
            thread::sleep(LOAD / LOOKS);
            bytes()
        });
        let most = looks.max().unwrap_or(at_rest);
        over.store(true, Ordering::Relaxed);
        workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))?;
        Ok::<_, Abort>(most)
    })?;
    let each = |bytes: usize| bytes as f64 / ROWS as f64;
    Ok(format!("{:.0}, {:.0}", each(at_rest), each(most)))
}
