//! Small scenes. The scenes run under every interleaving and every reordering that the memory model
//! allows (`--cfg loom`).
//!
//! Each scene states its preemption bound: loom explores all executions with at most that many
//! forced switches.

mod burial;
mod chains;
mod deferred_updates;
mod hash_index;
mod holders;
mod installs;
mod late_rows;
mod left_values;
mod long_values;
mod old_versions;
mod ordered_index;
mod policies;
mod reclamation;
mod reports;
mod serial_order;
mod watchers;

use super::rows::Item;
use crate::engine::Protocol;
use crate::sync::thread;
use crate::{Abort, Database, Record, RunOptions, Session, Table, Tx};
use std::cell::Cell;
use std::sync::Arc;

/// Explores `scene` with at most `preemptions` forced switches. A race in `scene` is explored
/// twice; each time, another transaction goes first in the first execution. The reason is a
/// limitation of loom: it misses that a thread's store conflicts with another thread's earlier
/// load, if the storing thread has loaded the same word in between. So the exploration that begins
/// with one first execution does not reach all other executions.
fn explore(preemptions: usize, scene: impl Fn() + Sync + Send + 'static) {
    let scene = Arc::new(scene);
    let same = scene.clone();
    ORDER.set(Order::Unasked);
    explore_as_it_is(preemptions, move || same());
    if ORDER.get() == Order::Second {
        ORDER.set(Order::First);
        explore_as_it_is(preemptions, move || scene());
    }
}

/// Explores `scene` without exploring races twice, which for some scenes would take hours.
pub(super) fn explore_as_it_is(preemptions: usize, scene: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions.min(crate::sync::preemptions_max()));
    builder.max_branches = 100_000;
    // The executions are counted outside the model, so that a passing test can report their number.
    let executions = Arc::new(std::sync::Mutex::new(0));
    let counted = executions.clone();
    builder.check(move || {
        *counted.lock().unwrap() += 1;
        scene();
    });
    println!("{} executions", executions.lock().unwrap());
}

/// Returns the counts of rows at the end.
fn count<P: Protocol, const N: usize>(
    db: &Database<P>,
    table: &Table<Item, P>,
    rows: [u64; N],
) -> [i64; N] {
    let mut session = db.session().unwrap();
    rows.map(|row| session.run(|tx| table.read(tx, &row, Item::COUNT)).unwrap())
}

fn database<P: Protocol>(rows: u64) -> (Database<P>, Table<Item, P>) {
    let db = Database::<P>::builder().timestamp_splitting(false).build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    let mut session = db.session().unwrap();
    session.run(|tx| (0..rows).try_for_each(|id| table.insert(tx, Item::new(id, 0)))).unwrap();
    (db, table)
}

/// Runs one attempt of a transaction, and returns whether it committed.
pub(super) fn attempt<P: Protocol>(
    session: &mut Session<P>,
    body: impl FnMut(&crate::Tx<'_, P>) -> Result<(), Abort>,
) -> bool {
    match session.with(RunOptions::new().attempts_max(1)).run(body) {
        Ok(()) => true,
        Err(abort) => {
            assert_eq!(abort, Abort::AttemptsExhausted);
            false
        }
    }
}

/// The transaction of a race that goes first in the first execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The second transaction goes first. No race has been reached yet.
    Unasked,
    /// The second transaction goes first. A race has been reached.
    Second,
    First,
}

thread_local! {
    static ORDER: Cell<Order> = const { Cell::new(Order::Unasked) };
}

/// Runs two transactions at once, and returns whether each committed.
fn race<P: Protocol, R: Record>(
    db: &Database<P>,
    table: &Table<R, P>,
    first: impl FnMut(&Table<R, P>, &Tx<'_, P>) -> Result<(), Abort> + Send + 'static,
    second: impl FnMut(&Table<R, P>, &Tx<'_, P>) -> Result<(), Abort> + Send + 'static,
) -> (bool, bool) {
    if ORDER.get() == Order::First {
        let (second, first) = beside(db, table, second, first);
        return (first, second);
    }
    ORDER.set(Order::Second);
    beside(db, table, first, second)
}

/// Runs two transactions, one on a new thread and one on this thread.
fn beside<P: Protocol, R: Record>(
    db: &Database<P>,
    table: &Table<R, P>,
    mut there: impl FnMut(&Table<R, P>, &Tx<'_, P>) -> Result<(), Abort> + Send + 'static,
    mut here: impl FnMut(&Table<R, P>, &Tx<'_, P>) -> Result<(), Abort>,
) -> (bool, bool) {
    let (mut mine, mut other, inner) =
        (db.session().unwrap(), db.session().unwrap(), table.clone());
    let other = thread::spawn(move || {
        let committed = attempt(&mut other, |tx| there(&inner, tx));
        drop(other);
        committed
    });
    let here = attempt(&mut mine, |tx| here(table, tx));
    (other.join().unwrap(), here)
}
