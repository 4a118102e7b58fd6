//! Tests of lookups in two tables at once, and of the insertion of rows through their handles.

use crate::common::{Item, Order, Seat, builder, run, scene, seat};
use candide::{Abort, Protocol, Record, Table, Tx};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

type OrderKey = <Order as Record>::Key;

fn order((warehouse, district, number): OrderKey, lines: u64) -> Order {
    Order { warehouse, district, number, lines }
}

/// A small random number generator (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// Returns one of 200 keys, in layers of all sizes.
    fn order_key(&mut self) -> OrderKey {
        let warehouse = self.below(5) as u16;
        (warehouse, self.below(2) as u8, self.below(1 + u64::from(warehouse) * 10) as u32)
    }
}

protocol_tests!(all: handles_of_two_tables_read_and_insert_what_one_lookup_each_would);
fn handles_of_two_tables_read_and_insert_what_one_lookup_each_would<P: Protocol>() {
    let db = builder::<P>().build().unwrap();
    let (items, orders) =
        (db.table::<Item>("items").unwrap(), db.table::<Order>("orders").unwrap());
    let mut session = db.session().unwrap();
    let (mut item_model, mut order_model) = (BTreeMap::new(), BTreeMap::new());
    let mut random = Random(7);
    for round in 0..3_000 {
        let (id, key) = (random.below(60), random.order_key());
        let inserts = random.below(4) > 0;
        let ends = run(&mut session, |tx| {
            let (item, entry) = tx.find_both((&items, &id), (&orders, &key))?;
            assert_eq!(item.get(Item::COUNT)?, item_model.get(&id).copied(), "{}", P::NAME);
            assert_eq!(entry.get(Order::LINES)?, order_model.get(&key).copied(), "{}", P::NAME);
            if !inserts {
                return Ok((item.delete_if_present()?, entry.delete_if_present()?));
            }
            let ends = (item.insert(Item::new(id, round)), entry.insert(order(key, round as u64)));
            assert!(items.get(tx, &id, Item::COUNT)?.is_some());
            assert!(orders.get(tx, &key, Order::LINES)?.is_some());
            Ok((ends.0 == Ok(()), ends.1 == Ok(())))
        });
        let is_there = (item_model.contains_key(&id), order_model.contains_key(&key));
        if inserts {
            assert_eq!(ends, (!is_there.0, !is_there.1), "{}", P::NAME);
            item_model.entry(id).or_insert(round);
            order_model.entry(key).or_insert(round as u64);
        } else {
            assert_eq!(ends, is_there, "{}", P::NAME);
            item_model.remove(&id);
            order_model.remove(&key);
        }
    }
    let mut stored = BTreeMap::new();
    orders
        .for_each_quiescent(|row| {
            stored.insert(row.key(), row.lines);
        })
        .expect("no transaction runs");
    assert_eq!(stored, order_model);
}

protocol_tests!(all: the_place_of_a_handle_may_change_before_the_insertion);
/// The transaction itself inserts beside the place, in the place, or a row with another key.
fn the_place_of_a_handle_may_change_before_the_insertion<P: Protocol>() {
    let db = builder::<P>().build().unwrap();
    let orders = db.table::<Order>("orders").unwrap();
    let mut session = db.session().unwrap();
    let both = |tx: &Tx<'_, P>, orders: &Table<Order, P>, keys: (OrderKey, OrderKey)| {
        let (first, second) = tx.find_both((orders, &keys.0), (orders, &keys.1))?;
        let first = first.insert(order(keys.0, 1));
        Ok::<_, Abort>((first, second.insert(order(keys.1, 2))))
    };
    run(&mut session, |tx| {
        // The second insertion splits the slot of the first, and later whole leaves.
        for number in 0..50 {
            let keys = ((1, 1, 2 * number), (1, 1, 2 * number + 1));
            assert_eq!(both(tx, &orders, keys)?, (Ok(()), Ok(())));
        }
        let twice = (2, 2, 2);
        assert_eq!(both(tx, &orders, (twice, twice))?, (Ok(()), Err(Abort::Duplicate)));
        let (entry, other) = tx.find_both((&orders, &(3, 3, 3)), (&orders, &(4, 4, 4)))?;
        orders.insert(tx, order((3, 3, 3), 5))?;
        assert_eq!(entry.insert(order((3, 3, 3), 6)), Err(Abort::Duplicate));
        // A row with another key than the handle's is inserted under its own key.
        other.insert(order((5, 5, 5), 7))?;
        assert_eq!(orders.get(tx, &(4, 4, 4), Order::LINES)?, None);
        assert_eq!(orders.get(tx, &(5, 5, 5), Order::LINES)?, Some(7));
        Ok(())
    });
    assert_eq!(orders.len_estimate(), 103);
}

protocol_tests!(all: a_row_with_another_key_is_not_inserted_at_the_place_of_the_handle);
/// The key of the row agrees with that of the handle in the word by which the place is found.
fn a_row_with_another_key_is_not_inserted_at_the_place_of_the_handle<P: Protocol>() {
    let (db, seats) = scene::<P>();
    let mut session = db.session().unwrap();
    let read = run(&mut session, |tx| {
        for hall in [1, 2] {
            seats.insert_many(tx, [seat(hall, 1, 0), seat(hall, 3, 0)])?;
        }
        let (entry, _) = tx.find_both((&seats, &(1, 2)), (&seats, &(1, 4)))?;
        entry.insert(seat(2, 2, 5))?;
        Ok([seats.get(tx, &(1, 2), Seat::OWNER)?, seats.get(tx, &(2, 2), Seat::OWNER)?])
    });
    assert_eq!(read, [None, Some(5)], "{}", P::NAME);
}

protocol_tests!(concurrent: handles_of_many_threads_insert_each_key_once);
fn handles_of_many_threads_insert_each_key_once<P: Protocol>() {
    let db = builder::<P>().build().unwrap();
    let (items, orders) =
        (db.table::<Item>("items").unwrap(), db.table::<Order>("orders").unwrap());
    db.run(|tx| (0..4).try_for_each(|id| items.insert(tx, Item::new(id, 0)))).unwrap();
    let inserted = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..4 {
            let (db, items, orders, inserted) = (&db, &items, &orders, &inserted);
            scope.spawn(move || {
                let mut random = Random(thread + 1);
                for _ in 0..500 {
                    let (id, key) = (random.below(4), random.order_key());
                    let end = db.run(|tx| {
                        let (item, entry) = tx.find_both((items, &id), (orders, &key))?;
                        item.update(Item::COUNT.add(1))?;
                        entry.insert(order(key, id))
                    });
                    match end {
                        Ok(()) => drop(inserted.fetch_add(1, Ordering::Relaxed)),
                        Err(abort) => assert_eq!(abort, Abort::Duplicate, "{}", P::NAME),
                    }
                }
            });
        }
    });
    let (mut counted, mut there) = (0, 0);
    items.for_each_quiescent(|item| counted += item.count as u64).unwrap();
    orders.for_each_quiescent(|_| there += 1).unwrap();
    let inserted = inserted.into_inner();
    assert_eq!((counted, there), (inserted, inserted), "{}", P::NAME);
}
