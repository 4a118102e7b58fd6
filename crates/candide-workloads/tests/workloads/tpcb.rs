//! TPC-B: balances agree with the history after honest runs, and damage has a name.

use candide::{Abort, Occ, Protocol, Tx};
use candide_workloads::tpcb::{Account, Bank, Branch, Teller, TpcB, TpcBTables};
use candide_workloads::{Loaded, Worker, Workload};

use crate::common::{
    Remains, assert_failed, assert_holds, assert_same_remains, check, database, honest, load,
    run_unaccounted, sorted,
};

/// More than this machine has cores, so that threads are interrupted within transactions.
const THREADS: usize = 5;
const STEPS: usize = 1_500;

/// Two branches, so that threads meet.
fn knobs() -> TpcB {
    TpcB { branches: 2, accounts: 50, transactions: 1_000, ..TpcB::strict() }
}

#[test]
fn balances_agree_with_history_under_every_protocol_and_option() {
    for knobs in
        [knobs(), TpcB { branches: 2, accounts: 50, transactions: 1_000, ..TpcB::published() }]
    {
        assert_holds(&knobs, THREADS, STEPS, |committed, all| {
            assert_eq!(committed, all, "nothing rolls back")
        });
    }
}

#[test]
fn a_worker_of_tpcb_returns_type_and_outcome_of_each_step() {
    let db = database(true, true);
    let tables = load(&db, &knobs(), 1);
    let mut worker = tables.worker(db.session().expect("a session"), 0);
    let step = worker.step().expect("no surprises");
    assert_eq!((step.kind, step.committed, step.retries), (0, true, 0));
    assert_eq!(TpcB::KINDS, ["deposit"]);
}

/// Returns what the check says after `damage`.
fn assert_noticed(words: &str, damage: impl Fn(&Bank<Occ>, &Tx<'_, Occ>) -> Result<(), Abort>) {
    let (db, tables) = honest(&knobs(), STEPS);
    db.run(|tx| damage(&tables.bank, tx)).expect("can be done");
    assert_failed(&check(&db, &tables), words);
}

#[test]
fn tpcb_check_finds_unaccounted_commits() {
    let (db, tables) = honest(&knobs(), STEPS);
    run_unaccounted(&db, &tables, 101);
    let consistency = check(&db, &tables);
    assert_failed(&consistency, "were loaded or committed");
    assert_failed(&consistency, "add up to");
}

#[test]
fn tpcb_check_names_every_kind_of_damage() {
    assert_noticed("balances of 1 branches differ from the history", |bank, tx| {
        bank.branches.update(tx, 1, Branch::BALANCE.add(1))
    });
    assert_noticed("balances of 1 tellers differ from the history", |bank, tx| {
        bank.tellers.update(tx, 7, Teller::BALANCE.add(1))
    });
    assert_noticed("balances of 1 accounts differ from the history", |bank, tx| {
        bank.accounts.update(tx, 60, Account::BALANCE.add(1))
    });
    assert_noticed("branches differ from those of their tellers", |bank, tx| {
        bank.tellers.update(tx, 7, Teller::BALANCE.sub(1))?;
        bank.tellers.update(tx, 17, Teller::BALANCE.add(1))
    });
    assert_noticed("add up to", |bank, tx| bank.accounts.update(tx, 60, Account::BALANCE.add(1)));
    assert_noticed("name a wrong branch", |bank, tx| {
        bank.tellers.update(tx, 7, Teller::BRANCH.set(1))
    });
    assert_noticed("were loaded or committed", |bank, tx| bank.history.delete(tx, &(0, 3)));
    assert_noticed("or a missing row", |bank, tx| bank.accounts.delete(tx, 60));
    assert_noticed("read different contents", |bank, tx| {
        let row = bank.accounts.read(tx, 60, candide::Whole)?;
        bank.accounts.insert(tx, Account { id: 1_000, ..row })
    });
}

impl Remains<TpcB> for Vec<Account> {
    fn of<P: Protocol>(loaded: &TpcBTables<P>) -> Self {
        sorted(&loaded.bank.accounts, |row| row.id)
    }
}

#[test]
fn one_thread_leaves_tpcb_in_the_same_state_under_every_protocol_and_option() {
    assert_same_remains::<_, Vec<Account>>(&knobs(), STEPS);
}

#[test]
fn departures_from_the_standard_are_named_in_the_report() {
    assert!(TpcB::strict().differences().is_empty());
    let differences = TpcB { accounts: 10, ..TpcB::published() }.differences().join("\n");
    for words in ["tellers follow from accounts", "balance is not returned", "fewer accounts"] {
        assert!(differences.contains(words), "{differences}");
    }
    let differences = TpcB { remote_pct: 0, ..TpcB::strict() }.differences().join("\n");
    assert!(differences.contains("the 15 % of TPC-B"), "{differences}");
}
