//! A rate limiter: each client may begin a few requests in each second, and all clients together
//! have a few under way. A request that has to wait for others sleeps until one of them ends.
//!
//! The number of requests under way is a `TCounter`: a request observes only that it is below the
//! limit, so requests that begin and end do not conflict while there is room.
//!
//! ```sh
//! cargo run --release -p candide --example rate_limiter
//! ```

use candide::objects::{TCounter, TOrderedMap};
use candide::{Abort, Database, Error, Tx};
use std::thread;

/// The number of requests that a client may begin in a second.
const EACH_SECOND: u32 = 5;
/// The number of requests that may be under way.
const UNDER_WAY: i64 = 3;
const CLIENTS: u64 = 4;
const SECONDS: u64 = 50;

struct Limiter {
    /// The number of requests that a client has begun in a second, by second and client.
    begun: TOrderedMap<(u64, u64), u32>,
    under_way: TCounter,
}

impl Limiter {
    fn new(db: &Database) -> Result<Limiter, Error> {
        Ok(Limiter {
            begun: TOrderedMap::named(db, "begun")?,
            under_way: TCounter::named(db, "under way")?,
        })
    }

    /// Begins a request, and waits for other requests to end if there are too many. Returns `false`
    /// if the client has begun enough in this second.
    fn begin(&self, tx: &Tx<'_>, client: u64, second: u64) -> Result<bool, Abort> {
        let begun = self.begun.get(tx, (second, client))?.unwrap_or(0);
        if begun == EACH_SECOND {
            return Ok(false);
        }
        tx.check(self.under_way.at_most(tx, UNDER_WAY - 1)?)?;
        self.under_way.add(tx, 1)?;
        self.begun.put(tx, (second, client), begun + 1)?;
        Ok(true)
    }

    fn end(&self, tx: &Tx<'_>) -> Result<(), Abort> {
        self.under_way.sub(tx, 1)
    }

    /// Forgets the seconds before this one.
    fn forget(&self, tx: &Tx<'_>, second: u64) -> Result<(), Abort> {
        while let Some(((earlier, client), _)) = self.begun.first(tx)?
            && earlier < second
        {
            self.begun.delete(tx, (earlier, client))?;
        }
        Ok(())
    }
}

fn main() -> Result<(), Error> {
    let db = Database::new();
    let limiter = Limiter::new(&db)?;
    let (db, limiter) = (&db, &limiter);
    let client = |client| {
        let (mut done, mut refused) = (0, 0);
        for second in 0..SECONDS {
            for _request in 0..2 * EACH_SECOND {
                if db.run(|tx| limiter.begin(tx, client, second))? {
                    // ... the request ...
                    done += 1;
                    db.run(|tx| limiter.end(tx))?;
                } else {
                    refused += 1;
                }
            }
        }
        Ok::<_, Abort>((done, refused))
    };
    let counts = thread::scope(|scope| {
        let clients: Vec<_> =
            (0..CLIENTS).map(|number| scope.spawn(move || client(number))).collect();
        let join = |client: thread::ScopedJoinHandle<'_, _>| client.join().expect("no panic");
        clients.into_iter().map(join).collect::<Result<Vec<(u64, u64)>, Abort>>()
    })?;
    println!("requests done and refused, by client: {counts:?}");
    let each = SECONDS * u64::from(EACH_SECOND);
    assert!(counts.iter().all(|&count| count == (each, each)), "each client has its share");
    db.run(|tx| limiter.forget(tx, SECONDS))?;
    let left = db.run(|tx| Ok((limiter.begun.first(tx)?, limiter.under_way.get(tx)?)))?;
    assert_eq!(left, (None, 0));
    Ok(())
}
