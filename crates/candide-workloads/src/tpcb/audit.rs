//! The check, which compares every balance with the history.

use std::cell::RefCell;
use std::ops::Bound::Included;

use candide::{Protocol, Session};

use super::contents::Contents;
use super::knobs::TpcB;
use super::tables::{Account, Bank, Branch, History, TELLERS, Teller};
use super::worker::Tally;
use crate::read_back::{Rows, Way, audit, rows};
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
    audit(
        |way| tables.read(way, knobs, workers),
        |contents, way, consistency| contents.settle(way, knobs, tally, consistency),
        Contents::eq,
        |contents| format!("{:?}", contents.counts()),
    )
}

impl Tables<'_> {
    fn read(&self, way: Way, knobs: &TpcB, workers: u64) -> Result<Contents, Failure> {
        let mut contents = Contents::default();
        let tellers = knobs.branches * TELLERS;
        self.branches.read(way, &mut (0..knobs.branches), &mut |row| contents.branch(row))?;
        self.tellers.read(way, &mut (0..tellers), &mut |row| contents.teller(row))?;
        let mut accounts = 0..knobs.accounts_in_all();
        self.accounts.read(way, &mut accounts, &mut |row| contents.account(row, knobs))?;
        let mut visit = |row: &History| contents.history(row);
        match (way, workers.checked_sub(1)) {
            (Way::Iteration, _) => _ = self.history.by_iteration(&mut visit)?,
            (Way::Transactions, Some(last)) => {
                let (from, to) = (Included((0, 0)), Included((last, u64::MAX)));
                self.history.by_scans(from, to, &mut visit)?;
            }
            (Way::Transactions, None) => {}
        }
        Ok(contents)
    }
}
