//! Clients that note what they asked for and what they were told, for a checker that trusts nothing
//! else.
//!
//! They work on lists ([`Lists`]) or on registers ([`Registers`]), never with the same value twice
//! under one key, in every way the engine has of writing a row. Keys are used up: after some values
//! each makes room for the next, so that lists stay short and histories can be long.

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

/// Keys in use at a time.
const KEYS: usize = 6;
/// Values that a key is given before it is used up; some of them are taken back.
const VALUES: u64 = 32;
/// The most operations of a transaction.
const OPERATIONS: usize = 5;

/// A kind of object that clients work on.
pub trait Object: Sync {
    /// What a client notes of one operation.
    type Op: Clone + Send;
    /// The tables of a database.
    type Tables<P: Protocol>: Send + Sync;

    /// Creates the tables, empty.
    fn create<P: Protocol>(db: &Database<P>) -> Result<Self::Tables<P>, Error>;

    /// Reads a key, and gives what to note.
    fn read<P: Protocol>(
        tables: &Self::Tables<P>,
        tx: &Tx<'_, P>,
        key: u64,
    ) -> Result<Self::Op, Abort>;

    /// Writes a value, in one of several ways, and gives what to note.
    fn write<P: Protocol>(
        tables: &Self::Tables<P>,
        tx: &Tx<'_, P>,
        key: u64,
        value: u64,
        way: u8,
    ) -> Result<Self::Op, Abort>;
}

/// What the clients of a run have in common.
pub struct Shared<O: Object, P: Protocol> {
    tables: O::Tables<P>,
    start: Instant,
    /// Values given out, by place among the keys in use.
    given: [AtomicU64; KEYS],
}

/// One operation, drawn before its transaction begins.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    key: u64,
    /// None to read.
    write: Option<(u64, u8)>,
}

/// How a transaction ends, if it gets there.
#[derive(Debug, Clone, Copy)]
enum Turn {
    Commit,
    Fail,
    Panic,
}

/// What a transaction panics with that was drawn to.
struct Panicked;

impl<O: Object, P: Protocol> Shared<O, P> {
    /// Creates the tables.
    pub fn create(db: &Database<P>) -> Result<Self, Error> {
        Ok(Shared { tables: O::create(db)?, start: Instant::now(), given: Default::default() })
    }

    /// Every key that has been in use.
    pub fn keys(&self) -> impl Iterator<Item = u64> {
        (0..KEYS).flat_map(|place| {
            (0..=self.given[place].load(Ordering::Relaxed) / VALUES).map(move |age| key(place, age))
        })
    }

    /// Draws a transaction and runs it until it is over.
    ///
    /// # Errors
    /// An outcome that no such transaction should have.
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

    /// Reads every key that has been in use, a few at a time: an unread key is not checked.
    ///
    /// # Errors
    /// An outcome that no such transaction should have.
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
        // What was done in the last attempt: the ones before have not happened.
        let mut operations = Vec::new();
        let run = || {
            session.run(|tx| {
                operations = body(tx)?;
                match turn {
                    Turn::Commit => Ok(()),
                    Turn::Fail => Err(Abort::NotFound),
                    // The panic hook has nothing to print here.
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

/// The key that is used at a place after `age` others.
fn key(place: usize, age: u64) -> u64 {
    age * KEYS as u64 + place as u64
}
