//! Tests of what steps compute and return, and of their order.

use super::{add, count, items, runs_at_once};
use crate::common::{Item, database_with, ok, share, spawn};
use candide::{Abort, Database, Later, Protocol, Record, RunOptions, Table};
use std::cell::RefCell;
use std::rc::Rc;
use std::thread;

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Account {
    #[key]
    id: u64,
    cents: i64,
}

/// Takes `amount`, or as much as there is, from account `from`, and gives what was taken to `to`.
/// The transaction reads nothing.
fn deferred_transfer<P: Protocol>(
    db: &Database<P>,
    accounts: &Table<Account, P>,
    (from, to): (u64, u64),
    amount: i64,
) -> Result<i64, Abort> {
    db.run_deferred(|tx| {
        let paid = accounts.defer(tx, from, Account::CENTS, (), move |cents, ()| {
            let paid = amount.min(*cents);
            *cents -= paid;
            paid
        })?;
        accounts.defer(tx, to, Account::CENTS, &paid, |cents, paid| *cents += paid)?;
        Ok(paid)
    })
}

/// Does what [`deferred_transfer`] does, on balances that the transaction reads.
fn eager_transfer<P: Protocol>(
    db: &Database<P>,
    accounts: &Table<Account, P>,
    (from, to): (u64, u64),
    amount: i64,
) -> Result<i64, Abort> {
    db.run(|tx| {
        let paid = amount.min(accounts.read(tx, from, Account::CENTS)?);
        accounts.modify(tx, from, Account::CENTS, |cents| *cents -= paid)?;
        accounts.modify(tx, to, Account::CENTS, |cents| *cents += paid)?;
        Ok(paid)
    })
}

protocol_tests!(all: a_transfer_by_steps_has_the_effect_of_an_eager_transfer);
fn a_transfer_by_steps_has_the_effect_of_an_eager_transfer<P: Protocol>() {
    let run = |transfer: fn(&_, &_, _, _) -> Result<i64, Abort>| {
        let (db, accounts) = database_with::<Account, P>("accounts");
        ok(db.run(|tx| accounts.insert_many(tx, (0..3).map(|id| Account { id, cents: 100 }))));
        let paid = [((0, 1), 70), ((0, 1), 70), ((1, 2), 1_000), ((2, 2), 5), ((0, 7), 5)]
            .map(|(accounts_of, amount)| transfer(&db, &accounts, accounts_of, amount));
        let left = (0..3).map(|id| ok(db.run(|tx| accounts.read(tx, id, Account::CENTS))));
        (paid, left.collect::<Vec<_>>())
    };
    let expected = ([Ok(70), Ok(30), Ok(200), Ok(5), Err(Abort::NotFound)], vec![0, 0, 300]);
    assert_eq!(run(deferred_transfer), expected);
    assert_eq!(run(eager_transfer), expected);
}

protocol_tests!(concurrent: transfers_of_steps_and_eager_ones_keep_the_sum);
fn transfers_of_steps_and_eager_ones_keep_the_sum<P: Protocol>() {
    let (db, accounts) = database_with::<Account, P>("accounts");
    ok(db.run(|tx| accounts.insert_many(tx, (0..4).map(|id| Account { id, cents: 100 }))));
    thread::scope(|scope| {
        for thread in 0..3u64 {
            let (db, accounts) = (&db, &accounts);
            spawn(scope, move || {
                for round in 0..share(600) {
                    let (from, to) = ((round + thread) % 4, (round / 4 + 2 * thread) % 4);
                    let transfer =
                        if round % 3 == thread { eager_transfer } else { deferred_transfer };
                    ok(transfer(db, accounts, (from, to), (round % 50) as i64));
                }
            });
        }
    });
    let left = |id| ok(db.run(|tx| accounts.read(tx, id, Account::CENTS)));
    let left: Vec<i64> = (0..4).map(left).collect();
    assert_eq!(left.iter().sum::<i64>(), 400, "{left:?}");
    assert!(left.iter().all(|&cents| cents >= 0), "{left:?}");
}

protocol_tests!(all: steps_and_updates_of_a_row_take_effect_in_the_order_of_the_program);
fn steps_and_updates_of_a_row_take_effect_in_the_order_of_the_program<P: Protocol>() {
    let (db, items) = items::<P>();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let sums = ok(db.run_deferred(|tx| {
        let note = |id: u64, what: &'static str| {
            let seen = seen.clone();
            items.defer(tx, id, Item::COUNT, (), move |count, ()| {
                seen.borrow_mut().push((what, *count));
                *count
            })
        };
        seen.borrow_mut().clear();
        let first = note(1, "first")?;
        items.update(tx, 1, Item::COUNT.add(5))?;
        let other = note(2, "other")?;
        let second = note(1, "second")?;
        items.update(tx, 1, Item::COUNT.set(3))?;
        let third = add(tx, &items, 1, 1)?;
        items.update(tx, 1, Item::COUNT.add(10))?;
        Ok((first, other, second, third))
    }));
    assert_eq!(sums, (10, 20, 15, 4));
    assert_eq!(*seen.borrow(), [("first", 10), ("other", 20), ("second", 15)]);
    assert_eq!(count(&db, &items, 1), 14);
}

protocol_tests!(all: a_step_gets_the_results_of_the_steps_before_it);
fn a_step_gets_the_results_of_the_steps_before_it<P: Protocol>() {
    let (db, items) = items::<P>();
    let total = ok(db.run_deferred(|tx| {
        let one = add(tx, &items, 1, 1)?;
        let two = add(tx, &items, 2, 2)?.map(|sum| vec![*sum]);
        let both = one.zip(&two);
        let three = items.find(tx, 3)?.defer(
            (Item::COUNT, Item::SMALL),
            (&one, (&two, both), Later::ready(1_000)),
            |(count, small), (one, (two, both), known)| {
                assert_eq!((*one, two), (both.0, &both.1));
                *count += one + two[0] + known;
                *small += 1;
                *count
            },
        )?;
        Ok((three, (one, two), Some([Later::ready("known")])))
    }));
    assert_eq!(total, (30 + 11 + 22 + 1_000, (11, vec![22]), Some(["known"])));
    let row = ok(db.run(|tx| items.read(tx, 3, (Item::COUNT, Item::SMALL, Item::OTHER))));
    assert_eq!(row, (1_063, 8, 100));
}

protocol_tests!(overlapping: a_transaction_of_steps_observes_nothing);
fn a_transaction_of_steps_observes_nothing<P: Protocol>() {
    let (db, items) = items::<P>();
    let (mut own, mut other) = (db.session().unwrap(), db.session().unwrap());
    let (mut attempts, mut changed) = (0, Ok(()));
    let sum = own.run_deferred(|tx| {
        attempts += 1;
        let sum = add(tx, &items, 1, 1)?;
        let later = add(tx, &items, 2, 1)?;
        tx.require(&later.map(|sum| *sum > 0))?;
        changed = other.run(|tx| items.update(tx, 1, Item::COUNT.set(500)));
        Ok(sum)
    });
    // A policy may lock the row for the step.
    let expected = if changed.is_ok() { 501 } else { 11 };
    assert!(matches!(changed, Ok(()) | Err(Abort::Nested)), "{changed:?}");
    assert_eq!((sum, attempts), (Ok(expected), 1));
    assert_eq!(own.stats().read_set, 0);
    ok(own.run(|tx| items.modify(tx, 1, Item::COUNT, |count| *count += 1)));
    assert!(own.stats().read_set > 0, "an eager transaction does");
}

protocol_tests!(all: a_condition_that_is_false_at_the_commit_undoes_the_transaction);
fn a_condition_that_is_false_at_the_commit_undoes_the_transaction<P: Protocol>() {
    let (db, items) = items::<P>();
    let pay = |amount: i64| {
        db.run_deferred(|tx| {
            items.update(tx, 2, Item::COUNT.add(amount))?;
            let left = add(tx, &items, 1, -amount)?;
            tx.require(&left.map(|left| *left >= 0))?;
            tx.require(&Later::ready(true))?;
            Ok(left)
        })
    };
    assert_eq!(pay(7), Ok(3));
    assert_eq!(pay(7), Err(Abort::Guard));
    assert_eq!((count(&db, &items, 1), count(&db, &items, 2)), (3, 27));
    // A condition that is known to be false ends the transaction, whatever the closure makes of it.
    let ignored = db.run(|tx| {
        items.update(tx, 1, Item::COUNT.set(0))?;
        assert_eq!(tx.require(&Later::ready(false)), Err(Abort::Guard));
        Ok(())
    });
    assert_eq!(ignored, Err(Abort::Guard));
    assert_eq!(count(&db, &items, 1), 3);
}

protocol_tests!(all: a_failed_guard_before_or_behind_a_step_is_the_outcome);
fn a_failed_guard_before_or_behind_a_step_is_the_outcome<P: Protocol>() {
    let (db, items) = items::<P>();
    for before in [true, false] {
        let guard = Item::COUNT.sub(100).at_least(0);
        let ended = db.run(|tx| {
            if before {
                items.update(tx, 1, guard)?;
            }
            let sum = add(tx, &items, 1, 1)?;
            items.defer(tx, 2, Item::COUNT, &sum, |count, sum| *count = *sum)?;
            if !before {
                items.update(tx, 1, guard)?;
            }
            Ok(())
        });
        assert_eq!(ended, Err(Abort::Guard));
    }
    assert_eq!((count(&db, &items, 1), count(&db, &items, 2)), (10, 20));
}

protocol_tests!(all: an_attempt_whose_closure_returns_an_error_has_no_effect);
fn an_attempt_whose_closure_returns_an_error_has_no_effect<P: Protocol>() {
    let (db, items) = items::<P>();
    let ran = Rc::new(RefCell::new(0));
    let ended = db.try_run_deferred(|tx| {
        let ran = ran.clone();
        let sum = items.defer(tx, 1, Item::COUNT, (), move |count, ()| {
            *ran.borrow_mut() += 1;
            *count += 1;
        })?;
        if tx.attempt_number() > 0 {
            Err::<Later<()>, _>(Box::<dyn std::error::Error>::from("no"))
        } else {
            Ok(sum)
        }
    });
    assert_eq!(ended.unwrap_err().to_string(), "no");
    assert_eq!(*ran.borrow(), i32::from(runs_at_once::<P>()));
    assert_eq!(count(&db, &items, 1), 10);
}

protocol_tests!(all: runners_return_the_values);
fn runners_return_the_values<P: Protocol>() {
    let (db, items) = items::<P>();
    let named = RunOptions::new().named("add");
    assert_eq!(db.with(named).run_deferred(|tx| add(tx, &items, 1, 1)), Ok(11));
    assert_eq!(db.with(named).try_run_deferred(|tx| add(tx, &items, 1, 1)), Ok::<_, Abort>(12));
    let pending = db.with(named).run_deferred_logged(|tx| add(tx, &items, 1, 1));
    assert_eq!(pending.wait(), Ok(13));
    let mut session = db.session().unwrap();
    assert_eq!(session.run_deferred(|tx| add(tx, &items, 1, 1)), Ok(14));
    assert_eq!(session.with(named).run_deferred(|tx| add(tx, &items, 1, 1)), Ok(15));
    let pending = session.with(named).run_deferred_logged(|tx| add(tx, &items, 1, 1));
    assert_eq!(pending.peek(), Ok(&16));
    assert_eq!(pending.wait(), Ok(16));
}
