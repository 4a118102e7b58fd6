//! Lists of numbers in tables, and clients that append to them and read them.

use crate::world::World;
use candide::{Abort, Database, Error, Level, Mvcc, Record, Table, Tx, Whole};
use candide_check::black::{ListOp, Outcome};
use candide_reach::{Standby, WaitError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const LISTS: u64 = 3;
/// The transactions of a client.
const TRANSACTIONS: u64 = 60;
/// The session of the reader of the standby.
const READER: u64 = u64::MAX - 1;

#[derive(Record, Clone, Copy)]
struct List {
    #[key]
    id: u64,
    length: u64,
}

#[derive(Record, Clone, Copy)]
struct Element {
    #[key]
    list: u64,
    #[key]
    at: u64,
    value: u64,
}

/// The tables.
#[derive(Clone)]
pub struct Lists {
    lists: Table<List, Mvcc>,
    elements: Table<Element, Mvcc>,
}

/// All lists, by their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found(BTreeMap<u64, Vec<u64>>);

impl Found {
    pub fn reads(&self) -> Vec<ListOp> {
        let read =
            |(key, values): (&u64, &Vec<u64>)| ListOp::Read { key: *key, values: values.clone() };
        self.0.iter().map(read).collect()
    }
}

impl Lists {
    pub fn of(db: &Database<Mvcc>) -> Result<Lists, Error> {
        Ok(Lists { lists: db.table("lists")?, elements: db.table("elements")? })
    }

    fn length(&self, tx: &Tx<'_, Mvcc>, list: u64) -> Result<u64, Abort> {
        Ok(self.lists.get(tx, list, Whole)?.map_or(0, |row| row.length))
    }

    fn read(&self, tx: &Tx<'_, Mvcc>, list: u64) -> Result<Vec<u64>, Abort> {
        let read = |at| self.elements.read(tx, (list, at), Element::VALUE);
        (0..self.length(tx, list)?).map(read).collect()
    }

    pub fn read_all(&self, tx: &Tx<'_, Mvcc>) -> Result<Found, Abort> {
        let lists = (0..LISTS).map(|list| Ok((list, self.read(tx, list)?)));
        lists.collect::<Result<_, Abort>>().map(Found)
    }

    fn append(&self, tx: &Tx<'_, Mvcc>, list: u64, value: u64) -> Result<(), Abort> {
        let at = self.length(tx, list)?;
        self.lists.put(tx, List { id: list, length: at + 1 })?;
        self.elements.insert(tx, Element { list, at, value })
    }
}

/// Runs transactions until the client is told to end, or the log has failed.
pub fn run_client(
    world: &World,
    db: &Database<Mvcc>,
    lists: &Lists,
    session: u64,
    is_over: &AtomicBool,
) {
    for number in 0..TRANSACTIONS {
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        // What the transaction is to do: lists, and whether it appends.
        let plan: Vec<(u64, bool)> =
            (0..1 + world.draw(3)).map(|_| (world.draw(LISTS), world.draw(2) == 0)).collect();
        let value = session * TRANSACTIONS + number + 1;
        let mut operations = Vec::new();
        let invoked = world.now();
        let pending = db.run_logged(|tx| {
            operations.clear();
            for (at, &(key, appends)) in plan.iter().enumerate() {
                // A list gets a value once.
                let is_first = !plan[..at].contains(&(key, true));
                if appends && is_first {
                    lists.append(tx, key, value)?;
                    operations.push(ListOp::Append { key, value });
                } else {
                    let values = lists.read(tx, key)?;
                    operations.push(ListOp::Read { key, values });
                }
            }
            Ok(())
        });
        let position = pending.position();
        match pending.wait_for(Level::Replicated) {
            Ok(()) => {
                // First, so that who reads after the end of the transaction waits for it.
                world.acknowledge(position.expect("the database has a place"));
                world.note(session, invoked, Outcome::Committed, operations);
                world.count("acknowledged");
            }
            // It may be in the place.
            Err(Abort::LogFailed) => {
                world.note(session, invoked, Outcome::Unknown, operations);
                return world.count("unknown");
            }
            Err(abort) => panic!("{abort}"),
        }
    }
}

/// Reads the standby again and again, each time after it has what was acknowledged before.
pub fn read_standby(world: &World, standby: &Standby, is_over: &AtomicBool) -> Result<(), String> {
    let mut lists = None;
    while !is_over.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_micros(500));
        let invoked = world.now();
        let Some(position) = world.acknowledged() else { continue };
        match standby.wait_for(position, Duration::from_millis(5)) {
            Ok(()) => {}
            Err(WaitError::Timeout) => continue,
            Err(error) => {
                return Err(format!("{position:?} was acknowledged: {error}"));
            }
        }
        if lists.is_none() {
            lists = Lists::of(standby.database()).ok();
        }
        let Some(lists) = &lists else { continue };
        let found = world.peek(standby.database(), lists).map_err(|error| error.to_string())?;
        world.note(READER, invoked, Outcome::Committed, found.reads());
        world.count("read by the standby");
    }
    Ok(())
}
