//! The rate of a migration against that of loading the same rows: `cargo test --release --test it
//! --features experiments rates -- --ignored --nocapture`. `CANDIDE_ROWS` is the number of rows,
//! `CANDIDE_DIR` the directory for the files.

use candide::{Database, Level, LoadOptions, LogOptions, Migration, Occ, Record, Text};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The number of pairs of measurements, which are taken in turns.
const PAIRS: usize = 5;

mod first {
    #[derive(candide::Record, Clone, Copy)]
    pub(super) struct Account {
        #[key]
        pub(super) id: u64,
        pub(super) name: candide::Text<16>,
        pub(super) cents: i32,
        pub(super) visits: u32,
        pub(super) changed: u64,
    }
}

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    id: u64,
    name: Text<24>,
    cents: i64,
    visits: u32,
    changed: u64,
    #[default = 3]
    level: u32,
}

fn former(id: u64) -> first::Account {
    let name = Text::new(&format!("n{id}")).unwrap();
    first::Account { id, name, cents: 5, visits: id as u32, changed: id }
}

fn account(id: u64) -> Account {
    let name = Text::new(&format!("n{id}")).unwrap();
    Account { id, name, cents: 5, visits: id as u32, changed: id, level: 3 }
}

fn open(place: &Path) -> Database<Occ> {
    let builder = Database::<Occ>::builder().migration(Migration::Apply);
    builder.open(place, LogOptions::new().acknowledge(Level::Memory)).unwrap()
}

/// Returns a directory for a database, which does not exist.
fn place(name: &str) -> PathBuf {
    let parent = std::env::var_os("CANDIDE_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let place = parent.join(format!("candide-rates-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    place
}

/// Returns the rows in a second of a migration, until all are durable in the new table.
fn rate_of_migration(rows: u64) -> f64 {
    let place = place("migration");
    {
        let db = open(&place);
        let accounts = db.table::<first::Account>("accounts").unwrap();
        accounts.load((0..rows).map(former), LoadOptions::new()).unwrap();
    }
    let db = open(&place);
    let begun = Instant::now();
    let accounts = db.table::<Account>("accounts").unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    assert_eq!(accounts.len_estimate(), rows);
    drop((db, accounts));
    std::fs::remove_dir_all(place).unwrap();
    rows as f64 / seconds
}

/// Returns the rows in a second of a bulk load by one thread, until all are durable.
fn rate_of_loading(rows: u64) -> f64 {
    let place = place("loading");
    let accounts: Vec<Account> = (0..rows).map(account).collect();
    let db = open(&place);
    let begun = Instant::now();
    let table = db.table::<Account>("accounts").unwrap();
    table.load(accounts, LoadOptions::new()).unwrap();
    db.sync().unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    drop((db, table));
    std::fs::remove_dir_all(place).unwrap();
    rows as f64 / seconds
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

#[test]
#[ignore = "a measurement"]
fn the_rates_of_migrating_and_of_loading_are_printed() {
    let rows = std::env::var("CANDIDE_ROWS").map_or(1_000_000, |rows| rows.parse().unwrap());
    let (mut migrating, mut loading, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 1..=PAIRS {
        let (one, other) = (rate_of_migration(rows), rate_of_loading(rows));
        println!("pair {pair}: {one:.0} rows/s migrated, {other:.0} rows/s loaded");
        migrating.push(one);
        loading.push(other);
        ratios.push(one / other);
    }
    let (one, other, ratio) = (median(migrating), median(loading), median(ratios));
    println!("{rows} rows, medians: {one:.0} and {other:.0} rows/s, ratio {ratio:.2}");
}
