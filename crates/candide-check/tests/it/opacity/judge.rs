//! What is asked of a run that has ended.

use super::memory::{Id, Ids, Look};
use super::state::{State, World};

/// A promise that a run broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A commit did not see the state that the commits before it left, in the order of last locks.
    NotSerial,
    /// What was shown is the state after no set of commits that conflicts and real time allow.
    NotOpaque,
    /// It is the state after one, but after no first part of the commits in their order.
    NotInOrder,
    /// All that have not ended wait for one another.
    Stuck,
    /// No run lets the reader do all that it does.
    NeverDone,
}

/// What a run of one scene came to, for the judge.
struct Judge<'a> {
    world: &'a World<'a>,
    state: &'a State,
    /// The commits, in the order of their last locks; of writers only.
    writers: Vec<Id>,
}

/// Returns the gravest fault of a run that has ended.
pub fn fault(world: &World<'_>, state: &State) -> Option<Fault> {
    let committed = |id: &&Id| state.past.committed.has(**id);
    let commits: Vec<Id> = state.past.locked.iter().filter(committed).copied().collect();
    let writers = commits.iter().copied().filter(|id| *id != Id::READER).collect();
    let judge = Judge { world, state, writers };
    let is_serial = |number: usize| {
        let now = judge.cells(&commits[..number]);
        state.looks(commits[number]).iter().all(|look| judge.sees(*look, now))
    };
    if !(0..commits.len()).all(is_serial) {
        return Some(Fault::NotSerial);
    }
    let orderly = judge.first_parts();
    let seen = 1..=state.reader.shown.len();
    if seen.clone().all(|count| orderly.iter().any(|set| judge.explains(set, count))) {
        return None;
    }
    let closed = judge.closed_sets();
    let is_opaque = seen.clone().all(|count| closed.iter().any(|set| judge.explains(set, count)));
    Some(if is_opaque { Fault::NotInOrder } else { Fault::NotOpaque })
}

impl Judge<'_> {
    fn writes(&self, id: Id) -> &[u8] {
        match id {
            Id::READER => &self.state.reader.writes,
            Id(number) => self.world.scene.writers[usize::from(number - 1)].writes,
        }
    }

    /// Returns which transaction wrote each cell last, of these in this order.
    fn cells(&self, commits: &[Id]) -> [Id; 3] {
        let mut cells = [Id::FIRST; 3];
        for id in commits {
            self.writes(*id).iter().for_each(|at| cells[usize::from(*at)] = *id);
        }
        cells
    }

    /// Returns whether a look shows what these cells are.
    fn sees(&self, look: Look, cells: [Id; 3]) -> bool {
        let has_row = |at: u8, by: Id| self.world.scene.has_row(at, by);
        match look {
            Look::Node(_) => !has_row(2, cells[2]),
            Look::Row(at, of) => has_row(at, of.by) == has_row(at, cells[usize::from(at)]),
            Look::Cell(at, of) => {
                let by = cells[usize::from(at)];
                of.by == by || !has_row(at, of.by) && !has_row(at, by)
            }
        }
    }

    /// Returns whether the first `count` of what was shown are the state after these commits, which
    /// all had their locks by then, and among which are all that had ended before the reader began.
    fn explains(&self, commits: &[Id], count: usize) -> bool {
        let reader = &self.state.reader;
        let by_then: Ids = reader.shown[count - 1];
        let cells = self.cells(commits);
        commits.iter().all(|id| by_then.has(*id))
            && self.writers.iter().all(|id| commits.contains(id) || !reader.after.has(*id))
            && reader.looks[..count].iter().all(|look| self.sees(*look, cells))
    }

    fn first_parts(&self) -> Vec<Vec<Id>> {
        (0..=self.writers.len()).map(|count| self.writers[..count].to_vec()).collect()
    }

    /// Returns all sets of commits that lack nothing which comes before one of them.
    fn closed_sets(&self) -> Vec<Vec<Id>> {
        let choose = |bits: u32| {
            let chosen =
                self.writers.iter().enumerate().filter(move |(number, _)| bits >> number & 1 == 1);
            chosen.map(|(_, id)| *id).collect::<Vec<Id>>()
        };
        let is_closed = |set: &Vec<Id>| {
            let outside = self.writers.iter().filter(|id| !set.contains(id));
            outside.into_iter().all(|first| set.iter().all(|then| !self.precedes(*first, *then)))
        };
        (0..1 << self.writers.len()).map(choose).filter(is_closed).collect()
    }

    /// Returns whether one writer comes before another by real time or by a conflict.
    fn precedes(&self, first: Id, then: Id) -> bool {
        let place = |id: Id| self.writers.iter().position(|writer| *writer == id);
        let reads = |id: Id| self.world.scene.writers[usize::from(id.0 - 1)].reads;
        let meet = |some: &[u8], others: &[u8]| some.iter().any(|at| others.contains(at));
        let conflict = meet(self.writes(first), self.writes(then))
            || meet(self.writes(first), reads(then))
            || meet(reads(first), self.writes(then));
        let began_after = self.state.writer(then).after.is_some_and(|ended| ended.has(first));
        began_after || conflict && place(first) < place(then)
    }
}
