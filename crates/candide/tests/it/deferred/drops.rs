//! Tests of what steps have captured and returned: it is dropped once, outside of the transaction.

use super::items;
use crate::common::{Item, ok};
use candide::{Abort, Database, Later, Protocol, Table, Tx};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// A value that notes its drop, and runs a transaction then.
struct Noisy<P: Protocol> {
    name: &'static str,
    log: Rc<RefCell<Vec<&'static str>>>,
    db: Rc<Database<P>>,
    items: Rc<Table<Item, P>>,
    panics: bool,
}

impl<P: Protocol> Noisy<P> {
    /// Returns one. A closure that calls this captures the whole value.
    fn one(&self) -> i64 {
        1
    }
}

impl<P: Protocol> Drop for Noisy<P> {
    fn drop(&mut self) {
        self.log.borrow_mut().push(self.name);
        let ran = self.db.run(|tx| self.items.update(tx, 4, Item::COUNT.add(1)));
        assert_eq!(ran, Ok(()), "{} is dropped within a transaction", self.name);
        assert!(!self.panics, "deliberate");
    }
}

struct Scene<P: Protocol> {
    db: Rc<Database<P>>,
    items: Rc<Table<Item, P>>,
    log: Rc<RefCell<Vec<&'static str>>>,
}

impl<P: Protocol> Scene<P> {
    fn new() -> Scene<P> {
        let (db, items) = items::<P>();
        Scene { db: Rc::new(db), items: Rc::new(items), log: Rc::default() }
    }

    fn noisy(&self, name: &'static str) -> Noisy<P> {
        let (db, items, log) = (self.db.clone(), self.items.clone(), self.log.clone());
        Noisy { name, log, db, items, panics: false }
    }

    /// Defers a step with a capture, whose result is `result`, and a computation of it, with
    /// another capture.
    fn defer(&self, tx: &Tx<'_, P>, panics: bool) -> Result<Later<Noisy<P>>, Abort> {
        let mut capture = self.noisy("capture");
        capture.panics = panics;
        let mut result = Some(self.noisy("result"));
        let later = self.items.defer(tx, 1, Item::COUNT, (), move |count, ()| {
            *count += capture.one();
            result.take().unwrap()
        })?;
        let capture_of_map = self.noisy("map");
        let _ = later.map(move |result| result.one() + capture_of_map.one());
        Ok(later)
    }

    /// Returns what was dropped since the last call, in the order of the names.
    fn dropped(&self) -> Vec<&'static str> {
        let mut log = self.log.take();
        log.sort_unstable();
        log
    }
}

const ALL: [&str; 3] = ["capture", "map", "result"];

protocol_tests!(all: captures_and_results_are_dropped_once_and_after_the_transaction);
fn captures_and_results_are_dropped_once_and_after_the_transaction<P: Protocol>() {
    let scene = Scene::<P>::new();
    let Scene { db, .. } = &scene;
    ok(db.run(|tx| scene.defer(tx, false).map(drop)));
    assert_eq!(scene.dropped(), ALL);
    // The caller gets the result.
    let result = ok(db.run_deferred(|tx| scene.defer(tx, false)));
    assert_eq!(scene.dropped(), ["capture", "map"]);
    drop(result);
    assert_eq!(scene.dropped(), ["result"]);
    // A handle keeps it.
    let later = ok(db.run(|tx| scene.defer(tx, false)));
    assert_eq!(scene.dropped(), ["capture", "map"]);
    drop(later);
    assert_eq!(scene.dropped(), ["result"]);
}

protocol_tests!(all: captures_are_dropped_once_if_the_attempt_has_no_effect);
fn captures_are_dropped_once_if_the_attempt_has_no_effect<P: Protocol>() {
    let scene = Scene::<P>::new();
    let Scene { db, items, .. } = &scene;
    let ended = db.run(|tx| {
        scene.defer(tx, false)?;
        Err::<(), _>(Abort::NotFound)
    });
    assert_eq!((ended, scene.dropped()), (Err(Abort::NotFound), ALL.to_vec()));
    // The commit fails before or after the step.
    for before in [true, false] {
        let ended = db.run(|tx| {
            if before {
                items.update(tx, 2, Item::COUNT.sub(100).at_least(0))?;
            }
            scene.defer(tx, false)?;
            if !before {
                items.update(tx, 2, Item::COUNT.sub(100).at_least(0))?;
            }
            Ok(())
        });
        assert_eq!((ended, scene.dropped()), (Err(Abort::Guard), ALL.to_vec()));
    }
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        db.run(|tx| {
            scene.defer(tx, false)?;
            items.defer(tx, 2, Item::COUNT, (), |_, ()| panic!("deliberate")).map(|_: Later<()>| ())
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(scene.dropped(), ALL);
    // A part is undone: what its steps hold stays until the end of the transaction.
    ok(db.run(|tx| {
        let part = tx.attempt(|tx| {
            scene.defer(tx, false)?;
            Err::<(), _>(Abort::NotFound)
        });
        assert_eq!(part, Err(Abort::NotFound));
        assert_eq!(scene.dropped(), Vec::<&str>::new());
        Ok(())
    }));
    assert_eq!(scene.dropped(), ALL);
    // A step that is refused.
    ok(db.run(|tx| {
        let refuse = |id| {
            let capture = scene.noisy("capture");
            let step = move |count: &mut i64, ()| *count += capture.one();
            items.defer(tx, id, Item::COUNT, (), step).map(drop)
        };
        assert_eq!(refuse(77), Err(Abort::NotFound));
        assert_eq!(scene.dropped(), Vec::<&str>::new());
        Ok(())
    }));
    assert_eq!(scene.dropped(), ["capture"]);
}

protocol_tests!(all: a_panic_of_a_drop_comes_after_the_commit_and_keeps_no_other_from_being_dropped);
fn a_panic_of_a_drop_comes_after_the_commit_and_keeps_no_other_from_being_dropped<P: Protocol>() {
    let scene = Scene::<P>::new();
    let Scene { db, items, log } = &scene;
    let effects = log.clone();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        db.run(|tx| {
            scene.defer(tx, true)?;
            scene.defer(tx, true)?;
            let effects = effects.clone();
            tx.on_commit(move || effects.borrow_mut().push("effect"));
            Ok(())
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(scene.dropped(), ["capture", "capture", "effect", "map", "map", "result", "result"]);
    let sum = ok(db.run(|tx| items.read(tx, 1, Item::COUNT)));
    assert_eq!(sum, 12, "the transaction has committed");
    // The same if the closure panics.
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        db.run(|tx| {
            scene.defer(tx, true)?;
            if tx.attempt_number() > 0 {
                std::panic::panic_any("the first one");
            }
            Ok(())
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(scene.dropped(), ALL);
}
