//! Tests of the life of a value, without a database.

use super::{Later, Work};
use crate::access::Steps;
use crate::error::Abort;
use crate::txn::{OwnedList, Phase};
use std::cell::RefCell;
use std::rc::Rc;

/// A computation that stands for a step, and notes its drop.
struct Seven(Rc<RefCell<Vec<&'static str>>>);

impl Work<u64> for Seven {
    fn run(&mut self, _: &mut [u64]) -> Result<u64, Abort> {
        self.0.borrow_mut().push("run");
        Ok(7)
    }
}

impl Drop for Seven {
    fn drop(&mut self) {
        self.0.borrow_mut().push("dropped");
    }
}

/// Makes the result of a step in `list`, and a computation of it.
fn deferred(list: &OwnedList, log: &Rc<RefCell<Vec<&'static str>>>) -> (Later<u64>, Later<u64>) {
    let seven = Later::step(list.list().clone(), Seven(log.clone()), |_, _| Ok(())).unwrap();
    let eight = seven.map(|seven| seven + 1);
    (seven, eight)
}

#[test]
fn a_result_is_hidden_until_the_attempt_has_committed() {
    let (list, log) = (OwnedList::new(), Rc::default());
    let (seven, eight) = deferred(&list, &log);
    assert_eq!((seven.get(), eight.get()), (Err(Abort::NotYet), Err(Abort::NotYet)));
    assert_eq!(list.list().run(0, &mut []), Ok(()));
    assert_eq!((seven.value(), eight.value()), (Ok(7), Ok(8)), "they are known");
    assert_eq!((seven.get(), eight.get()), (Err(Abort::NotYet), Err(Abort::NotYet)));
    list.end(Phase::Committed);
    assert_eq!((seven.get(), eight.get()), (Ok(7), Ok(8)));
    drop(list);
    assert_eq!((seven.get(), eight.get()), (Ok(7), Ok(8)));
}

#[test]
fn a_result_of_an_undone_part_or_of_a_failed_attempt_is_undone() {
    let (list, log) = (OwnedList::new(), Rc::default());
    let (before, _) = deferred(&list, &log);
    let (undone, computed) = deferred(&list, &log);
    list.list().undo_to(2);
    assert_eq!((undone.get(), computed.get()), (Err(Abort::LaterUndone), Err(Abort::LaterUndone)));
    assert_eq!((&undone + &before).get(), Err(Abort::LaterUndone));
    assert_eq!(before.get(), Err(Abort::NotYet));
    drop(list);
    assert_eq!(before.get(), Err(Abort::LaterUndone));
}

#[test]
fn what_a_step_holds_is_dropped_once_and_at_the_end() {
    let (list, log) = (OwnedList::new(), Rc::<RefCell<Vec<_>>>::default());
    drop(deferred(&list, &log));
    drop(deferred(&list, &log));
    list.list().undo_to(2);
    list.list().keep(Seven(log.clone()));
    assert_eq!(list.list().run(0, &mut []), Ok(()));
    assert_eq!(*log.borrow(), ["run"]);
    list.end(Phase::Committed);
    assert_eq!(*log.borrow(), ["run"]);
    drop(list);
    assert_eq!(*log.borrow(), ["run", "dropped", "dropped", "dropped"]);
}
