//! The contents of the tables, as found by one of the two ways of reading.

use std::collections::HashMap;

use candide::Text;

use super::area_codes::{NOWHERE, area_codes};
use super::tables::{AreaCode, Caller, Contestant, InState, NAMES, StateCount, Vote, states};
use super::worker::Done;
use super::{TELEPHONES, Voter};
use crate::Consistency;
use crate::read_back::fingerprint;

/// The contents of the contest, in a form that does not depend on the order of the rows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    contestants: HashMap<u32, Text<50>>,
    area_codes: HashMap<u16, [u8; 2]>,
    votes: u64,
    /// The count of each caller: as stored in its row (`callers`), and as computed from the votes
    /// (`callers_found`). The same holds for the counts by state.
    callers: HashMap<u64, u32>,
    callers_found: HashMap<u64, u32>,
    state_counts: HashMap<InState, u64>,
    state_counts_found: HashMap<InState, u64>,
    /// The number of votes whose state is not that of their area.
    misplaced: u64,
    fingerprint: u64,
}

impl Contents {
    pub(super) fn contestant(&mut self, row: &Contestant) {
        self.contestants.insert(row.number, row.name);
    }

    pub(super) fn area_code(&mut self, row: &AreaCode) {
        self.area_codes.insert(row.code, *row.state.as_bytes());
    }

    /// Adds a vote. All area codes have to be added before.
    pub(super) fn vote(&mut self, row: &Vote) {
        let area = (row.telephone / u64::from(TELEPHONES)) as u16;
        self.misplaced +=
            u64::from(self.area_codes.get(&area).unwrap_or(&NOWHERE) != row.state.as_bytes());
        let columns = [row.id, u64::from(row.contestant), row.time].map(u64::to_le_bytes);
        self.fingerprint =
            self.fingerprint.wrapping_add(fingerprint(row.telephone, columns.as_flattened()));
        self.votes += 1;
        *self.callers_found.entry(row.telephone).or_default() += 1;
        *self
            .state_counts_found
            .entry(InState { contestant: row.contestant, state: row.state })
            .or_default() += 1;
    }

    pub(super) fn caller(&mut self, row: &Caller) {
        self.callers.insert(row.telephone, row.votes);
    }

    pub(super) fn state_count(&mut self, row: &StateCount) {
        self.state_counts.insert(row.place, row.votes);
    }

    /// Returns the telephones with votes.
    pub(super) fn telephones(&self) -> Vec<u64> {
        self.callers_found.keys().copied().collect()
    }

    /// Returns the number of rows of each of the five tables, and the sum of the votes'
    /// fingerprints.
    pub(super) fn counts(&self) -> [u64; 6] {
        let rows = [
            self.contestants.len(),
            self.area_codes.len(),
            self.callers.len(),
            self.state_counts.len(),
        ];
        let [contestants, area_codes, callers, state_counts] = rows.map(|rows| rows as u64);
        [contestants, area_codes, self.votes, callers, state_counts, self.fingerprint]
    }

    /// Examines the conditions on the contents that one way of reading found.
    pub(super) fn settle(
        &self,
        way: &str,
        knobs: &Voter,
        done: &Done,
        consistency: &mut Consistency,
    ) {
        consistency.expect(self.votes == done.votes, || {
            format!("{way}: there are {} votes where {} were committed", self.votes, done.votes)
        });
        let expected = NAMES
            .iter()
            .take(knobs.contestants as usize)
            .map(|name| Text::new(name).expect("names are short"));
        let expected: HashMap<u32, Text<50>> = (1..).zip(expected).collect();
        let codes: HashMap<u16, [u8; 2]> = area_codes().collect();
        consistency.expect(self.contestants == expected && self.area_codes == codes, || {
            format!("{way}: contestants or area codes are not those that were loaded")
        });
        let mut wrong = |what: &str, count: usize| {
            consistency.expect(count == 0, || format!("{way}: {count} {what}"));
        };
        wrong("votes are from another state than that of their area", self.misplaced as usize);
        // A telephone without votes has no count, so both sides have the same keys.
        let differ = self
            .callers_found
            .iter()
            .filter(|(telephone, votes)| self.callers.get(telephone) != Some(votes));
        let unfounded =
            self.callers.keys().filter(|telephone| !self.callers_found.contains_key(telephone));
        wrong(
            "telephones have a count that is not that of their votes",
            differ.count() + unfounded.count(),
        );
        let over = self.callers_found.values().filter(|&&votes| votes > knobs.votes_max);
        wrong("telephones have voted too often", over.count());
        let found = |key| self.state_counts_found.get(key).copied().unwrap_or(0);
        let differ = self.state_counts.iter().filter(|(key, votes)| found(key) != **votes);
        let missing =
            self.state_counts_found.keys().filter(|key| !self.state_counts.contains_key(key));
        wrong(
            "contestants have a count in a state that is not that of their votes",
            differ.count() + missing.count(),
        );
        let all = (1..=knobs.contestants)
            .flat_map(|contestant| states().map(move |state| InState { contestant, state }));
        let lost = all.filter(|place| !self.state_counts.contains_key(place));
        wrong("contestants have no count in a state", lost.count());
    }
}
