//! The hottest rows: which workloads have one, that it is what they want most, and that their
//! workers can look at it.

use candide::{Mvcc, Mvto, Versioned};
use candide_workloads::micro::{Predicate, Ranges};
use candide_workloads::rubis::Rubis;
use candide_workloads::smallbank::{Customers, SmallBank};
use candide_workloads::tpcb::TpcB;
use candide_workloads::tpcc::Tpcc;
use candide_workloads::two_tables::{LongScan, Shifting};
use candide_workloads::wikipedia::Wikipedia;
use candide_workloads::ycsb::{Contention, Mode, Value, Verify, Ycsb};
use candide_workloads::{Loaded, Worker, Workload};

use crate::common::{UnderEach, database, database_of, load, run, sorted, under_each};

/// A worker of every workload can look at its hottest row, and that is one that the workload
/// writes.
struct CanLook<'a, W> {
    workload: &'a W,
    /// The number of transactions that certainly write it.
    steps: usize,
}

impl<W: Workload> UnderEach for CanLook<'_, W> {
    fn run<P: candide::Protocol>(&self, policy: &P::Policy) {
        let protocol = P::properties(policy).name;
        let name = format!("{} under {protocol}", self.workload.name());
        assert!(self.workload.hottest().is_some(), "{name}");
        let db = database_of::<P>(policy.clone(), true, true);
        let loaded = load(&db, self.workload, 1);
        let mut worker = loaded.worker(db.session().expect("a session"), 0);
        for _ in 0..20 {
            worker.step().expect("no surprises");
            let (before, committed) = (worker.stats(), 1);
            let mut probe = worker.hottest().expect("it has one");
            assert_eq!(probe.read(), Ok(()), "{name}");
            let versions = probe.versions().expect("it is there");
            assert!(
                versions == 1 || versions > 1 && protocol.starts_with("mv"),
                "{versions}, {name}"
            );
            drop(probe);
            assert_eq!(
                worker.stats().commits - before.commits,
                committed,
                "{name}: counting versions is no transaction"
            );
        }
    }
}

impl<W: Workload> CanLook<'_, W> {
    /// With a snapshot open there are two versions of what has been written since.
    fn is_written<P: Versioned>(&self) {
        let db = database_of::<P>(P::Policy::default(), true, true);
        let loaded = load(&db, self.workload, 1);
        let mut worker = loaded.worker(db.session().expect("a session"), 0);
        loaded.enter_phase(1);
        let versions = |worker: &mut <W::Loaded<P> as Loaded<P>>::Worker| {
            worker.hottest().expect("it has one").versions().expect("it is there")
        };
        let snapshot = db.snapshot();
        let written = (0..self.steps).any(|_| {
            worker.step().expect("no surprises");
            versions(&mut worker) > 1
        });
        assert!(written, "{} under {}", self.workload.name(), P::NAME);
        drop(snapshot);
    }
}

fn assert_has_one(workload: &impl Workload, steps: usize) {
    let can_look = CanLook { workload, steps };
    under_each(&can_look);
    can_look.is_written::<Mvcc>();
    can_look.is_written::<Mvto>();
}

#[test]
fn workers_probe_a_row_that_the_workload_writes() {
    const TRANSACTIONS: usize = 500;
    let ycsb = Ycsb { rows: 1000, transactions: TRANSACTIONS, ..Ycsb::published(Mode::A) };
    assert_has_one(&ycsb, TRANSACTIONS);
    let narrow =
        Ycsb { rows: 1000, transactions: TRANSACTIONS, ..Ycsb::granularity(Contention::High) };
    assert_has_one(&narrow, TRANSACTIONS);
    assert_has_one(&Ycsb { transactions: TRANSACTIONS, ..Ycsb::hot(5) }, TRANSACTIONS);
    assert_has_one(&Ycsb { transactions: TRANSACTIONS, ..Ycsb::counter() }, 1);
    let scans = LongScan { rows: 100, scan: 10, ..LongScan::published() };
    assert_has_one(&LongScan { transactions: TRANSACTIONS, ..scans }, 1);
    assert_has_one(&Shifting { rows: 100, transactions: TRANSACTIONS, ..Shifting::published() }, 1);
    let ranges =
        Ranges { rows: 100, read_only: 0.5, transactions: TRANSACTIONS, ..Ranges::published() };
    assert_has_one(&ranges, TRANSACTIONS);
    assert_has_one(
        &Predicate { rows: 10, transactions: TRANSACTIONS, ..Predicate::published() },
        TRANSACTIONS,
    );
    let customers = Customers::Theta(1.0);
    assert_has_one(
        &SmallBank {
            accounts: 100,
            customers,
            transactions: TRANSACTIONS,
            ..SmallBank::bench_base()
        },
        TRANSACTIONS,
    );
    let rubis = Rubis {
        items: 50,
        users: 10,
        purchases: 10,
        transactions: TRANSACTIONS,
        ..Rubis::strict()
    };
    assert_has_one(&rubis, TRANSACTIONS);
    let weights = [1, 1, 5, 1, 1, 1];
    assert_has_one(
        &Wikipedia {
            users: 10,
            pages: 5,
            weights,
            transactions: TRANSACTIONS,
            ..Wikipedia::strict()
        },
        300,
    );
    assert_has_one(
        &TpcB { branches: 2, accounts: 100, transactions: TRANSACTIONS, ..TpcB::strict() },
        TRANSACTIONS,
    );
    assert_has_one(&Tpcc { customers: 10, items: 100, ..Tpcc::strict() }, TRANSACTIONS);
}

#[test]
fn workloads_with_uniform_access_have_no_hottest_row() {
    assert_eq!(Ycsb { rows: 1_000_000, ..Ycsb::published(Mode::C) }.hottest(), None);
    assert_eq!(Ycsb::silo().hottest(), None);
    assert_eq!(Predicate::published().hottest(), None);
    assert_eq!(SmallBank::bench_base().hottest(), None);
    assert_eq!(SmallBank::published().hottest(), None, "a thousand are hot");
    assert_eq!(
        SmallBank { customers: Customers::Hotspot(3), ..SmallBank::published() }.hottest(),
        Some("checking[0]")
    );
    assert_eq!(Tpcc { warehouses: 1000, ..Tpcc::strict() }.hottest(), None);
}

#[test]
fn the_most_written_row_is_the_first() {
    let db = database(true, true);
    let ycsb = Ycsb {
        rows: 1000,
        transactions: 5000,
        verify: Verify::Increment,
        ..Ycsb::published(Mode::A)
    };
    let loaded = load(&db, &ycsb, 1);
    run(&db, &loaded, 1, 5000);
    let written = |columns: &[candide::Bytes<100>]| columns.iter().map(Value::head).sum::<u64>();
    let rows: Vec<u64> =
        sorted(&loaded.table, |row| row.key).iter().map(|row| written(&row.columns)).collect();
    assert!(rows[0] > 0 && rows.iter().all(|&writes| writes <= rows[0]), "{rows:?}");
    assert_eq!(ycsb.hottest(), Some("usertable[0]"));
}
