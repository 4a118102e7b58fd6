//! The measurement of recovery.

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use candide::any::Erased;
use candide::{Abort, Database, Level, LogOptions, Record, Table};

use super::new_directory;
use crate::failure::Failure;
use crate::progress::{self, Agenda};
use crate::registry::{Choice, Choices};
use crate::results::{Finding, grouped};
use crate::show::table;
use crate::{interrupt, output};

/// The order for a measurement of recovery.
#[derive(Debug)]
pub struct RecoveryOrder {
    /// The number of rows of the checkpoint.
    pub rows: u64,
    /// The number of commit records of the log.
    pub records: u64,
    /// The numbers of threads that recover.
    pub threads: Vec<usize>,
    /// The protocols of the databases.
    pub protocols: Choices,
    /// The directory of the files, which is removed at the end; `None` for one in the directory of
    /// temporary files.
    pub place: Option<PathBuf>,
}

/// A row of 96 bytes, its key included.
#[derive(Record, Clone, Copy)]
struct Row {
    #[key]
    id: u64,
    first: u64,
    rest: [u64; 10],
}

/// The number of rows that one transaction puts while the checkpoint is prepared.
const ROWS_AT_ONCE: u64 = 1_000;
/// The largest number of rows that commit records of the log update: few, so that it takes no time
/// to load them.
const UPDATED: u64 = 10_000;

/// Makes a database with a checkpoint, and one with a log, and measures how long each takes to open
/// under each protocol with each number of threads. Prints rates.
///
/// # Errors
/// The files cannot be written or read.
pub fn measure_recovery(order: &RecoveryOrder) -> Result<Finding, Failure> {
    let place = order.place.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("candide-recovery-{}", std::process::id()))
    });
    drop(new_directory(&place)?);
    interrupt::listen()?;
    let measured = measure(order, &place);
    std::fs::remove_dir_all(&place)?;
    let rows = measured?;
    let header = [
        "",
        "protocol",
        "threads",
        "count",
        "bytes",
        "seconds",
        "per second",
        "MB/s",
        "per thread and second",
    ];
    let mut table = table(&header, 2..9);
    for Opened { what, protocol, threads, count, bytes, took } in rows {
        let seconds = took.as_secs_f64();
        let rate = count as f64 / seconds;
        table.add_row([
            what.to_string(),
            protocol.name().to_string(),
            threads.to_string(),
            grouped(count as f64),
            grouped(bytes as f64),
            format!("{seconds:.3}"),
            grouped(rate),
            format!("{:.0}", bytes as f64 / seconds / 1e6),
            grouped(rate / threads as f64),
        ]);
    }
    output::print(|out| writeln!(out, "{table}"))?;
    Ok(Finding::Good)
}

/// An opening that was measured.
struct Opened {
    what: &'static str,
    protocol: Choice,
    threads: usize,
    count: u64,
    bytes: u64,
    took: Duration,
}

fn measure(order: &RecoveryOrder, place: &Path) -> Result<Vec<Opened>, Failure> {
    let mut results = Vec::new();
    let (checkpoint, log) = (place.join("checkpoint"), place.join("log"));
    let mut bytes = [0; 2];
    let first = order.protocols.0[0];
    with_bar("making a checkpoint of rows", order.rows, |done| {
        bytes[0] = make_checkpoint(first, &checkpoint, order.rows, done)?;
        Ok(())
    })?;
    with_bar("writing a log of records", order.records, |done| {
        bytes[1] = make_log(first, &log, order.records, done)?;
        Ok(())
    })?;
    let cases = [
        ("rows of a checkpoint", &checkpoint, order.rows, bytes[0]),
        ("commit records of a log", &log, order.records, bytes[1]),
    ];
    let of_protocols = |&protocol: &Choice| {
        // Under a protocol that has one session, one thread recovers.
        let threads = order.threads.iter().copied();
        threads
            .filter(move |&threads| protocol.permits(threads))
            .map(move |count| (protocol, count))
    };
    for (protocol, threads) in order.protocols.0.iter().flat_map(of_protocols) {
        for (what, place, count, bytes) in cases {
            if interrupt::is_pressed() {
                return Err(Failure::Interrupted);
            }
            let agenda = Agenda::new(1, Duration::ZERO);
            let title = format!("recovering {what} under {}, {threads} threads,", protocol.name());
            let took =
                progress::with_line(&agenda, &title, None, || open(protocol, place, threads));
            let took = took.map_err(|error| Failure::Run(error))?;
            results.push(Opened { what, protocol, threads, count, bytes, took });
        }
    }
    Ok(results)
}

fn with_bar(
    title: &str,
    total: u64,
    work: impl FnOnce(&dyn Fn(u64)) -> Made<()> + Send,
) -> Result<(), Failure> {
    let agenda = Agenda::new(1, Duration::ZERO);
    let ended = progress::with_bar(&agenda, title, total, false, |done| {
        work(&|count| {
            done.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
        })
    });
    match ended {
        Ok(()) if interrupt::is_pressed() => Err(Failure::Interrupted),
        Ok(()) => Ok(()),
        Err(error) => Err(Failure::Run(error)),
    }
}

/// Returns options under which the database writes only on request.
fn options() -> LogOptions {
    LogOptions::new().acknowledge(Level::Memory).checkpoint_bytes(u64::MAX)
}

/// Opens a database and its table. Returns the time that the opening took.
fn open(protocol: Choice, place: &Path, threads: usize) -> Made<Duration> {
    let threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
    let builder = Database::<Erased>::builder().policy(protocol.erased());
    let begun = Instant::now();
    let db = builder.open(place, options().recovery_threads(threads))?;
    let _: Table<Row, Erased> = db.table("rows")?;
    Ok(begun.elapsed())
}

/// The result of work in another thread.
type Made<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Makes a database whose rows are in a checkpoint. Returns the bytes of the checkpoint.
fn make_checkpoint(protocol: Choice, place: &Path, rows: u64, done: &dyn Fn(u64)) -> Made<u64> {
    let builder = Database::<Erased>::builder().policy(protocol.erased());
    let db = builder.open(place, options())?;
    let table: Table<Row, Erased> = db.table("rows")?;
    put_rows(&db, &table, rows, done)?;
    Ok(db.checkpoint()?.bytes)
}

fn put_rows(
    db: &Database<Erased>,
    table: &Table<Row, Erased>,
    rows: u64,
    done: &dyn Fn(u64),
) -> Result<(), Abort> {
    let mut session = db.session().map_err(|_| Abort::SecondSession)?;
    for first in (0..rows).step_by(ROWS_AT_ONCE as usize) {
        if interrupt::is_pressed() {
            break;
        }
        let ids = first..rows.min(first + ROWS_AT_ONCE);
        done(ids.end - ids.start);
        session.run(|tx| {
            let mut ids = ids.clone();
            ids.try_for_each(|id| table.put(tx, Row { id, first: id, rest: [id; 10] }))
        })?;
    }
    Ok(())
}

/// Makes a database with this number of commit records in its log; each record updates one word of
/// a row. Returns the bytes of the log.
fn make_log(protocol: Choice, place: &Path, records: u64, done: &dyn Fn(u64)) -> Made<u64> {
    let builder = Database::<Erased>::builder().policy(protocol.erased());
    let db = builder.open(place, options())?;
    let table: Table<Row, Erased> = db.table("rows")?;
    let rows = records.clamp(1, UPDATED);
    put_rows(&db, &table, rows, &|_| ())?;
    db.checkpoint()?;
    let mut session = db.session()?;
    for number in 0..records {
        if number % ROWS_AT_ONCE == 0 {
            if interrupt::is_pressed() {
                break;
            }
            done(ROWS_AT_ONCE.min(records - number));
        }
        let id = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % rows;
        session.run(|tx| table.update(tx, &id, Row::FIRST.add(1)))?;
    }
    db.sync()?;
    Ok(db.durability().map_or(0, |files| files.log_bytes))
}
