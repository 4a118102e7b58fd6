//! The check: every balance against the history.

use candide::{Abort, Protocol, Session, Whole};

use super::TpcB;
use super::books::Books;
use super::tables::{Bank, History};
use super::worker::Tally;
use crate::read_back::by_transactions;
use crate::{Consistency, Failure};

/// Rows of history that are read by one transaction.
const BATCH: u64 = 1000;

/// Compares the tables with one another, with what was loaded and with what was committed.
pub(super) fn check<P: Protocol>(
    bank: &Bank<P>,
    mut session: Session<P>,
    knobs: &TpcB,
    workers: u64,
    tally: &Tally,
) -> Result<Consistency, Failure> {
    let looked_up = read_by_transactions(bank, &mut session, knobs, workers)?;
    let mut iterated = Books::default();
    bank.branches.for_each_quiescent(|row| iterated.branch(row))?;
    bank.tellers.for_each_quiescent(|row| iterated.teller(row))?;
    bank.accounts.for_each_quiescent(|row| iterated.account(row, knobs))?;
    bank.history.for_each_quiescent(|row| iterated.history(row))?;

    let mut consistency = Consistency::default();
    looked_up.settle("read by transactions", knobs, tally, &mut consistency);
    iterated.settle("read by raw iteration", knobs, tally, &mut consistency);
    consistency.expect(looked_up == iterated, || {
        let (looked_up, iterated) = (looked_up.counts(), iterated.counts());
        format!("transactions and raw iteration do not read the same: {looked_up:?} and {iterated:?}")
    });
    Ok(consistency)
}

fn read_by_transactions<P: Protocol>(
    bank: &Bank<P>,
    session: &mut Session<P>,
    knobs: &TpcB,
    workers: u64,
) -> Result<Books, Abort> {
    let mut books = Books::default();
    by_transactions(session, &bank.branches, knobs.branches, |row| books.branch(row))?;
    by_transactions(session, &bank.tellers, knobs.branches * super::TELLERS, |row| books.teller(row))?;
    by_transactions(session, &bank.accounts, knobs.accounts_in_all(), |row| books.account(row, knobs))?;
    for worker in 0..workers {
        let mut next = 0;
        loop {
            let range = (worker, next)..=(worker, u64::MAX);
            let rows: Vec<History> = session.run(|tx| {
                let rows = bank.history.scan(tx, range.clone(), Whole).take(BATCH as usize);
                rows.map(|row| Ok::<_, Abort>(row?.1)).collect::<Result<_, _>>()
            })?;
            rows.iter().for_each(|row| books.history(row));
            match rows.last() {
                Some(last) => next = last.number + 1,
                None => break,
            }
        }
    }
    Ok(books)
}
