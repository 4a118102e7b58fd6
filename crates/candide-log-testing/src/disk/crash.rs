//! The states that a crash can leave.

use super::moment::Moment;
use super::operation::Operation;
use super::pieces::{Pieces, SECTOR};
use super::sim_disk::SimDisk;
use super::state_id::{Grain, Kept, StateId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The choice among the states that a crash can leave.
///
/// A position is a number of operations, after which the crash comes. At each position, the changes
/// that are not durable are cut into pieces: the sectors of each write, the change of a file's
/// size, and the changes of the directory. If there are at most `exhaustive` pieces, there is a
/// state for each subset of them.
///
/// Otherwise the bytes of each write become one piece. If there are at most `exhaustive` pieces
/// now, there is a state for each subset. If not, there are these states: no piece survives, all
/// survive, all but one, one alone, and `samples` random subsets. In both cases there are such
/// states of smaller pieces, too: at most `pieces` that are as small as possible. The random
/// subsets are of sectors.
#[derive(Clone, Debug)]
pub struct CrashOptions {
    /// The first position. 0 is before the first operation.
    pub first: usize,
    /// The last position. Positions after the last operation are left out.
    pub last: usize,
    /// The largest number of pieces whose subsets are all enumerated, at most 20.
    pub exhaustive: usize,
    /// The largest number of small pieces that are lost and kept one by one.
    pub pieces: usize,
    /// The number of random subsets.
    pub samples: u64,
    /// The seed of the random subsets.
    pub seed: u64,
}

impl Default for CrashOptions {
    /// Returns all positions, all subsets of up to 12 pieces, up to 128 small pieces, and 32 random
    /// subsets from the seed 0.
    fn default() -> Self {
        Self { first: 0, last: usize::MAX, exhaustive: 12, pieces: 128, samples: 32, seed: 0 }
    }
}

impl SimDisk {
    /// Returns the states that a crash could leave, with everything up to now, in order of
    /// positions.
    ///
    /// # Panics
    ///
    /// Panics if the options request all subsets of more than 20 pieces.
    pub fn crash_states(&self, options: &CrashOptions) -> CrashStates {
        let inner = self.inner();
        CrashStates::new(inner.origin.moment(), inner.operations.clone(), options.clone())
    }

    /// Returns the state with this identity, or `None` if there were fewer operations up to now.
    pub fn state(&self, id: StateId) -> Option<CrashState> {
        let inner = self.inner();
        let mut moment = inner.origin.moment();
        inner.operations.get(..id.position)?.iter().for_each(|operation| moment.apply(operation));
        Some(CrashState::new(id, Arc::new(moment)))
    }
}

/// A state that a crash can leave.
#[derive(Clone, Debug)]
pub struct CrashState {
    id: StateId,
    moment: Arc<Moment>,
    pieces: Arc<Pieces>,
}

impl CrashState {
    pub(super) fn new(id: StateId, moment: Arc<Moment>) -> Self {
        let pieces = Arc::new(Pieces::new(&moment, bytes(id.grain)));
        Self { id, moment, pieces }
    }

    /// Returns the name of the state, from which [`SimDisk::state`] makes the state again.
    pub fn id(&self) -> StateId {
        self.id
    }

    /// Returns a disk in this state. Everything in it is durable, and its position is 0.
    pub fn disk(&self) -> SimDisk {
        let kept = self.kept();
        let names = self.pieces.names(&self.moment, &kept);
        let contents = |file| (file, self.pieces.contents(&self.moment, file, &kept));
        let files: BTreeMap<_, _> = names.values().map(|file| contents(*file)).collect();
        SimDisk::with(names, files)
    }

    /// Returns, for each change that is not durable, a line on the part of the change that the
    /// crash leaves.
    pub fn describe(&self) -> String {
        let changes = self.pieces.describe(&self.moment, self.kept());
        let survive = if changes.is_empty() { "  everything is durable\n" } else { &changes };
        format!("{} after {} operations:\n{survive}", self.id, self.id.position)
    }

    fn kept(&self) -> impl Fn(usize) -> bool {
        kept(self.id)
    }
}

/// Returns the function that decides for each piece whether the crash leaves it.
fn kept(id: StateId) -> impl Fn(usize) -> bool {
    move |piece| id.kept.contains(id.position, piece)
}

fn bytes(grain: Grain) -> Option<u64> {
    match grain {
        Grain::Writes => None,
        Grain::Bytes(bytes) => Some(bytes),
    }
}

/// The states that a crash can leave, position by position. See [`CrashOptions`].
#[derive(Debug)]
pub struct CrashStates {
    options: CrashOptions,
    operations: std::vec::IntoIter<Operation>,
    /// The next position, or `None` after the last one.
    position: Option<usize>,
    moment: Moment,
    /// The states of the current position that are left, the next one last.
    states: Vec<CrashState>,
}

impl CrashStates {
    /// # Panics
    ///
    /// Panics if more than 20 pieces are to be enumerated exhaustively.
    pub(super) fn new(moment: Moment, operations: Vec<Operation>, options: CrashOptions) -> Self {
        assert!(options.exhaustive <= 20, "{} pieces have too many subsets", options.exhaustive);
        Self {
            options,
            operations: operations.into_iter(),
            position: Some(0),
            moment,
            states: Vec::new(),
        }
    }

    /// Collects the states of the next position. Returns `None` after the last one.
    fn go_on(&mut self) -> Option<()> {
        let position = self.position?;
        if position > self.options.last {
            self.position = None;
            return None;
        }
        if position >= self.options.first {
            self.states = self.states_at(position);
            self.states.reverse();
        }
        match self.operations.next() {
            Some(operation) => {
                self.moment.apply(&operation);
                self.position = Some(position + 1);
            }
            None => self.position = None,
        }
        Some(())
    }

    fn states_at(&self, position: usize) -> Vec<CrashState> {
        let moment = Arc::new(self.moment.clone());
        let mut states = Vec::new();
        let mut add = |grain, pieces: &Arc<Pieces>, choices: Vec<Kept>| {
            for choice in choices {
                let id = StateId { position, grain, kept: choice };
                // A smaller subset, which is enumerated as well, leaves the same state.
                let is_double =
                    matches!(choice, Kept::Subset(_)) && !pieces.is_applicable(&moment, kept(id));
                if !is_double {
                    let (moment, pieces) = (moment.clone(), pieces.clone());
                    states.push(CrashState { id, moment, pieces });
                }
            }
        };
        let sectors = Arc::new(Pieces::new(&moment, Some(SECTOR)));
        if sectors.len() <= self.options.exhaustive {
            add(Grain::Bytes(SECTOR), &sectors, subsets(sectors.len()));
            return states;
        }
        let writes = Arc::new(Pieces::new(&moment, None));
        let coarse = if writes.len() <= self.options.exhaustive {
            subsets(writes.len())
        } else {
            [vec![Kept::Nothing, Kept::Everything], one_by_one(writes.len())].concat()
        };
        add(Grain::Writes, &writes, coarse);
        let (grain, small) = self.small(&moment, &sectors);
        add(Grain::Bytes(grain), &small, one_by_one(small.len()));
        let random = (0..self.options.samples)
            .map(|number| Kept::Random(self.options.seed.wrapping_add(number)))
            .collect();
        add(Grain::Bytes(SECTOR), &sectors, random);
        states
    }

    /// Returns the smallest pieces whose number is at most the wanted one, and their size.
    fn small(&self, moment: &Moment, sectors: &Arc<Pieces>) -> (u64, Arc<Pieces>) {
        let (mut grain, mut pieces) = (SECTOR, sectors.clone());
        while pieces.len() > self.options.pieces && grain < 1 << 30 {
            grain *= 2;
            let fewer = Pieces::new(moment, Some(grain));
            if fewer.len() == pieces.len() && grain > 1 << 20 {
                break;
            }
            pieces = Arc::new(fewer);
        }
        (grain, pieces)
    }
}

impl Iterator for CrashStates {
    type Item = CrashState;

    fn next(&mut self) -> Option<CrashState> {
        while self.states.is_empty() {
            self.go_on()?;
        }
        self.states.pop()
    }
}

/// Returns all subsets of `count` pieces.
fn subsets(count: usize) -> Vec<Kept> {
    (0..1 << count).map(Kept::Subset).collect()
}

/// Returns the subsets of `count` pieces that lack one, and those that are one.
fn one_by_one(count: usize) -> Vec<Kept> {
    (0..count).map(Kept::AllBut).chain((0..count).map(Kept::Only)).collect()
}
