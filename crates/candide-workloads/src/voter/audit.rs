//! The check: counting the votes again.

use candide::{Abort, Protocol, Session, Whole};

use super::area_codes::area_codes;
use super::books::Books;
use super::tables::{Contest, InState, Vote, states};
use super::worker::Done;
use super::{TELEPHONES, Voter};
use crate::{Consistency, Failure};

/// Compares the counts with the votes, and all of it with what was loaded and committed.
pub(super) fn check<P: Protocol>(
    contest: &Contest<P>,
    mut session: Session<P>,
    knobs: &Voter,
    done: &Done,
) -> Result<Consistency, Failure> {
    let looked_up = read_by_transactions(contest, &mut session, knobs)?;
    let mut iterated = Books::default();
    contest.contestants.for_each_quiescent(|row| iterated.contestant(row))?;
    contest.area_codes.for_each_quiescent(|row| iterated.area_code(row))?;
    contest.votes.for_each_quiescent(|row| iterated.vote(row))?;
    contest.callers.for_each_quiescent(|row| iterated.caller(row))?;
    contest.state_counts.for_each_quiescent(|row| iterated.state_count(row))?;

    let mut consistency = Consistency::default();
    looked_up.settle("read by transactions", knobs, done, &mut consistency);
    iterated.settle("read by raw iteration", knobs, done, &mut consistency);
    consistency.expect(looked_up == iterated, || {
        let (looked_up, iterated) = (looked_up.counts(), iterated.counts());
        format!("transactions and raw iteration do not read the same: {looked_up:?} and {iterated:?}")
    });
    Ok(consistency)
}

fn read_by_transactions<P: Protocol>(
    contest: &Contest<P>,
    session: &mut Session<P>,
    knobs: &Voter,
) -> Result<Books, Abort> {
    let mut books = Books::default();
    for number in 1..=knobs.contestants {
        let row = session.run(|tx| contest.contestants.get(tx, &number, Whole))?;
        row.iter().for_each(|row| books.contestant(row));
        for state in states() {
            let place = InState { contestant: number, state };
            let row = session.run(|tx| contest.state_counts.get(tx, &place, Whole))?;
            row.iter().for_each(|row| books.state_count(row));
        }
    }
    for (code, _) in area_codes() {
        let row = session.run(|tx| contest.area_codes.get(tx, &code, Whole))?;
        row.iter().for_each(|row| books.area_code(row));
        let first = |code: u16| (u64::from(code) * u64::from(TELEPHONES), 0);
        let votes: Vec<Vote> = session.run(|tx| {
            let votes = contest.votes.scan(tx, first(code)..first(code + 1), Whole);
            votes.map(|row| Ok::<_, Abort>(row?.1)).collect::<Result<_, _>>()
        })?;
        votes.iter().for_each(|row| books.vote(row));
    }
    for telephone in books.telephones() {
        let row = session.run(|tx| contest.callers.get(tx, &telephone, Whole))?;
        row.iter().for_each(|row| books.caller(row));
    }
    Ok(books)
}
