//! Two or three transactions whose operations interleave in the order that the bytes choose. Some
//! serial order must have the same reads and writes.
//!
//! Each session has a thread, but only one of them runs at a time: before each operation it hands
//! the turn to the session that the next byte chooses. When there are no more bytes an attempt is
//! no longer interrupted, so that one of them commits.

use crate::Choices;
use candide::{Abort, Database, Record, Session, Table, Tx, Whole};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex};

/// A row of two groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(ordered)]
pub struct Cell {
    #[key]
    id: u8,
    first: i64,
    #[group(second)]
    second: i64,
}

/// The number of keys.
const KEYS: u8 = 4;
/// The number of operations of one transaction.
const OPERATIONS: usize = 5;

/// An operation of a transaction, the same on the database and on a map.
#[derive(Debug, Clone, Copy)]
enum Operation {
    Read(u8),
    ReadForUpdate(u8),
    /// Adds to the first column without reading it.
    Add(u8, i64),
    /// Sets the second column to the sum of all values read so far.
    SetToSeen(u8),
    /// Doubles the first column, having read it.
    Double(u8),
    Insert(u8),
    Delete(u8),
    Put(u8),
    /// Sums both columns of all rows.
    Scan,
}

type Map = BTreeMap<u8, Cell>;

fn operation(choices: &mut Choices<'_>) -> Operation {
    let byte = choices.byte();
    let key = byte % KEYS;
    match byte / KEYS % 9 {
        0 => Operation::Read(key),
        1 => Operation::ReadForUpdate(key),
        2 => Operation::Add(key, i64::from(byte) + 1),
        3 => Operation::SetToSeen(key),
        4 => Operation::Double(key),
        5 => Operation::Insert(key),
        6 => Operation::Delete(key),
        7 => Operation::Put(key),
        _ => Operation::Scan,
    }
}

impl Operation {
    fn row(id: u8, seen: i64) -> Cell {
        Cell { id, first: 100, second: seen }
    }

    /// Performs the operation on the database. Returns the sum of the values read.
    fn perform(self, table: &Table<Cell>, tx: &Tx<'_>, seen: i64) -> Result<i64, Abort> {
        let value = |row: Option<Cell>| row.map_or(-1, |row| row.first + row.second);
        Ok(match self {
            Operation::Read(key) => value(table.get(tx, &key, Whole)?),
            Operation::ReadForUpdate(key) => value(table.get_for_update(tx, &key, Whole)?),
            Operation::Add(key, by) => {
                i64::from(table.update_if_present(tx, &key, Cell::FIRST.add(by))?)
            }
            Operation::SetToSeen(key) => {
                i64::from(table.update_if_present(tx, &key, Cell::SECOND.set(seen))?)
            }
            Operation::Double(key) => {
                let double = |first: &mut i64| {
                    *first = first.wrapping_mul(2) % 1_000_003;
                    *first
                };
                table.modify_if_present(tx, &key, Cell::FIRST, double)?.unwrap_or(-1)
            }
            Operation::Insert(key) => {
                i64::from(table.insert_if_absent(tx, Operation::row(key, seen))?)
            }
            Operation::Delete(key) => i64::from(table.delete_if_present(tx, &key)?),
            Operation::Put(key) => {
                table.put(tx, Operation::row(key, seen))?;
                0
            }
            Operation::Scan => {
                let mut sum = 0;
                for row in table.scan(tx, .., Whole) {
                    let (key, row) = row?;
                    sum = sum * 7 + i64::from(key) + row.first + row.second;
                }
                sum
            }
        })
    }

    /// Performs the operation on the map. Returns the sum of the values read.
    fn model(self, map: &mut Map, seen: i64) -> i64 {
        match self {
            Operation::Read(key) | Operation::ReadForUpdate(key) => {
                map.get(&key).map_or(-1, |row| row.first + row.second)
            }
            Operation::Add(key, by) => {
                i64::from(map.get_mut(&key).map(|row| row.first += by).is_some())
            }
            Operation::SetToSeen(key) => {
                i64::from(map.get_mut(&key).map(|row| row.second = seen).is_some())
            }
            Operation::Double(key) => map.get_mut(&key).map_or(-1, |row| {
                row.first = row.first.wrapping_mul(2) % 1_000_003;
                row.first
            }),
            Operation::Insert(key) => {
                let is_new = !map.contains_key(&key);
                map.entry(key).or_insert(Operation::row(key, seen));
                i64::from(is_new)
            }
            Operation::Delete(key) => i64::from(map.remove(&key).is_some()),
            Operation::Put(key) => {
                map.insert(key, Operation::row(key, seen));
                0
            }
            Operation::Scan => map
                .values()
                .fold(0, |sum, row| sum * 7 + i64::from(row.id) + row.first + row.second),
        }
    }
}

/// The session that has the turn, and the schedule.
struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    current: usize,
    over: Vec<bool>,
    /// The bytes that choose the sessions, the last one first.
    choices: Vec<u8>,
}

impl Turns {
    /// Waits for the turn of session `own`.
    fn wait(&self, own: usize) {
        let state = self.state.lock().expect("no thread panics with it");
        drop(
            self.changed
                .wait_while(state, |state| state.current != own)
                .expect("no thread panics with it"),
        );
    }

    /// Hands the turn to the chosen session, and waits for the next turn. If the bytes are used up,
    /// hands the turn over only between attempts.
    fn hand_over(&self, own: usize, between_attempts: bool) {
        let mut state = self.state.lock().expect("no thread panics with it");
        match state.choices.pop() {
            Some(choice) => state.give(usize::from(choice)),
            None if between_attempts => state.give(own + 1),
            None => return,
        }
        drop(state);
        self.changed.notify_all();
        self.wait(own);
    }

    fn end(&self, own: usize) {
        let mut state = self.state.lock().expect("no thread panics with it");
        state.over[own] = true;
        let choice = state.choices.pop().map_or(own + 1, usize::from);
        state.give(choice);
        drop(state);
        self.changed.notify_all();
    }
}

impl State {
    /// Gives the turn to this session, or to the next session that has not ended.
    fn give(&mut self, wanted: usize) {
        let count = self.over.len();
        let next = (wanted..wanted + count)
            .map(|session| session % count)
            .find(|&session| !self.over[session]);
        self.current = next.unwrap_or(count);
    }
}

/// Runs one session's transaction in turns. Returns the values read.
fn run_one(
    own: usize,
    script: &[Operation],
    turns: &Turns,
    table: &Table<Cell>,
    session: &mut Session,
) -> Vec<i64> {
    turns.wait(own);
    let seen = session.run(|tx| {
        if tx.attempt_number() > 1 {
            turns.hand_over(own, true);
        }
        let mut seen = Vec::new();
        for operation in script {
            seen.push(operation.perform(table, tx, seen.iter().sum())?);
            turns.hand_over(own, false);
        }
        Ok(seen)
    });
    turns.end(own);
    seen.expect("a transaction commits in the end")
}

/// Returns the values that each transaction reads in a serial order, and the resulting map.
fn serially(order: &[usize], scripts: &[Vec<Operation>], mut map: Map) -> (Vec<Vec<i64>>, Map) {
    let mut seen = vec![Vec::new(); scripts.len()];
    for &one in order {
        for operation in &scripts[one] {
            let sum = seen[one].iter().sum();
            seen[one].push(operation.model(&mut map, sum));
        }
    }
    (seen, map)
}

/// Calls `visit` with all orders of the elements from `from` on.
fn permutations(
    order: &mut [usize],
    from: usize,
    visit: &mut dyn FnMut(&[usize]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if from == order.len() {
        return visit(order);
    }
    for index in from..order.len() {
        order.swap(from, index);
        permutations(order, from + 1, visit)?;
        order.swap(from, index);
    }
    ControlFlow::Continue(())
}

/// Runs the transactions in the schedule that the bytes choose.
pub fn run(bytes: &[u8]) {
    let choices = &mut Choices::new(bytes);
    let sessions = 2 + choices.below(2);
    let there = choices.byte();
    let mut script =
        || (0..1 + choices.below(OPERATIONS)).map(|_| operation(choices)).collect::<Vec<_>>();
    let scripts: Vec<Vec<Operation>> = (0..sessions).map(|_| script()).collect();
    let mut schedule = Vec::new();
    while !choices.is_over() && schedule.len() < 100 {
        schedule.push(choices.byte());
    }
    let db = Database::new();
    let table = db.table::<Cell>("cells").expect("a new table");
    let rows = (0..KEYS).filter(|key| there >> key & 1 == 1).map(|id| Cell {
        id,
        first: i64::from(id),
        second: 0,
    });
    let before: Map = rows.map(|row| (row.id, row)).collect();
    db.run(|tx| table.insert_many(tx, before.values().copied())).unwrap();

    let first = schedule.pop().map_or(0, usize::from) % sessions;
    let state = State { current: first, over: vec![false; sessions], choices: schedule };
    let turns = Turns { state: Mutex::new(state), changed: Condvar::new() };
    let seen: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let (db, table, turns) = (&db, &table, &turns);
        let threads = scripts.iter().enumerate().map(|(own, script)| {
            let mut session = db.session().expect("any number of sessions");
            scope.spawn(move || run_one(own, script, turns, table, &mut session))
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().expect("no session panics")).collect()
    });
    let mut after = Map::new();
    table
        .for_each_quiescent(|row| assert!(after.insert(row.id, *row).is_none()))
        .expect("nothing runs");

    let mut order: Vec<usize> = (0..sessions).collect();
    let found =
        permutations(&mut order, 0, &mut |order| match serially(order, &scripts, before.clone()) {
            (shown, left) if shown == seen && left == after => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
    assert!(
        found.is_break(),
        "no serial order of {scripts:?} on {before:?} shows {seen:?} and leaves {after:?}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_update_is_no_serial_order() {
        let scripts = vec![vec![Operation::Double(0)], vec![Operation::Double(0)]];
        let before: Map = [(0, Cell { id: 0, first: 1, second: 0 })].into();
        let ends: Vec<_> =
            [[0, 1], [1, 0]].map(|order| serially(&order, &scripts, before.clone())).into();
        assert!(ends.iter().all(|(seen, map)| *seen != [[2], [2]] && map[&0].first == 4));
        let mut orders = 0;
        let end = permutations(&mut [0, 1, 2], 0, &mut |_| {
            orders += 1;
            ControlFlow::Continue(())
        });
        assert!(end.is_continue() && orders == 6);
    }
}
