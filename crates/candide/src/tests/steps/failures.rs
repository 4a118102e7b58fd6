//! Transactions with steps that fail.

use super::super::rows::Item;
use super::{Scene, multiply};
use crate::engine::Protocol;
use crate::schema::{Refused, Updater};
use crate::{Abort, Table, Tx};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

/// An operation that fails at the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Guard,
    Overflow,
    Panic,
}

const FAULTS: [Fault; 3] = [Fault::Guard, Fault::Overflow, Fault::Panic];

/// Stages an operation on an item that fails, behind a step on the item if `has_step`.
fn stage<P: Protocol>(
    items: &Table<Item, P>,
    tx: &Tx<'_, P>,
    (id, fault): (u64, Fault),
    has_step: bool,
) -> Result<(), Abort> {
    if has_step {
        multiply(items, tx, id, 1)?;
    }
    match fault {
        Fault::Guard => items.update(tx, id, Item::COUNT.sub(1_000).at_least(0)),
        Fault::Overflow => {
            items.update(tx, id, Item::COUNT.max(1))?;
            items.update(tx, id, Item::COUNT.add(i64::MAX))
        }
        Fault::Panic => items
            .defer(tx, id, Item::COUNT, (), |_, ()| resume_unwind(Box::new(Fault::Panic)))
            .map(|later: crate::Later<()>| drop(later)),
    }
}

/// An updater that panics.
#[derive(Debug, Clone, Copy)]
struct Breaks;

impl Updater<Item> for Breaks {
    type Target = crate::Column<Item, i64>;

    fn target(&self) -> Self::Target {
        Item::COUNT
    }

    fn apply(&self, _: &mut i64) -> Result<(), Refused> {
        resume_unwind(Box::new(Fault::Panic))
    }
}

/// Returns how a transaction ends.
fn end<P: Protocol>(
    scene: &mut Scene<P>,
    body: impl FnMut(&Table<Item, P>, &Tx<'_, P>) -> Result<(), Abort>,
) -> Result<(), Fault> {
    match catch_unwind(AssertUnwindSafe(|| scene.run(body))) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(Abort::Guard)) => Err(Fault::Guard),
        Ok(Err(Abort::Overflow)) => Err(Fault::Overflow),
        Ok(Err(other)) => panic!("{}: {other}", P::NAME),
        Err(panic) => Err(*panic.downcast::<Fault>().expect("it is the step's panic")),
    }
}

protocol_tests!(all: the_first_failure_in_the_order_of_the_program_is_the_outcome);
/// The transaction has a step, and then two operations that fail, on rows in either order.
fn the_first_failure_in_the_order_of_the_program_is_the_outcome<P: Protocol>() {
    for (first, second) in FAULTS.into_iter().flat_map(|first| FAULTS.map(|it| (first, it))) {
        for (rows, has_step) in [([1, 2], true), ([2, 1], true), ([1, 2], false), ([2, 2], true)] {
            let mut scene = Scene::<P>::new();
            let ended = end(&mut scene, |items, tx| {
                multiply(items, tx, 3, 2)?;
                stage(items, tx, (rows[0], first), has_step)?;
                stage(items, tx, (rows[1], second), has_step)
            });
            let case = format!("{}: {first:?}, {second:?}, {rows:?}, {has_step}", P::NAME);
            assert_eq!(ended, Err(first), "{case}");
            let counts = [1, 2, 3].map(|id| scene.count(id));
            assert_eq!(counts, [Some(10), Some(20), Some(30)], "{case}");
        }
    }
}

protocol_tests!(all: an_outcome_and_a_panicking_update_come_in_program_order);
fn an_outcome_and_a_panicking_update_come_in_program_order<P: Protocol>() {
    for first in [Fault::Overflow, Fault::Panic] {
        let mut scene = Scene::<P>::new();
        let ended = end(&mut scene, |items, tx| {
            multiply(items, tx, 3, 2)?;
            if first == Fault::Panic {
                items.update_with(tx, 2, Breaks)?;
            }
            stage(items, tx, (1, Fault::Overflow), false)?;
            items.update_with(tx, 2, Breaks)
        });
        assert_eq!(ended, Err(first), "{}", P::NAME);
        let counts = [1, 2, 3].map(|id| scene.count(id));
        assert_eq!(counts, [Some(10), Some(20), Some(30)], "{}", P::NAME);
    }
}

protocol_tests!(all: a_read_behind_an_update_that_panics_tells_of_no_guard);
fn a_read_behind_an_update_that_panics_tells_of_no_guard<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    // A panic of the closure would end in that of the update.
    let mut told = None;
    let ended = end(&mut scene, |items, tx| {
        let product = multiply(items, tx, 1, 2)?;
        items.update_with(tx, 1, Breaks)?;
        product.now(tx)?;
        let read = catch_unwind(AssertUnwindSafe(|| items.read(tx, 1, Item::COUNT)));
        told = read.as_ref().ok().copied();
        read.unwrap_or_else(|panic| resume_unwind(panic)).map(drop)
    });
    assert!(matches!(told, None | Some(Err(Abort::Panicked))), "{}: {told:?}", P::NAME);
    assert_eq!(ended, Err(Fault::Panic), "{}", P::NAME);
    assert_eq!(scene.count(1), Some(10), "{}", P::NAME);
}

protocol_tests!(all: an_error_of_the_closure_takes_precedence_over_failures_of_steps);
fn an_error_of_the_closure_takes_precedence_over_failures_of_steps<P: Protocol>() {
    for fault in FAULTS {
        let mut scene = Scene::<P>::new();
        let ended = scene.run(|items, tx| {
            multiply(items, tx, 3, 2)?;
            stage(items, tx, (1, fault), true)?;
            Err::<(), _>(Abort::NotFound)
        });
        assert_eq!(ended, Err(Abort::NotFound), "{}: {fault:?}", P::NAME);
        assert_eq!([1, 3].map(|id| scene.count(id)), [Some(10), Some(30)], "{}", P::NAME);
    }
    // An update that fails, and is not behind a step, is still the outcome.
    let mut scene = Scene::<P>::new();
    let ended = end(&mut scene, |items, tx| {
        multiply(items, tx, 3, 2)?;
        stage(items, tx, (1, Fault::Guard), false)?;
        Err::<(), _>(Abort::NotFound)
    });
    assert_eq!(ended, Err(Fault::Guard), "{}", P::NAME);
}

protocol_tests!(overlapping: no_step_runs_if_the_closure_fails_or_validation_fails);
fn no_step_runs_if_the_closure_fails_or_validation_fails<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let mut other = scene.db.session().unwrap();
    let runs = Rc::new(Cell::new(0));
    let defer = |items: &Table<Item, P>, tx: &Tx<'_, P>| {
        let runs = runs.clone();
        items.defer(tx, 1, Item::COUNT, (), move |count, ()| {
            runs.set(runs.get() + 1);
            *count += 1;
        })
    };
    let ended = scene.run(|items, tx| defer(items, tx).and(Err::<(), _>(Abort::NotFound)));
    assert_eq!((ended, runs.get()), (Err(Abort::NotFound), 0), "{}", P::NAME);
    let mut attempts = 0;
    let ended = scene.run(|items, tx| {
        attempts += 1;
        items.read(tx, 2, Item::COUNT)?;
        defer(items, tx)?;
        if attempts == 1 {
            other.run(|tx| {
                items.read(tx, 1, Item::COUNT)?;
                items.update(tx, 2, Item::COUNT.add(1))
            })?;
        }
        items.update(tx, 2, Item::COUNT.add(1))
    });
    assert_eq!((ended, attempts, runs.get()), (Ok(()), 2, 1), "{}", P::NAME);
    assert_eq!([1, 2].map(|id| scene.count(id)), [Some(11), Some(22)], "{}", P::NAME);
}

protocol_tests!(all: a_failed_step_that_an_undone_part_has_asked_for_still_fails_the_transaction);
fn a_failed_step_that_an_undone_part_has_asked_for_still_fails_the_transaction<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let ended = end(&mut scene, |items, tx| {
        let most = items.defer(tx, 1, Item::COUNT, (), |_, ()| i64::MAX)?;
        let more = &most + 1;
        let set = items.defer(tx, 2, Item::COUNT, &more, |count, more| *count = *more)?;
        items.update(tx, 3, Item::COUNT.add(1))?;
        assert_eq!(tx.attempt(|tx| set.now(tx)), Err(Abort::Overflow), "{}", P::NAME);
        Ok(())
    });
    assert_eq!(ended, Err(Fault::Overflow), "{}", P::NAME);
}

protocol_tests!(all: an_update_that_fails_behind_a_shown_step_fails_the_transaction);
/// A part is undone after the step has been shown. The next transaction of the session is not
/// affected by the failure.
fn an_update_that_fails_behind_a_shown_step_fails_the_transaction<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let ended = end(&mut scene, |items, tx| {
        let shown = items.defer(tx, 1, Item::COUNT, (), |count, ()| {
            *count = 1;
            *count
        })?;
        items.update(tx, 1, Item::COUNT.add(i64::MAX))?;
        items.update(tx, 3, Item::COUNT.add(1))?;
        assert_eq!(shown.now(tx), Ok(1), "{}", P::NAME);
        tx.or_else(|tx| tx.retry(), |_| Ok(()))
    });
    assert_eq!(ended, Err(Fault::Overflow), "{}", P::NAME);
    let next = end(&mut scene, |items, tx| {
        items.defer(tx, 2, Item::COUNT, (), |count, ()| *count += 1).map(drop)
    });
    assert_eq!(next, Ok(()), "{}", P::NAME);
}

protocol_tests!(all: results_behind_a_failed_one_are_refused_with_its_outcome);
fn results_behind_a_failed_one_are_refused_with_its_outcome<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let ended = end(&mut scene, |items, tx| {
        items.update(tx, 1, Item::COUNT.sub(1_000).at_least(0))?;
        let first = items.defer(tx, 1, Item::COUNT, (), |count, ()| *count)?;
        let second = items.defer(tx, 2, Item::COUNT, (), |count, ()| *count)?;
        assert_eq!(first.now(tx), Err(Abort::Guard), "{}", P::NAME);
        for later in [&first, &second] {
            assert_eq!(later.now(tx), Err(Abort::Guard), "{}", P::NAME);
        }
        let double = second.map(|count| 2 * count);
        assert_eq!(double.now(tx), Err(Abort::Guard), "{}", P::NAME);
        Ok(())
    });
    assert_eq!(ended, Err(Fault::Guard), "{}", P::NAME);
}

protocol_tests!(all: a_step_that_has_panicked_in_an_undone_part_fails_the_transaction);
fn a_step_that_has_panicked_in_an_undone_part_fails_the_transaction<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let ended = scene.run(|items, tx| {
        let later: crate::Later<()> =
            items.defer(tx, 1, Item::COUNT, (), |_, ()| resume_unwind(Box::new(Fault::Panic)))?;
        let asked = catch_unwind(AssertUnwindSafe(|| tx.attempt(|tx| later.now(tx))));
        assert!(asked.is_err(), "{}", P::NAME);
        items.update(tx, 3, Item::COUNT.add(1))
    });
    assert_eq!(ended, Err(Abort::Panicked), "{}", P::NAME);
}

/// An operation that fails, or has failed, before a step is deferred.
type Failing<P> = fn(&Table<Item, P>, &Tx<'_, P>) -> Result<(), Abort>;

protocol_tests!(all: no_step_runs_behind_a_failure);
fn no_step_runs_behind_a_failure<P: Protocol>() {
    let failing: [(Failing<P>, Fault); 5] = [
        (|items, tx| stage(items, tx, (1, Fault::Guard), false), Fault::Guard),
        (|items, tx| stage(items, tx, (1, Fault::Overflow), true), Fault::Overflow),
        (|items, tx| stage(items, tx, (1, Fault::Panic), false), Fault::Panic),
        (
            |items, tx| {
                let most = items.defer(tx, 1, Item::COUNT, (), |_, ()| i64::MAX)?;
                items.defer(tx, 2, Item::COUNT, &most + 1, |_, _| ()).map(drop)
            },
            Fault::Overflow,
        ),
        (
            |items, tx| {
                let covered = items.defer(tx, 1, Item::COUNT, (), |_, ()| false)?;
                let _ = tx.require(&covered);
                Ok(())
            },
            Fault::Guard,
        ),
    ];
    for (number, (fail, fault)) in failing.into_iter().enumerate() {
        for asks in [false, true] {
            let mut scene = Scene::<P>::new();
            let runs = Rc::new(Cell::new(0));
            let ended = end(&mut scene, |items, tx| {
                fail(items, tx)?;
                for id in [2, 3] {
                    let runs = runs.clone();
                    let later = items.defer(tx, id, Item::COUNT, (), move |count, ()| {
                        runs.set(runs.get() + 1);
                        *count
                    })?;
                    let double = later.map(|count| 2 * count);
                    if asks && fault != Fault::Panic {
                        // Whether it runs then depends on the protocol.
                        let _ = double.now(tx);
                        let _ = double.now(tx);
                    }
                }
                Ok(())
            });
            let case = format!("{}: {number}, {asks}", P::NAME);
            assert_eq!(ended, Err(fault), "{case}");
            assert!(asks || runs.get() == 0, "{case}");
        }
    }
}

protocol_tests!(all: a_panic_of_a_computation_fails_the_transaction_even_if_it_is_caught);
fn a_panic_of_a_computation_fails_the_transaction_even_if_it_is_caught<P: Protocol>() {
    for (is_undone, has_more) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut scene = Scene::<P>::new();
        let ended = scene.run(|items, tx| {
            let later = multiply(items, tx, 1, 2)?;
            items.update(tx, 3, Item::COUNT.add(1))?;
            assert_eq!(later.now(tx), Ok(20), "{}", P::NAME);
            let part = || {
                let caught = catch_unwind(AssertUnwindSafe(|| {
                    let _ = later.map(|_| resume_unwind(Box::new(Fault::Panic))).map(|(): &()| ());
                }));
                assert!(caught.is_err(), "{}", P::NAME);
                Err::<(), _>(Abort::NotFound)
            };
            let part = if is_undone { tx.attempt(|_| part()) } else { part() };
            assert_eq!(part, Err(Abort::NotFound), "{}", P::NAME);
            // The value itself is as it was.
            assert_eq!(later.now(tx), Ok(20), "{}", P::NAME);
            // A step behind the computation would not run.
            if has_more { multiply(items, tx, 2, 2).map(drop) } else { Ok(()) }
        });
        let expected = if is_undone { Ok(()) } else { Err(Abort::Panicked) };
        assert_eq!(ended, expected, "{}: {is_undone}, {has_more}", P::NAME);
        let left = match (is_undone, has_more) {
            (true, true) => [20, 40, 31],
            (true, false) => [20, 20, 31],
            (false, _) => [10, 20, 30],
        };
        let counts = [1, 2, 3].map(|id| scene.count(id));
        assert_eq!(counts, left.map(Some), "{}: {is_undone}, {has_more}", P::NAME);
    }
}
