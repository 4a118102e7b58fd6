//! A transactional type of a program's own: a stack with room for a few values. It is made of the
//! public interface alone, and has what the crate's own objects have: its operations are parts of
//! the caller's transaction, they wait by `Tx::check`, and one of them observes no more than it
//! tells.
//!
//! ```sh
//! cargo run --release -p candide --example bounded_stack
//! ```

use candide::{Abort, Database, Error, Record, Table, Tx};
use std::thread;

/// A value, by its place from the bottom.
#[derive(Record, Clone, Copy)]
struct Place {
    #[key]
    number: u64,
    value: u64,
}

/// The number of values. The stack has one such row.
#[derive(Record, Clone, Copy)]
struct Size {
    #[key]
    id: u8,
    size: u64,
}

/// A handle on a stack. Its clones refer to the same stack, and threads may share them.
#[derive(Clone)]
struct BoundedStack {
    places: Table<Place>,
    sizes: Table<Size>,
    room: u64,
}

impl BoundedStack {
    /// Returns the stack of this name, which gets room for `room` values. In a database that is
    /// open in a directory, the stack is durable.
    fn named(db: &Database, name: &str, room: u64) -> Result<BoundedStack, Error> {
        let places = db.table(&format!("{name} places"))?;
        let sizes = db.table(&format!("{name} size"))?;
        let stack = BoundedStack { places, sizes, room };
        db.run(|tx| stack.sizes.insert_if_absent(tx, Size { id: 0, size: 0 }))?;
        Ok(stack)
    }

    /// Puts a value on top. Waits while the stack is full.
    fn push(&self, tx: &Tx<'_>, value: u64) -> Result<(), Abort> {
        let size = self.sizes.read(tx, 0, Size::SIZE)?;
        tx.check(size < self.room)?;
        self.places.put(tx, Place { number: size, value })?;
        self.sizes.update(tx, 0, Size::SIZE.add(1))
    }

    /// Takes the value on top. Waits while the stack is empty.
    fn pop(&self, tx: &Tx<'_>) -> Result<u64, Abort> {
        let size = self.sizes.read(tx, 0, Size::SIZE)?;
        tx.check(size > 0)?;
        let value = self.places.read(tx, size - 1, Place::VALUE)?;
        self.places.delete(tx, size - 1)?;
        self.sizes.update(tx, 0, Size::SIZE.sub(1))?;
        Ok(value)
    }

    /// Takes the value on top, if there is one.
    fn try_pop(&self, tx: &Tx<'_>) -> Result<Option<u64>, Abort> {
        tx.or_else(|tx| self.pop(tx).map(Some), |_| Ok(None))
    }

    /// Returns whether there is room for `count` values. Observes the answer, and not the size: the
    /// transaction does not conflict with pushes and pops that leave it true.
    fn has_room_for(&self, tx: &Tx<'_>, count: u64) -> Result<bool, Abort> {
        self.sizes.is_within(tx, 0, Size::SIZE, ..=self.room.saturating_sub(count))
    }
}

fn main() -> Result<(), Error> {
    let db = Database::new();
    let stack = BoundedStack::named(&db, "plates", 8)?;
    let (db, stack) = (&db, &stack);
    let values = 3_000;
    let sums = thread::scope(|scope| {
        let pushes = [0, 1].map(|first| {
            scope.spawn(move || {
                let mut odd_or_even = (first..values).step_by(2);
                odd_or_even.try_for_each(|value| db.run(|tx| stack.push(tx, value)))
            })
        });
        let pops = [0, 1].map(|_| {
            scope.spawn(move || {
                (0..values / 2).try_fold(0, |sum, _| Ok(sum + db.run(|tx| stack.pop(tx))?))
            })
        });
        pushes.into_iter().try_for_each(|thread| thread.join().expect("no panic"))?;
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().expect("no panic");
        pops.into_iter().map(join).sum::<Result<u64, Abort>>()
    })?;
    assert_eq!(sums, values * (values - 1) / 2, "nothing is lost, nothing is taken twice");
    // Two stacks, one transaction.
    let other = BoundedStack::named(db, "bowls", 2)?;
    let moved = db.run(|tx| {
        stack.push(tx, 7)?;
        if !other.has_room_for(tx, 1)? {
            return Ok(None);
        }
        other.push(tx, stack.pop(tx)?)?;
        stack.try_pop(tx)
    })?;
    assert_eq!((moved, db.run(|tx| other.pop(tx))?), (None, 7));
    println!("{values} values were pushed and popped");
    Ok(())
}
