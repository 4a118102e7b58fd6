//! Tests that neither the evaluation nor the drop of long chains takes much stack.

use super::{count, items};
use crate::common::{Item, ok};
use candide::{Database, Later, Protocol, Table};
use std::thread;

const LENGTH: u64 = 10_000;

/// Runs a test on a stack on which a recursion over a chain does not fit.
fn on_a_small_stack(test: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(512 << 10);
        thread.spawn_scoped(scope, test).unwrap();
    });
}

fn chain(mut later: Later<u64>) -> Later<u64> {
    for _ in 0..LENGTH {
        later = later.map(|number| number + 1);
    }
    later
}

fn long_chains<P: Protocol>(db: &Database<P>, items: &Table<Item, P>) {
    assert_eq!(chain(Later::ready(0)).get(), Ok(LENGTH));
    let count_of =
        |tx: &candide::Tx<'_, P>| items.defer(tx, 1, Item::COUNT, (), |count, ()| *count as u64);
    assert_eq!(ok(db.run_deferred(|tx| Ok(chain(count_of(tx)?)))), LENGTH + 10);
    // The attempt has no effect, and nothing is computed.
    let ended = db.run(|tx| {
        chain(count_of(tx)?);
        Err::<(), _>(candide::Abort::NotFound)
    });
    assert!(ended.is_err());
    assert_eq!(ok(db.run(|tx| chain(count_of(tx)?).now(tx))), LENGTH + 10);
}

protocol_tests!(all: a_chain_of_ten_thousand_computations_works_on_a_small_stack);
fn a_chain_of_ten_thousand_computations_works_on_a_small_stack<P: Protocol>() {
    let (db, items) = items::<P>();
    on_a_small_stack(|| long_chains(&db, &items));
}

fn many_steps<P: Protocol>(db: &Database<P>, items: &Table<Item, P>) {
    for asks in [false, true] {
        let last = ok(db.run(|tx| {
            let mut last = Later::ready(0);
            for step in 0..LENGTH {
                let id = step % 4;
                last = items.defer(tx, id, Item::COUNT, &last, |count, before| {
                    *count += 1;
                    before + 1
                })?;
            }
            // A result that holds a handle on the one before it.
            let mut chained = last.map(|_| None::<Box<Later<u64>>>);
            for _ in 0..LENGTH {
                let before = chained.clone();
                chained = chained.map(move |_| {
                    let _ = before.clone();
                    None
                });
            }
            if asks {
                assert_eq!(last.now(tx), Ok(LENGTH));
            }
            Ok(last)
        }));
        assert_eq!(last.get(), Ok(LENGTH));
    }
    let sums: Vec<i64> = (0..4).map(|id| count(db, items, id)).collect();
    assert_eq!(sums, [5_000, 5_010, 5_020, 5_030]);
}

protocol_tests!(all: ten_thousand_steps_that_depend_on_one_another_work_on_a_small_stack);
fn ten_thousand_steps_that_depend_on_one_another_work_on_a_small_stack<P: Protocol>() {
    let (db, items) = items::<P>();
    on_a_small_stack(|| many_steps(&db, &items));
}
