//! RUBiS: items agree with their bids and purchases after honest runs, and damage has a name.

mod common;

use candide::{Abort, Database, GlobalLock, Mvcc, Occ, Protocol, Serial, TicToc, Tx};
use candide_workloads::rubis::{Auction, Item, Rubis, RubisTables};
use candide_workloads::{Loaded, Worker, Workload};
use common::{assert_failed, check, database, load, run, run_unaccounted};

/// More than this machine has cores, so that threads are interrupted within transactions.
const THREADS: usize = 5;

/// Few items, so that threads meet and the first ones sell out.
fn knobs() -> Rubis {
    Rubis { items: 40, users: 10, bids: 3, purchases: 30, stock: 30, transactions: 1_000, ..Rubis::strict() }
}

fn holds<P: Protocol>(threads: usize, knobs: &Rubis) {
    for (updates, splitting) in [(true, true), (true, false), (false, true), (false, false)] {
        let db = database::<P>(updates, splitting);
        let tables = load(&db, knobs, threads);
        for round in 0..2 {
            let committed = run(&db, &tables, threads, 1_000);
            assert_eq!(committed < threads * 1_000, knobs.refuse_sold_out, "items sell out");
            let consistency = check(&db, &tables);
            let failed = Vec::<String>::new();
            assert_eq!(consistency.failed, failed, "{}, {updates}, {splitting}, round {round}", P::NAME);
        }
    }
}

#[test]
fn items_agree_with_bids_and_purchases_under_every_protocol_and_switch() {
    let published = Rubis { vary_bids: false, refuse_sold_out: false, hash_index: false, ..knobs() };
    for knobs in [knobs(), published] {
        holds::<Occ>(THREADS, &knobs);
        holds::<TicToc>(THREADS, &knobs);
        holds::<Mvcc>(THREADS, &knobs);
        holds::<GlobalLock>(THREADS, &knobs);
        holds::<Serial>(1, &knobs);
    }
}

#[test]
fn every_type_is_reported_under_its_own_number() {
    for kind in 0..3 {
        let db = database::<Occ>(true, true);
        let mut weights = [0; 3];
        weights[kind] = 3;
        let tables = load(&db, &Rubis { weights, ..knobs() }, 1);
        let mut worker = tables.worker(db.session().expect("a session"), 0);
        for _ in 0..100 {
            assert_eq!(worker.step().expect("no surprises").kind, kind);
        }
    }
}

fn honest() -> (Database<Occ>, RubisTables<Occ>) {
    let db = database::<Occ>(true, true);
    let tables = load(&db, &knobs(), 1);
    run(&db, &tables, 1, 1_000);
    assert_eq!(check(&db, &tables).failed, Vec::<String>::new());
    (db, tables)
}

/// What the check says after `damage`.
fn assert_noticed(words: &str, damage: impl Fn(&Auction<Occ>, &Tx<'_, Occ>) -> Result<(), Abort>) {
    let (db, tables) = honest();
    db.run(|tx| damage(&tables.auction, tx)).expect("can be done");
    assert_failed(&check(&db, &tables), words);
}

#[test]
fn commits_that_nobody_accounts_for_are_noticed() {
    let (db, tables) = honest();
    run_unaccounted(&db, &tables, 101);
    assert_failed(&check(&db, &tables), "were loaded or committed");
}

#[test]
fn every_kind_of_damage_is_noticed_by_name() {
    // Item 39 has sold little, item 0 has sold out.
    assert_noticed("1 items do not say how many bids", |auction, tx| auction.items.update(tx, &39, Item::BIDS.add(1)));
    assert_noticed("1 items do not say what their highest bid is", |auction, tx| {
        auction.items.update(tx, &39, Item::MAX_BID.add(1))
    });
    assert_noticed("1 items are not there as often", |auction, tx| {
        auction.items.update(tx, &39, Item::QUANTITY.sub(1))
    });
    assert_noticed("1 items have been sold more often", |auction, tx| {
        auction.items.update(tx, &0, Item::QUANTITY.sub(1))
    });
    assert_noticed("1 items ended neither", |auction, tx| auction.items.update(tx, &0, Item::END_DATE.set(1)));
    assert_noticed("1 items ended neither", |auction, tx| {
        auction.items.update(tx, &39, Item::END_DATE.set(2_000_000_000))
    });
    assert_noticed("1 items do not say how many bids", |auction, tx| {
        let ((item, user, id), ()) = auction.bids.iter(tx, ()).next().expect("bids")?;
        auction.bids.delete(tx, &(item, user, id))
    });
    assert_noticed("are of items that are not there", |auction, tx| auction.items.delete(tx, &39));
    assert_noticed("were loaded or committed", |auction, tx| {
        let (key, ()) = auction.purchases.iter(tx, ()).next().expect("purchases")?;
        auction.purchases.delete(tx, &key)
    });
}

/// All items after 1,000 transactions on one thread.
fn outcome<P: Protocol>(updates: bool) -> Vec<Item> {
    let db = database::<P>(updates, true);
    let tables = load(&db, &knobs(), 1);
    run(&db, &tables, 1, 1_000);
    let mut rows = Vec::new();
    tables.auction.items.for_each_quiescent(|row| rows.push(*row)).expect("nothing runs");
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
fn what_was_published_otherwise_is_admitted() {
    assert!(Rubis::strict().differences().is_empty());
    let differences = Rubis::published().differences().join("\n");
    assert!(differences.contains("none raises a price") && differences.contains("beyond what there is"));
}
