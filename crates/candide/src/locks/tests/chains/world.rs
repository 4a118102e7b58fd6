//! The states of the model: cells, transactions, a reader, and the steps between them.

/// The number of cells. The number of a cell is its rank.
pub(super) const CELLS: usize = 3;

/// A rule that the model can do without, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// A transaction locks a cell once its predecessors have passed the cell's rank.
    Gate,
    /// The rank that a transaction shows is never above those of its predecessors.
    Frontier,
    /// A transaction closes its cells once its predecessors are over.
    CommitOrder,
    /// A successor evaluates what its predecessor has done.
    AwaitDone,
    /// A transaction closes a cell by an exchange of the second word.
    CloseByExchange,
    /// A version is above those that the predecessors have left in the cells.
    AbovePredecessors,
    /// A member of a chain leaves its version in the cell, though a successor publishes it.
    VersionLeft,
    /// A member that fails publishes the version that is in the cell.
    PublishFound,
    /// A member judges whether the row exists when its predecessor is done.
    ExistenceAtGate,
    /// A wild transaction compares versions when its predecessors are over.
    CertifyLate,
    /// A transaction that held a cell before takes pipelined cells only if they are free.
    HolderTakesFree,
    /// Nothing is executed before all is evaluated.
    EvaluateAllFirst,
}

/// The change of a cell that a transaction makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Op {
    Change,
    Delete,
    Insert,
}

/// What a transaction does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// The cells that it changes, by rank.
    pub(super) writes: Vec<(usize, Op)>,
    /// The cells that it reads before.
    pub(super) reads: Vec<usize>,
    /// Whether it fails when it evaluates its last item.
    pub(super) fails: bool,
    /// The cell that it holds from its beginning. No other transaction relaxes this cell.
    pub(super) holds: Option<usize>,
    /// The last version of its session.
    pub(super) last: u8,
}

impl Plan {
    pub(super) fn changes(cells: &[usize]) -> Plan {
        let writes = cells.iter().map(|&cell| (cell, Op::Change)).collect();
        Plan { writes, reads: Vec::new(), fails: false, holds: None, last: 0 }
    }

    pub(super) fn reads(self, cells: &[usize]) -> Plan {
        Plan { reads: cells.to_vec(), ..self }
    }

    pub(super) fn fails(self) -> Plan {
        Plan { fails: true, ..self }
    }

    pub(super) fn last(self, last: u8) -> Plan {
        Plan { last, ..self }
    }

    pub(super) fn doing(op: Op) -> Plan {
        Plan { writes: vec![(0, op)], ..Plan::changes(&[]) }
    }
}

/// The transactions of an exploration, and what else takes part.
#[derive(Debug, Clone)]
pub(super) struct Cast {
    pub(super) plans: Vec<Plan>,
    /// Whether an opaque transaction reads cells 0 and 1.
    pub(super) has_reader: bool,
    pub(super) without: Option<Rule>,
}

impl Cast {
    fn holds(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// Returns whether a cell is never relaxed.
    fn is_rigid(&self, cell: usize) -> bool {
        self.plans.iter().any(|plan| plan.holds == Some(cell))
    }
}

/// The second word of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Second {
    Free,
    Locked(usize),
    Relaxed(usize),
    Closing(usize),
}

/// A cell. A version is an epoch times 64, and a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Cell {
    pub(super) second: Second,
    pub(super) locked: bool,
    absent: bool,
    pub(super) version: u8,
    /// The transactions that have executed a change, in order: the words of the unit.
    pub(super) words: Vec<u8>,
}

/// The place of a transaction in its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum At {
    Reads(usize),
    Gate(usize),
    Takes(usize),
    First(usize),
    Shows(usize),
    Relaxes(usize),
    Evaluates(usize),
    Executes(usize),
    Done,
    Awaits,
    Certifies,
    Closes(usize),
    Publishes(usize),
    Frees(usize),
    Over,
}

/// A transaction.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Txn {
    pub(super) at: At,
    maxrank: u8,
    /// The predecessors, one bit each, and the predecessor of each item.
    preds: u8,
    befores: Vec<Option<usize>>,
    done: bool,
    /// Whether its changes count; `None` before that is known.
    pub(super) counts: Option<bool>,
    /// For each item: the version found with the lock, and whether the row existed then.
    notes: Vec<(u8, bool)>,
    pub(super) version: u8,
    /// The versions read, and the lengths of the words.
    pub(super) seen: Vec<(usize, u8, usize)>,
    /// For each item, the words after the transaction, as its record in the log has them.
    pub(super) images: Vec<Vec<u8>>,
}

/// A transaction that reads two cells at one moment, by the rule of views.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Reader {
    /// The first version of its epoch.
    base: u8,
    /// The versions read, and the words.
    pub(super) seen: Vec<(u8, Vec<u8>)>,
    has_failed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) cells: Vec<Cell>,
    pub(super) txns: Vec<Txn>,
    epoch: u8,
    pub(super) reader: Option<Reader>,
}

const EPOCH: u8 = 64;

impl World {
    pub(super) fn new(cast: &Cast) -> World {
        let cell = |number| {
            let holder = cast.plans.iter().position(|plan| plan.holds == Some(number));
            Cell {
                second: holder.map_or(Second::Free, Second::Locked),
                locked: holder.is_some(),
                absent: false,
                version: 5,
                words: Vec::new(),
            }
        };
        let txn = |plan: &Plan| Txn {
            at: At::Reads(0),
            maxrank: 0,
            preds: 0,
            befores: vec![None; plan.writes.len()],
            done: false,
            counts: None,
            notes: vec![(0, false); plan.writes.len()],
            version: 0,
            seen: Vec::new(),
            images: vec![Vec::new(); plan.writes.len()],
        };
        World {
            cells: (0..CELLS).map(cell).collect(),
            txns: cast.plans.iter().map(txn).collect(),
            epoch: EPOCH,
            reader: cast.has_reader.then(|| Reader { base: EPOCH, ..Reader::default() }),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.txns.iter().all(|txn| txn.at == At::Over)
    }

    /// Returns the states in which one step of one participant may end.
    pub(super) fn steps(&self, cast: &Cast) -> Vec<World> {
        let mut next: Vec<World> =
            (0..self.txns.len()).flat_map(|me| self.step(cast, me)).collect();
        next.extend(self.read());
        if self.epoch == EPOCH {
            next.push(World { epoch: 2 * EPOCH, ..self.clone() });
        }
        next
    }

    fn is_done(&self, other: usize) -> bool {
        self.txns[other].done || self.txns[other].at == At::Over
    }

    fn unfinished(&self, me: usize) -> impl Iterator<Item = &Txn> {
        let preds = self.txns[me].preds;
        let others = self.txns.iter().enumerate().filter(move |(txn, _)| preds >> txn & 1 == 1);
        others.map(|(_, txn)| txn).filter(|txn| txn.at != At::Over)
    }

    fn step(&self, cast: &Cast, me: usize) -> Option<World> {
        let (mut next, plan) = (self.clone(), &cast.plans[me]);
        let txn = &mut next.txns[me];
        let count = plan.writes.len();
        let is_wild = !plan.reads.is_empty();
        let cell_of = |item: usize| plan.writes[item].0;
        match txn.at {
            At::Reads(read) => match plan.reads.get(read) {
                Some(&cell) if !self.cells[cell].locked => {
                    let Cell { version, words, .. } = &self.cells[cell];
                    txn.seen.push((cell, *version, words.len()));
                    txn.at = At::Reads(read + 1);
                }
                Some(_) => return None,
                None => txn.at = At::Gate(0),
            },
            At::Gate(item) if item == count => txn.at = At::Evaluates(0),
            At::Gate(item) => {
                let rank = cell_of(item) as u8;
                let is_open = self.unfinished(me).all(|pred| pred.maxrank > rank);
                if cast.holds(Rule::Gate) && !is_open {
                    return None;
                }
                txn.at = At::Takes(item);
            }
            At::Takes(item) => return self.take(cast, me, item),
            At::First(item) => {
                let cell = &mut next.cells[cell_of(item)];
                (cell.locked, txn.at) = (true, At::Shows(item));
            }
            At::Shows(item) => {
                let cell = &self.cells[cell_of(item)];
                txn.notes[item] = (cell.version, !cell.absent);
                txn.maxrank = cell_of(item) as u8 + 1;
                if !cast.holds(Rule::Frontier) && item + 1 == count {
                    txn.maxrank = u8::MAX;
                }
                txn.at = At::Relaxes(item);
            }
            At::Relaxes(item) => {
                if !cast.is_rigid(cell_of(item)) {
                    next.cells[cell_of(item)].second = Second::Relaxed(me);
                }
                txn.at = At::Gate(item + 1);
            }
            At::Evaluates(item) => return self.evaluate(cast, me, item),
            At::Executes(item) if item == count => txn.at = At::Done,
            At::Executes(item) => {
                let (place, op) = plan.writes[item];
                let cell = &mut next.cells[place];
                cell.words.push(me as u8);
                cell.absent = op == Op::Delete;
                txn.images[item] = cell.words.clone();
                txn.at = if cast.holds(Rule::EvaluateAllFirst) {
                    At::Executes(item + 1)
                } else {
                    At::Evaluates(item + 1)
                };
            }
            At::Done => {
                txn.done = true;
                txn.at = if is_wild { At::Closes(0) } else { At::Awaits };
            }
            At::Awaits => {
                let least = self.unfinished(me).map(|pred| pred.maxrank).min();
                let frontier = least.unwrap_or(u8::MAX);
                let is_open = least.is_none() || !cast.holds(Rule::CommitOrder);
                if is_open {
                    txn.at = At::Certifies;
                } else if frontier > txn.maxrank {
                    txn.maxrank = frontier;
                } else {
                    return None;
                }
            }
            At::Certifies => return Some(self.certify(cast, me)),
            At::Closes(item) if item == count => {
                if let Some(held) = plan.holds {
                    (next.cells[held].second, next.cells[held].locked) = (Second::Free, false);
                }
                txn.at = At::Over;
            }
            At::Closes(item) => return Some(self.close(cast, me, item)),
            At::Publishes(item) => {
                let cell = &mut next.cells[cell_of(item)];
                let version = match txn.counts {
                    Some(true) => txn.version,
                    _ if cast.holds(Rule::PublishFound) => cell.version,
                    _ => txn.notes[item].0,
                };
                (cell.version, cell.locked) = (version, false);
                txn.at = At::Frees(item);
            }
            At::Frees(item) => {
                next.cells[cell_of(item)].second = Second::Free;
                txn.at = At::Closes(item + 1);
            }
            At::Over => return None,
        }
        Some(next)
    }

    /// Takes the second word of an item's cell.
    fn take(&self, cast: &Cast, me: usize, item: usize) -> Option<World> {
        let mut next = self.clone();
        let (place, txn) = (cast.plans[me].writes[item].0, &mut next.txns[me]);
        let takes_free = cast.plans[me].holds.is_some() && cast.holds(Rule::HolderTakesFree);
        match self.cells[place].second {
            Second::Free if self.cells[place].locked => return None,
            Second::Free => txn.at = At::First(item),
            Second::Relaxed(_) if takes_free => {
                // It gives up, and releases what it held. It has no predecessors.
                let held = cast.plans[me].holds.expect("it holds a cell");
                (next.cells[held].second, next.cells[held].locked) = (Second::Free, false);
                (txn.at, txn.counts) = (At::Over, Some(false));
                return Some(next);
            }
            Second::Relaxed(other) => {
                txn.preds |= 1 << other;
                txn.befores[item] = Some(other);
                txn.at = At::Shows(item);
            }
            Second::Locked(_) | Second::Closing(_) => return None,
        }
        next.cells[place].second = Second::Locked(me);
        Some(next)
    }

    /// Evaluates an item, or finds out that the transaction has failed.
    fn evaluate(&self, cast: &Cast, me: usize, item: usize) -> Option<World> {
        let (mut next, plan) = (self.clone(), &cast.plans[me]);
        let txn = &mut next.txns[me];
        if item == plan.writes.len() {
            let executes =
                if cast.holds(Rule::EvaluateAllFirst) { At::Executes(0) } else { At::Done };
            txn.at = if plan.reads.is_empty() { executes } else { At::Awaits };
            return Some(next);
        }
        if let Some(before) = txn.befores[item]
            && !self.is_done(before)
            && cast.holds(Rule::AwaitDone)
        {
            return None;
        }
        let (place, op) = plan.writes[item];
        let exists = match cast.holds(Rule::ExistenceAtGate) {
            true => !self.cells[place].absent,
            false => txn.notes[item].1,
        };
        let is_last = item + 1 == plan.writes.len();
        if exists == (op == Op::Insert) || plan.fails && is_last {
            (txn.counts, txn.at) = (Some(false), At::Done);
        } else if cast.holds(Rule::EvaluateAllFirst) {
            txn.at = At::Evaluates(item + 1);
        } else {
            txn.at = At::Executes(item);
        }
        Some(next)
    }

    /// Chooses the version; a wild transaction also compares the versions that it has read.
    fn certify(&self, cast: &Cast, me: usize) -> World {
        let (mut next, plan) = (self.clone(), &cast.plans[me]);
        let txn = &mut next.txns[me];
        if txn.counts == Some(false) {
            txn.at = At::Closes(0);
            return next;
        }
        let now = |item: usize| match cast.holds(Rule::AbovePredecessors) {
            true => self.cells[plan.writes[item].0].version,
            false => txn.notes[item].0,
        };
        let floor = (0..plan.writes.len()).map(now).chain(txn.seen.iter().map(|seen| seen.1));
        let floor = floor.fold(plan.last, u8::max);
        txn.version = (floor + 1).max(self.epoch);
        let is_unchanged = |&(place, version, _): &(usize, u8, usize)| {
            let own = plan.writes.iter().position(|&(own, _)| own == place);
            let now = match own {
                Some(item) if !cast.holds(Rule::CertifyLate) => txn.notes[item].0,
                _ => self.cells[place].version,
            };
            now == version && (own.is_some() || !self.cells[place].locked)
        };
        let counts = txn.seen.iter().all(is_unchanged);
        txn.counts = Some(counts);
        txn.at = match (plan.reads.is_empty(), counts) {
            (true, _) => At::Closes(0),
            (false, true) => At::Executes(0),
            (false, false) => At::Done,
        };
        next
    }

    /// Begins to close an item's cell, or leaves it to the successor.
    fn close(&self, cast: &Cast, me: usize, item: usize) -> World {
        let mut next = self.clone();
        let (place, txn) = (cast.plans[me].writes[item].0, &mut next.txns[me]);
        let is_mine = match cast.holds(Rule::CloseByExchange) {
            true => {
                matches!(self.cells[place].second, Second::Relaxed(own) | Second::Locked(own) if own == me)
            }
            // The owner alone is compared, and the word is stored later.
            false => txn.befores[item].is_some() || self.cells[place].second == Second::Relaxed(me),
        };
        if is_mine {
            if cast.holds(Rule::CloseByExchange) {
                next.cells[place].second = Second::Closing(me);
            }
            txn.at = At::Publishes(item);
            return next;
        }
        if txn.counts == Some(true) && cast.holds(Rule::VersionLeft) {
            next.cells[place].version = txn.version;
        }
        txn.at = At::Closes(item + 1);
        next
    }

    /// Lets the reader read its next cell.
    fn read(&self) -> Option<World> {
        let reader = self.reader.as_ref().filter(|reader| !reader.has_failed)?;
        let place = reader.seen.len();
        if place == 2 || self.cells[place].locked {
            return None;
        }
        let mut next = self.clone();
        let reader = next.reader.as_mut().expect("there is one");
        let Cell { version, words, .. } = &self.cells[place];
        if *version >= reader.base {
            let is_same = |(before, &(seen, _)): (usize, &(u8, Vec<u8>))| {
                self.cells[before].version == seen && !self.cells[before].locked
            };
            reader.has_failed = !reader.seen.iter().enumerate().all(is_same);
            reader.base = self.epoch;
        }
        reader.seen.push((*version, words.clone()));
        if reader.has_failed {
            reader.seen.clear();
        }
        Some(next)
    }
}
