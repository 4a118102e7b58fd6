//! A queue with room for a few items. Producers wait while it is full, and consumers while it is
//! empty, by `Tx::retry`: a waiting thread sleeps until another transaction changes what it has
//! read.
//!
//! ```sh
//! cargo run --release -p candide --example bounded_queue
//! ```

use candide::{Abort, Database, Error, Record, Table, Tx};
use std::thread;

const ROOM: u64 = 8;
const PRODUCERS: u64 = 2;
const CONSUMERS: u64 = 2;
/// The number of items that each producer puts into the queue, and that each consumer takes out.
const ITEMS: u64 = 2_000;

/// An item, by its number in the queue.
#[derive(Record, Clone, Copy)]
struct Item {
    #[key]
    number: u64,
    value: u64,
}

/// How many items have come, and how many have gone. Each column is in a group of its own, so that
/// producers and consumers do not conflict.
#[derive(Record, Clone, Copy)]
struct Counts {
    #[key]
    id: u32,
    #[group(come)]
    come: u64,
    #[group(gone)]
    gone: u64,
}

struct Queue {
    items: Table<Item>,
    counts: Table<Counts>,
}

impl Queue {
    fn new(db: &Database) -> Result<Queue, Error> {
        let queue = Queue { items: db.table("items")?, counts: db.table("counts")? };
        db.run(|tx| queue.counts.put(tx, Counts { id: 0, come: 0, gone: 0 }))?;
        Ok(queue)
    }

    /// Appends an item. Waits while the queue is full. This is a part of a transaction: the caller
    /// may do more in the same one, and waits with all of it.
    fn push(&self, tx: &Tx<'_>, value: u64) -> Result<(), Abort> {
        let (come, gone) = self.counts.read(tx, 0, (Counts::COME, Counts::GONE))?;
        tx.check(come - gone < ROOM)?;
        self.items.insert(tx, Item { number: come, value })?;
        self.counts.update(tx, 0, Counts::COME.set(come + 1))
    }

    /// Takes the first item. Waits while the queue is empty: until the item is inserted.
    fn pop(&self, tx: &Tx<'_>) -> Result<u64, Abort> {
        let gone = self.counts.read(tx, 0, Counts::GONE)?;
        let Some(value) = self.items.get(tx, gone, Item::VALUE)? else { return tx.retry() };
        self.items.delete(tx, gone)?;
        self.counts.update(tx, 0, Counts::GONE.set(gone + 1))?;
        Ok(value)
    }

    /// Takes the first item, if there is one.
    fn try_pop(&self, tx: &Tx<'_>) -> Result<Option<u64>, Abort> {
        tx.or_else(|tx| self.pop(tx).map(Some), |_| Ok(None))
    }
}

fn main() -> Result<(), Error> {
    let db = Database::new();
    let queue = Queue::new(&db)?;
    let sum: u64 = thread::scope(|scope| {
        let (db, queue) = (&db, &queue);
        for producer in 0..PRODUCERS {
            scope.spawn(move || {
                for item in 0..ITEMS {
                    db.run(|tx| queue.push(tx, producer * ITEMS + item))
                        .expect("nothing limits it");
                }
            });
        }
        let consumers = [(); CONSUMERS as usize].map(|()| {
            scope.spawn(move || {
                let pop = |_| db.run(|tx| queue.pop(tx)).expect("nothing limits it");
                (0..ITEMS).map(pop).sum::<u64>()
            })
        });
        consumers.into_iter().map(|consumer| consumer.join().expect("it does not panic")).sum()
    });
    let count = PRODUCERS * ITEMS;
    println!("{count} items, {sum} in total");
    assert_eq!(sum, count * (count - 1) / 2, "nothing is lost, nothing is taken twice");
    assert_eq!(db.run(|tx| queue.try_pop(tx)), Ok(None));
    Ok(())
}
