//! Dining philosophers. A hungry philosopher takes the two forks beside the plate, or else the two
//! spare forks in the middle of the table (`Tx::or_else`), and otherwise sleeps until a fork of
//! either pair is put back. Both forks of a pair are taken in one transaction, so no
//! philosopher waits with one fork in the hand, and no order of forks is needed.
//!
//! ```sh
//! cargo run --release -p candide --example philosophers
//! ```

use candide::{Abort, Database, Error, Record, Table, Tx};
use std::thread;

const PHILOSOPHERS: u64 = 5;
/// The numbers of the spare forks.
const SPARE: [u64; 2] = [100, 101];
const MEALS: u64 = 1_000;

#[derive(Record, Clone, Copy)]
struct Fork {
    #[key]
    number: u64,
    is_taken: bool,
}

struct Dinner {
    db: Database,
    forks: Table<Fork>,
}

impl Dinner {
    fn new() -> Result<Dinner, Error> {
        let db = Database::new();
        let forks = db.table("forks")?;
        let numbers = (0..PHILOSOPHERS).chain(SPARE);
        db.run(|tx| {
            forks.insert_many(tx, numbers.clone().map(|number| Fork { number, is_taken: false }))
        })?;
        Ok(Dinner { db, forks })
    }

    /// Takes two forks. Waits while one of them is taken.
    fn take(&self, tx: &Tx<'_>, pair: [u64; 2]) -> Result<[u64; 2], Abort> {
        for number in pair {
            tx.check(!self.forks.read(tx, number, Fork::IS_TAKEN)?)?;
            self.forks.update(tx, number, Fork::IS_TAKEN.set(true))?;
        }
        Ok(pair)
    }

    /// Eats once.
    fn eat(&self, philosopher: u64) -> Result<[u64; 2], Abort> {
        let own = [philosopher, (philosopher + 1) % PHILOSOPHERS];
        let taken =
            self.db.run(|tx| tx.or_else(|tx| self.take(tx, own), |tx| self.take(tx, SPARE)))?;
        thread::yield_now();
        self.db.run(|tx| {
            taken.iter().try_for_each(|fork| self.forks.update(tx, fork, Fork::IS_TAKEN.set(false)))
        })?;
        Ok(taken)
    }
}

fn main() -> Result<(), Error> {
    let dinner = Dinner::new()?;
    let spare: usize = thread::scope(|scope| {
        let seats = (0..PHILOSOPHERS).map(|philosopher| {
            let dinner = &dinner;
            scope.spawn(move || {
                let eat = |_| dinner.eat(philosopher).expect("nothing limits it");
                (0..MEALS).map(eat).filter(|forks| *forks == SPARE).count()
            })
        });
        let seats: Vec<_> = seats.collect();
        seats.into_iter().map(|seat| seat.join().expect("it does not panic")).sum()
    });
    println!("{} meals, {spare} of them with the spare forks", PHILOSOPHERS * MEALS);
    let taken = dinner.db.run(|tx| {
        (0..PHILOSOPHERS).chain(SPARE).try_fold(0, |taken, fork| {
            Ok(taken + u64::from(dinner.forks.read(tx, fork, Fork::IS_TAKEN)?))
        })
    });
    assert_eq!(taken, Ok(0), "all forks are back");
    Ok(())
}
