//! Tests of deferred operations on objects.

use crate::engine::Protocol;
use crate::objects::{TArray, TBox, TCounter, TMap};
use crate::sync::size::share;
use crate::tests::threads::spawn;
use crate::{Abort, Database};
use std::collections::BTreeSet;

protocol_tests!(all: deferred_operations_apply_in_their_order);
fn deferred_operations_apply_in_their_order<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let (count, value) = (TCounter::new(&db).unwrap(), TBox::new(&db, 5u64).unwrap());
    let array = TArray::new(&db, 2, |_| [0i64; 2]).unwrap();
    let map = TMap::<u64, u64, P>::new(&db).unwrap();
    db.run(|tx| map.put(tx, 1, 10)).unwrap();
    let settled = db.run_deferred(|tx| {
        count.add(tx, 3)?;
        let first = count.fetch_add(tx, 2)?;
        let second = count.fetch_add(tx, 1)?;
        let before = value.replace_later(tx, 8)?;
        let doubled = map.defer(tx, 1, &before, |value, before| {
            *value += before;
            *value
        })?;
        array.defer(tx, 1, (&first, &second), |pair, (first, second)| *pair = [*first, *second])?;
        // What is deferred cannot be read, nor looked at.
        assert_eq!(count.get(tx), Err(Abort::NotYet), "{}", P::NAME);
        assert_eq!(count.at_least(tx, 0), Err(Abort::NotYet), "{}", P::NAME);
        assert_eq!(map.defer(tx, 2, (), |_, ()| ()).map(|_| ()), Err(Abort::NotFound));
        assert_eq!(array.defer(tx, 2, (), |_, ()| ()).map(|_| ()), Err(Abort::OutOfBounds));
        Ok((first, second, before, doubled))
    });
    assert_eq!(settled, Ok((3, 5, 5, 15)), "{}", P::NAME);
    let now = db.run(|tx| Ok((count.get(tx)?, value.get(tx)?, array.get(tx, 1)?, map.get(tx, 1)?)));
    assert_eq!(now, Ok((6, 8, [3, 5], Some(15))), "{}", P::NAME);
    let overflow = db.run_deferred(|tx| count.fetch_add(tx, i64::MAX));
    assert_eq!(overflow, Err(Abort::Overflow), "{}", P::NAME);
    assert_eq!(db.run(|tx| count.get(tx)), Ok(6), "{}", P::NAME);
}

protocol_tests!(concurrent: no_number_is_fetched_twice);
fn no_number_is_fetched_twice<P: Protocol>() {
    const THREADS: u64 = 4;
    let rounds: u64 = share(300);
    let db = Database::<P>::builder().build().unwrap();
    let count = TCounter::new(&db).unwrap();
    let fetched: BTreeSet<i64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (db, count) = (&db, &count);
                let fetch = move |_| db.run_deferred(|tx| count.fetch_add(tx, 1)).unwrap();
                spawn(scope, move || (0..rounds).map(fetch).collect::<Vec<_>>())
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(fetched.len() as u64, THREADS * rounds, "{}", P::NAME);
    assert_eq!(fetched.last(), Some(&((THREADS * rounds) as i64 - 1)), "{}", P::NAME);
}
