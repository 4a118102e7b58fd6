//! A map and a queue of Candide.

use candide::objects::{TMap, TQueue};
use candide::{Abort, Database, Tx};

use super::work::{Ended, MapSide, OPERATIONS, Operation, QueueSide};
use crate::timed::Failure;

/// A [`TMap`] in a database of its own.
pub(crate) struct Map {
    db: Database,
    entries: TMap<u64, u64>,
}

impl Map {
    /// Makes a map of the even numbers below `keys`.
    pub(crate) fn new(keys: u64) -> Result<Map, Failure> {
        let db = Database::new();
        let entries = TMap::<u64, u64>::new(&db)?;
        for key in (0..keys).step_by(2) {
            db.run(|tx| entries.put(tx, key, key))?;
        }
        Ok(Map { db, entries })
    }

    fn run(&self, tx: &Tx<'_>, operations: &[Operation]) -> Result<i64, Abort> {
        let mut grown = 0;
        for &operation in operations {
            match operation {
                Operation::Get(key) => _ = self.entries.get(tx, key)?,
                Operation::Insert(key) => {
                    grown += i64::from(self.entries.insert_if_absent(tx, key, key)?);
                }
                Operation::Remove(key) => grown -= i64::from(self.entries.delete(tx, key)?),
            }
        }
        Ok(grown)
    }
}

impl MapSide for Map {
    type Session<'s> = Box<dyn FnMut(&[Operation; OPERATIONS]) -> Result<Ended, Failure> + 's>;

    fn session(&self) -> Result<Self::Session<'_>, Failure> {
        let mut session = self.db.session()?;
        Ok(Box::new(move |operations| {
            let mut attempts = 0;
            let output = session.run(|tx| {
                attempts += 1;
                self.run(tx, operations)
            })?;
            Ok(Ended { output, retries: attempts - 1 })
        }))
    }

    fn len(&self) -> u64 {
        self.db.run(|tx| self.entries.iter(tx).count()).expect("no other transaction") as u64
    }
}

/// A [`TQueue`] in a database of its own.
pub(crate) struct Queue {
    db: Database,
    numbers: TQueue<i64>,
}

impl Queue {
    /// Makes an empty queue.
    pub(crate) fn new() -> Result<Queue, Failure> {
        let db = Database::new();
        let numbers = TQueue::<i64>::new(&db)?;
        Ok(Queue { db, numbers })
    }

    fn run(&self, tx: &Tx<'_>, push: Option<i64>) -> Result<i64, Abort> {
        match push {
            Some(number) => self.numbers.push(tx, number).map(|()| 0),
            None => Ok(self.numbers.pop(tx)?.unwrap_or(0)),
        }
    }
}

impl QueueSide for Queue {
    type Session<'s> = Box<dyn FnMut(Option<i64>) -> Result<Ended, Failure> + 's>;

    fn session(&self) -> Result<Self::Session<'_>, Failure> {
        let mut session = self.db.session()?;
        Ok(Box::new(move |push| {
            let mut attempts = 0;
            let output = session.run(|tx| {
                attempts += 1;
                self.run(tx, push)
            })?;
            Ok(Ended { output, retries: attempts - 1 })
        }))
    }
}
