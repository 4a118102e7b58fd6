//! Tests of transactions that run inside another session's closure and wait for the closure's own
//! transaction.

use super::rows::Item;
use crate::engine::Protocol;
use crate::{Abort, Database, RunOptions, Session, Table};
use std::cell::Cell;

/// Options without a limit on attempts. Where a test sets the limit [`ATTEMPTS_MAX`], a refusal
/// takes far fewer attempts than that.
const MANY: RunOptions<'static> = RunOptions::new();
const ATTEMPTS_MAX: u32 = 100;

/// A database with row 1, and three sessions.
struct Scene<P: Protocol> {
    db: Database<P>,
    items: Table<Item, P>,
    sessions: [Session<P>; 3],
}

fn scene<P: Protocol>() -> Scene<P> {
    let db = Database::<P>::builder().build().unwrap();
    let items = db.table::<Item>("rows").unwrap();
    db.run(|tx| items.insert(tx, Item::new(1, 0))).unwrap();
    let sessions = [(); 3].map(|()| db.session().unwrap());
    Scene { db, items, sessions }
}

protocol_tests!(concurrent: a_transaction_nested_in_the_token_holder_is_refused);
fn a_transaction_nested_in_the_token_holder_is_refused<P: Protocol>() {
    let Scene { items, sessions: [mut outer, mut inner, _], .. } = scene::<P>();
    let attempts = Cell::new(0);
    let ended = outer.with(MANY.attempts_max(ATTEMPTS_MAX)).run(|tx| {
        attempts.set(attempts.get() + 1);
        let count = items.read(tx, 1, Item::COUNT)?;
        // The inner transaction blocks the enclosing one, until other transactions yield to the
        // enclosing one.
        let options = MANY.attempts_max(ATTEMPTS_MAX);
        inner.with(options).run(|tx| items.update(tx, 1, Item::COUNT.add(1)))?;
        items.update(tx, 1, Item::COUNT.set(count + 1))
    });
    assert_eq!(ended, Err(Abort::Nested), "{}", P::NAME);
    assert!(attempts.get() <= 40, "{}: {} attempts", P::NAME, attempts.get());
    // The refused transaction leaves no effect.
    for session in [&mut outer, &mut inner] {
        let added = session.run(|tx| items.update(tx, 1, Item::COUNT.add(1)));
        assert_eq!(added, Ok(()), "{}", P::NAME);
    }
}

protocol_tests!(concurrent: a_transaction_within_one_that_holds_its_row_is_refused);
fn a_transaction_within_one_that_holds_its_row_is_refused<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let items = db.table::<Item>("rows").unwrap();
    let (mut outer, mut inner) = (db.session().unwrap(), db.session().unwrap());
    let filled = outer.run(|tx| (1..=3).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
    filled.unwrap();
    let tried = Cell::new(0);
    let ended = outer.run(|tx| {
        items.read_for_update(tx, 1, Item::COUNT)?;
        let mut update = |id: u64| {
            inner.with(MANY.attempts_max(ATTEMPTS_MAX)).run(|tx| {
                tried.set(tried.get() + 1);
                items.update(tx, &id, Item::COUNT.add(1))
            })
        };
        let excluded = db.inner.engine.properties.name == "global-lock";
        let others = if excluded { Err(Abort::Nested) } else { Ok(()) };
        assert_eq!(
            [update(2), update(1), update(3)],
            [others, Err(Abort::Nested), others],
            "{}",
            P::NAME
        );
        items.update(tx, 1, Item::COUNT.add(1))
    });
    assert_eq!(ended, Ok(()), "{}", P::NAME);
    assert!(tried.get() <= 3, "{}: {} attempts", P::NAME, tried.get());
    let updated = inner.run(|tx| items.update(tx, 1, Item::COUNT.add(1)));
    assert_eq!(updated, Ok(()), "{}", P::NAME);
    assert_eq!(outer.run(|tx| items.read(tx, 1, Item::COUNT)), Ok(2));
}

protocol_tests!(overlapping: a_nested_transaction_repeats_without_the_token_of_the_outer_one);
fn a_nested_transaction_repeats_without_the_token_of_the_outer_one<P: Protocol>() {
    let Scene { db, items, sessions: [mut outer, mut inner, mut other] } = scene::<P>();
    let mut disturb = || other.run(|tx| items.update(tx, 1, Item::COUNT.add(1)));
    let (mut attempts, mut inner_attempts) = (0, 0);
    let ended = outer.run(|tx| {
        attempts += 1;
        if attempts == 2 {
            return inner.run(|tx| {
                inner_attempts += 1;
                let count = items.read(tx, 1, Item::COUNT)?;
                if inner_attempts == 1 {
                    disturb()?;
                }
                items.update(tx, 1, Item::COUNT.set(count + 1))
            });
        }
        let count = items.read(tx, 1, Item::COUNT)?;
        disturb()?;
        items.update(tx, 1, Item::COUNT.set(count + 1))
    });
    assert_eq!((ended, attempts, inner_attempts), (Ok(()), 2, 2), "{}", P::NAME);
    let entered = db.inner.engine.parking.entered();
    assert_eq!(entered, 0, "{}: it has slept until the transaction around it is over", P::NAME);
}

protocol_tests!(
    concurrent: a_transaction_within_one_that_holds_its_row_is_refused_without_sleeping
);
fn a_transaction_within_one_that_holds_its_row_is_refused_without_sleeping<P: Protocol>() {
    let Scene { db, items, sessions: [mut outer, mut inner, _] } = scene::<P>();
    let ended = outer.run(|tx| {
        items.read_for_update(tx, 1, Item::COUNT)?;
        let updated = inner.run(|tx| items.update(tx, 1, Item::COUNT.add(1)));
        let read = inner.run(|tx| items.read_for_update(tx, 1, Item::COUNT));
        assert_eq!(
            (updated, read),
            (Err::<(), _>(Abort::Nested), Err(Abort::Nested)),
            "{}",
            P::NAME
        );
        Ok(())
    });
    assert_eq!(ended, Ok(()), "{}", P::NAME);
    assert_eq!(
        db.inner.engine.parking.entered(),
        0,
        "{}: it has slept for what it waits for in vain",
        P::NAME
    );
}
