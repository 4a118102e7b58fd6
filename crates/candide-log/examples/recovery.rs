//! Measures how fast a database is recovered, apart from what the target does with the rows: from a
//! checkpoint, and from the log.
//!
//! `cargo run --release -p candide-log --example recovery -- [MILLIONS OF ROWS] [THREADS]`

use candide_log::disk::RealDisk;
use candide_log::format::commit::{Change, ChangeKind, CommitWriter, RecordBuffer};
use candide_log::format::long_row::LongRow;
use candide_log::schema::TableState;
use candide_log::{
    LoadError, Loader, OpenError, Progress, Recovered, Store, StoreOptions, TableSchema, Target,
};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The words of a row: 96 bytes, with a key of one word.
const ROW_WORDS: usize = 11;
/// The commit records in a block.
const ROUND: u64 = 2_000;

/// A target that only looks at what it gets.
struct Nothing;

/// The sum of all words that a loader gets.
struct Sum(u64);

impl Target for Nothing {
    fn table(&self, _: &TableSchema) -> Result<(), OpenError> {
        Ok(())
    }

    fn loader(&self) -> Box<dyn Loader + '_> {
        Box::new(Sum(0))
    }
}

impl Sum {
    fn add(&mut self, words: &[u64]) {
        self.0 = words.iter().fold(self.0, |sum, word| sum.wrapping_add(*word));
    }
}

impl Loader for Sum {
    fn row(&mut self, _: u32, row: LongRow<'_>) -> Result<(), LoadError> {
        self.add(row.key);
        self.add(row.words);
        Ok(())
    }

    fn apply(&mut self, change: &Change<'_>) -> Result<(), LoadError> {
        self.add(change.key);
        self.add(change.words);
        Ok(())
    }
}

fn open(
    path: &Path,
    threads: usize,
) -> Result<(Store, candide_log::LogWriter, Recovered, f64), Box<dyn Error>> {
    let options = StoreOptions { recovery_threads: threads, ..StoreOptions::default() };
    let disk = Arc::new(RealDisk::create(path)?);
    let begin = Instant::now();
    let (store, log, recovered) = Store::open(disk, &options, &Nothing, &|_: Progress| {})?;
    Ok((store, log, recovered, begin.elapsed().as_secs_f64()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let millions: u64 = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let threads: usize = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let path = std::env::temp_dir().join(format!("candide-recovery-{}", std::process::id()));
    let (store, mut log, ..) = open(&path, threads)?;
    let table = store.add_table(TableSchema {
        number: 0,
        name: "rows".to_string(),
        row_type: "Row".to_string(),
        schema: 0,
        key_words: 1,
        key_widths: vec![64],
        groups: vec![("row".to_string(), ROW_WORDS as u32)],
        ordered: false,
        splitting: None,
        policy: None,
        indexes: Vec::new(),
        fields: Vec::new(),
        state: TableState::InUse,
    })?;
    let mut round = RecordBuffer::new();
    for first in (0..millions * 1_000_000).step_by(ROUND as usize) {
        round.clear();
        for key in first..first + ROUND {
            let mut record = CommitWriter::begin(&mut round);
            let (kind, words) = (ChangeKind::Put, ROW_WORDS as u16);
            record.entry(kind, table as u16, 0, words, Some(&[key]));
            record.push_all(&[key; ROW_WORDS]);
            // Versions are not in the order of the log.
            record.finish(first + ROUND, key ^ 63);
        }
        log.write(&[round.words()], first + ROUND)?;
    }
    log.close()?;
    drop(store);
    let (store, _log, recovered, seconds) = open(&path, threads)?;
    report("log, records", recovered.records, recovered.log_bytes, seconds);
    let begin = Instant::now();
    let done = store.checkpoint()?;
    report("merge, records", done.records, done.bytes, begin.elapsed().as_secs_f64());
    drop((store, _log));
    let (store, _log, recovered, seconds) = open(&path, threads)?;
    report("checkpoint, rows", recovered.rows, done.bytes, seconds);
    drop((store, _log));
    std::fs::remove_dir_all(&path)?;
    Ok(())
}

fn report(what: &str, count: u64, bytes: u64, seconds: f64) {
    let (rate, speed) = (count as f64 / seconds / 1e6, bytes as f64 / seconds / 1e6);
    println!("{what}: {count} in {seconds:.2} s, {rate:.2} million/s, {speed:.0} MB/s");
}
