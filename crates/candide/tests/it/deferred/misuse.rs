//! Tests of what must not be done with steps and their results.

use super::{add, count, items};
use crate::common::{Item, Seat, database_with, ok, seat};
use candide::{Abort, Error, IndexOptions, Later, Protocol, RunOptions, Table, Tx, Whole};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// Uses a `Later` in every way that a transaction can, and returns the error, which is always the
/// same.
fn misuse<P: Protocol>(tx: &Tx<'_, P>, items: &Table<Item, P>, later: &Later<i64>) -> Abort {
    let (own, known) = (add(tx, items, 4, 0).unwrap(), Later::ready(1));
    let both = later.zip(&own);
    let errors = [
        later.now(tx).unwrap_err(),
        both.now(tx).unwrap_err(),
        (&own + later).now(tx).unwrap_err(),
        items.defer(tx, 3, Item::COUNT, later, |_, _| ()).unwrap_err(),
        items.defer(tx, 3, Item::COUNT, (known, (&own, later)), |_, _| ()).unwrap_err(),
    ];
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    // What is computed of a known value belongs to no transaction.
    if later.get().is_err() {
        let (row, condition) = (later.map(|sum| Item::new(9, *sum)), later.map(|sum| *sum > 0));
        assert_eq!(items.defer_insert(tx, 9, row), Err(errors[0]));
        assert_eq!(tx.require(&condition), Err(errors[0]));
    }
    errors[0]
}

protocol_tests!(all: a_later_belongs_to_one_attempt);
fn a_later_belongs_to_one_attempt<P: Protocol>() {
    let (db, items) = items::<P>();
    let (db_of_others, others) = items_of_others::<P>();
    // Of a transaction that has committed, whose value is there.
    let committed = ok(db.run(|tx| add(tx, &items, 1, 1)));
    ok(db.run(|tx| {
        assert_eq!(misuse(tx, &items, &committed), Abort::ForeignLater);
        assert_eq!(committed.get(), Ok(11));
        let known = Later::ready(committed.get()?);
        items.defer(tx, 2, Item::COUNT, known, |count, more| *count += more).map(drop)
    }));
    assert_eq!(count(&db, &items, 2), 31);
    assert_eq!(db.run_deferred(|_| Ok(committed.clone())), Err(Abort::ForeignLater));
    assert_eq!((committed.map(|sum| sum + 1)).get(), Ok(12), "this one belongs to no transaction");
    // Of a transaction that has failed.
    let mut kept = None;
    let ended = db.run(|tx| {
        kept = Some(add(tx, &items, 1, 1)?);
        Err::<(), _>(Abort::NotFound)
    });
    assert_eq!(ended, Err(Abort::NotFound));
    let failed = kept.unwrap();
    assert_eq!(failed.get(), Err(Abort::LaterUndone));
    ok(db.run(|tx| {
        assert_eq!(misuse(tx, &items, &failed), Abort::LaterUndone);
        Ok(())
    }));
    assert_eq!(db.run_deferred(|_| Ok(Some(failed.clone()))), Err(Abort::LaterUndone));
    // Of a transaction of another database, which goes on.
    ok(db_of_others.run(|outer| {
        let foreign = add(outer, &others, 1, 1)?;
        ok(db.run(|tx| {
            assert_eq!(misuse(tx, &items, &foreign), Abort::ForeignLater);
            assert_eq!(foreign.get(), Err(Abort::NotYet));
            Ok(())
        }));
        let inner = db.run_deferred(|tx| Ok((add(tx, &items, 1, 1)?, foreign.clone())));
        assert_eq!(inner, Err(Abort::ForeignLater));
        assert_eq!(foreign.now(outer), Ok(11));
        Ok(())
    }));
    assert_eq!(count(&db, &items, 1), 11);
}

/// Builds the same database as [`items`], and takes it for another one.
fn items_of_others<P: Protocol>() -> (candide::Database<P>, Table<Item, P>) {
    items()
}

thread_local! {
    static KEPT: RefCell<Option<Later<i64>>> = const { RefCell::new(None) };
}

protocol_tests!(overlapping: a_later_of_an_outer_transaction_is_refused_in_a_nested_one);
fn a_later_of_an_outer_transaction_is_refused_in_a_nested_one<P: Protocol>() {
    let (db, items) = items::<P>();
    let (mut outer, mut inner) = (db.session().unwrap(), db.session().unwrap());
    let sum = outer.run_deferred(|tx| {
        KEPT.set(Some(add(tx, &items, 1, 1)?));
        let nested = inner.run(|tx| {
            let kept = KEPT.with_borrow(|kept| kept.clone().unwrap());
            assert_eq!(kept.now(tx), Err(Abort::ForeignLater));
            items.defer(tx, 2, Item::COUNT, kept, |count, more| *count += more).map(drop)
        });
        assert_eq!(nested, Err(Abort::ForeignLater));
        let own = KEPT.take().unwrap();
        items.defer(tx, 3, Item::COUNT, &own, |count, more| *count += more)?;
        Ok(own)
    });
    assert_eq!(sum, Ok(11));
    assert_eq!((count(&db, &items, 2), count(&db, &items, 3)), (20, 41));
}

protocol_tests!(overlapping: a_later_of_an_earlier_attempt_is_refused);
fn a_later_of_an_earlier_attempt_is_refused<P: Protocol>() {
    let (db, items) = items::<P>();
    let (mut own, mut other) = (db.session().unwrap(), db.session().unwrap());
    let (mut before, mut repeats): (Option<Later<i64>>, _) = (None, false);
    let mut has_changed = false;
    let sum = own.run_deferred(|tx| {
        items.read(tx, 2, Item::COUNT)?;
        if let Some(before) = &before {
            repeats = true;
            assert_eq!(before.now(tx), Err(Abort::LaterUndone));
        } else {
            // A conflict with what was read.
            let changed = other.run(|tx| items.update(tx, 2, Item::COUNT.add(1)));
            has_changed = changed.is_ok();
        }
        let sum = add(tx, &items, 1, 1)?;
        before = Some(sum.clone());
        Ok(sum)
    });
    assert_eq!(sum, Ok(11));
    assert!(repeats || P::NAME == "mvto" || !has_changed, "the read has changed");
}

protocol_tests!(all: the_value_of_a_later_is_taken_once);
fn the_value_of_a_later_is_taken_once<P: Protocol>() {
    let (db, items) = items::<P>();
    let mut kept = None;
    let sum = db.run_deferred(|tx| {
        let sum = add(tx, &items, 1, 1)?;
        kept = Some(sum.clone());
        Ok(sum)
    });
    let kept = kept.unwrap();
    assert_eq!((sum, kept.get()), (Ok(11), Err(Abort::LaterTaken)));
    assert_eq!((&kept + 1).get(), Err(Abort::LaterTaken));
    ok(db.run(|tx| {
        assert_eq!(misuse(tx, &items, &kept), Abort::LaterTaken);
        Ok(())
    }));
    let twice = db.run_deferred(|tx| {
        let sum = add(tx, &items, 1, 1)?;
        Ok(vec![sum.clone(), sum])
    });
    assert_eq!(twice, Err(Abort::LaterTaken));
    let copied = db.run_deferred(|tx| {
        let sum = add(tx, &items, 1, 1)?;
        Ok(vec![sum.map(|sum| *sum), sum])
    });
    assert_eq!(copied, Ok(vec![12, 12]));
    let known = Later::ready(7);
    assert_eq!(db.run_deferred(|_| Ok(known.clone())), Ok(7));
    assert_eq!(db.run_deferred(|_| Ok(known.clone())), Err(Abort::LaterTaken));
}

protocol_tests!(all: a_unit_with_a_step_cannot_be_read_before_the_commit);
fn a_unit_with_a_step_cannot_be_read_before_the_commit<P: Protocol>() {
    let (db, items) = items::<P>();
    ok(db.run(|tx| {
        add(tx, &items, 1, 1)?;
        assert_eq!(items.read(tx, 1, Item::SMALL), Err(Abort::NotYet), "it is in the same group");
        assert_eq!(items.get(tx, 1, Item::COUNT), Err(Abort::NotYet));
        assert_eq!(items.modify(tx, 1, Item::COUNT, |_| ()), Err(Abort::NotYet));
        assert_eq!(items.get_for_update(tx, 1, Item::COUNT), Err(Abort::NotYet));
        assert_eq!(items.read(tx, 2, Item::COUNT), Ok(20));
        // A change of it need not read it.
        items.update(tx, 1, Item::COUNT.add(5))
    }));
    assert_eq!(count(&db, &items, 1), 16);
}

protocol_tests!(all: a_step_begins_no_transaction);
fn a_step_begins_no_transaction<P: Protocol>() {
    let (db, items) = items::<P>();
    let (db_of_others, others) = items_of_others::<P>();
    let (db, db_of_others) = (Rc::new(db), Rc::new(db_of_others));
    let begin = {
        let (db, items, db_of_others) = (db.clone(), Rc::new(items), db_of_others.clone());
        let others = Rc::new(others);
        move || {
            let own = db.run(|tx| items.read(tx, 2, Item::COUNT));
            let other = db_of_others.run(|tx| others.read(tx, 2, Item::COUNT));
            let visited = others.for_each_quiescent(|_| ()).err();
            (own, other, [db.session().err(), db_of_others.session().err(), visited])
        }
    };
    let refused = (Err(Abort::Nested), Err(Abort::Nested), [true; 3]);
    let seen = |(own, other, errors): (_, _, [Option<Error>; 3])| {
        let is_nested =
            |error: Option<Error>| matches!(error, Some(Error::Transaction(Abort::Nested)));
        (own, other, errors.map(is_nested))
    };
    let table = db.table::<Item>("items").unwrap();
    let (in_step, in_map) = db
        .run_deferred(|tx| {
            let (begin, again) = (begin.clone(), begin.clone());
            let in_step = table.defer(tx, 1, Item::COUNT, (), move |_, ()| seen(begin()))?;
            let in_map = in_step.map(move |_| seen(again()));
            Ok((in_step, in_map))
        })
        .unwrap();
    assert_eq!((in_step, in_map), (refused, refused));
    // Afterwards everything is as it was.
    let (own, other, ..) = begin();
    assert_eq!((own, other), (Ok(20), Ok(20)));
}

protocol_tests!(all: the_columns_of_a_step_lie_in_one_group_and_in_no_index);
fn the_columns_of_a_step_lie_in_one_group_and_in_no_index<P: Protocol>() {
    let (db, items) = items::<P>();
    ok(db.run(|tx| {
        let several = items.defer(tx, 1, (Item::COUNT, Item::OTHER), (), |_, ()| ());
        assert_eq!(several.map(drop), Err(Abort::SeveralGroups));
        let whole = items.find(tx, 1)?.defer(Whole, (), |_, ()| ());
        assert_eq!(whole.map(drop), Err(Abort::SeveralGroups));
        assert_eq!(
            items.defer(tx, 77, Item::COUNT, (), |_, ()| ()).map(drop),
            Err(Abort::NotFound)
        );
        Ok(())
    }));
    let reads = db.with(RunOptions::new().read_only());
    assert_eq!(reads.run(|tx| add(tx, &items, 1, 1).map(drop)), Err(Abort::ReadOnly));
    let (_db, foreign) = items_of_others::<P>();
    assert_eq!(db.run(|tx| add(tx, &foreign, 1, 1).map(drop)), Err(Abort::ForeignTable));
    let (db, seats) = database_with::<Seat, P>("seats");
    ok(db.run(|tx| seats.insert(tx, seat(1, 5, 0))));
    seats.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
    let indexed = db.run(|tx| seats.defer(tx, &(1, 5), Seat::OWNER, (), |_, ()| ()).map(drop));
    assert_eq!(indexed, Err(Abort::Indexed));
}

protocol_tests!(all: a_panic_of_a_step_or_a_computation_leaves_no_effect);
fn a_panic_of_a_step_or_a_computation_leaves_no_effect<P: Protocol>() {
    let (db, items) = items::<P>();
    for in_map in [true, false] {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            db.run(|tx| {
                add(tx, &items, 1, 1)?;
                let sum = items.defer(tx, 2, Item::COUNT, (), move |count, ()| {
                    assert!(in_map, "deliberate");
                    *count
                })?;
                let _ = sum.map(|_| panic!("deliberate")).map(|(): &()| 1);
                add(tx, &items, 3, 1)
            })
        }));
        assert!(ended.is_err());
    }
    assert_eq!((1..4).map(|id| count(&db, &items, id)).collect::<Vec<_>>(), [10, 20, 30]);
    ok(db.run(|tx| add(tx, &items, 1, 1)));
    assert_eq!(count(&db, &items, 1), 11, "nothing is locked");
}
