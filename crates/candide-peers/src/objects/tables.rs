//! A map and a queue as tables of Candide.

use candide::{Abort, Database, Occ, Record, Table, TableOptions, Tx};

use super::work::{Ended, MapSide, OPERATIONS, Operation, QueueSide};
use crate::timed::Failure;

/// An entry of a map.
#[derive(Debug, Clone, Copy, Record)]
struct Entry {
    #[key]
    key: u64,
    value: u64,
}

/// A table of entries.
pub(crate) struct Map {
    db: Database<Occ>,
    entries: Table<Entry, Occ>,
}

impl Map {
    /// Makes a map of the even numbers below `keys`.
    pub(crate) fn new(keys: u64) -> Result<Map, Failure> {
        let db = Database::<Occ>::new();
        let entries: Table<Entry, Occ> =
            db.table_with("entries", TableOptions::default().capacity(keys as usize))?;
        for key in (0..keys).step_by(2) {
            db.run(|tx| entries.insert(tx, Entry { key, value: key }))?;
        }
        Ok(Map { db, entries })
    }

    fn run(&self, tx: &Tx<'_, Occ>, operations: &[Operation]) -> Result<i64, Abort> {
        let mut grown = 0;
        for &operation in operations {
            match operation {
                Operation::Get(key) => _ = self.entries.get(tx, key, Entry::VALUE)?,
                Operation::Insert(key) => {
                    grown +=
                        i64::from(self.entries.insert_if_absent(tx, Entry { key, value: key })?);
                }
                Operation::Remove(key) => {
                    grown -= i64::from(self.entries.delete_if_present(tx, key)?);
                }
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
        self.db.run(|tx| self.entries.iter(tx, ()).count()).expect("no other transaction") as u64
    }
}

/// An element of a queue, by its position.
#[derive(Debug, Clone, Copy, Record)]
struct Element {
    #[key]
    position: u64,
    number: i64,
}

/// One of the ends of a queue.
#[derive(Debug, Clone, Copy, Record)]
struct End {
    #[key]
    id: u64,
    position: u64,
}

const HEAD: u64 = 0;
const TAIL: u64 = 1;

/// A table of elements, and one of the two ends.
pub(crate) struct Queue {
    db: Database<Occ>,
    elements: Table<Element, Occ>,
    ends: Table<End, Occ>,
}

impl Queue {
    /// Makes an empty queue.
    pub(crate) fn new() -> Result<Queue, Failure> {
        let db = Database::<Occ>::new();
        let (elements, ends) = (db.table("elements")?, db.table::<End>("ends")?);
        for id in [HEAD, TAIL] {
            db.run(|tx| ends.insert(tx, End { id, position: 0 }))?;
        }
        Ok(Queue { db, elements, ends })
    }

    fn run(&self, tx: &Tx<'_, Occ>, push: Option<i64>) -> Result<i64, Abort> {
        let next = |position: &mut u64| std::mem::replace(position, *position + 1);
        if let Some(number) = push {
            let position = self.ends.modify(tx, TAIL, End::POSITION, next)?;
            self.elements.put(tx, Element { position, number })?;
            return Ok(0);
        }
        let head = self.ends.read(tx, HEAD, End::POSITION)?;
        let Some(number) = self.elements.get(tx, head, Element::NUMBER)? else { return Ok(0) };
        self.elements.delete(tx, head)?;
        self.ends.update(tx, HEAD, End::POSITION.set(head + 1))?;
        Ok(number)
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
