//! Actions of other transactions at exact points of a transaction.

use crate::sync::{Duration, Point, with_hook};
use std::cell::Cell;
use std::rc::Rc;

/// Runs `body`, and `act` the first time that this thread passes `at`.
pub(crate) fn acting<T>(at: Point, act: impl FnOnce() + 'static, body: impl FnOnce() -> T) -> T {
    let (mut act, acted) = (Some(act), Rc::new(Cell::new(false)));
    let done = acted.clone();
    let hook = move |point| {
        if point == at
            && let Some(act) = act.take()
        {
            // If timestamps come from the clock, later timestamps are then from a later tick.
            std::thread::sleep(Duration::from_nanos(1));
            act();
            done.set(true);
        }
    };
    let result = with_hook(hook, body);
    assert!(acted.get(), "{at:?} is not on the way");
    result
}
