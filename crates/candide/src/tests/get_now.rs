//! Tests of single reads: each read of one row is a transaction.

use super::interleaving::acting;
use super::rows::Item;
use super::transactions::run;
use crate::engine::Protocol;
use crate::protocols::{Mvcc, Occ, Recorded, Serial, TicToc};
use crate::sync::Point;
use crate::{Abort, Database, Session, Table, TableOptions, Whole};
use std::rc::Rc;

type Items<P> = Table<Item, P>;

/// Returns the row that single reads see. Asserts that reads of the groups, of the key alone and of
/// the whole row agree.
fn now<P: Protocol>(items: &Items<P>, session: &mut Session<P>, id: u64) -> Option<Item> {
    let before = session.stats();
    let whole = items.get_now(session, &id, Whole).unwrap();
    assert_eq!(
        items.get_now(session, &id, (Item::COUNT, Item::SMALL)),
        Ok(whole.map(|row| (row.count, row.small)))
    );
    assert_eq!(items.get_now(session, &id, Item::OTHER), Ok(whole.map(|row| row.other)));
    assert_eq!(items.get_now(session, &id, ()), Ok(whole.map(|_| ())));
    let after = session.stats();
    assert_eq!((after.commits, after.retries), (before.commits + 4, before.retries), "{}", P::NAME);
    whole
}

protocol_tests!(all: a_single_read_equals_a_read_in_a_transaction);
fn a_single_read_equals_a_read_in_a_transaction<P: Protocol>() {
    let ordered = TableOptions::default().ordered();
    for options in [TableOptions::default(), ordered, ordered.contention_aware_keys(false)] {
        single_reads_in_all_forms::<P>(options);
    }
}

#[test]
fn a_recorded_single_read_equals_a_read_in_a_transaction() {
    a_single_read_equals_a_read_in_a_transaction::<Recorded<Occ>>();
    a_single_read_equals_a_read_in_a_transaction::<Recorded<Serial>>();
}

fn single_reads_in_all_forms<P: Protocol>(options: TableOptions) {
    let db = Database::<P>::builder().manual_epochs(10).build().unwrap();
    let items = db.table_with::<Item>("items", options).unwrap();
    let mut session = db.session().unwrap();
    assert_eq!(now(&items, &mut session, 1), None, "no record");
    run(&mut session, |tx| items.insert(tx, Item::new(1, 10)));
    assert_eq!(
        (now(&items, &mut session, 1), now(&items, &mut session, 2)),
        (Some(Item::new(1, 10)), None)
    );
    run(&mut session, |tx| items.update(tx, 1, (Item::COUNT.add(1), Item::OTHER.set(5))));
    assert_eq!(now(&items, &mut session, 1), Some(Item { other: 5, ..Item::new(1, 11) }));
    run(&mut session, |tx| items.delete(tx, 1));
    assert_eq!(now(&items, &mut session, 1), None, "an absent record");
    run(&mut session, |tx| items.insert(tx, Item::new(1, 12)));
    assert_eq!(now(&items, &mut session, 1), Some(Item::new(1, 12)));
    assert_eq!(db.health().oldest_pin, None, "no garbage is kept");
}

/// Asserts that a session that makes only single reads still collects its earlier garbage.
fn garbage_does_not_wait_under<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(10).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| (1..4).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
    run(&mut session, |tx| items.delete(tx, 1));
    assert!(db.memory().garbage > 0, "{}", P::NAME);
    for _ in 0..8 {
        db.inner.engine.epochs.pass();
        assert_eq!(items.get_now(&mut session, &2, Item::COUNT), Ok(Some(0)));
    }
    assert_eq!(db.memory().garbage, 0, "{}", P::NAME);
}

#[test]
fn single_reads_within_a_transaction_do_not_delay_reclamation() {
    garbage_does_not_wait_under::<Occ>();
    garbage_does_not_wait_under::<TicToc>();
    garbage_does_not_wait_under::<Mvcc>();
}

/// The drop ends before the session is pinned, and so does not wait for it.
fn a_drop_comes_before_the_read_under<P: Protocol>() {
    let db = Rc::new(Database::<P>::builder().manual_epochs(10).build().unwrap());
    let items = db.table::<Item>("items").unwrap();
    db.run(|tx| items.insert(tx, Item::new(1, 10))).unwrap();
    let (mut session, dropping) = (db.session().unwrap(), db.clone());
    let drop_items = move || dropping.drop_table("items").unwrap();
    let read = || items.get_now(&mut session, &1, Item::COUNT);
    let seen = acting(Point::Pinning, drop_items, read);
    assert_eq!(seen, Err(Abort::TableDropped), "{}", P::NAME);
}

#[test]
fn a_single_read_does_not_miss_a_row_because_its_table_is_dropped() {
    a_drop_comes_before_the_read_under::<Occ>();
    a_drop_comes_before_the_read_under::<TicToc>();
    a_drop_comes_before_the_read_under::<Mvcc>();
}
