//! Tests of sequences in memory.

use crate::common::{Item, builder, database_with, ok, share, spawn};
use candide::{Abort, Database, Error, Mvcc, Mvto, Occ, Protocol, Sequence, TicToc, Versioned};
use std::collections::BTreeSet;

/// Draws a number in a transaction that does nothing else.
fn draw<P: Protocol>(db: &Database<P>, numbers: &Sequence<P>) -> u64 {
    ok(db.run(|tx| numbers.next(tx)))
}

protocol_tests!(all: a_sequence_begins_at_one_and_is_identified_by_its_name);
fn a_sequence_begins_at_one_and_is_identified_by_its_name<P: Protocol>() {
    let db = builder::<P>().build().unwrap();
    let (orders, bills) = (db.sequence("orders").unwrap(), db.sequence("bills").unwrap());
    let again = db.clone().sequence("orders").unwrap();
    let drawn = [&orders, &again, &bills, &orders, &bills.clone()].map(|from| draw(&db, from));
    assert_eq!(drawn, [1, 2, 1, 3, 2], "{}", P::NAME);
    assert_eq!((orders.name(), bills.name()), ("orders", "bills"));
    assert_eq!(format!("{bills:?}"), r#"Sequence { name: "bills", .. }"#);
    assert!(db.tables().is_empty());
}

protocol_tests!(concurrent: no_number_is_drawn_twice);
fn no_number_is_drawn_twice<P: Protocol>() {
    let (db, items) = database_with::<Item, P>("items");
    let numbers = db.sequence("items").unwrap();
    let rounds = share(600);
    let drawn: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let draw_all = || {
            let insert = |_| {
                let mut id = 0;
                ok(db.run(|tx| {
                    id = numbers.next(tx)?;
                    items.insert(tx, Item::new(id, 1))
                }));
                id
            };
            (0..rounds).map(insert).collect()
        };
        let threads = [(); 4].map(|()| spawn(scope, draw_all));
        threads.map(|thread| thread.join().unwrap()).into()
    });
    for of_thread in &drawn {
        assert!(of_thread.is_sorted_by(|a, b| a < b), "{}: {of_thread:?}", P::NAME);
    }
    let all: BTreeSet<u64> = drawn.into_iter().flatten().collect();
    assert_eq!(all.len() as u64, 4 * rounds, "{}", P::NAME);
    let next = draw(&db, &numbers);
    assert!(all.last() < Some(&next), "{}: {next} after {all:?}", P::NAME);
}

protocol_tests!(all: an_aborted_attempt_leaves_a_gap_in_the_sequence);
fn an_aborted_attempt_leaves_a_gap_in_the_sequence<P: Protocol>() {
    let db = builder::<P>().build().unwrap();
    let numbers = db.sequence("orders").unwrap();
    let refused = db.run(|tx| {
        assert_eq!(numbers.next(tx), Ok(1));
        Err::<(), _>(Abort::NotFound)
    });
    assert_eq!(refused, Err(Abort::NotFound));
    assert_eq!(draw(&db, &numbers), 2, "{}", P::NAME);
}

#[test]
fn a_conflicting_attempt_uses_up_its_sequence_number() {
    draw_again::<Occ>();
    draw_again::<TicToc>();
    draw_again::<Mvcc>();
    draw_again::<Mvto>();
}

fn draw_again<P: Protocol>() {
    let (db, items) = database_with::<Item, P>("items");
    let numbers = db.sequence("items").unwrap();
    ok(db.run(|tx| items.insert(tx, Item::new(0, 0))));
    let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
    let mut drawn = Vec::new();
    ok(session.run(|tx| {
        let count = items.read(tx, 0, Item::COUNT)?;
        drawn.push(numbers.next(tx)?);
        if drawn.len() < 3 {
            other.run(|tx| items.update(tx, 0, Item::COUNT.add(1)))?;
        }
        items.update(tx, 0, Item::COUNT.set(count + 1))
    }));
    assert_eq!(drawn, [1, 2, 3], "{}", P::NAME);
}

#[test]
fn invalid_sequence_names_are_refused_with_the_valid_form() {
    let db = Database::new();
    let empty = db.sequence("").unwrap_err();
    assert_eq!(empty, Error::EmptyTableName);
    assert!(empty.to_string().contains("at least one character"), "{empty}");
    let long = "n".repeat(65);
    let refused = db.sequence(&long).unwrap_err();
    assert_eq!(refused, Error::LongName { name: long.clone(), bytes_max: 64 });
    assert!(refused.to_string().ends_with(
        "has 65 bytes, and the name of a sequence or of an object at most 64; use a shorter one"
    ));
    assert_eq!(draw(&db, &db.sequence(&long[1..]).unwrap()), 1);
    let reserved = db.table::<Item>("candide.sequences").unwrap_err();
    assert_eq!(reserved, Error::ReservedName { name: "candide.sequences".to_owned() });
    assert!(reserved.to_string().contains("begin with \"candide.\""), "{reserved}");
    assert!(db.table::<Item>("candide").is_ok());
}

#[test]
fn drawing_in_a_transaction_of_another_database_is_refused() {
    let (db, other) = (Database::new(), Database::new());
    let numbers = db.sequence("orders").unwrap();
    assert_eq!(other.run(|tx| numbers.next(tx)), Err(Abort::ForeignTable));
    assert_eq!(draw(&db, &numbers), 1);
}

protocol_tests!(versioned: drawing_in_a_read_only_transaction_is_refused);
fn drawing_in_a_read_only_transaction_is_refused<P: Versioned>() {
    let db = builder::<P>().build().unwrap();
    let numbers = db.sequence("orders").unwrap();
    let refused = db.snapshot().run(|tx| numbers.next(tx));
    assert_eq!(refused, Err(Abort::ReadOnly), "{}", P::NAME);
    assert_eq!(draw(&db, &numbers), 1, "{}", P::NAME);
}
