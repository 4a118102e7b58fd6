//! The changes that a script has made in its database, and the states that a crash may leave.

use super::found::Found;
use super::write::{Contents, Write};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A commit.
#[derive(Debug, Clone)]
struct Commit {
    stamp: u64,
    version: u64,
    writes: Vec<Write>,
}

/// A generation: its first contents, and the commits in it.
#[derive(Debug)]
struct Generation {
    number: u64,
    base: Contents,
    commits: Vec<Commit>,
    /// The cuts that blocks have closed, and the cut of the generation's beginning.
    cuts: Vec<u64>,
}

/// An acknowledgement of all commits up to a cut, given after a number of the disk's operations.
#[derive(Debug, Clone, Copy)]
struct Promise {
    position: usize,
    generation: u64,
    cut: u64,
}

/// The kind of loss that an acknowledgement withstands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// The end of the process.
    OfProcess,
    /// The end of power.
    OfPower,
}

/// The state of a database that the script expects.
#[derive(Debug)]
pub(super) struct Model {
    row_words: usize,
    generations: Vec<Generation>,
    written: Vec<Promise>,
    durable: Vec<Promise>,
    /// The number of operations after which a table was durable, for each table.
    tables: Vec<usize>,
    /// The states that have been asked for, by generation and cut.
    prefixes: RefCell<BTreeMap<(u64, u64), Rc<Contents>>>,
}

impl Model {
    /// Returns an empty database whose rows will have this number of words.
    pub(super) fn new(row_words: usize) -> Model {
        Model {
            row_words,
            generations: Vec::new(),
            written: Vec::new(),
            durable: Vec::new(),
            tables: Vec::new(),
            prefixes: RefCell::default(),
        }
    }

    fn last(&mut self) -> &mut Generation {
        self.generations.last_mut().expect("a script begins with a generation")
    }

    /// Notes that the database has been opened, after this number of the disk's operations.
    pub(super) fn open(&mut self, generation: u64, found: &Found, position: usize) {
        // A generation without a block does not count.
        self.generations.retain(|before| before.number < generation);
        self.prefixes.borrow_mut().retain(|(number, _), _| *number < generation);
        self.generations.push(Generation {
            number: generation,
            base: found.rows.clone(),
            commits: Vec::new(),
            cuts: vec![0],
        });
        let Found { generation, cut, .. } = *found;
        // Recovered commits are as durable as synced commits.
        self.promise(Promise { position, generation, cut }, Loss::OfPower);
        self.tables.resize(found.tables.len(), position);
    }

    /// Notes that a table is durable.
    pub(super) fn add_table(&mut self, position: usize) {
        self.tables.push(position);
    }

    /// Returns the number of durable tables.
    pub(super) fn tables(&self) -> usize {
        self.tables.len()
    }

    /// Notes a commit.
    pub(super) fn commit(&mut self, stamp: u64, version: u64, writes: Vec<Write>) {
        self.last().commits.push(Commit { stamp, version, writes });
    }

    /// Notes that a block may close a cut.
    pub(super) fn close(&mut self, cut: u64) {
        self.last().cuts.push(cut);
    }

    /// Notes that all commits up to a cut are written, or durable.
    pub(super) fn acknowledge(&mut self, cut: u64, against: Loss, position: usize) {
        let generation = self.last().number;
        self.promise(Promise { position, generation, cut }, against);
    }

    fn promise(&mut self, promise: Promise, against: Loss) {
        self.written.push(promise);
        if against == Loss::OfPower {
            self.durable.push(promise);
        }
    }

    /// Returns the rows after the commits of a generation up to a cut.
    fn prefix(&self, number: u64, cut: u64) -> Result<Rc<Contents>, String> {
        if let Some(known) = self.prefixes.borrow().get(&(number, cut)) {
            return Ok(known.clone());
        }
        let mut rows = Contents::new();
        if number > 0 {
            let generation = self.generations.iter().find(|known| known.number == number);
            let generation =
                generation.ok_or_else(|| format!("there was no generation {number}"))?;
            if !generation.cuts.contains(&cut) {
                return Err(format!("generation {number} has no block that closes cut {cut}"));
            }
            let commits = generation.commits.iter().filter(|commit| commit.stamp <= cut);
            let mut commits: Vec<_> = commits.collect();
            commits.sort_by_key(|commit| commit.version);
            rows = generation.base.clone();
            let writes = commits.iter().flat_map(|commit| &commit.writes);
            writes.for_each(|write| write.apply(&mut rows, self.row_words));
        }
        let rows = Rc::new(rows);
        self.prefixes.borrow_mut().insert((number, cut), rows.clone());
        Ok(rows)
    }

    /// Checks the contents found after a loss, which came after this number of the disk's
    /// operations.
    ///
    /// # Errors
    /// The fault of the contents.
    pub(super) fn check(&self, found: &Found, loss: Loss, position: usize) -> Result<(), String> {
        let promises = if loss == Loss::OfPower { &self.durable } else { &self.written };
        let given = promises.partition_point(|promise| promise.position <= position);
        let (generation, cut) = (found.generation, found.cut);
        if let Some(promise) = given.checked_sub(1).map(|last| promises[last])
            && (generation, cut) < (promise.generation, promise.cut)
        {
            return Err(format!(
                "the database has cut {cut} of generation {generation}, and cut {} of generation {} was acknowledged",
                promise.cut, promise.generation
            ));
        }
        let tables = self.tables.iter().filter(|since| **since <= position).count();
        if found.tables.len() < tables {
            return Err(format!("the database has {} of {tables} tables", found.tables.len()));
        }
        let expected = self.prefix(generation, cut)?;
        if found.rows == *expected {
            return Ok(());
        }
        let differing = |from: &Contents, other: &Contents| {
            let only = from.iter().filter(|(key, row)| other.get(*key) != Some(*row));
            format!("{:?}", only.collect::<BTreeMap<_, _>>())
        };
        Err(format!(
            "the rows are not those after cut {cut} of generation {generation}\n  there should \
             be  {}\n  and there are     {}",
            differing(&expected, &found.rows),
            differing(&found.rows, &expected)
        ))
    }
}
