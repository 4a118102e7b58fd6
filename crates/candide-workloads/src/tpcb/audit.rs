//! The check, which compares every balance with the history.

use std::cell::RefCell;
use std::ops::Bound::Included;

use candide::{Abort, Error, Protocol, Session};

use super::contents::Contents;
use super::knobs::TpcB;
use super::tables::{Account, Bank, Branch, History, Teller};
use super::worker::Tally;
use crate::read_back::{Rows, rows};
use crate::{Consistency, Failure};

/// The tables, by means that do not depend on the protocol.
struct Tables<'a> {
    branches: Rows<'a, Branch>,
    tellers: Rows<'a, Teller>,
    accounts: Rows<'a, Account>,
    history: Rows<'a, History>,
}

/// Compares the tables with one another, with the loaded rows and with the tally of committed
/// transactions.
pub(super) fn check<P: Protocol>(
    bank: &Bank<P>,
    session: Session<P>,
    knobs: &TpcB,
    workers: u64,
    tally: &Tally,
) -> Result<Consistency, Failure> {
    let session = &RefCell::new(session);
    let tables = Tables {
        branches: rows(&bank.branches, session),
        tellers: rows(&bank.tellers, session),
        accounts: rows(&bank.accounts, session),
        history: rows(&bank.history, session),
    };
    settle(&tables, knobs, workers, tally)
}

fn settle(
    tables: &Tables<'_>,
    knobs: &TpcB,
    workers: u64,
    tally: &Tally,
) -> Result<Consistency, Failure> {
    let looked_up = tables.read_by_transactions(knobs, workers)?;
    let iterated = tables.read_by_iteration(knobs)?;

    let mut consistency = Consistency::default();
    looked_up.settle("read by transactions", knobs, tally, &mut consistency);
    iterated.settle("read by raw iteration", knobs, tally, &mut consistency);
    consistency.expect(looked_up == iterated, || {
        let (looked_up, iterated) = (looked_up.counts(), iterated.counts());
        format!(
            "transactions and raw iteration do not read the same: {looked_up:?} and {iterated:?}"
        )
    });
    Ok(consistency)
}

impl Tables<'_> {
    fn read_by_transactions(&self, knobs: &TpcB, workers: u64) -> Result<Contents, Abort> {
        let mut contents = Contents::default();
        self.branches.by_keys(&mut (0..knobs.branches), &mut |row| contents.branch(row))?;
        self.tellers
            .by_keys(&mut (0..knobs.branches * super::TELLERS), &mut |row| contents.teller(row))?;
        self.accounts
            .by_keys(&mut (0..knobs.accounts_in_all()), &mut |row| contents.account(row, knobs))?;
        if let Some(last) = workers.checked_sub(1) {
            let (from, to) = (Included((0, 0)), Included((last, u64::MAX)));
            self.history.by_scans(from, to, &mut |row| contents.history(row))?;
        }
        Ok(contents)
    }

    fn read_by_iteration(&self, knobs: &TpcB) -> Result<Contents, Error> {
        let mut contents = Contents::default();
        self.branches.by_iteration(&mut |row| contents.branch(row))?;
        self.tellers.by_iteration(&mut |row| contents.teller(row))?;
        self.accounts.by_iteration(&mut |row| contents.account(row, knobs))?;
        self.history.by_iteration(&mut |row| contents.history(row))?;
        Ok(contents)
    }
}
