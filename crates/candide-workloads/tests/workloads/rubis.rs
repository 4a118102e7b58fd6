//! RUBiS: items agree with their bids and purchases after honest runs, and damage has a name.

use candide::{Abort, Occ, Protocol, Tx};
use candide_workloads::Workload;
use candide_workloads::rubis::{Auction, Item, Rubis, RubisTables};

use crate::common::{
    Remains, assert_failed, assert_holds_in_all, assert_same_remains, assert_types_are_told_apart,
    check, honest, run_unaccounted, sorted,
};

/// More than this machine has cores, so that threads are interrupted within transactions.
const THREADS: usize = 5;

/// Few items, so that threads meet and the first ones sell out.
fn knobs() -> Rubis {
    Rubis {
        items: 40,
        users: 10,
        bids: 3,
        purchases: 30,
        stock: 30,
        transactions: 1_000,
        ..Rubis::strict()
    }
}

#[test]
fn items_agree_with_bids_and_purchases_under_every_protocol_and_option() {
    let published =
        Rubis { vary_bids: false, refuse_sold_out: false, hash_index: false, ..knobs() };
    for knobs in [knobs(), published] {
        assert_holds_in_all(&knobs, THREADS, 1_000, |committed, all| {
            assert_eq!(committed < all, knobs.refuse_sold_out, "items sell out");
        });
    }
}

#[test]
fn every_type_is_reported_under_its_own_number() {
    assert_types_are_told_apart(|weights| Rubis { weights, ..knobs() });
}

/// Returns what the check says after `damage`.
fn assert_noticed(words: &str, damage: impl Fn(&Auction<Occ>, &Tx<'_, Occ>) -> Result<(), Abort>) {
    let (db, tables) = honest(&knobs(), 1_000);
    db.run(|tx| damage(&tables.auction, tx)).expect("can be done");
    assert_failed(&check(&db, &tables), words);
}

#[test]
fn rubis_check_finds_unaccounted_commits() {
    let (db, tables) = honest(&knobs(), 1_000);
    run_unaccounted(&db, &tables, 101);
    assert_failed(&check(&db, &tables), "were loaded or committed");
}

#[test]
fn rubis_check_names_every_kind_of_damage() {
    // Item 39 has sold little, item 0 has sold out.
    assert_noticed("1 items have a wrong number of bids", |auction, tx| {
        auction.items.update(tx, 39, Item::BIDS.add(1))
    });
    assert_noticed("1 items have a wrong highest bid", |auction, tx| {
        auction.items.update(tx, 39, Item::MAX_BID.add(1))
    });
    assert_noticed("1 items have a stock that contradicts", |auction, tx| {
        auction.items.update(tx, 39, Item::QUANTITY.sub(1))
    });
    assert_noticed("1 items have been sold more often", |auction, tx| {
        auction.items.update(tx, 0, Item::QUANTITY.sub(1))
    });
    assert_noticed("1 items ended neither", |auction, tx| {
        auction.items.update(tx, 0, Item::END_DATE.set(1))
    });
    assert_noticed("1 items ended neither", |auction, tx| {
        auction.items.update(tx, 39, Item::END_DATE.set(2_000_000_000))
    });
    assert_noticed("1 items have a wrong number of bids", |auction, tx| {
        let ((item, user, id), ()) = auction.bids.iter(tx, ()).next().expect("bids")?;
        auction.bids.delete(tx, &(item, user, id))
    });
    assert_noticed("are of items that are not there", |auction, tx| auction.items.delete(tx, 39));
    assert_noticed("were loaded or committed", |auction, tx| {
        let (key, ()) = auction.purchases.iter(tx, ()).next().expect("purchases")?;
        auction.purchases.delete(tx, &key)
    });
}

impl Remains<Rubis> for Vec<Item> {
    fn of<P: Protocol>(loaded: &RubisTables<P>) -> Self {
        sorted(&loaded.auction.items, |row| row.id)
    }
}

#[test]
fn one_thread_leaves_rubis_in_the_same_state_under_every_protocol_and_option() {
    assert_same_remains::<_, Vec<Item>>(&knobs(), 1_000);
}

#[test]
fn rubis_lists_its_departures_from_the_publication() {
    let [again, sold_out, stock] = Rubis::strict().differences().try_into().expect("three");
    assert!(
        again.contains("repeats its inputs")
            && sold_out.contains("sell out")
            && stock.contains("published ten")
    );
    let differences = Rubis::published().differences().join("\n");
    assert!(
        differences.contains("none raises a price") && differences.contains("beyond their stock")
    );
}
