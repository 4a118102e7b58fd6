//! The tables: contestants, area codes, votes, and the two counts of votes.

use candide::{Abort, Bytes, Database, Error, Key, Protocol, Record, Table, Text, Tx};

use super::area_codes::{NOWHERE, STATES, area_codes};

/// The names of the contestants.
pub const NAMES: [&str; 12] = [
    "Candide",
    "Cunégonde",
    "Pangloss",
    "Martin",
    "Cacambo",
    "Paquette",
    "Giroflée",
    "Jacques",
    "Vanderdendur",
    "Pococurante",
    "Don Fernando",
    "The Old Woman",
];

/// A contestant.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Contestant {
    /// The contestant's number, from 1.
    #[key]
    pub number: u32,
    /// The contestant's name.
    pub name: Text<50>,
}

/// An area code, and the state in which its area lies.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct AreaCode {
    /// The first three digits of the area's telephone numbers.
    #[key]
    pub code: u16,
    /// The state, by its two letters.
    pub state: Bytes<2>,
}

/// A vote.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct Vote {
    /// The telephone from which the vote came.
    #[key]
    pub telephone: u64,
    /// The vote's number among all votes.
    #[key]
    pub id: u64,
    /// The contestant.
    pub contestant: u32,
    /// The state from which the vote came.
    pub state: Bytes<2>,
    /// The time of the vote.
    pub time: u64,
}

/// The number of votes from a telephone. A telephone without votes has no row.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Caller {
    /// The telephone.
    #[key]
    pub telephone: u64,
    /// The votes.
    pub votes: u32,
}

/// A contestant and a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Key)]
pub struct InState {
    /// The contestant.
    pub contestant: u32,
    /// The state.
    pub state: Bytes<2>,
}

/// The number of votes for a contestant in a state. Each pair has a row, with zero votes at first.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct StateCount {
    /// The contestant and the state.
    #[key]
    pub place: InState,
    /// The votes.
    pub votes: u64,
}

/// All tables.
pub struct Contest<P: Protocol> {
    /// Contestants.
    pub contestants: Table<Contestant, P>,
    /// Area codes.
    pub area_codes: Table<AreaCode, P>,
    /// Votes.
    pub votes: Table<Vote, P>,
    /// Votes by telephone.
    pub callers: Table<Caller, P>,
    /// Votes by contestant and state.
    pub state_counts: Table<StateCount, P>,
}

impl<P: Protocol> Clone for Contest<P> {
    fn clone(&self) -> Self {
        Contest {
            contestants: self.contestants.clone(),
            area_codes: self.area_codes.clone(),
            votes: self.votes.clone(),
            callers: self.callers.clone(),
            state_counts: self.state_counts.clone(),
        }
    }
}

impl<P: Protocol> Contest<P> {
    /// Creates the tables.
    pub(super) fn create(db: &Database<P>) -> Result<Self, Error> {
        Ok(Contest {
            contestants: db.table("contestants")?,
            area_codes: db.table("area_code_state")?,
            votes: db.table("votes")?,
            callers: db.table("v_votes_by_phone_number")?,
            state_counts: db.table("v_votes_by_contestant_number_state")?,
        })
    }

    pub(super) fn enter_area_codes(&self, tx: &Tx<'_, P>) -> Result<(), Abort> {
        area_codes().try_for_each(|(code, state)| {
            self.area_codes.insert(tx, AreaCode { code, state: Bytes::new(state) })
        })
    }

    /// Inserts contestant number `number`, with zero votes.
    pub(super) fn enter(&self, tx: &Tx<'_, P>, number: u32) -> Result<(), Abort> {
        let name = Text::new(NAMES[number as usize - 1]).expect("names are short");
        self.contestants.insert(tx, Contestant { number, name })?;
        states().try_for_each(|state| {
            self.state_counts
                .insert(tx, StateCount { place: InState { contestant: number, state }, votes: 0 })
        })
    }
}

/// Returns all states, and [`NOWHERE`].
pub(super) fn states() -> impl Iterator<Item = Bytes<2>> {
    STATES.iter().map(|(state, _)| *state).chain([NOWHERE]).map(Bytes::new)
}
