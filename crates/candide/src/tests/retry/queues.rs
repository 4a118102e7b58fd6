//! Threads that pass items on through a bounded queue, and wait for one another.

use super::super::rows::Item;
use super::super::threads::spawn;
use super::LOST_AFTER;
use crate::engine::Protocol;
use crate::sync::Instant;
use crate::{Abort, Database, RunOptions, Session, Table, Tx};

/// The number of items that each producer puts into the queue.
const ITEMS: u64 = 200;
/// The largest number of items in the queue.
const ROOM: i64 = 3;
/// The keys of the rows that count pushed and popped items.
const COME: u64 = 1 << 40;
const GONE: u64 = COME + 1;

/// Changes a row of the queue, as a producer or a consumer does.
fn push<P: Protocol>(queue: &Table<Item, P>, tx: &Tx<'_, P>, item: u64) -> Result<(), Abort> {
    let come = queue.read(tx, COME, Item::COUNT)?;
    tx.check(come - queue.read(tx, GONE, Item::COUNT)? < ROOM)?;
    queue.insert(tx, Item { other: item, ..Item::new(come as u64, 0) })?;
    queue.update(tx, COME, Item::COUNT.set(come + 1))
}

/// Takes an item out of the queue. If the next item is not there yet, waits for its key, which has
/// no record until a push inserts it.
fn pop<P: Protocol>(queue: &Table<Item, P>, tx: &Tx<'_, P>) -> Result<u64, Abort> {
    let gone = queue.read(tx, GONE, Item::COUNT)?;
    let Some(item) = queue.get(tx, gone as u64, Item::OTHER)? else { return tx.retry() };
    queue.delete(tx, gone as u64)?;
    queue.update(tx, GONE, Item::COUNT.set(gone + 1))?;
    Ok(item)
}

/// Runs a transaction that must not wait for ever.
fn run<P: Protocol, T>(
    session: &mut Session<P>,
    body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
) -> T {
    let options = RunOptions::new().deadline(Instant::now() + LOST_AFTER);
    session.with(options).run(body).unwrap_or_else(|abort| panic!("{}: {abort}", P::NAME))
}

protocol_tests!(concurrent: a_bounded_queue_delivers_every_item_once);
fn a_bounded_queue_delivers_every_item_once<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let queue = db.table::<Item>("queue").unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| queue.insert_many(tx, [COME, GONE].map(|id| Item::new(id, 0))));
    let mut passed = std::thread::scope(|scope| {
        let (db, queue) = (&db, &queue);
        for producer in 0..2 {
            spawn(scope, move || {
                let mut session = db.session().unwrap();
                for item in 0..ITEMS {
                    run(&mut session, |tx| push(queue, tx, producer * ITEMS + item));
                }
            });
        }
        let consumers = [(); 2].map(|()| {
            spawn(scope, move || {
                let mut session = db.session().unwrap();
                (0..ITEMS).map(|_| run(&mut session, |tx| pop(queue, tx))).collect::<Vec<u64>>()
            })
        });
        consumers.map(|consumer| consumer.join().unwrap()).concat()
    });
    passed.sort();
    assert_eq!(passed, (0..2 * ITEMS).collect::<Vec<u64>>(), "{}", P::NAME);
    assert_eq!(db.inner.engine.watchers.count(), 0, "{}", P::NAME);
}
