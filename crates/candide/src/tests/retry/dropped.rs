//! Tables that are dropped while a session waits for a change of them.

use super::super::rows::Item;
use super::super::threads::spawn;
use super::super::waiting::{eventually, receive};
use super::{LOST_AFTER, Line, Scene, Tables};
use crate::engine::Protocol;
use crate::sync::Instant;
use crate::{Abort, RunOptions, Tx};
use std::sync::mpsc::channel;

/// A search for a row that is not there.
type Find<'f, P> = &'f (dyn Fn(&Tables<P>, &Tx<'_, P>) -> Result<Option<i64>, Abort> + Sync);

/// Drops a table when a closure has asked for a row that is not there, and before it sleeps until
/// there is one. Returns the end of the closure's transaction.
fn drop_before_the_sleep<P: Protocol>(name: &str, find: Find<'_, P>) -> Result<i64, Abort> {
    let Scene { db, items, sorted, .. } = Scene::<P>::new();
    let (db, tables) = (&db, &Tables { items, sorted });
    let mut session = db.session().unwrap();
    let (has_found, found) = channel();
    let (go_on, may_go_on) = channel();
    std::thread::scope(|scope| {
        let sleeper = spawn(scope, move || {
            let deadline = Instant::now() + LOST_AFTER;
            let mut is_first = true;
            session.with(RunOptions::new().deadline(deadline)).run(|tx| {
                let there = find(tables, tx)?;
                if std::mem::take(&mut is_first) {
                    has_found.send(()).unwrap();
                    receive("the drop has begun", &may_go_on);
                }
                there.map_or_else(|| tx.retry(), Ok)
            })
        });
        receive("the closure runs", &found);
        let dropper = spawn(scope, move || db.drop_table(name));
        // The drop waits for the closure from now on.
        let is_refused = || db.tables().iter().all(|table| table.name != name);
        eventually("the table is refused", is_refused);
        go_on.send(()).unwrap();
        let ended = sleeper.join().unwrap();
        dropper.join().unwrap().unwrap();
        ended
    })
}

protocol_tests!(concurrent: a_drop_wakes_a_session_that_was_about_to_sleep);
fn a_drop_wakes_a_session_that_was_about_to_sleep<P: Protocol>() {
    let ended =
        drop_before_the_sleep::<P>("items", &|tables, tx| tables.items.get(tx, 9, Item::COUNT));
    assert_eq!(ended, Err(Abort::TableDropped), "{}", P::NAME);
    let ended = drop_before_the_sleep::<P>("sorted", &|tables, tx| {
        Ok(tables.sorted.scan(tx, 5.., Line::COUNT).next().transpose()?.map(|(_, count)| count))
    });
    assert_eq!(ended, Err(Abort::TableDropped), "{}, sorted", P::NAME);
}
