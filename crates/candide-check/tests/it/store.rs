//! A simulated database and its clients, good or broken on purpose, that leaves a history.
//!
//! Time is the number of steps so far. Each step takes one client further: it invokes a
//! transaction, the database begins it, does something of it, ends it, or the client hears of the
//! outcome or stops waiting for it.

use candide_check::black::{ListOp, Outcome, RegisterOp, Transaction};
use fastrand::Rng;
use std::collections::HashMap;

/// What the database does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// One transaction at a time.
    Serial,
    /// Reads what had been committed when the transaction began, and replaces whatever is there by
    /// what follows from that.
    LostUpdates,
    /// Does every operation at once, for all to see, and takes writes back if the transaction
    /// aborts.
    DirtyReads,
    /// Reads what had been committed when the transaction began; of two that write the same key one
    /// aborts.
    Snapshots,
    /// One transaction at a time, but those that only read see an earlier state.
    StaleReads,
}

/// What the clients do.
pub struct Load {
    pub sessions: usize,
    pub transactions: usize,
    /// Operations of a transaction, at most.
    pub operations: usize,
    /// Keys in use at a time.
    pub keys: u64,
    /// After how many writes a key is replaced by a new one.
    pub writes_per_key: u64,
    /// Whether some transactions abort, and some have an unknown outcome.
    pub mishaps: bool,
}

/// An operation that histories of lists and of registers can be made of.
pub trait Operation {
    /// Whether a write replaces what was there.
    const REPLACES: bool;
    fn write(key: u64, value: u64) -> Self;
    fn read(key: u64, values: &[u64]) -> Self;
}

impl Operation for ListOp {
    const REPLACES: bool = false;

    fn write(key: u64, value: u64) -> ListOp {
        ListOp::Append { key, value }
    }

    fn read(key: u64, values: &[u64]) -> ListOp {
        ListOp::Read { key, values: values.to_vec() }
    }
}

impl Operation for RegisterOp {
    const REPLACES: bool = true;

    fn write(key: u64, value: u64) -> RegisterOp {
        RegisterOp::Write { key, value }
    }

    fn read(key: u64, values: &[u64]) -> RegisterOp {
        RegisterOp::Read { key, value: values.last().copied() }
    }
}

/// Runs clients against a store.
pub fn run<O: Operation>(store: Store, load: &Load, rng: &mut Rng) -> Vec<Transaction<O>> {
    let mut database = Database { versions: HashMap::new(), commits: 0, replaces: O::REPLACES };
    let mut keys = Keys {
        written: vec![0; load.keys as usize],
        first: (0..load.keys).collect(),
        next: load.keys,
    };
    let mut clients: Vec<Option<Client>> = (0..load.sessions).map(|_| None).collect();
    // Transactions whose clients have stopped waiting.
    let mut orphans: Vec<Client> = Vec::new();
    let mut history = Vec::new();
    let (mut now, mut invoked) = (0, 0);
    while history.len() < load.transactions {
        now += 1;
        let session = rng.usize(0..load.sessions + orphans.len());
        if let Some(orphan) = session.checked_sub(load.sessions) {
            if orphans[orphan].step(store, &mut database, rng) {
                orphans.swap_remove(orphan);
            }
            continue;
        }
        let Some(client) = &mut clients[session] else {
            if invoked < load.transactions {
                invoked += 1;
                clients[session] =
                    Some(Client::new(now, keys.operations(load, rng), load.mishaps, rng));
            }
            continue;
        };
        let gives_up = client.outcome == Outcome::Unknown && rng.u8(0..3) == 0;
        if !gives_up && !client.step(store, &mut database, rng) {
            continue;
        }
        let client = clients[session].take().expect("it has just been there");
        let operations = client.operations.iter().map(|operation| match operation {
            Asked::Write(key, value) => O::write(*key, *value),
            Asked::Read(key, values) => {
                O::read(*key, if client.outcome == Outcome::Committed { values } else { &[] })
            }
        });
        history.push(Transaction {
            session: session as u64,
            invoked: client.invoked,
            completed: now,
            outcome: client.outcome,
            operations: operations.collect(),
        });
        if gives_up {
            orphans.push(client);
        }
    }
    history
}

/// What the database keeps of each key: its states, and the commits that they came with.
struct Database {
    versions: HashMap<u64, Vec<(u64, Vec<u64>)>>,
    commits: u64,
    replaces: bool,
}

impl Database {
    fn at(&self, key: u64, commit: u64) -> Vec<u64> {
        let versions = self.versions.get(&key).map_or(&[][..], Vec::as_slice);
        versions
            .iter()
            .rev()
            .find(|(of, _)| *of <= commit)
            .map_or(Vec::new(), |(_, values)| values.clone())
    }

    fn changed_since(&self, key: u64, commit: u64) -> bool {
        self.versions
            .get(&key)
            .and_then(|versions| versions.last())
            .is_some_and(|(of, _)| *of > commit)
    }

    fn changed(&self, mut values: Vec<u64>, value: u64) -> Vec<u64> {
        if self.replaces {
            values.clear();
        }
        values.push(value);
        values
    }

    fn install(&mut self, key: u64, values: Vec<u64>) {
        self.versions.entry(key).or_default().push((self.commits, values));
    }

    /// Takes a value out of the last state of a key.
    fn take_back(&mut self, key: u64, value: u64) {
        let mut values = self.at(key, self.commits);
        values.retain(|other| *other != value);
        self.install(key, values);
    }
}

enum Asked {
    Write(u64, u64),
    Read(u64, Vec<u64>),
}

struct Client {
    invoked: u64,
    operations: Vec<Asked>,
    outcome: Outcome,
    /// Whether the database ever gets to see it.
    lost: bool,
    /// The commit that it sees, once the database has begun it.
    begun: Option<u64>,
    done: usize,
    ended: bool,
}

impl Client {
    fn new(invoked: u64, operations: Vec<Asked>, mishaps: bool, rng: &mut Rng) -> Client {
        let outcome = match rng.u8(0..20) {
            0 if mishaps => Outcome::Unknown,
            1 | 2 if mishaps => Outcome::Aborted,
            _ => Outcome::Committed,
        };
        let lost = outcome == Outcome::Unknown && rng.bool();
        Client { invoked, operations, outcome, lost, begun: None, done: 0, ended: false }
    }

    /// Goes a step further; says whether the client has heard of the outcome.
    fn step(&mut self, store: Store, database: &mut Database, rng: &mut Rng) -> bool {
        let Some(begun) = self.begun else {
            self.begun = Some(database.commits);
            return false;
        };
        if self.ended {
            return true;
        }
        let aborts = self.outcome == Outcome::Aborted || self.lost;
        if store == Store::DirtyReads && !self.lost && self.done < self.operations.len() {
            self.operate(database);
            return false;
        }
        self.ended = true;
        let reads_only =
            self.operations.iter().all(|operation| matches!(operation, Asked::Read(..)));
        match store {
            Store::DirtyReads if aborts => {
                for operation in &self.operations[..self.done] {
                    if let Asked::Write(key, value) = operation {
                        database.take_back(*key, *value);
                    }
                }
            }
            Store::DirtyReads => {}
            _ if aborts => {}
            Store::StaleReads if reads_only => {
                self.execute(begun.saturating_sub(rng.u64(0..20)), database)
            }
            Store::Serial | Store::StaleReads => self.execute(database.commits, database),
            Store::LostUpdates => self.execute(begun, database),
            Store::Snapshots => {
                let mut written = self.operations.iter().filter_map(|operation| match operation {
                    Asked::Write(key, _) => Some(*key),
                    Asked::Read(..) => None,
                });
                if written.any(|key| database.changed_since(key, begun)) {
                    self.outcome = Outcome::Aborted;
                } else {
                    self.execute(begun, database);
                }
            }
        }
        false
    }

    /// Does the next operation, where all transactions see it.
    fn operate(&mut self, database: &mut Database) {
        match &mut self.operations[self.done] {
            Asked::Write(key, value) => {
                database.commits += 1;
                let values = database.changed(database.at(*key, database.commits), *value);
                database.install(*key, values);
            }
            Asked::Read(key, values) => *values = database.at(*key, database.commits),
        }
        self.done += 1;
    }

    /// Does all operations on what had been committed then.
    fn execute(&mut self, commit: u64, database: &mut Database) {
        let mut written: HashMap<u64, Vec<u64>> = HashMap::new();
        for operation in &mut self.operations {
            let (Asked::Write(key, _) | Asked::Read(key, _)) = operation;
            let held = written.get(key).cloned().unwrap_or_else(|| database.at(*key, commit));
            match operation {
                Asked::Write(key, value) => {
                    written.insert(*key, database.changed(held, *value));
                }
                Asked::Read(_, values) => *values = held,
            }
        }
        database.commits += 1;
        for (key, values) in written {
            database.install(key, values);
        }
    }
}

/// Which keys are in use.
struct Keys {
    first: Vec<u64>,
    written: Vec<u64>,
    next: u64,
}

impl Keys {
    fn operations(&mut self, load: &Load, rng: &mut Rng) -> Vec<Asked> {
        let count = rng.usize(1..=load.operations);
        let writes = rng.u8(0..4);
        (0..count)
            .map(|_| {
                let place = rng.usize(0..self.first.len());
                if rng.u8(0..4) >= writes {
                    return Asked::Read(self.first[place], Vec::new());
                }
                self.written[place] += 1;
                let asked = Asked::Write(self.first[place], self.written[place]);
                if self.written[place] == load.writes_per_key {
                    (self.first[place], self.written[place]) = (self.next, 0);
                    self.next += 1;
                }
                asked
            })
            .collect()
    }
}
