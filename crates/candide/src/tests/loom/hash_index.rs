//! Lookups and inserts in a hash index that grows, moves buckets or overflows.

use super::super::rows::Item;
use super::{attempt, count, database, explore, explore_as_it_is, race};
use crate::engine::Protocol;
use crate::index::TableIndex;
use crate::protocols::{Occ, TicToc};
use crate::sync::thread;
use crate::{Database, Table, TableOptions};

/// Makes a table of two buckets of six slots each. Returns an endless iterator over keys for each
/// bucket.
fn two_buckets() -> (Database<Occ>, Table<Item, Occ>, [impl Iterator<Item = u64>; 2]) {
    let db = Database::<Occ>::builder().timestamp_splitting(false).seed(1).build().unwrap();
    let table = db.table_with::<Item>("rows", TableOptions::default().capacity(8)).unwrap();
    let keys = [0, 1].map(|bucket| {
        let table = table.clone();
        (0..).filter(move |&key: &u64| match &table.core().index {
            TableIndex::Hash(hash) => hash.hash(&[key]) & 1 == bucket,
            TableIndex::Ordered(_) => false,
        })
    });
    (db, table, keys)
}

/// A key is inserted into a full bucket while the other bucket is not full. A lookup finds the
/// complete record in an overflow line, or finds no record.
#[test]
fn loom_lookup_against_an_overflow_line() {
    explore_as_it_is(3, || {
        let (db, table, [mut keys, _]) = two_buckets();
        let present: Vec<u64> = keys.by_ref().take(6).collect();
        let (zero, added, missing) = (present[0], keys.next().unwrap(), keys.next().unwrap());
        let mut session = db.session().unwrap();
        session
            .run(|tx| present.iter().try_for_each(|&id| table.insert(tx, Item::new(id, 0))))
            .unwrap();
        let (first, second) = race(
            &db,
            &table,
            move |table, tx| {
                let count = table.read(tx, &zero, Item::COUNT)?;
                table.insert(tx, Item::new(added, count))
            },
            move |table, tx| {
                let there = table.get(tx, &added, Item::COUNT)?.is_some();
                assert_eq!(table.get(tx, &missing, Item::COUNT)?, None);
                table.update(tx, &zero, Item::COUNT.set(if there { 5 } else { 1 }))
            },
        );
        if first && second {
            let rows = count(&db, &table, [zero, added]);
            assert!(rows == [5, 0] || rows == [1, 1], "{rows:?}");
        }
    });
}

/// Two inserts move a table of two buckets to a larger array. Each insert moves its own bucket, and
/// the last one publishes the array. Lookups in the new array also find the records of the other
/// insert's bucket.
#[test]
fn loom_two_inserts_into_a_growing_table() {
    explore(2, || {
        let (db, table, [mut full, mut others]) = two_buckets();
        let in_full: Vec<u64> = full.by_ref().take(6).collect();
        let in_other: Vec<u64> = others.by_ref().take(3).collect();
        let added = [full.next().unwrap(), others.next().unwrap()];
        let mut session = db.session().unwrap();
        session
            .run(|tx| {
                in_full
                    .iter()
                    .chain(&in_other)
                    .try_for_each(|&id| table.insert(tx, Item::new(id, 0)))
            })
            .unwrap();
        let of_other = in_other[0];
        let add =
            move |table: &Table<Item, Occ>, tx: &crate::Tx<'_, Occ>, number: usize, there: u64| {
                table.insert(tx, Item::new(added[number], 0))?;
                assert_eq!(table.read(tx, &there, Item::COUNT)?, 0);
                Ok(())
            };
        let (first, second) = race(
            &db,
            &table,
            move |table, tx| add(table, tx, 0, of_other),
            move |table, tx| add(table, tx, 1, in_full[0]),
        );
        for (id, is_added) in added.into_iter().zip([first, second]) {
            assert_eq!(db.run(|tx| table.get(tx, &id, Item::COUNT)), Ok(is_added.then_some(0)));
        }
    });
}

/// Moves a bucket to a larger array during a lookup. The lookup finds existing keys, and does not
/// miss inserted keys. `rows` rows fill the table, so that one more row makes the table grow.
fn lookup_against_growth<P: Protocol>(rows: u64) {
    let (db, table) = database::<P>(rows);
    let (first, second) = race(
        &db,
        &table,
        move |table, tx| {
            let zero = table.read(tx, 0, Item::COUNT)?;
            table.insert(tx, Item::new(rows, zero))
        },
        move |table, tx| {
            assert_eq!(table.read(tx, 3, Item::COUNT)?, 0);
            let there = table.get(tx, &rows, Item::COUNT)?.is_some();
            table.update(tx, 0, Item::COUNT.set(if there { 5 } else { 1 }))
        },
    );
    if first && second {
        let counts = count(&db, &table, [0, rows]);
        assert!(counts == [5, 0] || counts == [1, 1], "{counts:?}");
    }
}

#[test]
fn loom_lookup_against_growth() {
    // Under the model a table begins with one bucket. Here the bucket has six slots.
    explore_as_it_is(4, || lookup_against_growth::<Occ>(6));
}

#[test]
fn loom_lookup_against_growth_in_timestamp_order() {
    // Two words of the bucket are timestamps, so it has four slots. Four records are not crowded,
    // so an overflow line of seven slots is added before the table grows.
    explore_as_it_is(2, || lookup_against_growth::<TicToc>(11));
}

/// Two inserts of different keys into one bucket take different slots.
#[test]
fn loom_two_inserts_into_one_bucket() {
    explore(3, || {
        let (db, table) = database::<Occ>(0);
        let (first, second) = race(
            &db,
            &table,
            move |table, tx| table.insert(tx, Item::new(1, 1)),
            move |table, tx| table.insert(tx, Item::new(2, 2)),
        );
        let mut session = db.session().unwrap();
        let found = session
            .run(|tx| Ok((table.get(tx, 1, Item::COUNT)?, table.get(tx, 2, Item::COUNT)?)))
            .unwrap();
        assert_eq!(found, (first.then_some(1), second.then_some(2)));
    });
}

/// A lookup finds that its bucket has been moved out of the array in which the lookup began.
#[test]
fn loom_lookup_in_a_moving_bucket() {
    explore(3, || {
        let (db, table) = database::<Occ>(6);
        let inner = table.clone();
        let mut other = db.session().unwrap();
        let other = thread::spawn(move || {
            attempt(&mut other, |tx| inner.insert(tx, Item::new(6, 0)));
        });
        let mut mine = db.session().unwrap();
        assert!(attempt(&mut mine, |tx| {
            assert_eq!(table.read(tx, 3, Item::COUNT)?, 0);
            Ok(())
        }));
        other.join().unwrap();
    });
}
