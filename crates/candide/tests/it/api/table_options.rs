//! Options of tables that exist.

use crate::common::{Item, builder, properties};
use candide::policy::{Policies, Policy};
use candide::{Database, Error, Occ, Protocol, Serial, TableOptions};

/// Returns what the table has and what the call asks for, of a call that is refused.
fn differs<P: Protocol>(db: &Database<P>, options: TableOptions) -> (String, String) {
    match db.table_with::<Item>("items", options) {
        Err(Error::TableOption { table, wanted, existing }) => {
            assert_eq!(table, "items");
            (existing, wanted)
        }
        other => panic!("{options:?}: {other:?}"),
    }
}

fn pair(existing: &str, wanted: &str) -> (String, String) {
    (existing.to_owned(), wanted.to_owned())
}

protocol_tests!(all: options_must_equal_those_of_the_existing_table);

fn options_must_equal_those_of_the_existing_table<P: Protocol>() {
    let db = builder::<P>().build().unwrap();
    let none = TableOptions::default();
    let items = db.table::<Item>("items").unwrap();
    let volatile = pair("rows that are not volatile", "volatile rows");
    assert_eq!(differs(&db, none.volatile()), volatile);
    assert_eq!(differs(&db, none.ordered()), pair("keys without order", "keys in order"));
    let room = pair("a capacity of 0 rows", "a capacity of 9 rows");
    assert_eq!(differs(&db, none.capacity(9)), room);
    let words =
        pair("key components in words of their own", "key components in words that they share");
    assert_eq!(differs(&db, none.contention_aware_keys(false)), words);
    db.table_with::<Item>("items", none.contention_aware_keys(true).capacity(0)).unwrap();
    // A protocol without cells has no timestamps to split, whatever the option says.
    db.table_with::<Item>("items", none.timestamp_splitting(true)).unwrap();
    let off = none.timestamp_splitting(false);
    if db.table_with::<Item>("items", off).is_err() {
        assert_eq!(differs(&db, off), pair("timestamp splitting", "no timestamp splitting"));
    } else {
        assert!(["serial", "global-lock"].contains(&properties::<P>().name));
    }
    drop(items);
}

protocol_tests!(all: a_repeated_call_returns_the_existing_table);

fn a_repeated_call_returns_the_existing_table<P: Protocol>() {
    let db = builder::<P>().build().unwrap();
    let options = TableOptions::default()
        .ordered()
        .capacity(9)
        .timestamp_splitting(false)
        .contention_aware_keys(false)
        .volatile();
    for _ in 0..2 {
        db.table_with::<Item>("items", options).unwrap();
    }
    // Only that it is volatile has to be said.
    db.table_with::<Item>("items", TableOptions::default().volatile()).unwrap();
}

#[test]
fn an_option_of_policy_must_equal_the_present_policy_of_the_table() {
    let db = Database::<Occ>::builder().build().unwrap();
    let of = |policy| TableOptions::default().policy(policy);
    let items = db.table_with::<Item>("items", of(Policy::WaitDie)).unwrap();
    let policies = pair("the policy 2pl-wait-die", "the policy occ");
    assert_eq!(differs(&db, of(Policy::Optimistic)), policies);
    db.table::<Item>("items").unwrap();
    items.set_policy(Policy::Optimistic).unwrap();
    db.table_with::<Item>("items", of(Policy::Optimistic)).unwrap();
    assert_eq!(differs(&db, of(Policy::WaitDie)).0, "the policy occ");
    // A policy by name takes precedence, each time.
    let policies = Policies::of(Policy::Optimistic).with("items", Policy::NoWait);
    let db = Database::<Occ>::builder().policy(policies).build().unwrap();
    for _ in 0..2 {
        db.table_with::<Item>("items", of(Policy::WaitDie)).unwrap();
    }
    let db = Database::<Serial>::default();
    db.table::<Item>("items").unwrap();
    let refused = db.table_with::<Item>("items", of(Policy::WaitDie)).unwrap_err();
    assert!(matches!(refused, Error::NoPolicies { .. }), "{refused}");
}
