//! Tests of the outcome in which an attempt with steps ends, which is the same under every
//! protocol.

use super::super::rows::Item;
use super::{Scene, multiply};
use crate::engine::Protocol;
use crate::{Abort, Later};

/// The error of a closure.
#[derive(Debug, PartialEq)]
enum Ended {
    Own,
    Abort(Abort),
}

impl From<Abort> for Ended {
    fn from(abort: Abort) -> Ended {
        Ended::Abort(abort)
    }
}

protocol_tests!(all: an_update_behind_a_step_that_has_run_fails_before_the_error_of_the_closure);
fn an_update_behind_a_step_that_has_run_fails_before_the_error_of_the_closure<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let Scene { items, session, .. } = &mut scene;
    let ended = session.try_run(|tx| {
        let product = multiply(items, tx, 1, 2)?;
        items.update(tx, 1, Item::COUNT.add(i64::MAX))?;
        assert_eq!(product.now(tx), Ok(20));
        Err::<(), _>(Ended::Own)
    });
    assert_eq!(ended, Err(Ended::Abort(Abort::Overflow)), "{}", P::NAME);
    assert_eq!(scene.count(1), Some(10), "{}", P::NAME);
}

protocol_tests!(all: a_failure_of_a_computation_that_is_needed_is_the_outcome);
fn a_failure_of_a_computation_that_is_needed_is_the_outcome<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let ended = scene.run(|items, tx| {
        let product = multiply(items, tx, 1, 2)?;
        let large: Later<i64> = &product + i64::MAX;
        items.defer(tx, 2, Item::COUNT, &large, |count, large| *count = *large)?;
        tx.attempt(|tx| {
            items.update(tx, 3, Item::COUNT.add(1))?;
            product.now(tx)?;
            Err::<(), _>(Abort::Guard)
        })
        .unwrap_err();
        Ok(())
    });
    assert_eq!(ended, Err(Abort::Overflow), "{}", P::NAME);
    let counts = [1, 2, 3].map(|id| scene.count(id));
    assert_eq!(counts, [Some(10), Some(20), Some(30)], "{}", P::NAME);
}
