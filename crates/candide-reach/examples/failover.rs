//! A shop whose machine is lost: its log is in a place, and a standby, which is read meanwhile,
//! takes over. Every payment that was acknowledged is there.
//!
//! ```text
//! cargo run --release -p candide-reach --example failover
//! ```

use candide::{Abort, Database, Level, LogOptions, Occ, Record, RunOptions};
use candide_reach::{Directory, Replicate, Standby, StandbyOptions};
use std::time::{Duration, Instant};

#[derive(Record, Clone, Copy)]
struct Payment {
    #[key]
    id: u64,
    cents: i64,
}

const LONG: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("candide-failover-{}", std::process::id()));
    std::fs::create_dir_all(&path)?;
    let place = || Directory::new(path.join("another-machine"));

    let log = LogOptions::new().replicate(place()?);
    let shop = Database::<Occ>::builder().open(path.join("shop.candide"), log)?;
    let payments = shop.table::<Payment>("payments")?;
    let safely = || RunOptions::new().acknowledge(Level::Replicated);
    let pay = |id| shop.with(safely()).run(|tx| payments.insert(tx, Payment { id, cents: 500 }));
    (1..=100).try_for_each(pay)?;
    println!("the shop has taken 100 payments; each is in the place");

    let standby = Standby::follow(place()?, path.join("standby.candide"), StandbyOptions::new())?;
    let last = shop.run_logged(|tx| payments.insert(tx, Payment { id: 101, cents: 500 }));
    let position = last.position().ok_or("the shop has a place")?;
    last.wait_for(Level::Replicated)?;
    standby.wait_for(position, LONG)?;
    let copy = standby.database().table::<Payment>("payments")?;
    let there = standby.database().clone();
    let sum = there.read_view(|tx| copy.sum(tx, Payment::CENTS))?;
    println!("the standby is read meanwhile: {sum} cents");

    // The machine of the shop hangs. For all that the standby knows, it is gone.
    let begun = Instant::now();
    let promoted = standby.promote()?;
    println!("the standby has taken over in {:.1?}", begun.elapsed());
    let sum = there.run(|tx| copy.sum(tx, Payment::CENTS))?;
    println!("every payment is there: {sum} cents");
    assert_eq!(sum, 101 * 500);

    // The machine of the shop goes on. It acknowledges nothing more, not even what it reads.
    assert_eq!(pay(102), Err(Abort::LogFailed));
    let read = shop.with(safely()).run(|tx| payments.sum(tx, Payment::CENTS));
    assert_eq!(read, Err(Abort::LogFailed));
    let why = shop.log_failure().ok_or("its log is at its end")?;
    println!("the former shop is told: {why}");

    drop((shop, payments, there, copy, promoted));
    std::fs::remove_dir_all(path)?;
    Ok(())
}
