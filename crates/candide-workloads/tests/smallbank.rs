//! SmallBank's money is conserved after honest runs, and missed after dishonest ones.

mod common;

use candide::{Abort, Database, GlobalLock, Mvcc, Occ, Protocol, Serial, TicToc};
use candide_workloads::smallbank::{Account, Balance, Customers, SmallBank, SmallBankTables};
use candide_workloads::{Loaded, Worker, Workload};
use common::{assert_failed, check, database, load, run, run_unaccounted};

/// Few enough customers that two threads meet, and that some savings and checking accounts run dry.
fn knobs() -> SmallBank {
    SmallBank { accounts: 50, customers: Customers::Hotspot(5), transactions: 2_000, ..SmallBank::bench_base() }
}

fn holds<P: Protocol>(threads: usize) {
    for (updates, splitting) in [(true, true), (true, false), (false, true), (false, false)] {
        let db = database::<P>(updates, splitting);
        let tables = load(&db, &knobs(), threads);
        for round in 0..2 {
            let committed = run(&db, &tables, threads, 2_000);
            assert!(committed < threads * 2_000, "some savings are too low for a withdrawal");
            let consistency = check(&db, &tables);
            assert_eq!(
                consistency.failed,
                Vec::<String>::new(),
                "{}, updates {updates}, splitting {splitting}, round {round}",
                P::NAME
            );
        }
    }
}

#[test]
fn money_is_conserved_under_every_protocol_and_switch() {
    holds::<Occ>(2);
    holds::<TicToc>(2);
    holds::<Mvcc>(2);
    holds::<GlobalLock>(2);
    holds::<Serial>(1);
}

#[test]
fn every_type_is_reported_under_its_own_number() {
    for kind in 0..6 {
        let db = database::<Occ>(true, true);
        let mut weights = [0; 6];
        weights[kind] = 3;
        let tables = load(&db, &SmallBank { weights, ..knobs() }, 1);
        let mut worker = tables.worker(db.session().expect("a session"), 0);
        for _ in 0..100 {
            assert_eq!(worker.step().expect("no surprises").kind, kind);
        }
    }
}

fn honest() -> (Database<Occ>, SmallBankTables<Occ>) {
    let db = database::<Occ>(true, true);
    let tables = load(&db, &knobs(), 1);
    run(&db, &tables, 1, 1_000);
    (db, tables)
}

#[test]
fn commits_that_nobody_accounts_for_are_noticed() {
    let (db, tables) = honest();
    run_unaccounted(&db, &tables, 101);
    assert_failed(&check(&db, &tables), "were paid in and not out");
}

#[test]
fn damage_is_noticed() {
    let (db, tables) = honest();
    let mut session = db.session().expect("a session");
    let damage = session.run(|tx| {
        tables.bank.savings.put(tx, Balance { id: 3, cents: -1 })?;
        let other = tables.bank.accounts.read(tx, &8, Account::NAME)?;
        tables.bank.accounts.put(tx, Account { id: 7, name: other })?;
        tables.bank.checking.delete(tx, &9)
    });
    damage.unwrap_or_else(|abort: Abort| panic!("{abort}"));
    drop(session);
    let consistency = check(&db, &tables);
    assert_failed(&consistency, "1 savings accounts are below zero");
    assert_failed(&consistency, "1 customers have a number and a name that do not go together");
    assert_failed(&consistency, "[50, 50, 50, 49] rows where 50 each were loaded");
    assert_failed(&consistency, "were paid in and not out");
}

/// All balances after 2,000 transactions on one thread.
fn outcome<P: Protocol>(updates: bool) -> [Vec<Balance>; 2] {
    let db = database::<P>(updates, true);
    let tables = load(&db, &knobs(), 1);
    run(&db, &tables, 1, 2_000);
    [&tables.bank.savings, &tables.bank.checking].map(|table| {
        let mut rows = Vec::new();
        table.for_each_quiescent(|row| rows.push(*row)).expect("nothing runs");
        rows.sort_unstable_by_key(|row| row.id);
        rows
    })
}

#[test]
fn one_thread_leaves_the_same_state_under_every_protocol_and_switch() {
    let expected = outcome::<Serial>(true);
    for updates in [true, false] {
        assert_eq!(outcome::<Serial>(updates), expected);
        assert_eq!(outcome::<Occ>(updates), expected);
        assert_eq!(outcome::<GlobalLock>(updates), expected);
    }
}

#[test]
fn knobs_out_of_range_are_refused_with_the_range() {
    let refused = [
        (SmallBank { accounts: 1, ..knobs() }, "at least 2"),
        (SmallBank { customers: Customers::Hotspot(50), ..knobs() }, "smaller than the 50 accounts"),
        (SmallBank { customers: Customers::Theta(-0.1), ..knobs() }, "from 0 (uniform) to 2"),
        (SmallBank { weights: [0; 6], ..knobs() }, "amalgamate, balance, deposit-checking"),
    ];
    for (knobs, words) in refused {
        let message = knobs.validate().expect_err(words);
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(SmallBank::published().validate(), Ok(()));
}
