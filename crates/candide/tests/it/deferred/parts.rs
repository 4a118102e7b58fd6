//! Tests of steps in parts of a transaction that are undone.

use super::{add, count, items, runs_at_once};
use crate::common::{Item, ok};
use candide::{Abort, Later, Protocol};
use std::cell::Cell;
use std::rc::Rc;

protocol_tests!(all: steps_of_an_undone_part_have_no_effect);
fn steps_of_an_undone_part_have_no_effect<P: Protocol>() {
    let (db, items) = items::<P>();
    let ran = Rc::new(Cell::new(0));
    let counting = |tx: &candide::Tx<'_, P>, id| {
        let ran = ran.clone();
        items.defer(tx, id, Item::COUNT, (), move |count, ()| {
            ran.set(ran.get() + 1);
            *count += 1;
            *count
        })
    };
    let sums = ok(db.run_deferred(|tx| {
        ran.set(0);
        let before = counting(tx, 1)?;
        let mut undone = None;
        let part = tx.attempt(|tx| {
            let sum = counting(tx, 1)?;
            counting(tx, 2)?;
            tx.require(&sum.map(|sum| *sum < 0)).ok();
            undone = Some(sum);
            Err::<(), _>(Abort::NotFound)
        });
        // Where the condition is known, it is false, and fails the part.
        assert!(matches!(part, Err(Abort::NotFound | Abort::Guard)), "{part:?}");
        let undone = undone.unwrap();
        assert_eq!(undone.get(), Err(Abort::LaterUndone));
        assert_eq!(undone.now(tx), Err(Abort::LaterUndone));
        assert_eq!((undone + 1).get(), Err(Abort::LaterUndone));
        let kept = tx.attempt(|tx| counting(tx, 2))?;
        let after = counting(tx, 1)?;
        Ok((before, kept, after))
    }));
    assert_eq!(sums, (11, 21, 12));
    assert_eq!(ran.get(), if runs_at_once::<P>() { 5 } else { 3 });
    assert_eq!((count(&db, &items, 1), count(&db, &items, 2)), (12, 21));
}

protocol_tests!(all: a_part_may_read_a_result_of_an_enclosing_part);
fn a_part_may_read_a_result_of_an_enclosing_part<P: Protocol>() {
    let (db, items) = items::<P>();
    let sums = ok(db.run_deferred(|tx| {
        items.update(tx, 1, Item::COUNT.add(100))?;
        let before = add(tx, &items, 1, 1)?;
        let part = tx.attempt(|tx| {
            items.update(tx, 1, Item::COUNT.add(1_000))?;
            let inner = add(tx, &items, 1, 10_000)?;
            assert_eq!(before.now(tx), Ok(111));
            assert_eq!(inner.now(tx), Ok(11_111));
            items.update(tx, 2, Item::COUNT.set(0))?;
            Err::<(), _>(Abort::NotFound)
        });
        assert_eq!(part, Err(Abort::NotFound));
        // The step has run, and its result stays.
        assert_eq!(before.now(tx), Ok(111));
        assert_eq!(items.read(tx, 1, Item::COUNT), Ok(111));
        let after = items.defer(tx, 1, Item::COUNT, &before, |count, before| {
            *count += before;
            *count
        })?;
        Ok((after, before))
    }));
    assert_eq!(sums, (222, 111));
    assert_eq!((count(&db, &items, 1), count(&db, &items, 2)), (222, 20));
}

protocol_tests!(all: the_second_alternative_may_use_an_earlier_result);
fn the_second_alternative_may_use_an_earlier_result<P: Protocol>() {
    let (db, items) = items::<P>();
    let sum = ok(db.run_deferred(|tx| {
        let before = add(tx, &items, 1, 1)?;
        let to = tx.or_else(
            |tx| {
                items.defer(tx, 2, Item::COUNT, &before, |count, more| *count += more)?;
                tx.check(items.read(tx, 3, Item::COUNT)? > 1_000)?;
                Ok::<Later<u64>, Abort>(2.into())
            },
            |tx| {
                items.defer(tx, 4, Item::COUNT, &before, |count, more| *count += more)?;
                Ok(4.into())
            },
        )?;
        Ok((before, to))
    }));
    assert_eq!(sum, (11, 4));
    assert_eq!((count(&db, &items, 2), count(&db, &items, 4)), (20, 51));
}
