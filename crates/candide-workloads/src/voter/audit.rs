//! The check, which counts the votes again.

use std::cell::RefCell;
use std::ops::Bound::{Excluded, Included};

use candide::{Abort, Error, Protocol, Session};

use super::area_codes::area_codes;
use super::contents::Contents;
use super::tables::{AreaCode, Caller, Contest, Contestant, InState, StateCount, Vote, states};
use super::worker::Done;
use super::{TELEPHONES, Voter};
use crate::read_back::{Rows, rows};
use crate::{Consistency, Failure};

/// The tables, by means that do not depend on the protocol.
struct Tables<'a> {
    contestants: Rows<'a, Contestant>,
    area_codes: Rows<'a, AreaCode>,
    votes: Rows<'a, Vote>,
    callers: Rows<'a, Caller>,
    state_counts: Rows<'a, StateCount>,
}

/// Compares the counts with the votes, and both with the loaded rows and the committed votes.
pub(super) fn check<P: Protocol>(
    contest: &Contest<P>,
    session: Session<P>,
    knobs: &Voter,
    done: &Done,
) -> Result<Consistency, Failure> {
    let session = &RefCell::new(session);
    let tables = Tables {
        contestants: rows(&contest.contestants, session),
        area_codes: rows(&contest.area_codes, session),
        votes: rows(&contest.votes, session),
        callers: rows(&contest.callers, session),
        state_counts: rows(&contest.state_counts, session),
    };
    settle(&tables, knobs, done)
}

fn settle(tables: &Tables<'_>, knobs: &Voter, done: &Done) -> Result<Consistency, Failure> {
    let looked_up = tables.read_by_transactions(knobs)?;
    let iterated = tables.read_by_iteration()?;

    let mut consistency = Consistency::default();
    looked_up.settle("read by transactions", knobs, done, &mut consistency);
    iterated.settle("read by raw iteration", knobs, done, &mut consistency);
    consistency.expect(looked_up == iterated, || {
        let (looked_up, iterated) = (looked_up.counts(), iterated.counts());
        format!(
            "transactions and raw iteration do not read the same: {looked_up:?} and {iterated:?}"
        )
    });
    Ok(consistency)
}

impl Tables<'_> {
    fn read_by_transactions(&self, knobs: &Voter) -> Result<Contents, Abort> {
        let mut contents = Contents::default();
        let contestants = 1..=knobs.contestants;
        self.contestants.by_keys(&mut contestants.clone(), &mut |row| contents.contestant(row))?;
        let mut places = contestants
            .flat_map(|contestant| states().map(move |state| InState { contestant, state }));
        self.state_counts.by_keys(&mut places, &mut |row| contents.state_count(row))?;
        for (code, _) in area_codes() {
            self.area_codes.by_keys(&mut [code].into_iter(), &mut |row| contents.area_code(row))?;
            let first = |code: u16| (u64::from(code) * u64::from(TELEPHONES), 0);
            let (from, to) = (Included(first(code)), Excluded(first(code + 1)));
            self.votes.by_scans(from, to, &mut |row| contents.vote(row))?;
        }
        let telephones = contents.telephones();
        self.callers.by_keys(&mut telephones.into_iter(), &mut |row| contents.caller(row))?;
        Ok(contents)
    }

    fn read_by_iteration(&self) -> Result<Contents, Error> {
        let mut contents = Contents::default();
        self.contestants.by_iteration(&mut |row| contents.contestant(row))?;
        self.area_codes.by_iteration(&mut |row| contents.area_code(row))?;
        self.votes.by_iteration(&mut |row| contents.vote(row))?;
        self.callers.by_iteration(&mut |row| contents.caller(row))?;
        self.state_counts.by_iteration(&mut |row| contents.state_count(row))?;
        Ok(contents)
    }
}
