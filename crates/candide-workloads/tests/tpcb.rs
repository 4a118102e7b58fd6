//! TPC-B: balances agree with the history after honest runs, and damage has a name.

mod common;

use candide::{Abort, Database, GlobalLock, Mvcc, Occ, Protocol, Serial, TicToc, Tx};
use candide_workloads::tpcb::{Account, Bank, Branch, Teller, TpcB, TpcBTables};
use candide_workloads::{Loaded, Worker, Workload};
use common::{assert_failed, check, database, load, run, run_unaccounted};

/// More than this machine has cores, so that threads are interrupted within transactions.
const THREADS: usize = 5;
const STEPS: usize = 1_500;

/// Two branches, so that threads meet.
fn knobs() -> TpcB {
    TpcB { branches: 2, accounts: 50, transactions: 1_000, ..TpcB::strict() }
}

fn holds<P: Protocol>(threads: usize, knobs: &TpcB) {
    for (updates, splitting) in [(true, true), (true, false), (false, true), (false, false)] {
        let db = database::<P>(updates, splitting);
        let tables = load(&db, knobs, threads);
        for round in 0..2 {
            assert_eq!(run(&db, &tables, threads, STEPS), threads * STEPS, "nothing rolls back");
            let consistency = check(&db, &tables);
            let failed = Vec::<String>::new();
            assert_eq!(consistency.failed, failed, "{}, {updates}, {splitting}, round {round}", P::NAME);
        }
    }
}

#[test]
fn balances_agree_with_history_under_every_protocol_and_switch() {
    for knobs in [knobs(), TpcB { branches: 2, accounts: 50, transactions: 1_000, ..TpcB::published() }] {
        holds::<Occ>(THREADS, &knobs);
        holds::<TicToc>(THREADS, &knobs);
        holds::<Mvcc>(THREADS, &knobs);
        holds::<GlobalLock>(THREADS, &knobs);
        holds::<Serial>(1, &knobs);
    }
}

#[test]
fn steps_are_reported() {
    let db = database::<Occ>(true, true);
    let tables = load(&db, &knobs(), 1);
    let mut worker = tables.worker(db.session().expect("a session"), 0);
    let step = worker.step().expect("no surprises");
    assert_eq!((step.kind, step.committed, step.retries), (0, true, 0));
    assert_eq!(TpcB::KINDS, ["deposit"]);
}

fn honest() -> (Database<Occ>, TpcBTables<Occ>) {
    let db = database::<Occ>(true, true);
    let tables = load(&db, &knobs(), 1);
    run(&db, &tables, 1, STEPS);
    assert_eq!(check(&db, &tables).failed, Vec::<String>::new());
    (db, tables)
}

/// What the check says after `damage`.
fn assert_noticed(words: &str, damage: impl Fn(&Bank<Occ>, &Tx<'_, Occ>) -> Result<(), Abort>) {
    let (db, tables) = honest();
    db.run(|tx| damage(&tables.bank, tx)).expect("can be done");
    assert_failed(&check(&db, &tables), words);
}

#[test]
fn commits_that_nobody_accounts_for_are_noticed() {
    let (db, tables) = honest();
    run_unaccounted(&db, &tables, 101);
    let consistency = check(&db, &tables);
    assert_failed(&consistency, "were loaded or committed");
    assert_failed(&consistency, "add up to");
}

#[test]
fn every_kind_of_damage_is_noticed_by_name() {
    assert_noticed("1 branches do not hold what history says", |bank, tx| {
        bank.branches.update(tx, &1, Branch::BALANCE.add(1))
    });
    assert_noticed("1 tellers do not hold what history says", |bank, tx| {
        bank.tellers.update(tx, &7, Teller::BALANCE.add(1))
    });
    assert_noticed("1 accounts do not hold what history says", |bank, tx| {
        bank.accounts.update(tx, &60, Account::BALANCE.add(1))
    });
    assert_noticed("branches do not hold what their tellers hold", |bank, tx| {
        bank.tellers.update(tx, &7, Teller::BALANCE.sub(1))?;
        bank.tellers.update(tx, &17, Teller::BALANCE.add(1))
    });
    assert_noticed("add up to", |bank, tx| bank.accounts.update(tx, &60, Account::BALANCE.add(1)));
    assert_noticed("names another branch than its own", |bank, tx| bank.tellers.update(tx, &7, Teller::BRANCH.set(1)));
    assert_noticed("were loaded or committed", |bank, tx| bank.history.delete(tx, &(0, 3)));
    assert_noticed("something that is not there", |bank, tx| bank.accounts.delete(tx, &60));
    assert_noticed("do not read the same", |bank, tx| {
        let row = bank.accounts.read(tx, &60, candide::Whole)?;
        bank.accounts.insert(tx, Account { id: 1_000, ..row })
    });
}

/// All balances after some transactions on one thread.
fn outcome<P: Protocol>(updates: bool) -> Vec<Account> {
    let db = database::<P>(updates, true);
    let tables = load(&db, &knobs(), 1);
    run(&db, &tables, 1, STEPS);
    let mut rows = Vec::new();
    tables.bank.accounts.for_each_quiescent(|row| rows.push(*row)).expect("nothing runs");
    rows.sort_unstable_by_key(|row| row.id);
    rows
}

#[test]
fn one_thread_leaves_the_same_state_under_every_protocol_and_switch() {
    let expected = outcome::<Serial>(true);
    for updates in [true, false] {
        assert_eq!(outcome::<Serial>(updates), expected);
        assert_eq!(outcome::<Occ>(updates), expected);
        assert_eq!(outcome::<TicToc>(updates), expected);
        assert_eq!(outcome::<GlobalLock>(updates), expected);
    }
}

#[test]
fn what_departs_from_the_standard_is_admitted() {
    assert!(TpcB::strict().differences().is_empty());
    let differences = TpcB { accounts: 10, ..TpcB::published() }.differences().join("\n");
    for words in ["tellers follow from accounts", "balance is not given", "fewer accounts"] {
        assert!(differences.contains(words), "{differences}");
    }
    let differences = TpcB { remote_pct: 0, ..TpcB::strict() }.differences().join("\n");
    assert!(differences.contains("than TPC-B's 15 %"), "{differences}");
}
