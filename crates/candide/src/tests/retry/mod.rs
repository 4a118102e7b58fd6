//! Tests of transactions that sleep until something changes ([`Tx::retry`]).
//!
//! A change has woken the sessions that wait for it when the call returns that makes it. So tests
//! look at once whether a wake-up is lost. A transaction that is expected to wake up has a deadline
//! that is far off, nevertheless.

mod choices;
mod dropped;
mod nested;
mod queues;
mod refusals;
mod wakes;

use super::rows::Item;
use super::threads::spawn;
use super::waiting::eventually;
use crate::engine::Protocol;
use crate::sync::{AtomicBool, AtomicU64, Duration, Instant, Ordering};
use crate::{Abort, Database, RunOptions, Session, Table, Tx};
use candide_derive::Record;

/// The time after which a wake-up counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(20);

/// A row of a table in order.
#[derive(Debug, Clone, Copy, Record)]
#[record(crate = crate, ordered)]
struct Line {
    #[key]
    id: u64,
    count: i64,
}

/// A transaction that changes something.
type Change<'a, P> = &'a dyn Fn(&Tables<P>, &Tx<'_, P>) -> Result<(), Abort>;

/// A database with rows 0 to 3 in each of two tables, whose counts are zero.
struct Scene<P: Protocol> {
    db: Database<P>,
    items: Table<Item, P>,
    sorted: Table<Line, P>,
    session: Session<P>,
}

impl<P: Protocol> Scene<P> {
    fn new() -> Scene<P> {
        let db = Database::<P>::builder().build().unwrap();
        let items = db.table::<Item>("items").unwrap();
        let sorted = db.table::<Line>("sorted").unwrap();
        let mut session = db.session().unwrap();
        let filled = session.run(|tx| {
            items.insert_many(tx, (0..4).map(|id| Item::new(id, 0)))?;
            sorted.insert_many(tx, (0..4).map(|id| Line { id, count: 0 }))
        });
        filled.unwrap();
        Scene { db, items, sorted, session }
    }

    /// Returns the number of sessions that sleep until something changes.
    fn sleepers(&self) -> usize {
        self.db.inner.engine.watchers.count()
    }

    /// Runs `body` on a thread of its own. Once its session sleeps, makes each change, one after
    /// the other; after each but the last, waits until the session sleeps again. Returns the result
    /// of `body`, and how often it has run. Panics if a change does not wake the session.
    fn wake<T: Send>(
        &mut self,
        body: impl Fn(&Tables<P>, &Tx<'_, P>) -> Result<T, Abort> + Send + Sync,
        changes: &[Change<'_, P>],
    ) -> (Result<T, Abort>, u64) {
        let tables = Tables { items: self.items.clone(), sorted: self.sorted.clone() };
        let mut other = self.db.session().unwrap();
        let (db, session) = (&self.db, &mut self.session);
        let watchers = &db.inner.engine.watchers;
        let (runs, is_lost) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (tables, runs, is_lost) = (&tables, &runs, &is_lost);
            let waiter = spawn(scope, move || {
                let deadline = Instant::now() + LOST_AFTER;
                let result = other.with(RunOptions::new().deadline(deadline)).run(|tx| {
                    runs.fetch_add(1, Ordering::Relaxed);
                    if is_lost.load(Ordering::Relaxed) {
                        return Err(Abort::Guard);
                    }
                    body(tables, tx)
                });
                (result, runs.load(Ordering::Relaxed))
            });
            for (earlier, change) in changes.iter().enumerate() {
                let has_run = || runs.load(Ordering::Relaxed) > earlier as u64;
                let is_there = || has_run() && watchers.asleep().len() == 1 || waiter.is_finished();
                eventually("the session sleeps", is_there);
                let asleep = watchers.asleep();
                session.run(|tx| change(tables, tx)).unwrap();
                if !asleep.are_woken() {
                    // The thread is joined before the panic goes on.
                    is_lost.store(true, Ordering::Relaxed);
                    watchers.wake_all();
                    panic!("{}: the change has woken no session", P::NAME);
                }
            }
            waiter.join().unwrap()
        })
    }
}

/// The tables of a scene.
struct Tables<P: Protocol> {
    items: Table<Item, P>,
    sorted: Table<Line, P>,
}

impl<P: Protocol> Tables<P> {
    /// Waits until the count of a row is `count`.
    fn await_count(&self, tx: &Tx<'_, P>, id: u64, count: i64) -> Result<(), Abort> {
        tx.check(self.items.read(tx, id, Item::COUNT)? == count)
    }
}
