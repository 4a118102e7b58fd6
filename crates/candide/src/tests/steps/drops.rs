//! The user's values that steps make or hold, when they are dropped.

use super::super::rows::Item;
use super::{Scene, multiply};
use crate::engine::Protocol;
use crate::{Abort, Database, Later, Table, Whole};
use candide_derive::Record;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::thread;

/// A row with one group.
#[derive(Debug, Clone, Copy, Record)]
#[record(crate = crate)]
struct Note {
    #[key]
    id: u64,
    text: u64,
}

/// A value that runs a transaction when it is dropped, and notes how the transaction ends.
struct RunsOnDrop<P: Protocol> {
    db: Database<P>,
    notes: Table<Note, P>,
    ended: Rc<RefCell<Vec<Result<u64, Abort>>>>,
}

impl<P: Protocol> Drop for RunsOnDrop<P> {
    fn drop(&mut self) {
        let ended = self.db.run(|tx| self.notes.read(tx, 1, Note::TEXT));
        self.ended.borrow_mut().push(ended);
    }
}

protocol_tests!(all: the_result_of_a_step_that_changes_the_key_is_dropped_after_the_transaction);
/// The columns of a step can include the key, which must stay. The step has returned by then.
fn the_result_of_a_step_that_changes_the_key_is_dropped_after_the_transaction<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let notes = db.table::<Note>("notes").unwrap();
    db.run(|tx| notes.insert(tx, Note { id: 1, text: 5 })).unwrap();
    let ended = Rc::<RefCell<Vec<_>>>::default();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        db.run(|tx| {
            let (db, notes_of_result, ended) = (db.clone(), notes.clone(), ended.clone());
            notes
                .defer(tx, 1, Whole, (), move |note, ()| {
                    *note = Note { id: 2, text: 6 };
                    RunsOnDrop {
                        db: db.clone(),
                        notes: notes_of_result.clone(),
                        ended: ended.clone(),
                    }
                })
                .map(drop)
        })
    }));
    assert!(panicked.is_err(), "{}", P::NAME);
    assert_eq!(*ended.borrow(), [Ok(5)], "{}", P::NAME);
}

/// A result of a closure, which uses a value of its attempt when it is dropped.
struct UsesOnDrop {
    later: Later<i64>,
    seen: Rc<RefCell<Vec<Result<i64, Abort>>>>,
    computed: Rc<RefCell<Vec<i64>>>,
}

impl Drop for UsesOnDrop {
    fn drop(&mut self) {
        self.seen.borrow_mut().push(self.later.get());
        let computed = self.computed.clone();
        let _ = self.later.map(move |&value| computed.borrow_mut().push(value));
    }
}

protocol_tests!(all: a_closures_result_is_dropped_when_the_attempts_values_are_undone);
fn a_closures_result_is_dropped_when_the_attempts_values_are_undone<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let (seen, computed) = (Rc::<RefCell<Vec<_>>>::default(), Rc::<RefCell<Vec<_>>>::default());
    let ended = scene.run(|items, tx| {
        let later = multiply(items, tx, 1, 2)?;
        items.update(tx, 2, Item::COUNT.sub(1_000).at_least(0))?;
        Ok(UsesOnDrop { later, seen: seen.clone(), computed: computed.clone() })
    });
    assert_eq!(ended.map(drop), Err(Abort::Guard), "{}", P::NAME);
    assert_eq!(*seen.borrow(), [Err(Abort::LaterUndone)], "{}", P::NAME);
    assert!(computed.borrow().is_empty(), "{}", P::NAME);
}

/// The end of a transaction with a step, which another value of the thread runs when it is dropped.
type End = Result<i64, Abort>;

thread_local! {
    static AT_END: RefCell<Option<RunsAtEnd>> = const { RefCell::new(None) };
}

struct RunsAtEnd(Box<dyn Fn() -> End>, std::sync::mpsc::Sender<End>);

impl Drop for RunsAtEnd {
    fn drop(&mut self) {
        let ended = catch_unwind(AssertUnwindSafe(|| (self.0)()));
        self.1.send(ended.unwrap_or(Err(Abort::Panicked))).unwrap();
    }
}

protocol_tests!(all: a_transaction_may_have_steps_while_its_thread_ends);
fn a_transaction_may_have_steps_while_its_thread_ends<P: Protocol>() {
    let Scene { db, items, session } = Scene::<P>::new();
    drop(session);
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let run = move || db.run_deferred(|tx| multiply(&items, tx, 1, 2));
        // Values of the thread are dropped in the reverse order of their first use.
        AT_END.set(Some(RunsAtEnd(Box::new(run), sender)));
        AT_END.with_borrow(|at_end| assert_eq!((at_end.as_ref().unwrap().0)(), Ok(20)));
    })
    .join()
    .unwrap();
    assert_eq!(receiver.recv().unwrap(), Ok(40), "{}", P::NAME);
}
