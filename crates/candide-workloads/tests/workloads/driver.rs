//! What a driver asks of each workload before it runs it: its size, and to draw no more inputs.

use std::cell::Cell;

use candide::Occ;
use candide_workloads::micro::{Predicate, Ranges};
use candide_workloads::random::Random;
use candide_workloads::rubis::Rubis;
use candide_workloads::smallbank::SmallBank;
use candide_workloads::stamp::vacation::Vacation;
use candide_workloads::stamp::{self, Form};
use candide_workloads::tpcb::TpcB;
use candide_workloads::tpcc::Tpcc;
use candide_workloads::two_tables::{LongScan, Shifting};
use candide_workloads::wikipedia::Wikipedia;
use candide_workloads::ycsb::{Contention, Mode, Ycsb};
use candide_workloads::{Loaded, Worker, Workload};

use crate::common::{database, load};

/// More than are drawn between two questions whether to stop.
const TRANSACTIONS: usize = 10_000;

trait Asked {
    fn ask<W: Workload>(&self, workload: &W);
}

/// Asks something of each workload with inputs, with tables of some megabytes.
fn ask_each(asked: &impl Asked) {
    let (rows, transactions) = (20_000, TRANSACTIONS);
    asked.ask(&Ycsb { rows: 5_000, transactions, ..Ycsb::published(Mode::A) });
    asked.ask(&Ycsb { rows, transactions, ..Ycsb::granularity(Contention::High) });
    asked.ask(&Ycsb { rows, transactions, ..Ycsb::hot(1) });
    asked.ask(&Ycsb { rows, transactions, ..Ycsb::silo() });
    asked.ask(&Ycsb { rows, transactions, ..Ycsb::index() });
    asked.ask(&Ranges { rows, transactions, ..Ranges::published() });
    asked.ask(&Predicate { rows, transactions, ..Predicate::published() });
    asked.ask(&LongScan { rows, transactions, ..LongScan::published() });
    asked.ask(&Shifting { rows, transactions, ..Shifting::published() });
    asked.ask(&SmallBank { accounts: rows, transactions, ..SmallBank::bench_base() });
    asked.ask(&TpcB { branches: 2, accounts: 10_000, transactions, ..TpcB::strict() });
    asked.ask(&Rubis { items: 5_000, purchases: 5_000, transactions, ..Rubis::strict() });
    asked.ask(&Wikipedia { users: 500, pages: 150, transactions, ..Wikipedia::strict() });
}

struct Size;

impl Asked for Size {
    fn ask<W: Workload>(&self, workload: &W) {
        let db = database(true, true);
        load(&db, workload, 1);
        let (expected, reserved) = (workload.size().tables, db.memory().reserved_bytes as u64);
        assert!(
            (reserved / 2..=reserved * 2).contains(&expected),
            "{}: {expected} bytes where {reserved} are reserved",
            workload.name()
        );
    }
}

#[test]
fn estimated_sizes_of_tables_are_near_the_measured_ones() {
    ask_each(&Size);
    Size.ask(&Random { keys: 10_000, ..Random::default() });
    let vacation = Vacation::published(stamp::Mode::LowSim, Form::Eager);
    Size.ask(&Vacation { relations: 8_000, ..vacation });
    Size.ask(&Tpcc { customers: 100, items: 5_000, ..Tpcc::strict() });
    assert_eq!(Tpcc::strict().size().tables, 200_000_000, "one warehouse of the standard");
}

#[test]
fn estimated_sizes_saturate() {
    let most = u64::from(u32::MAX);
    let knobs = Rubis { items: most, bids: u32::MAX, ..Rubis::strict() };
    assert_eq!((knobs.validate(), knobs.size().tables), (Ok(()), u64::MAX));
}

struct Stop;

impl Asked for Stop {
    fn ask<W: Workload>(&self, workload: &W) {
        let db = database(true, true);
        let loaded: W::Loaded<Occ> = load(&db, workload, 1);
        loaded.expect_workers(1);
        let asked = Cell::new(0);
        let stopped = || {
            asked.set(asked.get() + 1);
            true
        };
        let mut worker = loaded.worker_unless(db.session().expect("a session"), 0, &stopped);
        assert!((1..=2).contains(&asked.get()), "{}: asked {} times", workload.name(), asked.get());
        worker.step().expect("there are inputs");
    }
}

#[test]
fn an_interrupt_ends_drawing_of_inputs() {
    ask_each(&Stop);
}
