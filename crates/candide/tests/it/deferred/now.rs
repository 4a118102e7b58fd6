//! Tests of results that a transaction asks for before its commit.

use super::{add, count, items};
use crate::common::{Item, ok};
use candide::{Abort, Protocol};
use std::panic::{AssertUnwindSafe, catch_unwind};

protocol_tests!(all: a_result_read_by_now_equals_that_of_the_commit);
fn a_result_read_by_now_equals_that_of_the_commit<P: Protocol>() {
    let (db, items) = items::<P>();
    let rest = ok(db.run_deferred(|tx| {
        items.update(tx, 1, Item::COUNT.add(1))?;
        let first = add(tx, &items, 1, 1)?;
        items.update(tx, 1, Item::COUNT.add(100))?;
        let second = items.defer(tx, 2, Item::COUNT, &first, |count, first| {
            *count += first;
            *count
        })?;
        let doubled = 2 * &second;
        let third = items.defer(tx, 1, Item::COUNT, &doubled, |count, doubled| {
            *count += doubled;
            *count
        })?;
        assert_eq!(doubled.now(tx), Ok(64));
        assert_eq!((second.now(tx), first.now(tx)), (Ok(32), Ok(12)));
        assert_eq!(items.read(tx, 2, Item::COUNT), Ok(32), "the step is an update now");
        let not_yet = items.read(tx, 1, Item::COUNT);
        assert_eq!(not_yet, Err(Abort::NotYet), "this unit has another step");
        items.update(tx, 2, Item::COUNT.add(1000))?;
        Ok((third, second))
    }));
    assert_eq!(rest, (176, 32));
    assert_eq!((count(&db, &items, 1), count(&db, &items, 2)), (176, 1_032));
}

protocol_tests!(overlapping: results_read_by_now_are_observed);
fn results_read_by_now_are_observed<P: Protocol>() {
    let (db, items) = items::<P>();
    let (mut own, mut other) = (db.session().unwrap(), db.session().unwrap());
    let (mut attempts, mut changed) = (0, Ok(()));
    let sum = own.run(|tx| {
        attempts += 1;
        let sum = add(tx, &items, 1, 1)?.now(tx)?;
        // Changes what has been seen.
        if attempts == 1 {
            changed = other.run(|tx| items.update(tx, 1, Item::COUNT.set(500)));
        }
        items.update(tx, 2, Item::COUNT.set(sum))?;
        Ok(sum)
    });
    let expected = if changed.is_ok() { (501, 2) } else { (11, 1) };
    assert!(matches!(changed, Ok(()) | Err(Abort::Nested)), "{changed:?}");
    assert_eq!((sum, attempts), (Ok(expected.0), expected.1));
    assert_eq!((count(&db, &items, 1), count(&db, &items, 2)), (expected.0, expected.0));
    assert!(own.stats().read_set > 0);
}

protocol_tests!(all: a_condition_is_checked_as_soon_as_its_step_has_run);
fn a_condition_is_checked_as_soon_as_its_step_has_run<P: Protocol>() {
    let (db, items) = items::<P>();
    let ended = db.run(|tx| {
        let left = add(tx, &items, 1, -50)?;
        if tx.require(&left.map(|left| *left >= 0)).is_ok() {
            assert_eq!(left.now(tx), Err(Abort::Guard));
        }
        Ok(())
    });
    assert_eq!(ended, Err(Abort::Guard));
    // An earlier update of the same row fails first.
    let ended = db.run(|tx| {
        items.update(tx, 1, Item::COUNT.sub(50).at_least(0))?;
        let left = add(tx, &items, 1, 100)?;
        assert_eq!(left.now(tx), Err(Abort::Guard));
        Ok(())
    });
    assert_eq!(ended, Err(Abort::Guard));
    assert_eq!(count(&db, &items, 1), 10);
}

protocol_tests!(all: a_panic_of_a_step_run_by_now_leaves_no_effect);
fn a_panic_of_a_step_run_by_now_leaves_no_effect<P: Protocol>() {
    let (db, items) = items::<P>();
    let panics = |catches: bool| {
        catch_unwind(AssertUnwindSafe(|| {
            db.run(|tx| {
                items.update(tx, 2, Item::COUNT.set(0))?;
                let step = |tx: &candide::Tx<'_, P>| {
                    let later = items.defer(tx, 1, Item::COUNT, (), |count, ()| {
                        assert!(*count > 100, "deliberate");
                        *count
                    })?;
                    later.now(tx)
                };
                match catches {
                    true => {
                        assert!(catch_unwind(AssertUnwindSafe(|| step(tx))).is_err());
                        Ok(0)
                    }
                    false => step(tx),
                }
            })
        }))
    };
    assert!(panics(false).is_err());
    assert_eq!(panics(true).unwrap(), Err(Abort::Panicked));
    assert_eq!((count(&db, &items, 1), count(&db, &items, 2)), (10, 20));
}
