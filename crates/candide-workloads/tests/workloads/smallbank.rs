//! SmallBank's money is conserved after honest runs, and missed after dishonest ones.

use candide::Protocol;
use candide_workloads::Workload;
use candide_workloads::smallbank::{Account, Balance, Customers, SmallBank, SmallBankTables};

use crate::common::{
    Remains, assert_failed, assert_holds, assert_refused, assert_same_remains,
    assert_types_are_told_apart, check, honest, run_unaccounted, sorted,
};

/// Few enough customers that two threads meet, and that some savings and checking accounts run dry.
fn knobs() -> SmallBank {
    SmallBank {
        accounts: 50,
        customers: Customers::Hotspot(5),
        transactions: 2_000,
        ..SmallBank::bench_base()
    }
}

#[test]
fn money_is_conserved_under_every_protocol_and_option() {
    assert_holds(&knobs(), 2, 2_000, |committed, all| {
        assert!(committed < all, "some savings are too low for a withdrawal");
    });
}

#[test]
fn every_type_is_reported_under_its_own_number() {
    assert_types_are_told_apart(|weights| SmallBank { weights, ..knobs() });
}

#[test]
fn smallbank_check_finds_unaccounted_commits() {
    let (db, tables) = honest(&knobs(), 1_000);
    run_unaccounted(&db, &tables, 101);
    assert_failed(&check(&db, &tables), "deposits less withdrawals are");
}

#[test]
fn smallbank_check_finds_damaged_balances() {
    let (db, tables) = honest(&knobs(), 1_000);
    let mut session = db.session().expect("a session");
    let damage = session.run(|tx| {
        tables.bank.savings.put(tx, Balance { id: 3, cents: -1 })?;
        let other = tables.bank.accounts.read(tx, 8, Account::NAME)?;
        tables.bank.accounts.put(tx, Account { id: 7, name: other })?;
        tables.bank.checking.delete(tx, 9)
    });
    damage.unwrap();
    drop(session);
    let consistency = check(&db, &tables);
    assert_failed(&consistency, "1 savings accounts are below zero");
    assert_failed(&consistency, "1 customers have a number and a name that contradict each other");
    assert_failed(&consistency, "[50, 50, 50, 49] rows where 50 each were loaded");
    assert_failed(&consistency, "deposits less withdrawals are");
}

impl Remains<SmallBank> for [Vec<Balance>; 2] {
    fn of<P: Protocol>(loaded: &SmallBankTables<P>) -> Self {
        [&loaded.bank.savings, &loaded.bank.checking].map(|table| sorted(table, |row| row.id))
    }
}

#[test]
fn one_thread_leaves_smallbank_in_the_same_state_under_every_protocol_and_option() {
    assert_same_remains::<_, [Vec<Balance>; 2]>(&knobs(), 2_000);
}

#[test]
fn knobs_out_of_range_are_refused_with_the_range() {
    let refused = [
        (SmallBank { accounts: 1, ..knobs() }, "at least 2"),
        (
            SmallBank { customers: Customers::Hotspot(50), ..knobs() },
            "smaller than the 50 accounts",
        ),
        (SmallBank { customers: Customers::Theta(-0.1), ..knobs() }, "from 0 (uniform) to 2"),
        (SmallBank { weights: [0; 6], ..knobs() }, "amalgamate, balance, deposit-checking"),
    ];
    assert_refused(refused);
    assert_eq!(SmallBank::published().validate(), Ok(()));
}
