//! Clients that record their requests and the answers. A checker relies on this record alone.
//!
//! Clients work on lists ([`Lists`]) or on registers ([`Registers`]). Clients never write a value
//! twice under one key, and use every way in which the engine writes a row. After 32 values, a key
//! is replaced by a new one. So lists stay short even if histories are long.

mod lists;
mod registers;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use candide::{Abort, Database, Error, Protocol, Session, Tx};
use candide_check::black::{Outcome, Transaction};
use fastrand::Rng;

pub use lists::Lists;
pub use registers::Registers;

/// The number of keys in use at the same time.
const KEYS: usize = 6;
/// The number of values that are drawn for a key before a new key replaces it. Some of the writes
/// of these values are rolled back.
const VALUES: u64 = 32;
/// The largest number of operations in a transaction.
const OPERATIONS: usize = 5;

/// A kind of object that clients work on.
pub trait Object: Sync {
    /// The record of one operation.
    type Op: Clone + Send;
    /// The tables of a database.
    type Tables<P: Protocol>: Send + Sync;

    /// The name of the only table.
    const TABLE: &'static str;

    /// Creates the table, which is empty.
    fn create<P: Protocol>(db: &Database<P>) -> Result<Self::Tables<P>, Error>;

    /// Reads a key. Returns the record of the read.
    fn read<P: Protocol>(
        tables: &Self::Tables<P>,
        tx: &Tx<'_, P>,
        key: u64,
    ) -> Result<Self::Op, Abort>;

    /// Writes `value` under `key`, in way number `way`. Returns the record of the write.
    fn write<P: Protocol>(
        tables: &Self::Tables<P>,
        tx: &Tx<'_, P>,
        key: u64,
        value: u64,
        way: u8,
    ) -> Result<Self::Op, Abort>;
}

/// The state that all clients of a run share.
pub struct Shared<O: Object, P: Protocol> {
    tables: O::Tables<P>,
    start: Instant,
    /// The number of values drawn so far, for each place among the keys in use.
    given: [AtomicU64; KEYS],
}

/// One operation, drawn before its transaction begins.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    key: u64,
    /// The value and the way of a write; `None` for a read.
    write: Option<(u64, u8)>,
}

/// The planned end of a transaction, unless an error ends it earlier.
#[derive(Debug, Clone, Copy)]
enum Turn {
    Commit,
    Fail,
    Panic,
}

/// The payload of a planned panic.
struct Panicked;

impl<O: Object, P: Protocol> Shared<O, P> {
    /// Creates the tables.
    pub fn create(db: &Database<P>) -> Result<Self, Error> {
        Ok(Shared { tables: O::create(db)?, start: Instant::now(), given: Default::default() })
    }

    /// Returns every key that has been in use.
    pub fn keys(&self) -> impl Iterator<Item = u64> {
        (0..KEYS).flat_map(|place| {
            (0..=self.given[place].load(Ordering::Relaxed) / VALUES).map(move |age| key(place, age))
        })
    }

    /// Draws a transaction and runs it until it has ended.
    ///
    /// # Errors
    /// An outcome that such a transaction should never have.
    pub fn step(
        &self,
        session: &mut Session<P>,
        rng: &mut Rng,
    ) -> Result<Transaction<O::Op>, Abort> {
        let script: Vec<Drawn> = (0..rng.usize(1..=OPERATIONS)).map(|_| self.draw(rng)).collect();
        let turn = match rng.u8(0..20) {
            0 => Turn::Panic,
            1 | 2 => Turn::Fail,
            _ => Turn::Commit,
        };
        self.run(session, turn, |tx| script.iter().map(|drawn| self.carry_out(tx, drawn)).collect())
    }

    /// Reads every key that has been in use, a few keys per transaction, since an unread key is not
    /// checked.
    ///
    /// # Errors
    /// An outcome that such a transaction should never have.
    pub fn read_all(&self, session: &mut Session<P>) -> Result<Vec<Transaction<O::Op>>, Abort> {
        let keys: Vec<u64> = self.keys().collect();
        let read = |keys: &[u64]| {
            self.run(session, Turn::Commit, |tx| {
                keys.iter().map(|&key| O::read(&self.tables, tx, key)).collect()
            })
        };
        keys.chunks(KEYS).map(read).collect()
    }

    fn draw(&self, rng: &mut Rng) -> Drawn {
        let place = rng.usize(..KEYS);
        if rng.bool() {
            let given = self.given[place].fetch_add(1, Ordering::Relaxed);
            Drawn { key: key(place, given / VALUES), write: Some((given + 1, rng.u8(..))) }
        } else {
            Drawn {
                key: key(place, self.given[place].load(Ordering::Relaxed) / VALUES),
                write: None,
            }
        }
    }

    fn carry_out(&self, tx: &Tx<'_, P>, drawn: &Drawn) -> Result<O::Op, Abort> {
        match drawn.write {
            Some((value, way)) => O::write(&self.tables, tx, drawn.key, value, way),
            None => O::read(&self.tables, tx, drawn.key),
        }
    }

    fn run(
        &self,
        session: &mut Session<P>,
        turn: Turn,
        body: impl Fn(&Tx<'_, P>) -> Result<Vec<O::Op>, Abort>,
    ) -> Result<Transaction<O::Op>, Abort> {
        let number = session.number();
        let invoked = self.now();
        // The operations of the last attempt. Earlier attempts had no effect.
        let mut operations = Vec::new();
        let run = || {
            session.run(|tx| {
                operations = body(tx)?;
                match turn {
                    Turn::Commit => Ok(()),
                    Turn::Fail => Err(Abort::NotFound),
                    // `resume_unwind` starts the panic without the output of the panic hook.
                    Turn::Panic => resume_unwind(Box::new(Panicked)),
                }
            })
        };
        let outcome = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(())) => Outcome::Committed,
            Ok(Err(Abort::NotFound)) => Outcome::Aborted,
            Ok(Err(abort)) => return Err(abort),
            Err(panic) if panic.is::<Panicked>() => Outcome::Aborted,
            Err(panic) => resume_unwind(panic),
        };
        Ok(Transaction { session: number, invoked, completed: self.now(), outcome, operations })
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

/// Returns the key that is used at `place` after `age` earlier keys.
fn key(place: usize, age: u64) -> u64 {
    age * KEYS as u64 + place as u64
}
