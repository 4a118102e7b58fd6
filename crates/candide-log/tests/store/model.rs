//! Random scripts of what a program does with a database, and a model that knows which states a
//! crash may leave.
//!
//! Commits run one after the other, each with the epoch as its stamp and the next number as its
//! version. Each belongs to a session, and lies in the session's buffer until a round swaps the
//! buffer. A round reads the cut, lets the epoch pass, and swaps buffers one after the other, while
//! commits of the next epoch continue: so some of its records are above its cut, and versions are
//! not in order.

use crate::support::*;
use candide_log::format::commit::ChangeKind;
use candide_log::{StoreOptions, WriteError};
use candide_log_testing::SimDisk;

const SESSIONS: usize = 3;
const KEYS: u64 = 6;

/// How often scripts do what, in percent of their steps; the rest are rounds.
#[derive(Debug, Clone, Copy)]
pub struct Habits {
    pub tables: u64,
    pub checkpoints: u64,
    pub reopenings: u64,
    pub confirmations: u64,
}

impl Default for Habits {
    fn default() -> Habits {
        Habits { tables: 8, checkpoints: 8, reopenings: 6, confirmations: 10 }
    }
}

/// A commit of a generation.
#[derive(Debug, Clone)]
struct Commit {
    stamp: u64,
    version: u64,
    writes: Vec<Write>,
}

/// A generation: what it began with, and what was committed in it.
#[derive(Debug, Clone)]
struct Generation {
    number: u64,
    base: Map,
    commits: Vec<Commit>,
    /// The cuts that blocks have closed.
    cuts: Vec<u64>,
}

/// A promise that was given when the disk had done so many operations.
#[derive(Debug, Clone, Copy)]
struct Promise {
    position: usize,
    generation: u64,
    cut: u64,
}

/// A database in use, and the model of it.
pub struct World {
    pub disk: SimDisk,
    options: StoreOptions,
    rng: fastrand::Rng,
    opened: Option<Opened>,
    generations: Vec<Generation>,
    /// What is in the tables now.
    rows: Map,
    tables: u32,
    epoch: u64,
    version: u64,
    buffers: [Vec<u64>; SESSIONS],
    durable: Vec<Promise>,
    written: Vec<Promise>,
    /// For each table the number of operations after which it is durable.
    tables_durable: Vec<usize>,
    /// The cut of the last block that was written.
    cut: u64,
}

impl World {
    /// Opens a database on an empty disk.
    pub fn new(seed: u64) -> World {
        World::on(SimDisk::new(), seed)
    }

    /// Opens a database on a disk that is empty.
    pub fn on(disk: SimDisk, seed: u64) -> World {
        let mut world = World {
            disk,
            // From segments for one block each to segments for many.
            options: StoreOptions {
                segment_bytes: [16, 12, 24, 128][seed as usize % 4] << 10,
                ..options()
            },
            rng: fastrand::Rng::with_seed(seed),
            opened: None,
            generations: Vec::new(),
            rows: Map::new(),
            tables: 0,
            epoch: 1,
            version: 0,
            buffers: Default::default(),
            durable: Vec::new(),
            written: Vec::new(),
            tables_durable: Vec::new(),
            cut: 0,
        };
        world.reopen();
        world
    }

    pub fn opened(&mut self) -> &mut Opened {
        self.opened.as_mut().expect("the database is open")
    }

    /// Does so many random steps.
    pub fn run(&mut self, steps: usize, habits: Habits) {
        for _ in 0..steps {
            self.step(habits).expect("nothing fails");
        }
    }

    /// Does one random step.
    pub fn step(&mut self, habits: Habits) -> Result<(), WriteError> {
        let Habits { tables, checkpoints, reopenings, confirmations } = habits;
        let mut choice = self.rng.u64(0..100);
        let mut is = |percent: u64| {
            let is = choice < percent;
            if !is {
                choice -= percent;
            }
            is
        };
        if self.tables == 0 || is(tables) {
            self.add_table();
        } else if is(checkpoints) {
            self.checkpoint();
        } else if is(reopenings) {
            self.reopen();
        } else if is(confirmations) {
            self.opened().log.confirm()?;
        } else {
            self.round()?;
        }
        Ok(())
    }

    pub fn add_table(&mut self) {
        let schema = schema(&format!("table {}", self.tables));
        if self.opened().store.add_table(schema).is_ok() {
            self.tables += 1;
            self.tables_durable.push(self.disk.position());
        }
    }

    pub fn checkpoint(&mut self) {
        let _ = self.opened().store.checkpoint();
    }

    /// Runs a commit in a session.
    fn commit(&mut self, session: usize) {
        self.version += 1;
        let mut writes = Vec::new();
        for _ in 0..self.rng.usize(1..=3) {
            let table = self.rng.u32(1..=self.tables);
            let key = self.rng.u64(0..KEYS);
            let is_there = self.rows.contains_key(&(table, vec![key]));
            let (kind, first, count) = match self.rng.u8(0..4) {
                0 if is_there => (ChangeKind::Delete, 0, 0),
                1 | 2 if is_there => {
                    let first = self.rng.u16(0..ROW_WORDS);
                    (ChangeKind::Update, first, self.rng.u16(1..=ROW_WORDS - first))
                }
                _ => (ChangeKind::Put, 0, self.rng.u16(1..=ROW_WORDS)),
            };
            let words: Vec<u64> =
                (0..count).map(|word| self.version << 8 | u64::from(word)).collect();
            let write = Write::new(kind, table, key, first, &words);
            write.apply(&mut self.rows);
            writes.push(write);
        }
        commit(&mut self.buffers[session], self.epoch, self.version, &writes);
        let commit = Commit { stamp: self.epoch, version: self.version, writes };
        self.generations.last_mut().expect("there is a generation").commits.push(commit);
    }

    fn some_commits(&mut self, most: usize) {
        for _ in 0..self.rng.usize(0..=most) {
            let session = self.rng.usize(0..SESSIONS);
            self.commit(session);
        }
    }

    /// Runs some commits, and hands them to the log in a round that is made durable.
    pub fn round(&mut self) -> Result<(), WriteError> {
        self.some_commits(4);
        let cut = self.epoch;
        self.epoch += 1;
        let mut payload = Vec::new();
        for session in 0..SESSIONS {
            payload.push(std::mem::take(&mut self.buffers[session]));
            self.some_commits(1);
        }
        payload.retain(|buffer| !buffer.is_empty());
        let records: Vec<&[u64]> = payload.iter().map(|buffer| &buffer[..]).collect();
        // The model knows the cut before the disk does.
        self.generations.last_mut().expect("there is a generation").cuts.push(cut);
        if let Err(error) = self.opened().log.write(&records, cut) {
            if let WriteError::Full(_) = &error {
                // Nothing was written. The next round has the records, too.
                self.buffers[0].splice(0..0, payload.concat());
            }
            return Err(error);
        }
        self.cut = cut;
        let written = self.promise();
        self.written.push(written);
        self.opened().log.sync()?;
        let durable = self.promise();
        self.durable.push(durable);
        self.opened().log.prepare()
    }

    /// Drops a database whose log has failed.
    pub fn close_failed(&mut self) {
        self.opened = None;
    }

    fn promise(&self) -> Promise {
        let generation = self.generations.last().expect("there is a generation").number;
        Promise { position: self.disk.position(), generation, cut: self.cut }
    }

    /// Closes the database, or drops it as a process that is killed would, and opens it again.
    pub fn reopen(&mut self) {
        if let Some(opened) = self.opened.take()
            && self.rng.bool()
        {
            opened.log.close().expect("nothing fails");
        }
        let opened = open_with(self.disk.clone(), &self.options).expect("the database opens");
        if let Err(why) = self.check(&opened, &self.written) {
            panic!("opened again after operation {}: {why}", self.disk.position());
        }
        self.begin_generation(opened);
    }

    /// Makes what was recovered the beginning of a generation.
    fn begin_generation(&mut self, opened: Opened) {
        self.rows = opened.rows.clone();
        let number = opened.recovered.generation;
        // A generation without a block has not been.
        self.generations.retain(|generation| generation.number < number);
        self.generations.push(Generation {
            number,
            base: opened.rows.clone(),
            commits: Vec::new(),
            cuts: vec![0],
        });
        (self.epoch, self.version, self.cut) = (1, 0, 0);
        self.buffers = Default::default();
        self.opened = Some(opened);
    }

    /// Returns the rows after the commits of a generation up to a cut.
    fn prefix(&self, generation: u64, cut: u64) -> Result<Map, String> {
        if generation == 0 {
            return Ok(Map::new());
        }
        let found = self.generations.iter().find(|found| found.number == generation);
        let Some(generation) = found else {
            return Err(format!("there is no generation {generation}"));
        };
        if !generation.cuts.contains(&cut) {
            return Err(format!("no block closes cut {cut}, but {:?} do", generation.cuts));
        }
        let mut commits: Vec<_> =
            generation.commits.iter().filter(|commit| commit.stamp <= cut).collect();
        commits.sort_by_key(|commit| commit.version);
        let mut rows = generation.base.clone();
        commits.iter().flat_map(|commit| &commit.writes).for_each(|write| write.apply(&mut rows));
        Ok(rows)
    }

    /// Checks what was recovered from the disk after so many operations and a loss of power.
    pub fn check_crash(&self, opened: &Opened, position: usize) -> Result<(), String> {
        let kept: Vec<_> =
            self.durable.iter().filter(|promise| promise.position <= position).copied().collect();
        let tables = self.tables_durable.iter().filter(|table| **table <= position).count();
        if opened.store.tables().len() < tables {
            return Err(format!("{tables} tables were durable"));
        }
        self.check(opened, &kept)
    }

    /// Checks what was recovered from the disk after a process was killed after so many
    /// operations.
    pub fn check_killed(&self, opened: &Opened, position: usize) -> Result<(), String> {
        let kept: Vec<_> =
            self.written.iter().filter(|promise| promise.position <= position).copied().collect();
        self.check(opened, &kept)
    }

    fn check(&self, opened: &Opened, promises: &[Promise]) -> Result<(), String> {
        let (generation, cut) = (opened.recovered.last_generation, opened.recovered.cut);
        if let Some(Promise { generation: least, cut: least_cut, .. }) = promises.last()
            && (generation, cut) < (*least, *least_cut)
        {
            return Err(format!(
                "cut {cut} of generation {generation} was recovered, and cut {least_cut} of \
                 generation {least} was promised"
            ));
        }
        let expected = self.prefix(generation, cut)?;
        if opened.rows == expected {
            return Ok(());
        }
        Err(format!(
            "cut {cut} of generation {generation} is\n{:?}\nand what was recovered is\n{:?}",
            expected, opened.rows
        ))
    }
}
